"""The cost of recourse by group: how often rows have a counterfactual, and what it costs.

First the costs, then the report as a table and as a figure.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import binomtest

from fasterce.errors import InputError, check_count, shorten, unknown
from fasterce.explanation import FOUND, NONE_FOUND, STOPPED, Explanation
from fasterce.fairness.groups import Groups, GroupsLike, read_groups
from fasterce.fairness.plots import FrameRow, empty_lines, write_below
from fasterce.typing import Floats, Mask
from fasterce.viz import canvas
from fasterce.viz.formatting import counted, cut, number
from fasterce.viz.formatting import measure as digits
from fasterce.viz.grid import Displayable, Grid, GridCell, GridLine, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Measure = str | Callable[[pd.DataFrame, pd.DataFrame], ArrayLike]

# Groups with fewer counterfactuals than FEW get no interval; with fewer than SMALL, intervals are rough.
FEW, SMALL = 5, 20
FEWEST_DRAWS = 100
CELLS_AT_ONCE = 4_000_000  # Numbers drawn at once, which bounds the memory: 32 MB.
PERCENTILES = (2.5, 97.5)
MEASURES = {"distance": "Distance", "n_changed": "Features changed"}
NOTHING = "–"
CAUTION = (
    "Read with care: a gap says that the people of one group would have to change more, or have a counterfactual less often, "
    "by this measure and among these rows. It is not by itself discrimination, since groups may differ in what the model "
    "looks at for good reason, and no gap does not prove fairness. Costs are of rows with a counterfactual alone, so read "
    "them beside the share found. Intervals are for one comparison at a time and tell chance, not how the rows were chosen."
)


@dataclass(frozen=True)
class RecourseGap(Displayable):
    """The result of `recourse_gap`.

    Attributes
    ----------
    frame : pandas.DataFrame
        One line per group: attribute, group, rows, left_out, found, share_found with _low and _high (Wilson), share_without,
        mean and median cost with _low and _high, difference of means to the reference group with _low and _high (bootstrap,
        95 %), reference (whether it is that group), few (too few rows for intervals, which are NaN), changes_it (share of
        counterfactuals that change the attribute; NaN where it is not a column of the table).
    measure : str
        The name of the cost.
    left_out : mapping
        Number of rows that need or can have no counterfactual, by status.
    stopped : int
        Rows whose search a budget or deadline stopped; they count as not found.
    n_boot, seed : int
        Bootstrap draws and their seed.
    caution : str
        What must be read with any of these numbers.
    """

    frame: pd.DataFrame
    measure: str
    left_out: Mapping[str, int]
    stopped: int
    n_boot: int
    seed: int
    caution: str = CAUTION

    def plot(self, ax: "Axes | None" = None) -> "Figure":
        """Draw costs with their intervals, group by group; needs the extra `plots`.

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
        attributes = list(dict.fromkeys(self.frame["attribute"]))
        return f"RecourseGap({self.measure} by {shorten(attributes)}; {len(self.frame)} groups)"

    def _sheet(self) -> Sheet:
        parts = self.frame.groupby("attribute", sort=False)
        sections = [(f"{_measure_name(self)} by {cut(attribute)}", _grid(part)) for attribute, part in parts]
        return Sheet(tuple(sections), tuple(_remarks(self)), (self.caution,))


def recourse_gap(
    explanation: Explanation,
    groups: GroupsLike,
    *,
    measure: Measure = "distance",
    bands: int = 4,
    n_boot: int = 2000,
    seed: int = 0,
) -> RecourseGap:
    """Compare groups: how often their rows have a counterfactual, and what the best one costs, with bootstrap intervals.

    Parameters
    ----------
    explanation : Explanation
        The result of `explain`; rows that already have the target or could not be evaluated are left out and counted.
    groups : hashable, list, pandas.Series or mapping
        A column, a list of columns (each by itself), a Series with the index of the rows, or {name: Series}. Missing values
        are a group.
    measure : {"distance", "n_changed"} or callable, default="distance"
        The cost, or a function of (rows, counterfactuals) that returns one cost for each.
    bands : int, default=4
        Numbers of more values than this are cut into as many bands of about as many rows each.
    n_boot : int, default=2000
        Bootstrap draws, each within its group.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    RecourseGap
    """
    for option, value, least in (("bands", bands, 2), ("n_boot", n_boot, FEWEST_DRAWS), ("seed", seed, 0)):
        check_count(option, value, least)
    if not isinstance(explanation, Explanation):
        raise InputError("fairness.not_an_explanation", option="explanation", received=type(explanation).__name__)
    explanation = explanation.in_pandas()
    status = explanation.status.to_numpy(dtype=object)
    if not (status == FOUND).any():
        raise InputError("fairness.nothing_found", option="explanation")
    attributes = read_groups(explanation, groups, bands)
    costs = _costs(explanation, measure)
    searched = np.isin(status, [FOUND, NONE_FOUND, STOPPED])
    lines = [line for one in attributes for line in _lines(explanation, one, searched, costs, n_boot, seed)]
    words, counts = np.unique(status[~searched].astype(str), return_counts=True)
    return RecourseGap(
        frame=pd.DataFrame(lines),
        measure=measure if isinstance(measure, str) else getattr(measure, "__name__", "cost"),
        left_out={str(word): int(count) for word, count in zip(words, counts, strict=True)},
        stopped=int((status == STOPPED).sum()),
        n_boot=n_boot,
        seed=seed,
    )


