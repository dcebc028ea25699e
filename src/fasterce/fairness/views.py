"""Fairness reports as tables of text; the caution is a note of every table."""

import math
from typing import Any

import pandas as pd

from fasterce.fairness.normals import CHANCE, PREDICTION, WEAK_FIT, Angles
from fasterce.fairness.recourse import FEW, SMALL, RecourseGap
from fasterce.viz.formatting import counted, cut, measure, number
from fasterce.viz.grid import Grid, GridCell, GridLine, Sheet

MOST_LINES = 12
NOTHING = "–"

FrameRow = Any  # One row of a frame, as `itertuples` yields it.


def angles_sheet(angles: Angles) -> Sheet:
    """Return the angles of protected attributes as tables."""
    prediction, features = shown(angles, PREDICTION), shown(angles, "feature")
    low, high = angles.chance
    chance = (
        f"By chance 95 % of angles in {counted(angles.dimensions, 'dimension')} lie between {low:.0f}° and {high:.0f}°, "
        f"if all directions are as likely; {_beyond(angles)}."
    )
    fits = f"Fit: 0 is guessing, 1 perfect; the attribute's hyperplane, then the other's. Below {WEAK_FIT} it is not read."
    caption = _caption("Protected attributes and the prediction", prediction, angles, PREDICTION)
    sections = [(caption, _angle_grid(prediction))]
    if len(features):
        caption = _caption("Protected attributes and other features", features, angles, "feature")
        sections.append((caption, _angle_grid(features)))
    return Sheet(tuple(sections), (chance, fits), (angles.caution,))


def _beyond(angles: Angles) -> str:
    """Compare the angles outside the interval with the number expected by chance."""
    pairs = angles.frame[~angles.frame["mirror"] & angles.frame["degrees"].notna()]
    here, expected = int(pairs["beyond_chance"].sum()), (1 - CHANCE) * len(pairs)
    return f"{here} of {counted(len(pairs), 'angle')} here lie outside, where chance alone would put about {expected:.0f}"


def shown(angles: Angles, kind: str) -> pd.DataFrame:
    """Return the pairs to show: no mirrored ones, and the furthest from 90° where there are many."""
    pairs = angles.frame[(angles.frame["kind"] == kind) & ~angles.frame["mirror"]]
    far = (pairs["degrees"] - 90).abs().fillna(-1.0).sort_values(ascending=False, kind="stable").index[:MOST_LINES]
    return pairs.loc[far] if kind != PREDICTION else pairs.loc[far.sort_values()]


def pair_name(name: object, category: object) -> str:
    return cut(name) if category is None else f"{cut(name)} = {cut(category)}"


def reading(line: FrameRow) -> str:
    """Return the interpretation of an angle in a few words."""
    if math.isnan(line.degrees):
        return "no hyperplane"
    if not (line.fit >= WEAK_FIT and line.other_fit >= WEAK_FIT):
        return "poor fit"
    if not line.beyond_chance:
        return "could be chance"
    return "go together" if line.degrees < 90 else "go apart"


def _caption(caption: str, pairs: pd.DataFrame, angles: Angles, kind: str) -> str:
    every = int(((angles.frame["kind"] == kind) & ~angles.frame["mirror"]).sum())
    return caption if every == len(pairs) else f"{caption}: the {len(pairs)} angles of {every} furthest from 90°"


def _angle_grid(pairs: pd.DataFrame) -> Grid:
    return Grid(("Attribute", "and", "Angle", "Fit", "Reading"), tuple(_angle_line(line) for line in pairs.itertuples()))


def _angle_line(line: FrameRow) -> GridLine:
    angle = NOTHING if math.isnan(line.degrees) else f"{line.degrees:.0f}°"
    return (
        GridCell(pair_name(line.protected, line.category)),
        GridCell(pair_name(line.other, line.other_category)),
        GridCell(angle, quiet=not line.telling),
        GridCell(f"{_fit(line.fit)}, {_fit(line.other_fit)}"),
        GridCell(reading(line), quiet=not line.telling),
    )


def _fit(value: float) -> str:
    return NOTHING if math.isnan(value) else f"{value:.2f}"


def gap_sheet(gap: RecourseGap) -> Sheet:
    """Return the cost of recourse as one table per attribute."""
    parts = [(attribute, part) for attribute, part in gap.frame.groupby("attribute", sort=False)]
    sections = tuple((f"{measure_name(gap)} by {cut(attribute)}", _gap_grid(part)) for attribute, part in parts)
    summary = [
        f"Difference of means to the group marked *; 95 % intervals ({number(gap.n_boot, 0)} bootstrap draws within each "
        "group; found: Wilson)."
    ]
    if gap.frame["changes_it"].notna().any():
        summary.append("Changed: the share of counterfactuals that change the attribute itself, 0 % where it is frozen.")
    if gap.frame["few"].any():
        summary.append(f"† fewer than {FEW} rows with a counterfactual: too few for an interval.")
    if gap.frame["found"].between(FEW, SMALL - 1).any():
        summary.append(f"Intervals of groups with fewer than {SMALL} counterfactuals are rough, and rather too narrow.")
    if gap.left_out:
        counts = ", ".join(f"{number(count, 0)} {status}" for status, count in gap.left_out.items())
        summary.append(f"Left out: {counts}.")
    if gap.stopped:
        summary.append(f"{counted(gap.stopped, 'row')} stopped by a budget or deadline, counted as not found.")
    return Sheet(sections, tuple(summary), (gap.caution,))


def measure_name(gap: RecourseGap) -> str:
    return {"distance": "Distance", "n_changed": "Features changed"}.get(gap.measure, cut(gap.measure))


def group_name(line: FrameRow) -> str:
    return cut(line.group) + (" *" if line.reference else "") + (" †" if line.few else "")


def _gap_grid(part: pd.DataFrame) -> Grid:
    inside = bool(part["changes_it"].notna().any())
    header = ("Group", "Rows", "Found", "Mean", "Median", "Difference", *(("Changed",) if inside else ()))
    return Grid(header, tuple(_gap_line(line, inside) for line in part.itertuples()))


def _gap_line(line: FrameRow, inside: bool) -> GridLine:
    difference = _with_interval(line.difference, line.difference_low, line.difference_high, "+")
    cells = [
        group_name(line),
        number(line.rows, 0),
        _percent(line),
        _with_interval(line.mean, line.mean_low, line.mean_high),
        NOTHING if math.isnan(line.median) else measure(line.median),
        "" if line.reference else difference,
    ]
    if inside:
        cells.append(NOTHING if math.isnan(line.changes_it) else f"{line.changes_it:.0%}")
    return tuple(map(GridCell, cells))


def _percent(line: FrameRow) -> str:
    if math.isnan(line.share_found):
        return NOTHING
    share, low, high = (f"{100 * value:.0f}" for value in (line.share_found, line.share_found_low, line.share_found_high))
    return f"{share}%" if math.isnan(line.share_found_low) else f"{share}% ({low}–{high}%)"


def _with_interval(value: float, low: float, high: float, sign: str = "") -> str:
    if math.isnan(value):
        return NOTHING
    shown = _signed(value, sign)
    return shown if math.isnan(low) else f"{shown} ({_signed(low, sign)} to {_signed(high, sign)})"


def _signed(value: float, sign: str) -> str:
    return (sign if value > 0 else "") + measure(value, 2 if sign else 3).replace("-", "−")
