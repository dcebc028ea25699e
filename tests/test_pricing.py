"""What the caller calls far, as prices."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce import FasterCE, Schema, metrics, pricing
from fasterce.codec import Codec
from fasterce.errors import InputError
from fasterce.profile import Profile
from fasterce.search.distance import Distance
from fasterce.table import Table

RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame(
    {
        "gain": np.where(RNG.random(1000) < 0.9, 0, RNG.integers(1_000, 90_000, 1000)),
        "age": RNG.integers(18, 80, 1000),
        "job": RNG.choice(["clerk", "nurse", "smith"], 1000),
        "pay": RNG.normal(50, 10, 1000).round(1),
        "own": RNG.random(1000) < 0.5,
    }
)
SCHEMA = Schema.infer(PEOPLE)
CODES = Table.like(PEOPLE, SCHEMA).read(PEOPLE).codes
CODEC = Codec(SCHEMA, Profile.measure(CODES, SCHEMA))


def price(distance: Distance, column: str, before: float, after: float) -> float:
    """What it costs the first person to have one column go from one value to another."""
    j = SCHEMA.names.index(column)
    row, other = CODES[0].copy(), CODES[0].copy()
    row[j], other[j] = before, after
    alone = distance.single(np.array([j]), np.array([[after]]), row[None])[0, 0]
    assert alone == distance.total(other, row)
    return float(alone)


@pytest.mark.parametrize("name", pricing.NAMES)
def test_nothing_changed_costs_nothing_and_more_costs_more(name: Any) -> None:
    distance = pricing.choose(name, CODEC)
    np.testing.assert_array_equal(distance.total(CODES, CODES), 0.0)
    for start in (18.0, 45.0, 79.0):
        for way in (np.arange(start, 120.0), np.arange(start, -20.0, -1.0)):
            costs = [price(distance, "age", start, value) for value in way]
            assert (np.diff(costs) > 0).all(), "every year farther costs more, beyond the oldest too"


def test_percentile_is_about_the_share_of_people_passed() -> None:
    distance = pricing.choose("percentile", CODEC)
    for low, high in ((30, 40), (25, 70), (44, 45)):
        share = ((PEOPLE["age"] > low) & (PEOPLE["age"] < high)).mean() + (PEOPLE["age"].isin([low, high])).mean() / 2
        assert price(distance, "age", low, high) == pytest.approx(share, abs=0.03)
        assert price(distance, "age", high, low) == price(distance, "age", low, high)


def test_leaving_a_value_many_share_means_passing_all_of_them() -> None:
    distance = pricing.choose("percentile", CODEC)
    little, much = price(distance, "gain", 0, 1), price(distance, "gain", 0, 5_000)
    assert little == pytest.approx(0.45, abs=0.03), "half of the nine in ten who have none"
    assert much < little + 0.1
    assert price(distance, "gain", 20_000, 25_000) < 0.05
    assert price(pricing.choose("gower", CODEC), "gain", 0, 1) < 1e-4, "which is what gower makes of it"


def test_tails_are_dear() -> None:
    """Between the last and the last but one percent there is hardly anyone to pass, so the way itself is charged."""
    distance = pricing.choose("percentile", CODEC)
    top, span = PEOPLE["pay"].max(), np.ptp(PEOPLE["pay"])
    assert price(distance, "pay", top, top + span) == pytest.approx(2.0, abs=0.01)
    assert price(distance, "pay", top - 0.05 * span, top) > 0.05
    middle = PEOPLE["pay"].median()
    assert price(distance, "pay", middle, middle + 1e-6) < 1e-3


def test_a_changed_category_costs_one() -> None:
    for name in ("percentile", "gower"):
        distance = pricing.choose(name, CODEC)
        assert price(distance, "job", 0, 2) == price(distance, "job", 2, 1) == price(distance, "own", 0, 1) == 1.0


def test_gower_is_the_share_of_the_range() -> None:
    distance = pricing.choose("gower", CODEC)
    assert price(distance, "age", 20, 51) == pytest.approx(31 / np.ptp(PEOPLE["age"]))


@pytest.mark.parametrize("column", list(PEOPLE.columns))
def test_mad_is_the_papers_proximity_for_single_changes(column: str) -> None:
    distance, j = pricing.choose("mad", CODEC), SCHEMA.names.index(column)
    scale = metrics.Scale.of(PEOPLE, SCHEMA)
    after = PEOPLE.head(60).copy()
    after[column] = PEOPLE[column].to_numpy()[60:120]
    codes = Table.like(PEOPLE, SCHEMA).read(after).codes
    single = distance.single(np.array([j]), codes[:, [j]], CODES[:60])[:, 0]
    expected = metrics.proximity(scale, PEOPLE.head(60), after)
    np.testing.assert_allclose(single, expected, atol=1e-8)
    np.testing.assert_allclose(distance.total(codes, CODES[:60]), expected, atol=1e-8)


def test_factors_make_some_columns_dearer() -> None:
    plain, dear = pricing.choose("percentile", CODEC), pricing.choose({"age": 3, "job": 0.5}, CODEC)
    assert price(dear, "age", 20, 90) == pytest.approx(3 * price(plain, "age", 20, 90), abs=1e-8)
    assert price(dear, "job", 0, 1) == 0.5
    assert price(dear, "pay", 40, 60) == price(plain, "pay", 40, 60)
    same = pricing.choose({}, CODEC)
    np.testing.assert_array_equal(same.total(CODES[:9], CODES[9:18]), plain.total(CODES[:9], CODES[9:18]))


@pytest.mark.parametrize(
    ("distance", "message"),
    [
        ("euclid", r"^Unknown distance 'euclid'; expected one of 'percentile', 'gower', 'mad'\."),
        ("percentil", r"Did you mean 'percentile'\?"),
        (None, r"^Unknown distance None"),
        ({"agee": 2.0}, r"^distance must name columns of the table, such as 'gain', 'age', 'job'.*; got 'agee'\.$"),
        ({"age": -1.0}, r"^distance must give every column a factor above 0; got -1\.0 for 'age'\.$"),
        ({"age": 0}, r"got 0 for 'age'\.$"),
        ({"age": True}, r"got True for 'age'\.$"),
        ({"age": float("inf")}, r"got inf for 'age'\.$"),
        ({"age": float("nan")}, r"got nan for 'age'\.$"),
        ({"age": "2"}, r"got '2' for 'age'\.$"),
    ],
)
def test_a_wrong_distance_is_one_clear_sentence(distance: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        pricing.choose(distance, CODEC)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def explainer() -> FasterCE:
    def model(frame: pd.DataFrame) -> np.ndarray:
        return (frame["age"] / 20 + frame["pay"] / 10 > 8.5).to_numpy()

    same = (lambda matrix: matrix, lambda latent: latent)
    return FasterCE(model, autoencoder=same, progress=False, twin="never").fit(PEOPLE)


def test_a_dearer_column_is_changed_less_often(explainer: FasterCE) -> None:
    rows = PEOPLE.head(40)
    used = {}
    for name, distance in (("plain", {}), ("age", {"age": 20.0}), ("pay", {"pay": 20.0})):
        used[name] = explainer.explain(rows, distance=distance).to_frame()["changed"].map(lambda names: "age" in names).mean()
    assert used["age"] < used["plain"] < used["pay"]


def test_each_distance_is_smallest_where_it_was_asked_for(explainer: FasterCE) -> None:
    rows = PEOPLE.head(60)
    found = {name: explainer.explain(rows, distance=name) for name in pricing.NAMES}
    for name in pricing.NAMES:
        distance = pricing.choose(name, explainer.knowledge_.codec)
        mean = {other: distance.total(one.answers.codes, one.answers.before).mean() for other, one in found.items()}
        assert mean[name] <= 1.02 * min(mean.values()), name
        np.testing.assert_allclose(found[name].to_frame()["distance"].mean(), mean[name], atol=1e-6)


def test_percentile_is_the_default(explainer: FasterCE) -> None:
    rows = PEOPLE.head(10)
    usual, named = explainer.explain(rows), explainer.explain(rows, distance="percentile")
    pd.testing.assert_frame_equal(usual.to_frame(), named.to_frame())
