"""LightGBM's text, looked through before LightGBM sees it: a truncated file makes it read beyond its memory."""

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.loading.xgboost_file import MOST_FEATURES, UnsoundError, require

Numbers = NDArray[np.float64]

TAIL = re.compile(
    r"end of trees\n\s*(feature_importances:\n([^\n]+=\d+\n)*\s*)?"
    r"parameters:\n(\[[a-z_0-9]+: [^\n]*\]\n)+\s*end of parameters\n\s*(pandas_categorical:(?P<categories>[^\n]*)\s*)?"
)
MOST_CLASSES = 10_000
BY_SPLIT = ("split_feature", "threshold", "decision_type", "left_child", "right_child")
BY_SPLIT_SOMETIMES = ("split_gain", "internal_value", "internal_weight", "internal_count")
CATEGORICAL = 1


def check(content: bytes) -> str:
    """The text, if its trees are trees; otherwise `UnsoundError` with a few words on what is wrong."""
    try:
        text = content.decode("utf-8").replace("\r\n", "\n")
        require("\0" not in text, "a zero byte")
        _check_text(text)
    except (KeyError, ValueError, OverflowError, RecursionError) as error:
        if isinstance(error, UnsoundError):
            raise
        raise UnsoundError(f"{type(error).__name__}: {error}"[:160]) from error
    return text


def _check_text(text: str) -> None:
    head, blank, rest = text.partition("\n\n")
    require(head.startswith("tree\n") and blank != "", "no head")
    about = _lines(head)
    features = int(about["max_feature_idx"]) + 1
    require(0 < features <= MOST_FEATURES, f"{features} features")
    require(len(about["feature_names"].split(" ")) == features, "feature_names of another number of features")
    require(len(about["feature_infos"].split(" ")) == features, "feature_infos of another number of features")
    classes, trees_each = int(about["num_class"]), int(about["num_tree_per_iteration"])
    require(1 <= classes <= MOST_CLASSES and trees_each in (1, classes), f"{classes} classes, {trees_each} trees a round")
    sizes = [int(size) for size in about["tree_sizes"].split()]
    require(len(sizes) % trees_each == 0, f"{len(sizes)} trees, {trees_each} a round")
    _check_trees(rest.encode(), sizes, features)


def _check_trees(rest: bytes, sizes: list[int], features: int) -> None:
    """The sizes the head tells are where LightGBM cuts, so they must be where trees begin."""
    begin = len(rest) - len(rest.lstrip(b"\n"))
    for place, size in enumerate(sizes):
        require(0 < size <= len(rest) - begin, f"tree {place} is cut short")
        tree = rest[begin : begin + size].decode()
        require(tree.startswith(f"Tree={place}\n"), f"tree {place} does not begin where the head says")
        require(tree.count("Tree=") == 1, f"tree {place} does not end where the head says")
        _check_tree(_lines(tree), features, f"tree {place}")
        begin += size
    _check_tail(rest[begin:].lstrip(b"\n").decode())


def _check_tail(tail: str) -> None:
    found = TAIL.fullmatch(tail)
    if found is None:
        raise UnsoundError("it ends too early, or otherwise than LightGBM ends it")
    held = json.loads(found["categories"] or "null")
    require(held is None or (isinstance(held, list) and all(isinstance(each, list) for each in held)), "pandas_categorical")


def _check_tree(tree: Mapping[str, str], features: int, where: str) -> None:
    leaves, categories = int(tree["num_leaves"]), int(tree["num_cat"])
    require(leaves >= 1 and categories >= 0, f"{leaves} leaves in {where}")
    splits = leaves - 1
    values = _numbers(tree["leaf_value"])
    require(len(values) == leaves, f"{len(values)} leaf values for {leaves} leaves in {where}")
    require(int(tree.get("is_linear", 0)) == 0 or "leaf_const" in tree, f"linear leaves in {where}")
    if splits == 0:
        return
    held = {name: _numbers(tree[name]) for name in BY_SPLIT}
    held |= {name: _numbers(tree[name]) for name in BY_SPLIT_SOMETIMES if name in tree}
    for name, numbers in held.items():
        require(len(numbers) == splits, f"{len(numbers)} {name} for {splits} splits in {where}")
    for name in ("leaf_weight", "leaf_count"):
        require(name not in tree or len(_numbers(tree[name])) in (0, leaves), f"{name} in {where}")
    chosen = held["split_feature"]
    require(bool(((chosen >= 0) & (chosen < features)).all()), f"split_feature out of range in {where}")
    _check_children(np.concatenate([held["left_child"], held["right_child"]]), splits, leaves, where)
    _check_categories(tree, held, categories, where)
    if int(tree.get("is_linear", 0)):
        _check_linear(tree, leaves, features, where)


def _check_children(children: Numbers, splits: int, leaves: int, where: str) -> None:
    """Leaf k is written -k-1. Every split but the root and every leaf is somebody's child once: no circles."""
    require(bool((children == np.round(children)).all()), f"children in {where}")
    wanted = np.concatenate([np.arange(1, splits), -np.arange(1, leaves + 1)])
    require(np.array_equal(np.sort(children), np.sort(wanted)), f"children that make no tree in {where}")


def _check_categories(tree: Mapping[str, str], held: Mapping[str, Numbers], count: int, where: str) -> None:
    by_category = (held["decision_type"].astype(np.int64) & CATEGORICAL) == CATEGORICAL
    chosen = held["threshold"][by_category]
    require(
        bool(((chosen >= 0) & (chosen < count) & (chosen == np.round(chosen))).all()), f"categories out of range in {where}"
    )
    if count == 0:
        return
    bounds, words = _numbers(tree["cat_boundaries"]), _numbers(tree["cat_threshold"])
    require(len(bounds) == count + 1 and bounds[0] == 0 and bounds[-1] == len(words), f"cat_boundaries in {where}")
    require(bool((np.diff(bounds) >= 0).all()), f"cat_boundaries out of order in {where}")


def _check_linear(tree: Mapping[str, str], leaves: int, features: int, where: str) -> None:
    counts = _numbers(tree["num_features"])
    require(len(counts) == leaves == len(_numbers(tree["leaf_const"])), f"linear leaves in {where}")
    used, weights = _numbers(tree.get("leaf_features", "")), _numbers(tree.get("leaf_coeff", ""))
    require(bool((counts >= 0).all()) and len(used) == len(weights) == counts.sum(), f"linear leaves in {where}")
    require(bool(((used >= 0) & (used < features)).all()), f"linear leaves in {where}")


def _lines(text: str) -> dict[str, Any]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _numbers(text: str) -> Numbers:
    return np.array(text.split(), dtype=np.float64)
