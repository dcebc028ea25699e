"""What recourse costs each group of people, measured on explanations: who gets an answer, how far it is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.bias.groups import Groups, read_groups
from fasterce.errors import InputError, shorten, unknown_name
from fasterce.explanation import FOUND, NONE_FOUND, STOPPED, Explanation
from fasterce.profile import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Measure = str | Callable[[pd.DataFrame, pd.DataFrame], Any]

FEW, SMALL = 5, 20
FEWEST_DRAWS = 100
MOST_CELLS = 4_000_000
TAILS = (2.5, 97.5)
NORMAL_TAIL = 1.959963984540054
MEASURES = ("distance", "n_changed")
CAUTION = (
    "Read with care: a gap says that the people of one group would have to change more, or get an answer less often, by this "
    "measure and among these rows. It is not by itself discrimination, since groups may differ in what the model looks at "
    "for good reason, and no gap does not prove fairness. Costs are of rows with an answer alone, so read them beside "
    "the share found. Intervals are for one comparison at a time and tell chance, not how the rows were chosen."
)


@dataclass(frozen=True)
class RecourseGap:
    """The result of `recourse_gap`.

    frame      one line a group: attribute, group, rows, left_out, found, share_found with _low and _high (Wilson),
               share_without, mean and median cost with _low and _high, difference of means to the reference group
               with _low and _high (bootstrap, 95 %), reference (is it the one compared with?), few (too few rows for
               intervals: they are NaN), changes_it (share of answers that change the attribute; NaN where it is no
               column of the table)
    measure    the name of the cost
    left_out   rows that needed or could have no answer, by status
    stopped    rows without an answer because a budget or deadline ended the search; they count as not found
    caution    what must be read with any of these numbers
    """

    frame: pd.DataFrame
    measure: str
    left_out: Mapping[str, int]
    stopped: int
    n_boot: int
    seed: int
    caution: str = CAUTION

    def plot(self, ax: Any = None) -> "Figure":
        """Costs with their intervals, group by group; needs the extra `plots`."""
        from fasterce.display.bias_plots import recourse_gap as draw  # noqa: PLC0415 - looking is not needed for measuring

        return draw(self, ax)

    def __str__(self) -> str:
        from fasterce.display.terminal import written  # noqa: PLC0415

        return written(self.__rich__())

    def __repr__(self) -> str:
        attributes = list(dict.fromkeys(self.frame["attribute"]))
        return f"RecourseGap({self.measure} by {shorten(attributes)}; {len(self.frame)} groups)"

    def __rich__(self) -> Any:
        from fasterce.display import bias_views, terminal  # noqa: PLC0415

        return terminal.sheet(bias_views.of_gap(self))

    def _repr_html_(self) -> str:
        from fasterce.display import bias_views, html  # noqa: PLC0415

        return html.sheet(bias_views.of_gap(self))


def recourse_gap(
    explanation: Explanation,
    groups: Any,
    *,
    measure: Measure = "distance",
    bands: int = 4,
    n_boot: int = 2000,
    seed: int = 0,
) -> RecourseGap:
    """How often each group's rows get an answer, and what the best one costs, with bootstrap intervals.

    Parameters
    ----------
    explanation : what `explain` gave; rows that already have the target or could not be asked are left out and counted.
    groups : a column name, a list of them (each by itself), a Series with the index of the rows, or {name: Series}.
        Missing values are a group; numbers of many values are cut into `bands` with about as many rows each.
    measure : "distance", "n_changed", or a function of (rows, counterfactuals) that gives a cost for each.
    n_boot, seed : draws of the bootstrap, each within its group, and their seed.
    """
    _check("bands", bands, 2)
    _check("n_boot", n_boot, FEWEST_DRAWS)
    _check("seed", seed, 0)
    if not isinstance(explanation, Explanation):
        raise InputError(f"explanation must be what FasterCE.explain gives; got {type(explanation).__name__}.")
    explanation = explanation.in_pandas()
    status = explanation.status.to_numpy(dtype=object)
    if not (status == FOUND).any():
        raise InputError("explanation must have at least one row with an answer to compare groups; got none found.")
    attributes = read_groups(explanation, groups, bands)
    costs = _costs(explanation, measure)
    asked = np.isin(status, [FOUND, NONE_FOUND, STOPPED])
    lines = [line for one in attributes for line in _lines(explanation, one, asked, costs, n_boot, seed)]
    words, counts = np.unique(status[~asked].astype(str), return_counts=True)
    return RecourseGap(
        frame=pd.DataFrame(lines),
        measure=measure if isinstance(measure, str) else getattr(measure, "__name__", "cost"),
        left_out={str(word): int(count) for word, count in zip(words, counts, strict=True)},
        stopped=int((status == STOPPED).sum()),
        n_boot=n_boot,
        seed=seed,
    )


def _check(what: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{what} must be a whole number of at least {least}; got {value!r:.100}.")


def _costs(explanation: Explanation, measure: Measure) -> Floats:
    """The cost of each row's best answer, NaN where it has none."""
    answers = explanation.answers
    best = np.flatnonzero(answers.rank == 0)
    costs = np.full(len(explanation.rows), np.nan)
    if callable(measure):
        rows = explanation.rows.iloc[answers.query[best]]
        after = explanation.table.rewrite(rows, answers.before[best], answers.codes[best])
        costs[answers.query[best]] = _checked(measure(rows, after), len(best))
    elif measure == "distance":
        costs[answers.query[best]] = answers.distance[best]
    elif measure == "n_changed":
        costs[answers.query[best]] = answers.changed[best].sum(axis=1)
    else:
        raise InputError(unknown_name("measure", measure, MEASURES))
    return costs


