"""What counts as the wanted answer: a class, any other class, or a number within bounds; and by how much it is missed.

A goal turns what the model says, and what its copy expects, into one margin: positive where the answer is the wanted one.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from fasterce.profile import Floats
from fasterce.surrogate.runtime import Singles32, lead_of

if TYPE_CHECKING:
    from fasterce.search.task import Knowledge

DIGITS = 9
NO_LIMIT = -1e300
MOST_NEARLY = 40

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Planes = tuple[Floats, Floats]


class Said(Protocol):
    """What was answered: a class a row, below 0 where the model failed, and a score a class if there are any."""

    @property
    def classes(self) -> Indices: ...

    @property
    def scores(self) -> Floats | None: ...


@dataclass(frozen=True)
class Part:
    """Some of the rows, the examples that have what they want, and the hyperplane these lie beyond."""

    rows: Indices
    examples: Indices
    plane: Planes


@dataclass(frozen=True)
class Goal(ABC):
    """`target` (rows,) is the class whose hyperplane, examples and prototypes show the way; `need` (rows,) how much more
    than the boundary a margin must reach."""

    target: Indices
    need: Floats | None = None

    def take(self, rows: Any) -> Self:
        return replace(self, **{name: value[rows] for name, value in self.__dict__.items() if value is not None})

    def demanding(self, need: Floats) -> Self:
        """The same goal, reached only that much farther on."""
        return replace(self, need=need)

    def margins(self, said: Said, rows: Indices, lowest: float = NO_LIMIT) -> Floats:
        """Positive where the answer is the wanted one; graded by the scores if there are any, none counted below `lowest`.

        Rounded: a model's scores may differ in their last bits between a batch and a single row.
        """
        hit = self.reached(said, rows)
        if said.scores is None:
            return np.where(said.classes < 0, -np.inf, np.where(hit, 1.0, -1.0))
        with np.errstate(invalid="ignore"):
            lead = np.round(self._lead(np.maximum(said.scores, lowest), rows), DIGITS)
        tiny = np.finfo(np.float64).tiny
        lead = np.where(hit, np.maximum(lead, tiny), np.minimum(lead, -tiny))
        if self.need is not None:
            lead = lead - self.need[rows]
        return np.where(said.classes < 0, -np.inf, lead)

    def expected(self, outputs: Singles32) -> Singles32:
        """The same for what the copy puts out (rows, K, C)."""
        lead = self._expected(outputs)
        return lead if self.need is None else np.asarray(lead - self.need.astype(np.float32)[:, None])

    @abstractmethod
    def reached(self, said: Said, rows: Indices) -> Mask:
        """Whether each answer is what its row wants; `need` left aside."""

    @abstractmethod
    def _lead(self, scores: Floats, rows: Indices) -> Floats: ...

    @abstractmethod
    def _expected(self, outputs: Singles32) -> Singles32: ...

    def planes(self, knowledge: "Knowledge", latent: Floats, regional: bool) -> Planes:
        """The prediction hyperplane of every row, its normal pointing to where the wanted answer is."""
        return knowledge.planes_of(latent, self.target, regional)

    def parts(self, knowledge: "Knowledge") -> list[Part]:
        every = [np.flatnonzero(self.target == target) for target in np.unique(self.target)]
        return [
            Part(mine, np.flatnonzero(knowledge.example_classes == self.target[mine[0]]), self._plane(knowledge, mine[0]))
            for mine in every
        ]

    def _plane(self, knowledge: "Knowledge", row: int) -> Planes:
        return knowledge.hyperplanes.of_class(self.target[row : row + 1])

    def welcome(self, classes: Indices) -> Mask:
        """Which of some points, by their class, each row wants to be near (rows, points)."""
        return np.asarray(classes == self.target[:, None])


@dataclass(frozen=True)
class Named(Goal):
    """The class `target` itself."""

    def reached(self, said: Said, rows: Indices) -> Mask:
        return np.asarray(said.classes == self.target[rows])

    def _lead(self, scores: Floats, rows: Indices) -> Floats:
        return _over_the_others(scores, self.target[rows])

    def _expected(self, outputs: Singles32) -> Singles32:
        return lead_of(outputs, self.target)


@dataclass(frozen=True)
class Other(Goal):
    """Any class but `own` (rows,); `target` is the likeliest of them."""

    own: Indices | Any = None

    def reached(self, said: Said, rows: Indices) -> Mask:
        return np.asarray((said.classes != self.own[rows]) & (said.classes >= 0))

    def _lead(self, scores: Floats, rows: Indices) -> Floats:
        return -_over_the_others(scores, self.own[rows])

    def _expected(self, outputs: Singles32) -> Singles32:
        return np.asarray(-lead_of(outputs, self.own))

    def planes(self, knowledge: "Knowledge", latent: Floats, regional: bool) -> Planes:
        normals, offsets = knowledge.planes_of(latent, self.own, regional)
        return -normals, -offsets

    def parts(self, knowledge: "Knowledge") -> list[Part]:
        every = [np.flatnonzero(self.own == own) for own in np.unique(self.own)]
        return [
            Part(mine, np.flatnonzero(knowledge.example_classes != self.own[mine[0]]), self._plane(knowledge, mine[0]))
            for mine in every
        ]

    def _plane(self, knowledge: "Knowledge", row: int) -> Planes:
        normals, offsets = knowledge.hyperplanes.of_class(self.own[row : row + 1])
        return -normals, -offsets

    def welcome(self, classes: Indices) -> Mask:
        return np.asarray(classes != self.own[:, None])


@dataclass(frozen=True)
class Within(Goal):
    """A number between `low` and `high` (rows,): how far the class `of` (rows,) leads over the others together. For
    chances these are log-odds, for a model that answers numbers its second class stands for high ones.

    `target` is the class to head for: `of` from below, another one from above.
    """

    of: Indices | Any = None
    low: Floats | Any = None
    high: Floats | Any = None

    def reached(self, said: Said, rows: Indices) -> Mask:
        assert said.scores is not None
        with np.errstate(invalid="ignore"):
            inside = _inside(_odds(said.scores, self.of[rows]), self.low[rows], self.high[rows]) >= 0
        return np.asarray(inside & (said.classes >= 0))

    def _lead(self, scores: Floats, rows: Indices) -> Floats:
        return np.asarray(_inside(_odds(scores, self.of[rows]), self.low[rows], self.high[rows]))

    def odds(self, outputs: Singles32) -> Singles32:
        """The number itself, as the copy expects it (rows, K)."""
        if outputs.shape[2] == 1:
            return np.asarray(outputs[..., 0] * np.where(self.of == 1, 1.0, -1.0).astype(np.float32)[:, None])
        odds = _odds(outputs.reshape(-1, outputs.shape[2]), np.repeat(self.of, outputs.shape[1]))
        return np.asarray(odds.reshape(outputs.shape[:2]))

    def _expected(self, outputs: Singles32) -> Singles32:
        return np.asarray(_inside(self.odds(outputs), self.low[:, None], self.high[:, None]), dtype=np.float32)

    def parts(self, knowledge: "Knowledge") -> list[Part]:
        """Examples the copy expects within the bounds of the first row of each part, or nearly; all of the class where
        there is no copy."""
        sort = np.stack([self.target, self.of, self.low, self.high], axis=1).astype(np.float64)
        _, first, place = np.unique(sort, axis=0, return_index=True, return_inverse=True)
        return [
            Part(np.flatnonzero(place == k), self._examples(knowledge, row), self._plane(knowledge, row))
            for k, row in enumerate(first)
        ]

    def _examples(self, knowledge: "Knowledge", row: int) -> Indices:
        outputs = knowledge.example_outputs
        if outputs is None:
            return np.flatnonzero(knowledge.example_classes == self.target[row])
        inside = replace(self.take(np.array([row])), need=None).expected(outputs[None])[0]
        kept = np.flatnonzero(inside > 0)
        return kept if len(kept) >= MOST_NEARLY else np.sort(np.argsort(-inside, kind="stable")[:MOST_NEARLY])


def _over_the_others(scores: Floats, target: Indices) -> Floats:
    every = np.arange(len(target))
    others = scores.copy()
    own = others[every, target]
    others[every, target] = -np.inf
    return np.asarray(own - others.max(axis=1))


def _odds(scores: Any, of: Indices) -> Any:
    """The score of class `of` (N,) against all others together: log-odds where scores are log-probabilities."""
    every = np.arange(len(of))
    others = scores.copy()
    own = others[every, of]
    others[every, of] = -np.inf
    top = others.max(axis=1)
    return own - top - np.log(np.exp(others - top[:, None]).sum(axis=1))


def _inside(value: Any, low: Any, high: Any) -> Any:
    """How far inside the bounds, negative outside."""
    return np.minimum(value - low, high - value)
