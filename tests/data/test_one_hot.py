"""Groups of 0/1 and boolean columns that are one category."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce.data.one_hot import Group, find_groups


def groups(frame: pd.DataFrame) -> list[Group]:
    return find_groups(frame, list(frame.columns))


def colours(rows: int = 200) -> pd.DataFrame:
    return pd.DataFrame({"colour": np.random.default_rng(0).choice(["red", "dark-blue", "sea_green", "x/y"], rows)})


NAMES = ("colour_dark-blue", "colour_red", "colour_sea_green", "colour_x/y")


@pytest.mark.parametrize("dtype", [bool, int, float, "uint8", "boolean", "Int64", "bool[pyarrow]", object])
def test_dummies_of_every_type_are_found(dtype: Any) -> None:
    frame = pd.get_dummies(colours()).astype(dtype)
    assert groups(frame) == [Group(NAMES, True)]


@pytest.mark.parametrize("dtype", [bool, int])
def test_dummies_without_their_first_column_are_found(dtype: Any) -> None:
    frame = pd.get_dummies(colours(), drop_first=True, dtype=dtype)
    assert groups(frame) == [Group(NAMES[1:], False)]


def test_dummies_without_a_prefix_are_found_beside_each_other() -> None:
    frame = pd.get_dummies(colours()["colour"]).assign(age=np.arange(200), bought=np.arange(200) % 2)
    assert groups(frame) == [Group(("dark-blue", "red", "sea_green", "x/y"), True)]


def test_two_groups_with_a_common_start_are_two() -> None:
    rng = np.random.default_rng(1)
    frame = pd.get_dummies(
        pd.DataFrame({"home_type": rng.choice(["flat", "house"], 90), "home": rng.choice(list("abc"), 90)})
    )
    assert {group.names for group in groups(frame)} == {
        ("home_type_flat", "home_type_house"),
        ("home_a", "home_b", "home_c"),
    }


def test_unrelated_flags_are_no_group() -> None:
    rng = np.random.default_rng(0)
    flags = pd.DataFrame(rng.integers(0, 2, (100, 3)), columns=["has_car", "has_house", "has_dog"])
    assert groups(flags) == []
    rare = pd.DataFrame({"has_boat": np.arange(100) == 3, "has_plane": np.arange(100) == 7})
    assert groups(rare) == []
