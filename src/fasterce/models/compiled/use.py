"""What is compiled in `fit` and on `load`: the model, evaluated in its place while searching, and the search itself."""

import logging
from typing import Literal

from fasterce.config import CompiledConfig
from fasterce.errors import InputError
from fasterce.explanation import CompiledUsage
from fasterce.io.progress import Progress
from fasterce.kernels import jit
from fasterce.kernels.search import search_block
from fasterce.kernels.warm_up import warm_up
from fasterce.models.compiled.build import DEFAULTS, build
from fasterce.models.compiled.model import CompiledModel
from fasterce.models.predictor import Predictor
from fasterce.typing import Floats

CompileOption = Literal["auto", "never"]

COMPILING = "Compiling the search, once per installation (about half a minute)"


def compile_search(progress: Progress | None = None) -> None:
    """Compile the kernels, or read them from the cache on disk; say so if they are compiled.

    Parameters
    ----------
    progress : Progress, optional
        Where it is shown; by default in a terminal or a notebook. Where nothing is shown, it is logged.
    """
    if is_cached():
        warm_up()
        return
    with progress or Progress() as shown:
        if not shown.show:
            logging.getLogger("fasterce").warning("%s.", COMPILING)
        show_done = shown.task(COMPILING, total=1)
        warm_up()
        show_done(1)


def is_cached() -> bool:
    """Return whether the cache on disk has the largest kernel, which takes most of the time."""
    folder = jit.CACHE_FOLDER
    name = f"search.{search_block.__name__}-*.nbi"
    return folder is not None and any(folder.glob(name))


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
    return compiled, f"{compiled.kind}, agrees on {compiled.agreement:.2%}"


def used(compiled: CompiledModel | None) -> CompiledUsage | None:
    """Return how often the compiled model was evaluated."""
    if compiled is None:
        return None
    return CompiledUsage(compiled.kind, compiled.agreement, compiled.usage.calls, compiled.usage.rows)
