"""Every kind of target on real models, every answer re-asked: any other class, a chance, a number within bounds."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fasterce import FasterCE, load
from fasterce.config import Config
from fasterce.errors import ArtifactError, InputError, ModelError
from tests.samples import people

xgboost = pytest.importorskip("xgboost")

SAME = (lambda matrix: matrix, lambda latent: latent)
WAYS = [(method, engine) for method in ("closest", "sparse", "realistic", "all") for engine in ("hybrid", "latent", "paper")]


def points(frame: pd.DataFrame) -> np.ndarray:
    pay = 0.03 * frame["age"] + 0.06 * frame["pay"] - 0.05 * frame["debt"]
    return np.asarray(pay + 0.8 * frame["own"] + 0.6 * (frame["job"] == "nurse") - 3.8, dtype=float)


X, ROWS = people(), people(12, seed=1)
COLUMNS = list(X.columns)
NOISY = points(X) + np.random.default_rng(5).normal(0, 0.7, len(X))
GRADE = np.digitize(NOISY, [-0.7, 0.7])


def piped(model: Any) -> Any:
    columns = make_column_transformer((StandardScaler(), ["age", "pay", "debt"]), (OneHotEncoder(), ["job", "own"]))
    return make_pipeline(columns, model)


def classifier(kind: str, y: np.ndarray) -> Any:
    known = {
        "logistic": LogisticRegression(max_iter=1000),
        "forest": RandomForestClassifier(20, random_state=0),
        "boosted": xgboost.XGBClassifier(n_estimators=20, n_jobs=1),
    }
    return piped(known[kind]).fit(X, y)


def explaining(model: Any, **options: Any) -> FasterCE:
    return FasterCE(model, autoencoder=SAME, progress=False, config=Config.fast(), **options).fit(X)


@cache
def chances(kind: str, classes: int) -> FasterCE:
    return explaining(classifier(kind, GRADE if classes == 3 else (NOISY > 0).astype(int)))


def money(frame: pd.DataFrame) -> np.ndarray:
    return 1000 * points(frame)


@cache
def numbers(kind: str) -> FasterCE:
    if kind == "function":
        return explaining(money, task="regression")
    model = GradientBoostingRegressor(n_estimators=40, random_state=0) if kind == "boosted" else LinearRegression()
    return explaining(piped(model).fit(X, 1000 * NOISY))


def predicted(explainer: FasterCE, frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(getattr(explainer.model, "predict", explainer.model)(frame))


def same_alone(explainer: FasterCE, rows: pd.DataFrame, **options: Any) -> None:
    """Each row by itself gets the answers it gets among the others; a model's own score may differ in its last bits."""
    together = explainer.explain(rows, **options)
    long = together.to_frame()
    for k, name in enumerate(rows.index):
        alone = explainer.explain(rows.iloc[[k]], **options)
        assert alone.status.iloc[0] == together.status.iloc[k]
        assert alone.reason.iloc[0] == together.reason.iloc[k]
        mine = long[long["query"] == name].reset_index(drop=True)
        assert len(alone.to_frame()) == len(mine)
        if not len(mine):
            continue
        own = [name for name in ("new_score", "new_prediction") if name in mine and mine[name].dtype.kind == "f"]
        exactly = [column for column in mine.columns if column not in own]
        pd.testing.assert_frame_equal(alone.to_frame()[exactly], mine[exactly], check_exact=True)
        np.testing.assert_allclose(alone.to_frame()[own], mine[own], rtol=1e-9)


# -- classes ---------------------------------------------------------------------------------------------------------------

LABELS: dict[str, list[Any]] = {
    "text": ["low", "mid", "top"],
    "whole numbers": [10, 20, 30],
    "numpy numbers": [np.int64(1), np.int64(5), np.int64(9)],
    "with an 'any other'": ["any other", "mid", "top"],
}


@cache
def graded(labels: str) -> FasterCE:
    names = np.array(LABELS[labels])

    def grade(frame: pd.DataFrame) -> np.ndarray:
        return names[np.digitize(points(frame), [-0.7, 0.7])]

    return explaining(grade)


