"""A bias reading as figures: dots with what chance alone would do; each returns a Figure and leaves pyplot alone."""

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fasterce.bias.normals import PREDICTION, Angles
from fasterce.bias.recourse import RecourseGap
from fasterce.display.bias_views import group_name, pair_name, reading, said_measure, shown
from fasterce.display.canvas import BLUE, GREY, INK, MARGIN, ORANGE, TRACK, WASH, literal, new_figure, plain_axes, put_title
from fasterce.display.wording import cut, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINE = 0.34
CAUTION_WIDTH = 140


def bias_angles(angles: Angles, ax: Any = None) -> "Figure":
    """Every angle as a dot, filled where it is telling; the band is where chance alone would put it."""
    pairs = pd.concat([shown(angles, PREDICTION), shown(angles, "feature")])
    own = ax is None
    figure, ax = _canvas(ax, len(pairs), "Protected attributes in the latent space")
    low, high = angles.chance
    ax.axvspan(low, high, color=WASH, zorder=0)
    ax.axvline(90, color=TRACK, linewidth=1.2, zorder=1)
    for y, line in enumerate(pairs.itertuples()):
        _angle(ax, y, line)
    names = [
        f"{pair_name(line.protected, line.category)}  ·  {pair_name(line.other, line.other_category)}"
        for line in pairs.itertuples()
    ]
    _lines(ax, names)
    between = int((pairs["kind"] == PREDICTION).sum())
    if 0 < between < len(pairs):
        ax.axhline(between - 0.5, color=TRACK, linewidth=1.0)
    ax.set_xlim(-4, 184)
    ax.set_xticks(range(0, 181, 30), [f"{degrees}°" for degrees in range(0, 181, 30)])
    ax.grid(axis="x", color=TRACK, linewidth=0.5, zorder=0)
    marks = f"● beyond chance, both fit   ○ not   shaded: 95 % of random directions in {angles.dimensions} dimensions"
    _below(ax, own, marks, angles.caution)
    return figure


def recourse_gap(gap: RecourseGap, ax: Any = None) -> "Figure":
    """Each group's mean cost with its interval; orange where the difference to the group marked * is beyond chance."""
    lines = list(gap.frame.itertuples())
    own = ax is None
    figure, ax = _canvas(ax, len(lines), f"{said_measure(gap)}: the best answers, group by group")
    for y, line in enumerate(lines):
        _mean(ax, y, line)
    starts = [y for y in range(1, len(lines)) if lines[y].attribute != lines[y - 1].attribute]
    for y in starts:
        ax.axhline(y - 0.5, color=TRACK, linewidth=1.0)
    several = bool(starts)
    _lines(ax, [(f"{cut(line.attribute)}: " if several else "") + group_name(line) for line in lines])
    ends = np.array([end for line in lines for end in (line.mean, line.mean_low, line.mean_high)], dtype=float)
    reach = float(np.nanmax(ends)) if np.isfinite(ends).any() else 1.0
    ax.set_xlim(min(0.0, float(np.nanmin(ends))), 1.3 * reach if reach > 0 else 1.0)
    ax.grid(axis="x", color=TRACK, linewidth=0.5, zorder=0)
    of = "" if several else f" by {cut(lines[0].attribute)}"
    legend = "* compared with   ● its difference to * is beyond chance (orange)   † too few for an interval"
    _below(ax, own, f"mean {said_measure(gap).lower()}{of}, 95 % bootstrap interval\n{legend}", gap.caution)
    return figure


def _canvas(ax: Any, lines: int, title: str) -> tuple["Figure", Any]:
    if ax is not None:
        ax.set_title(literal(title), loc="left", fontsize=11, color=INK)
        return ax.figure, ax
    figure = new_figure(9.0, 2.3 + LINE * lines)
    put_title(figure, title)
    return figure, figure.subplots()


def _lines(ax: Any, names: list[str]) -> None:
    ax.set_yticks(range(len(names)), [literal(name) for name in names], color=INK)
    ax.set_ylim(len(names) - 0.4, -0.6)
    plain_axes(ax)
    ax.tick_params(labelsize=9)


def _below(ax: Any, own: bool, said: str, caution: str) -> None:
    """What the marks mean and the caution, below the axis: it must not get lost when the figure travels."""
    careful = literal(textwrap.fill(caution, CAUTION_WIDTH))
    if own:
        left = MARGIN / ax.figure.get_figwidth()
        ax.figure.supxlabel(careful, x=left, ha="left", color=GREY, fontsize=8, multialignment="left")
    ax.set_xlabel(literal(said) if own else f"{literal(said)}\n{careful}", color=GREY, fontsize=8, loc="left")
    ax.xaxis.label.set_multialignment("left")


def _angle(ax: Any, y: int, line: Any) -> None:
    said = reading(line)
    if math.isnan(line.degrees):
        ax.text(90, y, said, ha="center", va="center", color=GREY, fontsize=8)
        return
    color = (ORANGE if line.kind == PREDICTION else BLUE) if line.telling else GREY
    ax.plot([90, line.degrees], [y, y], color=color, linewidth=1.6 if line.telling else 0.8, zorder=2)
    ax.plot([line.degrees], [y], "o", markersize=7, color=color, markerfacecolor=color if line.telling else "white", zorder=3)
    left = line.degrees < 90
    _beside(ax, line.degrees, y, f"{line.degrees:.0f}°" + ("" if line.telling else f"  {said}"), color, left)


def _mean(ax: Any, y: int, line: Any) -> None:
    if math.isnan(line.mean):
        ax.text(0, y, "  no answer", va="center", color=GREY, fontsize=8)
        return
    apart = line.difference_low > 0 or line.difference_high < 0
    color = GREY if line.few else ORANGE if apart else BLUE
    if not math.isnan(line.mean_low):
        ax.plot([line.mean_low, line.mean_high], [y, y], color=color, linewidth=2.2, solid_capstyle="round", zorder=2)
    ax.plot([line.mean], [y], "o", markersize=7, color=color, markerfacecolor="white" if line.few else color, zorder=3)
    end = line.mean if math.isnan(line.mean_high) else line.mean_high
    _beside(ax, end, y, f"{measure(line.mean)}   {line.found} of {line.rows} found", INK, left=False)


def _beside(ax: Any, x: float, y: int, said: str, color: str, left: bool) -> None:
    ax.annotate(
        said,
        (x, y),
        xytext=(-8 if left else 8, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=8,
        color=color,
        zorder=4,
    )
