"""Does an answer still hold when things are a little different: the input shaken, the model fitted again?

Both trials say for what share of the cases it holds and, where the model has scores, by how much farther beyond the
boundary it would have had to be.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal, Protocol

import numpy as np
from scipy.stats import norm

from fasterce.codec import Codec
from fasterce.errors import InputError, unknown_name
from fasterce.frames import as_kind, as_pandas, kind_of
from fasterce.predictor import Predictor
from fasterce.profile import Floats
from fasterce.schema import MISSING
from fasterce.search.goal import DIGITS, Goal, Indices
from fasterce.search.judge import Asks
from fasterce.search.task import Task
from fasterce.table import Table, as_single, is_single

SHAKES = 64
SHAKEN = 0.05
SLACK = 1.1
TURNS = 6
MOST_SHAKEN = 200_000
GUESSED, GUESS_SLACK, SUREST = 4, 0.8, 0.999
READ_AT_ONCE = 256

Kind = Literal["robust", "survived"]


@dataclass(frozen=True)
class Held:
    """For every answer the share of cases in which it holds, and the lead it would need (NaN where nobody knows)."""

    share: Floats
    need: Floats


class Trial(Protocol):
    @property
    def kind(self) -> Kind: ...

    @property
    def share(self) -> float: ...

    @property
    def questions(self) -> int:
        """How many rows the model is asked about for one answer."""
        ...

    def first_need(self, task: Task) -> Floats:
        """How far beyond the boundary the answers of each row may have to be, by the copy."""
        ...

    def test(self, codes: Floats, goal: Goal, rows: Indices) -> Held:
        """Answers (N, features) to `rows` (N,) of the goal."""
        ...


@dataclass(frozen=True)
class Shaking:
    """Normal noise on numbers, the same for every row: each shake has its opposite."""

    ask: Asks
    table: Table
    share: float
    noise: Floats
    kind: Kind = "robust"

    @property
    def questions(self) -> int:
        """Half of the shakes and, where something is asked of an answer, the other half; with itself each."""
        half = len(self.noise) // 2 + 1
        return half if self.share == 0 else 2 * half

    @property
    def _cases(self) -> int:
        return len(self.noise) + 1

    def first_need(self, task: Task) -> Floats:
        surrogate = task.knowledge.surrogate
        if surrogate is None:
            return np.zeros(len(task.domain.base))
        few = replace(self, noise=self.noise[: 2 * GUESSED])
        codes = few._shaken(task.domain.base)
        drop = np.empty((len(codes), 2 * GUESSED))
        for start in range(0, len(codes), READ_AT_ONCE):
            part = slice(start, start + READ_AT_ONCE)
            lead = task.goal.take(part).expected(surrogate.outputs_of(codes[part]))
            drop[part] = lead[:, :1] - lead[:, 1:]
        deviation = np.sqrt((drop**2).mean(axis=1))
        return np.asarray(np.round(GUESS_SLACK * norm.ppf(min(self.share, SUREST)) * deviation, DIGITS).clip(0.0))

    def test(self, codes: Floats, goal: Goal, rows: Indices) -> Held:
        every = np.arange(len(codes))
        size = max(1, MOST_SHAKEN // self.questions)
        parts = [self._test(codes[part], goal, rows[part]) for part in np.split(every, range(size, len(every), size))]
        return Held(np.concatenate([p.share for p in parts]), np.concatenate([p.need for p in parts]))

    def _test(self, codes: Floats, goal: Goal, rows: Indices) -> Held:
        """Half of the shakes first; only answers that stand these are put to the others, and judged by all."""
        half = replace(self, noise=self.noise[: len(self.noise) // 2])
        held = half._tried(codes, goal, rows)
        if self.share == 0:
            return held
        stands = np.flatnonzero(held.share >= self.share)
        other = replace(self, noise=self.noise[len(self.noise) // 2 :])._tried(codes[stands], goal, rows[stands])
        share, need = held.share.copy(), held.need.copy()
        share[stands], need[stands] = (share[stands] + other.share) / 2, np.fmax(need[stands], other.need)
        return Held(share, need)

    def _tried(self, codes: Floats, goal: Goal, rows: Indices) -> Held:
        if not len(codes):
            return Held(np.zeros(0), np.zeros(0))
        shaken = self._shaken(codes)
        said = self.ask(shaken.reshape(-1, codes.shape[1]))
        margin = goal.margins(said, np.repeat(rows, self._cases)).reshape(len(codes), self._cases)
        return _held(margin, self.share, said.scores is not None)

    def _shaken(self, codes: Floats) -> Floats:
        """Answers (N, features) as they are and under every shake: (N, 1 + shakes, features), inside the columns' ranges."""
        features = self.table.schema.features
        shaken = np.repeat(codes[:, None, :], self._cases, axis=1)
        for j in np.flatnonzero(self.noise.any(axis=0)):
            feature, own = features[j], codes[:, j][:, None]
            value = own + self.noise[:, j]
            value = np.round(value) if feature.integer else value
            value = np.clip(value, np.minimum(feature.lower, own), np.maximum(feature.upper, own))
            value = as_single(value) if is_single(self.table.dtypes[j]) else value
            shaken[:, 1:, j] = np.where(own == MISSING, MISSING, value)
        return shaken


