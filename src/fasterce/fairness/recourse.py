"""The cost of recourse by group: how often rows have a counterfactual, and what it costs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fasterce.errors import InputError, shorten, unknown
from fasterce.explanation import FOUND, NONE_FOUND, STOPPED, Explanation
from fasterce.fairness.groups import Groups, GroupsLike, read_groups
from fasterce.typing import Floats, Mask
from fasterce.viz.grid import Displayable, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Measure = str | Callable[[pd.DataFrame, pd.DataFrame], ArrayLike]

# Groups with fewer counterfactuals than FEW get no interval; with fewer than SMALL, intervals are rough.
FEW, SMALL = 5, 20
FEWEST_DRAWS = 100
CELLS_AT_ONCE = 4_000_000  # Numbers drawn at once, which bounds the memory: 32 MB.
PERCENTILES = (2.5, 97.5)
NORMAL_QUANTILE = 1.959963984540054  # Of 97.5 %.
MEASURES = ("distance", "n_changed")
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
        """Draw costs with their intervals, group by group; needs the extra `plots`."""
        from fasterce.fairness.plots import recourse_gap_plot  # noqa: PLC0415 - imported only to display

        return recourse_gap_plot(self, ax)

    def __repr__(self) -> str:
        attributes = list(dict.fromkeys(self.frame["attribute"]))
        return f"RecourseGap({self.measure} by {shorten(attributes)}; {len(self.frame)} groups)"

    def _sheet(self) -> Sheet:
        from fasterce.fairness.views import gap_sheet  # noqa: PLC0415 - imported only to display

        return gap_sheet(self)


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
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise InputError("options.not_a_count", option=option, expected=least, received=value)
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
    return [
        {
            "attribute": groups.name,
            "group": label,
            "rows": int(sizes[k]),
            "left_out": int((~searched & (groups.of_row == k)).sum()),
            "found": len(paid[k]),
            **_share(len(paid[k]), int(sizes[k])),
            **_centre(paid[k], drawn[k]),
            **_difference(paid[k], drawn[k], paid[reference], drawn[reference], k == reference),
            "reference": k == reference,
            "few": len(paid[k]) < FEW,
            "changes_it": _mean(changes[members[k]][~np.isnan(changes[members[k]])]),
        }
        for k, label in enumerate(groups.labels)
    ]


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
    low = high = np.nan
    if rows >= FEW:
        square = NORMAL_QUANTILE**2
        centre = (found + square / 2) / (rows + square)
        half = NORMAL_QUANTILE * np.sqrt(share * (1 - share) * rows + square / 4) / (rows + square)
        low, high = max(0.0, float(centre - half)), min(1.0, float(centre + half))
    return {"share_found": share, "share_found_low": low, "share_found_high": high, "share_without": 1 - share}


@dataclass(frozen=True)
class _Draws:
    """Bootstrap means and medians of a group; empty where there are too few rows."""

    means: Floats
    medians: Floats


def _drawn(values: Floats, n_boot: int, seed: list[int]) -> _Draws:
    if len(values) < FEW:
        return _Draws(np.zeros(0), np.zeros(0))
    rng = np.random.default_rng(seed)
    block = max(1, CELLS_AT_ONCE // len(values))
    means, medians = np.empty(n_boot), np.empty(n_boot)
    for start in range(0, n_boot, block):
        part = slice(start, min(start + block, n_boot))
        sample = values[rng.integers(len(values), size=(part.stop - start, len(values)))]
        means[part], medians[part] = sample.mean(axis=1), np.median(sample, axis=1)
    return _Draws(means, medians)


def _centre(values: Floats, drawn: _Draws) -> dict[str, float]:
    median = float(np.median(values)) if len(values) else np.nan
    return _with_interval("mean", _mean(values), drawn.means) | _with_interval("median", median, drawn.medians)


def _difference(values: Floats, drawn: _Draws, base: Floats, base_drawn: _Draws, same: bool) -> dict[str, float]:
    comparable = not same and len(drawn.means) and len(base_drawn.means)
    draws = drawn.means - base_drawn.means if comparable else np.zeros(0)
    return _with_interval("difference", 0.0 if same else _mean(values) - _mean(base), draws)


def _with_interval(name: str, value: float, draws: Floats) -> dict[str, float]:
    low, high = np.percentile(draws, PERCENTILES) if len(draws) else (np.nan, np.nan)
    return {name: value, f"{name}_low": float(low), f"{name}_high": float(high)}


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")
