"""Figures of a run: trade-offs with their Pareto front, the paper's bars, robustness as a curve, and agreement."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fasterce.viz.canvas import BLUE, GREY, INK, ORANGE, QUIET_BLUE, TRACK, literal, new_figure, plain_axes, put_title

LABEL_SIZE = 8
# Percent of queries with a valid counterfactual from which on a point is full.
COMPLETE = 95.0
# Offsets of a label from its point, in points, best first; and the width of a letter.
OFFSETS = ((8, 10), (8, -10), (-8, 10), (-8, -10), (0, 14), (0, -14), (8, -22), (-8, -22))
LETTER = 5.2
# Distance in points from which a line leads to the label.
LEADER_DISTANCE = 20
PALETTE = (BLUE, QUIET_BLUE, "#56B4E9", ORANGE, "#E69F00", "#CC79A7", "#009E73", "#8C6D31", INK, GREY, "#B0B7BF")


def front(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return which points are on the Pareto front; both coordinates are better when lower."""
    beaten = (x[None] <= x[:, None]) & (y[None] <= y[:, None]) & ((x[None] < x[:, None]) | (y[None] < y[:, None]))
    return ~beaten.any(axis=1)


def pareto(
    points: pd.DataFrame,
    x: str,
    y: str,
    names: tuple[str, str],
    title: str,
    better: tuple[str, str] = ("low", "low"),
    log: bool = False,
) -> Any:
    """One panel per dataset, one numbered point per method, with the Pareto front as a line.

    Columns of `points` are data, title, ours, valid, `x` and `y`.
    """
    panels, methods = list(dict.fromkeys(points["data"])), list(dict.fromkeys(points["title"]))
    figure = new_figure(4.6 * len(panels) + 3.4, max(4.4, 1.2 + 0.21 * len(methods)))
    *axes, key_axis = np.atleast_1d(figure.subplots(1, len(panels) + 1, width_ratios=[4.6] * len(panels) + [3.0]))
    for ax, data in zip(axes, panels, strict=True):
        part = points[points["data"] == data].dropna(subset=[x, y])
        _trade_off(ax, part.assign(number=[methods.index(title) + 1 for title in part["title"]]), x, y, better, log)
        ax.set_title(data, loc="left", fontsize=11, color=INK)
        ax.set_xlabel(f"{names[0]} ({better[0]} is better)", color=INK)
        ax.set_ylabel(f"{names[1]} ({better[1]} is better)", color=INK)
    key = "\n".join(f"{number:>2}  {name}" for number, name in enumerate(methods, start=1))
    key_axis.text(0.0, 1.0, literal(key), va="top", fontsize=9, color=INK, linespacing=1.4, transform=key_axis.transAxes)
    key_axis.set_axis_off()
    put_title(figure, title)
    return figure


def _trade_off(ax: Any, part: pd.DataFrame, x: str, y: str, better: tuple[str, str], log: bool) -> None:
    across, up = part[x].to_numpy(dtype=float), part[y].to_numpy(dtype=float)
    complete = (part["valid"] >= COMPLETE).to_numpy()
    signs = [1.0 if side == "low" else -1.0 for side in better]
    best = np.flatnonzero(complete)[front(signs[0] * across[complete], signs[1] * up[complete])]
    best = best[np.argsort(across[best], kind="stable")]
    ax.plot(across[best], up[best], color=TRACK, linewidth=2, zorder=1)
    colours = np.where(part["ours"], BLUE, ORANGE)
    ax.scatter(across, up, s=150, zorder=2, edgecolors=colours, facecolors=np.where(complete, colours, "white"))
    for k, number in enumerate(part["number"]):
        ink = "white" if complete[k] else colours[k]
        ax.text(across[k], up[k], f"{number}", ha="center", va="center", fontsize=7, color=ink, zorder=3)
    if log:
        ax.set_xscale("log")
    ax.margins(0.12)
    plain_axes(ax, "left", "bottom")


def near_and_fast(panels: Sequence[tuple[str, pd.DataFrame]], title: str) -> Any:
    """Distance relative to the nearest known against milliseconds: a panel per distance, a point per system.

    Tables are those of `benchmarks.relative.table` with the columns `title`, `ours`, `exact` and `all_datasets`. Bars are the
    spread over cells. Systems of all datasets are labelled; the others are hollow and numbered, with a key.
    """
    others = list(dict.fromkeys(name for _, points in panels for name in points.loc[~points["all_datasets"], "title"]))
    widths = [6.4] * len(panels) + ([2.9] if others else [])
    figure = new_figure(sum(widths), 6.0)
    axes = np.atleast_1d(figure.subplots(1, len(widths), width_ratios=widths))
    for ax, (name, points) in zip(axes, panels, strict=False):
        _relative_panel(ax, points, others)
        ax.set_title(name, loc="left", fontsize=11, color=INK)
    if others:
        key = "\n".join(f"{number:>2}  {name}" for number, name in enumerate(others, start=1))
        axes[-1].text(0.0, 1.0, literal(key), va="top", fontsize=9, color=INK, linespacing=1.5, transform=axes[-1].transAxes)
        axes[-1].set_axis_off()
    put_title(figure, title)
    return figure


