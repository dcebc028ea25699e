"""How the explainer uses a twin: made in `fit` or on `load`, asked instead of the model while searching."""

from typing import Any, Literal

from fasterce.errors import InputError
from fasterce.explanation import TwinUse
from fasterce.predictor import Predictor
from fasterce.profile import Floats
from fasterce.twin.build import build
from fasterce.twin.compiled import Twin

Twinning = Literal["auto", "never"]


def make(model: Any, predictor: Predictor, codes: Floats, wish: str) -> tuple[Twin | None, str]:
    """A twin and what it is, or None and why not."""
    if wish not in ("auto", "never"):
        raise InputError(f"twin must be 'auto' or 'never'; got {wish!r}.")
    if wish == "never":
        return None, "none wanted"
    if predictor.numbers is not None:
        return None, "none for a model that answers numbers"
    twin, reason = build(model, predictor.table, predictor.classes, codes, predictor.use_scores)
    return twin, reason if twin is None else f"{twin.kind}, agrees on {twin.agreement:.2%}"


def used(twin: Twin | None) -> TwinUse | None:
    return None if twin is None else TwinUse(twin.kind, twin.agreement, twin.asked.calls, twin.asked.rows)
