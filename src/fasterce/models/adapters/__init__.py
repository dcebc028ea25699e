"""Adapters for models of other libraries, recognised by type: no library is imported that the user has not imported.

`FasterCE` calls `adapt` on its model. `fasterce.testing.check_adapter` checks what an adapter must do.
"""

from collections.abc import Callable
from typing import Any

from fasterce.errors import InputError
from fasterce.models.adapters import lightgbm, prepared, xgboost
from fasterce.models.adapters.base import type_names
from fasterce.models.adapters.catboost import CatBoostModel
from fasterce.models.adapters.function import FunctionModel
from fasterce.models.adapters.lightgbm import LightGBMModel
from fasterce.models.adapters.onnx import OnnxModel
from fasterce.models.adapters.prepared import PreparedModel, RenamedModel, predicts_numbers
from fasterce.models.adapters.torch import CodecMatrix, TorchModel
from fasterce.models.adapters.xgboost import XGBoostModel
from fasterce.models.protocol import Model

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
    "predicts_numbers",
]


def adapt(model: object) -> Model:
    """Return a model with the interface of `Model`; `FasterCE` calls this on its model.

    Parameters
    ----------
    model : object
        A model of a supported library.

    Returns
    -------
    Model
        An adapter, or the model itself if it needs none.
    """
    names = type_names(model)
    for name, wrap in FAMILIES:
        if name in names:
            return wrap(model)
    return model  # type: ignore[return-value]  # checked by `find_predict`


def _module(model: Model) -> Model:
    if callable(getattr(model, "predict", None)):
        return model
    raise InputError("models.torch_module", option="model", received=type(model).__name__)


def _xgboost_estimator(model: Any) -> Model:
    """Wrap an estimator fitted with categories: XGBoost refuses text."""
    fitted = getattr(model, "_Booster", None) is not None
    return PreparedModel(model, xgboost.XGBoostPreparation(model.get_booster())) if fitted else model


def _lightgbm_estimator(model: Any) -> Model:
    """Wrap an estimator: LightGBM refuses text, and ignores the names of columns in another order."""
    return PreparedModel(model, lightgbm.LightGBMPreparation(model.booster_)) if getattr(model, "fitted_", False) else model


def _scikit_learn(model: Model) -> Model:
    return PreparedModel(model, prepared.without_names) if prepared.fitted_without_names(model) else model


# The first match counts: estimators of XGBoost and LightGBM are also scikit-learn's.
FAMILIES: tuple[tuple[tuple[str, str], Callable[[Any], Model]], ...] = (
    (("xgboost", "Booster"), XGBoostModel),
    (("xgboost", "XGBModel"), _xgboost_estimator),
    (("lightgbm", "Booster"), LightGBMModel),
    (("lightgbm", "LGBMModel"), _lightgbm_estimator),
    (("catboost", "CatBoost"), CatBoostModel),
    (("onnxruntime", "InferenceSession"), OnnxModel),
    (("onnx", "ModelProto"), OnnxModel),
    (("torch", "Module"), _module),
    (("sklearn", "BaseEstimator"), _scikit_learn),
)
