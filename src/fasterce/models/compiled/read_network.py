"""Linear models and multi-layer perceptrons of scikit-learn as layers, and as networks on codes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasterce.data.schema import MISSING
from fasterce.data.table import Table
from fasterce.kernels.arrays import LINEAR, LOGISTIC, RELU, TANH, Network
from fasterce.models.compiled.form import DECISION, DECISIONS, LOGIT, NUMBER, SIGMOIDS, SOFTMAX, Form, OutputMap
from fasterce.models.compiled.model import NotCompiledError
from fasterce.models.compiled.preprocessing import (
    CURVE_SLACK,
    KNOTS,
    MOST_NEAR,
    Prober,
    as_matrix,
    probe_values,
    rounding_of,
    spread,
)
from fasterce.models.compiled.read_trees import xgboost_form, xgboost_learner
from fasterce.typing import Floats

ACTIVATIONS = {"relu": RELU, "tanh": TANH, "logistic": LOGISTIC, "identity": LINEAR}


@dataclass(frozen=True)
class Layers:
    """A network on the columns that the last step gets: `columns @ weights[0] + offsets[0]` and so on."""

    weights: tuple[Floats, ...]
    offsets: tuple[Floats, ...]
    form: Form
    activation: int = LINEAR


def read_layers(model: object) -> Layers | None:
    """Return the layers of a fitted model, None if it has none; raises `NotCompiledError`."""
    for kind in type(model).__mro__:
        reader = READERS.get(kind.__name__) if kind.__module__.split(".")[0] in ("sklearn", "xgboost") else None
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
        raise NotCompiledError("models.compile_structure", received=model.loss)
    return _linear(model, SIGMOIDS, LOGIT)


def _read_softmax(model: object) -> Layers:
    return _linear(model, SOFTMAX, LOGIT)


def _read_linear_regressor(model: object) -> Layers:
    layers = _linear(model, NUMBER, NUMBER)
    if layers.weights[0].shape[1] != 1:
        raise NotCompiledError("models.compile_structure", received="several targets")
    return layers


def _read_perceptron(model: Any) -> Layers:
    forms = {"logistic": LOGIT, "softmax": SOFTMAX, "identity": NUMBER}
    weights = tuple(np.asarray(one, dtype=np.float64) for one in model.coefs_)
    offsets = tuple(np.asarray(one, dtype=np.float64) for one in model.intercepts_)
    form = forms.get(model.out_activation_)
    if form is None:
        raise NotCompiledError("models.compile_structure", received=model.loss)
    if form != SOFTMAX and weights[-1].shape[1] != 1:
        raise NotCompiledError("models.compile_structure", received="several targets")
    return Layers(weights, offsets, form, ACTIVATIONS[model.activation])


def _read_linear_booster(model: object) -> Layers:
    """Read XGBoost's linear booster: a weight per column and output, and a bias."""
    _, learner = xgboost_learner(model)
    form, base = xgboost_form(learner)
    weights = np.array(learner["gradient_booster"]["model"]["weights"], dtype=np.float64).reshape(-1, len(base))
    return Layers((weights[:-1],), (weights[-1] + base,), form)


