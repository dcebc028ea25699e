"""Constraints compiled for one call: the domain of each query."""

from fasterce.constraints.compile.active import ActiveConstraint, PermittedRange
from fasterce.constraints.compile.compiled import CompiledConstraints
from fasterce.constraints.compile.domain import Domain

__all__ = ["ActiveConstraint", "CompiledConstraints", "Domain", "PermittedRange"]
