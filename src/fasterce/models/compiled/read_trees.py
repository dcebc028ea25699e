"""Tree ensembles of scikit-learn, XGBoost, LightGBM and CatBoost as arrays, splitting the columns that the last step gets."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from fasterce.models.compiled.columns import SINGLE_MAX, single_threshold
from fasterce.models.compiled.form import DECISION, LOGIT, NUMBER, PROBABILITY, SIGMOIDS, SOFTMAX, UNNORMALISED, Form
from fasterce.models.compiled.model import NotCompiledError
from fasterce.typing import Floats, Floats32, Indices, Mask

LEAF = -1
NO_SET = -1
# Bits of LightGBM's `decision_type`.
CATEGORICAL, DEFAULT_LEFT, MISSING_SHIFT = 1, 2, 2
MISSING_ZERO = 1
# LightGBM reads numbers no larger than this as zero.
ZERO = float(np.float32(1e-35))
# Objectives whose raw score is the prediction.
XGBOOST_NUMBERS = (
    "reg:squarederror",
    "reg:squaredlogerror",
    "reg:pseudohubererror",
    "reg:absoluteerror",
    "reg:quantileerror",
    "reg:linear",
)
CATBOOST_NUMBERS = ("RMSE", "MAE", "Quantile", "Huber", "MAPE", "LogCosh", "Expectile", "Lq")
LIGHTGBM_NUMBERS = ("regression", "regression_l1", "huber", "fair", "quantile", "mape")


@dataclass(frozen=True)
class ModelTrees:
    """Trees that split columns. Nodes of all trees stand one after another, parents before their children."""

    root: Indices
    """First node of each tree (trees,)."""
    column: Indices
    """Column a node splits, `LEAF` for a leaf (nodes,)."""
    threshold: Floats
    """Values up to this go left (nodes,)."""
    left: Indices
    right: Indices
    missing_left: Mask
    """Whether NaN, and a negative position of a category, goes left (nodes,)."""
    value: Floats
    """Raw outputs of a leaf (nodes, raw outputs)."""
    base: Floats
    """Raw outputs before any tree (raw outputs,)."""
    sets: Mask
    """Which positions of a category go left (sets, positions); positions beyond go as the last one."""
    set_of: Indices
    """The set a node splits by, `NO_SET` if by threshold (nodes,)."""
    zero_missing: Mask
    """Nodes at which zero counts as missing (nodes,)."""
    form: Form
    single: bool = False
    """Whether the model sums in single precision."""


@dataclass
class TreeNodes:
    """Nodes of one tree, children by position in the tree."""

    column: NDArray[np.integer]
    threshold: Floats | Floats32
    left: NDArray[np.integer]
    right: NDArray[np.integer]
    missing_left: Mask
    value: Floats


def join_trees(trees: Sequence[TreeNodes], base: Floats, form: Form, **options: Any) -> ModelTrees:
    sizes = np.array([len(tree.left) for tree in trees], dtype=np.intp)
    root = np.cumsum(sizes) - sizes
    shift = np.repeat(root, sizes)
    left, right, column, threshold, missing_left, value = (
        np.concatenate([getattr(tree, name) for tree in trees])
        for name in ("left", "right", "column", "threshold", "missing_left", "value")
    )
    leaf = left < 0
    more = {
        "sets": np.zeros((0, 1), dtype=bool),
        "set_of": np.full(len(left), NO_SET, dtype=np.intp),
        "zero_missing": np.zeros(len(left), dtype=bool),
    } | options
    return ModelTrees(
        root=root,
        column=np.where(leaf, LEAF, column).astype(np.intp),
        threshold=threshold.astype(np.float64),
        left=np.where(leaf, 0, left + shift).astype(np.intp),
        right=np.where(leaf, 0, right + shift).astype(np.intp),
        missing_left=missing_left.astype(bool),
        value=np.where(leaf[:, None], value, 0.0),
        base=base,
        form=form,
        **more,
    )


def _one_column(values: Floats, k: int, outputs: int) -> Floats:
    found = np.zeros((len(values), outputs))
    found[:, k] = values
    return found


def read_trees(model: object) -> ModelTrees | None:
    """Return the trees of a fitted model, None if it has none; raises `NotCompiledError`."""
    for kind in type(model).__mro__:
        reader = READERS.get((kind.__module__.split(".")[0], kind.__name__))
        if reader is not None:
            return reader(model)
    return None


# -- scikit-learn ----------------------------------------------------------------------------------------------------------


def _sklearn_nodes(tree: Any, value: Floats) -> TreeNodes:
    left, threshold = tree.children_left, single_threshold(tree.threshold, strict=False)
    missing = getattr(tree, "missing_go_to_left", None)
    missing = np.zeros(len(left), dtype=bool) if missing is None or len(missing) == 0 else missing
    return TreeNodes(tree.feature, threshold, left, tree.children_right, missing, value)


def _check_one_target(model: object) -> None:
    if getattr(model, "n_outputs_", 1) != 1:
        raise NotCompiledError("models.compile_structure", received="several targets")


def _read_forest(model: Any) -> ModelTrees:
    """Read a decision tree, a random forest or extra trees: leaves hold class shares or means."""
    _check_one_target(model)
    estimators = getattr(model, "estimators_", [model])
    trees = [_sklearn_nodes(one.tree_, one.tree_.value[:, 0, :] / len(estimators)) for one in estimators]
    return join_trees(trees, np.zeros(trees[0].value.shape[1]), PROBABILITY if hasattr(model, "classes_") else NUMBER)


def _read_bagging(model: Any) -> ModelTrees:
    """Read bagged trees or forests, each of which may have been fitted to some columns and to some classes."""
    parts = []
    for one, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        part = _read_part(model, one)
        value = part.value
        if hasattr(model, "classes_"):
            value = np.zeros((len(part.value), len(model.classes_)))
            value[:, np.asarray(one.classes_, dtype=np.intp)] = part.value
        column = np.where(part.column == LEAF, LEAF, np.asarray(columns)[part.column])
        parts.append(replace(part, column=column, value=value, base=np.zeros(value.shape[1])))
    return _mean_of(parts, np.ones(len(parts)))


def _read_part(model: object, one: object) -> ModelTrees:
    """Read one of the models of a mean, whose outputs are probabilities or numbers."""
    part = read_trees(one)
    if part is None or part.form not in (PROBABILITY, NUMBER) or len(part.sets) or part.base.any():
        raise NotCompiledError("models.compile_structure", received=type(model).__name__)
    return part


def _read_vote(model: Any) -> ModelTrees:
    """Read the mean of trees and forests."""
    if getattr(model, "voting", "soft") != "soft":
        raise NotCompiledError("models.compile_structure", received=type(model).__name__)
    weights = model._weights_not_none
    parts = [_read_part(model, one) for one in model.estimators_]
    return _mean_of(parts, np.ones(len(parts)) if weights is None else np.asarray(weights, dtype=np.float64))


def _mean_of(parts: Sequence[ModelTrees], weights: Floats) -> ModelTrees:
    first = np.cumsum([0, *(len(part.column) for part in parts)])
    shares = weights / weights.sum()

    def joined(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    def moved(name: str) -> Any:
        return np.concatenate([getattr(part, name) + first[k] for k, part in enumerate(parts)])

    return replace(
        parts[0],
        root=moved("root"),
        left=moved("left"),
        right=moved("right"),
        column=joined("column"),
        threshold=joined("threshold"),
        missing_left=joined("missing_left"),
        set_of=joined("set_of"),
        zero_missing=joined("zero_missing"),
        value=np.concatenate([share * part.value for share, part in zip(shares, parts, strict=True)]),
    )


def _read_ada_boost(model: Any) -> ModelTrees:
    """Read a weighted vote of decision trees: its decision values are log-odds, or logits."""
    if not all(hasattr(one, "tree_") for one in model.estimators_):
        raise NotCompiledError("models.compile_structure", received=type(model).__name__)
    count = len(model.classes_)
    weights = np.asarray(model.estimator_weights_[: len(model.estimators_)]) / model.estimator_weights_.sum()
    trees = []
    for one, weight in zip(model.estimators_, weights, strict=True):
        label = np.searchsorted(model.classes_, one.classes_)[one.tree_.value[:, 0, :].argmax(axis=1)]
        votes = np.where(label[:, None] == np.arange(count), weight, -weight / (count - 1)) / (count - 1)
        trees.append(_sklearn_nodes(one.tree_, 2 * votes[:, 1:] if count == 2 else votes))
    return join_trees(trees, np.zeros(trees[0].value.shape[1]), LOGIT if count == 2 else SOFTMAX)


def _read_gradient_boosting(model: Any) -> ModelTrees:
    constant = model.init_ == "zero" or type(model.init_).__name__.startswith("Dummy")
    if not constant:
        raise NotCompiledError("models.compile_structure", received="init")
    outputs = model.estimators_.shape[1]
    base = model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32))[0]
    rate, classifier = model.learning_rate, hasattr(model, "classes_")
    # Exponential loss predicts half the log-odds.
    factor = 2.0 if classifier and model.loss == "exponential" else 1.0
    trees = [
        _sklearn_nodes(one.tree_, _one_column(factor * rate * one.tree_.value[:, 0, 0], k, outputs))
        for stage in model.estimators_
        for k, one in enumerate(stage)
    ]
    return join_trees(trees, factor * np.asarray(base, dtype=np.float64), _boosting_form(classifier, outputs))


def _boosting_form(classifier: bool, outputs: int) -> Form:
    if not classifier:
        return NUMBER
    return LOGIT if outputs == 1 else SOFTMAX


def _read_histogram_boosting(model: Any) -> ModelTrees:
    classifier = hasattr(model, "classes_")
    if not classifier and model.loss in ("poisson", "gamma"):
        raise NotCompiledError("models.compile_structure", received=model.loss)
    outputs = model.n_trees_per_iteration_
    stages = [(k, one) for stage in model._predictors for k, one in enumerate(stage)]
    nodes = [one.nodes for _, one in stages]
    trees = [
        TreeNodes(
            rows["feature_idx"],
            rows["num_threshold"],
            np.where(rows["is_leaf"], -1, rows["left"].astype(np.int64)),
            rows["right"].astype(np.int64),
            rows["missing_go_to_left"],
            _one_column(rows["value"], k, outputs),
        )
        for rows, (k, _) in zip(nodes, stages, strict=True)
    ]
    words = [np.asarray(one.raw_left_cat_bitsets) for _, one in stages]
    first = np.cumsum([0, *(len(some) for some in words)])[:-1]
    set_of = [
        np.where(rows["is_categorical"], rows["bitset_idx"] + at, NO_SET) for rows, at in zip(nodes, first, strict=True)
    ]
    base = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1)
    form = _boosting_form(classifier, outputs)
    return join_trees(trees, base, form, sets=_bits(np.concatenate(words)), set_of=np.concatenate(set_of).astype(np.intp))


def _bits(words: object) -> Mask:
    """Return the bits of rows of 32-bit words, and one more that is not set."""
    bits = np.unpackbits(np.ascontiguousarray(words, dtype="<u4").view(np.uint8), axis=1, bitorder="little")
    return np.hstack([bits.astype(bool), np.zeros((len(bits), 1), dtype=bool)])


# -- XGBoost ---------------------------------------------------------------------------------------------------------------


def xgboost_learner(model: Any) -> tuple[Any, dict[str, Any]]:
    """Return the booster of a model and its content."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    return booster, json.loads(bytes(booster.save_raw("json")))["learner"]


