"""Linear models and multi-layer perceptrons of scikit-learn as layers, and as networks on codes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasterce.data.schema import MISSING
from fasterce.kernels.arrays import LINEAR, LOGISTIC, RELU, TANH, Network
from fasterce.models.compiled.columns import CONSTANT, Columns
from fasterce.models.compiled.form import DECISION, DECISIONS, LOGIT, NUMBER, SIGMOIDS, SOFTMAX, Form, OutputMap
from fasterce.models.compiled.model import NotCompiledError
from fasterce.typing import Floats, Indices

ACTIVATIONS = {"relu": RELU, "tanh": TANH, "logistic": LOGISTIC, "identity": LINEAR}


@dataclass(frozen=True)
class Layers:
    """A network on the columns that the last step gets: `columns @ weights[0] + offsets[0]` and so on."""

    weights: tuple[Floats, ...]
    offsets: tuple[Floats, ...]
    form: Form
    activation: int = LINEAR


def read_layers(model: Any) -> Layers | None:
    """Return the layers of a fitted model, None if it has none; raises `NotCompiledError`."""
    for kind in type(model).__mro__:
        reader = READERS.get(kind.__name__) if kind.__module__.startswith("sklearn.") else None
        if reader is not None:
            return reader(model)
    return None


def _linear(model: Any, form_of_many: Form, form_of_two: Form) -> Layers:
    weights = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64)).T
    offsets = np.zeros(weights.shape[1]) + np.asarray(model.intercept_, dtype=np.float64)
    return Layers((weights,), (offsets,), form_of_two if weights.shape[1] == 1 else form_of_many)


def _read_linear_classifier(model: Any) -> Layers:
    """Read a classifier whose scores are its decision values, unless it has probabilities."""
    if not callable(getattr(model, "predict_proba", None)):
        return _linear(model, DECISIONS, DECISION)
    if getattr(model, "loss", "log_loss") != "log_loss":
        raise NotCompiledError("models.compile_objective", objective=model.loss)
    return _linear(model, SIGMOIDS, LOGIT)


def _read_softmax(model: Any) -> Layers:
    return _linear(model, SOFTMAX, LOGIT)


def _read_linear_regressor(model: Any) -> Layers:
    layers = _linear(model, NUMBER, NUMBER)
    if layers.weights[0].shape[1] != 1:
        raise NotCompiledError("models.compile_objective", objective="several targets")
    return layers


def _read_perceptron(model: Any) -> Layers:
    forms = {"logistic": LOGIT, "softmax": SOFTMAX, "identity": NUMBER}
    weights = tuple(np.asarray(one, dtype=np.float64) for one in model.coefs_)
    offsets = tuple(np.asarray(one, dtype=np.float64) for one in model.intercepts_)
    form = forms.get(model.out_activation_)
    if form is None:
        raise NotCompiledError("models.compile_objective", objective=model.loss)
    if form != SOFTMAX and weights[-1].shape[1] != 1:
        raise NotCompiledError("models.compile_objective", objective="several targets")
    return Layers(weights, offsets, form, ACTIVATIONS[model.activation])


READERS: dict[str, Callable[[Any], Layers]] = {
    "LogisticRegression": _read_softmax,
    "LinearDiscriminantAnalysis": _read_softmax,
    "RidgeClassifier": _read_linear_classifier,
    "RidgeClassifierCV": _read_linear_classifier,
    "LinearSVC": _read_linear_classifier,
    "BaseSGDClassifier": _read_linear_classifier,
    "MLPClassifier": _read_perceptron,
    "MLPRegressor": _read_perceptron,
    "LinearRegression": _read_linear_regressor,
    "_BaseRidge": _read_linear_regressor,
    "RidgeCV": _read_linear_regressor,
    "ElasticNet": _read_linear_regressor,
    "LinearModelCV": _read_linear_regressor,
    "Lars": _read_linear_regressor,
    "LassoLarsIC": _read_linear_regressor,
    "BayesianRidge": _read_linear_regressor,
    "ARDRegression": _read_linear_regressor,
    "HuberRegressor": _read_linear_regressor,
    "QuantileRegressor": _read_linear_regressor,
    "TheilSenRegressor": _read_linear_regressor,
    "OrthogonalMatchingPursuit": _read_linear_regressor,
    "BaseSGDRegressor": _read_linear_regressor,
    "LinearSVR": _read_linear_regressor,
}


def network_on_codes(layers: Layers, columns: Columns, outputs: OutputMap, codes: Floats) -> Network:
    """Return the same network with its first layer as tables on codes."""
    last = layers.weights[-1] @ outputs.matrix, layers.offsets[-1] @ outputs.matrix + outputs.shift
    weights = (*layers.weights[:-1], last[0])
    offsets = (*layers.offsets[:-1], last[1])
    tables = [_table(columns, j, weights[0], codes[:, j]) for j in range(len(columns.table.schema))]
    constant = columns.owner == CONSTANT
    features = columns.table.schema.features
    return Network(
        knots=np.concatenate([knots for knots, _ in tables]),
        entries=np.ascontiguousarray(np.concatenate([entries for _, entries in tables])),
        start=np.cumsum([0, *(len(knots) for knots, _ in tables)], dtype=np.int64),
        numeric=np.array([feature.numeric for feature in features]),
        nullable=np.array([feature.numeric and feature.nullable for feature in features]),
        extrapolate=True,
        bias=offsets[0] + columns.by_code[0, constant] @ weights[0][constant],
        activation=layers.activation,
        width=np.array([len(one) for one in offsets[1:]], dtype=np.int64),
        weights=np.concatenate([np.zeros(0), *(one.reshape(-1) for one in weights[1:])]),
        offsets=np.concatenate([np.zeros(0), *offsets[1:]]),
    )


def _table(columns: Columns, j: int, weights: Floats, codes: Floats) -> tuple[Floats, Floats]:
    """Return the knots of a feature and the entry of each."""
    feature, own = columns.table.schema.features[j], np.flatnonzero(columns.owner == j)
    if not feature.numeric:
        return np.arange(feature.n_codes, dtype=np.float64), columns.by_code[: feature.n_codes, own] @ weights[own]
    knots = _knots(columns, j, codes[codes != MISSING])
    entries = _heights(columns, own, knots) @ weights[own]
    if not feature.nullable:
        return knots, entries
    missing = columns.missing[own] @ weights[own]
    return np.append(MISSING, knots), np.vstack([missing, entries])


def _knots(columns: Columns, j: int, numbers: Floats) -> Floats:
    """Return the ends of a straight line, or the knots of a curve between two that are far out."""
    knots = next((curve.knots for curve in columns.preprocessor.curves if curve.feature == j), None)
    if knots is not None:
        span = knots[-1] - knots[0]
        return np.concatenate([[knots[0] - span], knots, [knots[-1] + span]])
    low, high = (numbers.min(), numbers.max()) if len(numbers) else (0.0, 1.0)
    return np.array([low, high if high > low else low + 1.0])


def _heights(columns: Columns, own: Indices, knots: Floats) -> Floats:
    """Return the columns of a number at knots, without the rounding of its dtype."""
    preprocessor, found = columns.preprocessor, np.zeros((len(knots), columns.preprocessor.width))
    lines = preprocessor.lines
    found[:, lines.outputs] = knots[:, None] * lines.slope + lines.intercept
    for curve in preprocessor.curves:
        if curve.output in own:
            found[:, curve.output] = np.interp(knots, curve.knots, curve.heights)
    return found[:, own]
