"""Compiled models, for searching only: every counterfactual is still verified by the model itself."""

from fasterce.models.compiled.build import build
from fasterce.models.compiled.model import CompiledModel

__all__ = ["CompiledModel", "build"]
