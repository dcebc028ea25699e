"""Smaller counterfactuals: unneeded changes dropped, needed ones shrunk, validity never lost."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasterce.constraints.compile.domain import MissingValues
from fasterce.data.schema import MISSING
from fasterce.search import refine
from fasterce.search.distance import Distance
from fasterce.search.judge import Judge, Verdict
from fasterce.search.pool import Pool
from fasterce.search.query_targets import Named

ROW = [1.0, 1.0, 1.0, 2.0]


@pytest.fixture(scope="module")
def codec(toys: Any) -> Any:
    return toys.codec(toys.frame())[0]


def gower(codec: Any) -> Distance:
    return Distance.gower(codec.profile.span, codec.numeric)


def shrink_thrice(domain: Any, distance: Distance, lead: Any, pool: Pool, toys: Any, rounds: int = 3) -> Pool:
    judge = Judge(toys.Model(lead), Named(np.ones(len(domain.base), dtype=np.intp)), True)
    for _ in range(rounds):
        asked = refine.bracket(pool, domain, distance)
        (verdict,) = judge.judge(asked.candidates)
        pool = refine.shrink(pool, asked, verdict, domain, distance)
    return pool


def test_changed_parts_are_padded() -> None:
    base = np.zeros((3, 3))
    parts = refine.changed_parts(
        np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [1.0, 1.0, 1.0]]), np.array([True, True, False]), base
    )
    assert parts.feature.shape == (3, 2)
    np.testing.assert_array_equal(parts.used, [[True, True], [True, False], [False, False]])
    assert parts.feature[0].tolist() == [0, 2]
    assert parts.feature[1, 0] == 1


def test_one_by_one_leaves_out_and_leaves_alone() -> None:
    base = np.zeros((2, 3))
    parts = refine.changed_parts(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), np.array([True, True]), base)
    without, alone = refine.one_by_one(parts, base)
    np.testing.assert_array_equal(without.codes[0], [[0.0, 0.0, 2.0], [1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(alone.codes[0], [[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    np.testing.assert_array_equal(without.open, [[True, True], [False, False]])
    np.testing.assert_array_equal(alone.open, without.open)


def test_nothing_valid_gives_nothing_to_ask() -> None:
    base = np.zeros((2, 3))
    parts = refine.changed_parts(np.ones((2, 3)), np.array([False, False]), base)
    without, alone = refine.one_by_one(parts, base)
    empty = Verdict(np.zeros((2, 0), dtype=bool), np.zeros((2, 0)))
    kept = refine.keep_most_needed(parts, empty, empty, base, np.zeros((2, 3)))
    assert without.codes.shape == alone.codes.shape == kept.codes.shape == (2, 0, 3)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_unneeded_changes_of_a_linear_model_are_dropped(seed: int) -> None:
    """With a linear lead the k most needed changes are those with the largest effect: the smallest set is among them."""
    rng = np.random.default_rng(seed)
    effect = rng.normal(size=6) * 3
    base, codes = np.zeros((1, 6)), np.ones((1, 6))
    threshold = effect.sum() - rng.uniform(0.01, 5)

    def lead(points: np.ndarray) -> np.ndarray:
        return points @ effect - threshold

    if threshold <= 0:
        return
    parts = refine.changed_parts(codes, np.array([True]), base)
    without, alone = refine.one_by_one(parts, base)
    less, only = (Verdict(lead(group.codes) > 0, lead(group.codes)) for group in (without, alone))
    kept = refine.keep_most_needed(parts, less, only, base, np.ones((1, 6)))
    tried = kept.codes[0][kept.open[0]]
    largest_first = np.sort(effect)[::-1].cumsum()
    fewest = int(np.argmax(largest_first > threshold)) + 1
    found = [int(code.sum()) for code in tried if lead(code[None])[0] > 0]
    assert min(found, default=6) == fewest


def test_dear_changes_go_first_when_need_for_the_price_counts() -> None:
    base, codes = np.zeros((1, 3)), np.ones((1, 3))
    parts = refine.changed_parts(codes, np.array([True]), base)
    without = Verdict(np.zeros((1, 3), dtype=bool), np.array([[-1.0, -1.1, -0.1]]))
    alone = Verdict(np.zeros((1, 3), dtype=bool), np.array([[1.0, 1.1, 0.1]]))
    kept = refine.keep_most_needed(parts, without, alone, base, np.array([[0.01, 1.0, 0.5]]))
    tried = [tuple(code) for code in kept.codes[0][kept.open[0]]]
    assert (0.0, 1.0, 0.0) in tried, "the most needed alone"
    assert (1.0, 0.0, 0.0) in tried, "nearly as needed and far cheaper"
    assert (1.0, 1.0, 1.0) not in tried


@settings(max_examples=60, deadline=None)
@given(st.floats(1.5, 9.9), st.integers(0, 2), st.booleans())
def test_shrinking_finds_the_threshold_to_a_500th_of_the_range(toys: Any, threshold: float, which: int, down: bool) -> None:
    codec, _ = toys.codec(toys.frame(60))
    j = [0, 2, 3][which]
    scale = 2.0 if j == 3 else 1.0
    sign, start, end = (-1.0, 10.0, 0.0) if down else (1.0, 0.0, 10.0)
    threshold = 10 - threshold if down else threshold

    def lead(points: np.ndarray) -> np.ndarray:
        return sign * (points[:, j] / scale - threshold)

    row = [1.0, 1.0, 1.0, 2.0]
    row[j] = start * scale
    domain, distance = toys.domain(codec, row), gower(codec)
    codes = np.array([[row]])
    codes[0, 0, j] = end * scale
    pool = Pool.start(codes, np.array([[True]]), domain, distance)
    found = shrink_thrice(domain, distance, lead, pool, toys)
    value = found.codes[0, 0, j] / scale
    assert lead(found.codes[0])[0] > 0
    resolution = 0.5 if j == 3 else 0.01
    assert abs(value - threshold) <= 10 / 500 + resolution
    used_up = found.floor[0, 0, j] == found.codes[0, 0, j]
    assert used_up or lead(found.floor[0])[0] <= 0, "the floor fails, unless no value is left to try"
    np.testing.assert_allclose(found.cost[0, 0], distance.total(found.codes[0, 0], domain.row[0]))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_shrinking_never_makes_a_candidate_invalid_or_more_expensive(toys: Any, seed: int) -> None:
    """Even where the model is no threshold at all but a patchwork."""
    rng = np.random.default_rng(seed)
    codec, codes = toys.codec(toys.frame(60))
    waves, phase = rng.normal(size=(3, 4)) * [1.0, 2.0, 1.0, 0.5], rng.uniform(0, 6, 3)

    def lead(points: np.ndarray) -> np.ndarray:
        return np.sin(points @ waves.T + phase).sum(axis=1) - 0.3

    rows = codes[lead(codes) <= 0][:4]
    pick = codes[lead(codes) > 0]
    if not len(rows) or not len(pick):
        return
    domain, distance = toys.domain(codec, rows), gower(codec)
    candidates = pick[rng.integers(len(pick), size=(len(rows), 3))]
    pool = Pool.start(candidates, np.ones((len(rows), 3), dtype=bool), domain, distance)
    found = shrink_thrice(domain, distance, lead, pool, toys, rounds=5)
    assert (lead(found.codes.reshape(-1, 4)) > 0).all()
    assert domain.contains(found.codes).all()
    assert (found.cost <= pool.cost + 1e-9).all()
    base = domain.base[:, None, :]
    assert (np.abs(found.floor - base) <= np.abs(found.codes - base) + 1e-9).all(), "the floor stays below the change"


def test_a_change_that_cannot_shrink_makes_way_for_the_next(toys: Any, codec: Any) -> None:
    """The bracket of `a` is dearest and used up in one round; `b` gets its turn after it."""
    domain, distance = toys.domain(codec, [0.0, 1.0, 0.0, 2.0]), gower(codec)
    codes = np.array([[[10.0, 1.0, 8.0, 2.0]]])
    pool = Pool.start(codes, np.array([[True]]), domain, distance)
    found = shrink_thrice(domain, distance, lambda c: np.minimum(c[:, 0] - 9.995, c[:, 2] - 3.0), pool, toys, rounds=12)
    assert found.codes[0, 0, 0] == 10.0
    assert found.codes[0, 0, 2] == pytest.approx(3.01)


def test_a_changed_category_is_nothing_to_shrink(toys: Any) -> None:
    """Category codes have no order: one that lies between two others is not a smaller change, and may not be allowed."""
    import pandas as pd

    codec, _ = toys.codec(pd.DataFrame({"job": list("abcde") * 10, "x": np.arange(50.0)}))
    domain = toys.domain(codec, [0.0, 5.0], allowed={0: [0, 4]})
    distance = gower(codec)

    def lead(points: np.ndarray) -> np.ndarray:
        return np.isin(points[:, 0], [2, 4]) - 0.5

    pool = Pool.start(np.array([[[4.0, 5.0]]]), np.array([[True]]), domain, distance)
    assert not refine.bracket(pool, domain, distance).candidates.open.any()
    found = shrink_thrice(domain, distance, lead, pool, toys)
    np.testing.assert_array_equal(found.codes, [[[4.0, 5.0]]])


def test_there_is_nothing_between_missing_and_a_value(toys: Any) -> None:
    """a is filled, b shrinks; what goes missing is left alone."""
    frame = toys.frame().assign(k=toys.frame()["k"].astype(float))
    frame.loc[5:20, ["a", "k"]] = np.nan
    codec, _ = toys.codec(frame, may_go_missing=["k"])
    distance = Distance.gower(codec.profile.span, codec.numeric, codec.nullable)
    domain = toys.domain(codec, [MISSING, 1.0, 1.0, 2.0])
    domain = replace(
        domain, missing=MissingValues(np.array([MISSING, np.nan, np.nan, MISSING]), np.array([False, False, False, True]))
    )
    pool = Pool.start(np.array([[[9.0, 1.0, 9.0, MISSING]]]), np.array([[True]]), domain, distance)
    asked = refine.bracket(pool, domain, distance)
    assert asked.feature.tolist() == [[2]]
    found = shrink_thrice(domain, distance, lambda codes: codes[:, 2] - 4.0, pool, toys, rounds=4)
    assert found.codes[0, 0].tolist() == [9.0, 1.0, pytest.approx(4.01, abs=0.02), MISSING]
    alone = Pool.start(np.array([[[9.0, 1.0, 1.0, MISSING]]]), np.array([[True]]), domain, distance)
    assert not refine.bracket(alone, domain, distance).candidates.open.any()