def _costs(explanation: Explanation, measure: Measure) -> Floats:
    """Return the cost of each row's best counterfactual, NaN where it has none."""
    found = explanation.arrays
    best = np.flatnonzero(found.rank == 0)
    costs = np.full(len(explanation.rows), np.nan)
    if callable(measure):
        rows = explanation.rows.iloc[found.query[best]]
        after = explanation.table.rewrite(rows, found.before[best], found.codes[best])
        costs[found.query[best]] = _checked(measure(rows, after), len(best))
    elif measure == "distance":
        costs[found.query[best]] = found.distance[best]
    elif measure == "n_changed":
        costs[found.query[best]] = found.changed[best].sum(axis=1)
    else:
        raise InputError(unknown("options.unknown_choice", measure, MEASURES, option="measure"))
    return costs


def _checked(costs: ArrayLike, count: int) -> Floats:
    try:
        found = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("fairness.costs_not_numbers", option="measure", received=costs) from error
    if found.shape != (count,):
        raise InputError("fairness.cost_count", option="measure", expected=count, received=found.shape)
    if not np.isfinite(found).all():
        raise InputError("fairness.costs_not_finite", option="measure")
    return found


def _lines(
    explanation: Explanation, groups: Groups, searched: Mask, costs: Floats, n_boot: int, seed: int
) -> list[dict[str, object]]:
    members = [np.flatnonzero(searched & (groups.of_row == k)) for k in range(len(groups.labels))]
    sizes = np.array([len(rows) for rows in members])
    if (sizes > 0).sum() < 2:
        present = [groups.labels[k] for k in np.flatnonzero(sizes)]
        raise InputError("fairness.one_group", column=groups.name, received=present)
    # Sorted, so that the order of the rows cannot change a single bit.
    paid = [np.sort(costs[rows][~np.isnan(costs[rows])]) for rows in members]
    drawn = [_drawn(values, n_boot, [seed, k]) for k, values in enumerate(paid)]
    reference = int(sizes.argmax())
    changes = _changes(explanation, groups)
    lines: list[dict[str, object]] = []
    for k, label in enumerate(groups.labels):
        own, base = drawn[k], drawn[reference]
        apart = own[0] - base[0] if k != reference and own.size and base.size else own[0, :0]
        difference = 0.0 if k == reference else _mean(paid[k]) - _mean(paid[reference])
        lines.append(
            {
                "attribute": groups.name,
                "group": label,
                "rows": int(sizes[k]),
                "left_out": int((~searched & (groups.of_row == k)).sum()),
                "found": len(paid[k]),
                **_share(len(paid[k]), int(sizes[k])),
                **_with_interval("mean", _mean(paid[k]), own[0]),
                **_with_interval("median", float(np.median(paid[k])) if len(paid[k]) else np.nan, own[1]),
                **_with_interval("difference", difference, apart),
                "reference": k == reference,
                "few": len(paid[k]) < FEW,
                "changes_it": _mean(changes[members[k]][~np.isnan(changes[members[k]])]),
            }
        )
    return lines


def _changes(explanation: Explanation, groups: Groups) -> Floats:
    """Return whether each row's best counterfactual changes the attribute; NaN where there is none or it is not a column."""
    changes = np.full(len(explanation.rows), np.nan)
    if groups.feature is not None:
        best = explanation.arrays.rank == 0
        changes[explanation.arrays.query[best]] = explanation.arrays.changed[best, groups.feature]
    return changes


def _share(found: int, rows: int) -> dict[str, float]:
    """Return the share found with Wilson's interval, which is valid near 0 and 1 too."""
    share = found / rows if rows else np.nan
    low, high = binomtest(found, rows).proportion_ci(method="wilson") if rows >= FEW else (np.nan, np.nan)
    return {"share_found": share, "share_found_low": low, "share_found_high": high, "share_without": 1 - share}


