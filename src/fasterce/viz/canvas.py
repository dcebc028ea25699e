"""What every figure is drawn on: size, colours, titles and names."""

import textwrap
from typing import TYPE_CHECKING, Any

from fasterce.display.wording import cut
from fasterce.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours: told apart by colour-blind readers too.
BLUE, ORANGE, INK, GREY = "#0072B2", "#D55E00", "#22272E", "#6A737D"
TRACK, WASH = "#DDE1E6", "#E8F1F8"
QUIET_BLUE, QUIET_ORANGE = "#9CC8E3", "#F0C39B"

NAME_WIDTH = 26
MARGIN = 0.14


def new_figure(width: float, height: float) -> "Figure":
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra, needed only to draw
        from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots", "Plotting") from error
    layout = ConstrainedLayoutEngine(w_pad=MARGIN, h_pad=MARGIN)
    return Figure(figsize=(width, height), layout=layout, facecolor="white")


def message(title: str, sentence: str) -> "Figure":
    """A figure for when there is nothing to draw: it says why."""
    figure = new_figure(8.0, 1.8)
    ax = figure.subplots()
    ax.set_axis_off()
    said = literal(textwrap.fill(sentence, 80))
    ax.text(0.0, 0.5, said, ha="left", va="center", color=GREY, transform=ax.transAxes)
    put_title(figure, title)
    return figure


def put_title(figure: "Figure", said: str) -> None:
    figure.suptitle(literal(said), x=MARGIN / figure.get_figwidth(), ha="left", fontsize=13, fontweight="bold", color=INK)


def plain_axes(ax: Any, *spines: str) -> None:
    for side, spine in ax.spines.items():
        spine.set_visible(side in spines)
        spine.set_color(TRACK)
    ax.tick_params(length=0, labelcolor=INK, labelsize=10)


def feature_label(feature: object) -> str:
    """A feature's name on as many lines as it needs, broken between its words."""
    words = cut(feature).replace("_", "_ ")
    return literal("\n".join(line.replace("_ ", "_") for line in textwrap.wrap(words, NAME_WIDTH)))


def literal(said: str) -> str:
    """Text without matplotlib reading dollar signs as formulas."""
    return said.replace("$", r"\$")
