"""From open rows to confirmed answers: who is asked, in which order, how much and how long."""

from dataclasses import replace
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from fasterce import FasterCE, Schema
from fasterce.config import Config, SearchConfig
from fasterce.data.table import Table
from fasterce.errors import InputError
from fasterce.models.predictor import Predictor
from fasterce.search import run
from tests.samples import people

SAME = (lambda matrix: matrix, lambda latent: latent)
FRAME = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "c": ["a", "b", "a", "b"]}, index=list("wxyz"))
TABLE = Table.like(FRAME, Schema.infer(FRAME))
METHODS = ("closest", "sparse", "realistic", "all")


def predictor(classes: tuple[Any, ...] = ("big", "small"), use_scores: bool = False) -> Predictor:
    return Predictor(lambda frame: ["big"] * len(frame), TABLE, classes, use_scores)


def points(frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(
        0.03 * frame["age"]
        + 0.06 * frame["pay"]
        - 0.05 * frame["debt"]
        + 0.8 * frame["own"]
        - 3.8
        + 0.6 * (frame["job"] == "nurse"),
        dtype=float,
    )


class Scored:
    """Two classes by `points`, counted; with a threshold other than 0 some labels are not what the scores say."""

    classes_ = np.array(["no", "yes"], dtype=object)

    def __init__(self, pause: float = 0.0) -> None:
        self.pause, self.rows, self.labels, self.scores = pause, 0, 0, 0
        self.threshold = 0.0

    def label(self, frame: pd.DataFrame) -> np.ndarray:
        return self.classes_[(points(frame) > self.threshold).astype(int)]

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        self.rows, self.labels = self.rows + len(frame), self.labels + 1
        sleep(self.pause)
        return self.label(frame)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        self.rows, self.scores = self.rows + len(frame), self.scores + 1
        sleep(self.pause)
        chance = 1 / (1 + np.exp(-points(frame)))
        return np.stack([1 - chance, chance], axis=1)

    def forget(self) -> None:
        self.rows = self.labels = self.scores = 0


def fitted(model: Any, **options: Any) -> FasterCE:
    return FasterCE(model, autoencoder=SAME, progress=False, compile="never", config=Config.fast(), **options).fit(
        people(600)
    )


@pytest.fixture(scope="module", params=["auto", "never"])
def explainer(request: pytest.FixtureRequest) -> FasterCE:
    return fitted(Scored(), scores=request.param)


ROWS = people(30, seed=1)


def check_true(explainer: FasterCE, result: Any, rows: pd.DataFrame) -> None:
    """N in, N out, and the model itself says of every answer what it should."""
    assert list(result.status.index) == list(rows.index) == list(result.counterfactuals.index)
    long, label = result.to_frame(), explainer.model.label
    assert (result.prediction == label(rows)).all()
    assert set(long["query"]) == set(rows.index[result.status == "found"])
    if len(long):
        assert (label(long[list(rows.columns)]) == result.target.loc[long["query"]].to_numpy()).all()


# -- what may be wanted ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 4}, r"^budget must be a whole number of at least 5; got 4\.$"),
        ({"budget": 8, "n": 3}, r"at least 9; got 8\.$"),
        ({"budget": 0}, r"at least 1; got 0\.$"),
        ({"budget": True}, r"got True\.$"),
        ({"budget": 20.0}, r"got 20\.0\.$"),
        ({"deadline": 0}, r"^deadline must be a number above 0; got 0\.$"),
        ({"deadline": -1.5}, r"got -1\.5\.$"),
        ({"deadline": float("inf")}, r"got inf\.$"),
        ({"deadline": "1"}, r"got '1'\.$"),
        ({"realism": 1.5}, r"^realism must be a number from 0 to 1; got 1\.5\.$"),
        ({"realism": "much"}, r"got 'much'\.$"),
        ({"n": 0}, r"^n must be a whole number from 1 to 100; got 0\.$"),
        ({"paper": {"step": 0}}, r"^paper\.step must be a number of at least 1e-06; got 0\.$"),
        ({"margin": -0.1}, r"^margin must be a number of at least 0; got -0\.1\.$"),
    ],
)
def test_what_cannot_be_wanted_is_one_clear_sentence(explainer: FasterCE, options: dict[str, Any], message: str) -> None:
    explainer.model.forget()
    with pytest.raises(InputError, match=message) as caught:
        explainer.explain(ROWS, **options)
    assert "\n" not in str(caught.value)
    assert explainer.model.rows == 0


def test_numpy_numbers_are_numbers(explainer: FasterCE) -> None:
    options: dict[str, Any] = {
        "n": np.int64(1),
        "budget": np.int32(50),
        "deadline": np.float32(60),
        "margin": np.float32(0),
        "realism": 1,
        "method": "realistic",
    }
    assert (explainer.explain(ROWS.head(2), **options).status == "found").all()


# -- who is asked ----------------------------------------------------------------------------------------------------------


