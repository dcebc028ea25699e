"""Counts over the rows of a run."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import TypeVar

import numpy as np

from fasterce.explanation import FOUND, Explanation
from fasterce.typing import Json, JsonObject

T = TypeVar("T")


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
        """Rows with at least one counterfactual."""
        return self.statuses.get(FOUND, 0)

    def __add__(self, more: "Summary") -> "Summary":
        return add(self, more)

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {word}" for word, count in self.statuses.items()) or "none"
        most = ", ".join(f"{name} ({count:,})" for name, count in list(self.changed.items())[:3])
        return f"{self.rows:,} rows in {self.seconds:,.1f} s: {counts}" + (f"; most often changed: {most}" if most else "")

    def to_dict(self) -> JsonObject:
        """Return plain values for JSON.

        Returns
        -------
        dict
        """
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Json]) -> "Summary":
        """Return the summary that `to_dict` described.

        Parameters
        ----------
        fields : mapping
            As `to_dict` returns it.

        Returns
        -------
        Summary
        """
        return cls(**{name: value for name, value in fields.items() if name in cls.__dataclass_fields__})

    @classmethod
    def of(cls, found: Explanation, lines: int) -> "Summary":
        """Return the counts of one chunk."""
        best = found.arrays.changed[found.arrays.rank == 0].sum(axis=0)
        names = found.table.schema.names
        return cls(
            rows=len(found),
            statuses=largest_first(Counter(found.status)),
            lines=lines,
            calls=found.usage.calls,
            model_rows=found.usage.rows,
            seconds=found.seconds,
            changed=largest_first({str(names[j]): int(best[j]) for j in np.flatnonzero(best)}),
            chunks=1,
        )


def add(some: T, more: T) -> T:
    """Add counts: numbers, mappings key by key, dataclasses field by field; of two booleans both must be true."""
    if is_dataclass(some) and not isinstance(some, type):
        return replace(some, **{one.name: add(getattr(some, one.name), getattr(more, one.name)) for one in fields(some)})
    if isinstance(some, Mapping) and isinstance(more, Mapping):
        both = {name: add(some[name], more[name]) for name in some.keys() & more.keys()}
        return largest_first({**some, **more, **both})  # type: ignore[return-value]
    return some and more if isinstance(some, bool) else some + more  # type: ignore[operator]


def largest_first(counts: Mapping[str, T]) -> dict[str, T]:
    """Return counts with the largest first, other values by name."""
    return dict(sorted(counts.items(), key=lambda one: (-one[1] if isinstance(one[1], int) else 0, one[0])))
