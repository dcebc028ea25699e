"""Shared parts of the figures of the fairness reports: one line per pair or group, a legend, and the caution."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from fasterce.viz import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FrameRow = Any  # One row of a frame, as `itertuples` yields it.
LINE = 0.34
CAUTION_WIDTH = 140


def empty_lines(ax: "Axes | None", title: str, names: Sequence[str], breaks: Sequence[int]) -> tuple["Figure", "Axes"]:
    """Return a figure with one named line per entry, to draw on; `breaks` are the lines that begin another part."""
    if ax is None:
        figure = canvas.new_figure(9.0, 2.3 + LINE * len(names))
        canvas.put_title(figure, title)
        ax = figure.subplots()
    else:
        ax.set_title(canvas.literal(title), loc="left", fontsize=11, color=canvas.INK)
    ax.set_yticks(range(len(names)), [canvas.literal(name) for name in names], color=canvas.INK)
    ax.set_ylim(len(names) - 0.4, -0.6)
    canvas.plain_axes(ax)
    ax.tick_params(labelsize=9)
    ax.grid(axis="x", color=canvas.TRACK, linewidth=0.5, zorder=0)
    for y in breaks:
        ax.axhline(y - 0.5, color=canvas.TRACK, linewidth=1.0)
    return cast("Figure", ax.figure), ax


def write_below(ax: "Axes", own: bool, legend: str, caution: str) -> None:
    """Write the legend and the caution below the axis, so that they stay with the figure; `own` if it has no other axes."""
    below, careful = canvas.literal(legend), canvas.literal(textwrap.fill(caution, CAUTION_WIDTH))
    if own:
        figure = cast("Figure", ax.figure)
        left = canvas.MARGIN / figure.get_figwidth()
        figure.supxlabel(careful, x=left, ha="left", color=canvas.GREY, fontsize=8, multialignment="left")
    else:
        below = f"{below}\n{careful}"
    ax.set_xlabel(below, color=canvas.GREY, fontsize=8, loc="left")
    ax.xaxis.label.set_multialignment("left")
