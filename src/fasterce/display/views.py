"""One explained row as a grid of words, whatever it is then drawn with."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fasterce.display.wording import change, is_missing, measure, text, values
from fasterce.explanation import Explanation

UNCHANGED = "·"


@dataclass(frozen=True)
class Cell:
    """What a cell says, and what it changes to if it does."""

    said: str
    after: str | None = None
    quiet: bool = False

    def __str__(self) -> str:
        return self.said if self.after is None else change(self.said, self.after)


Line = tuple[Cell, ...]


@dataclass(frozen=True)
class Grid:
    """A header, lines, and lines that sum up; the first cell of every line names it."""

    header: tuple[str, ...]
    lines: tuple[Line, ...]
    foot: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Sheet:
    """Grids, each under its caption, then lines of summary and notes that a reader must not miss."""

    sections: tuple[tuple[str, Grid], ...]
    summary: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class AnswerView:
    """One counterfactual: the new value of each feature shown, None where it stays."""

    method: str
    distance: str
    after: tuple[str | None, ...]


@dataclass(frozen=True)
class RowView:
    """One row and its counterfactuals; `features` are those that change in any of them."""

    label: str
    status: str
    reason: str
    prediction: str | None
    target: str | None
    features: tuple[str, ...]
    before: tuple[str, ...]
    answers: tuple[AnswerView, ...]

    @property
    def heading(self) -> str:
        classes = [said for said in (self.prediction, self.target) if said is not None]
        shown = change(*classes) if len(set(classes)) == 2 else "".join(classes[:1])
        return f"Row {self.label}" + (f": {shown}" if shown else "")

    @property
    def verdict(self) -> str:
        """Why there is nothing to show."""
        return f"{self.status}: {self.reason}" if self.reason else self.status


def row_views(explanation: Explanation, most: int) -> Iterator[RowView]:
    """The first `most` rows."""
    for position in range(min(most, len(explanation))):
        yield row_view(explanation, position)


def row_view(explanation: Explanation, position: int) -> RowView:
    mine = explanation.of_row(position)
    shown = np.flatnonzero(explanation.answers.changed[mine].any(axis=0))
    columns = [_column(explanation, mine, int(j)) for j in shown]
    names = explanation.table.schema.names
    return RowView(
        label=text(explanation.rows.index[position]),
        status=text(explanation.status.iloc[position]),
        reason=_sentence(explanation.reason.iloc[position]),
        prediction=_class(explanation.prediction.iloc[position]),
        target=_class(explanation.target.iloc[position]),
        features=tuple(text(names[j]) for j in shown),
        before=tuple(before for before, _ in columns),
        answers=tuple(
            AnswerView(
                text(explanation.answers.method[k]),
                measure(float(explanation.answers.distance[k])),
                tuple(afters[i] for _, afters in columns),
            )
            for i, k in enumerate(mine)
        ),
    )


def _column(explanation: Explanation, mine: list[int], j: int) -> tuple[str, list[str | None]]:
    """One feature of a row in words: what it is, and what each counterfactual makes of it."""
    table, answers = explanation.table, explanation.answers
    changing = [k for k in mine if answers.changed[k, j]]
    afters = [table.value(j, answers.codes[k, j]) for k in changing]
    before, told = values(table.schema.features[j], table.value(j, answers.before[mine[0], j]), afters)
    after_of = dict(zip(changing, told, strict=True))
    return before, [after_of.get(k) for k in mine]


def _class(label: object) -> str | None:
    return None if is_missing(label) else text(label)


def _sentence(reason: object) -> str:
    return "" if is_missing(reason) or not str(reason).strip() else text(reason)


def wide(row: RowView) -> Grid:
    """One line a counterfactual, the input first, one column a feature."""
    start = (Cell("Input"), *map(Cell, row.before), Cell(row.prediction or ""), Cell(""))
    lines = [
        (
            Cell(answer.method),
            *(Cell(b, a, quiet=a is None) for b, a in zip(row.before, answer.after, strict=True)),
            Cell(row.target or ""),
            Cell(answer.distance),
        )
        for answer in row.answers
    ]
    return Grid(("Method", *row.features, "Prediction", "Distance"), (start, *lines))


def tall(row: RowView, answers: tuple[AnswerView, ...]) -> Grid:
    """One line a feature, one column a counterfactual: for when many features change."""
    lines = []
    for j, (feature, before) in enumerate(zip(row.features, row.before, strict=True)):
        afters = [answer.after[j] for answer in answers]
        if any(after is not None for after in afters):
            lines.append((Cell(feature), *(_stays() if a is None else Cell(before, a) for a in afters)))
    foot = (
        (Cell("Prediction"), *(_prediction(row) for _ in answers)),
        (Cell("Distance"), *(Cell(answer.distance) for answer in answers)),
    )
    return Grid(("Feature", *(answer.method for answer in answers)), tuple(lines), foot)


def _stays() -> Cell:
    return Cell(UNCHANGED, quiet=True)


def _prediction(row: RowView) -> Cell:
    return Cell(row.prediction, row.target) if row.prediction is not None else Cell(row.target or "")