def _relative_panel(ax: Any, points: pd.DataFrame, others: Sequence[str]) -> None:
    ax.axhline(1.0, color=TRACK, linewidth=2, zorder=0)
    colours = np.where(points["exact"], GREY, np.where(points["ours"], BLUE, ORANGE))
    for (_, at), colour in zip(points.iterrows(), colours, strict=True):
        x, y, labelled = at["ms"], at["ratio"], at["all_datasets"]
        if labelled:
            across = [[max(x - at["ms_least"], 0.0)], [max(at["ms_most"] - x, 0.0)]]
            up = [[max(y - at["least"], 0.0)], [max(at["most"] - y, 0.0)]]
            ax.errorbar(x, y, xerr=across, yerr=up, fmt="none", ecolor=colour, elinewidth=1.4, alpha=0.5, zorder=1)
        else:
            number = f"{others.index(at['title']) + 1}"
            ax.text(x, y, number, ha="center", va="center", fontsize=7, color=colour, zorder=4)
        ax.scatter(x, y, s=80 if labelled else 140, zorder=2, edgecolors=colour, facecolors=colour if labelled else "white")
    ax.set(xscale="log", yscale="log", xlim=(points["ms"].min() / 2, points["ms"].max() * 2))
    ax.set_ylim(bottom=0.6)
    _name_points(ax, points)
    for axis, unit, steps in ((ax.xaxis, "", (1,)), (ax.yaxis, " ×", (1, 2, 5))):
        axis.set_major_locator(_ticks(steps))
        axis.set_major_formatter(lambda value, _, unit=unit: f"{value:,g}{unit}")
        axis.set_minor_formatter(lambda value, _: "")
    ax.set_xlabel("processor time per explanation, ms (low is better)", color=INK)
    ax.set_ylabel("distance ÷ distance of the nearest known (low is better)", color=INK)
    plain_axes(ax, "left", "bottom")


def _ticks(steps: tuple[int, ...]) -> Any:
    from matplotlib.ticker import LogLocator  # noqa: PLC0415 - an extra, needed only to draw

    return LogLocator(subs=steps)


def _name_points(ax: Any, points: pd.DataFrame) -> None:
    """Write the names of the systems of all datasets beside their points: the offset with the least overlap is taken."""
    drawn, *ends = (
        [tuple(at) for at in ax.transData.transform(points[pair].to_numpy(dtype=float))]
        for pair in (["ms", "ratio"], ["ms_least", "least"], ["ms_most", "most"])
    )
    per_point = ax.figure.dpi / 72
    taken = [(x - 7 * per_point, y - 7 * per_point, x + 7 * per_point, y + 7 * per_point) for x, y in drawn]
    for (x, y), (left, bottom), (right, top), labelled in zip(drawn, *ends, points["all_datasets"], strict=True):
        taken += [(left, y - 1, right, y + 1), (x - 1, bottom, x + 1, top)] if labelled else []
    for (x, y), (_, at) in zip(drawn, points.iterrows(), strict=True):
        if at["all_datasets"]:
            width = LETTER * len(at["title"])
            boxes = {offset: _box(x, y, offset, width, per_point) for offset in OFFSETS}
            offset = min(OFFSETS, key=lambda one: sum(_overlap(boxes[one], other) for other in taken))
            taken.append(boxes[offset])
            across, up = offset
            label: dict[str, Any] = {"xytext": offset, "textcoords": "offset points", "va": "center", "fontsize": 9.5}
            if abs(up) >= LEADER_DISTANCE:
                label["arrowprops"] = {"arrowstyle": "-", "color": GREY, "linewidth": 0.8}
            label["ha"] = "center" if across == 0 else "left" if across > 0 else "right"
            ax.annotate(literal(at["title"]), (at["ms"], at["ratio"]), color=INK, zorder=5, **label)


def _box(x: float, y: float, offset: tuple[int, int], width: float, per_point: float) -> tuple[float, float, float, float]:
    """Return left, bottom, right and top of a label, in pixels."""
    across, up = offset
    left = x + per_point * (across - width / 2 if across == 0 else across if across > 0 else across - width)
    middle = y + per_point * up
    return (left, middle - 6 * per_point, left + per_point * width, middle + 6 * per_point)


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> float:
    """Return the common area of two boxes."""
    width, height = (min(one[k + 2], other[k + 2]) - max(one[k], other[k]) for k in (0, 1))
    return max(width, 0.0) * max(height, 0.0)


