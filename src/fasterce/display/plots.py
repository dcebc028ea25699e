"""Explanations as figures; every function returns a new matplotlib Figure and leaves pyplot alone."""

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fasterce.display.canvas import BLUE, GREY, INK, ORANGE, QUIET_BLUE, QUIET_ORANGE, TRACK, WASH
from fasterce.display.canvas import feature_label as _name
from fasterce.display.canvas import literal as _literal
from fasterce.display.canvas import message as _message
from fasterce.display.canvas import new_figure as _figure
from fasterce.display.canvas import plain_axes as _plain_axes
from fasterce.display.canvas import put_title as _title
from fasterce.display.views import row_view
from fasterce.display.wording import change, counted, measure, number, text, values
from fasterce.errors import InputError
from fasterce.explanation import Change, Explanation
from fasterce.schema import Feature

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_BARS = 15
OVERSHOOT = 0.04


class WalkLike(Protocol):
    """What a latent walk has to show: its K steps and a cloud of M latent samples around it."""

    @property
    def distance(self) -> NDArray[Any]: ...
    @property
    def height(self) -> NDArray[Any]: ...
    @property
    def side(self) -> NDArray[Any]: ...
    @property
    def valid(self) -> NDArray[Any]: ...
    @property
    def flip(self) -> int: ...
    @property
    def cloud_height(self) -> NDArray[Any]: ...
    @property
    def cloud_side(self) -> NDArray[Any]: ...
    @property
    def cloud_wanted(self) -> NDArray[Any]: ...
    @property
    def label(self) -> str: ...
    @property
    def target(self) -> str: ...


def dumbbell(explanation: Explanation, row: int = 0, answer: int | None = None) -> "Figure":
    """What a row's counterfactuals change, each number within its feature's range; one panel a counterfactual.

    `row` is a position; `answer` picks one of the row's counterfactuals, 0 the best.
    """
    view = row_view(explanation, _within("row", row, len(explanation)))
    lines = explanation.of_row(row)
    if not lines:
        return _message(view.heading, view.verdict)
    if answer is not None:
        lines = [lines[_within("answer", answer, len(lines))]]
    panels = [explanation.changes(k) for k in lines]
    heights = [len(changes) + 0.6 for changes in panels]
    figure = _figure(8.4, 0.9 + 0.52 * sum(heights) + 0.42 * len(panels))
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights, sharex=True)[:, 0]
    for ax, k, changes in zip(axes, lines, panels, strict=True):
        said = f"{text(explanation.answers.method[k])} · distance {measure(float(explanation.answers.distance[k]))}"
        _dumbbell_panel(ax, changes, explanation, said)
    if any(explanation.table.schema[moved.feature].numeric for changes in panels for moved in changes):
        axes[-1].set_xlabel("○ before   ● after, within each feature's range", color=GREY, fontsize=9)
    _title(figure, view.heading)
    return figure


def walk(walk: WalkLike) -> "Figure":
    """A latent walk towards the wanted class: across the hyperplane at height 0, the flip starred."""
    figure = _figure(8.0, 5.6)
    ax = figure.subplots()
    _cloud(ax, walk)
    ax.axvline(0.0, color=GREY, linestyle=(0, (4, 3)), linewidth=1.2, label="hyperplane", zorder=2)
    _steps(ax, walk)
    _mark_flip(ax, walk)
    ax.set_xlabel("height above the prediction hyperplane", color=GREY)
    ax.set_ylabel("along the hyperplane", color=GREY)
    _plain_axes(ax)
    ax.set_xlim(right=_as_far_as_the_cloud(walk))
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9, labelcolor=INK)
    _title(figure, f"{text(walk.label)}: walk towards {text(walk.target)}")
    return figure


def _as_far_as_the_cloud(walk: WalkLike) -> float | None:
    """Steps grow far beyond the data; the picture ends a little after the samples and the flip."""
    ends = [float(np.max(part)) for part in (walk.cloud_height, walk.height[: walk.flip + 2]) if len(part)]
    return 1.15 * max(ends) + 0.2 if ends else None


