"""What a whole batch came to."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fasterce.batch.tally import Cost, Tally
from fasterce.explanation import ALREADY_TARGET, FOUND, INVALID_INPUT


@dataclass(frozen=True)
class ShardFailure:
    """A shard that could not be done: which rows, and why the last try failed."""

    number: int
    source: str
    first: int
    rows: int
    kind: str
    said: str


@dataclass(frozen=True)
class BatchReport:
    """The result of `fasterce.batch.explain`.

    output     the folder written
    tally      counts over all finished shards (`tally.summary` as in `fasterce.streams`)
    rows       rows of the input, those of failed shards too
    shards     how many there are; `resumed` of them were finished by an earlier run
    failed     shards that could not be done; empty if all is well
    retried    how often a shard had to be tried again
    seconds    time this run took, on `workers` workers of an `engine`
    group      the column by which cost was summed up
    about      what it rests on: files, digests, options
    """

    output: str
    tally: Tally
    rows: int
    shards: int
    resumed: int
    failed: tuple[ShardFailure, ...]
    retried: int
    seconds: float
    workers: int
    engine: str
    group: str | None = None
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every row of the input is told in the output."""
        return not self.failed

    @property
    def found(self) -> int:
        return self.tally.summary.statuses.get(FOUND, 0)

    def __str__(self) -> str:
        summary = self.tally.summary
        counts = ", ".join(f"{count:,} {word}" for word, count in summary.statuses.items()) or "none explained"
        said = f"{self.rows:,} rows in {self.shards:,} shards, {self.seconds:,.1f} s: {counts}"
        said += f"; {self.tally.filtered:,} filtered out" if self.tally.filtered else ""
        said += f"; {self.resumed:,} shards were there already" if self.resumed else ""
        lost = sum(failure.rows for failure in self.failed)
        return said + (f"; {len(self.failed):,} shards with {lost:,} rows FAILED" if self.failed else "")

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        summary = self.tally.summary
        return {
            "complete": self.complete,
            "output": self.output,
            "rows": self.rows,
            "filtered": self.tally.filtered,
            "explained": summary.rows,
            "lines": summary.lines,
            "statuses": dict(summary.statuses),
            "without_recourse": _sound(self.tally.cost.without),
            "already_target": summary.statuses.get(ALREADY_TARGET, 0),
            "invalid_input": summary.statuses.get(INVALID_INPUT, 0),
            "cost": _costs(self.tally.cost),
            "group": self.group,
            "groups": {name: _costs(cost) for name, cost in self.tally.groups.items()},
            "changed": dict(summary.changed),
            "moved": self.tally.moved,
            "features_changed": dict(self.tally.sizes),
            "blocking": dict(self.tally.blocking),
            "calls": summary.calls,
            "rows_asked": summary.rows_asked,
            "engine": self.engine,
            "workers": self.workers,
            "seconds": round(self.seconds, 3),
            "worker_seconds": round(summary.seconds, 3),
            "shards": self.shards,
            "resumed": self.resumed,
            "retried": self.retried,
            "failed": [vars(failure) for failure in self.failed],
            "about": dict(self.about),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"


def _costs(cost: Cost) -> dict[str, Any]:
    return {
        "wanting": cost.wanting,
        "found": cost.found,
        "without_recourse": _sound(cost.without),
        "mean_distance": _sound(cost.mean),
        "plus_minus": _sound(cost.spread),
        "mean_features_changed": _sound(cost.features),
    }


def _sound(number: float) -> float | None:
    return float(f"{number:.9g}") if math.isfinite(number) else None
