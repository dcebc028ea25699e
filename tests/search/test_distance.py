"""Distances, and the option `distance`."""

from collections.abc import Hashable
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from fasterce import FasterCE, metrics
from fasterce.config import Config
from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import MISSING, Schema
from fasterce.data.table import Table
from fasterce.errors import InputError
from fasterce.options import DistanceName
from fasterce.search.distance import NAMES, Curve, Distance, choose

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


def frequent_value() -> Curve:
    """Six people: nobody below 1, three at 1, then one each at 2, 4 and 8."""
    frame = pd.DataFrame({"x": [1.0, 1.0, 1.0, 2.0, 4.0, 8.0] * 40})
    schema = Schema.infer(frame)
    codes = Table.like(frame, schema).read(frame).codes
    return Distance.percentile(Codec(schema, Profile.measure(codes, schema))).curves[0]


def test_a_curve_never_falls_and_goes_on_beyond_its_ends() -> None:
    curve = frequent_value()
    heights = curve.at(np.linspace(-5, 20, 500))
    assert (np.diff(heights) >= 0).all()
    np.testing.assert_allclose(curve.at(np.array([20.0])) - curve.at(np.array([18.0])), 2 * curve.slope)


def test_leaving_a_frequent_value_passes_the_rows_at_it() -> None:
    curve = frequent_value()
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


def test_mad_is_a_norm_of_deviations_plus_a_share_of_categories() -> None:
    """The formula of CERTIFAI: 3 numbers and 2 categories of 5 columns."""
    mad = Distance.mad(np.array([2.0, 1.0, 0.5, 1.0, 4.0]), np.array([0, 2, 4]))
    row, other = np.array([1.0, 0.0, 0.0, 1.0, 8.0]), np.array([7.0, 1.0, 2.0, 1.0, 8.0])
    assert mad.total(other, row) == pytest.approx(3 / 5 * np.sqrt(3**2 + 4**2) + 2 / 5 * 1 / 2)
    only_numbers = Distance.mad(np.array([2.0, 1.0]), np.arange(2))
    assert only_numbers.total(np.array([6.0, 4.0]), np.zeros(2)) == pytest.approx(5.0)


def test_euclidean_is_one_norm_over_deviations_and_categories() -> None:
    euclidean = Distance.euclidean(np.array([2.0, 1.0, 0.5]), np.array([0, 2]), np.array([0]))
    assert euclidean.total(np.array([5.0, 1.0, 1.0]), np.array([1.0, 0.0, 0.0])) == pytest.approx(np.sqrt(2**2 + 1 + 2**2))
    assert euclidean.total(np.array([MISSING, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])) == pytest.approx(np.sqrt(2))


GAPPY = Distance.gower(np.array([10.0, 3.0, 0.5]), np.array([0, 2]), np.array([0]))