def summary(explanation: Explanation) -> "Figure":
    """How often each feature changes in the best counterfactuals of a batch."""
    best = explanation.answers.rank == 0
    found = int(best.sum())
    title = f"What changes in {counted(found, 'counterfactual')}"
    if not found:
        return _message(title, "No counterfactual was found.")
    counts = explanation.answers.changed[best].sum(axis=0)
    order = [int(j) for j in np.argsort(-counts, kind="stable") if counts[j]]
    shown = order[:MOST_BARS]
    names = [_name(explanation.table.schema.names[j]) for j in shown]
    figure = _figure(8.0, 1.2 + 0.36 * len(shown))
    ax = figure.subplots()
    bars = ax.barh(range(len(shown)), counts[shown], color=BLUE, height=0.62)
    told = [f"{number(counts[j], 0)}  ({100 * counts[j] / found:.0f}%)" for j in shown]
    ax.bar_label(bars, told, padding=5, fontsize=9, color=INK)
    ax.set_yticks(range(len(shown)), names, color=INK)
    ax.invert_yaxis()
    ax.margins(x=0.16)
    ax.xaxis.set_visible(False)
    _plain_axes(ax, "left")
    left = len(order) - len(shown)
    _title(figure, title + (f" (the {MOST_BARS} most frequent of {len(order)} features)" if left else ""))
    return figure


