"""What the caller wants the model to answer: a class, any other one, a chance within bounds, or a number within bounds."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from fasterce.errors import InputError, shorten
from fasterce.predictor import FAILED, Final, Predictor
from fasterce.profile import Floats
from fasterce.search.goal import Goal, Indices, Mask, Named, Other, Said, Within

ANY_OTHER = "any other"
LOG_ODDS_SLACK = 1e-9

Bounds = Sequence[float | None]


@dataclass(frozen=True)
class Target(ABC):
    """Something to want. `raw` says that the last word is a number of the model's, not its label."""

    raw = False

    @abstractmethod
    def goal(self, said: Said) -> Goal:
        """What each of these rows wants, by what was answered about it as it is."""

    def confirmed(self, goal: Goal, final: Final, rows: Indices) -> Mask:
        """Whether the model's own last word about answers to `rows` is what they want."""
        return goal.reached(final, rows)

    def value(self, goal: Goal, final: Final, rows: Indices) -> Floats:
        """The number it is about, NaN where it is not about one."""
        return np.full(len(rows), np.nan)

    def shown(self, classes: tuple[Any, ...], predicted: Indices) -> list[Any]:
        """What each row wants, as a user would write it; None where the model did not answer."""
        goal = self.goal(Final(predicted))
        return [classes[k] if own != FAILED else None for k, own in zip(goal.target, predicted, strict=True)]


@dataclass(frozen=True)
class TheClass(Target):
    position: int

    def goal(self, said: Said) -> Goal:
        return Named(np.full(len(said.classes), self.position, dtype=np.intp))


@dataclass(frozen=True)
class TheOther(Target):
    """Of two classes the one the model does not answer."""

    def goal(self, said: Said) -> Goal:
        return Named(np.where(said.classes == FAILED, FAILED, 1 - said.classes))


@dataclass(frozen=True)
class AnyOther(Target):
    """Whatever the model does not answer now."""

    count: int

    def goal(self, said: Said) -> Goal:
        likeliest = (said.classes + 1) % self.count
        if said.scores is not None:
            scores = np.nan_to_num(said.scores, nan=-np.inf)
            scores[np.arange(len(scores)), said.classes] = -np.inf
            likeliest = scores.argmax(axis=1)
        return Other(np.asarray(likeliest), own=said.classes)

    def shown(self, classes: tuple[Any, ...], predicted: Indices) -> list[Any]:
        return [ANY_OTHER if own != FAILED else None for own in predicted]


@dataclass(frozen=True)
class Chance(Target):
    """A chance of the class at `position`, of the other of two if None, between `low` and `high`."""

    position: int | None
    low: float
    high: float
    raw = True

    def goal(self, said: Said) -> Goal:
        of = 1 - said.classes if self.position is None else np.full(len(said.classes), self.position)
        of = np.where(said.classes == FAILED, 0, of).astype(np.intp)
        return _within(said, of, *_about_between(_log_odds(self.low), _log_odds(self.high)))

    def value(self, goal: Goal, final: Final, rows: Indices) -> Floats:
        assert isinstance(goal, Within)
        assert final.values is not None
        return np.asarray(final.values[np.arange(len(rows)), goal.of[rows]])

    def confirmed(self, goal: Goal, final: Final, rows: Indices) -> Mask:
        return _between(self.value(goal, final, rows), self.low, self.high)

    def shown(self, classes: tuple[Any, ...], predicted: Indices) -> list[Any]:
        of = 1 - predicted if self.position is None else np.full(len(predicted), self.position)
        return [classes[k] if own != FAILED else None for k, own in zip(of, predicted, strict=True)]


@dataclass(frozen=True)
class Number(Target):
    """A prediction between `low` and `high`; `middle` and `scale` are how the search writes numbers."""

    low: float
    high: float
    middle: float
    scale: float
    raw = True

    def goal(self, said: Said) -> Goal:
        low, high = ((bound - self.middle) / self.scale for bound in (self.low, self.high))
        return _within(said, np.ones(len(said.classes), dtype=np.intp), low, high)

    def value(self, goal: Goal, final: Final, rows: Indices) -> Floats:
        assert final.values is not None
        return np.asarray(final.values[:, 0])

    def confirmed(self, goal: Goal, final: Final, rows: Indices) -> Mask:
        return _between(self.value(goal, final, rows), self.low, self.high)

    def shown(self, classes: tuple[Any, ...], predicted: Indices) -> list[Any]:
        return [(self.low, self.high) if own != FAILED else None for own in predicted]


