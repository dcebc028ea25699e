"""Bind constraints between columns to codes: formulas to positions, equalities solved, categories to ranks."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fasterce.constraints.compile.active import ActiveConstraint
from fasterce.constraints.compile.dependencies import (
    Clause,
    Dependency,
    derived_feature,
    direction_follower,
    formula_comparison,
    implication,
    in_order,
    proportional_follower,
)
from fasterce.constraints.compile.program import postfix
from fasterce.constraints.formula import Comparison, Interval, Node
from fasterce.constraints.objects import Between, Condition, Derived, Frozen, If, Require, Together
from fasterce.constraints.validate import find, wrong
from fasterce.data.dtypes import as_single, is_single
from fasterce.errors import InputError, problem_of
from fasterce.kernels.links import CLOSE
from fasterce.typing import Floats

if TYPE_CHECKING:
    from fasterce.constraints.compile.compiled import CompiledConstraints


def bind(constraints: "CompiledConstraints") -> tuple[tuple[Dependency, ActiveConstraint | None], ...]:
    """Return the dependencies between features, each with its constraint (None for a derived column).

    Derived columns come first, then followers, equalities and implications; no column is set by two of them.
    """
    binding = _Binding(constraints)
    for definition in constraints.definitions:
        if isinstance(definition, Derived):
            binding.found.append((binding.derived(definition), None))
    linking = [one for one in constraints.active if isinstance(one.constraint, (Together, Require, If))]
    for one in sorted(linking, key=lambda one: (Together, Require, If).index(type(one.constraint))):
        match one.constraint:
            case Together():
                binding.found.append((binding.together(one.constraint), one))
            case Require():
                binding.found.append((binding.require(one.constraint), one))
            case If():
                binding.found += [(found, one) for found in binding.implications(one.constraint)]
    return tuple(binding.found)


class _Binding:
    """The dependencies found so far."""

    def __init__(self, constraints: "CompiledConstraints") -> None:
        self.table, self.codec = constraints.table, constraints.codec
        self.active, self.bounds = constraints.active, constraints.bounds
        self.found: list[tuple[Dependency, ActiveConstraint | None]] = []

    @property
    def driven(self) -> set[int]:
        return {dependency.out for dependency, _ in self.found if dependency.drives and dependency.out is not None}

    def _stays_acyclic(self, more: Dependency) -> bool:
        return in_order((*(dependency for dependency, _ in self.found), more))[1]

    def position(self, name: Hashable) -> int:
        return self.table.schema.position(find(name, self.table.schema.names))

    def positions(self, names: Sequence[Hashable]) -> dict[Hashable, int]:
        return {name: self.position(name) for name in names}

    def derived(self, constraint: Derived) -> Dependency:
        out, inputs = self.position(constraint.feature), tuple(self.position(name) for name in constraint.inputs)
        if isinstance(constraint.formula, str):
            node = constraint.node if self.bounds[out].feature.numeric else _as_flag(constraint.node)
            return derived_feature(out, inputs, postfix(node, self.positions(constraint.inputs)))
        compute = self._called(constraint, out, inputs)
        self._check_usable(constraint, compute)
        return derived_feature(out, inputs, compute)

    def _check_usable(self, constraint: Derived, compute: Callable[[Floats], Floats]) -> None:
        """Reject a function that gives no number or known category for any quantile of the data.

        Quantiles of different columns may be an impossible row: a function that raises on them is tried on real rows.
        """
        quantiles = np.ascontiguousarray(self.codec.profile.levels.T)
        try:
            usable = np.isfinite(compute(quantiles))
        except InputError:
            return
        if not usable.any():
            kind = "number" if self.table.schema[constraint.feature].numeric else "category"
            raise InputError(f"constraints.function_without_{kind}", constraint=constraint.text, rows=len(quantiles))

    def _called(self, constraint: Derived, out: int, inputs: tuple[int, ...]) -> Callable[[Floats], Floats]:
        """Return the user's function on a typed table of its columns; an unknown category becomes NaN, never legal."""
        table, names = self.table, list(constraint.inputs)
        function: Any = constraint.formula
        codes_of = {category: float(code) for code, category in enumerate(table.schema.features[out].categories)}

        def compute(codes: Floats) -> Floats:
            frame = pd.DataFrame({name: table.column(j, codes[:, j]) for name, j in zip(names, inputs, strict=True)})
            try:
                values = np.asarray(function(frame))
                if values.shape != (len(codes),):
                    raise InputError("constraints.function_shape", shape=values.shape)
                if codes_of:
                    return np.array([codes_of.get(value, np.nan) for value in values.tolist()])
                return values.astype(np.float64)
            except Exception as error:
                cause = problem_of(error)
                raise InputError("constraints.function_failed", constraint=constraint.text, cause=cause) from error

        return compute

    def together(self, constraint: Together) -> Dependency:
        leader, out = self.position(constraint.leader), self.position(constraint.follower)
        frozen = [one for one in self.active if isinstance(one.constraint, Frozen) and one.origin != "features_to_vary"]
        if any(constraint.follower in one.columns for one in frozen):
            raise wrong(constraint, "frozen_follower", column=constraint.follower)
        if out in self.driven:
            raise wrong(constraint, "driven_follower", column=constraint.follower)
        ranks = self.bounds[leader].ranks
        if constraint.slope is None:
            sign = 1.0 if constraint.direction == "same" else -1.0
            return direction_follower(leader, out, sign, ranks, self.bounds[out].ranks)
        found = proportional_follower(leader, out, float(constraint.slope), ranks)
        if not self._stays_acyclic(found):
            raise wrong(constraint, "leader_cycle", column=constraint.leader)
        return found

    def require(self, constraint: Require) -> Dependency:
        comparison, positions = constraint.comparison, self.positions(constraint.columns)
        if not comparison.possible({str(name): self._ends(j) for name, j in positions.items()}):
            raise wrong(constraint, "never_holds")
        units = {name: 10.0 ** -self.bounds[j].feature.decimals for name, j in positions.items()}
        sides = postfix(comparison.left, positions), comparison.op, postfix(comparison.right, positions)
        tolerance = _tolerance(comparison, units)
        for name in dict.fromkeys([*_alone(comparison), *comparison.columns]) if comparison.op == "==" else ():
            j, solution = positions[name], _solved(comparison, name)
            if solution is None or self.bounds[j].frozen or j in self.driven:
                continue
            inputs = tuple(position for position in positions.values() if position != j)
            solution = solution if self.bounds[j].feature.numeric else _as_flag(solution)
            found = formula_comparison(inputs, sides, tolerance, j, postfix(solution, positions))
            if self._stays_acyclic(found):
                return found
        return formula_comparison(tuple(positions.values()), sides, tolerance)

    def _ends(self, j: int) -> Interval:
        if not self.bounds[j].feature.numeric:
            return 0.0, 1.0
        low, high = self.bounds[j].low, self.bounds[j].high
        return (-np.inf if low is None else low), (np.inf if high is None else high)

    def implications(self, constraint: If) -> list[Dependency]:
        when = tuple(self._clause(name, condition) for name, condition in constraint.when)
        found: list[Dependency] = []
        for name, condition in constraint.then:
            then = self._clause(name, condition)
            found.append(implication(when, then, completes=then.feature not in self.driven))
        return found

    def _clause(self, name: Hashable, condition: Condition) -> Clause:
        j = self.position(name)
        feature = self.bounds[j].feature
        if isinstance(condition, Between):
            low, high = condition.low, condition.high
            return Clause(j, -np.inf if low is None else feature.bound(low), np.inf if high is None else feature.bound(high))
        if feature.numeric:
            numbers = np.array(condition, dtype=np.float64)
            return Clause(j, values=tuple(as_single(numbers) if is_single(self.table.dtypes[j]) else numbers))
        share = self.codec.shares[j]
        codes = sorted((feature.categories.index(value) for value in condition), key=lambda code: (-share[code], code))
        return Clause(j, values=tuple(float(code) for code in codes))


