"""What `target` and `target_score` mean, and that what means nothing is refused in one sentence."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasterce import Schema
from fasterce.data.table import Table
from fasterce.errors import InputError
from fasterce.models.predictions import FAILED, Predictions
from fasterce.models.predictor import BELOW_AND_ABOVE, Numbers, Predictor
from fasterce.search.query_targets import Named, Other, Within
from fasterce.search.target import AnyOther, Chance, Number, Target, TheClass, TheOther, choose

FRAME = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "c": ["a", "b", "a", "b"]}, index=list("wxyz"))
TABLE = Table.like(FRAME, Schema.infer(FRAME))


class Chances:
    def predict(self, frame: pd.DataFrame) -> Any: ...
    def predict_proba(self, frame: pd.DataFrame) -> Any: ...


class Decisions:
    def predict(self, frame: pd.DataFrame) -> Any: ...
    def decision_function(self, frame: pd.DataFrame) -> Any: ...


def predictor(classes: tuple[Any, ...] = ("big", "small"), model: Any = None, use_scores: bool = False) -> Predictor:
    return Predictor(model or (lambda frame: ["big"] * len(frame)), TABLE, classes, use_scores)


def with_chances(classes: tuple[Any, ...] = ("big", "small")) -> Predictor:
    return predictor(classes, Chances(), use_scores=True)


def regression(middle: float = 10.0, scale: float = 4.0) -> Predictor:
    return Predictor(lambda frame: frame["x"], TABLE, BELOW_AND_ABOVE, True, Numbers(middle, scale))


def refused(who: Predictor, target: Any, target_score: Any = None) -> str:
    with pytest.raises(InputError) as caught:
        choose(who, target, target_score)
    said = str(caught.value)
    assert "\n" not in said
    assert said.endswith((".", "?"))
    return said


# -- classes ---------------------------------------------------------------------------------------------------------------


def test_choosing_a_class() -> None:
    assert choose(predictor(), None, None) == TheOther()
    assert choose(predictor(), "small", None) == TheClass(1)
    assert choose(predictor(classes=(0, 1, 2)), np.int64(2), None) == TheClass(2)
    assert choose(predictor(classes=(False, True)), False, None) == TheClass(0)
    assert choose(predictor(classes=(False, True)), np.bool_(True), None) == TheClass(1)
    assert choose(predictor(classes=("a", "b", "c")), np.str_("c"), None) == TheClass(2)
    with pytest.raises(InputError, match=r"Did you mean 'small'\?"):
        choose(predictor(), "smal", None)
    with pytest.raises(InputError, match=r"one of 0, 1, 2, or be 'any other', because the model has 3 classes\.$"):
        choose(predictor(classes=(0, 1, 2)), None, None)


@pytest.mark.parametrize("target", [["big"], np.array(["big", "small"]), {"big"}, float("nan"), pd.NA, (0, 1), 7])
def test_a_target_that_is_no_label_is_refused(target: Any) -> None:
    assert "target" in refused(predictor(), target)


def test_any_other() -> None:
    assert choose(predictor(classes=(0, 1, 2)), "any other", None) == AnyOther(3)
    assert choose(predictor(classes=(0, 1)), "any other", None) == TheOther()
    assert choose(predictor(classes=("a", "b", "any other")), "any other", None) == TheClass(2), "a class's own name"


def test_of_two_classes_each_row_wants_the_other() -> None:
    targets = TheOther().for_queries(Predictions(np.array([0, 1, FAILED])))
    assert isinstance(targets, Named)
    assert targets.target.tolist() == [1, 0, FAILED]
    assert TheOther().shown(("no", "yes"), np.array([0, 1, FAILED])) == ["yes", "no", None]


def test_any_other_heads_for_the_likeliest_of_the_others() -> None:
    scores = np.array([[0.5, 0.2, 0.3], [0.1, 0.8, 0.05], [np.nan] * 3])
    targets = AnyOther(3).for_queries(Predictions(np.array([0, 1, FAILED]), scores=scores))
    assert isinstance(targets, Other)
    assert targets.target.tolist()[:2] == [2, 0]
    assert targets.own.tolist() == [0, 1, FAILED]
    blind = AnyOther(3).for_queries(Predictions(np.array([0, 1, 2])))
    assert (blind.target != np.array([0, 1, 2])).all()
    assert set(blind.target.tolist()) <= {0, 1, 2}
    assert AnyOther(3).shown((4, 5, 6), np.array([0, FAILED, 2])) == ["any other", None, "any other"]


def test_asking_for_the_likeliest_other_leaves_the_scores_as_they_are() -> None:
    scores = np.array([[0.5, 0.2, 0.3]])
    before = scores.copy()
    AnyOther(3).for_queries(Predictions(np.array([0]), scores=scores))
    Chance(0, 0.1, 0.2).for_queries(Predictions(np.array([0]), scores=scores))
    np.testing.assert_array_equal(scores, before)


# -- chances ---------------------------------------------------------------------------------------------------------------


def test_a_wanted_chance() -> None:
    two, three = with_chances(), with_chances((0, 1, 2))
    assert choose(two, None, (0.7, 1)) == Chance(None, 0.7, 1.0)
    assert choose(two, "big", [0.2, 0.4]) == Chance(0, 0.2, 0.4)
    assert choose(three, 2, np.array([0.7, 1.0])) == Chance(2, 0.7, 1.0)
    assert choose(two, "big", (None, 0.4)) == Chance(0, 0.0, 0.4)
    assert choose(two, "big", (0.4, None)) == Chance(0, 0.4, 1.0)
    assert choose(two, "big", (np.float32(0.5), np.int64(1))) == Chance(0, 0.5, 1.0)


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (0.7, "must be (low, high), None for an open end; got 0.7."),
        ("ab", "must be (low, high), None for an open end; got ab."),
        ((0.7,), "must be (low, high)"),
        ((0.1, 0.2, 0.3), "must be (low, high)"),
        (("0.1", 0.4), "in numbers, None for an open end; got ('0.1', 0.4)."),
        ((True, 0.4), "in numbers"),
        ((0.9, 0.4), "with low <= high; got (0.9, 0.4)."),
        ((0, 1), "must exclude some values; got (0, 1)."),
        ((None, None), "must exclude some values"),
        ((1.5, 2), "between 0 and 1; got (1.5, 2)."),
        ((-2, -1), "between 0 and 1; got (-2, -1)."),
        ((70, 100), "between 0 and 1; got (70, 100)."),
    ],
)
def test_chances_that_mean_nothing(score: Any, said: str) -> None:
    message = refused(with_chances(), "big", score)
    assert message.startswith("target_score ")
    assert said in message


def test_a_chance_of_which_class() -> None:
    assert refused(with_chances((0, 1, 2)), None, (0.7, 1)).startswith(
        "target must name the class whose probability is meant"
    )
    assert "Unknown target class 'bigg'" in refused(with_chances(), "bigg", (0.7, 1))


def test_a_chance_needs_a_model_with_chances() -> None:
    for who in (
        predictor(),
        predictor(model=Decisions(), use_scores=True),
        predictor(model=Chances(), use_scores=False),
    ):
        assert refused(who, "big", (0.7, 1)).startswith("target_score needs a model with predict_proba")


def final(chance: list[float]) -> Predictions:
    values = np.stack([1 - np.array(chance), np.array(chance)], axis=1)
    return Predictions(values.argmax(axis=1), np.log(np.maximum(values, 1e-12)), values)


def test_rows_head_for_the_class_from_below_and_away_from_it_from_above() -> None:
    targets = Chance(1, 0.2, 0.4).for_queries(final([0.1, 0.3, 0.9]))
    assert isinstance(targets, Within)
    assert targets.target.tolist() == [1, 1, 0]
    assert targets.of.tolist() == [1, 1, 1]


def test_without_a_class_the_chance_is_of_the_one_the_row_has_not() -> None:
    said, target = final([0.1, 0.9]), Chance(None, 0.7, 1.0)
    targets = target.for_queries(said)
    assert target.shown(("no", "yes"), said.classes) == ["yes", "no"]
    after = final([0.75, 0.6])
    np.testing.assert_allclose(target.value(targets, after, np.arange(2)), [0.75, 0.4])
    assert target.confirmed(targets, after, np.arange(2)).tolist() == [True, False]


@pytest.mark.parametrize(("low", "high"), [(0.7, 1.0), (0.2, 0.4), (0.0, 0.3)])
def test_the_bounds_themselves_are_inside_and_nothing_beyond(low: float, high: float) -> None:
    target = Chance(1, low, high)
    values = [low, np.nextafter(low, -1), high, np.nextafter(high, 2), (low + high) / 2]
    said = Predictions(np.zeros(5, dtype=np.intp), values=np.stack([1 - np.array(values), values], axis=1))
    targets = target.for_queries(final([0.5] * 5))
    assert target.confirmed(targets, said, np.arange(5)).tolist() == [True, False, True, False, True]


def test_missing_values_are_never_confirmed() -> None:
    lost = Predictions(np.array([FAILED]), np.full((1, 2), np.nan), np.full((1, 2), np.nan))
    assert not Chance(1, 0.0, 0.4).confirmed(Chance(1, 0.0, 0.4).for_queries(final([0.9])), lost, np.array([0])).any()


# -- numbers ---------------------------------------------------------------------------------------------------------------


def test_a_wanted_number() -> None:
    assert choose(regression(), (5, 8), None) == Number(5.0, 8.0, 10.0, 4.0)
    assert choose(regression(), [None, 8], None) == Number(-np.inf, 8.0, 10.0, 4.0)
    assert choose(regression(), (5, None), None) == Number(5.0, np.inf, 10.0, 4.0)
    assert choose(regression(), (5, 5), None) == Number(5.0, 5.0, 10.0, 4.0)
    assert choose(regression(), (5, float("inf")), None) == Number(5.0, np.inf, 10.0, 4.0)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (None, "target must be (low, high), None for an open end; got None."),
        (5.0, "target must be (low, high), None for an open end; got 5.0."),
        ("above", "target must be (low, high)"),
        ((8, 5), "with low <= high; got (8, 5)."),
        ((None, None), "must exclude some values"),
        ((float("-inf"), None), "must exclude some values"),
        (("a", 5), "in numbers"),
        ({"low": 1, "high": 2}, "target must be (low, high)"),
    ],
)
def test_numbers_that_mean_nothing(target: Any, said: str) -> None:
    assert said in refused(regression(), target)


def test_a_number_has_no_chance() -> None:
    assert refused(regression(), (5, 8), (0.7, 1)) == (
        "target_score is for models that predict classes; for a number, set target=(low, high)."
    )


@settings(max_examples=60, deadline=None)
@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e4),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8),
    st.floats(-1e6, 1e6),
    st.one_of(st.just(np.inf), st.floats(0.1, 1e6)),
)
def test_search_and_last_word_mean_the_same_interval(
    middle: float, scale: float, values: list[float], low: float, width: float
) -> None:
    """The search writes numbers in units of its own; away from the bounds' last digits it must agree with the model's."""
    target: Target = Number(low, low + width, middle, scale)
    raw = np.array(values)
    scores = Numbers(middle, scale).scores(raw)
    said = Predictions(scores.argmax(axis=1), scores, raw[:, None])
    targets, rows = target.for_queries(said), np.arange(len(raw))
    clear = np.minimum(np.abs(raw - low), np.abs(raw - (low + width))) > 1e-6 * (1 + np.abs(raw) + abs(middle) + abs(low))
    np.testing.assert_array_equal(targets.reached(said, rows)[clear], target.confirmed(targets, said, rows)[clear])
    np.testing.assert_array_equal(target.value(targets, said, rows), raw)
    above = clear & (raw > low + width)
    assert (targets.target[above] == 0).all()
    assert (targets.target[clear & (raw < low)] == 1).all()


def test_numbers_are_shown_as_the_bounds() -> None:
    target = Number(5.0, np.inf, 0.0, 1.0)
    assert target.shown(BELOW_AND_ABOVE, np.array([0, FAILED, 1])) == [(5.0, np.inf), None, (5.0, np.inf)]
