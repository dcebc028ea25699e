"""Single changes: the cheapest is found, its floor fails, and rules hold."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasterce.search import levels, sweep
from fasterce.search.distance import Distance
from fasterce.search.judge import Edits, Judge, Verdict
from fasterce.search.query_targets import Named

ROW = [3.0, 1.0, 5.25, 7.0]


@pytest.fixture(scope="module")
def codec(toys: Any) -> Any:
    return toys.codec(toys.frame())[0]


def run(toys: Any, codec: Any, lead: Any, rows: Any = ROW, **constraints: Any) -> Any:
    domain = toys.domain(codec, rows, **constraints)
    asked = sweep.edits(domain, levels.coarse_levels(codec))
    judge = Judge(toys.Model(lead), Named(np.ones(len(domain.base), dtype=np.intp)), True)
    (verdict,) = judge.judge(asked)
    distance = Distance.gower(codec.profile.span, codec.numeric)
    return domain, asked, verdict, sweep.cheapest(asked, verdict, domain, distance)


def test_edits_are_legal_and_different(toys: Any, codec: Any) -> None:
    domain = toys.domain(
        codec, [ROW, [10.0, 3.0, 0.0, 20.0]], frozen=[2], lower={0: 2.0}, upper={0: 8.0, 3: 12.0}, allowed={1: [1, 2]}
    )
    asked = sweep.edits(domain, levels.coarse_levels(codec))
    rows, codes = asked.flat()
    for row, candidate in zip(rows, codes, strict=True):
        changed = np.flatnonzero(candidate != domain.base[row])
        assert len(changed) == 1
        assert domain.contains(np.broadcast_to(candidate, (2, 1, 4)))[row, 0]
    assert not (asked.open & (asked.feature == 2)).any()
    of_first = {(int(f), float(v)) for f, v, o in zip(asked.feature, asked.value[0], asked.open[0], strict=True) if o}
    assert {(0, 2.0), (0, 8.0), (3, 0.0), (3, 12.0), (1, 2.0)} <= of_first, "the ends of the row's own range are tried"
    assert (1, 0.0) not in of_first


def test_unbounded_ranges_try_nothing_infinite(toys: Any, codec: Any) -> None:
    domain = toys.domain(codec, ROW, upper={0: np.inf}, lower={0: -np.inf})
    asked = sweep.edits(domain, levels.coarse_levels(codec))
    assert np.isfinite(asked.value[asked.open]).all()
    assert (asked.open & (asked.feature == 0)).any()


def test_the_cheapest_single_change_of_a_known_threshold(toys: Any, codec: Any) -> None:
    _, asked, _, singles = run(toys, codec, lambda codes: np.maximum(codes[:, 0] - 6.3, codes[:, 3] - 18.5))
    tried = asked.value[0][asked.open[0] & (asked.feature == 0)]
    assert singles.value[0, 0] == tried[tried > 6.3].min()
    assert singles.floor[0, 0] == pytest.approx(tried[tried <= 6.3].max())
    assert singles.floor[0, 0] <= 6.3 < singles.value[0, 0]
    assert singles.cost[0, 0] == pytest.approx((singles.value[0, 0] - 3) / 10, abs=1e-9)
    assert singles.floor[0, 3] <= 18.5 < singles.value[0, 3]
    assert np.isinf(singles.cost[0, [1, 2]]).all()
    np.testing.assert_array_equal(singles.value[0, [1, 2]], [1.0, 5.25])


def test_of_two_sides_the_nearer_one(toys: Any, codec: Any) -> None:
    _, _, _, singles = run(toys, codec, lambda codes: np.abs(codes[:, 0] - 4.5) - 1.8)
    assert singles.value[0, 0] < 2.7
    assert singles.floor[0, 0] > 2.7 - 1e-9


def test_the_floor_is_the_row_where_nothing_lies_between(toys: Any, codec: Any) -> None:
    _, _, _, singles = run(toys, codec, lambda codes: (codes[:, 0] != 3.0) - 0.5)
    assert singles.floor[0, 0] == 3.0
    assert singles.value[0, 0] != 3.0


def test_the_floor_is_a_value_that_was_evaluated(toys: Any, codec: Any) -> None:
    domain = toys.domain(codec, ROW)
    asked = Edits(domain.base, np.zeros(3, dtype=np.intp), np.array([[4.0, 5.0, 6.0]]), np.array([[True, False, True]]))
    verdict = Verdict(np.array([[False, False, True]]), np.array([[-1.0, -np.inf, 1.0]]))
    singles = sweep.cheapest(asked, verdict, domain, Distance.gower(codec.profile.span, codec.numeric))
    assert (singles.value[0, 0], singles.floor[0, 0]) == (6.0, 4.0)


def test_categories_cost_one(toys: Any, codec: Any) -> None:
    _, _, _, singles = run(toys, codec, lambda codes: (codes[:, 1] == 3) - 0.5)
    assert singles.value[0, 1] == 3
    assert singles.cost[0, 1] == 1
    assert np.isinf(singles.cost[0, [0, 2, 3]]).all()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_value_flips_and_floor_does_not(toys: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codec, codes = toys.codec(toys.frame(80))
    weight, threshold = rng.normal(size=4) * [1, 0, 1, 0.5], rng.normal() * 5

    def lead(points: np.ndarray) -> np.ndarray:
        return points @ weight - threshold

    rows = codes[lead(codes) <= 0][:6]
    if len(rows) == 0:
        return
    domain, _, _, singles = run(toys, codec, lead, rows)
    for i, j in zip(*np.nonzero(np.isfinite(singles.cost)), strict=True):
        changed, smaller = domain.base[i].copy(), domain.base[i].copy()
        changed[j], smaller[j] = singles.value[i, j], singles.floor[i, j]
        assert lead(changed[None])[0] > 0
        assert lead(smaller[None])[0] <= 1e-9
        assert abs(smaller[j] - rows[i, j]) < abs(changed[j] - rows[i, j])


def test_pool_takes_the_cheapest_first(toys: Any, codec: Any) -> None:
    domain, _, _, singles = run(
        toys, codec, lambda codes: np.maximum.reduce([codes[:, 0] - 9.0, codes[:, 2] - 7.0, (codes[:, 1] == 3) - 0.5])
    )
    codes, floors, valid = singles.pool(domain.base, 3)
    assert codes.shape == floors.shape == (1, 3, 4)
    np.testing.assert_array_equal(valid, [[True, True, True]])
    np.testing.assert_array_equal([np.flatnonzero(c != domain.base[0]).tolist() for c in codes[0]], [[2], [0], [1]])
    assert floors[0, 0, 2] <= 7.0 < codes[0, 0, 2]
    assert not singles.pool(domain.base, 4)[2][0, 3]


def test_gains_measure_from_where_the_row_stands() -> None:
    verdict = Verdict(np.array([[True, False, False]]), np.array([[0.5, -1.0, -np.inf]]))
    np.testing.assert_array_equal(sweep.gains(verdict, np.array([-2.0])), [[2.5, 1.0, -np.inf]])