def _as_flag(node: Node) -> Node:
    """Return a formula with the same value where it is 0 or 1 and no finite one for other whole numbers: a boolean column
    has no others."""
    one, two = Node("number", value=1.0), Node("number", value=2.0)
    beyond = Node("abs", (Node("-", (Node("abs", (Node("-", (Node("*", (two, node)), one)),)), one)),))
    return Node("/", (node, Node("-", (one, Node("min", (one, beyond))))))


def _tolerance(comparison: Comparison, units: Mapping[Hashable, float]) -> float:
    """Return the tolerance of an equality: half a unit of the coarsest column as it enters a linear formula, or of the
    column alone on one side."""
    if comparison.linear is not None:
        return 0.5 * max((abs(factor) * units[name] for name, factor in comparison.linear[0].items()), default=0.0)
    alone = _alone(comparison)
    return 0.5 * units[alone[0]] if alone else 0.0


def _alone(comparison: Comparison) -> list[str]:
    """Return the columns that are alone on one side and not on the other."""
    sides = ((comparison.left, comparison.right), (comparison.right, comparison.left))
    return [side.column for side, other in sides if side.op == "column" and side.column not in other.columns]


def _solved(comparison: Comparison, name: str) -> Node | None:
    """Return the formula of one column that makes an equality true, None if there is none."""
    if name in _alone(comparison):
        return comparison.right if comparison.left.op == "column" and comparison.left.column == name else comparison.left
    if comparison.linear is None or not comparison.linear[0].get(name):
        return None
    factors, constant = comparison.linear
    total = Node("number", value=constant)
    for other, factor in factors.items():
        if other != name:
            part = Node("*", (Node("number", value=factor), Node("column", column=other)))
            total = Node("+", (total, part))
    solution = Node("/", (Node("negative", (total,)), Node("number", value=factors[name])))
    # Adding zero turns minus zero into zero.
    return Node("+", (solution, Node("number", value=0.0)))


def repaired(
    comparison: Comparison, positions: Mapping[Hashable, int], codes: Floats, name: str, unit: float
) -> Floats | None:
    """Return the value of one column that just makes a linear inequality true, in whole units."""
    if comparison.linear is None or comparison.op == "==" or not comparison.linear[0].get(name):
        return None
    edge = _solved(Comparison(comparison.left, "==", comparison.right), name)
    if edge is None:
        return None
    below = (comparison.linear[0][name] > 0) == (comparison.op in ("<=", "<"))
    columns = {str(other): codes[:, j] for other, j in positions.items()}
    units = np.broadcast_to(edge.evaluate(columns), len(codes)) / unit
    strict = 1.0 if comparison.op in ("<", ">") else 0.0
    if below:
        return np.where(units == np.floor(units), units - strict, np.floor(units + CLOSE)) * unit
    return np.where(units == np.ceil(units), units + strict, np.ceil(units - CLOSE)) * unit
