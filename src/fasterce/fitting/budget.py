"""The cost of `fit` in model rows: the sizes that follow from `max_fit_rows`, and its choice for a slow model."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from fasterce.config import Config, FitConfig
from fasterce.errors import warn
from fasterce.io.progress import duration
from fasterce.models.predictor import Predictor
from fasterce.options import FitOptions
from fasterce.typing import Floats


def limit_sizes(config: Config, max_rows: int | None) -> Config:
    """Return the configuration with the sizes that a limit on model rows allows; those of the surrogate follow later from
    the rows that are left."""
    if max_rows is None:
        return config
    evaluated, latent = int(max_rows * config.fit.evaluated_share), config.latent
    call, reference = int(max_rows * config.fit.call_share), int(max_rows * config.fit.reference_share)
    return replace(
        config,
        fit=replace(
            config.fit,
            evaluated_rows=min(config.fit.evaluated_rows, evaluated),
            call_rows=min(config.fit.call_rows, call),
        ),
        latent=replace(latent, max_samples=min(latent.max_samples, evaluated)),
        compiled=replace(config.compiled, reference_rows=min(config.compiled.reference_rows, reference)),
    )


@dataclass(frozen=True)
class TableSize:
    """What the number of model rows in `fit` depends on: training rows, features, latent dimensions, use of scores."""

    rows: int
    features: int
    dimensions: int
    scored: bool

    def model_rows(self, config: Config, compiled: bool) -> int:
        """Return the most model rows of the full plan, without those evaluated on a compiled model."""
        evaluated = min(self.rows, config.fit.evaluated_rows)
        rows = evaluated * (1 + self.scored) + config.latent.samples(self.dimensions)
        if compiled:
            return rows + config.compiled.reference_rows
        bends = config.surrogate.bend_model_rows * self.scored
        examples = min(self.rows - evaluated, max(0, config.fit.example_rows - evaluated))
        probes = len(config.fit.probe_rows) * config.fit.probe_model_rows
        return rows + bends + config.surrogate.edited_rows(self.features) + examples + probes


@dataclass(frozen=True)
class ModelSpeed:
    """Seconds a model takes per call and, on top, per row."""

    per_call: float
    per_row: float

    def forecast(self, rows: int, config: FitConfig) -> float:
        """Return the seconds `fit` spends in the model for this number of rows."""
        return config.expected_calls * self.per_call + rows * self.per_row


def time_model(predictor: Predictor, codes: Floats, fast: float, config: FitConfig) -> ModelSpeed:
    """Time calls with more and more rows, until one takes at most `fast` seconds per row or the time per row is clear.

    One call takes the time of its rows and its own overhead; the difference to another tells them apart. A first call may
    load something, so a shorter second one does not show the time per row. Failures are left to the stages of `fit`.
    """
    speed, before, rows_before = ModelSpeed(0.0, 0.0), 0.0, 0
    for rows in config.timed_rows:
        started = perf_counter()
        if not predictor.accepts(codes[np.arange(rows) % len(codes)]):
            break
        seconds = perf_counter() - started
        per_row = min(max(0.0, seconds - before) / (rows - rows_before), seconds / rows)
        speed = ModelSpeed(seconds - per_row * rows, per_row)
        is_clear = rows_before > 0 and seconds >= max(config.timed_seconds, 2 * before)
        if seconds <= fast * rows or is_clear:
            break
        before, rows_before = seconds, rows
    return speed


def choose_max_rows(
    predictor: Predictor,
    codes: Floats,
    size: TableSize,
    settings: FitOptions,
    can_compile: Callable[[], bool],
) -> int | None:
    """Return the most model rows of this `fit`, None for the full plan.

    Without `max_fit_rows`, the model is timed. Where the forecast of the full plan exceeds `max_fit_seconds`, the largest of
    the reduced plans within it is chosen, or the smallest, and a warning says so.
    """
    if settings.max_fit_rows is not None:
        return settings.max_fit_rows
    config, most = settings.tuning, settings.max_fit_seconds
    rows = size.model_rows(config, compiled=False)
    speed = time_model(predictor, codes, most / rows, config.fit)
    if speed.forecast(rows, config.fit) <= most:
        return None
    rows = size.model_rows(config, compiled=can_compile())
    plans = [plan for plan in config.fit.reduced_plans if plan < rows]
    if speed.forecast(rows, config.fit) <= most or not plans:
        return None
    chosen = next((plan for plan in plans if speed.forecast(plan, config.fit) <= most), plans[-1])
    warn(
        "fitting.reduced_plan",
        5,
        full_time=duration(speed.forecast(rows, config.fit)),
        full_rows=f"{rows:,}",
        time=duration(speed.forecast(chosen, config.fit)),
        rows=f"{chosen:,}",
        max_rows=str(chosen),
        farther=f"{config.fit.reduced_plan_costs[config.fit.reduced_plans.index(chosen)]:.0%}",
    )
    return chosen
