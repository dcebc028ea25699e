"""One explained row as a grid of words, whatever it is then drawn with."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasterce.display.wording import bounds, change, is_missing, measure, percent, predicted, text, values
from fasterce.explanation import Explanation

UNCHANGED = "·"
PREDICTION = "Prediction"
SHARES = {"nn_ratio": "From people", "robust": "Holds shaken", "survived": "Holds refitted"}


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
    """One counterfactual: the new value of each feature shown, None where it stays; what the model says of it then, and
    in how many trials it holds, in the order of the row's `trials`."""

    method: str
    distance: str
    after: tuple[str | None, ...]
    outcome: str
    shares: tuple[str, ...] = ()


@dataclass(frozen=True)
class RowView:
    """One row and its counterfactuals; `features` are those that change in any of them, `trials` what they stood.

    `outcome` is what is wanted of the model, its prediction or its chance of a class, and `own` the row's.
    """

    label: str
    status: str
    reason: str
    prediction: str | None
    target: str | None
    features: tuple[str, ...]
    before: tuple[str, ...]
    answers: tuple[AnswerView, ...]
    outcome: str = PREDICTION
    own: str = ""
    trials: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        if self.outcome != PREDICTION:
            said = [self.prediction, f"{self.outcome.lower()} {self.own}" if self.own else None]
            return f"Row {self.label}: " + ", ".join(part for part in said if part)
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
    explanation = explanation.in_pandas()
    mine = explanation.of_row(position)
    shown = np.flatnonzero(explanation.answers.changed[mine].any(axis=0))
    columns = [_column(explanation, mine, int(j)) for j in shown]
    names = explanation.table.schema.names
    trials = [name for name in SHARES if np.isfinite(getattr(explanation.answers, name)).any()]
    wanted = explanation.target.iloc[position]
    prediction, target = _prediction(explanation.prediction.iloc[position], wanted), _label(wanted)
    about_chance = _is_chance(explanation, position)
    return RowView(
        label=text(explanation.rows.index[position]),
        status=text(explanation.status.iloc[position]),
        reason=_sentence(explanation.reason.iloc[position]),
        prediction=prediction,
        target=target,
        features=tuple(text(names[j]) for j in shown),
        before=tuple(before for before, _ in columns),
        answers=tuple(
            AnswerView(
                text(explanation.answers.method[k]),
                measure(float(explanation.answers.distance[k])),
                tuple(afters[i] for _, afters in columns),
                _outcome(float(explanation.answers.score[k]), about_chance, target),
                tuple(_measured(name, float(getattr(explanation.answers, name)[k])) for name in trials),
            )
            for i, k in enumerate(mine)
        ),
        outcome=f"Chance of {target}" if about_chance else PREDICTION,
        own=measure(_score(explanation, position)) if about_chance else prediction or "",
        trials=tuple(SHARES[name] for name in trials),
    )


def _measured(name: str, value: float) -> str:
    """A share of trials in per cent; the distance from people in what is usual among them."""
    if math.isnan(value):
        return ""
    return f"{value:.2f} × usual" if name == "nn_ratio" else percent(value)


def _score(explanation: Explanation, position: int) -> float:
    return float("nan") if explanation.score is None else float(explanation.score.iloc[position])


def _is_chance(explanation: Explanation, position: int) -> bool:
    """Whether a chance was wanted of a row: a number of a model that answers classes."""
    wants_bounds = isinstance(explanation.target.iloc[position], tuple)
    return bool(np.isfinite(_score(explanation, position))) and not wants_bounds


def _outcome(score: float, about_chance: bool, target: str | None) -> str:
    if not np.isfinite(score):
        return target or ""
    return measure(score) if about_chance else predicted(score)


def _column(explanation: Explanation, mine: list[int], j: int) -> tuple[str, list[str | None]]:
    """One feature of a row in words: what it is, and what each counterfactual makes of it."""
    table, answers = explanation.table, explanation.answers
    changing = [k for k in mine if answers.changed[k, j]]
    afters = [table.value(j, answers.codes[k, j]) for k in changing]
    before, told = values(table.schema.features[j], table.value(j, answers.before[mine[0], j]), afters)
    after_of = dict(zip(changing, told, strict=True))
    return before, [after_of.get(k) for k in mine]


def _label(label: object) -> str | None:
    """A class, or bounds of a number."""
    if isinstance(label, tuple):
        return bounds(*label)
    return None if is_missing(label) else text(label)


def _prediction(said: Any, wanted: object) -> str | None:
    return predicted(said) if isinstance(wanted, tuple) and not is_missing(said) else _label(said)


def _sentence(reason: object) -> str:
    return "" if is_missing(reason) or not str(reason).strip() else text(reason)


def wide(row: RowView) -> Grid:
    """One line a counterfactual, the input first, one column a feature."""
    start = (Cell("Input"), *map(Cell, row.before), Cell(row.own), Cell(""), *(Cell("") for _ in row.trials))
    lines = [
        (
            Cell(answer.method),
            *(Cell(b, a, quiet=a is None) for b, a in zip(row.before, answer.after, strict=True)),
            Cell(answer.outcome),
            Cell(answer.distance),
            *map(Cell, answer.shares),
        )
        for answer in row.answers
    ]
    return Grid(("Method", *row.features, row.outcome, "Distance", *row.trials), (start, *lines))


def tall(row: RowView, answers: tuple[AnswerView, ...]) -> Grid:
    """One line a feature, one column a counterfactual: for when many features change."""
    lines = []
    for j, (feature, before) in enumerate(zip(row.features, row.before, strict=True)):
        afters = [answer.after[j] for answer in answers]
        if any(after is not None for after in afters):
            lines.append((Cell(feature), *(_stays() if a is None else Cell(before, a) for a in afters)))
    foot = (
        (Cell(row.outcome), *(Cell(row.own, answer.outcome) if row.own else Cell(answer.outcome) for answer in answers)),
        (Cell("Distance"), *(Cell(answer.distance) for answer in answers)),
        *((Cell(name), *(Cell(answer.shares[k]) for answer in answers)) for k, name in enumerate(row.trials)),
    )
    return Grid(("Feature", *(answer.method for answer in answers)), tuple(lines), foot)


def _stays() -> Cell:
    return Cell(UNCHANGED, quiet=True)
