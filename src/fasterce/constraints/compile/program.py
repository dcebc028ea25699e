"""Constraints between features as arrays for the compiled loops: formulas become programs in postfix form."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fasterce.constraints.formula import MOST_FACTORS, Node
from fasterce.kernels import links as kernel
from fasterce.kernels.links import NO_LIMITS, NO_LINKS, Limits, Links
from fasterce.kernels.structs import arrays_of
from fasterce.typing import Mask

if TYPE_CHECKING:
    from fasterce.constraints.compile.dependencies import Dependency
    from fasterce.constraints.compile.domain import Domain

Program = tuple[tuple[int, float], ...]

OPERATIONS = {
    "+": kernel.ADD,
    "-": kernel.SUBTRACT,
    "*": kernel.MULTIPLY,
    "/": kernel.DIVIDE,
    "**": kernel.POWER,
    "min": kernel.MINIMUM,
    "max": kernel.MAXIMUM,
    "abs": kernel.ABSOLUTE,
    "negative": kernel.NEGATIVE,
}
COMPARISONS = {
    "<=": kernel.AT_MOST,
    ">=": kernel.AT_LEAST,
    "<": kernel.BELOW,
    ">": kernel.ABOVE,
    "==": kernel.EQUAL,
}


def postfix(node: Node, positions: Mapping[Hashable, int]) -> Program:
    """Return the program of a formula: operations and their arguments, operands first."""
    if node.op == "number":
        return ((kernel.NUMBER, node.value),)
    if node.op == "column":
        return ((kernel.FEATURE, float(positions[node.column])),)
    if node.op == "**":
        base, times = postfix(node.args[0], positions), node.args[1].constant
        if times is not None and times == round(times) and abs(times) <= MOST_FACTORS:
            return (*base, (kernel.WHOLE_POWER, times))
        if times == 0.5:
            return (*base, (kernel.ROOT, 0.0))
    operands = [step for arg in node.args for step in postfix(arg, positions)]
    return (*operands, (OPERATIONS[node.op], 0.0))


def depth_of(program: Program) -> int:
    """Return how many numbers a program keeps at a time."""
    held = most = 0
    for operation, _ in program:
        held += 1 if operation in (kernel.NUMBER, kernel.FEATURE) else -1 if operation >= kernel.ADD else 0
        most = max(most, held)
    return most


@cache
def no_links(features: int) -> Links:
    """Return no constraints between so many features, the same object in every call: its structure is kept."""
    none = np.zeros(features, dtype=np.bool_)
    return NO_LINKS._replace(linked=none, leads=none)


def links_of(dependencies: Sequence["Dependency"], settles: bool) -> Links:
    """Return constraints as arrays; `limits`, `linked` and `leads` are those of a domain."""
    constraints, inputs, steps, clauses = list[Any](), list[int](), list[Any](), list[Any]()
    numbers: list[float] = []
    for one in dependencies:
        target = -1 if one.target is None else one.target
        flags = one.out is not None, one.drives, one.function is not None
        comparison = COMPARISONS[one.comparison], one.tolerance, one.slope
        ranges = _append(inputs, one.inputs), _append(steps, *one.programs), _append(numbers, *one.ranks)
        listed = [_append(numbers, () if clause.values is None else clause.values) for clause in one.clauses]
        # No number lies between NaN and NaN: a clause with values is met by these alone.
        bounds = [(c.low, c.high) if c.values is None else (np.nan, np.nan) for c in one.clauses]
        records = [(c.feature, *ends, values) for c, ends, values in zip(one.clauses, bounds, listed, strict=True)]
        constraints.append((one.kind, target, *flags, *comparison, *ranges, _append(clauses, records)))
    return Links(
        limits=NO_LIMITS,
        constraint=np.array(constraints, dtype=kernel.CONSTRAINT),
        input=np.array(inputs, dtype=np.int64),
        step=np.array(steps, dtype=kernel.STEP),
        clause=np.array(clauses, dtype=kernel.CLAUSE),
        number=np.array(numbers, dtype=np.float64),
        linked=np.zeros(0, dtype=np.bool_),
        leads=np.zeros(0, dtype=np.bool_),
        settles=settles,
        depth=max(1, *(depth_of(program) for one in dependencies for program in one.programs)),
    )


def _append(store: list[Any], *parts: Iterable[Any] | None) -> list[int]:
    """Append the elements of all parts; return where each begins, and where the last ends."""
    starts = [len(store)]
    for part in parts:
        store.extend(() if part is None else part)
        starts.append(len(store))
    return starts


def limits_of(domain: "Domain") -> Limits:
    """Return what each feature may be by itself as arrays; they share the memory of the domain."""
    shape, missing = domain.base.shape, domain.missing
    found = Limits(
        row=domain.row,
        base=domain.base,
        lower=domain.lower,
        upper=domain.upper,
        anchor=np.zeros((0, 0)) if domain.anchor is None else domain.anchor,
        may_move=domain.may_move,
        base_legal=np.ones(shape, dtype=np.bool_) if domain.base_legal is None else domain.base_legal,
        row_legal=np.zeros(shape, dtype=np.bool_) if domain.row_legal is None else domain.row_legal,
        feature=_features(domain),
        allowed=_joined(domain.allowed),
        transitions=_joined(domain.transitions),
        nullable=missing is not None,
    )
    return arrays_of(found)


def _features(domain: "Domain") -> object:
    """Return what all queries have in common in each feature; NaN as the code of a missing value equals nothing."""
    features = domain.base.shape[1]
    found, missing = np.zeros(features, dtype=kernel.FEATURE_LIMITS), domain.missing
    found["scale"] = [10.0 ** float(decimals) for decimals in domain.decimals]
    found["unit"] = [domain.unit(j) for j in range(features)]
    found["step"] = 0.0 if domain.step is None else domain.step
    found["integer"], found["single"] = domain.integer, domain.single
    found["missing"] = np.nan if missing is None else missing.code
    found["may_appear"] = False if missing is None else missing.may_appear
    found["categories"] = [len(domain.allowed.get(j, ())) for j in range(features)]
    found["allowed"] = _positions(domain.allowed, features)
    found["transitions"] = _positions(domain.transitions, features)
    return found


def _joined(tables: Mapping[int, Mask]) -> Mask:
    return np.concatenate([np.zeros(0, dtype=np.bool_), *(table.ravel() for table in tables.values())])


def _positions(tables: Mapping[int, Mask], features: int) -> list[int]:
    """Return where the table of each feature begins when they are joined, -1 for none."""
    ends = dict(zip(tables, np.cumsum([table.size for table in tables.values()]), strict=True))
    return [int(ends[j] - tables[j].size) if j in tables else -1 for j in range(features)]
