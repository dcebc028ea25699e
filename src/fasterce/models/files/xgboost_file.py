"""XGBoost's JSON and UBJSON, looked through before XGBoost sees it: it trusts the numbers in a file with its memory."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.loading.ubjson import NotUbjsonError, read

Whole = NDArray[np.int64]

MOST_CLASSES = 10_000
MOST_FEATURES = 1_000_000
EVERY_NODE = ("left_children", "right_children", "split_indices", "split_conditions", "default_left", "base_weights")
SOMETIMES = ("split_type", "parents", "loss_changes", "sum_hessian")
CATEGORIES = ("categories", "categories_nodes", "categories_segments", "categories_sizes")
MOST_CATEGORIES = 1 << 24


class UnsoundError(ValueError):
    """The file is not a model XGBoost can have written."""


def check(content: bytes) -> None:
    """Raise `UnsoundError` with a few words on what is wrong; the trees must be trees."""
    try:
        model = json.loads(content) if _is_json(content) else read(content)
    except (NotUbjsonError, ValueError, RecursionError) as error:
        raise UnsoundError(f"{type(error).__name__}: {error}"[:160]) from error
    require(isinstance(model, dict) and "learner" in model, "it has no 'learner', so XGBoost did not write it")
    try:
        _check_learner(model["learner"])
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise UnsoundError(f"{type(error).__name__}: {error}"[:160]) from error


def _is_json(content: bytes) -> bool:
    return content[1:].lstrip()[:1] in (b'"', b"}")


def _check_learner(learner: dict[str, Any]) -> None:
    about = learner["learner_model_param"]
    features = _within(about["num_feature"], 0, MOST_FEATURES, "num_feature")
    groups = max(1, _within(about["num_class"], 0, MOST_CLASSES, "num_class"))
    groups *= max(1, _within(about.get("num_target", 1), 0, MOST_CLASSES, "num_target"))
    for name in ("feature_names", "feature_types"):
        require(len(learner.get(name, ())) in (0, features), f"{len(learner.get(name, ()))} {name} for {features} features")
    booster = learner["gradient_booster"]
    if booster["name"] == "gblinear":
        require(len(booster["model"]["weights"]) == (features + 1) * groups, "the wrong number of weights")
        return
    held = booster.get("gbtree", booster)["model"]
    _check_forest(held, features, groups)
    if booster["name"] == "dart":
        require(len(booster["weight_drop"]) == len(held["trees"]), "the wrong number of weights of trees")


def _check_forest(held: dict[str, Any], features: int, groups: int) -> None:
    trees = held["trees"]
    count = _within(held["gbtree_model_param"]["num_trees"], 0, len(trees), "num_trees")
    require(count == len(trees) == len(held["tree_info"]), f"{len(trees)} trees where {count} were to come")
    _in_range(_whole(held["tree_info"]), 0, groups, "tree_info")
    if "iteration_indptr" in held:
        rounds = _whole(held["iteration_indptr"])
        require(len(rounds) > 0 and rounds[0] == 0 and rounds[-1] == count, "rounds that do not hold all trees")
        require(bool((np.diff(rounds) >= 0).all()), "rounds out of order")
    for place, tree in enumerate(trees):
        require(_whole([tree["id"]])[0] == place, f"tree {place} out of order")
        _check_tree(tree, features, place)
    _check_stored_categories(held.get("cats", {}), features)


def _check_tree(tree: dict[str, Any], features: int, place: int) -> None:
    where = f"tree {place}"
    nodes = _within(tree["tree_param"]["num_nodes"], 1, len(tree["left_children"]), f"num_nodes of {where}")
    require(_within(tree["tree_param"]["num_feature"], 0, features, f"num_feature of {where}") == features, where)
    require(int(tree["tree_param"].get("size_leaf_vector", 1)) in (0, 1), f"{where} with several answers a leaf")
    for name in (*EVERY_NODE, *(name for name in SOMETIMES if name in tree)):
        require(len(tree[name]) == nodes, f"{len(tree[name])} {name} for {nodes} nodes in {where}")
    left, right = _whole(tree["left_children"]), _whole(tree["right_children"])
    leaf = left == -1
    require(bool((leaf == (right == -1)).all()), f"a node with one child in {where}")
    children = np.concatenate([left[~leaf], right[~leaf]])
    _in_range(children, 1, nodes, f"children in {where}")
    # Nobody is a child twice and the root never: no walk from the root can go round in circles.
    require(len(np.unique(children)) == len(children), f"a node with two parents in {where}")
    _in_range(_whole(tree["split_indices"])[~leaf], 0, features, f"split_indices in {where}")
    if "split_type" in tree:
        _in_range(_whole(tree["split_type"]), 0, 2, f"split_type in {where}")
    if "parents" in tree:
        known = _whole(tree["parents"])
        require(bool((known[left[~leaf]] == np.flatnonzero(~leaf)).all()), f"parents that have other children in {where}")
        require(bool((known[right[~leaf]] == np.flatnonzero(~leaf)).all()), f"parents that have other children in {where}")
    _check_tree_categories(tree, nodes, ~leaf, where)


def _check_tree_categories(tree: dict[str, Any], nodes: int, splits: NDArray[np.bool_], where: str) -> None:
    values, at, starts, sizes = (_whole(tree.get(name, [])) for name in CATEGORIES)
    require(len(at) == len(starts) == len(sizes), f"categories that do not fit in {where}")
    _in_range(at, 0, nodes, f"categories_nodes in {where}")
    _in_range(values, 0, MOST_CATEGORIES, f"categories in {where}")
    require(bool((starts >= 0).all() and (sizes >= 0).all()), f"categories_segments in {where}")
    require(
        bool((starts <= len(values)).all() and (sizes <= len(values) - starts).all()),
        f"categories beyond the last in {where}",
    )
    require(bool((np.diff(at) > 0).all()), f"categories_nodes out of order in {where}")
    by_category = np.flatnonzero((_whole(tree["split_type"]) == 1) & splits) if "split_type" in tree else at[:0]
    require(bool(np.isin(by_category, at).all()), f"a split by category without categories in {where}")


def _check_stored_categories(cats: dict[str, Any], features: int) -> None:
    kept = cats.get("enc", [])
    require(len(kept) in (0, features), f"categories of {len(kept)} features, of which there are {features}")
    segments = _whole(cats.get("feature_segments", []))
    require(len(segments) in (0, features + 1), "feature_segments of another number of features")
    if len(segments):
        sizes = np.array([_count(held) for held in kept] or [0] * features)
        require(
            bool((np.diff(segments) == sizes).all()) and segments[0] == 0, "feature_segments that do not fit the categories"
        )


def _count(held: dict[str, Any]) -> int:
    if "offsets" not in held:
        return len(held["values"])
    offsets = _whole(held["offsets"])
    if len(offsets) == 0:
        require(len(held["values"]) == 0, "text without offsets")
        return 0
    require(offsets[0] == 0 and offsets[-1] == len(held["values"]), "offsets beyond the text")
    require(bool((np.diff(offsets) >= 0).all()), "offsets out of order")
    return len(offsets) - 1


def _within(value: Any, low: int, high: int, what: str) -> int:
    number = int(value)
    require(low <= number <= high, f"{what} is {number}")
    return number


def _whole(values: Any) -> Whole:
    found = np.asarray(values)
    if found.size == 0:
        return np.zeros(0, dtype=np.int64)
    require(found.ndim == 1 and found.dtype.kind in "iub", "numbers that are not whole")
    return found.astype(np.int64)


def _in_range(values: Whole, low: int, high: int, what: str) -> None:
    require(bool(((values >= low) & (values < high)).all()), f"{what} out of range")


def require(sound: bool, otherwise: str) -> None:
    if not sound:
        raise UnsoundError(otherwise)