READERS: dict[str, Callable[[Any], Layers]] = {
    "XGBModel": _read_linear_booster,
    "Booster": _read_linear_booster,
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


@dataclass(frozen=True)
class FirstLayer:
    """The first layer of a network as a sum of tables, one per feature, learned by probing.

    Steps that mix columns, such as principal components, are supported if the result is a sum of functions of single
    features.
    """

    knots: tuple[Floats, ...]
    entries: tuple[Floats, ...]
    """What each value of a feature adds, for each feature (knots, hidden)."""
    bias: Floats
    exact: bool
    """Whether numbers are straight lines."""


def learn_first_layer(prober: Prober, weights: Floats, offsets: Floats, codes: Floats) -> FirstLayer:
    """Return the tables whose sum is `transform @ weights + offsets`; raises `NotCompiledError` if there are none."""
    features = prober.table.schema.features
    probes = [probe_values(feature, codes[:, j]) for j, feature in enumerate(features)]
    seen = prober.outputs_at(list(range(len(features))), probes)
    slack = rounding_of(seen[0], prober.table)
    base = prober.outputs_at([0], [prober.row[:1]])[0][0] @ weights
    scale = np.abs(np.concatenate(seen) @ weights).max() + slack
    knots, entries, exact = [], [], True
    for j, feature in enumerate(features):
        places, values = probes[j], seen[j] @ weights - base
        if feature.numeric:
            places, values, straight = _number_table(prober, j, codes[:, j], (places, values), (weights, base, slack * scale))
            exact = exact and straight
        knots.append(places)
        entries.append(values)
    layer = FirstLayer(tuple(knots), tuple(entries), offsets + base, exact)
    expected = as_matrix(prober.transform(prober.table.frame(codes))) @ weights + offsets
    _check_layer(layer, prober.table, codes, expected, slack * scale)
    return layer


def _number_table(
    prober: Prober, j: int, codes: Floats, probed: tuple[Floats, Floats], layer: tuple[Floats, Floats, float]
) -> tuple[Floats, Floats, bool]:
    """Return two knots of a straight line, or many of a curve, after that of a missing number; and whether it is straight."""
    feature, (weights, base, error) = prober.table.schema.features[j], layer
    places, values = probed
    numbers = len(places) - feature.nullable
    missing = slice(numbers, None)
    ends = [0, numbers - 1]
    share = ((places[:numbers] - places[0]) / (places[numbers - 1] - places[0]))[:, None]
    straight = np.abs(values[0] + share * (values[numbers - 1] - values[0]) - values[:numbers]).max() <= error
    if straight:
        known, found = places[ends], values[ends]
    else:
        known = spread(feature, codes, KNOTS, KNOTS)
        found = prober.outputs_at([j], [known])[0] @ weights - base
        # Beyond its knots a curve stays as it is.
        span = known[-1] - known[0]
        known = np.concatenate([[known[0] - span], known, [known[-1] + span]])
        found = np.concatenate([found[:1], found, found[-1:]])
    return np.concatenate([places[missing], known]), np.concatenate([values[missing], found]), bool(straight)


def _check_layer(layer: FirstLayer, table: Table, codes: Floats, expected: Floats, error: float) -> None:
    """Check that the sum of the tables is the layer on known rows, nearly so where it has curves."""
    found = np.repeat(layer.bias[None], len(codes), axis=0)
    for j, feature in enumerate(table.schema.features):
        values, knots, entries = codes[:, j], layer.knots[j], layer.entries[j]
        if not feature.numeric:
            found += entries[values.astype(np.intp)]
            continue
        missing = values == MISSING
        found[missing] += entries[0]
        knots, entries = knots[feature.nullable :], entries[feature.nullable :]
        low = np.clip(np.searchsorted(knots, values[~missing], side="right") - 1, 0, len(knots) - 2)
        share = ((values[~missing] - knots[low]) / (knots[low + 1] - knots[low]))[:, None]
        found[~missing] += entries[low] + share * (entries[low + 1] - entries[low])
    away = np.abs(found - expected).max(axis=1)
    near = away <= 10 * error if layer.exact else away <= CURVE_SLACK * np.abs(expected).max()
    if not np.isfinite(away).all() or near.mean() < (1.0 if layer.exact else MOST_NEAR):
        raise NotCompiledError("models.compile_mixing")


def network_on_codes(layers: Layers, prober: Prober, outputs: OutputMap, codes: Floats) -> tuple[Network, bool]:
    """Return the same network with its first layer as tables on codes, and whether it is exact."""
    last = layers.weights[-1] @ outputs.matrix, layers.offsets[-1] @ outputs.matrix + outputs.shift
    weights = (*layers.weights[:-1], last[0])
    offsets = (*layers.offsets[:-1], last[1])
    first = learn_first_layer(prober, weights[0], offsets[0], codes)
    features = prober.table.schema.features
    network = Network(
        knots=np.concatenate(first.knots),
        entries=np.ascontiguousarray(np.concatenate(first.entries)),
        start=np.cumsum([0, *(len(knots) for knots in first.knots)], dtype=np.int64),
        numeric=np.array([feature.numeric for feature in features]),
        nullable=np.array([feature.numeric and feature.nullable for feature in features]),
        extrapolate=True,
        bias=first.bias,
        activation=layers.activation,
        width=np.array([len(one) for one in offsets[1:]], dtype=np.int64),
        weights=np.concatenate([np.zeros(0), *(one.reshape(-1) for one in weights[1:])]),
        offsets=np.concatenate([np.zeros(0), *offsets[1:]]),
    )
    return network, first.exact