def xgboost_form(learner: Mapping[str, Any]) -> tuple[Form, Floats]:
    """Return what the raw outputs of a booster are, and those before any tree."""
    parameters, objective = learner["learner_model_param"], learner["objective"]["name"]
    outputs = max(int(parameters["num_class"]), int(parameters.get("num_target", 1)), 1)
    base = np.array(json.loads(parameters["base_score"]), dtype=np.float32).astype(np.float64) * np.ones(outputs)
    return _xgboost_form(objective, outputs), logit(base) if objective == "binary:logistic" else base


def _read_xgboost(model: object) -> ModelTrees | None:
    booster, learner = xgboost_learner(model)
    gradient = learner["gradient_booster"]
    if gradient["name"] == "gblinear":
        return None
    weights = gradient.get("weight_drop")
    stored = gradient.get("gbtree", gradient)["model"]
    best = booster.attr("best_iteration")
    count = len(stored["trees"]) if best is None else stored["iteration_indptr"][int(best) + 1]
    form, base = xgboost_form(learner)
    outputs = len(base)
    scale = np.ones(count) if weights is None else np.array(weights)
    trees = [
        _xgboost_nodes(tree, k, outputs, weight)
        for tree, k, weight in zip(stored["trees"][:count], stored["tree_info"], scale, strict=False)
    ]
    sets, set_of = _xgboost_sets(stored["trees"][:count])
    return join_trees(trees, base, form, sets=sets, set_of=set_of, single=True)


