"""The options of one call, resolved against what `fit` has learned."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fasterce.config import SearchConfig
from fasterce.constraints.compile import CompiledConstraints
from fasterce.errors import InputError
from fasterce.fitting.state import SearchState
from fasterce.models.compiled.model import CompiledModel
from fasterce.models.predictor import Predictor
from fasterce.options import ExplainOptions
from fasterce.search import methods, robustness, target
from fasterce.search.context import SearchContext
from fasterce.search.distance import Distance
from fasterce.search.distance import choose as choose_distance
from fasterce.search.engines import latent, paper
from fasterce.search.limits import Clock, Limits
from fasterce.search.robustness import RobustnessCheck
from fasterce.search.rounds import Search
from fasterce.search.target import Target
from fasterce.typing import Indices

Variant = Callable[[SearchContext, int], Search]
ENGINES = {"hybrid": methods, "latent": latent, "paper": paper}
FEWEST_SEARCHED = 1


@dataclass(frozen=True)
class SearchPlan:
    """What one search works with.

    Parameters
    ----------
    options : ExplainOptions
        As given.
    variants : sequence of (name, search)
        The searches of the method: one, or three for "all".
    target : Target
        What the model should predict.
    constraints : CompiledConstraints
        Those of the schema and of the call.
    distance : Distance
        How changes are measured.
    checks : sequence of RobustnessCheck
        What counterfactuals must withstand.
    progress : bool, optional
        Whether a progress bar is shown.
    clock : Clock
        Measures the deadline.
    config : SearchConfig
        Tuning constants.
    """

    options: ExplainOptions
    variants: Sequence[tuple[str, Variant]]
    target: Target
    constraints: CompiledConstraints
    distance: Distance
    checks: Sequence[RobustnessCheck] = ()
    progress: bool | None = None
    clock: Clock = field(default_factory=Clock)
    config: SearchConfig = field(default_factory=SearchConfig)

    @classmethod
    def resolve(
        cls,
        options: ExplainOptions,
        predictor: Predictor,
        state: SearchState,
        *,
        compiled: CompiledModel | None = None,
        ensemble: Sequence[Predictor] = (),
        seed: int = 0,
        progress: bool | None = None,
    ) -> "SearchPlan":
        """Check options against the model and the fitted state.

        `compiled` is the compiled model if there is one, `ensemble` the refitted models, `seed` that of the noise.
        """
        options.check_effects()
        codec, config = state.codec, state.config.search
        called = (options.features_to_vary, options.permitted_range, options.constraints, options.override)
        plan = cls(
            options=options,
            variants=choose_variants(options),
            target=target.choose(predictor, options.target, options.target_score),
            constraints=CompiledConstraints.compile(predictor.table, codec, *called),
            distance=choose_distance(options.distance, codec, state.distances),
            checks=_checks(options, predictor, state, compiled, ensemble, seed),
            progress=progress,
            config=config,
        )
        least = 1 + plan.set_aside + FEWEST_SEARCHED
        if options.budget is not None and options.budget < least:
            raise InputError("options.not_a_count", option="budget", expected=least, received=options.budget)
        return plan

    @property
    def engine(self) -> Any:
        """The module of the searches."""
        return ENGINES[self.options.engine]

    @property
    def set_aside(self) -> int:
        """Model rows per query kept for its own label, and for the verification and robustness of its counterfactuals."""
        each = self.config.verification_attempts + sum(check.model_rows for check in self.checks)
        return 1 + each * self.options.n * len(self.variants)

    def limits(self, spent: Indices, started: float, each: float, free: bool) -> Limits:
        """Return what is left of each query's budget (a compiled model is `free`) and of the time, less what verification
        will need of both. `each` is the time of one model row in seconds."""
        options = self.options
        left = None if options.budget is None or free else np.maximum(options.budget - self.set_aside - spent, 0)
        verification = each * len(spent) * (1 + options.n * len(self.variants))
        until = None if options.deadline is None else started + options.deadline - verification
        return Limits(left, until, np.zeros(len(spent), dtype=bool), each, self.clock)

    @property
    def stopping_limits(self) -> dict[str, float | None]:
        """The limits that can stop the search."""
        return {"budget": self.options.budget, "deadline": self.options.deadline}


def choose_variants(options: ExplainOptions) -> list[tuple[str, Variant]]:
    """Return the searches of a method by name."""
    known: dict[str, Variant] = ENGINES[options.engine].VARIANTS
    return list(known.items()) if options.method == "all" else [(options.method, known[options.method])]


def _checks(
    options: ExplainOptions,
    predictor: Predictor,
    state: SearchState,
    compiled: CompiledModel | None,
    ensemble: Sequence[Predictor],
    seed: int,
) -> list[RobustnessCheck]:
    """Where several methods are compared, robustness to noise is measured in any case, by the compiled model if possible."""
    config = state.config.search
    checks: list[RobustnessCheck] = []
    if options.robust is not None or (options.method == "all" and options.budget is None):
        quick = compiled if compiled is not None and options.robust is None else predictor
        noise = (options.robust, options.noise, seed, config)
        checks.append(robustness.noise_check(quick.evaluate, predictor.table, state.codec, *noise))
    if options.ensemble_agreement is not None:
        checks.append(robustness.ensemble_check(predictor, ensemble, options.ensemble_agreement, config))
    return checks
