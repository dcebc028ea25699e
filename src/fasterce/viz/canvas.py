"""Shared parts of all figures: size, colours, titles, labels."""

import textwrap
from typing import TYPE_CHECKING, Any

from fasterce.errors import MissingExtraError
from fasterce.viz.formatting import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can distinguish.
BLUE, ORANGE, INK, GREY = "#0072B2", "#D55E00", "#22272E", "#6A737D"
TRACK, WASH = "#DDE1E6", "#E8F1F8"
QUIET_BLUE, QUIET_ORANGE = "#9CC8E3", "#F0C39B"

NAME_WIDTH = 26
MARGIN = 0.14

Looks = dict[str, Any]  # Keywords of matplotlib.


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure, in inches, without touching pyplot."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra, needed only to draw
        from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots", "Plotting") from error
    layout = ConstrainedLayoutEngine(w_pad=MARGIN, h_pad=MARGIN)
    return Figure(figsize=(width, height), layout=layout, facecolor="white")


def message(title: str, sentence: str) -> "Figure":
    """Return a figure that says why there is nothing to draw."""
    figure = new_figure(8.0, 1.8)
    put_title(figure, title)
    ax = figure.subplots()
    ax.set_axis_off()
    ax.text(0.0, 0.5, literal(textwrap.fill(sentence, 80)), ha="left", va="center", color=GREY, transform=ax.transAxes)
    return figure


def put_title(figure: "Figure", title: str) -> None:
    """Set the title of a figure."""
    figure.suptitle(literal(title), x=MARGIN / figure.get_figwidth(), ha="left", fontsize=13, fontweight="bold", color=INK)


def plain_axes(ax: "Axes", *spines: str) -> None:
    """Hide ticks and all spines but those named."""
    for side, spine in ax.spines.items():
        spine.set_visible(side in spines)
        spine.set_color(TRACK)
    ax.tick_params(length=0, labelcolor=INK, labelsize=10)


def annotate_beside(ax: "Axes", label: str, x: float, y: float, *, left: bool, gap: float, **looks: Any) -> None:
    """Write a label left or right of a point, `gap` points away."""
    place: Looks = {"xytext": (-gap if left else gap, 0), "textcoords": "offset points", "va": "center"}
    ax.annotate(literal(label), (x, y), ha="right" if left else "left", zorder=4, **place, **looks)


def feature_label(feature: object) -> str:
    """Return the name of a feature on as many lines as it needs, broken between its words."""
    words = cut(feature).replace("_", "_ ")
    return literal("\n".join(line.replace("_ ", "_") for line in textwrap.wrap(words, NAME_WIDTH)))


def literal(label: str) -> str:
    """Escape dollar signs, which matplotlib would read as formulas."""
    return label.replace("$", r"\$")
