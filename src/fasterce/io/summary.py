"""Counts over the rows of a run."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fasterce.explanation import FOUND, Explanation
from fasterce.typing import Json, JsonObject


@dataclass(frozen=True)
class Summary:
    """Counts over all rows of a run; `+` adds those of two parts.

    Attributes
    ----------
    rows : int
        Rows read.
    statuses : mapping
        Rows by status.
    lines : int
        Lines written.
    calls, model_rows : int
        Model calls, and the rows the model evaluated.
    seconds : float
        Time spent explaining, over all runs that were needed.
    changed : mapping
        How often the best counterfactual of a row changes each feature, most often first.
    chunks, resumed : int
        Chunks, and how many of them an earlier run had finished.
    complete : bool
        False if the reader of a pipe stopped reading.
    """

    rows: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)
    lines: int = 0
    calls: int = 0
    model_rows: int = 0
    seconds: float = 0.0
    changed: Mapping[str, int] = field(default_factory=dict)
    chunks: int = 0
    resumed: int = 0
    complete: bool = True

    @property
    def found(self) -> int:
        return self.statuses.get(FOUND, 0)

    def __add__(self, more: "Summary") -> "Summary":
        counts = ("rows", "lines", "calls", "model_rows", "seconds", "chunks", "resumed")
        return Summary(
            **{name: getattr(self, name) + getattr(more, name) for name in counts},
            statuses=sum_counts(self.statuses, more.statuses),
            changed=sum_counts(self.changed, more.changed),
            complete=self.complete and more.complete,
        )

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {word}" for word, count in self.statuses.items()) or "none"
        most = ", ".join(f"{name} ({count:,})" for name, count in list(self.changed.items())[:3])
        return f"{self.rows:,} rows in {self.seconds:,.1f} s: {counts}" + (f"; most often changed: {most}" if most else "")

    def to_dict(self) -> JsonObject:
        return {**vars(self), "statuses": dict(self.statuses), "changed": dict(self.changed)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Json]) -> "Summary":
        return cls(**{name: value for name, value in fields.items() if name in cls.__dataclass_fields__})

    @classmethod
    def of(cls, found: Explanation, lines: int) -> "Summary":
        """Return the counts of one chunk."""
        best = found.arrays.changed[found.arrays.rank == 0].sum(axis=0)
        names = found.table.schema.names
        return cls(
            rows=len(found),
            statuses=sum_counts(Counter(found.status), {}),
            lines=lines,
            calls=found.usage.calls,
            model_rows=found.usage.rows,
            seconds=found.seconds,
            changed=sum_counts({str(names[j]): int(best[j]) for j in np.flatnonzero(best)}, {}),
            chunks=1,
        )


def sum_counts(some: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Add two counts; the largest comes first."""
    total = Counter(some)
    total.update(more)
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))
