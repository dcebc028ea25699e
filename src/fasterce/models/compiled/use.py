"""How the explainer uses a compiled model: made in `fit` or on `load`, evaluated instead of the model while searching."""

from typing import Literal

from fasterce.config import CompiledConfig
from fasterce.errors import InputError
from fasterce.explanation import CompiledUsage
from fasterce.kernels.warm_up import warm_up
from fasterce.models.compiled.build import DEFAULTS, build
from fasterce.models.compiled.model import CompiledModel
from fasterce.models.predictor import Predictor
from fasterce.typing import Floats

CompileOption = Literal["auto", "never"]


def make(
    model: object, predictor: Predictor, codes: Floats, option: str, config: CompiledConfig = DEFAULTS
) -> tuple[CompiledModel | None, str]:
    """Return the compiled model and its description, or None and the reason."""
    if option not in ("auto", "never"):
        raise InputError("options.unknown_choice", option="compile", expected=("auto", "never"), received=option)
    if option == "never":
        return None, "none wanted"
    if predictor.table.read_passthrough:
        return None, "none for a model that reads columns passed through"
    known = predictor.table, predictor.classes, codes, predictor.use_scores
    compiled, problem = build(model, *known, config, predictor.numbers, predictor.usage)
    if compiled is None:
        return None, str(problem)
    if compiled.scorer is not None:
        warm_up()
    return compiled, f"{compiled.kind}, agrees on {compiled.agreement:.2%}"


def used(compiled: CompiledModel | None) -> CompiledUsage | None:
    """Return how often the compiled model was evaluated."""
    if compiled is None:
        return None
    return CompiledUsage(compiled.kind, compiled.agreement, compiled.usage.calls, compiled.usage.rows)
