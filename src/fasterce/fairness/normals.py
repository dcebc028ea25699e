"""Angles between the hyperplane of a protected attribute and those of the prediction and of the other features.

First the angles, then the report as a table and as a figure.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import beta

from fasterce.errors import InputError, unknown
from fasterce.explainer import FasterCE
from fasterce.fairness.plots import FrameRow, empty_lines, write_below
from fasterce.fitting.state import SearchState
from fasterce.latent.directions import unit
from fasterce.latent.hyperplanes import r_squared
from fasterce.typing import Floats, Indices, Mask
from fasterce.viz import canvas
from fasterce.viz.formatting import counted, cut
from fasterce.viz.grid import Displayable, Grid, GridCell, GridLine, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WEAK_FIT = 0.2  # Hyperplanes that fit worse are not interpreted.
CHANCE = 0.95
PREDICTION, FEATURE = "prediction", "feature"
MOST_LINES = 12
NOTHING = "–"
CAPTIONS = {PREDICTION: "Protected attributes and the prediction", FEATURE: "Protected attributes and other features"}
CAUTION = (
    "Read with care: an angle far from 90° says that two things go together in this latent space, not that the model "
    "discriminates. An angle of 90° does not prove fairness: other features can stand in for a protected attribute, and a "
    "straight line may miss how the model really decides. Another autoencoder gives other angles, and an angle of a "
    "hyperplane that fits badly means nothing."
)


@dataclass(frozen=True)
class Plane:
    """What one hyperplane is about; `mirror` if it is the second of two categories, so the first one reversed."""

    kind: str
    name: Hashable
    category: Hashable
    mirror: bool


@dataclass(frozen=True)
class Angles(Displayable):
    """The result of `angles`.

    Attributes
    ----------
    frame : pandas.DataFrame
        One line per pair: protected, category (None for a number), kind ("prediction" or "feature"), other, other_category,
        degrees (NaN where a hyperplane has no direction), chance_low, chance_high, beyond_chance, fit, other_fit, telling
        (beyond chance, and both hyperplanes fit), mirror (a pair that repeats another because an attribute has two
        categories).
    quality : pandas.DataFrame
        One line per hyperplane: fit (0 for guessing, 1 for perfect; R², or twice the balanced accuracy minus 1, on the
        example rows), then measure, hyperplane and base as in `report_`.
    dimensions : int
        Latent dimensions that any hyperplane uses.
    chance : tuple of float
        Interval of 95 % of the angles between random directions in as many dimensions.
    caution : str
        What must be read with any of these numbers.
    """

    frame: pd.DataFrame
    quality: pd.DataFrame
    dimensions: int
    chance: tuple[float, float]
    caution: str = CAUTION

    def plot(self, ax: "Axes | None" = None) -> "Figure":
        """Draw the angles and the interval expected by chance; needs the extra `plots`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return _draw(self, ax)

    def __repr__(self) -> str:
        telling = int(self.frame["telling"].sum())
        return f"Angles({len(self.frame)} pairs, {telling} telling; {self.dimensions} latent dimensions)"

    def _sheet(self) -> Sheet:
        low, high = self.chance
        pairs = self.frame[~self.frame["mirror"] & self.frame["degrees"].notna()]
        here, expected = int(pairs["beyond_chance"].sum()), (1 - CHANCE) * len(pairs)
        chance = (
            f"By chance 95 % of angles in {counted(self.dimensions, 'dimension')} lie between {low:.0f}° and {high:.0f}°, "
            f"if all directions are as likely; {here} of {counted(len(pairs), 'angle')} here lie outside, where chance alone "
            f"would put about {expected:.0f}."
        )
        fit = f"Fit: 0 is guessing, 1 perfect; the attribute's hyperplane, then the other's. Below {WEAK_FIT} it is not read."
        sections = [_section(self, kind) for kind in CAPTIONS if kind == PREDICTION or len(_shown(self, kind))]
        return Sheet(tuple(sections), (chance, fit), (self.caution,))


def angles(explainer: FasterCE, protected: Sequence[Hashable]) -> Angles:
    """Measure the angles between hyperplanes of protected columns and those of the prediction and the other features.

    Every category has its own hyperplane; of two classes one is enough, since the other is the same reversed.

    Parameters
    ----------
    explainer : FasterCE
        Fitted.
    protected : sequence
        Columns of the table.

    Returns
    -------
    Angles
    """
    if not isinstance(explainer, FasterCE):
        raise InputError("fairness.not_an_explainer", option="explainer", received=type(explainer).__name__)
    explainer._check_fitted()
    names, state = _checked_names(explainer, protected), explainer.state_.search
    planes = _planes(explainer)
    normals = state.hyperplanes.normals
    dimensions = int((normals != 0).any(axis=0).sum())
    chance, fit = chance_range(dimensions), _fits(state)
    pairs = [
        (k, other)
        for name in names
        for k, plane in enumerate(planes)
        if plane.kind == FEATURE and plane.name == name
        for other in _others(planes, name, len(explainer.classes_))
    ]
    frame = _frame(planes, np.array(pairs), _degrees(normals), fit, chance)
    return Angles(frame, _quality(explainer, planes, fit), dimensions, chance)


