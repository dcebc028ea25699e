"""The statistics a search goes by: finite and usable as divisors whatever the data."""

import numpy as np
import pandas as pd
import pytest

from fasterce.data.profile import LEVELS, Profile, bend
from fasterce.data.schema import Schema
from fasterce.data.table import Table


def measure(X: pd.DataFrame) -> Profile:
    schema = Schema.infer(X)
    return Profile.measure(Table.like(X, schema).read(X).codes, schema)


def test_statistics_of_a_plain_column() -> None:
    profile = measure(pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0, 10.0]}))
    assert (profile.low[0], profile.high[0], profile.median[0], profile.mad[0]) == (1.0, 10.0, 3.0, 1.0)
    assert profile.std[0] == pytest.approx(np.std([1, 2, 3, 4, 10]))
    assert profile.span[0] == 9.0


def test_a_constant_column_has_scales_of_one() -> None:
    profile = measure(pd.DataFrame({"x": [5.0] * 4}))
    assert [profile.std[0], profile.mad[0], profile.bent_std[0], profile.span[0]] == [1.0] * 4
    assert profile.levels[0].tolist() == [5.0] * LEVELS


def test_a_column_that_mostly_stands_still_takes_its_deviation_for_the_mad() -> None:
    profile = measure(pd.DataFrame({"x": [0.0] * 9 + [10.0]}))
    assert profile.mad[0] == profile.std[0] == 3.0


def test_levels_follow_people_and_spread_follows_values() -> None:
    profile = measure(pd.DataFrame({"x": [0.0] * 97 + [1.0, 2.0, 1000.0]}))
    assert (profile.levels[0] == 0).mean() > 0.9
    assert set(profile.spread[0]) == {0.0, 1.0, 2.0, 1000.0}
    assert (profile.spread[0] == 0).mean() < 0.3
    for quantiles in (profile.levels[0], profile.spread[0]):
        assert quantiles.shape == (LEVELS,)
        assert (quantiles[0], quantiles[-1]) == (0.0, 1000.0)
        assert (np.diff(quantiles) >= 0).all()


def test_levels_are_values_that_exist() -> None:
    profile = measure(pd.DataFrame({"x": [1, 2, 40, 41, 900]}))
    assert set(profile.levels[0]) | set(profile.spread[0]) <= {1.0, 2.0, 40.0, 41.0, 900.0}


def test_shares_of_all_categories_stand_in_a_row() -> None:
    X = pd.DataFrame(
        {
            "a": ["x", "y", "x", "x"],
            "n": [1, 2, 3, 4],
            "b": pd.Categorical(["p", "p", "q", "q"], ["p", "never", "q"]),
        }
    )
    assert measure(X).frequency.tolist() == [0.75, 0.25, 0.5, 0.0, 0.5]
    assert measure(X[["n"]]).frequency.shape == (0,)


def test_arrays_hold_every_field_by_name() -> None:
    profile = measure(pd.DataFrame({"x": [1, 2], "c": ["a", "b"]}))
    rebuilt = Profile(**{name: values.copy() for name, values in profile.arrays().items()})
    assert rebuilt.span.tolist() == profile.span.tolist()
    assert {"low", "high", "median", "std", "mad", "levels", "spread", "frequency"} <= set(profile.arrays())


def test_bending_is_straight_in_the_middle_and_tame_in_the_tail() -> None:
    bent = bend(np.array([10.0, 10.01, 9.99, 1e12]), np.array(10.0), np.array(1.0))
    assert bent[:3] == pytest.approx([0, 0.01, -0.01], rel=1e-3)
    assert bent[3] < 30


@pytest.mark.parametrize("top", [1e6, 1e12, 1e150])
def test_long_tails_leave_everything_finite(top: float) -> None:
    profile = measure(pd.DataFrame({"x": [0.0, 1.5, 2.5, top, -top]}))
    assert all(np.isfinite(values).all() for values in profile.arrays().values())


def test_missing_numbers_are_left_out_and_missing_categories_counted() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 9.0, 4.0], "c": ["x", "y", "x", "x"], "b": [5.0, 6.0, 7.0, 8.0]})
    gappy = frame.assign(a=[1.0, 2.0, np.nan, 4.0], c=["x", None, "x", "x"])
    schema = Schema.infer(gappy)
    found = Profile.measure(Table.like(gappy, schema).read(gappy).codes, schema)
    there = frame.iloc[[0, 1, 3]]
    alone = Profile.measure(Table.like(there, Schema.infer(there)).read(there).codes, Schema.infer(there))
    for name in ("low", "high", "median", "std", "mad", "bent_mean", "bent_std", "levels", "spread"):
        np.testing.assert_array_equal(getattr(found, name)[0], getattr(alone, name)[0], err_msg=name)
    np.testing.assert_allclose(found.frequency, [0.75, 0.25])
    assert found.median[2] == 6.5, "other columns count every row"
