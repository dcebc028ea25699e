"""Constraints that every counterfactual satisfies; see docs/constraints.md."""

from fasterce.constraints.io import from_dict, load, save, to_dict
from fasterce.constraints.objects import (
    Allowed,
    AtMost,
    Constraint,
    Derived,
    Forbidden,
    Frozen,
    If,
    Near,
    OnlyDown,
    OnlyUp,
    Order,
    Range,
    Require,
    Step,
    Together,
)

__all__ = [
    "Allowed",
    "AtMost",
    "Constraint",
    "Derived",
    "Forbidden",
    "Frozen",
    "If",
    "Near",
    "OnlyDown",
    "OnlyUp",
    "Order",
    "Range",
    "Require",
    "Step",
    "Together",
    "from_dict",
    "load",
    "save",
    "to_dict",
]
