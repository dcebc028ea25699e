"""Counts of shards, which add up to those of a batch without a second pass over the rows."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import pandas as pd
import pyarrow as pa

from fasterce.config import BatchConfig
from fasterce.explanation import FOUND, NONE_FOUND, STOPPED, Explanation
from fasterce.io import Summary
from fasterce.io.cells import decoded
from fasterce.io.summary import add, largest_first
from fasterce.typing import Json, JsonObject, Mask

MOST_GROUPS = BatchConfig().max_groups
OTHERS = "(other values)"
MISSING = "(missing)"


@dataclass(frozen=True)
class RecourseCost:
    """The cost of recourse for a group of rows.

    Attributes
    ----------
    wanting, found : int
        Rows that need a counterfactual, and rows that have one.
    distance, squares, changed
        Sums over the best counterfactual of each row: distance, squared distance, features changed.
    """

    wanting: int = 0
    found: int = 0
    distance: float = 0.0
    squares: float = 0.0
    changed: int = 0

    def __add__(self, more: "RecourseCost") -> "RecourseCost":
        return add(self, more)

    @property
    def without(self) -> float:
        """Share of the rows that need a counterfactual and have none."""
        return 1 - self.found / self.wanting if self.wanting else math.nan

    @property
    def mean(self) -> float:
        """Mean distance of the best counterfactuals."""
        return self.distance / self.found if self.found else math.nan

    @property
    def spread(self) -> float:
        """Half of the 95 % interval of the mean; NaN for fewer than two rows."""
        if self.found < 2:
            return math.nan
        variance = max(self.squares - self.distance**2 / self.found, 0.0) / (self.found - 1)
        return 1.96 * math.sqrt(variance / self.found)

    @property
    def features(self) -> float:
        """Mean number of features changed."""
        return self.changed / self.found if self.found else math.nan


@dataclass(frozen=True)
class BatchCounts:
    """Counts over rows; `+` adds those of two parts.

    Attributes
    ----------
    summary : Summary
        Rows explained, statuses, lines, model calls, seconds.
    read, filtered : int
        Rows of the input, and how many of them were filtered out.
    cost, groups
        Cost of all rows, and of those with each value of the group column.
    moved : mapping
        For each feature how often the best counterfactual raises (up), lowers (down) or replaces it (other).
    sizes : mapping
        How many best counterfactuals change 1, 2, … features.
    blocking : mapping
        How often each constraint blocks a row without a counterfactual.
    """

    summary: Summary = field(default_factory=Summary)
    read: int = 0
    filtered: int = 0
    cost: RecourseCost = field(default_factory=RecourseCost)
    groups: Mapping[str, RecourseCost] = field(default_factory=dict)
    moved: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    blocking: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, more: "BatchCounts") -> "BatchCounts":
        total = add(self, more)
        return replace(total, groups=_limited(total.groups))

    def to_dict(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Json]) -> "BatchCounts":
        groups = {name: RecourseCost(**cost) for name, cost in values["groups"].items()}
        summary, cost = Summary.from_dict(values["summary"]), RecourseCost(**values["cost"])
        return cls(**{**values, "summary": summary, "cost": cost, "groups": groups})

    @classmethod
    def of(cls, found: Explanation, lines: int, group: pa.Array | None) -> "BatchCounts":
        """Return the counts of one explained batch."""
        blocking = Counter(
            " and ".join(one.text for one in reason.blocking) for reason in found.infeasible.values() if reason.blocking
        )
        best = found.arrays.where(found.arrays.rank == 0)
        sizes = Counter(map(str, best.changed.sum(axis=1).tolist()))
        return cls(
            summary=Summary.of(found, lines),
            cost=_cost(found, np.ones(len(found), dtype=bool)),
            groups={} if group is None else _by_group(found, group),
            moved=_moved(found),
            sizes=largest_first(sizes),
            blocking=largest_first(blocking),
        )


def _cost(found: Explanation, rows: Mask) -> RecourseCost:
    status = found.status.to_numpy(dtype=object)
    best = found.arrays.where((found.arrays.rank == 0) & rows[found.arrays.query])
    return RecourseCost(
        int((np.isin(status, [FOUND, NONE_FOUND, STOPPED]) & rows).sum()),
        len(best),
        float(best.distance.sum()),
        float((best.distance**2).sum()),
        int(best.changed.sum()),
    )


def _by_group(found: Explanation, group: pa.Array) -> dict[str, RecourseCost]:
    codes, values = pd.factorize(np.asarray(decoded(group).to_pylist(), dtype=object), use_na_sentinel=True)
    named = {MISSING if code < 0 else str(values[code]): codes == code for code in np.unique(codes)}
    return _limited({name: _cost(found, rows) for name, rows in named.items()})


def _limited(groups: Mapping[str, RecourseCost]) -> dict[str, RecourseCost]:
    """Return the first groups by name and the sum of the others: a column may have as many values as rows."""
    names = sorted(name for name in groups if name != OTHERS)
    kept = {name: groups[name] for name in names[:MOST_GROUPS]}
    rest = [groups[name] for name in [*names[MOST_GROUPS:], *([OTHERS] if OTHERS in groups else [])]]
    return {**kept, **({OTHERS: sum(rest, RecourseCost())} if rest else {})}


def _moved(found: Explanation) -> dict[str, dict[str, int]]:
    best = found.arrays.where(found.arrays.rank == 0)
    features = found.table.schema.features
    moved: dict[str, dict[str, int]] = {}
    for j in np.flatnonzero(best.changed.any(axis=0)):
        before, after, feature = best.before[:, j], best.codes[:, j], features[j]
        there = feature.numeric & (before != feature.missing_code) & (after != feature.missing_code)
        ways = {"up": there & (after > before), "down": there & (after < before), "other": ~there & (after != before)}
        moved[str(feature.name)] = {way: int(rows.sum()) for way, rows in ways.items() if rows.any()}
    return moved
