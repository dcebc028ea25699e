"""What each feature may become by itself, for every row: bounds, grids, categories, and the row moved into them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.constraints.vocabulary import Allowed, Forbidden, Frozen, Near, OnlyDown, OnlyUp, Order, Range, Rule, Step
from fasterce.errors import InputError, shorten
from fasterce.profile import Floats
from fasterce.rules.limits import SCHEMA, Limit, Span
from fasterce.schema import Feature
from fasterce.search.project import tidy
from fasterce.table import Table, as_held

Mask = NDArray[np.bool_]

SLACK = 1e-9


@dataclass
class Cell:
    """The limits of one feature, put together. An end that no rule states is None."""

    feature: Feature
    low: float | None = None
    high: float | None = None
    asked: bool = False
    frozen: bool = False
    up: bool = False
    down: bool = False
    nears: list[Near] = field(default_factory=list)
    step: float = 0.0
    from_row: bool = False
    allowed: Mask | None = None
    transitions: Mask | None = None
    level: Floats | None = None

    def bounds(self, codes: Floats, seen: tuple[float, float]) -> tuple[Floats, Floats]:
        """A range read off the data bends for a row that lies outside it; one that was stated does not."""
        # What is missing is NaN here, which binds nothing: it may be filled with whatever anyone may have.
        codes = np.where(self.gone(codes), np.nan, codes) if self.feature.gappy else codes
        low = np.fmin(seen[0], codes) if self.low is None else np.full_like(codes, self.low)
        high = np.fmax(seen[1], codes) if self.high is None else np.full_like(codes, self.high)
        if self.up:
            low = np.fmax(low, codes)
        if self.down:
            high = np.fmin(high, codes)
        for near in self.nears:
            up, down = _reach(near, codes)
            low, high = np.fmax(low, tidy(codes - down)), np.fmin(high, tidy(codes + up))
        return low, high

    def gone(self, codes: Floats) -> Mask:
        """Which of the rows' values are missing."""
        return np.asarray((codes == self.feature.absent) & self.feature.gappy)

    @property
    def may_go(self) -> bool:
        """Whether a value may go missing; a rule that says where it must be keeps it."""
        return self.feature.missing == "may_appear" and not (self.asked or self.nears)

    def possible(self, low: Floats, high: Floats, anchor: Floats) -> Mask:
        """Is there a value of the feature's precision and grid between these bounds?"""
        if self.step:
            room = np.ceil((low - anchor) / self.step - SLACK) <= np.floor((high - anchor) / self.step + SLACK)
            return np.asarray(room & ((anchor == np.round(anchor)) | (not self.feature.integer)))
        if self.feature.integer:
            return np.asarray(np.ceil(low) <= np.floor(high))
        return np.asarray(low <= high)


def _reach(near: Near, codes: Floats) -> tuple[Floats, Floats]:
    """How far up and down a rule lets each row's value go."""
    up, down = np.full_like(codes, np.inf), np.full_like(codes, np.inf)
    if near.percent is not None:
        up = down = np.abs(codes) * near.percent / 100.0
    if near.by is not None:
        up, down = np.minimum(up, near.by), np.minimum(down, near.by)
    if near.up is not None:
        up = np.minimum(up, near.up)
    if near.down is not None:
        down = np.minimum(down, near.down)
    return up, down


def cells(table: Table, limits: Sequence[Limit], facts: Sequence[Rule]) -> list[Cell]:
    """One cell a feature, or a sentence about limits that leave a feature no value."""
    found = [Cell(feature, level=_level(feature, facts)) for feature in table.schema.features]
    place = {name: j for j, name in enumerate(table.schema.names)}
    for limit in limits:
        for name in limit.features:
            _add(found[place[name]], limit, table.dtypes[place[name]])
    for cell in found:
        _check(cell, limits)
    return found