def _frame(planes: list[Plane], pairs: Indices, degrees: Floats, fit: Floats, chance: tuple[float, float]) -> pd.DataFrame:
    one, two = pairs.T
    mine, other = [planes[k] for k in one], [planes[k] for k in two]
    angle = degrees[one, two]
    beyond = (angle < chance[0]) | (angle > chance[1])
    return pd.DataFrame(
        {
            "protected": [plane.name for plane in mine],
            # As objects, since pandas reads None beside text as a missing value: a number has no category.
            "category": pd.Series([plane.category for plane in mine], dtype=object),
            "kind": [plane.kind for plane in other],
            "other": [plane.name for plane in other],
            "other_category": pd.Series([plane.category for plane in other], dtype=object),
            "degrees": angle,
            "chance_low": chance[0],
            "chance_high": chance[1],
            "beyond_chance": beyond,
            "fit": fit[one],
            "other_fit": fit[two],
            "telling": beyond & (fit[one] >= WEAK_FIT) & (fit[two] >= WEAK_FIT),
            "mirror": [first.mirror or second.mirror for first, second in zip(mine, other, strict=True)],
        }
    )


def chance_range(dimensions: int, share: float = CHANCE) -> tuple[float, float]:
    """Return the interval that holds a share of the angles between two random directions in degrees."""
    if dimensions < 2:
        return 0.0, 180.0
    # The squared cosine of two random directions has this beta distribution.
    away = float(np.degrees(np.arcsin(np.sqrt(beta.ppf(share, 0.5, (dimensions - 1) / 2)))))
    return 90.0 - away, 90.0 + away


def _checked_names(explainer: FasterCE, protected: Sequence[Hashable]) -> list[Hashable]:
    known = explainer.schema_.names
    if not isinstance(protected, Sequence):
        raise InputError("fairness.not_columns", option="protected", received=type(protected).__name__)
    names: list[Hashable] = [protected] if isinstance(protected, str) else list(dict.fromkeys(protected))
    if not names:
        raise InputError("fairness.no_columns", option="protected")
    for name in names:
        if name not in known:
            raise InputError(unknown("fairness.unknown_protected", name, known, option="protected"))
    return names


def _planes(explainer: FasterCE) -> list[Plane]:
    """Return what each row of the normals of the hyperplanes is about."""
    codec = explainer.state_.search.codec
    names, features = codec.schema.names, codec.schema.features
    planes = [Plane(FEATURE, names[j], None, False) for j in codec.numeric]
    for block in codec.blocks:
        pair = len(block.codes) == 2
        planes += [
            Plane(FEATURE, names[block.feature], features[block.feature].category(int(code)), pair and slot == 1)
            for slot, code in enumerate(block.codes)
        ]
    for block in codec.missing_blocks:
        planes += [Plane(FEATURE, names[block.feature], slot, slot == "missing") for slot in ("there", "missing")]
    return planes + [Plane(PREDICTION, PREDICTION, label, False) for label in explainer.classes_]


def _others(planes: list[Plane], name: Hashable, classes: int) -> list[int]:
    """Return the hyperplanes of the prediction (of two classes the last one), then those of the other features."""
    first = len(planes) - (1 if classes == 2 else classes)
    features = [k for k, plane in enumerate(planes) if plane.kind == FEATURE and plane.name != name]
    return [*range(first, len(planes)), *features]


def _degrees(normals: Floats) -> Floats:
    straight = unit(normals)
    found = np.degrees(np.arccos(np.clip(straight @ straight.T, -1.0, 1.0)))
    flat = (normals == 0).all(axis=1)
    return np.where(np.logical_or.outer(flat, flat), np.nan, found)


def _fits(state: SearchState) -> Floats:
    """Return how much better than guessing each hyperplane separates the example rows: 0 not at all, 1 perfectly.

    Plain accuracy would be high for a category that nearly all rows have, so both sides count the same.
    """
    planes, matrix, numbers = state.hyperplanes, state.example_matrix, len(state.codec.numeric)
    heights = state.autoencoder.encode(matrix) @ planes.normals.T + planes.offsets
    labels = state.example_classes[:, None] == np.arange(planes.classes)
    truth = np.concatenate([matrix[:, numbers:] > 0.5, labels], axis=1)
    explained = r_squared(matrix[:, :numbers], heights[:, :numbers], np.nan)
    return np.concatenate([explained, _skill(truth, heights[:, numbers:] > 0)])


def _skill(truth: Mask, predicted: Mask) -> Floats:
    """Return sensitivity plus specificity minus 1; NaN where one side is empty."""
    have, lack = truth.sum(axis=0), (~truth).sum(axis=0)
    right = (truth & predicted).sum(axis=0) / np.maximum(have, 1) + (~truth & ~predicted).sum(axis=0) / np.maximum(lack, 1)
    return np.asarray(np.where((have > 0) & (lack > 0), right - 1.0, np.nan))