def _drawn(values: Floats, n_boot: int, seed: list[int]) -> Floats:
    """Return bootstrap means and medians of a group (2, n_boot); none where there are too few rows."""
    if len(values) < FEW:
        return np.zeros((2, 0))
    rng = np.random.default_rng(seed)
    block = max(1, CELLS_AT_ONCE // len(values))
    drawn = np.empty((2, n_boot))
    for start in range(0, n_boot, block):
        part = slice(start, min(start + block, n_boot))
        sample = values[rng.integers(len(values), size=(part.stop - start, len(values)))]
        drawn[0, part], drawn[1, part] = sample.mean(axis=1), np.median(sample, axis=1)
    return drawn


def _with_interval(name: str, value: float, draws: Floats) -> dict[str, float]:
    low, high = np.percentile(draws, PERCENTILES) if len(draws) else (np.nan, np.nan)
    return {name: value, f"{name}_low": float(low), f"{name}_high": float(high)}


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _measure_name(gap: RecourseGap) -> str:
    return MEASURES.get(gap.measure, cut(gap.measure))


def _group_name(line: FrameRow) -> str:
    return cut(line.group) + (" *" if line.reference else "") + (" †" if line.few else "")


def _remarks(gap: RecourseGap) -> list[str]:
    counts = ", ".join(f"{number(count, 0)} {status}" for status, count in gap.left_out.items())
    remarks = {
        f"Difference of means to the group marked *; 95 % intervals ({number(gap.n_boot, 0)} bootstrap draws within each "
        "group; found: Wilson).": True,
        "Changed: the share of counterfactuals that change the attribute itself, 0 % where it is frozen.": (
            gap.frame["changes_it"].notna().any()
        ),
        f"† fewer than {FEW} rows with a counterfactual: too few for an interval.": gap.frame["few"].any(),
        f"Intervals of groups with fewer than {SMALL} counterfactuals are rough, and rather too narrow.": (
            gap.frame["found"].between(FEW, SMALL - 1).any()
        ),
        f"Left out: {counts}.": bool(counts),
        f"{counted(gap.stopped, 'row')} stopped by a budget or deadline, counted as not found.": gap.stopped > 0,
    }
    return [remark for remark, applies in remarks.items() if applies]


def _grid(part: pd.DataFrame) -> Grid:
    inside = bool(part["changes_it"].notna().any())
    header = ("Group", "Rows", "Found", "Mean", "Median", "Difference", *(("Changed",) if inside else ()))
    return Grid(header, tuple(_line(line, inside) for line in part.itertuples()))


def _line(line: FrameRow, inside: bool) -> GridLine:
    cells = [
        _group_name(line),
        number(line.rows, 0),
        _percent(line),
        _interval_text(line.mean, line.mean_low, line.mean_high),
        NOTHING if math.isnan(line.median) else digits(line.median),
        "" if line.reference else _interval_text(line.difference, line.difference_low, line.difference_high, "+"),
    ]
    if inside:
        cells.append(NOTHING if math.isnan(line.changes_it) else f"{line.changes_it:.0%}")
    return tuple(map(GridCell, cells))


def _percent(line: FrameRow) -> str:
    if math.isnan(line.share_found):
        return NOTHING
    share, low, high = (f"{100 * value:.0f}" for value in (line.share_found, line.share_found_low, line.share_found_high))
    return f"{share}%" if math.isnan(line.share_found_low) else f"{share}% ({low}–{high}%)"


def _interval_text(value: float, low: float, high: float, sign: str = "") -> str:
    if math.isnan(value):
        return NOTHING
    shown = [(sign if end > 0 else "") + digits(end, 2 if sign else 3).replace("-", "−") for end in (value, low, high)]
    return shown[0] if math.isnan(low) else f"{shown[0]} ({shown[1]} to {shown[2]})"


def _draw(gap: RecourseGap, given: "Axes | None") -> "Figure":
    """Draw each group's mean cost with its interval; orange where the difference to the group marked * is beyond chance."""
    lines = list(gap.frame.itertuples())
    breaks = [y for y in range(1, len(lines)) if lines[y].attribute != lines[y - 1].attribute]
    names = [(f"{cut(line.attribute)}: " if breaks else "") + _group_name(line) for line in lines]
    figure, ax = empty_lines(given, f"{_measure_name(gap)}: the best counterfactuals, group by group", names, breaks)
    for y, line in enumerate(lines):
        _dot(ax, y, line)
    ends = gap.frame[["mean", "mean_low", "mean_high"]].to_numpy(dtype=float)
    reach = float(np.nanmax(ends)) if np.isfinite(ends).any() else 1.0
    ax.set_xlim(min(0.0, float(np.nanmin(ends))), 1.3 * reach if reach > 0 else 1.0)
    of = "" if breaks else f" by {cut(lines[0].attribute)}"
    legend = "* compared with   ● its difference to * is beyond chance (orange)   † too few for an interval"
    below = f"mean {_measure_name(gap).lower()}{of}, 95 % bootstrap interval\n{legend}"
    write_below(ax, given is None, below, gap.caution)
    return figure


def _dot(ax: "Axes", y: int, line: FrameRow) -> None:
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
    label = f"{digits(line.mean)}   {line.found} of {line.rows} found"
    canvas.annotate_beside(ax, label, end, y, left=False, gap=8, fontsize=8, color=canvas.INK)
