"""Checks XGBoost's JSON and UBJSON before XGBoost reads it, since it trusts the sizes in a file."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.errors import problem_of
from fasterce.models.files.kinds import UnsoundError
from fasterce.models.files.ubjson import read

Whole = NDArray[np.int64]

MOST_CLASSES = 10_000
MOST_FEATURES = 1_000_000
EVERY_NODE = ("left_children", "right_children", "split_indices", "split_conditions", "default_left", "base_weights")
SOMETIMES = ("split_type", "parents", "loss_changes", "sum_hessian")
CATEGORIES = ("categories", "categories_nodes", "categories_segments", "categories_sizes")
MOST_CATEGORIES = 1 << 24


def check(content: bytes) -> None:
    """Raise `UnsoundError` unless the structure of the trees is valid."""
    is_json = content[1:].lstrip()[:1] in (b'"', b"}")
    try:
        model = json.loads(content) if is_json else read(content)
        require(isinstance(model, dict) and "learner" in model, "learner")
        _check_learner(model["learner"])
    except (LookupError, TypeError, AttributeError, ArithmeticError, ValueError, RecursionError) as error:
        raise UnsoundError(problem_of(error)) from error


def _check_learner(learner: dict[str, Any]) -> None:
    about = learner["learner_model_param"]
    features = _within(about["num_feature"], 0, MOST_FEATURES, "num_feature")
    groups = max(1, _within(about["num_class"], 0, MOST_CLASSES, "num_class"))
    groups *= max(1, _within(about.get("num_target", 1), 0, MOST_CLASSES, "num_target"))
    for name in ("feature_names", "feature_types"):
        require(len(learner.get(name, ())) in (0, features), name)
    booster = learner["gradient_booster"]
    if booster["name"] == "gblinear":
        require(len(booster["model"]["weights"]) == (features + 1) * groups, "weights")
        return
    stored = booster.get("gbtree", booster)["model"]
    _check_forest(stored, features, groups)
    if booster["name"] == "dart":
        require(len(booster["weight_drop"]) == len(stored["trees"]), "weight_drop")


def _check_forest(stored: dict[str, Any], features: int, groups: int) -> None:
    trees = stored["trees"]
    count = _within(stored["gbtree_model_param"]["num_trees"], 0, len(trees), "num_trees")
    require(count == len(trees) == len(stored["tree_info"]), "num_trees")
    _in_range(_whole(stored["tree_info"]), 0, groups, "tree_info")
    if "iteration_indptr" in stored:
        rounds = _whole(stored["iteration_indptr"])
        require(len(rounds) > 0 and rounds[0] == 0 and rounds[-1] == count, "iteration_indptr")
        require(bool((np.diff(rounds) >= 0).all()), "iteration_indptr")
    for place, tree in enumerate(trees):
        require(_whole([tree["id"]])[0] == place, "id", place)
        _check_tree(tree, features, place)
    _check_stored_categories(stored.get("cats", {}), features)


def _check_tree(tree: dict[str, Any], features: int, place: int) -> None:
    nodes = _within(tree["tree_param"]["num_nodes"], 1, len(tree["left_children"]), "num_nodes", place)
    _within(tree["tree_param"]["num_feature"], features, features, "num_feature", place)
    require(int(tree["tree_param"].get("size_leaf_vector", 1)) in (0, 1), "size_leaf_vector", place)
    for name in (*EVERY_NODE, *(name for name in SOMETIMES if name in tree)):
        require(len(tree[name]) == nodes, name, place)
    left, right = _whole(tree["left_children"]), _whole(tree["right_children"])
    leaf = left == -1
    require(bool((leaf == (right == -1)).all()), "right_children", place)
    children = np.concatenate([left[~leaf], right[~leaf]])
    _in_range(children, 1, nodes, "left_children", place)
    # No node is a child twice and the root never is: there are no cycles.
    require(len(np.unique(children)) == len(children), "left_children", place)
    _in_range(_whole(tree["split_indices"])[~leaf], 0, features, "split_indices", place)
    if "split_type" in tree:
        _in_range(_whole(tree["split_type"]), 0, 2, "split_type", place)
    if "parents" in tree:
        require(bool((_whole(tree["parents"])[children] == np.tile(np.flatnonzero(~leaf), 2)).all()), "parents", place)
    _check_tree_categories(tree, nodes, ~leaf, place)


def _check_tree_categories(tree: dict[str, object], nodes: int, splits: NDArray[np.bool_], place: int) -> None:
    values, at, starts, sizes = (_whole(tree.get(name, [])) for name in CATEGORIES)
    require(len(at) == len(starts) == len(sizes), "categories", place)
    _in_range(at, 0, nodes, "categories_nodes", place)
    _in_range(values, 0, MOST_CATEGORIES, "categories", place)
    require(bool((starts >= 0).all() and (sizes >= 0).all()), "categories_segments", place)
    require(bool(((starts <= len(values)) & (sizes <= len(values) - starts)).all()), "categories_sizes", place)
    require(bool((np.diff(at) > 0).all()), "categories_nodes", place)
    by_category = np.flatnonzero((_whole(tree["split_type"]) == 1) & splits) if "split_type" in tree else at[:0]
    require(bool(np.isin(by_category, at).all()), "split_type", place)


def _check_stored_categories(cats: dict[str, Any], features: int) -> None:
    kept = cats.get("enc", [])
    require(len(kept) in (0, features), "cats")
    segments = _whole(cats.get("feature_segments", []))
    require(len(segments) in (0, features + 1), "feature_segments")
    if len(segments):
        sizes = np.array([_count(stored) for stored in kept] or [0] * features)
        require(bool((np.diff(segments) == sizes).all()) and segments[0] == 0, "feature_segments")


def _count(stored: dict[str, Any]) -> int:
    if "offsets" not in stored:
        return len(stored["values"])
    offsets = _whole(stored["offsets"])
    if len(offsets) == 0:
        require(len(stored["values"]) == 0, "offsets")
        return 0
    require(offsets[0] == 0 and offsets[-1] == len(stored["values"]), "offsets")
    require(bool((np.diff(offsets) >= 0).all()), "offsets")
    return len(offsets) - 1


def _within(value: Any, low: int, high: int, field: str, tree: int | None = None) -> int:
    number = int(value)
    require(low <= number <= high, field, tree)
    return number


def _whole(values: object) -> Whole:
    found = np.asarray(values)
    if found.size == 0:
        return np.zeros(0, dtype=np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iub":
        raise UnsoundError("models.unsound_not_whole")
    return found.astype(np.int64)


def _in_range(values: Whole, low: int, high: int, field: str, tree: int | None = None) -> None:
    require(bool(((values >= low) & (values < high)).all()), field, tree)


def require(sound: bool, field: str, tree: int | None = None) -> None:
    """Raise unless a field of the file, or of one tree in it, is as its library writes it."""
    if not sound and tree is None:
        raise UnsoundError("models.unsound_field", field=field)
    if not sound:
        raise UnsoundError("models.unsound_tree", field=field, tree=tree)
