"""Explanations as figures; every function returns a new matplotlib Figure and leaves pyplot alone."""

import math
from typing import TYPE_CHECKING

import numpy as np

from fasterce.data.schema import Feature
from fasterce.errors import InputError
from fasterce.explanation import Change, Explanation
from fasterce.viz import canvas
from fasterce.viz.canvas import Looks
from fasterce.viz.formatting import change, counted, measure, number, text, values
from fasterce.viz.views import row_view

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fasterce.search.walk import Walk

MOST_BARS = 15
OVERSHOOT = 0.04  # How far a value beyond its feature's range is drawn, as a share of the range.


def dumbbell(explanation: Explanation, row: int = 0, rank: int | None = None) -> "Figure":
    """Draw what the counterfactuals of a row change, each number within its feature's range; one panel per counterfactual.

    Parameters
    ----------
    explanation : Explanation
        The batch.
    row : int, default=0
        The position of the row.
    rank : int, optional
        Draw one counterfactual only, 0 the best.

    Returns
    -------
    matplotlib.figure.Figure
    """
    view = row_view(explanation, _position("row", row, len(explanation)))
    lines = explanation.of_row(row)
    if not lines:
        return canvas.message(view.heading, view.verdict)
    if rank is not None:
        lines = [lines[_position("rank", rank, len(lines))]]
    panels = [explanation.changes(k) for k in lines]
    heights = [len(changes) + 0.6 for changes in panels]
    figure = canvas.new_figure(8.4, 0.9 + 0.52 * sum(heights) + 0.42 * len(panels))
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights, sharex=True)[:, 0]
    for ax, k, changes in zip(axes, lines, panels, strict=True):
        title = f"{text(explanation.arrays.method[k])} · distance {measure(float(explanation.arrays.distance[k]))}"
        _dumbbell_panel(ax, changes, explanation, title)
    if any(explanation.table.schema[moved.feature].numeric for changes in panels for moved in changes):
        axes[-1].set_xlabel("○ before   ● after, within each feature's range", color=canvas.GREY, fontsize=9)
    canvas.put_title(figure, view.heading)
    return figure


