"""Models of scikit-learn that are layers of sums: linear models, perceptrons, kernel machines, Gaussian classes; as networks
on codes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from fasterce.data.dtypes import is_single
from fasterce.data.schema import MISSING
from fasterce.data.table import Table
from fasterce.kernels.arrays import CUBE, EXPONENTIAL, LINEAR, LOGISTIC, RELU, SQUARE, TANH, Network
from fasterce.models.compiled.form import DECISION, DECISIONS, LOGIT, NUMBER, PROBABILITY, SIGMOIDS, SOFTMAX, Form, OutputMap
from fasterce.models.compiled.model import NotCompiledError
from fasterce.models.compiled.preprocessing import (
    CURVE_SLACK,
    KNOTS,
    MOST_CELLS,
    MOST_NEAR,
    Prober,
    as_matrix,
    probe_values,
    rounding_of,
    spread,
)
from fasterce.models.compiled.read_trees import xgboost_form, xgboost_learner
from fasterce.typing import Floats

# Support vectors up to which a kernel machine is searched exactly: beyond, the surrogate is faster.
MOST_CENTRES = 2_000
ACTIVATIONS = {"relu": RELU, "tanh": TANH, "logistic": LOGISTIC, "identity": LINEAR}


@dataclass(frozen=True)
class Layers:
    """A network on the columns that the last step gets: `columns @ weights[0] + offsets[0]` and so on."""

    weights: tuple[Floats, ...]
    offsets: tuple[Floats, ...]
    form: Form
    activation: int = LINEAR
    gamma: float = 0.0
    """If positive, the first layer is `offsets[0]` minus this times the squared distances from columns of `weights[0]`."""

    def products(self, columns: Floats, weights: Floats) -> Floats:
        """Return what the first layer adds to its offsets."""
        if self.gamma > 0:
            return np.asarray(-self.gamma * cdist(columns, weights.T, "sqeuclidean"))
        return np.asarray(columns @ weights)


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


# -- kernel machines and Gaussian classes ----------------------------------------------------------------------------------


def _machine(model: Any, centres: Floats, dual: Floats, offset: Floats, gamma: float, form: Form) -> Layers:
    """Return a sum of kernels: one hidden unit per row of `centres`, weighted by `dual` (centres, outputs)."""
    if len(centres) > MOST_CENTRES:
        raise NotCompiledError("models.compile_structure", received=f"{len(centres)} support vectors")
    if model.kernel == "linear":
        return Layers((centres.T @ dual,), (offset,), form)
    none = np.zeros(len(centres))
    if model.kernel == "rbf":
        return Layers((centres.T, dual), (none, offset), form, EXPONENTIAL, gamma=gamma)
    powers = {("poly", 1): LINEAR, ("poly", 2): SQUARE, ("poly", 3): CUBE, ("polynomial", 3): CUBE}
    activation = TANH if model.kernel == "sigmoid" else powers.get((model.kernel, model.degree))
    if activation is None:
        raise NotCompiledError("models.compile_structure", received=model.kernel)
    return Layers((gamma * centres.T, dual), (none + model.coef0, offset), form, activation)


def _read_support_vectors(model: Any) -> Layers:
    """Read a support vector machine of two classes, or of numbers. With more classes the model counts votes of pairs."""
    if callable(model.kernel) or model.kernel == "precomputed":
        raise NotCompiledError("models.compile_structure", received="kernel")
    centres, dual = model.support_vectors_, model.dual_coef_
    centres, dual = (part.toarray() if hasattr(part, "toarray") else part for part in (centres, dual))
    if len(dual) != 1:
        raise NotCompiledError("models.compile_structure", received="several classes")
    weights, offset, form = dual.T, model.intercept_, NUMBER
    if hasattr(model, "classes_"):
        form = DECISION
        if len(model._probA):
            # Probabilities are a logistic function of the decision value; the label changes where that is 0.
            slope = -model._probA[0]
            if slope <= 0:
                raise NotCompiledError("models.compile_structure", received="probabilities that contradict labels")
            weights, offset, form = slope * weights, slope * offset, replace(LOGIT, platt=float(model._probB[0]))
    return _machine(model, centres, weights, np.asarray(offset, dtype=np.float64), float(model._gamma), form)


def _read_kernel_ridge(model: Any) -> Layers:
    dual = np.asarray(model.dual_coef_)
    if callable(model.kernel) or dual.ndim != 1:
        raise NotCompiledError("models.compile_structure", received="kernel" if dual.ndim == 1 else "several targets")
    centres = np.asarray(model.X_fit_)
    gamma = 1.0 / centres.shape[1] if model.gamma is None else float(model.gamma)
    return _machine(model, centres, dual[:, None], np.zeros(1), gamma, NUMBER)


def _read_gaussians(model: Any, rotations: list[Floats], scalings: list[Floats], prior: Floats) -> Layers:
    """Read a Gaussian per class: a hidden unit per class and direction, whose square counts against the class."""
    means = model.means_ if hasattr(model, "means_") else model.theta_
    weights = [rotation / np.sqrt(scale) for rotation, scale in zip(rotations, scalings, strict=True)]
    offsets = [-mean @ weight for mean, weight in zip(means, weights, strict=True)]
    counts = [weight.shape[1] for weight in weights]
    against = -0.5 * np.repeat(np.eye(len(counts)), counts, axis=0)
    constant = np.log(prior) - 0.5 * np.array([np.log(scale).sum() for scale in scalings])
    return Layers((np.hstack(weights), against), (np.concatenate(offsets), constant), SOFTMAX, SQUARE)


def _read_quadratic_discriminant(model: Any) -> Layers:
    return _read_gaussians(model, model.rotations_, model.scalings_, model.priors_)


def _read_naive_bayes(model: Any) -> Layers:
    return _read_gaussians(model, [np.eye(model.theta_.shape[1])] * len(model.theta_), list(model.var_), model.class_prior_)


def _read_calibrated(model: Any) -> Layers:
    """Read a classifier of two classes calibrated by logistic functions: an average of these over the models of all folds."""
    folds = [(read_layers(fold.estimator), fold.calibrators[0]) for fold in model.calibrated_classifiers_]
    if model.method != "sigmoid" or any(base is None or base.form not in (LOGIT, DECISION) for base, _ in folds):
        raise NotCompiledError("models.compile_structure", received=type(model).__name__)
    scaled = [
        (base, -one.a_ * base.weights[-1], -one.a_ * base.offsets[-1] - one.b_) for base, one in folds if base is not None
    ]
    if len(scaled) == 1:
        base, weights, offsets = scaled[0]
        return replace(base, weights=(*base.weights[:-1], weights), offsets=(*base.offsets[:-1], offsets), form=LOGIT)
    if any(len(base.weights) > 1 for base, *_ in scaled):
        raise NotCompiledError("models.compile_structure", received=type(model).__name__)
    shares = np.tile([-1.0 / len(scaled), 1.0 / len(scaled)], (len(scaled), 1))
    first = np.hstack([weights for _, weights, _ in scaled]), np.concatenate([offsets for *_, offsets in scaled])
    return Layers((first[0], shares), (first[1], np.array([1.0, 0.0])), PROBABILITY, LOGISTIC)


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
    "CalibratedClassifierCV": _read_calibrated,
    "BaseLibSVM": _read_support_vectors,
    "KernelRidge": _read_kernel_ridge,
    "QuadraticDiscriminantAnalysis": _read_quadratic_discriminant,
    "GaussianNB": _read_naive_bayes,
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
    """Whether numbers are straight lines, or squares where the layer has squared distances."""
    curvature: Floats
    """As in `Network` (features,)."""


Products = Callable[[Floats], Floats]


def learn_first_layer(prober: Prober, products: Products, offsets: Floats, codes: Floats, squared: bool) -> FirstLayer:
    """Return the tables whose sum is `products(transform) + offsets`; raises `NotCompiledError` if there are none.

    Products are sums over columns, of squares of them if `squared`.
    """
    features = prober.table.schema.features
    probes = [probe_values(feature, codes[:, j]) for j, feature in enumerate(features)]
    seen = prober.outputs_at(list(range(len(features))), probes)
    slack = rounding_of(seen[0], prober.table)
    base = products(prober.outputs_at([0], [prober.row[:1]])[0][:1])[0]
    scale = max(np.abs(products(some)).max() for some in seen) + slack
    bias, curvature = offsets + base, np.zeros(len(features))
    knots, entries, exact = [], [], True
    for j, feature in enumerate(features):
        # Knots are where the column that holds them puts them.
        single = feature.numeric and is_single(prober.table.dtypes[j])
        places: Floats = probes[j].astype(np.float32).astype(np.float64) if single else probes[j]
        values, start = products(seen[j]), base
        if squared:
            # Entries are measured from the largest, so that the exponential of a part of the sum cannot become infinite.
            start = values.max(axis=0)
            bias = bias + (start - base)
        values = values - start
        if feature.numeric:
            part = _Part(prober, j, codes[:, j], products, start, slack * scale, squared)
            places, values, curvature[j], straight = part.table(places, values)
            exact = exact and straight
        knots.append(places)
        entries.append(values)
    layer = FirstLayer(tuple(knots), tuple(entries), bias, exact, curvature)
    expected = products(as_matrix(prober.transform(prober.table.frame(codes)))) + offsets
    _check_layer(layer, prober.table, codes, expected, slack * scale)
    return layer


@dataclass(frozen=True)
class _Part:
    """What one number adds to a layer: `products` beyond those at `start`."""

    prober: Prober
    feature: int
    codes: Floats
    products: Products
    start: Floats
    error: float
    squared: bool

    def table(self, places: Floats, values: Floats) -> tuple[Floats, Floats, float, bool]:
        """Return two knots of a straight line or square, or many of a curve, after that of a missing number; the curvature;
        and whether it is no curve."""
        feature = self.prober.table.schema.features[self.feature]
        numbers = len(places) - feature.nullable
        missing, ends = slice(numbers, None), [0, numbers - 1]
        curvature, off = self._deviation(places[:numbers], values[:numbers])
        if off <= self.error:
            return (
                np.concatenate([places[missing], places[ends]]),
                np.concatenate([values[missing], values[ends]]),
                curvature,
                True,
            )
        if KNOTS * values.shape[1] > MOST_CELLS:
            raise NotCompiledError("models.compile_size", received=(KNOTS, values.shape[1]))
        known = spread(feature, self.codes, KNOTS, KNOTS)
        found = self.products(self.prober.outputs_at([self.feature], [known])[0]) - self.start
        # Beyond its knots a curve stays as it is.
        span = known[-1] - known[0]
        known = np.concatenate([places[missing], [known[0] - span], known, [known[-1] + span]])
        return known, np.concatenate([values[missing], found[:1], found, found[-1:]]), 0.0, False

    def _deviation(self, places: Floats, values: Floats) -> tuple[float, float]:
        """Return the curvature between the first and the last value, and the largest deviation from it."""
        chord = (places - places[0]) * (places - places[-1])
        share = ((places - places[0]) / (places[-1] - places[0]))[:, None]
        off = values - (values[0] + share * (values[-1] - values[0]))
        middle = np.abs(chord).argmax()
        curvature = float(np.median(off[middle] / chord[middle])) if self.squared and chord[middle] != 0 else 0.0
        return curvature, float(np.abs(off - curvature * chord[:, None]).max())


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
        knots, entries, values = knots[feature.nullable :], entries[feature.nullable :], values[~missing]
        low = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
        share = ((values - knots[low]) / (knots[low + 1] - knots[low]))[:, None]
        bend = layer.curvature[j] * (values - knots[low]) * (values - knots[low + 1])
        found[~missing] += entries[low] + share * (entries[low + 1] - entries[low]) + bend[:, None]
    away = np.abs(found - expected).max(axis=1)
    near = away <= 10 * error if layer.exact else away <= CURVE_SLACK * np.abs(expected).max()
    if not np.isfinite(away).all() or near.mean() < (1.0 if layer.exact else MOST_NEAR):
        raise NotCompiledError("models.compile_mixing")


def network_on_codes(layers: Layers, prober: Prober, outputs: OutputMap, codes: Floats) -> tuple[Network, bool]:
    """Return the same network with its first layer as tables on codes, and whether it is exact."""
    last = layers.weights[-1] @ outputs.matrix, layers.offsets[-1] @ outputs.matrix + outputs.shift
    weights = (*layers.weights[:-1], last[0])
    offsets = (*layers.offsets[:-1], last[1])
    first = learn_first_layer(
        prober, lambda columns: layers.products(columns, weights[0]), offsets[0], codes, layers.gamma > 0
    )
    features = prober.table.schema.features
    network = Network(
        knots=np.concatenate(first.knots),
        entries=np.ascontiguousarray(np.concatenate(first.entries)),
        start=np.cumsum([0, *(len(knots) for knots in first.knots)], dtype=np.int64),
        numeric=np.array([feature.numeric for feature in features]),
        nullable=np.array([feature.numeric and feature.nullable for feature in features]),
        extrapolate=True,
        bias=first.bias,
        curvature=first.curvature,
        activation=layers.activation,
        width=np.array([len(one) for one in offsets[1:]], dtype=np.int64),
        weights=np.concatenate([np.zeros(0), *(one.reshape(-1) for one in weights[1:])]),
        offsets=np.concatenate([np.zeros(0), *offsets[1:]]),
    )
    return network, first.exact