@pytest.mark.parametrize(("method", "engine"), WAYS)
@pytest.mark.parametrize("labels", ["text", "whole numbers", "numpy numbers"])
def test_any_other_class_is_whatever_the_row_has_not(labels: str, method: Any, engine: Any) -> None:
    explainer = graded(labels)
    result = explainer.explain(ROWS, method, target="any other", engine=engine)
    assert (result.target == "any other").all()
    assert set(result.status) <= {"found", "none_found"}, "no row is anywhere but where it is"
    long = result.to_frame()
    assert (result.status == "found").mean() > 0.7
    assert (predicted(explainer, long[COLUMNS]) != result.prediction.loc[long["query"]].to_numpy()).all()


@pytest.mark.parametrize("kind", ["logistic", "forest", "boosted"])
def test_any_other_is_never_farther_than_the_nearest_named_class(kind: str) -> None:
    """By scores the search is the same for both, so no named class may beat the free choice by much."""
    explainer = chances(kind, 3)
    free = explainer.explain(ROWS, target="any other")
    assert (free.status == "found").all()
    named = pd.concat([explainer.explain(ROWS, target=one).to_frame() for one in explainer.classes_])
    nearest = named.groupby("query")["distance"].min().loc[list(ROWS.index)]
    assert free.to_frame()["distance"].mean() <= 1.25 * nearest.mean()


@pytest.mark.parametrize("labels", list(LABELS))
def test_a_named_class_in_any_spelling(labels: str) -> None:
    explainer = graded(labels)
    wanted = LABELS[labels][0]
    for spelling in (wanted, np.asarray(wanted)[()], wanted.item() if isinstance(wanted, np.generic) else wanted):
        result = explainer.explain(ROWS, target=spelling)
        there = predicted(explainer, ROWS) == wanted
        assert ((result.status == "already_target") == there).all()
        assert (result.status[~there] == "found").all()
        assert (predicted(explainer, result.to_frame()[COLUMNS]) == wanted).all()
        assert (result.target == wanted).all()


def test_a_class_called_any_other_is_that_class() -> None:
    result = graded("with an 'any other'").explain(ROWS, target="any other")
    assert (result.status[result.prediction == "any other"] == "already_target").all()
    assert (result.prediction == "any other").any()
    assert (predicted(graded("with an 'any other'"), result.to_frame()[COLUMNS]) == "any other").all()


def test_any_other_of_two_booleans_is_the_other() -> None:
    explainer = explaining(lambda frame: points(frame) > 0)
    plain, other = explainer.explain(ROWS), explainer.explain(ROWS, target="any other")
    pd.testing.assert_frame_equal(plain.to_frame(), other.to_frame())
    assert (other.target == ~other.prediction.astype(bool)).all()
    up = explainer.explain(ROWS, target=np.True_)
    assert ((up.status == "already_target") == (points(ROWS) > 0)).all()


@pytest.mark.parametrize("labels", ["text", "whole numbers"])
def test_any_other_alone_is_as_in_a_batch(labels: str) -> None:
    same_alone(graded(labels), ROWS.head(4), target="any other")
    same_alone(chances("boosted", 3), ROWS.head(4), target="any other", method="all", n=2)


# -- chances ---------------------------------------------------------------------------------------------------------------


def check_chances(explainer: FasterCE, rows: pd.DataFrame, result: Any, low: float, high: float) -> None:
    places = [list(explainer.classes_).index(label) for label in result.target]
    before = explainer.model.predict_proba(rows)[np.arange(len(rows)), places]
    np.testing.assert_array_equal(result.status == "already_target", (before >= low) & (before <= high))
    np.testing.assert_allclose(result.score, before, rtol=1e-9)
    long = result.to_frame()
    of = [places[rows.index.get_loc(name)] for name in long["query"]]
    after = explainer.model.predict_proba(long[COLUMNS])[np.arange(len(long)), of]
    assert ((after >= low) & (after <= high)).all()
    np.testing.assert_allclose(long["new_score"], after, rtol=1e-9)


