"""Rules between columns made into links over codes: formulas bound to positions, equalities solved, levels looked up."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.codec import Codec
from fasterce.constraints.check import find
from fasterce.constraints.formula import Comparison, Interval, Node
from fasterce.constraints.vocabulary import Between, Derived, If, Require, Rule, Together
from fasterce.errors import InputError
from fasterce.profile import Floats
from fasterce.rules.box import Cell
from fasterce.rules.limits import VARY, Limit
from fasterce.search.links import Clause, Compared, Consequence, Follower, Link, Links, Nudged, Recomputed, in_order
from fasterce.table import Table

Mask = NDArray[np.bool_]

CLOSE = 1e-9


@dataclass(frozen=True)
class Linked:
    """The links of all rules, and by which limit each came (None: a derived column)."""

    links: tuple[Link, ...]
    limits: tuple[Limit | None, ...]

    @property
    def compiled(self) -> Links | None:
        return Links.of(self.links) if self.links else None


def link(table: Table, codec: Codec, limits: Sequence[Limit], facts: Sequence[Rule], cells: Sequence[Cell]) -> Linked:
    """Derived columns first, then followers, equalities and consequences, none driving what another drives already."""
    bind = _Binding(table, codec, cells)
    for fact in facts:
        if isinstance(fact, Derived):
            bind.add(bind.derived(fact), None)
    linked = [limit for limit in limits if isinstance(limit.rule, (Together, Require, If))]
    for limit in sorted(linked, key=lambda limit: (Together, Require, If).index(type(limit.rule))):
        match limit.rule:
            case Together():
                bind.add(bind.together(limit.rule, limits), limit)
            case Require():
                bind.add(bind.require(limit.rule), limit)
            case If():
                for found in bind.consequences(limit.rule):
                    bind.add(found, limit)
    return Linked(tuple(bind.links), tuple(bind.limits))


class _Binding:
    def __init__(self, table: Table, codec: Codec, cells: Sequence[Cell]) -> None:
        self.table, self.codec, self.cells = table, codec, cells
        self.links: list[Link] = []
        self.limits: list[Limit | None] = []

    def add(self, found: Link, limit: Limit | None) -> None:
        self.links.append(found)
        self.limits.append(limit)

    @property
    def driven(self) -> set[int]:
        return {found.out for found in self.links if found.drives and found.out is not None}

    def place(self, name: Hashable) -> int:
        return self.table.schema.position(find(name, self.table.schema.names))

    def places(self, names: Sequence[Hashable]) -> dict[Any, int]:
        return {name: self.place(name) for name in names}

    def derived(self, rule: Derived) -> Link:
        out, inputs = self.place(rule.feature), tuple(self.place(name) for name in rule.inputs)
        if isinstance(rule.formula, str):
            return Recomputed(out, inputs, _bound(rule.node, self.places(rule.inputs)))
        compute = self._called(rule, out, inputs)
        self._check_usable(rule, compute)
        return Recomputed(out, inputs, compute)

    def _check_usable(self, rule: Derived, compute: Callable[[Floats], Floats]) -> None:
        """A function that gives no number, or no known category, for any quantile of the data is a mistake. Quantiles of
        different columns need not go together: one that fails on them has its say on real rows."""
        quantiles = np.ascontiguousarray(self.codec.profile.levels.T)
        try:
            usable = np.isfinite(compute(quantiles))
        except InputError:
            return
        if not usable.any():
            kind = "a finite number" if self.table.schema[rule.feature].numeric else "a known category"
            raise InputError(f"The function of the rule {rule.text!r} must give {kind}; got none for {len(quantiles)} rows.")

    def _called(self, rule: Derived, out: int, inputs: tuple[int, ...]) -> Callable[[Floats], Floats]:
        """The user's function on a typed table of its columns; a category it makes up has no code and is never legal."""
        table, names = self.table, list(rule.inputs)
        function: Any = rule.formula
        codes_of = {category: float(code) for code, category in enumerate(table.schema.features[out].categories)}

        def compute(codes: Floats) -> Floats:
            frame = pd.DataFrame({name: table.column(j, codes[:, j]) for name, j in zip(names, inputs, strict=True)})
            try:
                values = np.asarray(function(frame))
                if values.shape != (len(codes),):
                    raise ValueError(f"{values.shape} instead of one value a row")
                if codes_of:
                    return np.array([codes_of.get(value, np.nan) for value in values.tolist()])
                return values.astype(np.float64)
            except Exception as error:
                raise InputError(
                    f"The function of the rule {rule.text!r} must give one value a row; got {type(error).__name__}: {error}."
                ) from error

        return compute

    def together(self, rule: Together, limits: Sequence[Limit]) -> Link:
        leader, out = self.place(rule.leader), self.place(rule.follower)
        if any(self._freezes(limit, rule.follower) for limit in limits):
            raise InputError(f"The rule {rule.text!r} must have a follower that may change; {rule.follower!r} may not.")
        if out in self.driven:
            raise InputError(f"The rule {rule.text!r} must not move {rule.follower!r}, which another rule computes already.")
        level = self.cells[leader].level
        if rule.slope is None:
            sign = 1.0 if rule.direction == "same" else -1.0
            return Nudged(leader, out, sign, level, self.cells[out].level)
        found = Follower(leader, out, float(rule.slope), level)
        if not in_order((*self.links, found))[1]:
            raise InputError(f"The rule {rule.text!r} must not lead back to {rule.leader!r} through other rules.")
        return found

    @staticmethod
    def _freezes(limit: Limit, name: Hashable) -> bool:
        return limit.rule.kind == "frozen" and limit.source != VARY and name in limit.features

    def require(self, rule: Require) -> Link:
        comparison, places = rule.comparison, self.places(rule.about)
        if not comparison.possible({name: self._ends(j) for name, j in places.items()}):
            raise InputError(f"The rule {rule.text!r} can never hold within the ranges of its columns.")
        units = {name: 10.0 ** -self.cells[j].feature.decimals for name, j in places.items()}
        holds = _holds(comparison, places, _tolerance(comparison, units))
        for name in _candidates(comparison) if comparison.op == "==" else ():
            j, solve = places[name], _solved(comparison, name, places)
            if solve is None or self.cells[j].frozen or j in self.driven:
                continue
            inputs = tuple(place for place in places.values() if place != j)
            found = Compared(inputs, holds, j, solve)
            if in_order((*self.links, found))[1]:
                return found
        return Compared(tuple(places.values()), holds)

    def _ends(self, j: int) -> Interval:
        low, high = self.cells[j].low, self.cells[j].high
        return (-np.inf if low is None else low), (np.inf if high is None else high)

    def consequences(self, rule: If) -> list[Link]:
        when = tuple(self._clause(name, wanted) for name, wanted in rule.when)
        found: list[Link] = []
        for name, wanted in rule.then:
            then = self._clause(name, wanted)
            out = None if then.feature in self.driven else then.feature
            found.append(Consequence(when, then, out, not self.cells[then.feature].feature.numeric))
        return found

    def _clause(self, name: Hashable, wanted: Any) -> Clause:
        j = self.place(name)
        feature = self.cells[j].feature
        if isinstance(wanted, Between):
            low, high = (None if end is None else float(end) for end in (wanted.low, wanted.high))
            return Clause(j, -np.inf if low is None else low, np.inf if high is None else high)
        if feature.numeric:
            return Clause(j, values=tuple(self._held(j, float(value)) for value in wanted))
        share = self.codec.shares[j]
        codes = sorted((feature.categories.index(value) for value in wanted), key=lambda code: (-share[code], code))
        return Clause(j, values=tuple(float(code) for code in codes))

    def _held(self, j: int, value: float) -> float:
        return float(np.float32(value)) if str(self.table.dtypes[j]).lower().startswith("float32") else value