def test_to_and_from_missing_costs_what_a_category_costs() -> None:
    row = np.array([[2.0, 1.0, 0.5], [MISSING, 1.0, 0.5]])
    other = np.array([[MISSING, 1.0, 0.25], [9.0, 1.0, 0.5]])
    np.testing.assert_allclose(GAPPY.parts(other, row), [[1.0, 0.0, 0.5], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(GAPPY.total(row, row), [0.0, 0.0])
    np.testing.assert_allclose(GAPPY.times({0: 3.0}).total(other, row), [3.5, 3.0])
    np.testing.assert_allclose(GAPPY.shrinkable(other, row), [[0.0, 0.0, 0.5], [0.0, 0.0, 0.0]])
    mad = Distance.mad(np.array([2.0, 1.0, 1.0, 1.0]), np.array([0, 2]), np.array([0]))
    assert mad.total(np.array([MISSING, 0, 1.0, 0]), np.array([1.0, 0, 1.0, 0])) == 0.25, "one of four columns"


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


RNG = np.random.default_rng(0)
TRAINING = pd.DataFrame(
    {
        "gain": np.where(RNG.random(1000) < 0.9, 0, RNG.integers(1_000, 90_000, 1000)),
        "age": RNG.integers(18, 80, 1000),
        "job": RNG.choice(["clerk", "nurse", "smith"], 1000),
        "pay": RNG.normal(50, 10, 1000).round(1),
        "own": RNG.random(1000) < 0.5,
    }
)
SCHEMA = Schema.infer(TRAINING)
CODES = Table.like(TRAINING, SCHEMA).read(TRAINING).codes
CODEC = Codec(SCHEMA, Profile.measure(CODES, SCHEMA))


def price(distance: Distance, column: str, before: float, after: float) -> float:
    """What it costs the first person to have one column go from one value to another."""
    j = SCHEMA.names.index(column)
    row, other = CODES[0].copy(), CODES[0].copy()
    row[j], other[j] = before, after
    alone = distance.single(np.array([j]), np.array([[after]]), row[None])[0, 0]
    assert alone == distance.total(other, row)
    return float(alone)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_changed_costs_nothing_and_more_costs_more(name: Any) -> None:
    distance = choose(name, CODEC)
    np.testing.assert_array_equal(distance.total(CODES, CODES), 0.0)
    for start in (18.0, 45.0, 79.0):
        for way in (np.arange(start, 120.0), np.arange(start, -20.0, -1.0)):
            costs = [price(distance, "age", start, value) for value in way]
            assert (np.diff(costs) > 0).all(), "every year farther costs more, beyond the oldest too"


def test_percentile_is_the_share_of_rows_between() -> None:
    distance = choose("percentile", CODEC)
    for low, high in ((30, 40), (25, 70), (44, 45)):
        share = ((TRAINING["age"] > low) & (TRAINING["age"] < high)).mean() + (TRAINING["age"].isin([low, high])).mean() / 2
        assert price(distance, "age", low, high) == pytest.approx(share, abs=0.03)
        assert price(distance, "age", high, low) == price(distance, "age", low, high)


def test_leaving_a_frequent_value_passes_all_rows_at_it() -> None:
    distance = choose("percentile", CODEC)
    little, much = price(distance, "gain", 0, 1), price(distance, "gain", 0, 5_000)
    assert little == pytest.approx(0.45, abs=0.03), "half of the nine in ten who have none"
    assert much < little + 0.1
    assert price(distance, "gain", 20_000, 25_000) < 0.05
    assert price(choose("gower", CODEC), "gain", 0, 1) < 1e-4, "which is what gower makes of it"


def test_tails_are_expensive() -> None:
    """Between the last and the last but one percent there is hardly anyone to pass, so the way itself is charged."""
    distance = choose("percentile", CODEC)
    top, span = TRAINING["pay"].max(), np.ptp(TRAINING["pay"])
    assert price(distance, "pay", top, top + span) == pytest.approx(2.0, abs=0.01)
    assert price(distance, "pay", top - 0.05 * span, top) > 0.05
    middle = TRAINING["pay"].median()
    assert price(distance, "pay", middle, middle + 1e-6) < 1e-3


def test_a_changed_category_costs_one() -> None:
    for name in ("percentile", "gower"):
        distance = choose(name, CODEC)
        assert price(distance, "job", 0, 2) == price(distance, "job", 2, 1) == price(distance, "own", 0, 1) == 1.0


def test_gower_is_the_share_of_the_range() -> None:
    distance = choose("gower", CODEC)
    assert price(distance, "age", 20, 51) == pytest.approx(31 / np.ptp(TRAINING["age"]))


@pytest.mark.parametrize("column", list(TRAINING.columns))
def test_mad_is_the_papers_proximity_for_single_changes(column: str) -> None:
    distance, j = choose("mad", CODEC), SCHEMA.names.index(column)
    scale = metrics.Scale.of(TRAINING, SCHEMA)
    after = TRAINING.head(60).copy()
    after[column] = TRAINING[column].to_numpy()[60:120]
    codes = Table.like(TRAINING, SCHEMA).read(after).codes
    single = distance.single(np.array([j]), codes[:, [j]], CODES[:60])[:, 0]
    expected = metrics.proximity(scale, TRAINING.head(60), after)
    np.testing.assert_allclose(single, expected, atol=1e-8)
    np.testing.assert_allclose(distance.total(codes, CODES[:60]), expected, atol=1e-8)


def test_factors_multiply_costs() -> None:
    plain, multiplied = choose("percentile", CODEC), choose({"age": 3, "job": 0.5}, CODEC)
    assert price(multiplied, "age", 20, 90) == pytest.approx(3 * price(plain, "age", 20, 90), abs=1e-8)
    assert price(multiplied, "job", 0, 1) == 0.5
    assert price(multiplied, "pay", 40, 60) == price(plain, "pay", 40, 60)
    same = choose({}, CODEC)
    np.testing.assert_array_equal(same.total(CODES[:9], CODES[9:18]), plain.total(CODES[:9], CODES[9:18]))


@pytest.mark.parametrize(
    ("distance", "message"),
    [
        ("euclid", r"^distance must be one of 'percentile', 'gower', 'mad', 'euclidean'; got 'euclid'\."),
        ("percentil", r"Did you mean 'percentile'\?"),
        (None, r"^distance must be one of"),
        ({"agee": 2.0}, r"^distance must name columns of the table, such as 'gain', 'age', 'job'.*; got 'agee'\.$"),
        ({"age": -1.0}, r"^distance must give every column a number above 0; got -1 for 'age'\.$"),
        ({"age": 0}, r"got 0 for 'age'\.$"),
        ({"age": True}, r"got True for 'age'\.$"),
        ({"age": float("inf")}, r"got inf for 'age'\.$"),
        ({"age": float("nan")}, r"got nan for 'age'\.$"),
        ({"age": "2"}, r"got '2' for 'age'\.$"),
    ],
)
def test_an_invalid_distance_is_rejected(distance: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        choose(distance, CODEC)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def explainer() -> FasterCE:
    def model(frame: pd.DataFrame) -> np.ndarray:
        return (frame["age"] / 20 + frame["pay"] / 10 > 8.5).to_numpy()

    same = (lambda matrix: matrix, lambda latent: latent)
    return FasterCE(model, autoencoder=same, progress=False, compile="never", config=Config.fast()).fit(TRAINING)


def test_a_column_with_a_factor_is_changed_less_often(explainer: FasterCE) -> None:
    rows = TRAINING.head(40)
    used = {}
    factors: dict[str, dict[Hashable, float]] = {"plain": {}, "age": {"age": 20.0}, "pay": {"pay": 20.0}}
    for name, distance in factors.items():
        used[name] = explainer.explain(rows, distance=distance).to_frame()["changed"].map(lambda names: "age" in names).mean()
    assert used["age"] < used["plain"] < used["pay"]


def test_each_distance_is_smallest_where_it_is_minimized(explainer: FasterCE) -> None:
    rows = TRAINING.head(60)
    names: tuple[DistanceName, ...] = ("percentile", "gower", "mad", "euclidean")
    assert names == tuple(NAMES)
    found = {name: explainer.explain(rows, distance=name) for name in names}
    for name in names:
        distance = choose(name, explainer.state_.search.codec)
        mean = {other: distance.total(one.arrays.codes, one.arrays.before).mean() for other, one in found.items()}
        assert mean[name] <= 1.02 * min(mean.values()), name
        np.testing.assert_allclose(found[name].to_frame()["distance"].mean(), mean[name], atol=1e-6)


def test_percentile_is_the_default(explainer: FasterCE) -> None:
    rows = TRAINING.head(10)
    usual, named = explainer.explain(rows), explainer.explain(rows, distance="percentile")
    pd.testing.assert_frame_equal(usual.to_frame(), named.to_frame())


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_a_change_against_the_interest_costs_its_factor_in_every_distance(seed: int) -> None:
    """Whole rows and single edits cost the same, and the other direction costs what it did."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"amount": rng.normal(0, 5, 60).round(1), "months": rng.integers(1, 60, 60)})
    table["grade"] = pd.Categorical(rng.choice(["low", "mid", "high"], 60), ["low", "mid", "high"], ordered=True)
    schema = Schema.infer(table)
    preferred = schema.declare(
        {"amount": {"preferred": "lower", "against_cost": 4.0}, "grade": {"preferred": "higher", "against_cost": 2.0}}
    )
    codes = Table(schema, tuple(table.dtypes)).read(table).codes
    row, others = codes[:1], codes[1:]
    for name in get_args(DistanceName):
        plain, directed = (choose(name, Codec(one, Profile.measure(codes, one))) for one in (schema, preferred))
        up = others > row
        factor = np.where(up, [4.0, 1.0, 1.0], np.where(others < row, [1.0, 1.0, 2.0], 1.0))
        np.testing.assert_allclose(directed.parts(others, row), plain.parts(others, row) * factor)
        feature = np.array([0, 1, 2])
        for other in others[:5]:
            single = directed.single(feature, other[None], row)[0]
            np.testing.assert_allclose(single, directed.parts(other, row[0]), atol=1e-8)


def granted(frame: pd.DataFrame) -> Any:
    return (1.4 * frame["months"] + frame["savings"] > 120).to_numpy().astype(int)


@pytest.mark.parametrize("exact", [False, True], ids=["function", "linear"])
def test_the_search_avoids_changes_against_the_interest(exact: bool) -> None:
    """The nearest change is a longer term; declared to be against the interest, it is proposed only where nothing else is."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"months": rng.uniform(0, 100, 400).round(), "savings": rng.uniform(0, 100, 400).round()})
    model: Any = LogisticRegression(C=1e6, max_iter=1000).fit(people, granted(people)) if exact else granted
    decide = model.predict if exact else model
    schema = Schema.infer(people)
    # Savings alone, of which there are at most 100, can be enough for all of these.
    rows = people[(decide(people) == 0) & (people["months"] > 20)].head(20)
    changed = {}
    declared: dict[str, dict[str, Any]] = {"plain": {}, "preferred": {"months": {"preferred": "lower"}}}
    for name, columns in declared.items():
        explainer = FasterCE(model, schema.declare(columns), random_state=0, config=Config.fast()).fit(people)
        assert (explainer.state_.compiled is not None) == exact
        found = explainer.explain(rows)
        assert (found.status == "found").all()
        assert (decide(found.counterfactuals) == 1).all()
        frame = found.to_frame()
        changed[name] = sum("months" in names for names in frame["changed"])
        if name == "preferred":
            assert list(frame["against"]) == [[one for one in names if one == "months"] for names in frame["changed"]]
            kept = explainer.explain(rows, features_to_vary=["months"])
            flagged = [kept.changes(k)[0].against for k in range(len(kept.arrays))]
            assert flagged
            assert all(flagged)
        else:
            assert "against" not in frame
    assert changed["plain"] > 15
    assert changed["preferred"] <= 2
