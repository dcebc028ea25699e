"""Robustness checks: does a counterfactual keep the target under input noise, and for refitted models?

Both checks measure the share of cases and, where the model has scores, the margin beyond the boundary that would be needed.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from fasterce.config import SearchConfig
from fasterce.data.codec import Codec
from fasterce.data.dtypes import as_single, is_single
from fasterce.data.frames import as_kind, as_pandas, kind_of
from fasterce.data.schema import MISSING
from fasterce.data.table import Table
from fasterce.errors import InputError, unknown
from fasterce.models.predictions import Evaluate
from fasterce.models.predictor import Predictor
from fasterce.models.protocol import Model
from fasterce.search.context import SearchContext
from fasterce.search.query_targets import DIGITS, QueryTargets
from fasterce.typing import Floats, Indices, Objects

DEFAULTS = SearchConfig()

Kind = Literal["robust", "ensemble_agreement"]


@dataclass(frozen=True)
class Held:
    """The share of cases in which each counterfactual holds, and the margin it would need (NaN if unknown)."""

    share: Floats
    need: Floats


class RobustnessCheck(Protocol):
    """A check that counterfactuals must pass for at least `share` of the cases."""

    @property
    def kind(self) -> Kind: ...

    @property
    def share(self) -> float: ...

    @property
    def model_rows(self) -> int:
        """Model rows per counterfactual."""
        ...

    def first_need(self, context: SearchContext) -> Floats:
        """Return the margin that counterfactuals of each row may need, estimated by the surrogate."""
        ...

    def test(self, codes: Floats, targets: QueryTargets, rows: Indices) -> Held:
        """Check counterfactuals (N, features) of `rows` (N,)."""
        ...


@dataclass(frozen=True)
class NoiseCheck:
    """Normal noise on numbers, the same for every row; each draw is followed by its opposite."""

    evaluate: Evaluate
    table: Table
    share: float
    noise: Floats
    kind: Kind = "robust"
    config: SearchConfig = DEFAULTS

    @property
    def model_rows(self) -> int:
        """Half of the draws, and the other half if a share is required; each half with the counterfactual itself."""
        half = len(self.noise) // 2 + 1
        return half if self.share == 0 else 2 * half

    @property
    def _cases(self) -> int:
        return len(self.noise) + 1

    def first_need(self, context: SearchContext) -> Floats:
        surrogate = context.state.surrogate
        if surrogate is None:
            return np.zeros(len(context.domain.base))
        config = self.config
        few = replace(self, noise=self.noise[: 2 * config.estimated_draws])
        codes = few._noisy(context.domain.base)
        drop = np.empty((len(codes), 2 * config.estimated_draws))
        for start in range(0, len(codes), config.estimated_batch_rows):
            part = slice(start, start + config.estimated_batch_rows)
            lead = context.targets.take(part).expected(surrogate.outputs_of(codes[part]))
            drop[part] = lead[:, :1] - lead[:, 1:]
        deviation = np.sqrt((drop**2).mean(axis=1))
        quantile = ndtri(min(self.share, config.max_estimated_share))
        return np.asarray(np.round(config.estimated_slack * quantile * deviation, DIGITS).clip(0.0))

    def test(self, codes: Floats, targets: QueryTargets, rows: Indices) -> Held:
        every = np.arange(len(codes))
        size = max(1, self.config.max_noisy_rows // self.model_rows)
        parts = [self._test(codes[part], targets, rows[part]) for part in np.split(every, range(size, len(every), size))]
        return Held(np.concatenate([p.share for p in parts]), np.concatenate([p.need for p in parts]))

    def _test(self, codes: Floats, targets: QueryTargets, rows: Indices) -> Held:
        """Check half of the draws, then the other half for counterfactuals that pass the first."""
        half = replace(self, noise=self.noise[: len(self.noise) // 2])
        held = half._measure(codes, targets, rows)
        if self.share == 0:
            return held
        stands = np.flatnonzero(held.share >= self.share)
        other = replace(self, noise=self.noise[len(self.noise) // 2 :])._measure(codes[stands], targets, rows[stands])
        share, need = held.share.copy(), held.need.copy()
        share[stands], need[stands] = (share[stands] + other.share) / 2, np.fmax(need[stands], other.need)
        return Held(share, need)

    def _measure(self, codes: Floats, targets: QueryTargets, rows: Indices) -> Held:
        if not len(codes):
            return Held(np.zeros(0), np.zeros(0))
        noisy = self._noisy(codes)
        predictions = self.evaluate(noisy.reshape(-1, codes.shape[1]))
        margin = targets.margins(predictions, np.repeat(rows, self._cases)).reshape(len(codes), self._cases)
        return _held(margin, self, predictions.scores is not None)

    def _noisy(self, codes: Floats) -> Floats:
        """Return each counterfactual and its noisy copies, within the ranges of the columns: (N, 1 + draws, features)."""
        features = self.table.schema.features
        noisy = np.repeat(codes[:, None, :], self._cases, axis=1)
        for j in np.flatnonzero(self.noise.any(axis=0)):
            feature, own = features[j], codes[:, j][:, None]
            value = own + self.noise[:, j]
            value = np.round(value) if feature.integer else value
            value = np.clip(value, np.minimum(feature.lower, own), np.maximum(feature.upper, own))
            value = as_single(value) if is_single(self.table.dtypes[j]) else value
            noisy[:, 1:, j] = np.where(own == MISSING, MISSING, value)
        return noisy


@dataclass(frozen=True)
class EnsembleCheck:
    """Models fitted to bootstrap samples of the training rows; `predictor` is the explained model, whose margin the search
    can increase."""

    predictor: Predictor
    models: Sequence[Predictor]
    share: float
    kind: Kind = "ensemble_agreement"
    model_rows: int = 1
    config: SearchConfig = DEFAULTS

    def first_need(self, context: SearchContext) -> Floats:
        return np.zeros(len(context.domain.base))

    def test(self, codes: Floats, targets: QueryTargets, rows: Indices) -> Held:
        predictions = [model.evaluate(codes) for model in (self.predictor, *self.models)]
        margin = np.stack([targets.margins(one, rows) for one in predictions], axis=1)
        return _held(margin, self, all(one.scores is not None for one in predictions))


def _held(margin: Floats, check: NoiseCheck | EnsembleCheck, graded: bool) -> Held:
    """Evaluate `margin` (N, 1 + cases): that of the counterfactual itself, then that of every case."""
    finite = np.where(np.isfinite(margin), margin, -1e3)
    need = _need(finite, check.share, check.config.robustness_slack) if graded else np.full(len(margin), np.nan)
    return Held((margin[:, 1:] > 0).mean(axis=1), need)


def _need(lead: Floats, share: float, slack: float = DEFAULTS.robustness_slack) -> Floats:
    """Return the margin at which the required share of cases would be positive, if all increased alike."""
    drop = np.sort(lead[:, :1] - lead[:, 1:], axis=1)
    last = min(int(np.ceil(share * drop.shape[1])), drop.shape[1]) - 1
    return np.asarray(np.round(np.maximum(slack * drop[:, max(last, 0)], 0.0), DIGITS))


def noise_check(
    evaluate: Evaluate,
    table: Table,
    codec: Codec,
    share: float | None,
    sigma: Mapping[Hashable, float] | None,
    seed: int,
    config: SearchConfig = DEFAULTS,
) -> NoiseCheck:
    """Return the check of input noise.

    `sigma` are standard deviations by column; the default is a twentieth of that in the data. Without a share the check
    only measures.
    """
    spread = np.zeros(len(codec.schema))
    spread[codec.numeric] = config.noise_scale * codec.profile.std[codec.numeric]
    for name, value in _check_sigma(sigma, table).items():
        spread[name] = value
    drawn = np.random.default_rng(seed).standard_normal((config.noise_draws // 2, len(spread)))
    half = np.stack([drawn, -drawn], axis=1).reshape(config.noise_draws, len(spread))
    return NoiseCheck(evaluate, table, float(share or 0.0), half * spread, config=config)


def ensemble_check(
    predictor: Predictor, models: Sequence[Predictor], share: float, config: SearchConfig = DEFAULTS
) -> EnsembleCheck:
    """Return the check of refitted models."""
    if not models:
        raise InputError("search.needs_ensemble", option="ensemble_agreement")
    return EnsembleCheck(predictor, models, float(share), config=config)


def ensemble(fit: Callable[[Any, Objects], Model], X: object, y: ArrayLike, count: object, seed: int) -> list[Model]:
    """Return models fitted to bootstrap samples of the rows."""
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 2:
        raise InputError("options.not_a_count", option="count", expected=2, received=count)
    kind, frame = kind_of(X), as_pandas(X)
    labels = np.asarray(y)
    if len(labels) != len(frame):
        raise InputError("search.label_count", option="y", expected=len(frame), received=len(labels))
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(len(frame), size=len(frame)) for _ in range(int(count))]
    return [fit(as_kind(frame.iloc[rows].reset_index(drop=True), kind), labels[rows]) for rows in drawn]


def _check_sigma(sigma: Mapping[Hashable, float] | None, table: Table) -> dict[int, float]:
    if sigma is None:
        return {}
    if not isinstance(sigma, Mapping):
        raise InputError("search.not_deviations", option="noise", received=sigma)
    names = table.schema.names
    checked: dict[int, float] = {}
    for name, value in sigma.items():
        if name not in names:
            raise InputError(unknown("search.unknown_noise_column", name, names, option="noise"))
        if not table.schema[name].numeric:
            raise InputError("search.noise_not_numeric", option="noise", column=name)
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < float("inf"):
            raise InputError("search.not_a_deviation", option="noise", column=name, received=value)
        checked[table.schema.position(name)] = float(value)
    return checked
