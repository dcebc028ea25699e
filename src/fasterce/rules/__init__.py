"""The rules of one call - schema, `features_to_vary`, `permitted_range`, `rules` - made exact for the rows at hand."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.codec import Codec
from fasterce.constraints.check import find
from fasterce.constraints.vocabulary import AtMost, Derived, Require, Rule
from fasterce.errors import InputError, shorten
from fasterce.profile import Floats
from fasterce.rules import linked
from fasterce.rules.box import Cell, cells, seen_range
from fasterce.rules.limits import VARY, Limit, Permitted, collect
from fasterce.search.links import Follower, Link, Nudged, about, kept
from fasterce.search.project import Domain, Gaps
from fasterce.table import Table, is_single

__all__ = ["Limit", "Permitted", "Rules"]

Mask = NDArray[np.bool_]
Blocked = dict[int, str]


@dataclass(frozen=True)
class Rules:
    """`limits` is everything that could be lifted; `facts` are derived columns and orders, which stay."""

    table: Table
    codec: Codec
    limits: tuple[Limit, ...]
    facts: tuple[Rule, ...] = ()

    @classmethod
    def compile(
        cls,
        table: Table,
        codec: Codec,
        features_to_vary: Sequence[Hashable] | None,
        permitted_range: Permitted | None,
        rules: Sequence[Rule] | None = (),
        override: bool = False,
    ) -> "Rules":
        """The schema's rules and the call's together; with `override` the call's replace the schema's they are about."""
        found = cls(table, codec, *collect(table.schema, features_to_vary, permitted_range, rules, override))
        _ = found._linked
        return found

    @cached_property
    def vary(self) -> Mask:
        """Which features `features_to_vary` lets change."""
        vary = np.ones(len(self.table.schema), dtype=bool)
        for limit in self.limits:
            if limit.source == VARY:
                vary[self.table.schema.positions(limit.features)] = False
        return vary

    @property
    def named(self) -> tuple[int, ...]:
        return () if self.vary.all() else tuple(int(j) for j in np.flatnonzero(self.vary) if j not in self._derived)

    def without(self, limit: Limit) -> "Rules":
        """The same rules with one limit lifted."""
        if limit not in self.limits:
            raise InputError(f"A limit to lift must be one of these rules' own; got {limit.text!r}.")
        return replace(self, limits=tuple(other for other in self.limits if other != limit))

    def broken(self, limit: Limit, row_codes: Floats, codes: Floats) -> Mask:
        """Which of the candidates (N, features) break this one limit, each for its row (N, features)."""
        alone = replace(self, limits=(limit,))
        domain, _ = _Making(alone, row_codes, bare=True).domain()
        return ~domain.contains_own(np.arange(len(codes)), codes)

    def domain(self, codes: Floats) -> tuple[Domain, Blocked]:
        """What each row may become, and why a row may become nothing at all."""
        return _Making(self, codes).domain()

    @cached_property
    def _cells(self) -> list[Cell]:
        return cells(self.table, self.limits, self.facts)

    @cached_property
    def _linked(self) -> linked.Linked:
        return linked.link(self.table, self.codec, self.limits, self.facts, self._cells)

    @cached_property
    def _derived(self) -> frozenset[int]:
        return frozenset(self.table.schema.position(fact.feature) for fact in self.facts if isinstance(fact, Derived))


class _Making:
    """One domain in the making. `bare` leaves out all that is no limit: precision, the data's range, derived columns."""

    def __init__(self, rules: Rules, codes: Floats, bare: bool = False) -> None:
        self.rules, self.codes, self.bare = rules, codes, bare
        self.features = rules.table.schema.features
        self.links = [
            (found, limit)
            for found, limit in zip(rules._linked.links, rules._linked.limits, strict=True)
            if limit is not None or not bare
        ]
        self.blocked: Blocked = {}

    def domain(self) -> tuple[Domain, Blocked]:
        start = self._box()
        if self.links:
            start = self._settled(replace(start, links=linked.Linked(tuple(link for link, _ in self.links), ()).compiled))
            self._note_broken(start)
        self._note_too_many(start)
        return start, self.blocked

    def _box(self) -> Domain:
        """Every feature by itself, and the row moved into what it must be."""
        codes, shape = self.codes, self.codes.shape
        lower, upper, base, anchor = codes.copy(), codes.copy(), codes.copy(), np.zeros(shape)
        outside, free = np.zeros(shape, dtype=bool), np.ones(shape, dtype=bool)
        driven = {link.out for link, _ in self.links if link.drives}
        for j, cell in enumerate(self.rules._cells):
            lower[:, j], upper[:, j] = cell.bounds(codes[:, j], self._seen(j, cell))
            anchor[:, j] = np.where(cell.gone(codes[:, j]), 0.0, codes[:, j]) if cell.from_row else 0.0
            free[:, j] = not cell.frozen
            if cell.feature.numeric and not self.bare:
                free[:, j] &= cell.possible(lower[:, j], upper[:, j], anchor[:, j])
        domain = self._plain(base, free, lower, upper, anchor)
        for j, cell in enumerate(self.rules._cells):
            if cell.asked:
                moved, out, possible = self._moved(domain, j, cell)
                out &= ~cell.gone(codes[:, j])
                # What follows from other features is moved by them.
                stuck = out & cell.frozen if j in driven else out & ~(possible & (not cell.frozen))
                outside[:, j] = out
                base[:, j] = np.where(out & ~stuck & (j not in driven), moved, base[:, j])
                for row in map(int, np.flatnonzero(stuck)):
                    self.blocked.setdefault(row, self._outside(j, row))
        row_legal = None if not outside.any() else ~outside
        return replace(domain, row_legal=row_legal, base_legal=None if row_legal is None else row_legal | (base != codes))

    def _seen(self, j: int, cell: Cell) -> tuple[float, float]:
        if not cell.feature.numeric:
            return 0.0, float(len(cell.feature.categories) - 1)
        if self.bare:
            return -np.inf, np.inf
        return seen_range(cell.feature, float(self.rules.codec.profile.low[j]), float(self.rules.codec.profile.high[j]))

    def _plain(self, base: Floats, free: Mask, lower: Floats, upper: Floats, anchor: Floats) -> Domain:
        found, features = self.rules._cells, self.features
        step = np.array([cell.step for cell in found])
        counts = [limit.rule.k for limit in self.rules.limits if isinstance(limit.rule, AtMost)]
        whole = np.array([f.numeric and f.integer and not self.bare for f in features])
        driven = [link.out for link, _ in self.links if link.drives and link.out is not None]
        editable = free.copy()
        editable[:, driven] = False
        return Domain(
            row=self.codes,
            base=base,
            free=editable,
            lower=lower,
            upper=upper,
            allowed={j: _open(cell) for j, cell in enumerate(found) if not cell.feature.numeric},
            decimals=np.array([f.decimals for f in features], dtype=np.int64),
            integer=whole,
            single=np.array([is_single(dtype) for dtype in self.rules.table.dtypes]),
            numeric=self.rules.codec.numeric,
            step=step if step.any() else None,
            anchor=anchor if step.any() else None,
            transitions={j: cell.transitions for j, cell in enumerate(found) if cell.transitions is not None},
            movable=free if driven else None,
            most_changes=min(counts) if counts else None,
            counted=~np.isin(np.arange(len(features)), list(self.rules._derived)) if counts else None,
            gaps=self._gaps(),
        )

    def _gaps(self) -> Gaps | None:
        """A value that other features' rules need does not go missing: that would be a way around them."""
        if not any(feature.gappy for feature in self.features):
            return None
        needed = {j for link, _ in self.links for j in about(link)}
        code = np.array([feature.absent if feature.gappy else np.nan for feature in self.features])
        return Gaps(code, np.array([cell.may_go and j not in needed for j, cell in enumerate(self.rules._cells)]))

    def _moved(self, domain: Domain, j: int, cell: Cell) -> tuple[Floats, Mask, Mask]:
        """Where each row would be moved, whether it has to be, and whether it can."""
        value, low, high = self.codes[:, j], domain.lower[:, j], domain.upper[:, j]
        if not cell.feature.numeric:
            open_ = domain.open_to(j)
            gap = np.where(open_, np.abs(np.arange(open_.shape[1]) - value[:, None]), np.inf)
            outside = ~_open(cell)[value.astype(np.intp)]
            return gap.argmin(axis=1).astype(np.float64), outside, np.asarray(open_.any(axis=1))
        anchor = np.zeros(len(value)) if domain.anchor is None else domain.anchor[:, j]
        possible = cell.possible(low, high, anchor)
        if cell.feature.integer and not self.bare:
            low, high = np.ceil(low), np.floor(high)
        moved = np.clip(value, low, high)
        if cell.step:
            moved = domain.round_flat(value, j, np.arange(len(value)))
        return moved, (value < low) | (value > high), possible

    def _outside(self, j: int, row: int) -> str:
        name, got = self.rules.table.schema.names[j], self.rules.table.value(j, self.codes[row, j])
        return f"Column {name!r} is {got!r}, outside its permitted range, and may not change into it"

    def _settled(self, domain: Domain) -> Domain:
        """The base completed and, where it breaks an inequality, moved until it does not, if one column's move can do it."""
        rows = np.arange(len(self.codes))
        free = self._without_stuck_leaders(domain)
        domain = replace(domain, free=free)
        base = domain.complete_own(rows, domain.base)
        for link, limit in self.links:
            if limit is not None and isinstance(limit.rule, Require):
                base = self._repaired(domain, link, limit.rule, base)
        row_legal = np.ones(base.shape, dtype=bool) if domain.row_legal is None else domain.row_legal
        inside = replace(domain, base=np.full_like(base, np.nan), base_legal=None, row_legal=row_legal)
        legal = np.stack([self._legal_alone(inside, base, j) for j in range(base.shape[1])], axis=1)
        return replace(domain, base=base, base_legal=legal, row_legal=row_legal)

    def _legal_alone(self, domain: Domain, base: Floats, j: int) -> Mask:
        """Is the base's value of one feature legal by itself?"""
        rows = np.arange(len(base))
        if domain.row_legal is None:
            raise ValueError("which of the row's own values are legal must be known")
        legal = (base[:, j] >= domain.lower[:, j]) & (base[:, j] <= domain.upper[:, j])
        if j in domain.allowed:
            legal &= domain.open_to(j)[rows, base[:, j].astype(np.intp)]
        elif domain.step is not None and domain.step[j] > 0:
            legal &= base[:, j] == domain.round_flat(base[:, j], j, rows)
        return np.asarray(np.where(base[:, j] == domain.row[:, j], domain.row_legal[:, j], legal))

    def _without_stuck_leaders(self, domain: Domain) -> Mask:
        """A leader whose follower may not move must not move either."""
        free = domain.free.copy()
        for link, _ in self.links:
            if isinstance(link, (Follower, Nudged)):
                free[:, link.leader] &= domain.may_move[:, link.out]
        return free

    def _repaired(self, domain: Domain, link: Link, rule: Require, base: Floats) -> Floats:
        rows = np.arange(len(base))
        places = {name: self.rules.table.schema.position(_known(name, self.rules.table)) for name in rule.about}
        for name, j in places.items():
            broken = ~kept(link, domain, rows, base)
            if not broken.any():
                break
            value = linked.repaired(rule.comparison, places, base, str(name), domain.unit(j))
            if value is not None:
                tried = base.copy()
                tried[:, j] = domain.round_flat(value, j, rows)
                tried = domain.complete_own(rows, tried)
                better = broken & domain.free[:, j] & kept(link, domain, rows, tried) & domain.each_legal(rows, tried)
                for other, _ in self.links:
                    better &= kept(other, domain, rows, tried) | ~kept(other, domain, rows, base)
                base = np.where(better[:, None], tried, base)
        return base

    def _note_broken(self, domain: Domain) -> None:
        """A rule the row breaks as it is, about features of which none may change, can never be kept."""
        rows = np.arange(len(self.codes))
        for link, limit in self.links:
            if limit is None:
                continue
            places = [*link.inputs, *([] if link.out is None else [link.out])]
            if isinstance(limit.rule, Require):
                places = [self.rules.table.schema.position(_known(name, self.rules.table)) for name in limit.rule.about]
            stuck = ~kept(link, domain, rows, domain.base) & ~domain.may_move[:, places].any(axis=1)
            for row in map(int, np.flatnonzero(stuck)):
                names = shorten(self.rules.table.schema.names[j] for j in places)
                self.blocked.setdefault(row, f"The row breaks the rule {limit.text!r}, and none of {names} may change")

    def _note_too_many(self, domain: Domain) -> None:
        if domain.row_legal is None or domain.counted is None:
            return
        must = ~domain.row_legal & domain.counted
        for row in map(int, np.flatnonzero(must.sum(axis=1) > domain.most_changes)):
            names = shorten(name for name, asked in zip(self.rules.table.schema.names, must[row], strict=True) if asked)
            most = f"at most {domain.most_changes} may"
            self.blocked.setdefault(row, f"Columns {names} must all change to keep the rules, and {most}")


def _open(cell: Cell) -> Mask:
    return np.arange(cell.feature.states) < len(cell.feature.categories) if cell.allowed is None else cell.allowed


def _known(name: Hashable, table: Table) -> Any:
    return find(name, table.schema.names)
