"""An explanation of a Polars or PyArrow table, in tables of the same kind."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from fasterce.explanation import Explanation
from fasterce.frames import Kind, as_kind, as_series

COLUMNS = ("status", "reason", "prediction", "target", "score")


@dataclass(frozen=True, repr=False)
class NativeExplanation(Explanation):
    """What `Explanation` is for pandas: `rows`, `counterfactuals`, `to_frame()` are tables of the kind that was explained,
    `status`, `reason`, `prediction`, `target` and `score` its columns. `in_pandas()` is the same in pandas."""

    kind: Kind = "pandas"
    original: Explanation | None = None

    def in_pandas(self) -> Explanation:
        assert self.original is not None
        return self.original

    @cached_property
    def counterfactuals(self) -> Any:
        """The best counterfactual of every row, null where there is none."""
        return as_kind(self.in_pandas().counterfactuals, self.kind)

    def to_frame(self) -> Any:
        """Long form, as `Explanation.to_frame`; `query` is the row's position."""
        return as_kind(self.in_pandas().to_frame(), self.kind)

    def beside(self, *others: Explanation, labels: Any = None) -> Explanation:
        return as_given(self.in_pandas().beside(*(one.in_pandas() for one in others), labels=labels), self.kind)

    def summary(self) -> dict[str, Any]:
        return self.in_pandas().summary()

    def __len__(self) -> int:
        return len(self.in_pandas())

    def __str__(self) -> str:
        return str(self.in_pandas())

    def __repr__(self) -> str:
        return repr(self.in_pandas())

    def __rich__(self) -> Any:
        return self.in_pandas().__rich__()

    def _repr_html_(self) -> str:
        return self.in_pandas()._repr_html_()


def as_given(found: Explanation, kind: Kind) -> Explanation:
    """An explanation in tables of the kind that was asked about."""
    if kind == "pandas":
        return found
    content = {field.name: getattr(found, field.name) for field in fields(Explanation)}
    content |= {name: as_series(content[name], kind) for name in COLUMNS if content[name] is not None}
    return NativeExplanation(**content | {"rows": as_kind(found.rows, kind)}, kind=kind, original=found)