@dataclass(frozen=True)
class Refitting:
    """Models of the same kind, each fitted to another draw of the training rows; `predictor` is the one explained, whose
    lead is what a search can demand."""

    predictor: Predictor
    models: Sequence[Predictor]
    share: float
    kind: Kind = "survived"
    questions: int = 1

    def first_need(self, task: Task) -> Floats:
        return np.zeros(len(task.domain.base))

    def test(self, codes: Floats, goal: Goal, rows: Indices) -> Held:
        said = [model.ask(codes) for model in (self.predictor, *self.models)]
        margin = np.stack([goal.margins(one, rows) for one in said], axis=1)
        return _held(margin, self.share, all(one.scores is not None for one in said))


def _held(margin: Floats, share: float, graded: bool) -> Held:
    """`margin` (N, 1 + cases): of the answer itself, then of every case."""
    finite = np.where(np.isfinite(margin), margin, -1e3)
    need = _need(finite, share) if graded else np.full(len(margin), np.nan)
    return Held((margin[:, 1:] > 0).mean(axis=1), need)


def _need(lead: Floats, share: float) -> Floats:
    """The lead at which so large a share of the cases would still lead, if all moved along."""
    drop = np.sort(lead[:, :1] - lead[:, 1:], axis=1)
    last = min(int(np.ceil(share * drop.shape[1])), drop.shape[1]) - 1
    return np.asarray(np.round(np.maximum(SLACK * drop[:, max(last, 0)], 0.0), DIGITS))


def shaking(ask: Asks, table: Table, codec: Codec, share: Any, sigma: Mapping[Any, float] | None, seed: int) -> Shaking:
    """`sigma` gives columns a standard deviation of their own; the others have a twentieth of theirs in the data. Without
    a share the answers are measured and nothing is asked of them."""
    if share is not None:
        _check_share("robust", share)
    spread = np.zeros(len(codec.schema))
    spread[codec.numeric] = SHAKEN * codec.profile.std[codec.numeric]
    for name, value in _check_sigma(sigma, table).items():
        spread[name] = value
    drawn = np.random.default_rng(seed).standard_normal((SHAKES // 2, len(spread)))
    half = np.stack([drawn, -drawn], axis=1).reshape(SHAKES, len(spread))
    return Shaking(ask, table, float(share or 0.0), half * spread)


def refitting(predictor: Predictor, models: Sequence[Predictor], share: Any) -> Refitting:
    _check_share("survive", share)
    if not models:
        raise InputError("survive needs refitted models; expected a call of fit_ensemble(fit, X, y) first.")
    return Refitting(predictor, models, float(share))


def ensemble(fit: Callable[[Any, Any], Any], X: Any, y: Any, count: Any, seed: int) -> list[Any]:
    """Models fitted to bootstraps of the rows."""
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 2:
        raise InputError(f"count must be a whole number of at least 2; got {count!r}.")
    kind, X = kind_of(X), as_pandas(X)
    labels = np.asarray(y)
    if len(labels) != len(X):
        raise InputError(f"y must have one label for every row of X; got {len(labels)} for {len(X)} rows.")
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(len(X), size=len(X)) for _ in range(int(count))]
    return [fit(as_kind(X.iloc[rows].reset_index(drop=True), kind), labels[rows]) for rows in drawn]


def _check_share(what: str, share: Any) -> None:
    if isinstance(share, bool) or not isinstance(share, Real) or not 0 < float(share) <= 1:
        raise InputError(f"{what} must be a share above 0 and up to 1; got {share!r}.")


def _check_sigma(sigma: Mapping[Any, float] | None, table: Table) -> dict[int, float]:
    if sigma is None:
        return {}
    if not isinstance(sigma, Mapping):
        raise InputError(f"shake must be a dictionary {{column: standard deviation}}; got {sigma!r}.")
    names = table.schema.names
    checked: dict[int, float] = {}
    for name, value in sigma.items():
        if name not in names:
            raise InputError(unknown_name("column in shake", name, names))
        if not table.schema[name].numeric:
            raise InputError(f"shake must name numeric columns; {name!r} is categorical.")
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < float("inf"):
            raise InputError(f"shake must give every column a standard deviation of at least 0; got {value!r} for {name!r}.")
        checked[table.schema.position(name)] = float(value)
    return checked