@pytest.mark.parametrize(("method", "engine"), WAYS)
@pytest.mark.parametrize("bounds", [(0.7, 1), (0.2, 0.4)])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", ["logistic", "forest", "boosted"])
def test_a_wanted_chance_is_had(kind: str, classes: int, bounds: Any, method: Any, engine: Any) -> None:
    explainer = chances(kind, classes)
    target = None if classes == 2 else 2
    result = explainer.explain(ROWS, method, target=target, target_score=bounds, engine=engine)
    check_chances(explainer, ROWS, result, *bounds)
    if engine != "paper":
        assert set(result.status) <= {"found", "already_target"}


@pytest.mark.parametrize("kind", ["forest", "boosted"])
def test_a_row_exactly_on_the_bound_is_already_there(kind: str) -> None:
    """Log-odds and chances may disagree in the last bit; the model's own chance decides."""
    explainer = chances(kind, 3)
    many = people(60, seed=2)
    chance = explainer.model.predict_proba(many)[:, 2]
    for k in np.flatnonzero((chance > 0) & (chance < 1))[:15]:
        one = many.iloc[[k]]
        own = float(explainer.model.predict_proba(one)[0, 2])
        for bounds in ((own, 1), (0, own)):
            assert explainer.explain(one, target=2, target_score=bounds).status.iloc[0] == "already_target"
        above = explainer.explain(one, target=2, target_score=(np.nextafter(own, 2), 1))
        assert above.status.iloc[0] in ("found", "none_found")


def test_a_higher_chance_costs_more() -> None:
    explainer = chances("logistic", 2)
    rows = ROWS[explainer.model.predict(ROWS) == 0]
    cost = [explainer.explain(rows, target=1, target_score=(low, 1)).to_frame()["distance"].mean() for low in (0.5, 0.7, 0.9)]
    assert cost == sorted(cost)
    assert cost[0] < cost[2]


@pytest.mark.parametrize("kind", ["forest", "boosted"])
def test_a_wanted_chance_alone_is_as_in_a_batch(kind: str) -> None:
    same_alone(chances(kind, 3), ROWS.head(5), target=0, target_score=(0.2, 0.4))
    same_alone(chances(kind, 2), ROWS.head(3), target_score=(0.7, 1), method="all", n=2)


def test_a_chance_needs_chances() -> None:
    with pytest.raises(InputError, match=r"^target_score needs a model with predict_proba that agrees"):
        graded("text").explain(ROWS, target="low", target_score=(0.7, 1))
    with pytest.raises(InputError, match=r"^target must name the class whose probability is meant, one of 0, 1, 2\.$"):
        chances("logistic", 3).explain(ROWS, target_score=(0.7, 1))


# -- numbers ---------------------------------------------------------------------------------------------------------------

BOUNDS = [(500, 700), (1500, None), (None, -1500)]


def check_numbers(explainer: FasterCE, rows: pd.DataFrame, result: Any, bounds: Any) -> None:
    low, high = (-np.inf if bounds[0] is None else bounds[0]), (np.inf if bounds[1] is None else bounds[1])
    before = predicted(explainer, rows)
    np.testing.assert_array_equal(result.status == "already_target", (before >= low) & (before <= high))
    np.testing.assert_allclose(result.prediction.astype(float), before, rtol=1e-9)
    long = result.to_frame()
    after = predicted(explainer, long[COLUMNS])
    assert ((after >= low) & (after <= high)).all()
    np.testing.assert_allclose(long["new_score"], after, rtol=1e-9)
    assert all(target == (low, high) for target in result.target)


@pytest.mark.parametrize(("method", "engine"), WAYS)
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("kind", ["boosted", "linear", "function"])
def test_a_wanted_number_is_had(kind: str, bounds: Any, method: Any, engine: Any) -> None:
    explainer = numbers(kind)
    before = predicted(explainer, ROWS)
    assert (before < 500).any()
    assert (before > 700).any(), "rows on both sides"
    result = explainer.explain(ROWS, method, target=bounds, engine=engine)
    check_numbers(explainer, ROWS, result, bounds)
    if engine != "paper":
        assert set(result.status) <= {"found", "already_target"}


@pytest.mark.parametrize("kind", ["boosted", "linear", "function"])
def test_a_wanted_number_alone_is_as_in_a_batch(kind: str) -> None:
    same_alone(numbers(kind), ROWS.head(4), target=(500, 700))
    same_alone(numbers(kind), ROWS.head(3), target=(None, -1500), method="all", n=2)