def walk(walk: "Walk") -> "Figure":
    """Draw a latent walk towards the target class, across the hyperplane at height 0; a star marks the flip.

    Parameters
    ----------
    walk : Walk
        As `FasterCE.walk` returns it.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = canvas.new_figure(8.0, 5.6)
    ax = figure.subplots()
    _cloud(ax, walk)
    ax.axvline(0.0, color=canvas.GREY, linestyle=(0, (4, 3)), linewidth=1.2, label="hyperplane", zorder=2)
    _steps(ax, walk)
    _mark_flip(ax, walk)
    ax.set_xlabel("height above the prediction hyperplane", color=canvas.GREY)
    ax.set_ylabel("along the hyperplane", color=canvas.GREY)
    canvas.plain_axes(ax)
    # Steps grow far beyond the data; the picture ends a little after the samples and the flip.
    ends = [float(np.max(part)) for part in (walk.cloud_height, walk.height[: walk.flip + 2]) if len(part)]
    ax.set_xlim(right=1.15 * max(ends) + 0.2 if ends else None)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9, labelcolor=canvas.INK)
    canvas.put_title(figure, f"{text(walk.label)}: walk towards {text(walk.target)}")
    return figure


def summary(explanation: Explanation) -> "Figure":
    """Draw how often each feature changes in the best counterfactuals of a batch.

    Parameters
    ----------
    explanation : Explanation

    Returns
    -------
    matplotlib.figure.Figure
    """
    best = explanation.arrays.rank == 0
    found = int(best.sum())
    title = f"What changes in {counted(found, 'counterfactual')}"
    if not found:
        return canvas.message(title, "No counterfactual was found.")
    counts = explanation.arrays.changed[best].sum(axis=0)
    order = [int(j) for j in np.argsort(-counts, kind="stable") if counts[j]]
    shown = order[:MOST_BARS]
    names = [canvas.feature_label(explanation.table.schema.names[j]) for j in shown]
    figure = canvas.new_figure(8.0, 1.2 + 0.36 * len(shown))
    ax = figure.subplots()
    bars = ax.barh(range(len(shown)), counts[shown], color=canvas.BLUE, height=0.62)
    labels = [f"{number(counts[j], 0)}  ({100 * counts[j] / found:.0f}%)" for j in shown]
    ax.bar_label(bars, labels, padding=5, fontsize=9, color=canvas.INK)
    ax.set_yticks(range(len(shown)), names, color=canvas.INK)
    ax.invert_yaxis()
    ax.margins(x=0.16)
    ax.xaxis.set_visible(False)
    canvas.plain_axes(ax, "left")
    left = len(order) - len(shown)
    canvas.put_title(figure, title + (f" (the {MOST_BARS} most frequent of {len(order)} features)" if left else ""))
    return figure


def effort(explanation: Explanation) -> "Figure":
    """Draw how many features the best counterfactuals of a batch change, and their distances.

    Parameters
    ----------
    explanation : Explanation

    Returns
    -------
    matplotlib.figure.Figure
    """
    best = explanation.arrays.rank == 0
    found = int(best.sum())
    title = f"The effort of {counted(found, 'counterfactual')}"
    if not found:
        return canvas.message(title, "No counterfactual was found.")
    figure = canvas.new_figure(8.0, 3.0)
    left, right = figure.subplots(1, 2)
    counts = np.bincount(explanation.arrays.changed[best].sum(axis=1))
    bars = left.bar(range(len(counts)), counts, color=canvas.BLUE, width=0.62)
    left.bar_label(bars, [number(count, 0) if count else "" for count in counts], padding=2, fontsize=9, color=canvas.INK)
    left.set_xticks([k for k in range(len(counts)) if counts[k] or len(counts) < MOST_BARS])
    left.set_xlabel("features changed", color=canvas.GREY)
    right.hist(explanation.arrays.distance[best], bins=min(30, max(5, found // 5)), color=canvas.BLUE)
    right.set_xlabel("distance", color=canvas.GREY)
    right.set_ylabel("counterfactuals", color=canvas.GREY)
    for ax in (left, right):
        canvas.plain_axes(ax, "bottom")
    left.yaxis.set_visible(False)
    canvas.put_title(figure, title)
    return figure


def _dumbbell_panel(ax: "Axes", changes: list[Change], explanation: Explanation, title: str) -> None:
    schema = explanation.table.schema
    for y, moved in enumerate(changes):
        feature = schema[moved.feature]
        before, (after,) = values(feature, moved.before, [moved.after])
        if feature.numeric and moved.before is not None and moved.after is not None:
            _number_line(ax, y, feature, moved, (before, after))
        else:
            looks = {"boxstyle": "round,pad=0.35", "facecolor": canvas.WASH, "edgecolor": "none"}
            label = canvas.literal(change(before, after))
            ax.text(0.5, y, label, ha="center", va="center", color=canvas.INK, fontsize=10, bbox=looks)
    ax.set_yticks(range(len(changes)), [canvas.feature_label(moved.feature) for moved in changes], color=canvas.INK)
    ax.set_xlim(-0.2, 1.2)
    ax.set_ylim(len(changes) - 0.4, -0.6)
    ax.set_xticks([])
    ax.set_title(canvas.literal(title), loc="left", fontsize=10, color=canvas.GREY)
    canvas.plain_axes(ax)


def _number_line(ax: "Axes", y: int, feature: Feature, moved: Change, labels: tuple[str, str]) -> None:
    before, after = feature.number(moved.before), feature.number(moved.after)
    low, high = _range(feature, before, after)
    shares = (np.array([before, after]) - low) / (high - low)
    start, end = (float(x) for x in np.clip(shares, -OVERSHOOT, 1 + OVERSHOOT))
    ax.plot([0, 1], [y, y], color=canvas.TRACK, linewidth=5, solid_capstyle="round", zorder=1)
    ax.plot([start, end], [y, y], color=canvas.BLUE, linewidth=2, zorder=2)
    ax.plot([start], [y], "o", markersize=8, markerfacecolor="white", markeredgecolor=canvas.BLUE, zorder=3)
    ax.plot([end], [y], "o", markersize=8, color=canvas.BLUE, zorder=3)
    under: Looks = {"xytext": (0, -7), "textcoords": "offset points", "ha": "center", "va": "top"}
    for x, end_of_track, bound in ((0, low, feature.lower), (1, high, feature.upper)):
        if end_of_track == bound:
            shown = feature.text(bound) if feature.is_time else number(bound, feature.decimals)
            ax.annotate(shown, (x, y), fontsize=7.5, color=canvas.GREY, **under)
    # Labels are on the outer sides, so that they do not overlap if the points are close.
    rightwards = end >= start
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    looks: Looks = {"gap": 9, "fontsize": 10, "bbox": box}
    canvas.annotate_beside(ax, labels[0], start, y, left=rightwards, color=canvas.GREY, fontweight="normal", **looks)
    canvas.annotate_beside(ax, labels[1], end, y, left=not rightwards, color=canvas.INK, fontweight="bold", **looks)


def _range(feature: Feature, before: float, after: float) -> tuple[float, float]:
    """Return the feature's range; where it has none, the interval of the change."""
    low = feature.lower if math.isfinite(feature.lower) else min(before, after)
    high = feature.upper if math.isfinite(feature.upper) else max(before, after)
    return (low, high) if low < high else (min(low, before, after), max(high, before, after))