def test_sources_take_turns_twin_scores_labels() -> None:
    class CompiledModel:
        scorer, labels_apart = None, False

        def evaluate(self, codes: Any) -> Any: ...

    one = run.sources(predictor(use_scores=True), CompiledModel(), raw=False)
    assert [(source.final, source.labels) for source in one] == [(False, False), (True, False), (True, True)]
    assert [source.informative for source in one] == [True, True, False]
    assert [source.labels for source in run.sources(predictor(), None, raw=False)] == [True]
    assert [source.informative for source in run.sources(predictor(), CompiledModel(), raw=False)] == [False, False]


def test_scores_are_used_while_searching_and_the_label_once_at_the_end() -> None:
    explainer = fitted(Scored())
    explainer.model.forget()
    result = explainer.explain(ROWS)
    assert (result.status == "found").all()
    assert explainer.model.labels == 1
    assert explainer.model.scores == result.usage.calls - 1


def test_probabilities_shown_are_those_the_search_has_evaluated() -> None:
    explainer = fitted(Scored())
    last: list[str] = []
    for name in ("predict", "predict_proba"):
        plain = getattr(explainer.model, name)

        def noted(frame: pd.DataFrame, name: str = name, plain: Any = plain) -> Any:
            last.append(name)
            return plain(frame)

        setattr(explainer.model, name, noted)
    result = explainer.explain(ROWS)
    assert last[-1] == "predict", "nothing is evaluated after verification"
    expected = explainer.model.predict_proba(result.counterfactuals[ROWS.columns]).max(axis=1)
    np.testing.assert_allclose(result.arrays.chance, expected, atol=1e-4)


def test_labels_only_never_asks_for_scores() -> None:
    explainer = fitted(Scored(), scores="never")
    explainer.model.forget()
    explainer.explain(ROWS)
    assert explainer.model.scores == 0


@pytest.fixture(scope="module")
def odd() -> tuple[FasterCE, pd.DataFrame]:
    """A threshold other than one half: no training row lies between the two, half of the model rows about do."""
    model = Scored()
    training = people(600)
    above = np.sort(points(training)[points(training) > 0])
    gap = np.diff(above).argmax()
    training = training[~((points(training) > 0) & (points(training) <= above[gap] + 0.2))]
    model.threshold = float(above[gap] + 0.1)
    explainer = FasterCE(model, autoencoder=SAME, progress=False, compile="never", config=Config.fast()).fit(training)
    assert explainer.state_.use_scores, "on the training rows the scores say what the labels say"
    many = people(6000, seed=3)
    between = many[(points(many) > 0) & (points(many) <= model.threshold)].head(6)
    assert len(between) == 6
    rows = pd.concat([ROWS.head(3), between.head(3), ROWS.iloc[3:6], between.tail(3)])
    return explainer, rows.set_axis([f"q{k}" for k in range(len(rows))])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("target", [None, "yes", "no"])
def test_rows_whose_label_is_not_what_the_scores_say_come_out_right(
    odd: tuple[FasterCE, pd.DataFrame], method: Any, target: Any
) -> None:
    explainer, rows = odd
    result = explainer.explain(rows, method, target=target)
    check_true(explainer, result, rows)
    there = explainer.model.label(rows) == target
    assert ((result.status == "already_target") == there).all()
    assert (result.status[~there] == "found").all()
    other = np.where(explainer.model.label(rows) == "yes", "no", "yes")
    assert (result.target == (other if target is None else target)).all()


def test_a_doubtful_row_gets_the_same_counterfactual_alone(odd: tuple[FasterCE, pd.DataFrame]) -> None:
    explainer, rows = odd
    together = explainer.explain(rows).to_frame().set_index("query")
    for name in rows.index:
        alone = explainer.explain(rows.loc[[name]]).to_frame().set_index("query")
        pd.testing.assert_frame_equal(alone, together.loc[[name]])


# -- how much --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 3])
def test_never_more_rows_are_evaluated_than_the_budget(explainer: FasterCE, method: Any, n: int) -> None:
    least = 3 + 2 * n * (3 if method == "all" else 1)
    for budget in (least, least + 1, least + 6, 25, 60):
        for rows in (ROWS, ROWS.head(1)):
            explainer.model.forget()
            result = explainer.explain(rows, method, n=n, budget=budget)
            assert explainer.model.rows == result.usage.rows <= budget * len(rows)
            check_true(explainer, result, rows)
            assert set(result.status) <= {"found", "stopped", "none_found"}


def test_a_budget_says_that_it_stopped(explainer: FasterCE) -> None:
    result = explainer.explain(ROWS, budget=6)
    stopped, found = result.status == "stopped", result.status == "found"
    assert (stopped | found).all()
    assert (result.reason[stopped] == "Stopped at the budget of 6 model rows before a counterfactual was found.").all()
    cut = "Stopped at the budget of 6 model rows: a nearer counterfactual may exist."
    assert (result.reason[found] == cut).all()