def _xgboost_form(objective: str, outputs: int) -> Form:
    if objective in ("binary:logistic", "binary:logitraw"):
        return LOGIT
    if objective == "binary:hinge":
        return DECISION
    if objective.startswith("multi:"):
        return SOFTMAX
    if objective in XGBOOST_NUMBERS and outputs == 1:
        return NUMBER
    raise NotCompiledError("models.compile_structure", received=objective)


def _xgboost_nodes(tree: Mapping[str, Any], k: int, outputs: int, weight: float) -> TreeNodes:
    if tree["tree_param"]["size_leaf_vector"] not in ("0", "1"):
        raise NotCompiledError("models.compile_structure", received="multi_output_tree")
    # A leaf's value stands where other nodes have their threshold.
    values = np.array(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    left = np.array(tree["left_children"])
    return TreeNodes(
        np.array(tree["split_indices"]),
        single_threshold(values, strict=True),
        left,
        np.array(tree["right_children"]),
        np.array(tree["default_left"], dtype=bool),
        _one_column(values * weight, k, outputs),
    )


def _xgboost_sets(trees: Sequence[Mapping[str, Any]]) -> tuple[Mask, Indices]:
    """Return the categories that go left: XGBoost stores those that go right."""
    positions = max((max(tree["categories"], default=0) for tree in trees), default=0)
    sets: list[Mask] = [np.zeros((0, positions + 2), dtype=bool)]
    set_of = []
    count = 0
    for tree in trees:
        places = np.full(len(tree["left_children"]), NO_SET, dtype=np.intp)
        nodes, sizes = tree["categories_nodes"], tree["categories_sizes"]
        if nodes:
            going_left = np.ones((len(nodes), positions + 2), dtype=bool)
            going_left[np.repeat(np.arange(len(nodes)), sizes), tree["categories"]] = False
            places[nodes] = count + np.arange(len(nodes))
            sets.append(going_left)
            count += len(nodes)
        set_of.append(places)
    return np.concatenate(sets), np.concatenate(set_of)


# -- LightGBM --------------------------------------------------------------------------------------------------------------


def _read_lightgbm(model: Any) -> ModelTrees:
    booster = getattr(model, "booster_", model)
    head, *blocks = booster.model_to_string(importance_type="split").split("\nTree=")
    header = dict(line.split("=", 1) for line in head.splitlines() if "=" in line)
    objective, *options = header.get("objective", "custom").split(" ")
    outputs = int(header["num_tree_per_iteration"])
    form, factor = _lightgbm_form(objective, options, normalised=booster is model)
    if "average_output" in head.splitlines():
        factor /= max(len(blocks) // outputs, 1)
    sets: list[Floats] = []
    trees, set_of, zero = [], [], []
    for k, block in enumerate(blocks):
        about = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        nodes, decision = _lightgbm_nodes(about, k % outputs, outputs, factor)
        trees.append(nodes)
        places, found = _lightgbm_sets(about, nodes, decision)
        set_of.append(np.where(places >= 0, places + len(sets), NO_SET))
        sets += found
        zero.append((((decision >> MISSING_SHIFT) & 3) == MISSING_ZERO) & (decision & CATEGORICAL == 0))
    width = max((len(words) for words in sets), default=1)
    words = np.zeros((len(sets), width), dtype=np.uint32)
    for row, some in zip(words, sets, strict=True):
        row[: len(some)] = some
    more = {"sets": _bits(words), "set_of": np.concatenate(set_of), "zero_missing": np.concatenate(zero)}
    return join_trees(trees, np.zeros(outputs), form, **more)


def _lightgbm_form(objective: str, options: Sequence[str], normalised: bool) -> tuple[Form, float]:
    """Return the form and the factor of raw scores; estimators do not normalise one-against-all probabilities."""
    sigmoid = next((float(option.split(":")[1]) for option in options if option.startswith("sigmoid:")), 1.0)
    if objective == "binary":
        return LOGIT, sigmoid
    if objective == "multiclass":
        return SOFTMAX, 1.0
    if objective == "multiclassova":
        return (SIGMOIDS if normalised else UNNORMALISED), sigmoid
    if objective in LIGHTGBM_NUMBERS and "sqrt" not in options:
        return NUMBER, 1.0
    raise NotCompiledError("models.compile_structure", received=objective)


def _lightgbm_nodes(about: Mapping[str, str], k: int, outputs: int, factor: float) -> tuple[TreeNodes, Indices]:
    """Return the splits, then the leaves, of a tree, and the decision type of each node."""
    if about.get("is_linear", "0") != "0":
        raise NotCompiledError("models.compile_structure", received="linear_tree")
    leaves = _numbers(about, "leaf_value")
    splits = int(about["num_leaves"]) - 1
    kept = slice(0, splits)
    decision = np.concatenate([_numbers(about, "decision_type")[kept], np.zeros(len(leaves))]).astype(np.intp)
    # Leaf k is written as child -k - 1.
    left, right = (_children(_numbers(about, name)[kept], splits) for name in ("left_child", "right_child"))
    threshold = _numbers(about, "threshold")[kept]
    threshold = np.where(np.abs(threshold) <= ZERO, np.where(threshold < 0, np.nextafter(-ZERO, -1), ZERO), threshold)
    kind = (decision[kept] >> MISSING_SHIFT) & 3
    default_left = (decision[kept] & DEFAULT_LEFT) > 0
    # Where NaN has no branch of its own, it is compared as zero; in a category split it goes right.
    missing_left = np.where(kind == 0, threshold >= 0, default_left) & (decision[kept] & CATEGORICAL == 0)
    none = np.zeros(len(leaves))
    nodes = TreeNodes(
        np.concatenate([_numbers(about, "split_feature")[kept], none]),
        np.concatenate([threshold, none]),
        np.concatenate([left, none - 1]).astype(np.intp),
        np.concatenate([right, none - 1]).astype(np.intp),
        np.concatenate([missing_left, none]).astype(bool),
        _one_column(np.concatenate([np.zeros(splits), factor * leaves]), k, outputs),
    )
    return nodes, decision


def _numbers(about: Mapping[str, str], name: str) -> Floats:
    return np.array(about.get(name, "").split(), dtype=np.float64)


def _children(written: Floats, splits: int) -> Floats:
    return np.where(written < 0, splits - written - 1, written)


def _lightgbm_sets(about: Mapping[str, str], nodes: TreeNodes, decision: Indices) -> tuple[Indices, list[Floats]]:
    places = np.where(decision & CATEGORICAL > 0, nodes.threshold, NO_SET).astype(np.intp)
    if int(about.get("num_cat", "0")) == 0:
        return np.full(len(places), NO_SET, dtype=np.intp), []
    bounds, words = _numbers(about, "cat_boundaries").astype(np.intp), _numbers(about, "cat_threshold")
    return places, [words[a:b] for a, b in pairwise(bounds)]


# -- CatBoost --------------------------------------------------------------------------------------------------------------


def _read_catboost(model: Any) -> ModelTrees:
    """Read trees that ask the same at every node of a level. Statistics of categories depend on several columns."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.json"
        model.save_model(str(file), format="json")
        stored = json.loads(file.read_text(encoding="utf-8"))
    objective = stored["model_info"]["params"]["loss_function"]["type"]
    scale, bias = stored["scale_and_bias"]
    base = np.atleast_1d(np.asarray(bias, dtype=np.float64))
    if "oblivious_trees" not in stored or stored["features_info"].get("categorical_features"):
        raise NotCompiledError("models.compile_structure", received="categories or grow_policy")
    columns = stored["features_info"]["float_features"]
    trees = [_catboost_nodes(tree, columns, len(base), scale) for tree in stored["oblivious_trees"]]
    return join_trees(trees, base, _catboost_form(objective))


def _catboost_form(objective: str) -> Form:
    if objective in ("Logloss", "CrossEntropy"):
        return LOGIT
    if objective == "MultiClass":
        return SOFTMAX
    if objective in CATBOOST_NUMBERS:
        return NUMBER
    raise NotCompiledError("models.compile_structure", received=objective)


def _catboost_nodes(tree: Mapping[str, Any], columns: Sequence[Mapping[str, Any]], outputs: int, scale: float) -> TreeNodes:
    """Return the nodes level by level. The last split is the first of the path: it is the highest bit of a leaf's number."""
    splits = (tree["splits"] or [])[::-1]
    if any(split["split_type"] != "FloatFeature" for split in splits):
        raise NotCompiledError("models.compile_structure", received="categories")
    about = [columns[split["float_feature_index"]] for split in splits]
    count, leaves = 2 ** len(splits) - 1, 2 ** len(splits)
    level = np.repeat(np.arange(len(splits)), 2 ** np.arange(len(splits)))
    ends = np.zeros(leaves)
    border = np.array([split["border"] for split in splits], dtype=np.float64)
    # A border at the end of all numbers tells numbers from missing values.
    threshold = np.where(np.abs(border) >= SINGLE_MAX, np.copysign(np.inf, border), single_threshold(border, strict=False))
    column = np.array([one["flat_feature_index"] for one in about], dtype=np.intp)
    missing_left = np.array([one["nan_value_treatment"] != "AsTrue" for one in about], dtype=bool)
    value = np.asarray(tree["leaf_values"], dtype=np.float64).reshape(leaves, outputs)
    return TreeNodes(
        np.concatenate([column[level], ends]).astype(np.intp),
        np.concatenate([threshold[level], ends]),
        np.concatenate([2 * np.arange(count) + 1, ends - 1]).astype(np.intp),
        np.concatenate([2 * np.arange(count) + 2, ends]).astype(np.intp),
        np.concatenate([missing_left[level], ends]).astype(bool),
        np.concatenate([np.zeros((count, outputs)), scale * value]),
    )


READERS: dict[tuple[str, str], Callable[[Any], ModelTrees | None]] = {
    ("sklearn", "BaseDecisionTree"): _read_forest,
    ("sklearn", "ForestClassifier"): _read_forest,
    ("sklearn", "ForestRegressor"): _read_forest,
    ("sklearn", "BaggingClassifier"): _read_bagging,
    ("sklearn", "BaggingRegressor"): _read_bagging,
    ("sklearn", "VotingClassifier"): _read_vote,
    ("sklearn", "VotingRegressor"): _read_vote,
    ("sklearn", "AdaBoostClassifier"): _read_ada_boost,
    ("sklearn", "BaseGradientBoosting"): _read_gradient_boosting,
    ("sklearn", "BaseHistGradientBoosting"): _read_histogram_boosting,
    ("xgboost", "XGBModel"): _read_xgboost,
    ("xgboost", "Booster"): _read_xgboost,
    ("lightgbm", "LGBMModel"): _read_lightgbm,
    ("lightgbm", "Booster"): _read_lightgbm,
    ("catboost", "CatBoost"): _read_catboost,
}
