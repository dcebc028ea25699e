"""Rules held exactly, and movement carried over instead of the decoder's mistakes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasterce.constraints.compile.domain import carry_movement

ROW = [3.0, 1.0, 5.25, 7.0]


@pytest.fixture(scope="module")
def codec(toys: Any) -> Any:
    return toys.codec(toys.frame())[0]


def test_project_rounds_and_clips(toys: Any, codec: Any) -> None:
    domain = toys.domain(codec, ROW, upper={0: 4.0}, lower={3: 6.5})
    found = domain.project(np.array([[[4.567, 2.0, 5.256, 3.2], [3.991, 3.0, -1.0, 8.6]]]))
    np.testing.assert_allclose(found, [[[4.0, 2.0, 5.26, 7.0], [3.99, 3.0, 0.0, 9.0]]], atol=1e-12)


def test_frozen_features_keep_the_base(toys: Any, codec: Any) -> None:
    domain = toys.domain(codec, ROW, frozen=[0, 1])
    np.testing.assert_allclose(domain.project(np.array([[[9.0, 2.0, 9.0, 9.0]]])), [[[3.0, 1.0, 9.0, 9.0]]])


def test_a_category_that_is_not_open_goes_back(toys: Any, codec: Any) -> None:
    domain = toys.domain(codec, ROW, allowed={1: [1, 3]})
    found = domain.project(np.array([[[3.0, code, 5.25, 7.0] for code in range(4)]], dtype=float))
    np.testing.assert_array_equal(found[0, :, 1], [1, 1, 1, 3])
    upward = toys.domain(codec, ROW, lower={1: 1})
    found = upward.project(np.array([[[3.0, code, 5.25, 7.0] for code in range(4)]], dtype=float))
    np.testing.assert_array_equal(found[0, :, 1], [1, 1, 2, 3])


def test_a_value_finer_than_the_precision_stays_when_nothing_moves_it(toys: Any, codec: Any) -> None:
    row = [3.0, 1.0, 5.25678, 7.5]
    domain = toys.domain(codec, row)
    found = domain.project(np.array([[[8.0, 1.0, 5.25678, 7.5]]]))
    np.testing.assert_array_equal(found, [[[8.0, 1.0, 5.25678, 7.5]]])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_what_is_projected_is_contained_and_stays(toys: Any, seed: int) -> None:
    codec, codes = toys.codec(toys.frame(60))
    rng = np.random.default_rng(seed)
    rows = codes[rng.integers(len(codes), size=5)]
    low, high = np.sort(rng.uniform(0, 10, 2).round(3))
    domain = toys.domain(
        codec,
        rows,
        frozen=np.flatnonzero(rng.random(4) < 0.3),
        lower={0: low, 3: float(rng.integers(0, 5)) + 0.5},
        upper={0: high + 0.02, 3: 17.3},
        allowed={1: np.flatnonzero(rng.random(4) < 0.5)},
        single=[2] if rng.random() < 0.5 else [],
    )
    wild = rng.normal(size=(5, 20, 4)) * 20
    wild[..., 1] = rng.integers(4, size=(5, 20))
    found = domain.project(wild)
    assert domain.contains(found).all()
    np.testing.assert_array_equal(domain.project(found), found)


def test_contains_refuses_every_broken_constraint(toys: Any, codec: Any) -> None:
    domain = toys.domain(codec, ROW, frozen=[2], upper={0: 6.0}, allowed={1: [1, 3]})
    good = [4.0, 3.0, 5.25, 8.0]
    broken = np.tile(good, (5, 1))
    broken[[0, 1, 2, 3, 4], [0, 1, 2, 3, 0]] = [6.01, 2.0, 5.26, 8.5, -1.0]
    np.testing.assert_array_equal(domain.contains(np.array([[ROW, good, *broken]])), [[True, True, *[False] * 5]])


def test_own_values_are_never_refused(toys: Any, codec: Any) -> None:
    """A row outside the bounds, with a category closed to others, may stay what it is."""
    domain = toys.domain(codec, [12.0, 0.0, 5.0, 7.5], allowed={1: [2]})
    assert domain.contains(np.array([[[12.0, 0.0, 5.0, 7.5]]])).all()
    assert not domain.contains(np.array([[[11.0, 0.0, 5.0, 7.5]]])).any()


def test_rounding_stays_inside_awkward_bounds(toys: Any, codec: Any) -> None:
    domain = toys.domain(codec, [0.4, 0.0, 5.0, 7.0], lower={0: 0.333}, upper={0: 0.666})
    found = domain.round(np.array([[[0.0], [0.5049], [9.0]]]), np.array([0]))
    np.testing.assert_allclose(found[0, :, 0], [0.34, 0.5, 0.66], atol=1e-12)
    narrow = toys.domain(codec, [0.333, 0.0, 5.0, 7.0], lower={0: 0.331}, upper={0: 0.334})
    found = narrow.round(np.array([[[0.0], [9.0]]]), np.array([0]))[0, :, 0]
    assert ((found >= 0.331) & (found <= 0.334)).all()


def test_round_own_rounds_each_candidates_feature(toys: Any, codec: Any) -> None:
    domain = toys.domain(codec, [ROW, ROW], upper={3: 9.0})
    values = np.array([[[1.234, 11.0], [1.6, 11.0]], [[8.7, -3.0], [2.345, 2.0]]])
    feature = np.array([[0, 3], [3, 2]])
    np.testing.assert_allclose(
        domain.round_own(values, feature), [[[1.23, 10.0], [2.0, 9.0]], [[9.0, 0.0], [2.35, 2.0]]], atol=0.0101
    )
    np.testing.assert_array_equal(domain.round_own(values, feature)[1, 0], [9.0, 0.0])


def test_single_precision_columns_hold_what_a_32_bit_float_can(toys: Any, codec: Any) -> None:
    domain = toys.domain(codec, ROW, single=[0], upper={0: 0.7})
    found = domain.project(np.array([[[0.1, 1.0, 5.25, 7.0], [9.0, 1.0, 5.25, 7.0]]]))[0, :, 0]
    np.testing.assert_array_equal(found, found.astype(np.float32).astype(np.float64))
    assert found[1] <= 0.7 < found[1] + 1e-6


def test_take_keeps_the_given_rows(toys: Any, codec: Any) -> None:
    domain = toys.domain(codec, [ROW, [1.0, 2.0, 3.0, 4.0], [9.0, 0.0, 9.0, 9.0]])
    some = domain.take(np.array([2, 0]))
    np.testing.assert_array_equal(some.row, domain.row[[2, 0]])
    np.testing.assert_array_equal(some.base, domain.base[[2, 0]])
    assert some.allowed is domain.allowed


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_movement_no_change_however_bad_the_decoder(toys: Any, seed: int) -> None:
    codec, codes = toys.codec(toys.frame(60))
    rng = np.random.default_rng(seed)
    domain = toys.domain(codec, codes[:9])
    before = rng.normal(size=(9, codec.width)) * 10
    after = np.repeat(before[:, None, :], 3, axis=1)
    np.testing.assert_array_equal(carry_movement(codec, domain, before, after), np.repeat(codes[:9, None], 3, axis=1))


def test_movement_of_one_number_moves_only_it(toys: Any, codec: Any) -> None:
    domain = toys.domain(codec, ROW)
    before = np.random.default_rng(0).normal(size=(1, codec.width))
    after = np.repeat(before[:, None, :], 3, axis=1)
    after[0, :, 1] += [0.015, 0.5, -0.5]
    found = carry_movement(codec, domain, before, after)[0]
    np.testing.assert_array_equal(found[:, [0, 1, 3]], np.tile([ROW[0], ROW[1], ROW[3]], (3, 1)))
    assert found[0, 2] == ROW[2], "a trifle is no movement"
    assert found[1, 2] > ROW[2] > found[2, 2]
    moved = codec.encode(np.array([ROW]))[0]
    moved[1] += 0.5
    assert found[1, 2] == pytest.approx(codec.numbers(moved)[1], abs=0.005)


def test_a_category_flips_when_the_movement_outweighs_the_rows_own(toys: Any, codec: Any) -> None:
    domain = toys.domain(codec, ROW)
    (block,) = codec.blocks
    before = np.zeros((1, codec.width))
    before[0, block.columns] = [0.7, 0.1, 0.1, 0.1]
    after = np.repeat(before[:, None, :], 3, axis=1)
    after[0, 0, block.columns] = [0.8, 0.0, 0.1, 0.1]
    after[0, 1, block.columns] = [0.0, 0.05, 0.9, 0.05]
    after[0, 2, block.columns] = [-0.3, -0.5, 0.7, 0.1]
    found = carry_movement(codec, domain, before, after)[0, :, 1]
    np.testing.assert_array_equal(found, [1, 1, 2])


def test_a_flip_goes_to_the_best_open_category(toys: Any, codec: Any) -> None:
    (block,) = codec.blocks
    before = np.zeros((1, codec.width))
    after = np.zeros((1, 1, codec.width))
    after[0, 0, block.columns] = [0.5, -1.0, 0.9, 0.3]
    for allowed, expected in (([0, 1, 2, 3], 2), ([0, 3], 0), ([3], 3), ([1], 1)):
        domain = toys.domain(codec, ROW, allowed={1: allowed})
        assert carry_movement(codec, domain, before, after)[0, 0, 1] == expected
    frozen = toys.domain(codec, ROW, frozen=[1])
    assert carry_movement(codec, frozen, before, after)[0, 0, 1] == 1


def test_a_rare_category_without_a_column_stays_until_outweighed(toys: Any) -> None:
    import pandas as pd

    frame = pd.DataFrame({"town": [f"t{k:03d}" for k in range(70)] + [f"t{k:03d}" for k in range(66)], "x": np.arange(136.0)})
    codec, _ = toys.codec(frame)
    (block,) = codec.blocks
    rare = 69
    assert block.slot_of[rare] < 0
    domain = toys.domain(codec, [rare, 5.0])
    before = np.zeros((1, codec.width))
    after = np.zeros((1, 2, codec.width))
    after[0, :, block.start + 7] = [0.9, 1.1]
    found = carry_movement(codec, domain, before, after)[0, :, 0]
    np.testing.assert_array_equal(found, [rare, block.codes[7]])


def gridded(
    toys: Any, codec: Any, row: list[float], step: dict[int, float], from_row: bool = False, **constraints: Any
) -> Any:
    domain = toys.domain(codec, row, **constraints)
    steps = np.array([step.get(j, 0.0) for j in range(4)])
    anchor = domain.row.copy() if from_row else np.zeros_like(domain.row)
    return replace(domain, step=steps, anchor=anchor)


def test_a_grid_holds_exactly_in_every_way_of_rounding(toys: Any, codec: Any) -> None:
    domain = gridded(toys, codec, ROW, {0: 0.1, 3: 5.0}, upper={0: 0.75})
    points = np.array([[[0.31, 1.0, 5.25, 13.0], [9.0, 1.0, 5.25, 99.0]]])
    np.testing.assert_array_equal(domain.project(points)[0][:, [0, 3]], [[0.3, 15.0], [0.7, 20.0]])
    np.testing.assert_array_equal(domain.round(points[..., [0, 3]], np.array([0, 3]))[0], [[0.3, 15.0], [0.7, 20.0]])
    np.testing.assert_array_equal(domain.round_own(np.array([[[0.31, 9.0]]]), np.array([[0]]))[0, 0], [0.3, 0.7])
    np.testing.assert_array_equal(
        domain.contains(np.array([[[0.3, 1.0, 5.25, 15.0], [0.31, 1.0, 5.25, 15.0], [0.3, 1.0, 5.25, 14.0], ROW]])),
        [[True, False, False, True]],
    )
    legal = domain.legal_values(np.array([0, 0, 3, 3]), np.array([[0.3, 0.31, 15.0, 14.0]]))
    np.testing.assert_array_equal(legal, [[True, False, True, False]])


def test_a_grid_of_small_steps_reaches_far_without_drift(toys: Any, codec: Any) -> None:
    domain = gridded(toys, codec, ROW, {0: 0.1, 2: 0.1}, from_row=True)
    points = np.tile(ROW, (1, 101, 1))
    points[0, :, 0] = points[0, :, 2] = np.linspace(0, 10, 101)
    found = domain.project(points)
    assert domain.contains(found).all()
    assert set(found[0, :, 0]) == {round(k / 10, 1) for k in range(101)}
    assert set(found[0, :, 2]) <= {round(0.05 + k / 10, 2) for k in range(100)} | {5.25}


def test_single_precision_values_stay_on_their_grid(toys: Any, codec: Any) -> None:
    domain = gridded(toys, codec, ROW, {0: 0.1}, single=[0], upper={0: 0.7})
    found = domain.project(np.array([[[0.31, 1.0, 5.25, 7.0], [9.0, 1.0, 5.25, 7.0]]]))
    np.testing.assert_array_equal(found[0, :, 0], found[0, :, 0].astype(np.float32))
    assert found[0, 0, 0] == np.float32(0.3)
    assert domain.contains(found).all()


def test_transitions_are_the_rows_own(toys: Any, codec: Any) -> None:
    shut = np.ones((4, 4), dtype=bool)
    shut[1, 2] = shut[0, 3] = False
    other = [1.0, 0.0, 3.0, 4.0]
    domain = replace(toys.domain(codec, [ROW, other]), transitions={1: shut})
    np.testing.assert_array_equal(domain.open_to(1), [[True, True, False, True], [True, True, True, False]])
    points = np.stack([np.tile(row, (4, 1)) for row in (ROW, other)])
    points[..., 1] = np.arange(4)
    np.testing.assert_array_equal(domain.project(points)[..., 1], [[0, 1, 1, 3], [0, 1, 2, 0]])
    np.testing.assert_array_equal(domain.contains(points), domain.open_to(1))
    np.testing.assert_array_equal(domain.take(np.array([1])).contains(points[1:]), domain.open_to(1)[1:])
    np.testing.assert_array_equal(domain.legal_values(np.full(4, 1), points[..., 1]), domain.open_to(1))


def test_the_number_of_changes_is_counted_from_the_row(toys: Any, codec: Any) -> None:
    counted = np.array([True, True, False, True])
    domain = replace(toys.domain(codec, ROW, base=[3.0, 1.0, 5.25, 8.0]), most_changes=1, counted=counted)
    codes = np.array([[[3.0, 1.0, 9.0, 8.0], [4.0, 1.0, 5.25, 8.0]]])
    np.testing.assert_array_equal(domain.count_kept(codes), [[True, False]])
    np.testing.assert_array_equal(domain.contains(codes), [[True, False]])
    np.testing.assert_array_equal(domain.contains(codes, counted=False), [[True, True]])
    np.testing.assert_array_equal(domain.contains_own(np.zeros(2, dtype=int), codes[0]), [True, False])


def test_open_categories_are_those_of_each_feature_in_the_layout_of_the_kernels(toys: Any, codec: Any) -> None:
    """Another memory layout would be another type for the compiled search, which would then be compiled in a call."""
    domain = toys.domain(codec, ROW, allowed={1: [1, 2, 3]}, lower={1: 1}).take(np.array([0, 0, 0]))
    shut = np.ones((len(domain.allowed[1]),) * 2, dtype=bool)
    shut[1, 2] = False
    for one in (domain, replace(domain, transitions={1: shut})):
        found = one.open_categories()
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, np.concatenate([one.open_to(j) for j in one.allowed], axis=1))