def effort(explanation: Explanation) -> "Figure":
    """How many features the best counterfactuals of a batch change, and how far they are."""
    best = explanation.answers.rank == 0
    found = int(best.sum())
    title = f"The effort of {counted(found, 'counterfactual')}"
    if not found:
        return _message(title, "No counterfactual was found.")
    figure = _figure(8.0, 3.0)
    left, right = figure.subplots(1, 2)
    counts = np.bincount(explanation.answers.changed[best].sum(axis=1))
    bars = left.bar(range(len(counts)), counts, color=BLUE, width=0.62)
    left.bar_label(bars, [number(count, 0) if count else "" for count in counts], padding=2, fontsize=9, color=INK)
    left.set_xticks([k for k in range(len(counts)) if counts[k] or len(counts) < MOST_BARS])
    left.set_xlabel("features changed", color=GREY)
    right.hist(explanation.answers.distance[best], bins=min(30, max(5, found // 5)), color=BLUE)
    right.set_xlabel("distance", color=GREY)
    right.set_ylabel("counterfactuals", color=GREY)
    for ax in (left, right):
        _plain_axes(ax, "bottom")
    left.yaxis.set_visible(False)
    _title(figure, title)
    return figure


def _dumbbell_panel(ax: Any, changes: list[Change], explanation: Explanation, said: str) -> None:
    schema = explanation.table.schema
    for y, moved in enumerate(changes):
        feature = schema[moved.feature]
        before, (after,) = values(feature, moved.before, [moved.after])
        if feature.numeric and moved.before is not None and moved.after is not None:
            _number_line(ax, y, feature, moved, (before, after))
        else:
            _pill(ax, y, change(before, after))
    ax.set_yticks(range(len(changes)), [_name(moved.feature) for moved in changes], color=INK)
    ax.set_xlim(-0.2, 1.2)
    ax.set_ylim(len(changes) - 0.4, -0.6)
    ax.set_xticks([])
    ax.set_title(_literal(said), loc="left", fontsize=10, color=GREY)
    _plain_axes(ax)


def _pill(ax: Any, y: int, said: str) -> None:
    looks = {"boxstyle": "round,pad=0.35", "facecolor": WASH, "edgecolor": "none"}
    ax.text(0.5, y, _literal(said), ha="center", va="center", color=INK, fontsize=10, bbox=looks)


def _number_line(ax: Any, y: int, feature: Feature, moved: Change, said: tuple[str, str]) -> None:
    low, high = _range(feature, float(moved.before), float(moved.after))
    ways = (np.array([moved.before, moved.after], dtype=float) - low) / (high - low)
    start, end = (float(x) for x in np.clip(ways, -OVERSHOOT, 1 + OVERSHOOT))
    ax.plot([0, 1], [y, y], color=TRACK, linewidth=5, solid_capstyle="round", zorder=1)
    ax.plot([start, end], [y, y], color=BLUE, linewidth=2, zorder=2)
    ax.plot([start], [y], "o", markersize=8, markerfacecolor="white", markeredgecolor=BLUE, zorder=3)
    ax.plot([end], [y], "o", markersize=8, color=BLUE, zorder=3)
    for x, end_of_track, bound in ((0, low, feature.lower), (1, high, feature.upper)):
        if end_of_track == bound:
            _range_end(ax, x, y, number(bound, feature.decimals))
    # Labels stand on the outer sides, so that they never meet however short the way is.
    rightwards = end >= start
    _beside(ax, start, y, said[0], left=rightwards, color=GREY, fontweight="normal")
    _beside(ax, end, y, said[1], left=not rightwards, color=INK, fontweight="bold")


def _range_end(ax: Any, x: float, y: int, said: str) -> None:
    under = {"xytext": (0, -7), "textcoords": "offset points", "ha": "center", "va": "top"}
    ax.annotate(said, (x, y), fontsize=7.5, color=GREY, **under)


def _beside(ax: Any, x: float, y: int, said: str, left: bool, **looks: Any) -> None:
    ax.annotate(
        _literal(said),
        (x, y),
        xytext=(-9 if left else 9, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=10,
        zorder=4,
        bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
        **looks,
    )


def _range(feature: Feature, before: float, after: float) -> tuple[float, float]:
    """The feature's range; where it has none, the way itself."""
    low = feature.lower if math.isfinite(feature.lower) else min(before, after)
    high = feature.upper if math.isfinite(feature.upper) else max(before, after)
    return (low, high) if low < high else (min(low, before, after), max(high, before, after))


def _cloud(ax: Any, walk: WalkLike) -> None:
    wanted = np.asarray(walk.cloud_wanted, dtype=bool)
    target = text(walk.target)
    for mask, color, said in (
        (~wanted, QUIET_ORANGE, f"sample, not {target}"),
        (wanted, QUIET_BLUE, f"sample, {target}"),
    ):
        ax.scatter(
            np.asarray(walk.cloud_height)[mask],
            np.asarray(walk.cloud_side)[mask],
            s=14,
            color=color,
            linewidths=0,
            alpha=0.7,
            label=_literal(said),
            rasterized=True,
            zorder=1,
        )


def _steps(ax: Any, walk: WalkLike) -> None:
    height, side, valid = np.asarray(walk.height), np.asarray(walk.side), np.asarray(walk.valid, dtype=bool)
    ax.plot(height, side, color=INK, linewidth=1.4, zorder=3)
    looks: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 6.5, "markeredgecolor": INK, "zorder": 4}
    ax.plot(height[~valid], side[~valid], markerfacecolor="white", label="step, not flipped", **looks)
    if valid.any():
        ax.plot(height[valid], side[valid], markerfacecolor=INK, label="step, flipped", **looks)
    _callout(ax, (height[0], side[0]), "start", below=True)


def _mark_flip(ax: Any, walk: WalkLike) -> None:
    if walk.flip < 0:
        _callout(ax, (walk.height[-1], walk.side[-1]), f"no flip in {counted(len(walk.height), 'step')}", below=False)
        return
    at = float(walk.height[walk.flip]), float(walk.side[walk.flip])
    star = {"marker": "*", "markersize": 20, "markerfacecolor": ORANGE, "markeredgecolor": "white"}
    ax.plot(*at, linestyle="none", label="flip", zorder=5, **star)
    said = f"flips at step {walk.flip}\ndistance {measure(float(walk.distance[walk.flip]))}"
    _callout(ax, at, said, below=False)


def _callout(ax: Any, at: tuple[float, float], said: str, below: bool) -> None:
    ax.annotate(
        said,
        at,
        xytext=(0, -16 if below else 20),
        textcoords="offset points",
        ha="center",
        va="top" if below else "bottom",
        fontsize=10,
        color=INK,
        zorder=6,
        bbox={"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": TRACK, "alpha": 0.92},
    )


def _within(what: str, position: int, count: int) -> int:
    if not 0 <= position < count:
        raise InputError(f"{what} must be a position from 0 on and below {count}; got {position!r}.")
    return position