def _cloud(ax: "Axes", walk: "Walk") -> None:
    wanted = np.asarray(walk.cloud_wanted, dtype=bool)
    target = text(walk.target)
    samples = ((~wanted, canvas.QUIET_ORANGE, f"sample, not {target}"), (wanted, canvas.QUIET_BLUE, f"sample, {target}"))
    looks: Looks = {"s": 14, "linewidths": 0, "alpha": 0.7, "rasterized": True, "zorder": 1}
    for mask, color, label in samples:
        points = np.asarray(walk.cloud_height)[mask], np.asarray(walk.cloud_side)[mask]
        ax.scatter(*points, color=color, label=canvas.literal(label), **looks)


def _steps(ax: "Axes", walk: "Walk") -> None:
    height, side, valid = np.asarray(walk.height), np.asarray(walk.side), np.asarray(walk.valid, dtype=bool)
    ax.plot(height, side, color=canvas.INK, linewidth=1.4, zorder=3)
    looks: Looks = {"linestyle": "none", "marker": "o", "markersize": 6.5, "markeredgecolor": canvas.INK, "zorder": 4}
    ax.plot(height[~valid], side[~valid], markerfacecolor="white", label="step, not flipped", **looks)
    if valid.any():
        ax.plot(height[valid], side[valid], markerfacecolor=canvas.INK, label="step, flipped", **looks)
    _callout(ax, (height[0], side[0]), "start", below=True)


def _mark_flip(ax: "Axes", walk: "Walk") -> None:
    if walk.flip < 0:
        _callout(ax, (walk.height[-1], walk.side[-1]), f"no flip in {counted(len(walk.height), 'step')}", below=False)
        return
    at = float(walk.height[walk.flip]), float(walk.side[walk.flip])
    star: Looks = {"marker": "*", "markersize": 20, "markerfacecolor": canvas.ORANGE, "markeredgecolor": "white"}
    ax.plot(*at, linestyle="none", label="flip", zorder=5, **star)
    _callout(ax, at, f"flips at step {walk.flip}\ndistance {measure(float(walk.distance[walk.flip]))}", below=False)


def _callout(ax: "Axes", at: tuple[float, float], label: str, below: bool) -> None:
    box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": canvas.TRACK, "alpha": 0.92}
    place: Looks = {"xytext": (0, -16 if below else 20), "textcoords": "offset points", "va": "top" if below else "bottom"}
    ax.annotate(label, at, ha="center", fontsize=10, color=canvas.INK, zorder=6, bbox=box, **place)


def _position(option: str, position: int, count: int) -> int:
    if not 0 <= position < count:
        raise InputError("viz.not_a_position", option=option, expected=count, received=position)
    return position
