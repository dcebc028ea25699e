"""Sets of changes guessed from single ones."""

from typing import Any

import numpy as np
import pytest

from fasterce.config import SearchConfig
from fasterce.search import combine, levels, sweep
from fasterce.search.distance import Distance
from fasterce.search.judge import Edits, Judge
from fasterce.search.query_targets import Named

ROW = [1.0, 1.0, 1.0, 2.0]


def scene(toys: Any, lead: Any, rows: Any = ROW) -> Any:
    codec, _ = toys.codec(toys.frame())
    domain = toys.domain(codec, rows)
    asked = sweep.edits(domain, levels.coarse_levels(codec))
    model = toys.Model(lead)
    judge = Judge(model, Named(np.ones(len(domain.base), dtype=np.intp)), True)
    (verdict,) = judge.judge(asked)
    distance = Distance.gower(codec.profile.span, codec.numeric)
    start = lead(domain.base)
    price = distance.single(asked.feature, asked.value, domain.row)
    return domain, asked, sweep.gains(verdict, start), price, -start, distance


def test_the_pair_predicted_by_an_additive_model_flips_and_is_the_cheapest(toys: Any) -> None:
    def lead(codes: np.ndarray) -> np.ndarray:
        return codes[:, 0] + codes[:, 2] + 0.2 * codes[:, 3] - 14.0

    domain, asked, gain, price, need, distance = scene(toys, lead)
    found = combine.pairs(asked, gain, price, need, np.array([np.inf]))
    assert found.open.any()
    codes = found.codes[found.open]
    assert (lead(codes) > -1e-9).all()
    assert ((codes != domain.base).sum(axis=1) == 2).all()
    cheapest = np.inf
    opened = np.flatnonzero(asked.open[0])
    for one in opened:
        for two in opened:
            if asked.feature[one] < asked.feature[two] and gain[0, one] + gain[0, two] >= need[0]:
                cheapest = min(cheapest, price[0, one] + price[0, two])
    assert distance.total(codes, domain.row[0]).min() == pytest.approx(cheapest, abs=1e-6)


def test_pairs_more_expensive_than_what_is_known_are_not_evaluated(toys: Any) -> None:
    def lead(codes: np.ndarray) -> np.ndarray:
        return codes[:, 0] + codes[:, 2] - 14.0

    domain, asked, gain, price, need, distance = scene(toys, lead)
    free = combine.pairs(asked, gain, price, need, np.array([np.inf]))
    lowest = distance.total(free.codes[free.open], domain.row[0]).min()
    assert not combine.pairs(asked, gain, price, need, np.array([lowest])).open.any()
    capped = combine.pairs(asked, gain, price, need, np.array([lowest + 0.05]))
    assert capped.open.any()
    assert (distance.total(capped.codes[capped.open], domain.row[0]) < lowest + 0.05).all()


def test_no_pair_is_invented_where_none_reaches(toys: Any) -> None:
    _, asked, gain, price, need, _ = scene(toys, lambda codes: 0.01 * codes[:, 0] - 50.0)
    assert not combine.pairs(asked, gain, price, need, np.array([np.inf])).open.any()


def test_a_pair_changes_two_different_features(toys: Any) -> None:
    _, asked, gain, price, need, _ = scene(toys, lambda codes: codes[:, 0] - 15.0)
    assert not combine.pairs(asked, gain, price, need, np.array([np.inf])).open.any(), "9 + 8 of the same feature is no pair"


def test_half_of_the_pairs_have_gain_to_spare(toys: Any) -> None:
    def lead(codes: np.ndarray) -> np.ndarray:
        return codes[:, 0] + codes[:, 2] - 12.0

    _, asked, gain, price, need, _ = scene(toys, lead)
    found = combine.pairs(asked, gain, price, need, np.array([np.inf]))
    half = found.codes.shape[1] // 2
    assert (lead(found.codes[0, half:]) + need[0] >= 1.3 * need[0] - 1e-9).all()
    assert (lead(found.codes[0, :half]) + need[0] < 1.3 * need[0]).any()


def test_stacks_grow_by_the_strongest_change_left(toys: Any) -> None:
    def lead(codes: np.ndarray) -> np.ndarray:
        return codes[:, 0] + 3 * codes[:, 2] + 0.1 * codes[:, 3] + 5 * (codes[:, 1] == 3) - 100.0

    domain, asked, gain, _, _, _ = scene(toys, lead, [ROW, ROW])
    found = combine.stacks(asked, gain)
    np.testing.assert_array_equal(found.open, [[True, True, True]] * 2)
    np.testing.assert_array_equal(found.codes[0], [[10.0, 1.0, 10.0, 2.0], [10.0, 3.0, 10.0, 2.0], [10.0, 3.0, 10.0, 20.0]])
    assert (np.diff(lead(found.codes[0])) > 0).all()
    np.testing.assert_array_equal(domain.base[0], ROW)


def test_stacks_leave_out_what_does_not_help(toys: Any) -> None:
    _, asked, gain, _, _, _ = scene(toys, lambda codes: codes[:, 0] + codes[:, 2] - 100.0)
    found = combine.stacks(asked, gain)
    np.testing.assert_array_equal(found.open, [[True, False, False]])
    np.testing.assert_array_equal(found.codes[0, 0], [10.0, 1.0, 10.0, 2.0])


def test_one_feature_has_no_sets() -> None:
    asked = Edits(np.array([[1.0]]), np.array([0, 0]), np.array([[2.0, 3.0]]), np.ones((1, 2), dtype=bool))
    gain = np.array([[1.0, 2.0]])
    assert combine.stacks(asked, gain).codes.shape == (1, 0, 1)
    assert not combine.pairs(asked, gain, np.array([[0.1, 0.2]]), np.array([2.5]), np.array([np.inf])).open.any()


def test_the_grid_holds_every_combination_of_the_named_features(toys: Any) -> None:
    codec, _ = toys.codec(toys.frame())
    domain = toys.domain(codec, [ROW, [9.0, 0.0, 9.0, 9.0]], upper={0: 6.0})
    feature, value = levels.coarse_levels(codec)
    found = combine.grid(domain, (0, 1), (feature, value))
    expected = {(min(a, 6.0), job) for a in value[feature == 0] for job in range(4)}
    assert {tuple(row) for row in found.codes[0][:, [0, 1]]} == expected
    np.testing.assert_array_equal(found.codes[1][:, [2, 3]], 9.0)
    np.testing.assert_array_equal(found.open, (found.codes != domain.base[:, None]).any(axis=2))
    assert domain.contains(found.codes).all()


@pytest.mark.parametrize("named", [(), (0,), (0, 1, 2, 3), (0, 2, 3)])
def test_the_grid_stays_small(toys: Any, named: tuple[int, ...]) -> None:
    codec, _ = toys.codec(toys.frame())
    domain = toys.domain(codec, ROW)
    found = combine.grid(domain, named, levels.coarse_levels(codec))
    assert found.codes.shape[1] <= SearchConfig().max_grid_rows
    assert found.open.any() == (len(named) > 1)
    np.testing.assert_array_equal(domain.base, [ROW])