def _quality(explainer: FasterCE, planes: list[Plane], fit: Floats) -> pd.DataFrame:
    report = explainer.report_
    reported = report.features[["measure", "hyperplane", "base"]]
    by_feature = {name: tuple(line) for name, line in zip(reported.index, reported.to_numpy(), strict=True)}
    agreement = ("agreement", report.agreement, report.agreement_base)
    lines = [
        (plane.kind, plane.name, plane.category, fit[k], *(by_feature[plane.name] if plane.kind == FEATURE else agreement))
        for k, plane in enumerate(planes)
    ]
    frame = pd.DataFrame(lines, columns=["kind", "name", "category", "fit", "measure", "hyperplane", "base"])
    frame["category"] = pd.Series([plane.category for plane in planes], dtype=object)
    return frame


def _section(angles: Angles, kind: str) -> tuple[str, Grid]:
    """Return the pairs of one kind as a table with its caption."""
    pairs, caption = _shown(angles, kind), CAPTIONS[kind]
    every = len(_pairs(angles, kind))
    if every > len(pairs):
        caption += f": the {len(pairs)} angles of {every} furthest from 90°"
    return caption, Grid(("Attribute", "and", "Angle", "Fit", "Reading"), tuple(map(_line, pairs.itertuples())))


def _pairs(angles: Angles, kind: str) -> pd.DataFrame:
    return angles.frame[(angles.frame["kind"] == kind) & ~angles.frame["mirror"]]


def _shown(angles: Angles, kind: str) -> pd.DataFrame:
    """Return the pairs to show: no mirrored ones, and the furthest from 90° where there are many."""
    pairs = _pairs(angles, kind)
    far = (pairs["degrees"] - 90).abs().fillna(-1.0).sort_values(ascending=False, kind="stable").index[:MOST_LINES]
    return pairs.loc[far] if kind != PREDICTION else pairs.loc[far.sort_values()]


def _line(line: FrameRow) -> GridLine:
    fits = [NOTHING if math.isnan(fit) else f"{fit:.2f}" for fit in (line.fit, line.other_fit)]
    return (
        GridCell(_name(line.protected, line.category)),
        GridCell(_name(line.other, line.other_category)),
        GridCell(NOTHING if math.isnan(line.degrees) else f"{line.degrees:.0f}°", quiet=not line.telling),
        GridCell(", ".join(fits)),
        GridCell(_reading(line), quiet=not line.telling),
    )


def _name(name: object, category: object) -> str:
    return cut(name) if category is None else f"{cut(name)} = {cut(category)}"


def _reading(line: FrameRow) -> str:
    """Return the interpretation of an angle in a few words."""
    if math.isnan(line.degrees):
        return "no hyperplane"
    if not (line.fit >= WEAK_FIT and line.other_fit >= WEAK_FIT):
        return "poor fit"
    if not line.beyond_chance:
        return "could be chance"
    return "go together" if line.degrees < 90 else "go apart"


def _draw(angles: Angles, given: "Axes | None") -> "Figure":
    """Draw every angle as a dot, filled where it is telling; the band is the interval expected by chance."""
    pairs = [line for kind in CAPTIONS for line in _shown(angles, kind).itertuples()]
    names = [f"{_name(one.protected, one.category)}  ·  {_name(one.other, one.other_category)}" for one in pairs]
    breaks = [y for y in range(1, len(pairs)) if pairs[y].kind != pairs[y - 1].kind]
    figure, ax = empty_lines(given, "Protected attributes in the latent space", names, breaks)
    ax.axvspan(*angles.chance, color=canvas.WASH, zorder=0)
    ax.axvline(90, color=canvas.TRACK, linewidth=1.2, zorder=1)
    for y, line in enumerate(pairs):
        _dot(ax, y, line)
    ax.set_xlim(-4, 184)
    ax.set_xticks(range(0, 181, 30), [f"{degrees}°" for degrees in range(0, 181, 30)])
    marks = f"● beyond chance, both fit   ○ not   shaded: 95 % of random directions in {angles.dimensions} dimensions"
    write_below(ax, given is None, marks, angles.caution)
    return figure


def _dot(ax: "Axes", y: int, line: FrameRow) -> None:
    if math.isnan(line.degrees):
        ax.text(90, y, _reading(line), ha="center", va="center", color=canvas.GREY, fontsize=8)
        return
    strong = canvas.ORANGE if line.kind == PREDICTION else canvas.BLUE
    color = strong if line.telling else canvas.GREY
    ax.plot([90, line.degrees], [y, y], color=color, linewidth=1.6 if line.telling else 0.8, zorder=2)
    ax.plot([line.degrees], [y], "o", markersize=7, color=color, markerfacecolor=color if line.telling else "white", zorder=3)
    label = f"{line.degrees:.0f}°" + ("" if line.telling else f"  {_reading(line)}")
    canvas.annotate_beside(ax, label, line.degrees, y, left=line.degrees < 90, gap=8, fontsize=8, color=color)
