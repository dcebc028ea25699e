"""What the caller of `explain` asked for, checked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from fasterce import pricing, targets, trials
from fasterce.codec import Codec
from fasterce.errors import InputError, unknown_name
from fasterce.predictor import Predictor
from fasterce.rules import Rules
from fasterce.search import paper, variants
from fasterce.search.dialogue import Search
from fasterce.search.distance import Distance
from fasterce.search.goal import Indices
from fasterce.search.judge import Clock, Limits
from fasterce.search.task import Task
from fasterce.search.verify import TRIES
from fasterce.targets import Target
from fasterce.trials import Trial
from fasterce.twin.compiled import Twin

Variant = Callable[[Task, int], Search]
FEWEST_SEARCHED = 1
# Candidates are compared with each other, so memory grows with the square of it.
MOST_ANSWERS = 100
PLAIN = ("method", "n", "diversity", "step", "margin", "realism", "budget", "deadline", "why_not")
DEFAULTS: Mapping[str, Any] = {
    **dict.fromkeys(("target", "target_score", "features_to_vary", "permitted_range", "budget", "deadline")),
    **dict.fromkeys(("robust", "shake", "survive")),
    **{"method": "closest", "n": 1, "diversity": 0.5, "rules": (), "override": False, "reading": "movement", "step": 0.1},
    **{"margin": 0.0, "distance": "percentile", "realism": 0.5, "why_not": True},
}


@dataclass(frozen=True)
class Wanted:
    method: str
    variants: Sequence[tuple[str, Variant]]
    reading: Any
    target: Target
    rules: Rules
    distance: Distance
    n: int
    diversity: float
    step: float
    margin: float
    realism: float
    budget: int | None
    deadline: float | None
    progress: bool | None
    trials: Sequence[Trial] = field(default=())
    why_not: bool = True
    clock: Clock = field(default_factory=Clock)

    @property
    def set_aside(self) -> int:
        """Questions kept back for a row's own label and for those of its answers, and of others if these are refused."""
        each = TRIES + sum(trial.questions for trial in self.trials)
        return 1 + each * self.n * len(self.variants)

    def limits(self, spent: Indices, started: float, each: float, free: bool) -> Limits:
        """What is left of each row's budget, a twin may be asked for free; and of the time, less what it will take to ask
        for the labels of the rows and of their answers."""
        left = None if self.budget is None or free else np.maximum(self.budget - self.set_aside - spent, 0)
        last_word = each * len(spent) * (1 + self.n * len(self.variants))
        until = None if self.deadline is None else started + self.deadline - last_word
        return Limits(left, until, np.zeros(len(spent), dtype=bool), each, self.clock)

    def why_stopped(self) -> str:
        limits = [f"budget of {self.budget} rows asked"] if self.budget is not None else []
        limits += [f"deadline of {self.deadline:g} s"] if self.deadline is not None else []
        return f"Stopped at the {' or the '.join(limits)}"


@dataclass(frozen=True)
class Circumstances:
    """What the options are read against: the model and its twin if it has one, the data's statistics, the seed, and
    refitted models if there are any."""

    predictor: Predictor
    twin: Twin | None
    codec: Codec
    seed: int
    ensemble: Sequence[Predictor]
    progress: bool | None


def read(around: Circumstances, **given: Any) -> Wanted:
    """The options of `explain` by their names there, checked."""
    options = {**DEFAULTS, **given}
    module = choose_reading(options["reading"])
    rules = (options[name] for name in ("features_to_vary", "permitted_range", "rules", "override"))
    return check(
        Wanted(
            variants=choose_variants(options["method"], module),
            reading=module,
            target=targets.choose(around.predictor, options["target"], options["target_score"]),
            rules=Rules.compile(around.predictor.table, around.codec, *rules),
            distance=pricing.choose(options["distance"], around.codec),
            progress=around.progress,
            trials=_trials(around, options),
            **{name: options[name] for name in PLAIN},
        )
    )


def _trials(around: Circumstances, options: Mapping[str, Any]) -> list[Trial]:
    """What answers must stand; where variants are measured side by side, shakes are tried in any case, then on the twin
    where there is one."""
    chosen: list[Trial] = []
    if options["shake"] is not None and options["robust"] is None:
        raise InputError("shake says how far robust= shakes the columns; expected robust too, such as 0.95; got None.")
    if options["robust"] is not None or (options["method"] == "all" and options["budget"] is None):
        quick = around.twin if around.twin is not None and options["robust"] is None else around.predictor
        shake = (options["robust"], options["shake"], around.seed)
        chosen.append(trials.shaking(quick.ask, around.predictor.table, around.codec, *shake))
    if options["survive"] is not None:
        chosen.append(trials.refitting(around.predictor, around.ensemble, options["survive"]))
    return chosen


def choose_reading(reading: str) -> Any:
    """The module whose variants are run."""
    readings = {"movement": variants, "paper": paper}
    if reading not in readings:
        raise InputError(unknown_name("reading", reading, readings))
    return readings[reading]


def choose_variants(method: str, reading: Any) -> list[tuple[str, Variant]]:
    known = reading.VARIANTS
    if method == "all":
        return list(known.items())
    if method not in known:
        raise InputError(unknown_name("method", method, [*known, "all"]))
    return [(method, known[method])]


def check(wanted: Wanted) -> Wanted:
    if isinstance(wanted.n, bool) or not isinstance(wanted.n, Integral) or wanted.n < 1:
        raise InputError(f"n must be a whole number of at least 1; got {wanted.n!r}.")
    if wanted.n > MOST_ANSWERS:
        raise InputError(f"n must be at most {MOST_ANSWERS}; got {wanted.n!r:.40}.")
    for name, value, least in (("step", wanted.step, 1e-6), ("margin", wanted.margin, 0.0)):
        if not isinstance(value, Real) or not least <= float(value) < float("inf"):
            raise InputError(f"{name} must be a number of at least {least:g}; got {value!r}.")
    _check_dial("realism", wanted.realism, "0 (close) to 1 (realistic)")
    _check_dial("diversity", wanted.diversity, "0 (the cheapest) to 1 (as different as possible)")
    _check_limits(wanted.budget, wanted.deadline, 1 + wanted.set_aside + FEWEST_SEARCHED)
    return replace(wanted, n=int(wanted.n), realism=float(wanted.realism), diversity=float(wanted.diversity))


def _check_dial(name: str, value: Any, meaning: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= float(value) <= 1.0:
        raise InputError(f"{name} must be a number from {meaning}; got {value!r}.")


def _check_limits(budget: Any, deadline: Any, least: int) -> None:
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, Integral) or int(budget) < least):
        raise InputError(f"budget must be a whole number of rows asked an explanation, at least {least}; got {budget!r}.")
    sound = isinstance(deadline, Real) and not isinstance(deadline, bool) and 0 < float(deadline) < float("inf")
    if deadline is not None and not sound:
        raise InputError(f"deadline must be a number of seconds above 0; got {deadline!r}.")
