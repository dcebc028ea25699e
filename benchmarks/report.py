"""The report of a run: tables, trade-offs, ranks, failures and conditions. Markdown and HTML."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import figures, measuring, ranking, relative, summary
from benchmarks.page import Block, Grid, Picture, Section, Text, as_html, as_markdown
from benchmarks.plan import Plan
from benchmarks.rivals.catalogue import ENTRIES
from benchmarks.runner import NOT_TRIED, TIMEOUT
from benchmarks.setting import BUNDLED
from benchmarks.store import Cell
from benchmarks.store import write as write_whole
from benchmarks.summary import Results
from fasterce.viz.formatting import counted

HEADER = {
    "runs": "runs",
    "tried": "tried %",
    "valid": "valid %",
    "success": "success %",
    "n_changed": "features",
    "gower_l1": "gower_l1",
    "euclidean": "euclidean",
    "l2": "L2",
    "linf": "L∞",
    "proximity": "proximity",
    "nn_ratio": "nn_ratio",
    "inlier": "inlier %",
    "ynn": "yNN %",
    "robust": "robust %",
    "recourse": "recourse %",
    "queries": "queries",
    "ms": "ms (10 – 90 %)",
    "ratio": "× ours",
    "batch": "ms in a batch",
    "setup": "set-up s",
    "in_model": "in model %",
    "calls": "calls",
    "rows": "model rows",
    "note": "note",
}
COST = ("queries", "ms", "ratio", "batch", "setup", "in_model", "calls", "rows", "note")
QUALITY = tuple(name for name in HEADER if name not in COST)
FORMS = {
    "diversity": "{:.3f}",
    "violations": "{:.2f}",
    "returned": "{:.1f}",
    "n_changed": "{:.2f}",
    "gower_l1": "{:.3f}",
    "euclidean": "{:.3f}",
    "l2": "{:.3f}",
    "linf": "{:.3f}",
    "proximity": "{:.2f}",
    "nn_ratio": "{:.2f}",
}
# Measures that are given with a 95 % interval of their mean.
WITH_INTERVAL = ("n_changed", "gower_l1", "euclidean", "nn_ratio")
SUPERLATIVES = {
    "gower_l1": "nearest",
    "n_changed": "fewest features",
    "nn_ratio": "nearest to real rows",
    "ms": "fastest one by one",
}
ABOUT_TRADE_OFFS = (
    "Means over valid counterfactuals; blue is ours. Hollow: fewer than 95 % of the queries have a valid counterfactual, "
    "so the mean is of the easy ones. No full point is better in both respects than a point on the line."
)
ABOUT_RANKS = (
    "Systems are ranked on every query: 1 is best, and systems without a valid counterfactual share the last place. Only "
    "queries that all systems were given, over all datasets of the model. In brackets the 95 % confidence interval of the "
    "mean rank (bootstrap over queries). Bold: the first system, and all that Wilcoxon's test with Holm's correction does "
    "not separate from it. Queries of one model are not independent, so the p-values are too small."
)
ABOUT_SUMMARY = (
    "The distance of each system divided by that of the nearest counterfactual known: the ratio of means over the queries "
    "of one dataset and model (a cell) with a valid counterfactual of the system, then the geometric mean over cells. In "
    "brackets its 95 % interval (bootstrap over queries), then the 10 and 90 % quantiles of the cells. The nearest known "
    "is the best valid counterfactual of all systems of this run. *÷ proven optimum*: the same ratio over the queries for "
    "which treecf or the MILP proves the nearest counterfactual by gower_l1. *within 1 %*: the share of counterfactuals "
    "at most 1 % farther than the nearest known. *ms*: the geometric mean over cells of the median processor time per "
    "explanation. A hollow point of the picture is of the bundled datasets only."
)
# Distances, and the systems left out of each because they minimise the other one.
DISTANCES = {
    "gower_l1": ("ours-closest-euclidean",),
    "euclidean": ("ours-closest", "ours-sparse", "treecf-exact", "treecf-genetic", "milp-exact"),
}
EXACT = ("treecf-exact", "milp-exact")
TRADE_OFFS = (
    ("gower_l1", "nn_ratio", ("gower_l1", "distance to real rows, nn_ratio"), ("low", "low"), False, "Near and real"),
    (
        "n_changed",
        "robust",
        ("features changed", "robust to noise, %"),
        ("low", "high"),
        False,
        "Few changes and robust",
    ),
    ("ms", "gower_l1", ("ms per explanation", "gower_l1"), ("low", "low"), True, "Fast and near"),
)


def write(out: Path, cells: Sequence[Cell], about: dict[str, Any], plan: Plan, *, quick: bool = False) -> None:
    """Write results.parquet, results.json, report.md with its figures, and report.html, which is self-contained."""
    results = Results.of(cells, {entry.name: entry.title for entry in plan.methods})
    results.lines.to_parquet(out / ".results.parquet")
    (out / ".results.parquet").replace(out / "results.parquet")
    described = [{**vars(cell.key), "fingerprint": cell.fingerprint, **cell.about} for cell in cells]
    write_whole(out / "results.json", json.dumps({**about, "cells": described}, indent=1, default=str))
    sections = list(sections_of(results, about, plan, quick))
    title = "Counterfactual explanations compared"
    write_whole(out / "report.md", as_markdown(title, sections, out))
    write_whole(out / "report.html", as_html(title, sections))


def sections_of(results: Results, about: dict[str, Any], plan: Plan, quick: bool) -> Iterator[Section]:
    yield "At a glance", list(overview(results, about, quick))
    for data, model in results.settings("free"):
        yield f"{data}, {model}", list(setting_blocks(results, data, model))
    yield from trade_offs(results)
    yield from ranks(results)
    yield from frozen(results)
    yield from several(results)
    yield from agreements(results)
    yield "What failed, and why", list(failed(results))
    yield "How it was measured", list(measured(about, plan))


def overview(results: Results, about: dict[str, Any], quick: bool) -> Iterator[Block]:
    if quick:
        yield Text("**A quick run on little data: it shows that everything works, not which system is better.**")
    lines = results.lines
    if not len(lines):
        yield Text("There are no results.")
        return
    free = lines[lines["task"] == "free"]
    yield Text(
        f"{counted(free['method'].nunique(), 'system')}, {counted(free['data'].nunique(), 'dataset')}, "
        f"{counted(free['model'].nunique(), 'kind')} of model, {len(lines):,} explanations, "
        f"{int((lines['status'] == TIMEOUT).sum()):,} of them timed out. "
        f"`{about['command']}`"
    )
    yield from relative_distances(results)
    for sentence in sentences(results):
        yield Text(sentence)
    yield Text(
        "gower_l1 / ms of one explanation, medians over runs; in brackets the share of queries tried that have a valid "
        "counterfactual, if it is not 100 %."
    )
    yield from near_and_fast_tables(results)


def relative_distances(results: Results) -> Iterator[Block]:
    """All systems over all datasets and models, as one figure and one table per distance."""
    free = summary.exclude_not_run(results.part(task="free"))
    panels = [(name, points) for name in DISTANCES if name in free and len(points := relative_points(results, free, name))]
    if not panels:
        return
    drawn = figures.near_and_fast(panels, summary_title(free))
    yield Picture("summary", drawn, "Distance relative to the nearest known against milliseconds, a point per system")
    shares = ", ".join(f"{model} {count:,} of {tried:,}" for model, (count, tried) in relative.proven(free).items())
    yield Text(ABOUT_SUMMARY + (f" Proven to be the nearest by gower_l1, of the queries tried: {shares}." if shares else ""))
    for name, points in panels:
        yield Grid([name, *SUMMARY_HEADER], [summary_line(at) for _, at in points.iterrows()])


def summary_title(free: pd.DataFrame) -> str:
    settings = free[["data", "model"]].drop_duplicates()
    kinds = counted(settings["model"].nunique(), "kind")
    return (
        f"How near, how fast: {counted(settings['data'].nunique(), 'dataset')}, {kinds} of model, {len(free):,} explanations"
    )


SUMMARY_HEADER = (
    "cells",
    "queries",
    "valid %",
    "÷ nearest known",
    "10 – 90 % of cells",
    "÷ proven optimum",
    "within 1 %",
    "ms",
)


def relative_points(results: Results, free: pd.DataFrame, name: str) -> pd.DataFrame:
    points = relative.table(relative.cells(free, name)).drop(index=list(DISTANCES[name]), errors="ignore")
    all_datasets = {entry.name for entry in ENTRIES if entry.all_datasets}
    return points.assign(
        title=[results.title(method) for method in points.index],
        ours=points.index.str.startswith("ours-"),
        exact=points.index.isin(EXACT),
        all_datasets=points.index.isin(all_datasets),
    )


def summary_line(at: pd.Series) -> list[str]:
    return [
        at["title"],
        f"{at['cells']:.0f}",
        f"{at['queries']:,.0f}",
        percent(at["valid"]),
        f"{ratio(at['ratio'])} ({ratio(at['low'])} – {ratio(at['high'])})",
        f"{ratio(at['least'])} – {ratio(at['most'])}",
        "" if np.isnan(at["to_optimum"]) else ratio(at["to_optimum"]),
        f"{at['near']:.0f} %",
        three_digits(at["ms"]),
    ]


def percent(value: float) -> str:
    """Return a percentage that is 100 only if all are."""
    return "100" if value == 100 else f"{min(value, 99.9):.1f}"


def ratio(value: float) -> str:
    return f"{value:.3f}" if value < 2 else f"{value:.1f}"


def near_and_fast_tables(results: Results) -> Iterator[Grid]:
    """All systems on all models: distance and time, one table per dataset, one column per model."""
    settings = results.settings("free")
    for name in dict.fromkeys(data for data, _ in settings):
        models = {
            f"{data}, {model}": summary.per_run(results.part(task="free", data=data, model=model)).groupby("method")
            for data, model in settings
            if data == name
        }
        rows = [
            [
                results.title(method),
                *(near_and_fast(runs.get_group(method)) if method in runs.groups else "" for runs in models.values()),
            ]
            for method in results.part(task="free", data=name)["method"].unique()
        ]
        yield Grid(["system", *models], rows)


def near_and_fast(runs: pd.DataFrame) -> str:
    valid, tried, near, ms = runs[["valid", "tried", "gower_l1", "ms"]].median()
    valid = 100 * valid / tried if tried else 0.0
    if valid == 0 or np.isnan(near):
        return "– (0 %)"
    return f"{near:.3f} / {three_digits(ms)}" + ("" if valid >= 99.95 else f" ({valid:.0f} %)")


def sentences(results: Results) -> Iterator[str]:
    """Sentences generated from the numbers."""
    for data, model in results.settings("free"):
        runs = summary.per_run(summary.exclude_not_run(results.part(task="free", data=data, model=model)))
        mean = runs.groupby("method", sort=False)[["valid", "gower_l1", "n_changed", "nn_ratio", "ms"]].mean()
        complete = mean[mean["valid"] >= 99.95]
        if len(complete) < 2:
            continue
        known = {name: text for name, text in SUPERLATIVES.items() if complete[name].notna().any()}
        parts = [f"{text} {best_of(complete[name], results)}" for name, text in known.items()]
        counts = f"of {len(mean)} systems {len(complete)} have a valid counterfactual for every query"
        yield f"{data}, {model}: {counts}; of these {', '.join(parts)}."


def best_of(values: pd.Series, results: Results) -> str:
    """Name the systems with the lowest value."""
    lowest = values.min()
    names = [results.title(str(method)) for method in values.index[values <= lowest * (1 + 1e-9)]]
    return f"{' and '.join(names)} ({lowest:.3g})"


def setting_blocks(results: Results, data: str, model: str) -> Iterator[Block]:
    facts = black_box(results, data, model)
    if facts:
        yield Text(
            f"Balanced accuracy of the model on test rows {100 * facts['accuracy']:.0f} %, {facts['training_rows']:,} "
            f"training rows, {facts['refused']:,} rows refused. Shares are of all queries, failures included; the other "
            "means are over valid counterfactuals; in brackets the 95 % interval of the mean (bootstrap over queries) of "
            "features, gower_l1, euclidean and nn_ratio, and the lowest and highest run of the others."
        )
    yield main_table(results, data, model, "free", QUALITY)
    yield main_table(results, data, model, "free", COST)


def black_box(results: Results, data: str, model: str) -> dict[str, Any]:
    about = results.about
    known = about[(about["data"] == data) & (about["model"] == model)]
    found = known["black_box"].dropna() if "black_box" in known else []
    return dict(found.iloc[0]) if len(found) else {}


def main_table(results: Results, data: str, model: str, task: str, columns: Sequence[str]) -> Grid:
    lines = results.part(task=task, data=data, model=model)
    runs = summary.per_run(lines)
    runs["ratio"] = summary.times_reference(runs)
    about = results.about
    known = about[(about["data"] == data) & (about["model"] == model) & (about["task"] == task)]
    rows = []
    for method, group in runs.groupby("method", sort=False):
        method_lines = lines[lines["method"] == method]
        cells = {name: cell(name, group, method_lines, known[known["method"] == method]) for name in columns}
        rows.append([results.title(str(method)), *cells.values()])
    return Grid(["system", *(HEADER.get(name, name) for name in columns)], rows)


def cell(name: str, runs: pd.DataFrame, lines: pd.DataFrame, about: pd.DataFrame) -> str:
    special = {
        "runs": lambda: f"{len(runs)}",
        **{score: lambda score=score: with_interval(lines, score) for score in WITH_INTERVAL},
        "ms": lambda: milliseconds(lines["seconds"]),
        "setup": lambda: measuring.spread(list(pd.to_numeric(about["setup"], errors="coerce")), "{:.1f}"),
        "note": lambda: note(about),
        "batch": lambda: measuring.spread([1000 * value for value in batches(about)], "{:.2f}"),
        "ratio": lambda: measuring.spread(list(runs["ratio"]), "{:.2f}" if runs["ratio"].max() < 10 else "{:.0f}"),
    }
    return special[name]() if name in special else measuring.spread(list(runs[name]), FORMS.get(name, "{:.0f}"))


def with_interval(lines: pd.DataFrame, score: str) -> str:
    """Return the mean over valid counterfactuals with its 95 % confidence interval."""
    mean, (low, high) = lines[score].mean(), summary.interval(lines[score])
    if np.isnan(mean):
        return ""
    text, *ends = (FORMS[score].format(value) for value in (mean, low, high))
    return text if np.isnan(low) or ends[0] == ends[1] else f"{text} ({' – '.join(ends)})"


def note(about: pd.DataFrame) -> str:
    """Return the notes of a system in its last run, and why it was stopped."""
    notes = [text for texts in about.get("notes", pd.Series(dtype=object)).dropna().tail(1) for text in texts]
    failures = [text for text in about.get("failure", pd.Series(dtype=object)).dropna().unique() if text]
    return "; ".join([*notes, *failures])


def milliseconds(seconds: pd.Series) -> str:
    known = 1000 * seconds.dropna()
    if not len(known):
        return ""
    low, middle, high = map(three_digits, known.quantile([0.1, 0.5, 0.9]))
    return f"{middle} ({low} – {high})"


def three_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def batches(about: pd.DataFrame) -> list[float]:
    """Return the seconds per row of a batch, one value per run."""
    if "batches" not in about:
        return []
    return [
        float(np.median(one["batches"])) / one["batch_rows"]
        for _, one in about.iterrows()
        if isinstance(one["batches"], list) and one["batches"]
    ]


def shown_settings(results: Results) -> list[tuple[str, str]]:
    """Return the bundled datasets with their models, which have figures of their own; all if none is bundled."""
    settings = results.settings("free")
    return [setting for setting in settings if setting[0] in BUNDLED] or settings


def trade_offs(results: Results) -> Iterator[Section]:
    blocks: list[Block] = []
    for model in dict.fromkeys(model for _, model in shown_settings(results)):
        parts = [
            summary.per_run(results.part(task="free", data=data, model=model))
            .groupby("method", sort=False)
            .mean(numeric_only=True)
            .assign(data=data)
            for data, other in shown_settings(results)
            if other == model
        ]
        points = pd.concat(parts).reset_index()
        points["title"] = points["method"].map(results.title)
        points["ours"] = points["method"].str.startswith("ours-")
        for x, y, names, better, log, title in TRADE_OFFS:
            if points[[x, y]].dropna().empty:
                continue
            drawn = figures.pareto(points, x, y, names, f"{title} ({model})", better, log)
            blocks.append(Picture(f"pareto-{model}-{x}-{y}", drawn, f"{names[0]} against {names[1]}, black box {model}"))
    if blocks:
        yield "Trade-offs", [Text(ABOUT_TRADE_OFFS), *blocks]


def ranks(results: Results) -> Iterator[Section]:
    blocks: list[Block] = []
    for model in dict.fromkeys(model for _, model in results.settings("free")):
        lines = summary.exclude_not_run(results.part(task="free", model=model))
        found = [one for score in ranking.LOWER_IS_BETTER if (one := ranking.rank(lines, score)) is not None]
        if found:
            blocks += [
                Text(f"**{model}**"),
                rank_table(found, results),
                *(Text(rank_sentence(one, results)) for one in found),
            ]
    if blocks:
        yield "Ranks, row by row", [Text(ABOUT_RANKS), *blocks]


def rank_sentence(found: ranking.Ranking, results: Results) -> str:
    tied = found.tied
    others = f", not separated from {', '.join(map(results.title, tied))}" if tied else ", ahead of all others"
    return (
        f"{found.score}: {found.blocks} queries, Friedman p = {found.friedman:.2g}; mean ranks farther apart than "
        f"{found.apart:.2f} differ (Nemenyi, 5 %). First: {results.title(found.best)}{others} (Wilcoxon – Holm, 5 %)."
    )


def rank_table(found: Sequence[ranking.Ranking], results: Results) -> Grid:
    methods = found[0].table.index
    lines = [[results.title(str(name)), *(rank_cell(one, str(name)) for one in found)] for name in methods]
    return Grid(["system", *(one.score for one in found)], lines)


def rank_cell(found: ranking.Ranking, method: str) -> str:
    at = found.table.loc[method]
    text = f"{at['rank']:.2f} ({at['low']:.2f} – {at['high']:.2f})"
    return f"**{text}**" if method == found.best or method in found.tied else text


def tables_of(results: Results, task: str, columns: tuple[str, ...]) -> list[Block]:
    """Return a table for each dataset and model of a task, below its name."""
    blocks: list[Block] = []
    for data, model in results.settings(task):
        blocks += [Text(f"**{data}, {model}**"), main_table(results, data, model, task, columns)]
    return blocks


def frozen(results: Results) -> Iterator[Section]:
    columns = ("valid", "success", "violations", "n_changed", "gower_l1", "nn_ratio", "ms")
    tables = tables_of(results, "frozen", columns)
    if tables:
        text = (
            "The dataset's immutable columns (gender, race, age of an account …) must not change. *success*: valid and no "
            "constraint broken. Systems without such a constraint are run all the same and break it."
        )
        yield "With columns frozen", [Text(text), *tables]


def several(results: Results) -> Iterator[Section]:
    columns = ("valid", "success", "returned", "diversity", "gower_l1", "ms")
    tables = tables_of(results, "several", columns)
    if tables:
        text = (
            "Four counterfactuals per query, of systems that return several. *diversity*: mean gower_l1 between two of them; "
            "the first is scored."
        )
        yield "Several counterfactuals", [Text(text), *tables]


def agreements(results: Results) -> Iterator[Section]:
    blocks: list[Block] = []
    for data, model in shown_settings(results):
        shares = summary.agreement(summary.exclude_not_run(results.part(task="free", data=data, model=model)))
        if len(shares) > 1:
            named = shares.rename(index=results.title, columns=results.title)
            blocks.append(
                Picture(f"agreement-{data}-{model}", figures.heat(named, f"{data}, {model}"), f"Agreement on {data}, {model}")
            )
    if blocks:
        text = "Features both change as a share of those either changes, over queries with a valid counterfactual of both."
        yield "Do they name the same features?", [Text(text), *blocks]


def failed(results: Results) -> Iterator[Block]:
    lines = results.lines
    if not len(lines):
        return
    gone = lines.groupby("method")["status"].agg(lambda status: (status == NOT_TRIED).all())
    for method in gone[gone].index:
        why = lines.loc[lines["method"] == method, "reason"].iloc[0]
        yield Text(f"**{results.title(method)}** was not run: {why}")
    found = summary.failures(lines[~lines["method"].isin(gone[gone].index)])
    rows = [[results.title(one.method), one.data, one.model, one.task, f"{one.rows}", one.why] for one in found.itertuples()]
    if rows:
        yield Grid(["system", "data", "model", "task", "queries", "why"], rows)
    elif not gone.any():
        yield Text("Nothing failed.")


def measured(about: dict[str, Any], plan: Plan) -> Iterator[Block]:
    machine, limits = about["machine"], plan.limits
    yield Text(f"`{about['command']}`, {about['seconds'] / 60:.0f} minutes in this run (earlier cells are not included).")
    yield Text(
        f"{machine['cpu']}, {machine['cores']} cores; load before {about['load']['before']}, after {about['load']['after']}; "
        + ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
        + "; threads "
        + ", ".join(f"{name}={count}" for name, count in machine["threads"].items())
    )
    yield Text(
        f"Every system explains the first {plan.rows} refused rows (test rows first), one at a time in a process of its "
        f"own, after one that does not count. A row has {limits.row:g} s; then the process is killed and a new one "
        f"continues ({limits.processes} at most). No row is started after {limits.method:g} s of processor time, or "
        f"{limits.slow:g} s for a system slower than 50 ms per row, which then has fewer rows. Set-up has {limits.setup:g} "
        "s and is measured separately. Every row without a valid counterfactual counts as invalid. Realism is measured "
        f"against {plan.reference_rows:,} training rows drawn once. Times are processor times; read them as ratios within "
        "one run. What is not fair, and how it was handled: benchmarks/README.md."
    )
    costly = [entry.title for entry in plan.methods if entry.costly]
    if plan.skip_costly and costly:
        yield Text(f"{', '.join(costly)} take minutes per model: they ran for the task *free* and the MLP only.")
    if about["recomputed"]:
        yield Text(f"{len(about['recomputed'])} cells were of other code, versions or options and were computed again.")
