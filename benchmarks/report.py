"""A run as one page: tables, trade-offs, ranks, what failed and how it was measured. Markdown and HTML."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import figures, measuring, ranking, relative, summary
from benchmarks.asking import NOT_TRIED, TIMEOUT
from benchmarks.page import Block, Grid, Picture, Section, Text, as_html, as_markdown
from benchmarks.plan import Plan
from benchmarks.rivals.catalogue import ENTRIES
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
    "usage": "queries",
    "ms": "ms (10 – 90 %)",
    "ratio": "× ours",
    "batch": "ms in a batch",
    "setup": "set-up s",
    "inside": "in model %",
    "calls": "calls",
    "rows": "model rows",
    "note": "note",
}
COST = ("usage", "ms", "ratio", "batch", "setup", "inside", "calls", "rows", "note")
QUALITY = tuple(name for name in HEADER if name not in COST)
FORMS = {
    "diversity": "{:.3f}",
    "violations": "{:.2f}",
    "answers": "{:.1f}",
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
    "Means over valid answers; blue is ours. Hollow: fewer than 95 % of the rows have a valid answer, so the mean is of the "
    "easy ones. Points on the line are beaten by no full point in both."
)
ABOUT_RANKS = (
    "Every row is a block: all systems are ranked on it, 1 is best, and who has no valid answer shares the last place. Only "
    "queries that all systems were given, over all datasets of the black box. In brackets where the mean rank lies with 95 % "
    "confidence (bootstrap over rows). Bold: the first, and all whom Wilcoxon's test with Holm's correction does not tell "
    "from it. Rows of the same black box are related, so read the tests as optimistic."
)
ABOUT_SUMMARY = (
    "The distance of each system divided by that of the nearest counterfactual known: the ratio of means over the queries of "
    "one dataset and black box (a cell) that the system answers validly, then the geometric mean over cells. In brackets its "
    "95 % interval (bootstrap over queries), then the 10 and 90 % quantiles of the cells. The nearest known is the best "
    "valid answer of all systems of this run. *÷ proven optimum*: the same ratio over the queries for which treecf or the "
    "MILP proves the nearest counterfactual by gower_l1. *within 1 %*: the share of answers at most 1 % farther than the "
    "nearest known. *ms*: the geometric mean over cells of the median processor time per explanation. A hollow point of "
    "the picture is of the bundled datasets only."
)
# Distances, and the systems that are left out of each because they minimise the other one.
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
        ("features changed", "robust under shaking, %"),
        ("low", "high"),
        False,
        "Few changes and robust",
    ),
    ("ms", "gower_l1", ("ms an explanation", "gower_l1"), ("low", "low"), True, "Fast and near"),
)


def write(out: Path, cells: Sequence[Cell], about: dict[str, Any], plan: Plan, *, quick: bool = False) -> None:
    """results.parquet, results.json, report.md with its pictures, and report.html that needs nothing else."""
    results = Results.of(cells, {entry.name: entry.title for entry in plan.methods})
    results.lines.to_parquet(out / ".results.parquet")
    (out / ".results.parquet").replace(out / "results.parquet")
    described = [{**vars(cell.key), "made_by": cell.made_by, **cell.about} for cell in cells]
    write_whole(out / "results.json", json.dumps({**about, "cells": described}, indent=1, default=str))
    sections = list(sections_of(results, about, plan, quick))
    title = "Counterfactual explanations side by side"
    write_whole(out / "report.md", as_markdown(title, sections, out))
    write_whole(out / "report.html", as_html(title, sections))


def sections_of(results: Results, about: dict[str, Any], plan: Plan, quick: bool) -> Iterator[Section]:
    yield "At a glance", list(glance(results, about, quick))
    for data, box in results.settings("free"):
        yield f"{data}, {box}", list(setting_blocks(results, data, box))
    yield from trade_offs(results)
    yield from ranks(results)
    yield from frozen(results)
    yield from several(results)
    yield from agreements(results)
    yield "What failed, and why", list(failed(results))
    yield "How it was measured", list(measured(about, plan))


def glance(results: Results, about: dict[str, Any], quick: bool) -> Iterator[Block]:
    if quick:
        yield Text("**A quick run on little data: it shows that everything works, not who is better.**")
    lines = results.lines
    if not len(lines):
        yield Text("There are no results.")
        return
    free = lines[lines["question"] == "free"]
    yield Text(
        f"{counted(free['method'].nunique(), 'system')}, {counted(free['data'].nunique(), 'dataset')}, "
        f"{counted(free['box'].nunique(), 'kind')} of black box, {len(lines):,} explanations, "
        f"{int((lines['status'] == TIMEOUT).sum()):,} of them timed out. "
        f"`{about['command']}`"
    )
    yield from summarised(results)
    for sentence in reading(results):
        yield Text(sentence)
    yield Text(
        "gower_l1 / ms of one explanation, medians over runs; in brackets the share of the rows tried that have a valid "
        "answer, where it is not all."
    )
    yield from overview(results)


def summarised(results: Results) -> Iterator[Block]:
    """Every system over all datasets and black boxes, as one picture and a table per distance."""
    free = summary.came_to_answer(results.part(question="free"))
    panels = [(name, points) for name in DISTANCES if name in free and len(points := relative_points(results, free, name))]
    if not panels:
        return
    drawn = figures.near_and_fast(panels, how_many(free))
    yield Picture("summary", drawn, "Distance relative to the nearest known against milliseconds, a point per system")
    shares = ", ".join(f"{box} {count:,} of {tried:,}" for box, (count, tried) in relative.proven(free).items())
    yield Text(ABOUT_SUMMARY + (f" Proven to be the nearest by gower_l1, of the queries tried: {shares}." if shares else ""))
    for name, points in panels:
        yield Grid([name, *SUMMARY_HEADER], [summary_line(at) for _, at in points.iterrows()])


def how_many(free: pd.DataFrame) -> str:
    settings = free[["data", "box"]].drop_duplicates()
    kinds = counted(settings["box"].nunique(), "kind")
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
    everywhere = {entry.name for entry in ENTRIES if entry.everywhere}
    return points.assign(
        title=[results.title(method) for method in points.index],
        ours=points.index.str.startswith("ours-"),
        exact=points.index.isin(EXACT),
        everywhere=points.index.isin(everywhere),
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


def overview(results: Results) -> Iterator[Grid]:
    """Everybody on everything: how near and how fast, a table per dataset, a column per black box."""
    settings = results.settings("free")
    for name in dict.fromkeys(data for data, _ in settings):
        boxes = {
            f"{data}, {box}": summary.per_run(results.part(question="free", data=data, box=box)).groupby("method")
            for data, box in settings
            if data == name
        }
        rows = [
            [
                results.title(method),
                *(near_and_fast(own.get_group(method)) if method in own.groups else "" for own in boxes.values()),
            ]
            for method in results.part(question="free", data=name)["method"].unique()
        ]
        yield Grid(["system", *boxes], rows)


def near_and_fast(runs: pd.DataFrame) -> str:
    valid, tried, near, ms = runs[["valid", "tried", "gower_l1", "ms"]].median()
    valid = 100 * valid / tried if tried else 0.0
    if valid == 0 or np.isnan(near):
        return "– (0 %)"
    return f"{near:.3f} / {three_digits(ms)}" + ("" if valid >= 99.95 else f" ({valid:.0f} %)")


def reading(results: Results) -> Iterator[str]:
    """What the numbers say, in sentences made from them."""
    for data, box in results.settings("free"):
        runs = summary.per_run(summary.came_to_answer(results.part(question="free", data=data, box=box)))
        mean = runs.groupby("method", sort=False)[["valid", "gower_l1", "n_changed", "nn_ratio", "ms"]].mean()
        sure = mean[mean["valid"] >= 99.95]
        if len(sure) < 2:
            continue
        parts = [f"{said} {best_of(sure[name], results)}" for name, said in SUPERLATIVES.items() if sure[name].notna().any()]
        yield f"{data}, {box}: of {len(mean)} systems {len(sure)} answer every row validly; of these {', '.join(parts)}."


def best_of(values: pd.Series, results: Results) -> str:
    """Who has the lowest value, all of them if several do."""
    lowest = values.min()
    names = [results.title(str(method)) for method in values.index[values <= lowest * (1 + 1e-9)]]
    return f"{' and '.join(names)} ({lowest:.3g})"


def setting_blocks(results: Results, data: str, box: str) -> Iterator[Block]:
    facts = black_box(results, data, box)
    if facts:
        yield Text(
            f"Balanced accuracy of the black box on test rows {100 * facts['accuracy']:.0f} %, {facts['training_rows']:,} "
            f"training rows, {facts['refused']:,} rows refused. Shares are of all queries, failures included; the other "
            "means are over valid answers; in brackets the 95 % interval of the mean (bootstrap over rows) of features, "
            "gower_l1, euclidean and nn_ratio, and the lowest and highest run of the others."
        )
    yield main_table(results, data, box, "free", QUALITY)
    yield main_table(results, data, box, "free", COST)


def black_box(results: Results, data: str, box: str) -> dict[str, Any]:
    about = results.about
    known = about[(about["data"] == data) & (about["box"] == box)]
    found = known["black_box"].dropna() if "black_box" in known else []
    return dict(found.iloc[0]) if len(found) else {}


def main_table(results: Results, data: str, box: str, question: str, columns: Sequence[str]) -> Grid:
    lines = results.part(question=question, data=data, box=box)
    runs = summary.per_run(lines)
    runs["ratio"] = summary.times_reference(runs)
    about = results.about
    known = about[(about["data"] == data) & (about["box"] == box) & (about["question"] == question)]
    rows = []
    for method, group in runs.groupby("method", sort=False):
        own = lines[lines["method"] == method]
        cells = {name: cell(name, group, own, known[known["method"] == method]) for name in columns}
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
    """Return the mean over valid answers and where it lies with 95 % confidence."""
    mean, (low, high) = lines[score].mean(), summary.interval(lines[score])
    if np.isnan(mean):
        return ""
    said, *ends = (FORMS[score].format(value) for value in (mean, low, high))
    return said if np.isnan(low) or ends[0] == ends[1] else f"{said} ({' – '.join(ends)})"


def note(about: pd.DataFrame) -> str:
    """What a system says of its own answers, in its last run, and why it was given up."""
    said = [word for words in about.get("notes", pd.Series(dtype=object)).dropna().tail(1) for word in words]
    failures = [word for word in about.get("failure", pd.Series(dtype=object)).dropna().unique() if word]
    return "; ".join([*said, *failures])


def milliseconds(seconds: pd.Series) -> str:
    known = 1000 * seconds.dropna()
    if not len(known):
        return ""
    low, middle, high = map(three_digits, known.quantile([0.1, 0.5, 0.9]))
    return f"{middle} ({low} – {high})"


def three_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def batches(about: pd.DataFrame) -> list[float]:
    """Seconds a row of one call for many."""
    if "batches" not in about:
        return []
    return [
        float(np.median(one["batches"])) / one["batch_rows"]
        for _, one in about.iterrows()
        if isinstance(one["batches"], list) and one["batches"]
    ]


def shown_settings(results: Results) -> list[tuple[str, str]]:
    """Return the bundled datasets with their black boxes, which have pictures of their own; all if none is bundled."""
    settings = results.settings("free")
    return [setting for setting in settings if setting[0] in BUNDLED] or settings


def trade_offs(results: Results) -> Iterator[Section]:
    blocks: list[Block] = []
    for box in dict.fromkeys(box for _, box in shown_settings(results)):
        parts = [
            summary.per_run(results.part(question="free", data=data, box=box))
            .groupby("method", sort=False)
            .mean(numeric_only=True)
            .assign(data=data)
            for data, other in shown_settings(results)
            if other == box
        ]
        points = pd.concat(parts).reset_index()
        points["title"] = points["method"].map(results.title)
        points["ours"] = points["method"].str.startswith("ours-")
        for x, y, names, better, log, title in TRADE_OFFS:
            if points[[x, y]].dropna().empty:
                continue
            drawn = figures.pareto(points, x, y, names, f"{title} ({box})", better, log)
            blocks.append(Picture(f"pareto-{box}-{x}-{y}", drawn, f"{names[0]} against {names[1]}, black box {box}"))
    if blocks:
        yield "Trade-offs", [Text(ABOUT_TRADE_OFFS), *blocks]


def ranks(results: Results) -> Iterator[Section]:
    blocks: list[Block] = []
    for box in dict.fromkeys(box for _, box in results.settings("free")):
        lines = summary.came_to_answer(results.part(question="free", box=box))
        found = [one for score in ranking.LOWER_IS_BETTER if (one := ranking.rank(lines, score)) is not None]
        if found:
            blocks += [Text(f"**{box}**"), rank_table(found, results), *(Text(rank_words(one, results)) for one in found)]
    if blocks:
        yield "Ranks, row by row", [Text(ABOUT_RANKS), *blocks]


def rank_words(found: ranking.Ranking, results: Results) -> str:
    tied = found.tied
    with_whom = f", not told apart from {', '.join(map(results.title, tied))}" if tied else ", ahead of all others"
    return (
        f"{found.score}: {found.blocks} rows, Friedman p = {found.friedman:.2g}; mean ranks farther apart than "
        f"{found.apart:.2f} differ (Nemenyi, 5 %). First: {results.title(found.best)}{with_whom} (Wilcoxon – Holm, 5 %)."
    )


def rank_table(found: Sequence[ranking.Ranking], results: Results) -> Grid:
    methods = found[0].table.index
    lines = [[results.title(str(name)), *(rank_cell(one, str(name)) for one in found)] for name in methods]
    return Grid(["system", *(one.score for one in found)], lines)


def rank_cell(found: ranking.Ranking, method: str) -> str:
    at = found.table.loc[method]
    said = f"{at['rank']:.2f} ({at['low']:.2f} – {at['high']:.2f})"
    return f"**{said}**" if method == found.best or method in found.tied else said


def frozen(results: Results) -> Iterator[Section]:
    columns = ("valid", "success", "violations", "n_changed", "gower_l1", "nn_ratio", "ms")
    settings = results.settings("frozen")
    if settings:
        grids = [
            block
            for data, box in settings
            for block in (Text(f"**{data}, {box}**"), main_table(results, data, box, "frozen", columns))
        ]
        said = (
            "The dataset's immutable columns (gender, race, age of an account …) must not change. *success*: valid and no "
            "limit broken. Systems that take no such constraint are run all the same and break it."
        )
        yield "With columns frozen", [Text(said), *grids]


def several(results: Results) -> Iterator[Section]:
    columns = ("valid", "success", "answers", "diversity", "gower_l1", "ms")
    settings = results.settings("several")
    if settings:
        grids = [
            block
            for data, box in settings
            for block in (Text(f"**{data}, {box}**"), main_table(results, data, box, "several", columns))
        ]
        said = "Four answers a row, of systems that give several. *diversity*: mean gower_l1 of two; the first is scored."
        yield "Several answers", [Text(said), *grids]


def agreements(results: Results) -> Iterator[Section]:
    blocks: list[Block] = []
    for data, box in shown_settings(results):
        shares = summary.agreement(summary.came_to_answer(results.part(question="free", data=data, box=box)))
        if len(shares) > 1:
            named = shares.rename(index=results.title, columns=results.title)
            blocks.append(
                Picture(f"agreement-{data}-{box}", figures.heat(named, f"{data}, {box}"), f"Agreement on {data}, {box}")
            )
    if blocks:
        said = "Features both change as a share of features either changes, over rows both answer validly."
        yield "Do they name the same features?", [Text(said), *blocks]


def failed(results: Results) -> Iterator[Block]:
    lines = results.lines
    if not len(lines):
        return
    gone = lines.groupby("method")["status"].agg(lambda status: (status == NOT_TRIED).all())
    for method in gone[gone].index:
        why = lines.loc[lines["method"] == method, "reason"].iloc[0]
        yield Text(f"**{results.title(method)}** was not run: {why}")
    found = summary.failures(lines[~lines["method"].isin(gone[gone].index)])
    rows = [
        [results.title(one.method), one.data, one.box, one.question, f"{one.rows}", one.why] for one in found.itertuples()
    ]
    if rows:
        yield Grid(["system", "data", "black box", "question", "rows", "why"], rows)
    elif not gone.any():
        yield Text("Nothing did.")


def measured(about: dict[str, Any], plan: Plan) -> Iterator[Block]:
    machine, limits = about["machine"], plan.limits
    yield Text(f"`{about['command']}`, {about['seconds'] / 60:.0f} minutes in this run (cells made before are not in it).")
    yield Text(
        f"{machine['cpu']}, {machine['cores']} cores; load before {about['load']['before']}, after {about['load']['after']}; "
        + ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
        + "; threads "
        + ", ".join(f"{name}={count}" for name, count in machine["threads"].items())
    )
    yield Text(
        f"The first {plan.rows} refused rows (test rows first) for everybody, one at a time in a process of their own, "
        f"after one that does not count. {limits.row:g} s a row, then the process is killed and a fresh one goes on "
        f"({limits.processes} at most); no row is begun after {limits.method:g} s of processor time, or {limits.slow:g} s by "
        f"a system slower than 50 ms per row, which has fewer rows then; {limits.setup:g} s to get ready, counted apart as "
        "set-up. Every row without a valid answer counts as invalid. Realism is measured against "
        f"{plan.crowd:,} training rows drawn once. Times are processor times; read them as ratios within one run. What is "
        "not fair, and how it was handled: benchmarks/README.md."
    )
    costly = [entry.title for entry in plan.methods if entry.costly]
    if plan.sparing and costly:
        yield Text(f"{', '.join(costly)} take minutes a black box: they ran on the free question and the MLP only.")
    if about["made_anew"]:
        yield Text(f"{len(about['made_anew'])} cells had been made by other code, versions or options and were made anew.")
