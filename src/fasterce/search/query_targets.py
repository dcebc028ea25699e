"""The target of each query (a class, any other class, or a number within bounds), and the margin to it.

`QueryTargets` turns predictions of the model, and outputs of its surrogate, into a margin that is positive where the target
is reached.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from fasterce.models.predictions import Predictions
from fasterce.surrogate.runtime import NO_LIMIT, lead_of
from fasterce.typing import Floats, Floats32, Indices, Mask

if TYPE_CHECKING:
    from fasterce.fitting.state import SearchState

DIGITS = 9

Planes = tuple[Floats, Floats]


@dataclass(frozen=True)
class Part:
    """Queries with the same target, the examples that reach it, and the hyperplane these lie beyond."""

    rows: Indices
    examples: Indices
    plane: Planes


@dataclass(frozen=True)
class QueryTargets(ABC):
    """`target` (rows,) is the class whose hyperplane, examples and prototypes guide the search; `need` (rows,) is the margin
    required beyond the boundary."""

    target: Indices
    need: Floats | None = None

    def take(self, rows: Indices | Mask | slice) -> Self:
        return replace(self, **{name: value[rows] for name, value in self.__dict__.items() if value is not None})

    def demanding(self, need: Floats) -> Self:
        """Return the same targets with a margin required beyond the boundary."""
        return replace(self, need=need)

    def margins(self, predictions: Predictions, rows: Indices, lowest: float = NO_LIMIT) -> Floats:
        """Return margins, positive where the target is reached; graded by scores if there are any, clipped at `lowest`.

        Rounded, since the scores of a model may differ in their last bits between a batch and a single row.
        """
        hit = self.reached(predictions, rows)
        if predictions.scores is None:
            return np.where(predictions.classes < 0, -np.inf, np.where(hit, 1.0, -1.0))
        with np.errstate(invalid="ignore"):
            lead = np.round(self._lead(np.maximum(predictions.scores, lowest), rows), DIGITS)
        tiny = np.finfo(np.float64).tiny
        lead = np.where(hit, np.maximum(lead, tiny), np.minimum(lead, -tiny))
        if self.need is not None:
            lead = lead - self.need[rows]
        return np.where(predictions.classes < 0, -np.inf, lead)

    def leads(self, predictions: Predictions, rows: Indices, lowest: float = NO_LIMIT) -> Floats:
        """Return margins without `need`; for a target within bounds, the number that must lie within them."""
        return replace(self, need=None).margins(predictions, rows, lowest)

    def expected(self, outputs: Floats | Floats32) -> Floats | Floats32:
        """Return the margins of outputs of the surrogate (rows, K, C)."""
        lead = self._expected(outputs)
        return lead if self.need is None else np.asarray(lead - self.need.astype(np.float32)[:, None])

    @abstractmethod
    def reached(self, predictions: Predictions, rows: Indices) -> Mask:
        """Return whether each prediction reaches the target of its row, regardless of `need`."""

    @abstractmethod
    def _lead(self, scores: Floats, rows: Indices) -> Floats: ...

    @abstractmethod
    def _expected(self, outputs: Floats | Floats32) -> Floats | Floats32: ...

    def planes(self, state: "SearchState", latent: Floats, regional: bool) -> Planes:
        """Return the prediction hyperplane of every row, its normal pointing to the target."""
        return state.planes_of(latent, self.target, regional)

    def parts(self, state: "SearchState") -> list[Part]:
        every = [np.flatnonzero(self.target == target) for target in np.unique(self.target)]
        return [
            Part(mine, np.flatnonzero(state.example_classes == self.target[mine[0]]), self._plane(state, mine[0]))
            for mine in every
        ]

    def _plane(self, state: "SearchState", row: int) -> Planes:
        return state.hyperplanes.of_class(self.target[row : row + 1])

    def welcome(self, classes: Indices) -> Mask:
        """Return which points, by their class, each row should be close to (rows, points)."""
        return np.asarray(classes == self.target[:, None])


@dataclass(frozen=True)
class Named(QueryTargets):
    """The class `target` itself."""

    def reached(self, predictions: Predictions, rows: Indices) -> Mask:
        return np.asarray(predictions.classes == self.target[rows])

    def _lead(self, scores: Floats, rows: Indices) -> Floats:
        return _lead_over_others(scores, self.target[rows])

    def _expected(self, outputs: Floats | Floats32) -> Floats | Floats32:
        return lead_of(outputs, self.target)


@dataclass(frozen=True)
class Other(QueryTargets):
    """Any class but `own` (rows,); `target` is the likeliest of them."""

    own: Indices = field(kw_only=True)

    def reached(self, predictions: Predictions, rows: Indices) -> Mask:
        return np.asarray((predictions.classes != self.own[rows]) & (predictions.classes >= 0))

    def _lead(self, scores: Floats, rows: Indices) -> Floats:
        return -_lead_over_others(scores, self.own[rows])

    def _expected(self, outputs: Floats | Floats32) -> Floats | Floats32:
        return -lead_of(outputs, self.own)

    def planes(self, state: "SearchState", latent: Floats, regional: bool) -> Planes:
        normals, offsets = state.planes_of(latent, self.own, regional)
        return -normals, -offsets

    def parts(self, state: "SearchState") -> list[Part]:
        every = [np.flatnonzero(self.own == own) for own in np.unique(self.own)]
        return [
            Part(mine, np.flatnonzero(state.example_classes != self.own[mine[0]]), self._plane(state, mine[0]))
            for mine in every
        ]

    def _plane(self, state: "SearchState", row: int) -> Planes:
        normals, offsets = state.hyperplanes.of_class(self.own[row : row + 1])
        return -normals, -offsets

    def welcome(self, classes: Indices) -> Mask:
        return np.asarray(classes != self.own[:, None])


@dataclass(frozen=True)
class Within(QueryTargets):
    """A number between `low` and `high` (rows,): how far the class `of` (rows,) leads over the others together. For
    probabilities these are log-odds; for a regression model the second class stands for high numbers.

    `target` is the class to move toward: `of` from below, another one from above.
    """

    of: Indices = field(kw_only=True)
    low: Floats = field(kw_only=True)
    high: Floats = field(kw_only=True)

    def reached(self, predictions: Predictions, rows: Indices) -> Mask:
        assert predictions.scores is not None
        with np.errstate(invalid="ignore"):
            inside = _inside(_odds(predictions.scores, self.of[rows]), self.low[rows], self.high[rows]) >= 0
        return np.asarray(inside & (predictions.classes >= 0))

    def _lead(self, scores: Floats, rows: Indices) -> Floats:
        return _inside(_odds(scores, self.of[rows]), self.low[rows], self.high[rows])

    def leads(self, predictions: Predictions, rows: Indices, lowest: float = NO_LIMIT) -> Floats:
        assert predictions.scores is not None
        with np.errstate(invalid="ignore"):
            odds = np.round(_odds(np.maximum(predictions.scores, lowest), self.of[rows]), DIGITS)
        return np.where(predictions.classes < 0, -np.inf, odds)

    def odds(self, outputs: Floats | Floats32) -> Floats | Floats32:
        """Return the number itself as the surrogate expects it (rows, K)."""
        if outputs.shape[2] == 1:
            return np.asarray(outputs[..., 0] * np.where(self.of == 1, 1.0, -1.0).astype(np.float32)[:, None])
        odds = _odds(outputs.reshape(-1, outputs.shape[2]), np.repeat(self.of, outputs.shape[1]))
        return odds.reshape(outputs.shape[:2])

    def _expected(self, outputs: Floats | Floats32) -> Floats | Floats32:
        return np.asarray(_inside(self.odds(outputs), self.low[:, None], self.high[:, None]), dtype=np.float32)

    def parts(self, state: "SearchState") -> list[Part]:
        """Return examples the surrogate expects within or near the bounds; all of the class if there is no surrogate."""
        sort = np.stack([self.target, self.of, self.low, self.high], axis=1).astype(np.float64)
        _, first, place = np.unique(sort, axis=0, return_index=True, return_inverse=True)
        return [
            Part(np.flatnonzero(place == k), self._examples(state, row), self._plane(state, row))
            for k, row in enumerate(first)
        ]

    def _examples(self, state: "SearchState", row: int) -> Indices:
        outputs = state.example_outputs
        if outputs is None:
            return np.flatnonzero(state.example_classes == self.target[row])
        inside = replace(self.take(np.array([row])), need=None).expected(outputs[None])[0]
        kept = np.flatnonzero(inside > 0)
        least = state.config.search.min_interval_examples
        return kept if len(kept) >= least else np.sort(np.argsort(-inside, kind="stable")[:least])


def _lead_over_others(scores: Floats, target: Indices) -> Floats:
    every = np.arange(len(target))
    others = scores.copy()
    own = others[every, target]
    others[every, target] = -np.inf
    return np.asarray(own - others.max(axis=1))


def _odds(scores: Floats | Floats32, of: Indices) -> Floats | Floats32:
    """Return the score of class `of` (N,) against all others together: log-odds where scores are log-probabilities."""
    every = np.arange(len(of))
    others = scores.copy()
    own = others[every, of]
    others[every, of] = -np.inf
    top = others.max(axis=1)
    return np.asarray(own - top - np.log(np.exp(others - top[:, None]).sum(axis=1)))


def _inside(value: Floats | Floats32, low: Floats, high: Floats) -> Floats:
    """Return how far values lie inside the bounds, negative outside."""
    return np.asarray(np.minimum(value - low, high - value))