def _add(cell: Cell, limit: Limit, dtype: Any) -> None:
    match limit.rule:
        case Frozen():
            cell.frozen = True
        case OnlyUp():
            _one_way(cell, up=True)
        case OnlyDown():
            _one_way(cell, up=False)
        case Range(low=low, high=high) | Span(low=low, high=high):
            if low is not None:
                cell.low = max(-math.inf if cell.low is None else cell.low, as_held(float(low), dtype))
            if high is not None:
                cell.high = min(math.inf if cell.high is None else cell.high, as_held(float(high), dtype))
            cell.asked |= not (isinstance(limit.rule, Span) and limit.source == SCHEMA)
        case Near():
            cell.nears.append(limit.rule)
        case Step():
            _add_step(cell, limit.rule)
        case Allowed(categories=named):
            mask = np.isin(np.arange(cell.feature.states), [cell.feature.categories.index(c) for c in named])
            cell.allowed = mask if cell.allowed is None else cell.allowed & mask
            cell.asked = True
        case Forbidden(transitions=pairs):
            shut = np.zeros((cell.feature.states,) * 2, dtype=bool)
            for start, end in pairs:
                shut[cell.feature.categories.index(start), cell.feature.categories.index(end)] = True
            _open_only(cell, ~shut)


def _one_way(cell: Cell, up: bool) -> None:
    """Positions serve as bounds where they are in order; another order is a matter of transitions."""
    count = len(cell.feature.categories)
    if cell.level is None or np.array_equal(cell.level[:count], np.arange(count)):
        cell.up, cell.down = cell.up or up, cell.down or not up
    else:
        rise = cell.level[None, :] - cell.level[:, None]
        _open_only(cell, rise >= 0 if up else rise <= 0)


def _open_only(cell: Cell, open_: Mask) -> None:
    """A row's own category is always open to it, and any to one whose category is missing."""
    from_missing = np.arange(len(open_)) >= len(cell.feature.categories)
    open_ = open_ | np.eye(len(open_), dtype=bool) | from_missing[:, None]
    cell.transitions = open_ if cell.transitions is None else cell.transitions & open_


def _add_step(cell: Cell, rule: Step) -> None:
    size, from_row = float(rule.size), rule.start == "row"
    if cell.step:
        large, small = max(size, cell.step), min(size, cell.step)
        if from_row != cell.from_row or abs(large / small - round(large / small)) > SLACK:
            raise InputError(
                f"Two steps for column {cell.feature.name!r} must fit each other, the same start and one a multiple of the "
                f"other; got {cell.step:.15g} and {size:.15g}."
            )
        size = large
    cell.step, cell.from_row = size, from_row


def _level(feature: Feature, facts: Sequence[Rule]) -> Floats | None:
    """Where each category stands in the order: by an Order rule, else by an ordered column's own; NaN for no place, and for
    a missing one."""
    if feature.numeric:
        return None
    for fact in facts:
        if isinstance(fact, Order) and fact.feature == feature.name:
            ranks = {category: float(rank) for rank, category in enumerate(fact.categories)}
            return np.array([ranks.get(category, math.nan) for category in feature.categories] + [math.nan] * feature.gappy)
    own = [*map(float, range(len(feature.categories))), *[math.nan] * feature.gappy]
    return np.array(own) if feature.ordered else None


def _check(cell: Cell, limits: Sequence[Limit]) -> None:
    feature = cell.feature
    empty = cell.allowed is not None and not cell.allowed.any()
    if cell.low is not None and cell.high is not None:
        ends, zero = (np.array([cell.low]), np.array([cell.high])), np.zeros(1)
        grid = Cell(feature, step=0.0 if cell.from_row else cell.step)
        empty |= not grid.possible(*ends, zero)[0]
    if empty:
        kinds = (Range, Span, Allowed, Step)
        mine = [limit.text for limit in limits if feature.name in limit.features and isinstance(limit.rule, kinds)]
        kind = "whole number" if feature.integer else "value"
        raise InputError(f"The rules about column {feature.name!r} must leave it at least one {kind}; got {shorten(mine)}.")


def seen_range(feature: Feature, low: float, high: float) -> tuple[float, float]:
    """The range of the data, which a declared one hides in the schema."""
    return (low, high) if feature.declared else (feature.lower, feature.upper)
