"""From measured cells to the tables of `results/quality.md`."""

from collections.abc import Sequence
from typing import Any

from benchmarks import measuring

Cell = dict[str, Any]

# Title, measure, what it is a share of.
BETWEEN_CALLS = (
    ("beaten", "beaten", "found"),
    ("by sparse", "beaten_by_sparse", "found"),
    ("by all", "beaten_by_all", "found"),
    ("by n=3", "beaten_by_n3", "found"),
    ("by one change", "beaten_by_single", "found"),
    ("first of n=3 worse", "n3_first_worse", "found"),
    ("sparse: more changes", "sparse_more_changes", "sparse_found"),
    ("sparse: one change missed", "sparse_single_missed", "sparse_found"),
)
MINIMAL = (
    ("closest: unnecessary", "closest_unnecessary", "found"),
    ("one step back", "closest_one_step_back", "found"),
    ("3 % back", "closest_moved_back", "found"),
    ("sparse: unnecessary", "sparse_unnecessary", "sparse_found"),
    ("one step back", "sparse_one_step_back", "sparse_found"),
    ("short refuted by one", "short_refuted_by_single", "short"),
    ("by two", "short_refuted_by_pair", "short"),
    ("none found refuted", "none_found_refuted", "none_found"),
    ("narrow: refuted", "narrow_refuted", "narrow_none"),
)
TIMES = (
    ("predict 1", "predict_one_ms_p50"),
    ("predict 2", "predict_two_ms_p50"),
    ("query p50", "query_ms_p50"),
    ("p95", "query_ms_p95"),
    ("minus predict 2", "query_minus_predict_two_ms_p50"),
    ("minus model", "outside_model_ms_p50"),
    ("calls", "query_calls"),
    ("batch: own CPU", "batch_own_cpu_ms"),
    ("in model", "batch_model_cpu_ms"),
    ("predict", "batch_predict_cpu_ms"),
    ("calls", "batch_model_calls"),
    ("rows per query", "batch_model_rows"),
)
FIT = (
    ("fit s", "fit_seconds"),
    ("fit CPU s", "fit_cpu_seconds"),
    ("fit in model s", "fit_model_seconds"),
    ("fit rows", "fit_model_rows"),
)


# Part, measure and title of what is compared with an earlier run.
COMPARED = (
    ("optimum", "ratio_of_means", "optimum x"),
    ("optimum", "worst_ratio", "worst"),
    ("consistency", "beaten", "beaten"),
    ("consistency", "n3_first_worse", "first of n=3 worse"),
    ("consistency", "closest_one_step_back", "one step back"),
    ("consistency", "closest_mean_distance", "mean distance"),
    ("time", "query_ms_p50", "query ms"),
    ("time", "batch_own_cpu_ms", "batch: own CPU ms"),
    ("fit", "fit_cpu_seconds", "fit CPU s"),
    ("fit", "fit_model_rows", "fit rows"),
)


def page(cells: Sequence[Cell], command: str, before: Sequence[Cell] = ()) -> str:
    """Return the report as Markdown; `before` are the cells of an earlier run to compare with."""
    sections = [_compared(cells, before), _optimum(cells), _consistency(cells), _time(cells), _failed(cells)]
    return "\n\n".join([f"# Quality of the search\n\n`{command}`. {measuring.machine()}", *filter(None, sections)]) + "\n"


def line(cell: Cell) -> str:
    """Return the main figures of one cell for the progress line."""
    parts = []
    if "optimum" in cell:
        known = cell["optimum"]
        ratio, worst = _number(known["ratio_of_means"]), _number(known["worst_ratio"])
        parts.append(f"optimum x {ratio}, worst {worst} of {known['compared']}")
    if "consistency" in cell:
        known = cell["consistency"]
        parts.append(f"beaten {known['beaten']}/{known['found']}, one step back {known['closest_one_step_back']}")
    if "time" in cell:
        known = cell["time"]
        parts.append(f"query {known['query_ms_p50']:.1f} ms, batch {known['batch_own_cpu_ms']:.3f} ms")
    return "; ".join(parts)


def _compared(cells: Sequence[Cell], before: Sequence[Cell]) -> str:
    earlier = {(cell["data"], cell["model"]): cell for cell in before}
    both = [(earlier[key], cell) for cell in cells if (key := (cell["data"], cell["model"])) in earlier]
    known = [entry for entry in COMPARED if any(entry[0] in old and entry[0] in new for old, new in both)]
    if not known:
        return ""
    lines = []
    for old, new in both:
        pairs = [(old.get(part, {}).get(name), new.get(part, {}).get(name)) for part, name, _ in known]
        lines.append([new["data"], new["model"], *(f"{_number(first)} → {_number(second)}" for first, second in pairs)])
    return f"## Before → after\n\n{measuring.table(['data', 'model', *(title for _, _, title in known)], lines)}"