def _without_score(result: Any) -> pd.DataFrame:
    return result.to_frame().drop(columns="new_score", errors="ignore")


def test_more_budget_is_no_worse_and_enough_is_as_good_as_none(explainer: FasterCE) -> None:
    free = explainer.explain(ROWS)
    found, cost = [], []
    for budget in (6, 15, 30, 2000):
        result = explainer.explain(ROWS, budget=budget)
        found.append((result.status == "found").sum())
        cost.append(result.to_frame()["distance"].mean())
    assert found == sorted(found)
    assert found[-1] == len(ROWS)
    assert cost[-1] <= cost[-2]
    # The probability of the new class is one more call of the model, which is not made where there is a budget.
    pd.testing.assert_frame_equal(_without_score(result), _without_score(free))
    assert (result.reason == free.reason).all()


def test_a_budget_is_kept_for_doubtful_rows_too(odd: tuple[FasterCE, pd.DataFrame]) -> None:
    explainer, rows = odd
    for budget in (5, 9, 20, 45):
        explainer.model.forget()
        result = explainer.explain(rows, budget=budget)
        assert explainer.model.rows <= budget * len(rows)
        check_true(explainer, result, rows)


# -- how long --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["auto", "never"])
def slow(request: pytest.FixtureRequest) -> FasterCE:
    explainer = fitted(Scored(), scores=request.param)
    explainer.model.pause = 0.15
    return explainer


@pytest.mark.parametrize("method", METHODS)
def test_a_deadline_already_over_ends_after_about_two_calls(slow: FasterCE, method: Any) -> None:
    slow.model.forget()
    began = perf_counter()
    result = slow.explain(ROWS, method, deadline=1e-6)
    assert perf_counter() - began < 4 * slow.model.pause
    assert slow.model.labels + slow.model.scores <= 2
    check_true(slow, result, ROWS)
    assert (result.status == "stopped").all()
    assert (result.reason == "Stopped at the deadline of 1e-06 s before a counterfactual was found.").all()


def test_a_deadline_in_the_middle_returns_the_best_so_far(slow: FasterCE) -> None:
    calls = slow.explain(ROWS).usage.calls
    deadline = 4.5 * slow.model.pause
    began = perf_counter()
    result = slow.explain(ROWS, deadline=deadline)
    assert perf_counter() - began < deadline + 2 * slow.model.pause
    assert result.usage.calls < calls
    check_true(slow, result, ROWS)
    assert set(result.status) <= {"found", "stopped"}
    assert result.reason.str.startswith("Stopped at the deadline of 0.675 s").all()


def test_time_enough_changes_nothing(explainer: FasterCE) -> None:
    free, timed = explainer.explain(ROWS), explainer.explain(ROWS, deadline=600, budget=10_000)
    pd.testing.assert_frame_equal(_without_score(free), _without_score(timed))
    assert (free.reason == timed.reason).all()


def test_both_limits_are_named(explainer: FasterCE) -> None:
    result = explainer.explain(ROWS, budget=5, deadline=100)
    assert result.reason.str.startswith("Stopped at the budget of 5 model rows or the deadline of 100 s").all()


# -- fewer than wanted -----------------------------------------------------------------------------------------------------


def two_columns(model: Any, **options: Any) -> tuple[FasterCE, pd.DataFrame]:
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"pay": rng.integers(0, 10, 400), "kids": rng.integers(0, 5, 400)})
    fitted = model(X)
    explainer = FasterCE(fitted, progress=False, config=replace(Config.fast(), search=SearchConfig(**options)))
    return explainer.fit(X), X


def trees(X: pd.DataFrame) -> Any:
    return DecisionTreeClassifier(max_depth=4).fit(X, X["pay"] + X["kids"] > 8)


def labels_only(X: pd.DataFrame) -> Any:
    return lambda frame: (frame["pay"] + frame["kids"] > 8).to_numpy()


@pytest.mark.parametrize(
    ("model", "options", "reason"),
    [
        (trees, {}, r"All single changes and all pairs of candidate values were tried\."),
        (trees, {"max_expanded": 2}, r"SearchConfig\.max_expanded = 2; there may be more\."),
        (labels_only, {}, r"All candidates that the surrogate proposed were evaluated; there may be more\."),
        (labels_only, {"guided_candidates": (3, 3, 3, 3)}, r"SearchConfig\.guided_candidates = 3, 3, 3, 3; .* more\."),
    ],
)
def test_a_shortfall_says_what_ended_the_search(model: Any, options: dict[str, Any], reason: str) -> None:
    explainer, X = two_columns(model, **options)
    # Two columns can be changed in three ways at most.
    result = explainer.explain(X[X["pay"] + X["kids"] < 7].head(10), n=5)
    assert (result.status == "found").all()
    assert result.reason.str.contains("counterfactual.* found; 5 were wanted").all()
    assert result.reason.str.contains(reason).all()
