"""What people are like."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.latent import prototypes
from fasterce.search.distance import Distance

PLAIN = Distance.gower(np.array([10.0]), np.array([0]))


def test_the_usual_distance_is_the_median_one_to_the_next_of_the_class() -> None:
    codes = np.array([[0.0], [1.0], [3.0], [9.0], [0.5], [9.5]])
    classes = np.array([0, 0, 0, 0, 1, 1])
    np.testing.assert_allclose(prototypes.typical_distances(PLAIN, codes, classes, 3), [0.15, 0.9, 0.0])


def test_equal_rows_have_no_distance() -> None:
    codes = np.array([[1.0], [1.0], [1.0], [5.0]])
    assert prototypes.typical_distances(PLAIN, codes, np.zeros(4, dtype=np.intp), 1)[0] == 0.0


def test_prototypes_are_centres_of_their_class_and_the_same_every_time() -> None:
    rng = np.random.default_rng(0)
    centre = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
    latent = np.concatenate([rng.normal(size=(100, 2)) + c for c in centre])
    classes = np.repeat([0, 1, 1], 100)
    found, labels = prototypes.prototypes(latent, classes, 0)
    assert set(labels) == {0, 1}
    assert (np.abs(found[labels == 0] - centre[0]).max(axis=1) < 4).all()
    near = np.abs(found[labels == 1][:, None] - centre[None, 1:]).max(axis=2)
    assert (near.min(axis=1) < 4).all()
    assert (near.min(axis=0) < 4).all()
    np.testing.assert_array_equal(prototypes.prototypes(latent, classes, 0)[0], found)


def test_a_class_of_one_row_is_its_own_prototype() -> None:
    found, labels = prototypes.prototypes(np.array([[1.0, 2.0], [5.0, 5.0]]), np.array([0, 2]), 0)
    np.testing.assert_array_equal(found, [[1.0, 2.0], [5.0, 5.0]])
    assert labels.tolist() == [0, 2]


@pytest.fixture(scope="module")
def linked() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind, years = rng.choice(list("xyz"), 800), rng.integers(1, 17, 800)
    return pd.DataFrame(
        {
            "kind": kind,
            "noise": rng.normal(size=800).round(2),
            "copy": np.char.upper(kind),
            "years": years,
            "school": np.array(["none", "some", "much", "all"])[np.digitize(years, [4, 8, 12])],
            "pay": (1000.0 * years + rng.normal(size=800)).round(1),
            "debt": rng.gamma(2.0, 10.0, 800).round(1),
        }
    )


def test_what_tells_each_other_is_one_group_and_what_does_not_is_alone(toys: Any, linked: pd.DataFrame) -> None:
    codec, codes = toys.codec(linked)
    group = dict(zip(linked.columns, prototypes.linked_groups(codes, codec), strict=True))
    assert group["kind"] == group["copy"]
    assert group["years"] == group["pay"]
    alone = [group["noise"], group["debt"]]
    assert len({*alone, group["kind"], group["years"]}) == 4
    assert sorted(set(group.values())) == list(range(max(group.values()) + 1))


def test_a_constant_column_goes_with_nobody() -> None:
    frame = pd.DataFrame({"a": np.arange(50.0), "flat": 1.0, "word": "same", "b": np.arange(50.0) ** 2})
    varied = frame.assign(flat=np.arange(50.0), word=["same", "other"] * 25)
    schema = Schema.infer(varied)  # constant columns of the training rows would not be features
    codes = Table.like(varied, schema).read(frame).codes
    codec = Codec(schema, Profile.measure(codes, schema))
    a, flat, word, b = prototypes.linked_groups(codes, codec)
    assert a == b
    assert len({a, flat, word}) == 3


def test_two_numbers_missing_together_are_not_linked_by_that(toys: Any) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.uniform(size=400), "b": rng.uniform(size=400), "c": rng.uniform(size=400)})
    frame["d"] = 3 * frame["c"] + 1
    frame.loc[:350, ["a", "b"]] = np.nan
    frame.loc[200:, "d"] = np.nan
    codec, codes = toys.codec(frame)
    group = prototypes.linked_groups(codes, codec)
    assert group[0] != group[1]
    assert group[2] == group[3], "where both are there they go together"