def _checked(given: Any, count: int) -> Floats:
    try:
        costs = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"measure must give numbers; got {given!r:.100}.") from error
    if costs.shape != (count,):
        raise InputError(f"measure must give one cost for each of the {count} answers; got shape {costs.shape}.")
    if not np.isfinite(costs).all():
        raise InputError("measure must give finite costs; got NaN or infinity.")
    return costs


def _lines(
    explanation: Explanation, groups: Groups, asked: NDArray[np.bool_], costs: Floats, n_boot: int, seed: int
) -> list[dict[str, Any]]:
    members = [np.flatnonzero(asked & (groups.of_row == k)) for k in range(len(groups.labels))]
    sizes = np.array([len(rows) for rows in members])
    if (sizes > 0).sum() < 2:
        raise InputError(
            f"Groups {groups.name!r} must tell at least two groups of rows apart; "
            f"got {shorten(groups.labels[k] for k in np.flatnonzero(sizes)) or 'none'} alone."
        )
    # Sorted, so that the order of the rows cannot matter, not even to the last bit.
    paid = [np.sort(costs[rows][~np.isnan(costs[rows])]) for rows in members]
    drawn = [_drawn(values, n_boot, [seed, k]) for k, values in enumerate(paid)]
    reference = int(sizes.argmax())
    changes = _changes(explanation, groups)
    return [
        {
            "attribute": groups.name,
            "group": label,
            "rows": int(sizes[k]),
            "left_out": int((~asked & (groups.of_row == k)).sum()),
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
    """For each row whether its best answer changes the attribute, NaN where there is none or it is not in the table."""
    changes = np.full(len(explanation.rows), np.nan)
    if groups.feature is not None:
        best = explanation.answers.rank == 0
        changes[explanation.answers.query[best]] = explanation.answers.changed[best, groups.feature]
    return changes


def _share(found: int, rows: int) -> dict[str, float]:
    """The share found with Wilson's interval, which holds near 0 and 1 too."""
    share = found / rows if rows else np.nan
    low = high = np.nan
    if rows >= FEW:
        square = NORMAL_TAIL**2
        centre = (found + square / 2) / (rows + square)
        half = NORMAL_TAIL * np.sqrt(share * (1 - share) * rows + square / 4) / (rows + square)
        low, high = max(0.0, float(centre - half)), min(1.0, float(centre + half))
    return {"share_found": share, "share_found_low": low, "share_found_high": high, "share_without": 1 - share}


@dataclass(frozen=True)
class _Draws:
    """Means and medians of a group drawn again and again; empty where there are too few rows for that."""

    means: Floats
    medians: Floats


def _drawn(values: Floats, n_boot: int, seed: list[int]) -> _Draws:
    if len(values) < FEW:
        return _Draws(np.zeros(0), np.zeros(0))
    rng = np.random.default_rng(seed)
    block = max(1, MOST_CELLS // len(values))
    means, medians = np.empty(n_boot), np.empty(n_boot)
    for start in range(0, n_boot, block):
        part = slice(start, min(start + block, n_boot))
        sample = values[rng.integers(len(values), size=(part.stop - start, len(values)))]
        means[part], medians[part] = sample.mean(axis=1), np.median(sample, axis=1)
    return _Draws(means, medians)


def _centre(values: Floats, drawn: _Draws) -> dict[str, float]:
    mean_low, mean_high = _interval(drawn.means)
    median_low, median_high = _interval(drawn.medians)
    return {
        "mean": _mean(values),
        "mean_low": mean_low,
        "mean_high": mean_high,
        "median": float(np.median(values)) if len(values) else np.nan,
        "median_low": median_low,
        "median_high": median_high,
    }


def _difference(values: Floats, drawn: _Draws, base: Floats, base_drawn: _Draws, same: bool) -> dict[str, float]:
    if same:
        return {"difference": 0.0, "difference_low": np.nan, "difference_high": np.nan}
    both = len(drawn.means) and len(base_drawn.means)
    low, high = _interval(drawn.means - base_drawn.means) if both else (np.nan, np.nan)
    return {"difference": _mean(values) - _mean(base), "difference_low": low, "difference_high": high}


def _interval(draws: Floats) -> tuple[float, float]:
    if not len(draws):
        return np.nan, np.nan
    low, high = np.percentile(draws, TAILS)
    return float(low), float(high)


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")
