"""The target of a call: a class, any other class, a probability within bounds, or a number within bounds."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from fasterce.errors import InputError
from fasterce.models.predictions import FAILED, Predictions
from fasterce.models.predictor import Predictor
from fasterce.search.query_targets import Named, Other, QueryTargets, Within
from fasterce.typing import Floats, Indices, Mask

ANY_OTHER = "any other"
LOG_ODDS_SLACK = 1e-9

Bounds = Sequence[float | None]


@dataclass(frozen=True)
class Target(ABC):
    """What the model should predict. `raw`: verification needs the number the model predicts rather than its label."""

    raw = False

    @abstractmethod
    def for_queries(self, predictions: Predictions) -> QueryTargets:
        """Return the target of each query, given the predictions for the queries."""

    def confirmed(self, targets: QueryTargets, final: Predictions, rows: Indices) -> Mask:
        """Return whether verified predictions for counterfactuals of `rows` reach the target."""
        return targets.reached(final, rows)

    def value(self, targets: QueryTargets, final: Predictions, rows: Indices) -> Floats:
        """Return the predicted number the target is about, NaN if it is a class."""
        return np.full(len(rows), np.nan)

    def shown(self, classes: tuple[object, ...], predicted: Indices) -> list[Any]:
        """Return the target of each row as a user would write it; None where the model failed."""
        targets = self.for_queries(Predictions(predicted))
        return [classes[k] if own != FAILED else None for k, own in zip(targets.target, predicted, strict=True)]


@dataclass(frozen=True)
class TheClass(Target):
    position: int

    def for_queries(self, predictions: Predictions) -> QueryTargets:
        return Named(np.full(len(predictions.classes), self.position, dtype=np.intp))


@dataclass(frozen=True)
class TheOther(Target):
    """Of two classes the one that is not predicted."""

    def for_queries(self, predictions: Predictions) -> QueryTargets:
        return Named(np.where(predictions.classes == FAILED, FAILED, 1 - predictions.classes))


@dataclass(frozen=True)
class AnyOther(Target):
    """Any class but the predicted one."""

    count: int

    def for_queries(self, predictions: Predictions) -> QueryTargets:
        likeliest = (predictions.classes + 1) % self.count
        if predictions.scores is not None:
            scores = np.nan_to_num(predictions.scores, nan=-np.inf)
            scores[np.arange(len(scores)), predictions.classes] = -np.inf
            likeliest = scores.argmax(axis=1)
        return Other(np.asarray(likeliest), own=predictions.classes)

    def shown(self, classes: tuple[object, ...], predicted: Indices) -> list[Any]:
        return [ANY_OTHER if own != FAILED else None for own in predicted]


@dataclass(frozen=True)
class Chance(Target):
    """A probability of the class at `position`, of the other of two if None, between `low` and `high`."""

    position: int | None
    low: float
    high: float
    raw = True

    def for_queries(self, predictions: Predictions) -> QueryTargets:
        of = 1 - predictions.classes if self.position is None else np.full(len(predictions.classes), self.position)
        of = np.where(predictions.classes == FAILED, 0, of).astype(np.intp)
        return _within(predictions, of, *_about_between(_log_odds(self.low), _log_odds(self.high)))

    def value(self, targets: QueryTargets, final: Predictions, rows: Indices) -> Floats:
        assert isinstance(targets, Within)
        assert final.values is not None
        return np.asarray(final.values[np.arange(len(rows)), targets.of[rows]])

    def confirmed(self, targets: QueryTargets, final: Predictions, rows: Indices) -> Mask:
        return _between(self.value(targets, final, rows), self.low, self.high)

    def shown(self, classes: tuple[object, ...], predicted: Indices) -> list[Any]:
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

    def for_queries(self, predictions: Predictions) -> QueryTargets:
        low, high = ((bound - self.middle) / self.scale for bound in (self.low, self.high))
        return _within(predictions, np.ones(len(predictions.classes), dtype=np.intp), low, high)

    def value(self, targets: QueryTargets, final: Predictions, rows: Indices) -> Floats:
        assert final.values is not None
        return np.asarray(final.values[:, 0])

    def confirmed(self, targets: QueryTargets, final: Predictions, rows: Indices) -> Mask:
        return _between(self.value(targets, final, rows), self.low, self.high)

    def shown(self, classes: tuple[object, ...], predicted: Indices) -> list[Any]:
        return [(self.low, self.high) if own != FAILED else None for own in predicted]


def standing(target: Target, wanted: Indices, own: Indices) -> QueryTargets:
    """Return the targets of rows explained earlier: the class `wanted` of each (or its probability), or any but its `own`."""
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


def choose(predictor: Predictor, target: object, target_score: object) -> Target:
    """What `target` and `target_score` mean for this model, or one sentence that says why they mean nothing."""
    if predictor.numbers is not None:
        return _number(predictor, target, target_score)
    if target_score is not None:
        return _chance(predictor, target, target_score)
    classes = predictor.classes
    if target is None:
        if len(classes) == 2:
            return TheOther()
        known = {"expected": list(classes), "any_other": ANY_OTHER, "count": len(classes)}
        raise InputError("search.needs_class", option="target", **known)
    if isinstance(target, str) and target == ANY_OTHER and target not in classes:
        return TheOther() if len(classes) == 2 else AnyOther(len(classes))
    return TheClass(predictor.position(target))


def _number(predictor: Predictor, target: object, target_score: object) -> Target:
    if target_score is not None:
        raise InputError("search.score_needs_classes", option="target_score")
    low, high = _bounds("target", target, -math.inf, math.inf)
    assert predictor.numbers is not None
    return Number(low, high, predictor.numbers.middle, predictor.numbers.scale)


def _chance(predictor: Predictor, target: object, target_score: object) -> Target:
    if not (predictor.use_scores and predictor.has_chances):
        raise InputError("search.score_needs_probabilities", option="target_score")
    low, high = _bounds("target_score", target_score, 0.0, 1.0)
    if low > 1 or high < 0:
        raise InputError("search.not_probabilities", option="target_score", received=target_score)
    if target is None and len(predictor.classes) != 2:
        raise InputError("search.needs_class_of_score", option="target", expected=list(predictor.classes))
    return Chance(None if target is None else predictor.position(target), low, high)


def _bounds(what: str, given: object, least: float, most: float) -> tuple[float, float]:
    """Return two bounds, None for an open end; at least one must exclude something."""
    if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray)) or len(given) != 2:
        code = "search.number_needed" if given is None and what == "target" else "search.not_bounds"
        raise InputError(code, option=what, received=given)
    if not all(bound is None or (isinstance(bound, Real) and not isinstance(bound, bool)) for bound in given):
        raise InputError("search.bounds_not_numbers", option=what, received=given)
    low, high = (open_ if bound is None else float(bound) for bound, open_ in zip(given, (least, most), strict=True))
    if not low <= high:
        raise InputError("search.bounds_reversed", option=what, received=given)
    if low <= least and high >= most:
        raise InputError("search.bounds_exclude_nothing", option=what, received=given)
    return low, high


def _within(predictions: Predictions, of: Indices, low: float, high: float) -> Within:
    """Return targets that move toward the class itself from below, toward the strongest other class from above."""
    rows = len(of)
    target = of.copy()
    if predictions.scores is not None:
        scores = np.nan_to_num(predictions.scores, nan=-np.inf)
        targets = Within(of, of=of, low=np.full(rows, -np.inf), high=np.full(rows, high))
        above = ~targets.reached(predictions, np.arange(rows))
        scores[np.arange(rows), of] = -np.inf
        target = np.where(above, scores.argmax(axis=1), of)
    return Within(target, of=of, low=np.full(rows, low), high=np.full(rows, high))


def _log_odds(chance: float) -> float:
    if chance <= 0:
        return -math.inf
    return math.inf if chance >= 1 else math.log(chance / (1 - chance))


def _about_between(low: float, high: float) -> tuple[float, float]:
    """Return bounds widened by the rounding error of log-odds; verification compares the probability itself."""
    return low - LOG_ODDS_SLACK, high + LOG_ODDS_SLACK


def _between(values: Floats, low: float, high: float) -> Mask:
    with np.errstate(invalid="ignore"):
        return np.asarray((values >= low) & (values <= high))
