"""Convert fitted models to ONNX graphs with one output. Imported only when needed, since the converters are an extra."""

import copy
import warnings
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from skl2onnx import __max_supported_opset__, convert_sklearn, update_registered_converter
from skl2onnx.common.data_types import DataType, DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType
from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes as classifier_shapes
from skl2onnx.helpers.onnx_helper import select_model_inputs_outputs
from skl2onnx.operator_converters.random_forest import convert_sklearn_random_forest_classifier as convert_forest
from sklearn.ensemble import HistGradientBoostingClassifier

from fasterce.models.compiled.preprocessing import MATRIX, ColumnPreprocessor
from fasterce.models.compiled.session import GraphBackend

# A matrix product is fastest with enough rows to fill a core's registers; trees do not gain from more rows.
PRODUCT_ROWS, TREE_ROWS = 48, 16
# The converters of XGBoost and LightGBM write trees of this version at most.
OPSETS = {"": __max_supported_opset__, "ai.onnx.ml": 3}
BOOSTERS = {"xgboost": ("XGBoost", "convert_xgboost"), "lightgbm": ("LightGbm", "convert_lightgbm")}
TENSORS = {"float32": FloatTensorType, "float64": DoubleTensorType, "int64": Int64TensorType, "object": StringTensorType}


def on_matrix(estimator: Any, width: int, dtype: DTypeLike, scores: str | None) -> GraphBackend:
    """Return a graph of the last step of a pipeline, or of a model that takes numbers alone, on a matrix."""
    return _compile(_convertible(estimator), [(MATRIX, _tensor(dtype, width))], scores)


def on_columns(model: Any, preprocessor: ColumnPreprocessor, scores: str | None) -> GraphBackend:
    """Return a graph of all steps, on the model's own columns."""
    kinds = [preprocessor.dtypes[j] if known is None else known.dtype for j, known in enumerate(preprocessor.categories)]
    inputs = [(name, _tensor(kind, 1)) for name, kind in zip(preprocessor.names, kinds, strict=True)]
    return _compile(model, inputs, scores)


def last_step(model: Any) -> Any:
    return last_step(model.steps[-1][1]) if hasattr(model, "steps") else model


def _tensor(dtype: DTypeLike, width: int) -> DataType:
    return TENSORS[np.dtype(dtype).name]([None, width])


def _compile(model: Any, inputs: list[tuple[str, DataType]], scores: str | None) -> GraphBackend:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _register(type(last_step(model)))
        graph = _convert(model, inputs, scores)
        label, score = graph.graph.output[:2]
        graph = select_model_inputs_outputs(graph, (label if scores is None else score).name)
    trees = any(node.op_type.startswith("TreeEnsemble") for node in graph.graph.node)
    return GraphBackend(graph.SerializeToString(), TREE_ROWS if trees else PRODUCT_ROWS)


def _convert(model: Any, inputs: list[tuple[str, DataType]], scores: str | None) -> Any:
    """Convert a model; converters reject options they do not know, so several sets are tried."""
    wanted = {"raw_scores": True} if scores == "decision_function" else {}
    last = last_step(model)
    for options in ({"zipmap": False, **wanted}, wanted, {"zipmap": False}):
        try:
            return convert_sklearn(
                model,
                initial_types=inputs,
                options={id(last): options},
                target_opset=OPSETS,
                custom_conversion_functions={HistGradientBoostingClassifier: _convert_boosting},
                custom_shape_calculators={HistGradientBoostingClassifier: classifier_shapes},
            )
        except NameError as error:
            refused = error
    raise refused


def _register(kind: type) -> None:
    """Register a class of XGBoost or LightGBM with skl2onnx, as its documentation does."""
    package = kind.__module__.split(".")[0]
    if package not in BOOSTERS:
        return
    module, name = BOOSTERS[package]
    # The converter imports the package, which may not be installed for other models.
    convert = getattr(import_module(f"onnxmltools.convert.{package}.operator_converters.{module}"), name)
    known = {"nocl": [True, False], "zipmap": [True, False, "columns"]}
    update_registered_converter(kind, f"Fasterce{kind.__name__}", classifier_shapes, convert, options=known)


def _convertible(estimator: Any) -> Any:
    """Return a model that predicts the same and that its converter accepts.

    The one of a vote refuses an option that only concerns `transform`. The one of XGBoost needs features named f0, f1, ...;
    those declared boolean would be written without thresholds.
    """
    if getattr(estimator, "flatten_transform", False):
        estimator = copy.copy(estimator)
        estimator.flatten_transform = False
    if type(estimator).__module__.split(".")[0] != "xgboost":
        return estimator
    plain = copy.deepcopy(estimator)
    booster = plain.get_booster()
    booster.feature_names = None
    if booster.feature_types is not None:
        booster.feature_types = ["c" if kind == "c" else "float" for kind in booster.feature_types]
    return plain


class _WholeNumbers:
    """A container that writes booleans as numbers, which newer versions of onnx require."""

    def __init__(self, container: Any) -> None:
        self._container = container

    def __getattr__(self, name: str) -> object:
        return getattr(self._container, name)

    def add_node(self, *arguments: object, **attributes: object) -> object:
        return self._container.add_node(*arguments, **{name: _whole(value) for name, value in attributes.items()})


def _whole(value: object) -> object:
    if isinstance(value, list) and any(isinstance(one, (bool, np.bool_, np.integer)) for one in value):
        return [int(one) for one in value]
    return value


def _convert_boosting(scope: Any, operator: Any, container: Any) -> None:
    if getattr(operator.raw_operator, "is_categorical_", None) is not None:
        raise NotImplementedError("histogram boosting on categories has no converter")
    convert_forest(scope, operator, _WholeNumbers(container))