def _optimum(cells: Sequence[Cell]) -> str:
    measured = [cell for cell in cells if "optimum" in cell]
    if not measured:
        return ""
    header = ("data", "model", "proven", "mean", "optimum", "ratio", "worst", "within 1.01", "missed", "contradicted")
    names = ("mean_distance", "mean_optimum", "ratio_of_means", "worst_ratio")
    lines = []
    for cell in measured:
        known = cell["optimum"]
        values = [_number(known[name], 4) for name in names]
        counts = [f"{known['within']}/{known['compared']}", f"{known['missed']}", f"{known['contradicted']}"]
        lines.append([cell["data"], cell["model"], f"{known['proven']}/{known['tried']}", *values, *counts])
    return f"""## Against the exact optimum

`closest` with `distance="gower"`, mean distance of the queries whose optimum was proven within the time, divided by the mean
optimum; `worst` is the largest ratio of one query. Optima: treecf's exact search for trees, a mixed-integer program solved by
HiGHS for networks and linear models, both with the values the schema allows. *missed*: no counterfactual found although there
is one. *contradicted*: ours is closer than the proven optimum; should be 0.

{measuring.table(header, lines)}"""


def _consistency(cells: Sequence[Cell]) -> str:
    measured = [cell for cell in cells if "consistency" in cell]
    if not measured:
        return ""
    return f"""## Consistency

Queries for which a counterfactual of another call, or of exhaustive search over single changes, is closer than the one of
`closest` ("beaten"), of those with one; `largest` is the largest ratio of the two distances. `sparse` counts against the
fewest changes of any call. *invalid* must be 0: it counts counterfactuals that miss the target or have a value not allowed.

{_shares(measured, BETWEEN_CALLS, ("invalid", "largest"))}

Counterfactuals that keep the target if one change is reverted (*unnecessary*), or if one number is moved back to the query by
one step of the schema or by 3 % of its change. Queries with fewer than three counterfactuals of `n=3` for which exhaustive
search finds another minimal set of one or two features, of those with fewer; `none_found` although one change suffices, with
all changes allowed, and (*narrow*) with at most one change and numbers within 25 %.

{_shares(measured, MINIMAL)}"""


def _shares(cells: Sequence[Cell], columns: Sequence[tuple[str, str, str]], more: Sequence[str] = ()) -> str:
    lines = []
    for cell in cells:
        known = cell["consistency"]
        values = [f"{known[name]}/{known[of]}" if name in known else "" for _, name, of in columns]
        extra = {"invalid": f"{known['invalid'] + known['not_allowed']}", "largest": f"{known['largest_excess']:.2f}"}
        lines.append([cell["data"], cell["model"], *values, *(extra[name] for name in more)])
    totals = [_total(cells, name, of) for _, name, of in columns]
    lines.append(["all", "", *totals, *[""] * len(more)])
    return measuring.table(["data", "model", *(title for title, _, _ in columns), *more], lines)


def _total(cells: Sequence[Cell], name: str, of: str) -> str:
    known = [cell["consistency"] for cell in cells if name in cell["consistency"]]
    count, whole = sum(one[name] for one in known), sum(one[of] for one in known)
    return f"{count}/{whole} ({count / whole:.1%})" if whole else "0"


def _time(cells: Sequence[Cell]) -> str:
    measured = [cell for cell in cells if "time" in cell]
    if not measured:
        return ""
    header = ["data", "model", *(title for title, _ in (*TIMES, *FIT))]
    lines = [
        [cell["data"], cell["model"], *(_number(cell["time"][name]) for _, name in TIMES)]
        + [_number(cell["fit"][name]) for _, name in FIT]
        for cell in measured
    ]
    return f"""## Time

Milliseconds. One query: from a one-row table to `result.counterfactuals`, and `predict` of one and two rows in turn with it;
*minus model* is without the time in the model. Batch: CPU per query outside the model, in it, and of one `predict` of the
batch.

{measuring.table(header, lines)}"""


def _failed(cells: Sequence[Cell]) -> str:
    failed = [f"- {cell['data']}, {cell['model']}: {cell['error']}" for cell in cells if "error" in cell]
    return "\n".join(["## Failed", "", *failed]) if failed else ""


def _number(value: Any, digits: int = 3) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}g}"