def test_several_options_for_a_number() -> None:
    result = numbers("linear").explain(ROWS, target=(500, 700), n=3)
    long = result.to_frame()
    assert long.groupby("query").size().max() == 3
    assert not long[["query", *COLUMNS]].duplicated().any()
    check_numbers(numbers("linear"), ROWS, result, (500, 700))


def test_a_number_already_there_is_left_alone() -> None:
    explainer = numbers("function")
    value = float(money(ROWS.head(1))[0])
    assert explainer.explain(ROWS.head(1), target=(value, value)).status.tolist() == ["already_target"]
    assert explainer.explain(ROWS.head(1), target=(None, value)).status.tolist() == ["already_target"]


def test_frozen_features_stay_for_a_number_too() -> None:
    result = numbers("linear").explain(ROWS, target=(500, 700), features_to_vary=["pay", "debt"])
    assert {name for names in result.to_frame()["changed"] for name in names} <= {"pay", "debt"}
    check_numbers(numbers("linear"), ROWS, result, (500, 700))


def test_numbers_that_no_row_can_reach_are_not_found() -> None:
    result = numbers("boosted").explain(ROWS.head(3), target=(10**9, None))
    assert (result.status == "none_found").all()
    assert (result.reason.str.len() > 10).all()


@pytest.mark.parametrize("target", [None, 500, (700, 500), (None, None), "high", (1, 2, 3), ("a", None)])
def test_a_number_needs_bounds(target: Any) -> None:
    with pytest.raises(InputError, match=r"target must"):
        numbers("linear").explain(ROWS, target=target)
    with pytest.raises(InputError, match=r"^target_score is for models that predict classes"):
        numbers("linear").explain(ROWS, target_score=(0.7, 1))


def test_the_task_is_what_the_model_says_or_the_caller() -> None:
    assert numbers("linear").state_.numbers is not None
    assert chances("logistic", 2).state_.numbers is None
    with pytest.raises(InputError, match=r"^task must be one of 'auto', 'classification', 'regression'; got 'ranking'\.$"):
        explaining(money, task="ranking")
    with pytest.raises(ModelError, match=r"task='regression'"):
        explaining(money)
    with pytest.raises(ModelError, match=r"one finite number"):
        explaining(lambda frame: np.where(points(frame) > 0, "yes", "no"), task="regression")


# -- saved and loaded ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["linear", "function"])
def test_a_saved_regression_explainer_returns_the_same(kind: str, tmp_path: Path) -> None:
    explainer = FasterCE(numbers(kind).model, progress=False, task="regression", config=Config.fast()).fit(X)
    explainer.save(tmp_path / "kept")
    again = load(tmp_path / "kept", explainer.model)
    assert again.task == "regression"
    assert again.state_.numbers == explainer.state_.numbers
    for bounds in BOUNDS:
        before, after = (one.explain(ROWS, target=bounds) for one in (explainer, again))
        pd.testing.assert_frame_equal(before.to_frame(), after.to_frame(), check_exact=True)
        pd.testing.assert_series_equal(before.prediction, after.prediction)
        assert before.target.tolist() == after.target.tolist()


def test_a_saved_classifier_still_knows_chances(tmp_path: Path) -> None:
    model = chances("logistic", 3).model
    explainer = FasterCE(model, progress=False, config=Config.fast()).fit(X)
    explainer.save(tmp_path / "kept")
    again = load(tmp_path / "kept", model)
    assert (again.task, again.state_.numbers) == ("auto", None)
    for options in ({"target": 2, "target_score": (0.2, 0.4)}, {"target": "any other"}):
        before, after = (one.explain(ROWS, **options).to_frame() for one in (explainer, again))
        pd.testing.assert_frame_equal(before, after, check_exact=True)


def test_a_regression_is_not_loaded_for_a_classifier(tmp_path: Path) -> None:
    FasterCE(numbers("linear").model, progress=False, config=Config.fast()).fit(X).save(tmp_path / "kept")
    with pytest.raises(ModelError, match=r"does not fit this model: The model must return one finite number"):
        load(tmp_path / "kept", lambda frame: np.full(len(frame), "yes"))
    with pytest.raises(ArtifactError):
        load(tmp_path / "nowhere", numbers("linear").model)
