"""The price of a change."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasterce.codec import Codec
from fasterce.profile import Profile
from fasterce.schema import MISSING, Schema
from fasterce.search.distance import Curve, Distance
from fasterce.table import Table

GOWER = Distance.gower(np.array([10.0, 3.0, 0.5]), np.array([0, 2]))


def test_range_shares_and_one_for_a_category() -> None:
    row = np.array([2.0, 1.0, 0.5])
    np.testing.assert_allclose(GOWER.parts(np.array([7.0, 3.0, 0.25]), row), [0.5, 1.0, 0.5])
    assert GOWER.total(np.array([7.0, 3.0, 0.25]), row) == 2.0
    assert GOWER.total(row, row) == 0.0
    assert GOWER.total(np.array([2.0, 2.0, 0.5]), row) == GOWER.total(np.array([2.0, 0.0, 0.5]), row) == 1.0


def test_rows_broadcast_against_candidates() -> None:
    rows = np.array([[0.0, 0.0, 0.0], [10.0, 1.0, 0.5]])
    candidates = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[10.0, 1.0, 0.5], [0.0, 2.0, 0.0]]])
    np.testing.assert_allclose(GOWER.total(candidates, rows[:, None, :]), [[0.1, 1.0], [0.0, 3.0]])


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_single_changes_cost_what_the_whole_row_costs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.uniform(0, 10, 4), rng.integers(3, size=4), rng.uniform(0, 0.5, 4)])
    feature = rng.integers(3, size=7)
    value = np.where(feature == 1, rng.integers(3, size=(4, 7)), rng.uniform(0, 10, size=(4, 7)))
    found = GOWER.single(feature, value, rows)
    for i in range(4):
        for s in range(7):
            changed = rows[i].copy()
            changed[feature[s]] = value[i, s]
            assert found[i, s] == GOWER.total(changed, rows[i])


def test_ties_are_ties() -> None:
    """Two ways of writing the same distance differ in the last bit, and must not differ in rank."""
    distance = Distance.gower(np.array([1.0, 1.0, 1.0]), np.arange(3))
    zero = np.zeros(3)
    one, two = distance.total(np.array([0.1, 0.2, 0.0]), zero), distance.total(np.array([0.3, 0.0, 0.0]), zero)
    assert 0.1 + 0.2 != 0.3
    assert one == two


def crowded() -> Curve:
    """Six people: nobody below 1, three at 1, then one each at 2, 4 and 8."""
    frame = pd.DataFrame({"x": [1.0, 1.0, 1.0, 2.0, 4.0, 8.0] * 40})
    schema = Schema.infer(frame)
    codes = Table.like(frame, schema).read(frame).codes
    return Distance.percentile(Codec(schema, Profile.measure(codes, schema))).curves[0]


def test_a_curve_never_falls_and_goes_on_beyond_its_ends() -> None:
    curve = crowded()
    heights = curve.at(np.linspace(-5, 20, 500))
    assert (np.diff(heights) >= 0).all()
    np.testing.assert_allclose(curve.at(np.array([20.0])) - curve.at(np.array([18.0])), 2 * curve.slope)


def test_people_at_a_value_are_passed_when_it_is_left() -> None:
    curve = crowded()
    here, after, next_one = curve.at(np.array([1.0, 1.4, 2.0]))
    assert after - here > 0.2, "half of them"
    assert after - here > 3 * (next_one - after) - 0.1


def test_curves_weights_and_flat_prices_take_the_same_factor() -> None:
    curve = Curve(0, np.array([0.0, 1.0]), np.array([0.0, 0.5]), 0.1)
    plain = Distance(np.array([0.0, 0.0, 2.0]), np.array([0.0, 1.0, 0.0]), (curve,))
    dear = plain.times({0: 4.0, 1: 3.0, 2: 0.5})
    row, other = np.zeros(3), np.array([3.0, 1.0, 1.0])
    np.testing.assert_allclose(plain.parts(other, row), [0.7, 1.0, 2.0])
    np.testing.assert_allclose(dear.parts(other, row), [2.8, 3.0, 1.0])
    assert plain.graded.tolist() == dear.graded.tolist() == [True, False, True]


def test_mad_divides_by_the_deviation_and_averages() -> None:
    mad = Distance.mad(np.array([2.0, 1.0, 0.5, 1.0]), np.array([0, 2]))
    np.testing.assert_allclose(
        mad.parts(np.array([5.0, 1.0, 1.0, 1.0]), np.array([1.0, 0.0, 0.0, 1.0])), [1.0, 0.5, 1.0, 0.0]
    )


GAPPY = Distance.gower(np.array([10.0, 3.0, 0.5]), np.array([0, 2]), np.array([0]))


def test_to_and_from_missing_costs_what_a_category_costs() -> None:
    row = np.array([[2.0, 1.0, 0.5], [MISSING, 1.0, 0.5]])
    other = np.array([[MISSING, 1.0, 0.25], [9.0, 1.0, 0.5]])
    np.testing.assert_allclose(GAPPY.parts(other, row), [[1.0, 0.0, 0.5], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(GAPPY.total(row, row), [0.0, 0.0])
    np.testing.assert_allclose(GAPPY.times({0: 3.0}).total(other, row), [3.5, 3.0])
    np.testing.assert_allclose(GAPPY.shrinkable(other, row), [[0.0, 0.0, 0.5], [0.0, 0.0, 0.0]])
    mad = Distance.mad(np.array([2.0, 1.0, 1.0, 1.0]), np.array([0, 2]), np.array([0]))
    assert mad.total(np.array([MISSING, 0, 1.0, 0]), np.array([1.0, 0, 1.0, 0])) == 0.5, "one of two categories"


def test_a_gap_is_best_filled_with_a_usual_value() -> None:
    likes = GAPPY.filling_with(np.array([4.0, 0.0, 0.2]))
    row = np.array([[MISSING, 1.0, 0.5]])
    price = likes.single(np.zeros(3, dtype=np.intp), np.array([[4.0, 5.0, 0.0]]), row)[0]
    assert price[0] == 1.0
    assert price[0] < price[1] < price[2] < 1.00001
    assert likes.total(np.array([MISSING, 1.0, 0.5]), np.array([0.0, 1.0, 0.5])) == 1.0, "going missing has no such trifle"


def test_percentiles_with_gaps_price_values_as_they_would_without() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.gamma(2, 3, 200).round(2)})
    gappy = pd.concat([frame, pd.DataFrame({"a": [np.nan] * 100})], ignore_index=True)
    codecs = []
    for one in (frame, gappy):
        schema = Schema.infer(one)
        codecs.append(Codec(schema, Profile.measure(Table.like(one, schema).read(one).codes, schema)))
    plain, gapped = (Distance.percentile(codec) for codec in codecs)
    here, there = np.array([[1.0], [5.0]]), np.array([[9.0], [0.2]])
    np.testing.assert_array_equal(plain.total(here, there), gapped.total(here, there))
    np.testing.assert_array_equal(gapped.total(np.array([[MISSING], [MISSING]]), here), [1.0, 1.0])


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_single_changes_with_gaps_cost_what_the_whole_row_costs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    distance = GAPPY.filling_with(np.array([4.0, 0.0, 0.2]))
    rows = np.column_stack([rng.uniform(0, 10, 4), rng.integers(3, size=4), rng.uniform(0, 0.5, 4)])
    rows[:, 0] = np.where(rng.random(4) < 0.5, MISSING, rows[:, 0])
    feature = rng.integers(3, size=7)
    value = np.where(feature == 1, rng.integers(3, size=(4, 7)), rng.uniform(0, 10, size=(4, 7)))
    value = np.where((feature == 0) & (rng.random((4, 7)) < 0.4), MISSING, value)
    found = distance.single(feature, value, rows)
    for i in range(4):
        for s in range(7):
            candidate = rows[i].copy()
            candidate[feature[s]] = value[i, s]
            assert found[i, s] == pytest.approx(float(distance.total(candidate, rows[i])), abs=1e-9)