def bars(runs: pd.DataFrame, panels: Sequence[tuple[str, str, bool]], methods: Sequence[str], title: str) -> Any:
    """The paper's figure: one panel per measure, one group per dataset, one bar per method, with the deviation over runs."""
    datasets = list(dict.fromkeys(runs["data"]))
    figure = new_figure(5.4 * len(panels) if len(panels) < 3 else 16, 4.4 if len(panels) < 4 else 8.4)
    rows = 1 if len(panels) < 4 else 2
    axes = np.atleast_1d(figure.subplots(rows, -(-len(panels) // rows))).ravel()
    for ax, (name, label, log) in zip(axes, panels, strict=False):
        _grouped(ax, runs, name, datasets, methods, log)
        ax.set_title(label, loc="left", fontsize=11, color=INK)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    legend_axis = axes[-1] if len(panels) < len(axes) else axes[0]
    legend_axis.legend(*axes[0].get_legend_handles_labels(), fontsize=10, frameon=False, loc="upper left")
    put_title(figure, title)
    return figure


def _grouped(ax: Any, runs: pd.DataFrame, name: str, datasets: Sequence[str], methods: Sequence[str], log: bool) -> None:
    width = 0.8 / max(len(methods), 1)
    for k, method in enumerate(methods):
        part = runs[runs["title"] == method].groupby("data")[name]
        mean, deviation = part.mean().reindex(datasets), part.std().reindex(datasets).fillna(0.0)
        positions = np.arange(len(datasets)) + (k - (len(methods) - 1) / 2) * width
        style = {"color": PALETTE[k % len(PALETTE)], "label": method, "ecolor": GREY, "capsize": 2}
        ax.bar(positions, mean, width * 0.9, yerr=deviation, **style)
    ax.set_xticks(np.arange(len(datasets)), datasets)
    if log:
        ax.set_yscale("log")
    plain_axes(ax, "left", "bottom")


def curve(lines: dict[str, pd.DataFrame], points: pd.DataFrame, title: str) -> Any:
    """Robustness against proximity: a curve for each method with a parameter for it, a point for each other system."""
    figure = new_figure(8.0, 5.0)
    ax = figure.subplots()
    for (name, part), colour in zip(lines.items(), (BLUE, "#56B4E9", QUIET_BLUE, GREY, ORANGE), strict=False):
        ax.plot(part["proximity"], part["robust"], marker="o", color=colour, label=literal(name), linewidth=2)
        for _, at in part.iterrows():
            ax.annotate(
                f"{at['label']}",
                (at["proximity"], at["robust"]),
                xytext=(4, -9),
                textcoords="offset points",
                fontsize=LABEL_SIZE,
            )
    ax.scatter(points["proximity"], points["robust"], color=INK, s=30, zorder=3)
    for _, at in points.iterrows():
        ax.annotate(
            literal(at["title"]),
            (at["proximity"], at["robust"]),
            xytext=(4, 3),
            textcoords="offset points",
            fontsize=LABEL_SIZE,
        )
    ax.set_xlabel("proximity (low is better)", color=INK)
    ax.set_ylabel("robustness of recourse, % (high is better)", color=INK)
    ax.legend(frameon=False, fontsize=9)
    ax.margins(0.1)
    plain_axes(ax, "left", "bottom")
    put_title(figure, title)
    return figure


def total_time(mean: pd.DataFrame, titles: Sequence[str]) -> Any:
    """Set-up plus time per query over the number of queries: a panel per dataset, a line per method."""
    panels = list(dict.fromkeys(mean["data"]))
    figure = new_figure(5.0 * len(panels) + 2.2, 4.6)
    axes = np.atleast_1d(figure.subplots(1, len(panels), sharey=True))
    queries = np.logspace(0, 5, 60)
    for ax, data in zip(axes, panels, strict=True):
        for k, title in enumerate(titles):
            for _, at in mean[(mean["data"] == data) & (mean["title"] == title)].iterrows():
                ax.plot(queries, at["setup"] + queries * at["each"], color=PALETTE[k % len(PALETTE)], label=title)
        ax.set(xscale="log", yscale="log")
        ax.set_title(data, loc="left", fontsize=11, color=INK)
        ax.set_xlabel("queries", color=INK)
        plain_axes(ax, "left", "bottom")
    axes[0].set_ylabel("seconds, set-up included", color=INK)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=9, frameon=False)
    put_title(figure, "Total time over the number of queries")
    return figure


def heat(shares: pd.DataFrame, title: str) -> Any:
    """The agreement of each pair of systems, as a matrix."""
    size = 1.8 + 0.55 * len(shares)
    figure = new_figure(size + 2.2, size)
    ax = figure.subplots()
    ax.imshow(shares.to_numpy(dtype=float), cmap="Blues", vmin=0, vmax=1)
    positions = np.arange(len(shares))
    ax.set_xticks(positions, [literal(name) for name in shares.columns], rotation=40, ha="right")
    ax.set_yticks(positions, [literal(name) for name in shares.index])
    for k, j in np.argwhere(np.isfinite(shares.to_numpy(dtype=float))):
        value = shares.iloc[k, j]
        ax.text(j, k, f"{value:.2f}", ha="center", va="center", fontsize=LABEL_SIZE, color="white" if value > 0.6 else INK)
    plain_axes(ax)
    put_title(figure, title)
    return figure
