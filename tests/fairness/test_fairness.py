"""A bias reading tells a model that discriminates from one that does not, and says how sure it is."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce import FasterCE, Schema
from fasterce.config import Config
from fasterce.data.table import Table
from fasterce.errors import FasterCEError, InputError, NotFittedError
from fasterce.explanation import CounterfactualArrays, Explanation
from fasterce.fairness import Angles, angles, recourse_gap
from fasterce.fairness.normals import chance_range
from fasterce.models.predictor import ModelUsage

IDENTITY = (lambda matrix: matrix, lambda latent: latent)


def people(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], rows),
            "pay": rng.normal(50, 12, rows).round(1),
            "hours": rng.integers(10, 60, rows),
            "age": rng.integers(18, 80, rows),
            "town": rng.choice(["oslo", "bonn", "rome"], rows),
        },
        index=[f"p{k}" for k in range(rows)],
    )


def fair(frame: pd.DataFrame) -> np.ndarray:
    return np.where(frame["pay"] + 0.5 * frame["hours"] > 70, "yes", "no")


def unfair(frame: pd.DataFrame) -> np.ndarray:
    return np.where(frame["pay"] + 0.5 * frame["hours"] - 25.0 * (frame["sex"] == "f") > 57, "yes", "no")


def three(frame: pd.DataFrame) -> np.ndarray:
    return np.array(["low", "mid", "high"])[np.digitize(frame["pay"], [45, 58])]


def fitted(model: Any) -> FasterCE:
    training = people()
    schema = Schema.infer(training, immutable=["sex"])
    return FasterCE(model, schema, autoencoder=IDENTITY, progress=False, compile="never", config=Config.fast()).fit(training)


@pytest.fixture(scope="module")
def fair_explainer() -> FasterCE:
    return fitted(fair)


@pytest.fixture(scope="module")
def unfair_explainer() -> FasterCE:
    return fitted(unfair)


def refused(explainer: FasterCE, rows: int = 200) -> pd.DataFrame:
    queries = people(seed=1)
    return queries[explainer.model(queries) == "no"].head(rows)


@pytest.fixture(scope="module")
def fair_costs(fair_explainer: FasterCE) -> Explanation:
    return fair_explainer.explain(refused(fair_explainer))


@pytest.fixture(scope="module")
def unfair_costs(unfair_explainer: FasterCE) -> Explanation:
    return unfair_explainer.explain(refused(unfair_explainer))


def by_hand(
    groups: Sequence[Any],
    distance: Sequence[float | None] | np.ndarray,
    status: Sequence[str] | None = None,
    changed: Sequence[int] = (),
) -> Explanation:
    """One row a distance; None for a row without an answer; `changed` are rows whose answer changes the group itself."""
    rows = pd.DataFrame({"kind": ["a", "b"] * (len(groups) // 2) + ["a"] * (len(groups) % 2), "pay": np.arange(len(groups))})
    table = Table.like(rows, Schema.infer(rows))
    query = np.array([k for k, value in enumerate(distance) if value is not None], dtype=np.intp)
    before = table.read(rows).codes[query]
    codes = before.copy()
    codes[:, 1] = (codes[:, 1] + 1) % len(rows)
    codes[np.isin(query, changed), 0] = 1 - codes[np.isin(query, changed), 0]
    words = list(status) if status else ["none_found" if value is None else "found" for value in distance]
    plain = pd.Series("", index=rows.index)
    paid = np.array([value for value in distance if value is not None], dtype=float)
    explained = CounterfactualArrays(
        query, np.zeros_like(query), np.full(len(query), "closest", dtype=object), before, codes, paid
    )
    return Explanation(rows, pd.Series(words), plain, plain, plain, explained, table, ModelUsage(1, len(rows)), 0.1)


def line(frame: pd.DataFrame, **where: Any) -> pd.Series:
    kept = frame[np.logical_and.reduce([frame[name] == value for name, value in where.items()])]
    assert len(kept) == 1
    return kept.iloc[0]


def sentence(caught: pytest.ExceptionInfo[BaseException]) -> str:
    text = str(caught.value)
    assert isinstance(caught.value, FasterCEError)
    assert "\n" not in text
    assert text.endswith((".", "?"))
    return text


# Angles


def test_the_angle_tells_a_model_that_looks_at_sex_from_one_that_does_not(
    fair_explainer: FasterCE, unfair_explainer: FasterCE
) -> None:
    blind = line(angles(fair_explainer, ["sex"]).frame, category="f", kind="prediction")
    seeing = line(angles(unfair_explainer, ["sex"]).frame, category="f", kind="prediction")
    assert not blind["telling"]
    assert abs(blind["degrees"] - 90) < 15
    assert seeing["telling"]
    assert seeing["degrees"] > seeing["chance_high"]
    assert seeing["other_category"] == "yes"


def test_two_categories_face_opposite_ways(unfair_explainer: FasterCE) -> None:
    frame = angles(unfair_explainer, ["sex"]).frame
    first, second = (line(frame, category=label, kind="prediction") for label in "fm")
    assert first["degrees"] + second["degrees"] == pytest.approx(180, abs=0.5)
    assert (first["mirror"], second["mirror"]) == (False, True)


def test_every_other_feature_and_category_has_a_line(fair_explainer: FasterCE) -> None:
    frame = angles(fair_explainer, ["town", "age"]).frame
    others = frame[(frame["protected"] == "age") & (frame["kind"] == "feature")]
    assert set(zip(others["other"], others["other_category"], strict=True)) == {
        ("sex", "f"), ("sex", "m"), ("pay", None), ("hours", None), ("town", "oslo"), ("town", "bonn"), ("town", "rome")
    }  # fmt: skip
    assert (frame["protected"] == "town").sum() == 3 * (1 + 5)
    assert frame["degrees"].between(0, 180).all()


def test_of_more_classes_each_has_a_line() -> None:
    frame = angles(fitted(three), ["age"]).frame
    assert set(frame[frame["kind"] == "prediction"]["other_category"]) == {"low", "mid", "high"}


def test_a_copy_of_the_outcome_has_a_small_angle(fair_explainer: FasterCE) -> None:
    pay = line(angles(fair_explainer, ["pay"]).frame, kind="prediction")
    assert pay["degrees"] < 45
    assert pay["telling"]


def test_an_attribute_the_latent_space_does_not_hold_is_never_telling() -> None:
    """An autoencoder that drops the sex: whatever angle comes out, nothing may be read into it."""
    training = people()

    def decode(latent: np.ndarray) -> np.ndarray:
        odd = np.arange(len(latent)) % 2 == 0
        return np.column_stack([latent[:, :3], odd, ~odd, latent[:, 3:]])

    dropped = (lambda matrix: np.delete(matrix, [3, 4], axis=1), decode)
    explainer = FasterCE(
        unfair, Schema.infer(training), autoencoder=dropped, progress=False, compile="never", config=Config.fast()
    ).fit(training)
    result = angles(explainer, ["sex"])
    assert (result.frame["fit"] < 0.2).all()
    assert not result.frame["telling"].any()
    assert "poor fit" in str(result) or "no hyperplane" in str(result)


def with_normal_of_age(explainer: FasterCE, normal: np.ndarray | float) -> FasterCE:
    """The same explainer with another hyperplane for the age, the third of the numbers."""
    planes = explainer.state_.search.hyperplanes
    normals = planes.normals.copy()
    normals[2] = normal
    changed = FasterCE(explainer.model)
    changed.__dict__.update(explainer.__dict__)
    search = replace(explainer.state_.search, hyperplanes=replace(planes, normals=normals))
    changed.state_ = replace(explainer.state_, search=search)
    return changed


def test_a_hyperplane_without_direction_has_no_angle(fair_explainer: FasterCE) -> None:
    result = angles(with_normal_of_age(fair_explainer, 0.0), ["age"])
    assert result.frame["degrees"].isna().all()
    assert not result.frame["telling"].any()
    assert "no hyperplane" in str(result)


def test_an_angle_of_a_hyperplane_that_does_not_fit_is_not_telling(fair_explainer: FasterCE) -> None:
    """An age that stands where the pay does: no angle to it, on whichever side it is, says anything."""
    changed = with_normal_of_age(fair_explainer, fair_explainer.state_.search.hyperplanes.normals[0])
    protected, other = (
        line(angles(changed, [name]).frame, protected=name, kind="feature", other=beside)
        for name, beside in (("age", "pay"), ("pay", "age"))
    )
    assert protected["degrees"] == pytest.approx(0, abs=1e-3)
    assert protected["beyond_chance"]
    assert not protected["telling"]
    assert not other["telling"]
    assert protected["fit"] == other["other_fit"] < 0
    assert protected["other_fit"] == other["fit"] > 0.9


def test_fit_is_high_where_the_latent_space_is_the_data_itself(fair_explainer: FasterCE) -> None:
    quality = angles(fair_explainer, ["sex"]).quality
    assert len(quality) == 3 + 2 + 3 + 2
    assert (quality[quality["kind"] == "feature"]["fit"] > 0.95).all()
    report = fair_explainer.report_.features
    assert line(quality, name="age")["hyperplane"] == report.loc["age", "hyperplane"]


@given(dimensions=st.integers(2, 40))
def test_random_directions_lie_within_the_chance_range_as_often_as_documented(dimensions: int) -> None:
    drawn = np.random.default_rng(dimensions).normal(size=(2, 4000, dimensions))
    first, second = drawn / np.linalg.norm(drawn, axis=2, keepdims=True)
    degrees = np.degrees(np.arccos((first * second).sum(axis=1)))
    low, high = chance_range(dimensions)
    assert low + high == pytest.approx(180)
    assert ((degrees > low) & (degrees < high)).mean() == pytest.approx(0.95, abs=0.015)


def test_in_one_dimension_every_angle_is_chance() -> None:
    assert chance_range(1) == (0.0, 180.0)


@pytest.mark.parametrize(
    ("protected", "code", "received"),
    [(["sec"], "unknown_protected", "sec"), ([], "no_columns", None), (3, "not_columns", "int")],
)
def test_invalid_protected_columns_are_rejected(fair_explainer: FasterCE, protected: Any, code: str, received: Any) -> None:
    with pytest.raises(InputError) as caught:
        angles(fair_explainer, protected)
    problem = caught.value.problem
    assert (problem.code, problem.option, problem.received) == (f"fairness.{code}", "protected", received)
    assert problem.details.get("suggestion") == ("sex" if code == "unknown_protected" else None)
    assert sentence(caught)


def test_angles_need_a_fitted_explainer() -> None:
    with pytest.raises(NotFittedError):
        angles(FasterCE(fair), ["sex"])
    with pytest.raises(InputError) as caught:
        angles(fair, ["sex"])  # type: ignore[arg-type]
    assert "FasterCE" in sentence(caught)
    assert caught.value.problem.code.startswith("fairness.not_an_explain")


def test_one_name_is_a_list_of_one(fair_explainer: FasterCE) -> None:
    one, listed = angles(fair_explainer, "sex"), angles(fair_explainer, ["sex", "sex"])
    assert isinstance(one, Angles)
    pd.testing.assert_frame_equal(one.frame, listed.frame)


# Recourse


def test_the_gap_tells_a_model_that_looks_at_sex_from_one_that_does_not(
    fair_costs: Explanation, unfair_costs: Explanation
) -> None:
    def women_pay_more(explained: Explanation) -> tuple[float, float]:
        """The interval of women's costs minus men's, whoever is more."""
        frame = recourse_gap(explained, "sex").frame
        other = frame[~frame["reference"]].iloc[0]
        low, high = other["difference_low"], other["difference_high"]
        return (low, high) if other["group"] == "f" else (-high, -low)

    assert women_pay_more(unfair_costs)[0] > 0.05
    low, high = women_pay_more(fair_costs)
    assert low < 0 < high


def test_costs_are_those_of_the_best_counterfactuals(unfair_costs: Explanation) -> None:
    frame = recourse_gap(unfair_costs, "sex").frame
    best = unfair_costs.to_frame().query("rank == 0")
    for label in "fm":
        costs = best.loc[(best["sex"] == label).to_numpy(), "distance"]
        one = line(frame, group=label)
        assert (one["mean"], one["median"]) == pytest.approx((costs.mean(), costs.median()))
        assert one["mean_low"] <= one["mean"] <= one["mean_high"]
        assert one["median_low"] <= one["median"] <= one["median_high"]


def test_permuting_rows_changes_nothing(unfair_explainer: FasterCE, unfair_costs: Explanation) -> None:
    rows = unfair_costs.rows
    other = unfair_explainer.explain(rows.sample(frac=1, random_state=3))
    groups = pd.Series(np.where(np.arange(len(rows)) % 3 == 0, "x", "y"), index=rows.index, name="third")
    for given_groups in ("sex", "age", groups, {"a": groups, "b": rows["hours"]}):
        ours, theirs = recourse_gap(unfair_costs, given_groups), recourse_gap(other, given_groups)
        pd.testing.assert_frame_equal(ours.frame, theirs.frame, check_exact=True)


def test_the_interval_covers_a_known_difference_about_as_often_as_it_says() -> None:
    groups = ["a", "b"] * 60
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(150):
        costs = rng.gamma(2.0, 0.5, 120) + np.where(np.array(groups) == "b", 0.4, 0.0)
        frame = recourse_gap(by_hand(groups, costs), "kind", n_boot=300).frame
        one = line(frame, group="b")
        covered.append(one["difference_low"] <= 0.4 <= one["difference_high"])
    assert 0.88 <= np.mean(covered) <= 0.99


def test_the_same_seed_gives_the_same_interval_and_another_one_nearly() -> None:
    explained = by_hand(["a", "b"] * 20, np.linspace(0, 1, 40))
    one, again, other = (recourse_gap(explained, "kind", seed=seed).frame for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one, again, check_exact=True)
    assert one["mean_low"].tolist() != other["mean_low"].tolist()
    assert one["mean_low"].tolist() == pytest.approx(other["mean_low"].tolist(), abs=0.05)


def test_rows_without_recourse_count_and_rows_that_need_none_do_not() -> None:
    distance = [0.2, 0.4] * 6 + [None, None, None, None]
    status = ["found"] * 12 + ["none_found", "stopped", "already_target", "invalid_input"]
    explained = by_hand(["a", "b"] * 8, distance, status)
    result = recourse_gap(explained, "kind")
    first, second = (line(result.frame, group=label) for label in "ab")
    assert (first["rows"], first["found"], first["left_out"]) == (7, 6, 1)
    assert first["share_found"] == pytest.approx(6 / 7)
    assert first["share_without"] == pytest.approx(1 / 7)
    assert 0 < first["share_found_low"] < 6 / 7 < first["share_found_high"] < 1
    assert second["difference"] == pytest.approx(0.2)
    assert result.left_out == {"already_target": 1, "invalid_input": 1}
    assert result.stopped == 1


def test_the_share_of_counterfactuals_that_change_the_attribute_is_reported(unfair_costs: Explanation) -> None:
    explained = by_hand(["a", "b"] * 5, [0.1] * 10, changed=[0, 2])
    assert recourse_gap(explained, "kind").frame["changes_it"].tolist() == [0.4, 0.0]
    assert recourse_gap(unfair_costs, "sex").frame["changes_it"].tolist() == [0.0, 0.0]
    outside = pd.Series(["x", "y"] * 5, name="faith")
    assert recourse_gap(explained, outside).frame["changes_it"].isna().all()


def test_a_group_of_few_is_shown_without_an_interval() -> None:
    explained = by_hand(["a", "b"] * 6, [0.1, 0.2] * 6)
    groups = pd.Series(["x"] * 8 + ["y"] * 4)
    frame = recourse_gap(explained, groups).frame
    few, many = line(frame, group="y"), line(frame, group="x")
    assert few["few"]
    assert few["mean"] == pytest.approx(0.15)
    assert few[["mean_low", "mean_high", "median_low", "share_found_low", "difference_low", "difference_high"]].isna().all()
    assert few["difference"] == pytest.approx(0.0)
    assert not many["few"]
    assert many["reference"]
    assert many["mean_low"] < many["mean_high"]


def test_a_group_without_any_counterfactual_is_shown() -> None:
    frame = recourse_gap(by_hand(["a", "b"] * 6, [0.1, None] * 6), "kind").frame
    none = line(frame, group="b")
    assert (none["rows"], none["found"], none["share_found"], none["share_without"]) == (6, 0, 0.0, 1.0)
    assert np.isnan(none["mean"])
    assert none["share_found_high"] < 0.5


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_missing_labels_are_a_group(dtype: str) -> None:
    explained = by_hand(["a", "b"] * 6, [0.1, 0.2] * 6)
    groups = pd.Series(["x"] * 5 + [None] * 7, dtype=dtype)
    frame = recourse_gap(explained, groups).frame
    assert frame["group"].tolist() == ["x", "missing"]
    assert frame["rows"].tolist() == [5, 7]


def test_a_group_called_missing_is_not_mixed_with_missing_labels() -> None:
    explained = by_hand(["a", "b"] * 6, [0.1, 0.2] * 6)
    frame = recourse_gap(explained, pd.Series(["missing"] * 5 + [None] * 7, dtype=object)).frame
    assert frame["rows"].tolist() == [5, 7]
    assert frame["group"].is_unique


def test_numbers_are_cut_into_bands_and_few_values_are_not() -> None:
    explained = by_hand(["a", "b"] * 20, np.linspace(0.1, 0.5, 40))
    ages = pd.Series(np.arange(40.0) + 20, name="age")
    ages[0] = np.nan
    frame = recourse_gap(explained, ages, bands=3).frame
    assert frame["group"].tolist() == ["21 – 33", "34 – 46", "47 – 59", "missing"]
    assert frame["rows"].tolist() == [13, 13, 13, 1]
    assert recourse_gap(explained, pd.Series([0, 1] * 20)).frame["group"].tolist() == [0, 1]
    assert recourse_gap(explained, pd.Series([True, False] * 20)).frame["group"].tolist() == [False, True]


@given(
    values=st.lists(st.one_of(st.floats(allow_nan=True), st.integers(-3, 3).map(float)), min_size=12, max_size=12),
    bands=st.integers(2, 6),
)
def test_every_row_is_in_one_band_and_bands_do_not_overlap(values: list[float], bands: int) -> None:
    explained = by_hand(["a", "b"] * 6, [0.1, 0.2] * 6)
    series = pd.Series(values)
    try:
        frame = recourse_gap(explained, series, bands=bands, n_boot=100).frame
    except InputError:
        assert series.nunique(dropna=False) < 2
        return
    assert frame["rows"].sum() == 12
    assert len(frame) <= bands + 1
    assert (frame["rows"] > 0).all()


@pytest.mark.parametrize("often", [0, 9])
def test_a_value_most_people_share_is_a_band_of_its_own(often: int) -> None:
    explained = by_hand(["a", "b"] * 20, [0.1] * 40)
    groups = pd.Series([often] * 34 + [3, 4, 5, 6, 7, 8])
    shared = line(recourse_gap(explained, groups).frame, rows=34)
    assert shared["group"] == str(often)


def test_rows_that_could_not_be_read_are_counted_and_do_not_stop_the_others(unfair_explainer: FasterCE) -> None:
    rows = refused(unfair_explainer, 60).astype({"age": object, "sex": object})
    rows.iloc[0, rows.columns.get_loc("age")] = "old"
    rows.iloc[1, rows.columns.get_loc("sex")] = "x"
    result = recourse_gap(unfair_explainer.explain(rows), ["age", "sex"])
    assert result.left_out == {"invalid_input": 2}
    assert result.frame.groupby("attribute")[["rows", "left_out"]].sum().to_numpy().tolist() == [[58, 2], [58, 2]]
    assert line(result.frame, group="missing")["rows"] == 0
    assert line(result.frame, group="x")["rows"] == 0


def test_ordered_categories_keep_their_order() -> None:
    explained = by_hand(["a", "b"] * 6, [0.1, 0.2] * 6)
    grades = pd.Categorical(["low", "mid", "high"] * 4, ["low", "mid", "high", "never"], ordered=True)
    assert recourse_gap(explained, pd.Series(grades)).frame["group"].tolist() == ["low", "mid", "high"]


def test_a_series_is_aligned_by_its_index() -> None:
    explained = by_hand(["a", "b"] * 6, [0.1, 0.2] * 6)
    turned = explained.rows["kind"].sample(frac=1, random_state=0).rename("kind")
    pd.testing.assert_frame_equal(recourse_gap(explained, turned).frame, recourse_gap(explained, "kind").frame)


def test_several_attributes_stand_below_each_other(unfair_costs: Explanation) -> None:
    frame = recourse_gap(unfair_costs, ["sex", "town"]).frame
    assert frame["attribute"].tolist() == ["sex"] * 2 + ["town"] * 3
    assert frame.groupby("attribute")["reference"].sum().tolist() == [1, 1]
    alone = recourse_gap(unfair_costs, "town").frame
    pd.testing.assert_frame_equal(frame[2:].reset_index(drop=True), alone, check_exact=True)


def test_costs_can_be_features_changed_or_ones_own() -> None:
    explained = by_hand(["a", "b"] * 5, [0.1] * 10, changed=[0, 2, 4, 6, 8])
    assert recourse_gap(explained, "kind", measure="n_changed").frame["mean"].tolist() == [2.0, 1.0]

    def pay_rise(before: pd.DataFrame, after: pd.DataFrame) -> pd.Series:
        return (after["pay"] - before["pay"]).abs()

    result = recourse_gap(explained, "kind", measure=pay_rise)
    assert result.frame["mean"].tolist() == [1.0, (1 + 1 + 1 + 1 + 9) / 5]
    assert result.measure == "pay_rise"


COUNTERFACTUALS = by_hand(["a", "b"] * 6, [0.1, 0.2] * 6)


@pytest.mark.parametrize(
    ("groups", "options", "code", "column", "received"),
    [
        ("kid", {}, "fairness.unknown_group", None, "kid"),
        (["kind", "sexx"], {}, "fairness.unknown_group", None, "sexx"),
        ([], {}, "fairness.no_columns", None, None),
        ({"x", "y"}, {}, "fairness.not_groups", None, "set"),
        ({"x": [1, 2]}, {}, "fairness.not_a_series", "x", "list"),
        (pd.Series(["x", "y"], name="g"), {}, "fairness.group_count", "g", 2),
        (pd.Series(["x", "y"] * 6, index=range(1, 13), name="g"), {}, "fairness.other_index", "g", 12),
        (pd.Series(["x", "y"] * 6, index=[0] * 12, name="g"), {}, "fairness.repeated_labels", "g", None),
        (pd.Series(["x"] * 12, name="g"), {}, "fairness.one_group", "g", ["x"]),
        (pd.Series([["x"], ["y"]] * 6, name="g"), {}, "fairness.not_plain_values", "g", ...),
        ("kind", {"measure": "distanse"}, "options.unknown_choice", None, "distanse"),
        ("kind", {"measure": lambda before, after: [1.0]}, "fairness.cost_count", None, (1,)),
        ("kind", {"measure": lambda before, after: ["much"] * 12}, "fairness.costs_not_numbers", None, ["much"] * 12),
        ("kind", {"measure": lambda before, after: np.full(12, np.nan)}, "fairness.costs_not_finite", None, None),
        ("kind", {"bands": 1}, "options.not_a_count", None, 1),
        ("kind", {"n_boot": 10}, "options.not_a_count", None, 10),
        ("kind", {"seed": -1}, "options.not_a_count", None, -1),
    ],
)
def test_groups_that_cannot_be_compared_are_rejected(
    groups: Any, options: dict[str, Any], code: str, column: Any, received: Any
) -> None:
    with pytest.raises(InputError) as caught:
        recourse_gap(COUNTERFACTUALS, groups, **options)
    problem = caught.value.problem
    assert (problem.code, problem.column) == (code, column)
    assert received is ... or problem.received == received
    assert problem.option in (None, "groups", *options)
    assert sentence(caught)


def test_nothing_found_cannot_be_compared() -> None:
    with pytest.raises(InputError) as caught:
        recourse_gap(by_hand(["a", "b"], [None, None]), "kind")
    assert caught.value.problem.code == "fairness.nothing_found"
    assert sentence(caught)


def test_only_an_explanation_can_be_compared() -> None:
    with pytest.raises(InputError) as caught:
        recourse_gap(pd.DataFrame(), "kind")
    assert "got DataFrame" in sentence(caught)
