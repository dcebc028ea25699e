"""What an answer must keep to, said in a small vocabulary; see docs/constraints.md."""

from fasterce.constraints.files import from_dict, load, save, to_dict
from fasterce.constraints.vocabulary import (
    Allowed,
    AtMost,
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
    Rule,
    Step,
    Together,
)

__all__ = [
    "Allowed",
    "AtMost",
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
    "Rule",
    "Step",
    "Together",
    "from_dict",
    "load",
    "save",
    "to_dict",
]
