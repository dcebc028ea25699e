"""One explained row as a grid of text, drawn by `terminal`, `html` and `plots`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fasterce.explanation import Explanation
from fasterce.viz.formatting import bounds, change, counted, is_missing, measure, percent, predicted, text, values
from fasterce.viz.grid import AGAINST_LEGEND, Grid, GridCell

UNCHANGED = GridCell("·", quiet=True)
MEASURES = {"nn_ratio": "Distance to data", "robust": "Holds under noise", "ensemble_agreement": "Holds after refit"}


@dataclass(frozen=True)
class RowLine:
    """A feature or a measure: its name, its value in the row, and its value in each counterfactual, None where it stays.

    `against` has the positions of the counterfactuals that change it against the person's interest (`Feature.preferred`).
    """

    name: str
    own: str
    values: tuple[str | None, ...]
    against: frozenset[int] = frozenset()

    def cell(self, k: int) -> GridCell:
        """Return the value in a counterfactual as a change of the value in the row."""
        return GridCell(self.own, self.values[k], quiet=self.values[k] is None, against=k in self.against)


@dataclass(frozen=True)
class RowView:
    """One row and its counterfactuals: their methods, the features that any of them changes, and their measures.

    The first measure is what is wanted of the model: its prediction, or its chance of a class.
    """

    heading: str
    status: str
    reason: str
    methods: tuple[str, ...]
    features: tuple[RowLine, ...]
    measures: tuple[RowLine, ...]

    @property
    def verdict(self) -> str:
        """Why there is nothing to show."""
        return f"{self.status}: {self.reason}" if self.reason else self.status

    @property
    def legend(self) -> str:
        """What the mark of changes against the person's interest means, empty if there are none."""
        return AGAINST_LEGEND if any(line.against for line in self.features) else ""


def first_rows(explanation: Explanation, most: int) -> tuple[list[RowView], str]:
    """Return the views of the first `most` rows, and a line on the others, empty if there are none."""
    views = [row_view(explanation, position) for position in range(min(most, len(explanation)))]
    left = len(explanation) - len(views)
    return views, f"… and {counted(left, 'more row')}" if left else ""


def row_view(explanation: Explanation, position: int) -> RowView:
    """Return the view of the row at a position."""
    explanation = explanation.in_pandas()
    found, lines = explanation.arrays, explanation.of_row(position)
    prediction, target = _prediction(explanation, position), _label(explanation.target.iloc[position])
    score = math.nan if explanation.score is None else float(explanation.score.iloc[position])
    # A chance of a class is wanted where there is a score, but no bounds of a predicted number.
    is_chance = math.isfinite(score) and not isinstance(explanation.target.iloc[position], tuple)
    outcome = RowLine(
        f"Chance of {target}" if is_chance else "Prediction",
        measure(score) if is_chance else prediction or "",
        tuple(_outcome(explanation, k, is_chance, target) for k in lines),
    )
    distance = RowLine("Distance", "", tuple(measure(float(found.distance[k])) for k in lines))
    measured = {title: (name, getattr(found, name)) for name, title in MEASURES.items()}
    others = [
        RowLine(title, "", tuple(_measured(name, float(array[k])) for k in lines))
        for title, (name, array) in measured.items()
        if np.isfinite(array).any()
    ]
    reason = explanation.reason.iloc[position]
    return RowView(
        heading=_heading(text(explanation.rows.index[position]), prediction, target, outcome if is_chance else None),
        status=text(explanation.status.iloc[position]),
        reason="" if is_missing(reason) or not str(reason).strip() else text(reason),
        methods=tuple(text(found.method[k]) for k in lines),
        features=tuple(_feature(explanation, lines, int(j)) for j in np.flatnonzero(found.changed[lines].any(axis=0))),
        measures=(outcome, distance, *others),
    )


@dataclass(frozen=True)
class ChangeText:
    """A change as text."""

    name: str
    before: str
    after: str
    against: bool = False


@dataclass(frozen=True)
class CounterfactualLine:
    """One counterfactual, or one row without any, as a line of a table."""

    position: int
    row: str
    prediction: str
    status: str
    reason: str = ""
    outcome: str = ""
    changes: tuple[ChangeText, ...] | None = None
    distance: float = math.nan
    distance_text: str = ""
    method: str = ""


