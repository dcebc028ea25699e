"""What a run came to, without its rows."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fasterce.explanation import FOUND, Explanation


@dataclass(frozen=True)
class Summary:
    """Counts over all rows of a run; `+` adds those of two parts.

    rows         rows read
    statuses     how many rows have each status
    lines        lines written
    calls        calls of the model, and `rows_asked`, the rows it was asked about
    seconds      time spent explaining, over all runs that were needed
    changed      how often the best counterfactual of a row changes each feature, most often first
    chunks       chunks the rows came in, `resumed` of them finished by an earlier run
    complete     False if whoever read the output stopped reading
    """

    rows: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)
    lines: int = 0
    calls: int = 0
    rows_asked: int = 0
    seconds: float = 0.0
    changed: Mapping[str, int] = field(default_factory=dict)
    chunks: int = 0
    resumed: int = 0
    complete: bool = True

    @property
    def found(self) -> int:
        return self.statuses.get(FOUND, 0)

    def __add__(self, more: "Summary") -> "Summary":
        counts = ("rows", "lines", "calls", "rows_asked", "seconds", "chunks", "resumed")
        return Summary(
            **{name: getattr(self, name) + getattr(more, name) for name in counts},
            statuses=_sum(self.statuses, more.statuses),
            changed=_sum(self.changed, more.changed),
            complete=self.complete and more.complete,
        )

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {word}" for word, count in self.statuses.items()) or "none"
        most = ", ".join(f"{name} ({count:,})" for name, count in list(self.changed.items())[:3])
        return f"{self.rows:,} rows in {self.seconds:,.1f} s: {counts}" + (f"; most often changed: {most}" if most else "")

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "statuses": dict(self.statuses), "changed": dict(self.changed)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Summary":
        return cls(**{name: value for name, value in fields.items() if name in cls.__dataclass_fields__})

    @classmethod
    def of(cls, found: Explanation, lines: int) -> "Summary":
        """The counts of one chunk."""
        best = found.answers.changed[found.answers.rank == 0].sum(axis=0)
        names = found.table.schema.names
        return cls(
            rows=len(found),
            statuses=_sum(Counter(found.status), {}),
            lines=lines,
            calls=found.asked.calls,
            rows_asked=found.asked.rows,
            seconds=found.seconds,
            changed=_sum({str(names[j]): int(best[j]) for j in np.flatnonzero(best)}, {}),
            chunks=1,
        )


def _sum(some: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Both together, the largest first."""
    total = Counter(some)
    total.update(more)
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))
