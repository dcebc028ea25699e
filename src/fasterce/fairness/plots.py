"""Fairness reports as figures; each function returns a matplotlib Figure and leaves pyplot alone."""

import math
import textwrap
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd

from fasterce.fairness.normals import PREDICTION, Angles
from fasterce.fairness.recourse import RecourseGap
from fasterce.fairness.views import FrameRow, group_name, measure_name, pair_name, reading, shown
from fasterce.viz import canvas
from fasterce.viz.formatting import cut, measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE = 0.34
CAUTION_WIDTH = 140


def angles_plot(angles: Angles, ax: "Axes | None" = None) -> "Figure":
    """Draw every angle as a dot, filled where it is telling; the band is the interval expected by chance."""
    pairs = pd.concat([shown(angles, PREDICTION), shown(angles, "feature")])
    own = ax is None
    figure, ax = _canvas(ax, len(pairs), "Protected attributes in the latent space")
    low, high = angles.chance
    ax.axvspan(low, high, color=canvas.WASH, zorder=0)
    ax.axvline(90, color=canvas.TRACK, linewidth=1.2, zorder=1)
    for y, line in enumerate(pairs.itertuples()):
        _angle(ax, y, line)
    names = [
        f"{pair_name(line.protected, line.category)}  ·  {pair_name(line.other, line.other_category)}"
        for line in pairs.itertuples()
    ]
    _lines(ax, names)
    between = int((pairs["kind"] == PREDICTION).sum())
    if 0 < between < len(pairs):
        ax.axhline(between - 0.5, color=canvas.TRACK, linewidth=1.0)
    ax.set_xlim(-4, 184)
    ax.set_xticks(range(0, 181, 30), [f"{degrees}°" for degrees in range(0, 181, 30)])
    ax.grid(axis="x", color=canvas.TRACK, linewidth=0.5, zorder=0)
    marks = f"● beyond chance, both fit   ○ not   shaded: 95 % of random directions in {angles.dimensions} dimensions"
    _below(ax, own, marks, angles.caution)
    return figure


def recourse_gap_plot(gap: RecourseGap, ax: "Axes | None" = None) -> "Figure":
    """Draw each group's mean cost with its interval; orange where the difference to the group marked * is beyond chance."""
    lines = list(gap.frame.itertuples())
    own = ax is None
    figure, ax = _canvas(ax, len(lines), f"{measure_name(gap)}: the best counterfactuals, group by group")
    for y, line in enumerate(lines):
        _mean(ax, y, line)
    starts = [y for y in range(1, len(lines)) if lines[y].attribute != lines[y - 1].attribute]
    for y in starts:
        ax.axhline(y - 0.5, color=canvas.TRACK, linewidth=1.0)
    several = bool(starts)
    _lines(ax, [(f"{cut(line.attribute)}: " if several else "") + group_name(line) for line in lines])
    ends = np.array([end for line in lines for end in (line.mean, line.mean_low, line.mean_high)], dtype=float)
    reach = float(np.nanmax(ends)) if np.isfinite(ends).any() else 1.0
    ax.set_xlim(min(0.0, float(np.nanmin(ends))), 1.3 * reach if reach > 0 else 1.0)
    ax.grid(axis="x", color=canvas.TRACK, linewidth=0.5, zorder=0)
    of = "" if several else f" by {cut(lines[0].attribute)}"
    legend = "* compared with   ● its difference to * is beyond chance (orange)   † too few for an interval"
    _below(ax, own, f"mean {measure_name(gap).lower()}{of}, 95 % bootstrap interval\n{legend}", gap.caution)
    return figure


def _canvas(ax: "Axes | None", lines: int, title: str) -> tuple["Figure", "Axes"]:
    if ax is not None:
        ax.set_title(canvas.literal(title), loc="left", fontsize=11, color=canvas.INK)
        return cast("Figure", ax.figure), ax
    figure = canvas.new_figure(9.0, 2.3 + LINE * lines)
    canvas.put_title(figure, title)
    return figure, figure.subplots()


def _lines(ax: "Axes", names: list[str]) -> None:
    ax.set_yticks(range(len(names)), [canvas.literal(name) for name in names], color=canvas.INK)
    ax.set_ylim(len(names) - 0.4, -0.6)
    canvas.plain_axes(ax)
    ax.tick_params(labelsize=9)


def _below(ax: "Axes", own: bool, legend: str, caution: str) -> None:
    """Write the legend and the caution below the axis, so that they stay with the figure."""
    careful = canvas.literal(textwrap.fill(caution, CAUTION_WIDTH))
    if own:
        figure = cast("Figure", ax.figure)
        left = canvas.MARGIN / figure.get_figwidth()
        figure.supxlabel(careful, x=left, ha="left", color=canvas.GREY, fontsize=8, multialignment="left")
    ax.set_xlabel(
        canvas.literal(legend) if own else f"{canvas.literal(legend)}\n{careful}", color=canvas.GREY, fontsize=8, loc="left"
    )
    ax.xaxis.label.set_multialignment("left")


def _angle(ax: "Axes", y: int, line: FrameRow) -> None:
    if math.isnan(line.degrees):
        ax.text(90, y, reading(line), ha="center", va="center", color=canvas.GREY, fontsize=8)
        return
    strong = canvas.ORANGE if line.kind == PREDICTION else canvas.BLUE
    color = strong if line.telling else canvas.GREY
    ax.plot([90, line.degrees], [y, y], color=color, linewidth=1.6 if line.telling else 0.8, zorder=2)
    ax.plot([line.degrees], [y], "o", markersize=7, color=color, markerfacecolor=color if line.telling else "white", zorder=3)
    label = f"{line.degrees:.0f}°" + ("" if line.telling else f"  {reading(line)}")
    canvas.annotate_beside(ax, label, line.degrees, y, left=line.degrees < 90, gap=8, fontsize=8, color=color)


def _mean(ax: "Axes", y: int, line: FrameRow) -> None:
    if math.isnan(line.mean):
        ax.text(0, y, "  none found", va="center", color=canvas.GREY, fontsize=8)
        return
    apart = line.difference_low > 0 or line.difference_high < 0
    strong = canvas.ORANGE if apart else canvas.BLUE
    color = canvas.GREY if line.few else strong
    if not math.isnan(line.mean_low):
        ax.plot([line.mean_low, line.mean_high], [y, y], color=color, linewidth=2.2, solid_capstyle="round", zorder=2)
    ax.plot([line.mean], [y], "o", markersize=7, color=color, markerfacecolor="white" if line.few else color, zorder=3)
    end = line.mean if math.isnan(line.mean_high) else line.mean_high
    label = f"{measure(line.mean)}   {line.found} of {line.rows} found"
    canvas.annotate_beside(ax, label, end, y, left=False, gap=8, fontsize=8, color=canvas.INK)