def standing(target: Target, wanted: Indices, own: Indices) -> Goal:
    """What was wanted of rows earlier: the class `wanted` of each (or its chance), or any but its `own`."""
    rows = len(wanted)
    if isinstance(target, AnyOther):
        return Other((own + 1) % target.count, own=own)
    if isinstance(target, Chance):
        low, high = (np.full(rows, _log_odds(bound)) for bound in (target.low, target.high))
        return Within(wanted, of=wanted, low=low, high=high)
    if isinstance(target, Number):
        low, high = (np.full(rows, (bound - target.middle) / target.scale) for bound in (target.low, target.high))
        above = np.ones(rows, dtype=np.intp)
        return Within(above, of=above, low=low, high=high)
    return Named(wanted)


def choose(predictor: Predictor, target: Any, target_score: Any) -> Target:
    """What `target` and `target_score` mean for this model, or one sentence that says why they mean nothing."""
    if predictor.numbers is not None:
        return _number(predictor, target, target_score)
    if target_score is not None:
        return _chance(predictor, target, target_score)
    classes = predictor.classes
    if target is None:
        if len(classes) == 2:
            return TheOther()
        raise InputError(
            f"target must name the wanted class, one of {shorten(classes)}, or say {ANY_OTHER!r}, "
            f"because the model has {len(classes)} classes; got None."
        )
    if isinstance(target, str) and target == ANY_OTHER and target not in classes:
        return TheOther() if len(classes) == 2 else AnyOther(len(classes))
    return TheClass(predictor.position(target))


def _number(predictor: Predictor, target: Any, target_score: Any) -> Target:
    if target_score is not None:
        raise InputError("target_score is for models that answer classes; a number is wanted by target=(low, high).")
    low, high = _bounds("target", target, -math.inf, math.inf)
    assert predictor.numbers is not None
    return Number(low, high, predictor.numbers.middle, predictor.numbers.scale)


def _chance(predictor: Predictor, target: Any, target_score: Any) -> Target:
    if not (predictor.use_scores and predictor.has_chances):
        raise InputError("target_score needs a model with predict_proba that agrees with its labels; this one has none.")
    low, high = _bounds("target_score", target_score, 0.0, 1.0)
    if low > 1 or high < 0:
        raise InputError(f"target_score must be chances (low, high) between 0 and 1; got {target_score!r}.")
    if target is None and len(predictor.classes) != 2:
        raise InputError(f"target must name the class whose chance is meant, one of {shorten(predictor.classes)}; got None.")
    return Chance(None if target is None else predictor.position(target), low, high)


def _bounds(what: str, given: Any, least: float, most: float) -> tuple[float, float]:
    """Two bounds, None for an open end; at least one must say something."""
    if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray)) or len(given) != 2:
        raise InputError(f"{what} must be (low, high), None for an open end; got {given!r}.")
    if not all(bound is None or (isinstance(bound, Real) and not isinstance(bound, bool)) for bound in given):
        raise InputError(f"{what} must be (low, high) in numbers, None for an open end; got {given!r}.")
    low, high = (open_ if bound is None else float(bound) for bound, open_ in zip(given, (least, most), strict=True))
    if not low <= high:
        raise InputError(f"{what} must be (low, high) with low <= high; got {given!r}.")
    if low <= least and high >= most:
        raise InputError(f"{what} must rule something out; got {given!r}.")
    return low, high


def _within(said: Said, of: Indices, low: float, high: float) -> Within:
    """Head for the class itself from below, for the strongest other one from above."""
    rows = len(of)
    target = of.copy()
    if said.scores is not None:
        scores = np.nan_to_num(said.scores, nan=-np.inf)
        goal = Within(of, of=of, low=np.full(rows, -np.inf), high=np.full(rows, high))
        above = ~goal.reached(said, np.arange(rows))
        scores[np.arange(rows), of] = -np.inf
        target = np.where(above, scores.argmax(axis=1), of)
    return Within(target, of=of, low=np.full(rows, low), high=np.full(rows, high))


def _log_odds(chance: float) -> float:
    if chance <= 0:
        return -math.inf
    return math.inf if chance >= 1 else math.log(chance / (1 - chance))


def _about_between(low: float, high: float) -> tuple[float, float]:
    """Log-odds are not exact to the last bit: a chance just on a bound must not be passed over. The chance itself decides
    in the end."""
    return low - LOG_ODDS_SLACK, high + LOG_ODDS_SLACK


def _between(values: Floats, low: float, high: float) -> Mask:
    with np.errstate(invalid="ignore"):
        return np.asarray((values >= low) & (values <= high))