def table_lines(explanation: Explanation) -> list[CounterfactualLine]:
    """Return one line per counterfactual, and one per row without any."""
    explanation = explanation.in_pandas()
    found, lines = explanation.arrays, []
    for position in range(len(explanation)):
        row = row_view(explanation, position)
        about = CounterfactualLine(
            position,
            text(explanation.rows.index[position]),
            _prediction(explanation, position) or "",
            row.status,
            row.reason,
        )
        for place, k in enumerate(explanation.of_row(position)):
            changes = tuple(
                ChangeText(one.name, one.own, str(one.values[place]), place in one.against)
                for one in row.features
                if one.values[place]
            )
            distance = float(found.distance[k])
            outcome, shown = row.measures[0].values[place] or "", measure(distance)
            lines.append(
                replace(
                    about, outcome=outcome, changes=changes, distance=distance, distance_text=shown, method=row.methods[place]
                )
            )
        if not row.methods:
            lines.append(about)
    return lines


def _heading(label: str, prediction: str | None, target: str | None, chance: RowLine | None) -> str:
    if chance is not None:
        shown = ", ".join(part for part in (prediction, f"{chance.name.lower()} {chance.own}") if part)
    else:
        classes = [label for label in (prediction, target) if label is not None]
        shown = change(*classes) if len(set(classes)) == 2 else "".join(classes[:1])
    return f"Row {label}" + (f": {shown}" if shown else "")


def _measured(name: str, value: float) -> str:
    """A share in per cent; the distance to the data relative to what is typical there."""
    if math.isnan(value):
        return ""
    return f"{value:.2f} × typical" if name == "nn_ratio" else percent(value)


def _outcome(explanation: Explanation, position: int, is_chance: bool, target: str | None) -> str:
    """What the model predicts for a counterfactual: the wanted chance, a number, or a class with its probability."""
    score, chance = float(explanation.arrays.score[position]), float(explanation.arrays.chance[position])
    if math.isfinite(score):
        return measure(score) if is_chance else predicted(score)
    place = int(explanation.arrays.predicted[position])
    label = text(explanation.classes[place]) if explanation.classes and place >= 0 else target or ""
    return f"{label} ({100 * chance:.1f} %)" if math.isfinite(chance) else label


def _feature(explanation: Explanation, lines: list[int], j: int) -> RowLine:
    table, found = explanation.table, explanation.arrays
    changing = [k for k in lines if found.changed[k, j]]
    afters = [table.value(j, found.codes[k, j]) for k in changing]
    before, written = values(table.schema.features[j], table.value(j, found.before[lines[0], j]), afters)
    after_of = dict(zip(changing, written, strict=True))
    feature = table.schema.features[j]
    against = frozenset(
        place
        for place, k in enumerate(lines)
        if k in after_of and feature.is_against(float(found.before[k, j]), float(found.codes[k, j]))
    )
    return RowLine(text(table.schema.names[j]), before, tuple(after_of.get(k) for k in lines), against)


def _label(label: object) -> str | None:
    """A class, or bounds of a number."""
    if isinstance(label, tuple):
        return bounds(*label)
    return None if is_missing(label) else text(label)


def _prediction(explanation: Explanation, position: int) -> str | None:
    value = explanation.prediction.iloc[position]
    is_number = isinstance(explanation.target.iloc[position], tuple) and not is_missing(value)
    return predicted(value) if is_number else _label(value)


def wide(row: RowView) -> Grid:
    """Return one line per counterfactual, the input first, and one column per feature."""
    every = row.features + row.measures
    lines = [(GridCell("Input"), *(GridCell(line.own) for line in every))]
    for k, method in enumerate(row.methods):
        changes = [line.cell(k) for line in row.features]
        lines.append((GridCell(method), *changes, *(GridCell(line.values[k] or "") for line in row.measures)))
    return Grid(("Method", *(line.name for line in every)), tuple(lines))


def tall(row: RowView, shown: Sequence[int]) -> Grid:
    """Return one line per feature and one column per counterfactual shown, for when many features change."""

    def drawn(line: RowLine, k: int) -> GridCell:
        value = line.values[k]
        if value is None:
            return UNCHANGED
        return line.cell(k) if line.own else GridCell(value)

    def cells(lines: Sequence[RowLine]) -> tuple[tuple[GridCell, ...], ...]:
        return tuple((GridCell(line.name), *(drawn(line, k) for k in shown)) for line in lines)

    changing = [line for line in row.features if any(line.values[k] is not None for k in shown)]
    return Grid(("Feature", *(row.methods[k] for k in shown)), cells(changing), cells(row.measures))
