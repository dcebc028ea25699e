"""What shards came to, in numbers that add up: whole reports without a second look at the rows."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from fasterce.explanation import FOUND, NONE_FOUND, STOPPED, Explanation
from fasterce.streams import Summary
from fasterce.streams.cells import decoded

MOST_GROUPS = 100
OTHERS = "(other values)"
MISSING = "(missing)"


@dataclass(frozen=True)
class Cost:
    """What recourse costs some rows: how many wanted an answer, how many have one, and sums over the best of each."""

    wanting: int = 0
    found: int = 0
    distance: float = 0.0
    squares: float = 0.0
    changed: int = 0

    def __add__(self, more: "Cost") -> "Cost":
        return Cost(*(getattr(self, one.name) + getattr(more, one.name) for one in fields(self)))

    @property
    def without(self) -> float:
        """The share of rows that wanted an answer and have none."""
        return 1 - self.found / self.wanting if self.wanting else math.nan

    @property
    def mean(self) -> float:
        """The mean distance of the best answers."""
        return self.distance / self.found if self.found else math.nan

    @property
    def spread(self) -> float:
        """Half of the 95 % interval of the mean; unknown for fewer than two rows."""
        if self.found < 2:
            return math.nan
        variance = max(self.squares - self.distance**2 / self.found, 0.0) / (self.found - 1)
        return 1.96 * math.sqrt(variance / self.found)

    @property
    def features(self) -> float:
        """The mean number of features changed."""
        return self.changed / self.found if self.found else math.nan


@dataclass(frozen=True)
class Tally:
    """Counts over rows; `+` adds those of two parts.

    summary    what `fasterce.streams` counts: rows explained, statuses, lines, calls, seconds
    read       rows of the input; `filtered` of them were not wanted
    cost       of all rows; `groups`, of those with each value of the group column
    moved      for each feature how often the best answer raises (up), lowers (down) or replaces it (other)
    sizes      how many best answers change 1, 2, … features
    blocking   how often each rule stands in the way of a row without an answer
    """

    summary: Summary = field(default_factory=Summary)
    read: int = 0
    filtered: int = 0
    cost: Cost = field(default_factory=Cost)
    groups: Mapping[str, Cost] = field(default_factory=dict)
    moved: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    blocking: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, more: "Tally") -> "Tally":
        every = sorted({*self.moved, *more.moved})
        return Tally(
            self.summary + more.summary,
            self.read + more.read,
            self.filtered + more.filtered,
            self.cost + more.cost,
            _few(
                {name: self.groups.get(name, Cost()) + more.groups.get(name, Cost()) for name in {*self.groups, *more.groups}}
            ),
            {name: _sum(self.moved.get(name, {}), more.moved.get(name, {})) for name in every},
            _sum(self.sizes, more.sizes),
            _sum(self.blocking, more.blocking),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            **vars(self),
            "summary": self.summary.to_dict(),
            "cost": vars(self.cost),
            "groups": {name: vars(cost) for name, cost in self.groups.items()},
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "Tally":
        return cls(
            **{
                **told,
                "summary": Summary.from_dict(told["summary"]),
                "cost": Cost(**told["cost"]),
                "groups": {name: Cost(**cost) for name, cost in told["groups"].items()},
            }
        )

    @classmethod
    def of(cls, found: Explanation, lines: int, group: pa.Array | None) -> "Tally":
        """The counts of one batch that was explained."""
        blocking = Counter(" and ".join(refusal.blocking) for refusal in found.refusals.values() if refusal.blocking)
        best = found.answers.where(found.answers.rank == 0)
        sizes = Counter(map(str, best.changed.sum(axis=1).tolist()))
        return cls(
            summary=Summary.of(found, lines),
            cost=_cost(found, np.ones(len(found), dtype=bool)),
            groups={} if group is None else _by_group(found, group),
            moved=_moved(found),
            sizes=_sum(sizes, {}),
            blocking=_sum(blocking, {}),
        )


def _cost(found: Explanation, rows: Any) -> Cost:
    status = found.status.to_numpy(dtype=object)
    best = found.answers.where((found.answers.rank == 0) & rows[found.answers.query])
    return Cost(
        int((np.isin(status, [FOUND, NONE_FOUND, STOPPED]) & rows).sum()),
        len(best),
        float(best.distance.sum()),
        float((best.distance**2).sum()),
        int(best.changed.sum()),
    )


def _by_group(found: Explanation, group: pa.Array) -> dict[str, Cost]:
    codes, values = pd.factorize(np.asarray(decoded(group).to_pylist(), dtype=object), use_na_sentinel=True)
    named = {MISSING if code < 0 else str(values[code]): codes == code for code in np.unique(codes)}
    return _few({name: _cost(found, rows) for name, rows in named.items()})


def _few(groups: Mapping[str, Cost]) -> dict[str, Cost]:
    """The first groups by name; what is beyond counts together, for a column of as many values as rows is no group."""
    names = sorted(name for name in groups if name != OTHERS)
    kept = {name: groups[name] for name in names[:MOST_GROUPS]}
    rest = [groups[name] for name in [*names[MOST_GROUPS:], *([OTHERS] if OTHERS in groups else [])]]
    return {**kept, **({OTHERS: sum(rest, Cost())} if rest else {})}


def _moved(found: Explanation) -> dict[str, dict[str, int]]:
    best = found.answers.where(found.answers.rank == 0)
    features = found.table.schema.features
    moved: dict[str, dict[str, int]] = {}
    for j in np.flatnonzero(best.changed.any(axis=0)):
        before, after, feature = best.before[:, j], best.codes[:, j], features[j]
        there = feature.numeric & (before != feature.absent) & (after != feature.absent)
        ways = {"up": there & (after > before), "down": there & (after < before), "other": ~there & (after != before)}
        moved[str(feature.name)] = {way: int(rows.sum()) for way, rows in ways.items() if rows.any()}
    return moved


def _sum(some: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    total = Counter(some)
    total.update(more)
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def total(parts: Sequence[Tally]) -> Tally:
    """All together."""
    return sum(parts, Tally())