def _bound(node: Node, places: dict[Any, int]) -> Callable[[Floats], Floats]:
    def evaluate(codes: Floats) -> Floats:
        columns = {name: np.ascontiguousarray(codes[:, j]) for name, j in places.items() if name in node.columns}
        return np.array(np.broadcast_to(node.evaluate(columns), len(codes)))

    return evaluate


def _holds(comparison: Comparison, places: dict[Any, int], tolerance: float) -> Callable[[Floats], Mask]:
    """True with a relative slack for what floating point does; < and > strictly; == to the columns' precision."""
    left_of, right_of = _bound(comparison.left, places), _bound(comparison.right, places)

    def holds(codes: Floats) -> Mask:
        left, right = left_of(codes), right_of(codes)
        finite = np.isfinite(left) & np.isfinite(right)
        with np.errstate(invalid="ignore"):
            slack = CLOSE * np.maximum(np.abs(left), np.abs(right))
            kept = {
                "<=": lambda: left <= right + slack,
                ">=": lambda: left >= right - slack,
                "<": lambda: left < right,
                ">": lambda: left > right,
                "==": lambda: np.abs(left - right) <= tolerance + slack,
            }[comparison.op]()
        return np.asarray(finite & kept)

    return holds


def _tolerance(comparison: Comparison, units: dict[Any, float]) -> float:
    """An equality holds to half a unit of the coarsest column, as it enters the formula; of the one alone on a side
    where the formula is not linear."""
    if comparison.linear is not None:
        return 0.5 * max((abs(factor) * units[name] for name, factor in comparison.linear[0].items()), default=0.0)
    alone = _alone(comparison)
    return 0.5 * units[alone[0]] if alone else 0.0


def _alone(comparison: Comparison) -> list[str]:
    """Columns that stand alone on one side and not on the other."""
    sides = ((comparison.left, comparison.right), (comparison.right, comparison.left))
    return [side.column for side, other in sides if side.op == "column" and side.column not in other.columns]


def _candidates(comparison: Comparison) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*_alone(comparison), *comparison.columns]))


def _solved(comparison: Comparison, name: str, places: dict[Any, int]) -> Callable[[Floats], Floats] | None:
    """The value of one column that makes an equality true, where that can be said."""
    if name in _alone(comparison):
        other = comparison.right if comparison.left.op == "column" and comparison.left.column == name else comparison.left
        return _bound(other, places)
    if comparison.linear is None or not comparison.linear[0].get(name):
        return None
    factors, constant = comparison.linear
    others = [(places[other], factor) for other, factor in factors.items() if other != name]

    def solve(codes: Floats) -> Floats:
        total = np.full(len(codes), constant)
        for j, factor in others:
            total = total + factor * codes[:, j]
        return -total / factors[name] + 0.0

    return solve


def repaired(comparison: Comparison, places: dict[Any, int], codes: Floats, name: str, unit: float) -> Floats | None:
    """The value of one column nearest to making a linear inequality true, a whole number of units from zero."""
    if comparison.linear is None or comparison.op == "==" or not comparison.linear[0].get(name):
        return None
    edge = _solved(Comparison(comparison.left, "==", comparison.right), name, places)
    if edge is None:
        return None
    below = (comparison.linear[0][name] > 0) == (comparison.op in ("<=", "<"))
    units = edge(codes) / unit
    strict = 1.0 if comparison.op in ("<", ">") else 0.0
    if below:
        return np.where(units == np.floor(units), units - strict, np.floor(units + CLOSE)) * unit
    return np.where(units == np.ceil(units), units + strict, np.ceil(units - CLOSE)) * unit
