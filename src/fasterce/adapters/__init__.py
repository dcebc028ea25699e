"""Models of other libraries behind one small protocol, found by type: nothing is imported that the user has not.

`adapt` is what `FasterCE` does with the model it is given. `fasterce.testing.check_adapter` is the contract.
"""

from collections.abc import Callable
from typing import Any

from fasterce.adapters import lightgbm, prepared, xgboost
from fasterce.adapters.base import type_names
from fasterce.adapters.catboost import CatBoostModel
from fasterce.adapters.function import FunctionModel
from fasterce.adapters.lightgbm import LightGBMModel
from fasterce.adapters.onnx import OnnxModel
from fasterce.adapters.prepared import PreparedModel, says_numbers
from fasterce.adapters.protocol import Model
from fasterce.adapters.renamed import RenamedModel
from fasterce.adapters.torch import CodecMatrix, TorchModel
from fasterce.adapters.xgboost import XGBoostModel
from fasterce.errors import InputError

__all__ = [
    "CatBoostModel",
    "CodecMatrix",
    "FunctionModel",
    "LightGBMModel",
    "Model",
    "OnnxModel",
    "PreparedModel",
    "RenamedModel",
    "TorchModel",
    "XGBoostModel",
    "adapt",
    "says_numbers",
]


def adapt(model: Any) -> Any:
    """Something with `predict(frame)`, and scores and classes where the model has them; the model itself where it will do."""
    names = type_names(model)
    for name, wrap in FAMILIES:
        if name in names:
            return wrap(model)
    return model


def _module(model: Any) -> Any:
    if callable(getattr(model, "predict", None)):
        return model
    raise InputError(
        f"model must take a DataFrame, and a PyTorch module takes tensors; expected TorchModel({type(model).__name__}(…), "
        "inputs=function from DataFrame to tensors) from fasterce.adapters; got the module itself."
    )


def _xgboost_estimator(model: Any) -> Any:
    """XGBoost refuses text; an estimator fitted with categories is given them as such."""
    fitted = getattr(model, "_Booster", None) is not None
    return PreparedModel(model, xgboost.Preparation(model.get_booster())) if fitted else model


def _lightgbm_estimator(model: Any) -> Any:
    """LightGBM refuses text, and does not look at the names of columns in another order."""
    return PreparedModel(model, lightgbm.Preparation(model.booster_)) if getattr(model, "fitted_", False) else model


def _scikit_learn(model: Any) -> Any:
    return PreparedModel(model, prepared.without_names) if prepared.fitted_without_names(model) else model


# The first that fits: XGBoost's and LightGBM's estimators are scikit-learn's too.
FAMILIES: tuple[tuple[tuple[str, str], Callable[[Any], Any]], ...] = (
    (("xgboost", "Booster"), xgboost.xgboost_model),
    (("xgboost", "XGBModel"), _xgboost_estimator),
    (("lightgbm", "Booster"), LightGBMModel),
    (("lightgbm", "LGBMModel"), _lightgbm_estimator),
    (("catboost", "CatBoost"), CatBoostModel),
    (("onnxruntime", "InferenceSession"), OnnxModel),
    (("onnx", "ModelProto"), OnnxModel),
    (("torch", "Module"), _module),
    (("sklearn", "BaseEstimator"), _scikit_learn),
)
