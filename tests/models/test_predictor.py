"""The user's model, asked: whatever it answers, rows are counted, labels recognised and failures told in a sentence."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from threadpoolctl import threadpool_info, threadpool_limits

from fasterce.data.dtypes import sorted_values
from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.errors import InputError, ModelError, Problem, make_problem
from fasterce.models.predictions import FAILED
from fasterce.models.predictor import MOST_CLASSES, ModelUsage, Predictor

X = pd.DataFrame({"x": np.arange(8, dtype=float), "c": list("abababab")})
TABLE = Table.like(X, Schema.infer(X))
CODES = TABLE.read(X).codes
HIGH = np.arange(8) >= 4


def is_high(frame: pd.DataFrame) -> np.ndarray:
    return frame["x"].to_numpy() >= 4


def learned(model: Any) -> Predictor:
    predictor = Predictor(model, TABLE)
    predictor.learn_classes(CODES)
    return predictor


def trusts(predictor: Predictor) -> bool:
    """Whether scores agree with labels on all rows; where they do, they are what `evaluate` returns for them."""
    found = predictor.trusted_scores(CODES, predictor.learn_classes(CODES))
    if found is None:
        return False
    predictor.use_scores = True
    again = predictor.evaluate(CODES)
    assert found.classes.tolist() == again.classes.tolist()
    np.testing.assert_array_equal(found.scores, again.scores)
    return True


class Scored:
    """A binary model whose scores come from a function; labels cut at `cut`."""

    def __init__(self, scores: Callable[[pd.DataFrame], Any], cut: float = 4.0, name: str = "predict_proba") -> None:
        self.classes_ = np.array(["no", "yes"])
        self.cut = cut
        setattr(self, name, scores)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return np.where(frame["x"] >= self.cut, "yes", "no")


def probabilities(frame: pd.DataFrame) -> np.ndarray:
    yes = 1 / (1 + np.exp(3.5 - frame["x"].to_numpy()))
    return np.column_stack([1 - yes, yes])


# --- what is asked ---------------------------------------------------------------------------------------------------


def test_calls_and_rows_are_counted() -> None:
    predictor = learned(is_high)
    assert predictor.usage == ModelUsage(calls=1, rows=8)
    predictor.evaluate(CODES)
    predictor.evaluate(CODES[:3])
    predictor.predict_labels(TABLE.frame(CODES[:2]))
    assert predictor.usage == ModelUsage(calls=4, rows=21)


def test_no_rows_call_no_model() -> None:
    predictor = learned(is_high)
    assert predictor.evaluate(CODES[:0]).classes.shape == (0,)
    assert predictor.predict_labels(TABLE.frame(CODES[:0])).shape == (0,)
    predictor.use_scores = True
    scores = predictor.evaluate(CODES[:0]).scores
    assert scores is not None
    assert scores.shape == (0, 2)
    assert predictor.usage.calls == 1


def test_the_model_sees_the_frame_it_was_trained_on() -> None:
    seen: list[pd.DataFrame] = []

    def model(frame: pd.DataFrame) -> np.ndarray:
        seen.append(frame)
        return is_high(frame)

    learned(model).evaluate(CODES[[5, 1]])
    assert seen[-1].equals(X.iloc[[5, 1]].reset_index(drop=True))
    assert seen[-1].dtypes.tolist() == X.dtypes.tolist()


# --- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "classes"),
    [
        (lambda high: np.where(high, "yes", "no"), ("no", "yes")),
        (lambda high: np.where(high, "yes", "no").astype(object), ("no", "yes")),
        (lambda high: high, (False, True)),
        (lambda high: high.astype(int), (0, 1)),
        (lambda high: high.astype(np.float32), (0.0, 1.0)),
        (lambda high: np.where(high, 7, -3), (-3, 7)),
        (lambda high: ["yes" if h else "no" for h in high], ("no", "yes")),
        (lambda high: pd.Series(high, index=range(100, 100 + len(high))), (False, True)),
        (lambda high: pd.Series(np.where(high, "yes", "no"), dtype="category"), ("no", "yes")),
        (lambda high: pd.array(high.astype(int), dtype="Int64"), (0, 1)),
        (lambda high: high.astype(int).reshape(-1, 1), (0, 1)),
        (lambda high: pd.DataFrame({"label": high}), (False, True)),
    ],
)
def test_labels_of_every_shape_and_type_are_recognised(answer: Callable[[Any], Any], classes: tuple[Any, ...]) -> None:
    predictor = learned(lambda frame: answer(is_high(frame)))
    assert predictor.classes == classes
    assert [type(label) for label in predictor.classes] == [type(label) for label in classes]
    assert predictor.evaluate(CODES).classes.tolist() == HIGH.astype(int).tolist()
    assert predictor.predict_labels(TABLE.frame(CODES[::-1])).tolist() == HIGH[::-1].astype(int).tolist()
    assert predictor.evaluate(CODES).scores is None
    assert predictor.failure is None


def test_declared_classes_are_used_in_their_order_even_if_unseen() -> None:
    model = Scored(probabilities)
    model.classes_ = np.array(["yes", "maybe", "no"])
    predictor = learned(model)
    assert predictor.classes == ("yes", "maybe", "no")
    assert predictor.evaluate(CODES).classes.tolist() == [2, 2, 2, 2, 0, 0, 0, 0]


def test_a_label_outside_the_declared_classes_is_refused() -> None:
    model = Scored(probabilities)
    model.classes_ = np.array(["no", "maybe"])
    with pytest.raises(ModelError, match=r"^The model must return one of 'no', 'maybe'; got 'yes'.$"):
        learned(model)


@pytest.mark.parametrize("written", [1, 1.0, np.int64(1), True])
def test_a_target_is_found_however_it_is_written(written: Any) -> None:
    assert learned(lambda frame: is_high(frame).astype(int)).position(written) == 1


@pytest.mark.parametrize("target", ["yess", 1, None, ["yes"]])
def test_an_unknown_target_is_refused_with_the_known_ones(target: Any) -> None:
    with pytest.raises(InputError, match=r"^Unknown target class .*; expected one of 'no', 'yes'\."):
        learned(Scored(probabilities)).position(target)


def test_labels_without_a_common_order_are_ordered_all_the_same() -> None:
    assert sorted_values(["b", 2, "a", 1]) == [1, 2, "a", "b"]
    assert sorted_values([3, 1, 2]) == [1, 2, 3]


# --- models that cannot be explained ---------------------------------------------------------------------------------


def raising(frame: pd.DataFrame) -> Any:
    raise KeyError("no such column")


ONE_PER_ROW = "^The model must return one prediction per row; got an array of shape {} for 8 rows.$"
MISSING = "^The model must return a label for every row; got a missing one.$"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (raising, "^The model raised KeyError: 'no such column'"),
        (
            lambda frame: is_high(frame)[:-1],
            ONE_PER_ROW.format(r"\(7,\)"),
        ),
        (lambda frame: 1, r"^The model must return one prediction per row; got an array of shape \(\) for 8 rows.$"),
        (lambda frame: None, r"^The model must return one prediction per row; got an array of shape \(\) for 8 rows.$"),
        (lambda frame: "no", r"^The model must return one prediction per row; got an array of shape \(\) for 8 rows.$"),
        (probabilities, r"^The model must return one prediction per row; got an array of shape \(8, 2\) for 8 rows.$"),
        (
            lambda frame: np.where(is_high(frame), 1.0, np.nan),
            MISSING,
        ),
        (
            lambda frame: [None if high else "no" for high in is_high(frame)],
            MISSING,
        ),
    ],
)
def test_predictions_that_are_no_labels_are_refused_with_a_sentence(model: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        learned(model)


def test_a_long_message_of_the_model_is_cut() -> None:
    def model(frame: pd.DataFrame) -> Any:
        raise RuntimeError("x" * 5000)

    with pytest.raises(ModelError) as caught:
        learned(model)
    assert len(str(caught.value)) < 300


def test_a_regression_is_refused_with_a_sentence() -> None:
    many = np.column_stack([np.linspace(0, 7, 500), np.zeros(500)])
    with pytest.raises(ModelError, match=r"^The model must return class labels; got 500 different ones, .*regression"):
        Predictor(lambda frame: frame["x"] * 1.5, TABLE).learn_classes(many)


def test_as_many_classes_as_allowed_are_fine() -> None:
    many = np.column_stack([np.arange(MOST_CLASSES) / 8, np.zeros(MOST_CLASSES)])
    predictor = Predictor(lambda frame: (frame["x"] * 8).astype(int), TABLE)
    predictor.learn_classes(many)
    assert predictor.classes == tuple(range(MOST_CLASSES))


@pytest.mark.parametrize("model", [None, 3, "model", object()])
def test_something_that_is_no_model_is_refused(model: Any) -> None:
    with pytest.raises(InputError, match=r"^model must have a predict method or be callable; got "):
        Predictor(model, TABLE)


def test_stopping_by_hand_is_not_swallowed() -> None:
    def model(frame: pd.DataFrame) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learned(model)


# --- failures while explaining ---------------------------------------------------------------------------------------


def failing_on(bad: set[float], fail: Callable[[np.ndarray], Any]) -> Callable[[pd.DataFrame], Any]:
    def model(frame: pd.DataFrame) -> Any:
        return fail(is_high(frame)) if frame["x"].isin(bad).any() else is_high(frame)

    return model


def explode(predictions: np.ndarray) -> Any:
    raise ZeroDivisionError("division by zero")


@pytest.mark.parametrize(
    ("fail", "problem"),
    [
        (explode, Problem("models.raised", details={"exception": "ZeroDivisionError", "text": "division by zero"})),
        (lambda labels: [*labels.tolist(), True], make_problem("models.prediction_count", expected=2, received=(2,), rows=1)),
        (lambda labels: None, make_problem("models.prediction_count", expected=2, received=(), rows=1)),
    ],
)
def test_one_bad_row_fails_alone(fail: Callable[[Any], Any], problem: Problem) -> None:
    predictor = Predictor(failing_on({5.0}, fail), TABLE, (False, True))
    expected = HIGH.astype(int).tolist()
    expected[5] = FAILED
    assert predictor.evaluate(CODES).classes.tolist() == expected
    assert predictor.failure == problem
    assert predictor.predict_labels(TABLE.frame(CODES)).tolist() == expected


def test_one_bad_row_among_many_fails_alone_at_little_cost() -> None:
    many = np.column_stack([np.arange(1000) / 1000, np.zeros(1000)])
    predictor = Predictor(failing_on({0.777}, explode), TABLE, (False, True))
    predictions = predictor.evaluate(many).classes
    assert np.flatnonzero(predictions == FAILED).tolist() == [777]
    assert predictor.usage.calls < 30


def test_a_model_that_always_fails_is_not_called_for_ever() -> None:
    many = np.column_stack([np.arange(1000) / 1000, np.zeros(1000)])
    predictor = Predictor(raising, TABLE, (False, True))
    predictions = predictor.evaluate(many).classes
    assert predictions.shape == (1000,)
    assert (predictions == FAILED).all()
    assert predictor.usage.calls < 100
    assert predictor.failure is not None
    assert predictor.failure.code == "models.raised"
    assert predictor.failure.details["exception"] == "KeyError"


@pytest.mark.parametrize(
    ("label", "problem"),
    [
        ("maybe", make_problem("models.unknown_class", expected=("no", "yes"), received="maybe")),
        (None, Problem("models.missing_label")),
        (np.nan, Problem("models.missing_label")),
    ],
)
def test_a_label_never_seen_fails_its_own_row_only(label: Any, problem: Problem) -> None:
    def model(frame: pd.DataFrame) -> np.ndarray:
        return np.array([label if x == 5 else "yes" if x >= 4 else "no" for x in frame["x"]], dtype=object)

    predictor = Predictor(model, TABLE, ("no", "yes"))
    assert predictor.evaluate(CODES).classes.tolist() == [0, 0, 0, 0, 1, FAILED, 1, 1]
    assert predictor.failure == problem
    assert predictor.usage.calls == 1


# --- scores ----------------------------------------------------------------------------------------------------------


def test_probabilities_that_agree_are_trusted_and_used() -> None:
    predictor = learned(Scored(probabilities))
    assert trusts(predictor)
    predictor.use_scores = True
    predictions = predictor.evaluate(CODES)
    assert predictions.classes.tolist() == HIGH.astype(int).tolist()
    assert predictions.scores == pytest.approx(np.log(probabilities(X)))


def test_certain_probabilities_stay_finite() -> None:
    predictor = learned(Scored(lambda frame: np.column_stack([~is_high(frame), is_high(frame)]).astype(float)))
    assert trusts(predictor)
    predictor.use_scores = True
    scores = predictor.evaluate(CODES).scores
    assert scores is not None
    assert np.isfinite(scores).all()


def test_a_model_that_cuts_its_probabilities_elsewhere_is_not_trusted() -> None:
    assert not trusts(learned(Scored(probabilities, cut=6.0)))


def test_binary_decision_values_are_trusted_and_used() -> None:
    predictor = learned(Scored(lambda frame: frame["x"].to_numpy() - 3.5, name="decision_function"))
    assert trusts(predictor)
    predictor.use_scores = True
    predictions = predictor.evaluate(CODES)
    assert predictions.classes.tolist() == HIGH.astype(int).tolist()
    assert predictions.scores is not None
    assert predictions.scores[:, 1].tolist() == [-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5]


def numbers(rows: int = 90) -> tuple[Table, np.ndarray, pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(rows, 2)), columns=["u", "v"])
    labels = np.select([frame["u"] > 0.4, frame["v"] > 0.2], ["a", "b"], "c")
    table = Table.like(frame, Schema.infer(frame))
    return table, table.read(frame).codes, frame, labels


@pytest.mark.parametrize(
    ("model", "trusted"),
    [
        (LogisticRegression(), True),
        (SVC(), True),
        (SVC(decision_function_shape="ovo", C=0.01, break_ties=False), False),
    ],
)
def test_three_classes_are_scored_where_scores_say_what_labels_say(model: Any, trusted: bool) -> None:
    table, codes, frame, labels = numbers()
    model.fit(frame, labels)
    predictor = Predictor(model, table)
    found = predictor.trusted_scores(codes, predictor.learn_classes(codes))
    assert predictor.classes == ("a", "b", "c")
    assert (found is not None) is trusted
    predictor.use_scores = trusted
    assert (np.array(predictor.classes)[predictor.evaluate(codes).classes] == model.predict(frame)).all()


@pytest.mark.parametrize(
    "scores",
    [
        raising,
        lambda frame: None,
        lambda frame: probabilities(frame)[:, :1],
        lambda frame: np.column_stack([probabilities(frame), np.zeros(len(frame))]),
        lambda frame: probabilities(frame)[:-1],
        lambda frame: probabilities(frame).astype(str),
        lambda frame: np.full((len(frame), 2), np.nan),
        lambda frame: probabilities(frame)[:, ::-1],
    ],
    ids=["raises", "none", "one column", "three columns", "too short", "text", "nan", "swapped"],
)
def test_scores_that_are_none_are_not_trusted(scores: Any) -> None:
    assert not trusts(learned(Scored(scores)))


def test_without_scores_or_rows_there_is_nothing_to_trust() -> None:
    assert not trusts(learned(is_high))
    assert learned(Scored(probabilities)).trusted_scores(CODES[:0], np.zeros(0)) is None


def test_labels_are_evaluated_even_where_scores_are_used() -> None:
    predictor = Predictor(Scored(probabilities, cut=6.0), TABLE, ("no", "yes"), use_scores=True)
    assert predictor.evaluate(CODES).classes.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert predictor.predict_labels(TABLE.frame(CODES)).tolist() == [0, 0, 0, 0, 0, 0, 1, 1]


def test_a_row_without_a_probability_fails_alone_with_a_reason() -> None:
    def scores(frame: pd.DataFrame) -> np.ndarray:
        return np.where(frame[["x"]] == 5, np.nan, probabilities(frame))

    predictor = Predictor(Scored(scores), TABLE, ("no", "yes"), use_scores=True)
    assert predictor.evaluate(CODES).classes.tolist() == [0, 0, 0, 0, 1, FAILED, 1, 1]
    assert predictor.failure is not None
    assert predictor.failure.code == "models.score_not_finite"


def test_scores_that_raise_on_one_row_fail_that_row_only() -> None:
    def scores(frame: pd.DataFrame) -> np.ndarray:
        if (frame["x"] == 5).any():
            raise ValueError("five")
        return probabilities(frame)

    predictor = Predictor(Scored(scores), TABLE, ("no", "yes"), use_scores=True)
    predictions = predictor.evaluate(CODES)
    assert predictions.classes.tolist() == [0, 0, 0, 0, 1, FAILED, 1, 1]
    assert predictions.scores is not None
    assert predictions.scores.shape == (8, 2)
    assert predictor.failure is not None
    assert predictor.failure.text() == "The model raised ValueError: five."


def test_scores_of_another_width_while_explaining_fail_with_a_sentence() -> None:
    wide = Scored(lambda frame: np.zeros((len(frame), 3)))
    predictor = Predictor(wide, TABLE, ("no", "yes"), use_scores=True)
    assert (predictor.evaluate(CODES).classes == FAILED).all()
    assert predictor.failure == make_problem("models.score_count", expected=2, received=(1, 3))


def test_a_model_of_one_class_is_learned_as_such() -> None:
    model = DummyClassifier(strategy="constant", constant="no").fit(X, ["no"] * 7 + ["yes"])
    assert learned(model).classes == ("no", "yes")
    assert learned(lambda frame: ["no"] * len(frame)).classes == ("no",)


def test_a_few_rows_wake_one_thread_and_many_rows_all_they_may() -> None:
    frame = pd.DataFrame({"x": np.arange(600.0)})
    seen: dict[int, set[int]] = {}

    def model(rows: pd.DataFrame) -> Any:
        seen[len(rows)] = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
        return (rows["x"] > 300).to_numpy()

    predictor = Predictor(model, Table.like(frame, Schema.infer(frame)), (False, True))
    with threadpool_limits(2, user_api="blas"):
        predictor.evaluate(frame.to_numpy()[:1])
        predictor.evaluate(frame.to_numpy())
    assert seen == {1: {1}, 600: {2}}
