"""Checks LightGBM's text before LightGBM reads it: a truncated file makes it read beyond its memory."""

import json
import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fasterce.errors import problem_of
from fasterce.models.files.kinds import UnsoundError
from fasterce.models.files.xgboost_file import MOST_CLASSES, MOST_FEATURES, require

Numbers = NDArray[np.float64]

TAIL = re.compile(
    r"end of trees\n\s*(feature_importances:\n([^\n]+=\d+\n)*\s*)?"
    r"parameters:\n(\[[a-z_0-9]+: [^\n]*\]\n)+\s*end of parameters\n\s*(pandas_categorical:(?P<categories>[^\n]*)\s*)?"
)
BY_SPLIT = ("split_feature", "threshold", "decision_type", "left_child", "right_child")
BY_SPLIT_SOMETIMES = ("split_gain", "internal_value", "internal_weight", "internal_count")
CATEGORICAL = 1


def check(content: bytes) -> str:
    """Return the text if the structure of its trees is valid; otherwise raise `UnsoundError`."""
    try:
        text = content.decode("utf-8").replace("\r\n", "\n")
        require("\0" not in text, "text")
        _check_text(text)
    except (KeyError, ValueError, OverflowError, RecursionError) as error:
        raise UnsoundError(problem_of(error)) from error
    return text


def _check_text(text: str) -> None:
    head, blank, rest = text.partition("\n\n")
    require(head.startswith("tree\n") and blank != "", "tree")
    about = _lines(head)
    features = int(about["max_feature_idx"]) + 1
    require(0 < features <= MOST_FEATURES, "max_feature_idx")
    require(len(about["feature_names"].split(" ")) == features, "feature_names")
    require(len(about["feature_infos"].split(" ")) == features, "feature_infos")
    classes, trees_each = int(about["num_class"]), int(about["num_tree_per_iteration"])
    require(1 <= classes <= MOST_CLASSES and trees_each in (1, classes), "num_tree_per_iteration")
    sizes = [int(size) for size in about["tree_sizes"].split()]
    require(len(sizes) % trees_each == 0, "tree_sizes")
    _check_trees(rest.encode(), sizes, features)


def _check_trees(rest: bytes, sizes: list[int], features: int) -> None:
    """Check that trees begin where the sizes in the head say, which is where LightGBM splits the text."""
    begin = len(rest) - len(rest.lstrip(b"\n"))
    for place, size in enumerate(sizes):
        require(0 < size <= len(rest) - begin, "tree_sizes", place)
        tree = rest[begin : begin + size].decode()
        require(tree.startswith(f"Tree={place}\n") and tree.count("Tree=") == 1, "Tree", place)
        _check_tree(_lines(tree), features, place)
        begin += size
    _check_tail(rest[begin:].lstrip(b"\n").decode())


def _check_tail(tail: str) -> None:
    found = TAIL.fullmatch(tail)
    if found is None:
        raise UnsoundError("models.unsound_end")
    stored = json.loads(found["categories"] or "null")
    listed = isinstance(stored, list) and all(isinstance(each, list) for each in stored)
    require(stored is None or listed, "pandas_categorical")


def _check_tree(tree: Mapping[str, str], features: int, place: int) -> None:
    leaves, categories = int(tree["num_leaves"]), int(tree["num_cat"])
    require(leaves >= 1 and categories >= 0, "num_leaves", place)
    splits = leaves - 1
    values = _numbers(tree["leaf_value"])
    require(len(values) == leaves, "leaf_value", place)
    require(int(tree.get("is_linear", 0)) == 0 or "leaf_const" in tree, "leaf_const", place)
    if splits == 0:
        return
    stored = {name: _numbers(tree[name]) for name in BY_SPLIT}
    stored |= {name: _numbers(tree[name]) for name in BY_SPLIT_SOMETIMES if name in tree}
    for name, numbers in stored.items():
        require(len(numbers) == splits, name, place)
    for name in ("leaf_weight", "leaf_count"):
        require(name not in tree or len(_numbers(tree[name])) in (0, leaves), name, place)
    chosen = stored["split_feature"]
    require(bool(((chosen >= 0) & (chosen < features)).all()), "split_feature", place)
    _check_children(np.concatenate([stored["left_child"], stored["right_child"]]), splits, leaves, place)
    _check_categories(tree, stored, categories, place)
    if int(tree.get("is_linear", 0)):
        _check_linear(tree, leaves, features, place)


def _check_children(children: Numbers, splits: int, leaves: int, place: int) -> None:
    """Check that every split but the root and every leaf (leaf k is written -k-1) is a child once: no cycles."""
    require(bool((children == np.round(children)).all()), "left_child", place)
    wanted = np.concatenate([np.arange(1, splits), -np.arange(1, leaves + 1)])
    require(np.array_equal(np.sort(children), np.sort(wanted)), "left_child", place)


def _check_categories(tree: Mapping[str, str], stored: Mapping[str, Numbers], count: int, place: int) -> None:
    by_category = (stored["decision_type"].astype(np.int64) & CATEGORICAL) == CATEGORICAL
    chosen = stored["threshold"][by_category]
    require(bool(((chosen >= 0) & (chosen < count) & (chosen == np.round(chosen))).all()), "threshold", place)
    if count == 0:
        return
    bounds, words = _numbers(tree["cat_boundaries"]), _numbers(tree["cat_threshold"])
    require(len(bounds) == count + 1 and bounds[0] == 0 and bounds[-1] == len(words), "cat_boundaries", place)
    require(bool((np.diff(bounds) >= 0).all()), "cat_boundaries", place)


def _check_linear(tree: Mapping[str, str], leaves: int, features: int, place: int) -> None:
    counts = _numbers(tree["num_features"])
    require(len(counts) == leaves == len(_numbers(tree["leaf_const"])), "leaf_features", place)
    used, weights = _numbers(tree.get("leaf_features", "")), _numbers(tree.get("leaf_coeff", ""))
    require(bool((counts >= 0).all()) and len(used) == len(weights) == counts.sum(), "leaf_features", place)
    require(bool(((used >= 0) & (used < features)).all()), "leaf_features", place)


def _lines(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _numbers(text: str) -> Numbers:
    return np.array(text.split(), dtype=np.float64)
