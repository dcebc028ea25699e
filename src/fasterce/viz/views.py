"""One explained row as a grid of text, drawn by `terminal`, `html` and `plots`."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fasterce.explanation import Explanation
from fasterce.viz.formatting import bounds, change, is_missing, measure, percent, predicted, text, values
from fasterce.viz.grid import Grid, GridCell

UNCHANGED = GridCell("·", quiet=True)
PREDICTION = "Prediction"
MEASURES = {"nn_ratio": "Distance to data", "robust": "Holds under noise", "ensemble_agreement": "Holds after refit"}


@dataclass(frozen=True)
class CounterfactualView:
    """One counterfactual: the new value of each feature shown, None where it stays; the prediction or chance it gets; and
    its measures, in the order of the row's `measures`."""

    method: str
    distance: str
    after: tuple[str | None, ...]
    outcome: str
    measures: tuple[str, ...] = ()


@dataclass(frozen=True)
class RowView:
    """One row and its counterfactuals.

    `features` are those that change in any counterfactual. `outcome` is the heading of what is wanted of the model, its
    prediction or its chance of a class, and `own_outcome` that of the row itself.
    """

    label: str
    status: str
    reason: str
    prediction: str | None
    target: str | None
    features: tuple[str, ...]
    before: tuple[str, ...]
    counterfactuals: tuple[CounterfactualView, ...]
    outcome: str = PREDICTION
    own_outcome: str = ""
    measures: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        if self.outcome != PREDICTION:
            parts = [self.prediction, f"{self.outcome.lower()} {self.own_outcome}" if self.own_outcome else None]
            return f"Row {self.label}: " + ", ".join(part for part in parts if part)
        classes = [label for label in (self.prediction, self.target) if label is not None]
        shown = change(*classes) if len(set(classes)) == 2 else "".join(classes[:1])
        return f"Row {self.label}" + (f": {shown}" if shown else "")

    @property
    def verdict(self) -> str:
        """Why there is nothing to show."""
        return f"{self.status}: {self.reason}" if self.reason else self.status


def row_views(explanation: Explanation, most: int) -> Iterator[RowView]:
    """Yield the views of the first `most` rows."""
    for position in range(min(most, len(explanation))):
        yield row_view(explanation, position)


def row_view(explanation: Explanation, position: int) -> RowView:
    """Return the view of the row at a position."""
    explanation = explanation.in_pandas()
    found, lines = explanation.arrays, explanation.of_row(position)
    shown = np.flatnonzero(found.changed[lines].any(axis=0))
    columns = [_column(explanation, lines, int(j)) for j in shown]
    names = explanation.table.schema.names
    measured = [name for name in MEASURES if np.isfinite(getattr(found, name)).any()]
    target = _label(explanation.target.iloc[position])
    prediction = _prediction(explanation, position)
    score = math.nan if explanation.score is None else float(explanation.score.iloc[position])
    # A chance of a class is wanted where there is a score, but no bounds of a predicted number.
    is_chance = math.isfinite(score) and not isinstance(explanation.target.iloc[position], tuple)
    return RowView(
        label=text(explanation.rows.index[position]),
        status=text(explanation.status.iloc[position]),
        reason=_reason(explanation.reason.iloc[position]),
        prediction=prediction,
        target=target,
        features=tuple(text(names[j]) for j in shown),
        before=tuple(before for before, _ in columns),
        counterfactuals=tuple(
            CounterfactualView(
                text(found.method[k]),
                measure(float(found.distance[k])),
                tuple(afters[i] for _, afters in columns),
                _outcome(float(found.score[k]), is_chance, target),
                tuple(_measured(name, float(getattr(found, name)[k])) for name in measured),
            )
            for i, k in enumerate(lines)
        ),
        outcome=f"Chance of {target}" if is_chance else PREDICTION,
        own_outcome=measure(score) if is_chance else prediction or "",
        measures=tuple(MEASURES[name] for name in measured),
    )


def _measured(name: str, value: float) -> str:
    """A share in per cent; the distance to the data relative to what is typical there."""
    if math.isnan(value):
        return ""
    return f"{value:.2f} × typical" if name == "nn_ratio" else percent(value)


def _outcome(score: float, is_chance: bool, target: str | None) -> str:
    if not math.isfinite(score):
        return target or ""
    return measure(score) if is_chance else predicted(score)


def _column(explanation: Explanation, lines: list[int], j: int) -> tuple[str, list[str | None]]:
    """Return one feature of a row as text: its value, and the value in each counterfactual that changes it."""
    table, found = explanation.table, explanation.arrays
    changing = [k for k in lines if found.changed[k, j]]
    afters = [table.value(j, found.codes[k, j]) for k in changing]
    before, written = values(table.schema.features[j], table.value(j, found.before[lines[0], j]), afters)
    after_of = dict(zip(changing, written, strict=True))
    return before, [after_of.get(k) for k in lines]


def _label(label: object) -> str | None:
    """A class, or bounds of a number."""
    if isinstance(label, tuple):
        return bounds(*label)
    return None if is_missing(label) else text(label)


def _prediction(explanation: Explanation, position: int) -> str | None:
    value = explanation.prediction.iloc[position]
    is_number = isinstance(explanation.target.iloc[position], tuple) and not is_missing(value)
    return predicted(value) if is_number else _label(value)


def _reason(reason: object) -> str:
    return "" if is_missing(reason) or not str(reason).strip() else text(reason)


def wide(row: RowView) -> Grid:
    """Return one line per counterfactual, the input first, and one column per feature."""
    blank = GridCell("")
    first = (GridCell("Input"), *map(GridCell, row.before), GridCell(row.own_outcome), blank, *(blank for _ in row.measures))
    lines = [
        (
            GridCell(one.method),
            *(GridCell(before, after, quiet=after is None) for before, after in zip(row.before, one.after, strict=True)),
            GridCell(one.outcome),
            GridCell(one.distance),
            *map(GridCell, one.measures),
        )
        for one in row.counterfactuals
    ]
    return Grid(("Method", *row.features, row.outcome, "Distance", *row.measures), (first, *lines))


def tall(row: RowView, counterfactuals: tuple[CounterfactualView, ...]) -> Grid:
    """Return one line per feature and one column per counterfactual, for when many features change."""
    lines = []
    for j, (feature, before) in enumerate(zip(row.features, row.before, strict=True)):
        afters = [one.after[j] for one in counterfactuals]
        if any(after is not None for after in afters):
            cells = (UNCHANGED if after is None else GridCell(before, after) for after in afters)
            lines.append((GridCell(feature), *cells))
    own = row.own_outcome
    outcomes = (GridCell(own, one.outcome) if own else GridCell(one.outcome) for one in counterfactuals)
    foot = (
        (GridCell(row.outcome), *outcomes),
        (GridCell("Distance"), *(GridCell(one.distance) for one in counterfactuals)),
        *((GridCell(name), *(GridCell(one.measures[k]) for one in counterfactuals)) for k, name in enumerate(row.measures)),
    )
    return Grid(("Feature", *(one.method for one in counterfactuals)), tuple(lines), foot)
