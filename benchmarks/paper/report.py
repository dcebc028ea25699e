"""The report: Table 1, the comparison, robustness, examples, the paper's statements and the ablation. Markdown and HTML."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import figures
from benchmarks.page import Block, Grid, Picture, Text, as_html, as_markdown
from benchmarks.paper import statements as paper_statements
from benchmarks.paper.networks import GRID
from benchmarks.paper.plan import (
    ABLATION,
    DEFAULTS,
    EXAMPLES,
    FASTER_CE,
    MARGINS,
    RIVALS,
    SHARES,
    SLOW_TARGET,
    STEPS,
    TITLES,
    PaperPlan,
    at_share,
    at_step,
)
from benchmarks.paper.readings import reading
from benchmarks.paper.run import NOISE, grid_table
from benchmarks.paper.statements import AGREES, DIFFERS, OURS, UNDECIDED, Statement
from benchmarks.paper.tables import MEASURES, TEST_ROWS, Tables, plus_minus
from benchmarks.runner import TIMEOUT
from benchmarks.store import Cell
from benchmarks.store import write as write_whole

TITLE = "The experiments of the FASTER-CE paper"
# The paper's table of robustness on Lending Club: robust %, its deviation, proximity, its deviation.
PRINTED = {
    at_step(0.05): (86.59, 2.54, 1.29, 0.22),
    at_step(0.1): (88.70, 3.19, 1.38, 0.18),
    at_step(0.3): (100.0, 0.0, 4.08, 0.34),
    at_step(0.5): (100.0, 0.0, 6.41, 0.28),
    at_step(1.0): (100.0, 0.0, 13.43, 0.67),
    "dice-random": (93.41, 2.55, 3.12, 0.27),
    "certifai-genetic": (89.72, 2.93, 1.88, 0.36),
    "latentcf-adam": (90.51, 3.21, 2.24, 0.20),
}
ORDER = [*FASTER_CE.values(), *RIVALS.values(), *DEFAULTS.values()]
ABOUT_COMPARISON = (
    "Mean ± standard deviation over runs, over the queries of both targets (rows predicted unfavourable that should become "
    "favourable, and the reverse). FASTER-CE1, 2 and 3 use the paper's engine with δε = 0.1: decoded latent points, nothing "
    "refined, and they evaluate the black box itself. FASTER-CE2 is averaged over all features, FASTER-CE3 has the columns "
    "frozen that nobody can change (gender, race, age ...). *fasterce* are our default methods. Validity is of the queries "
    "that were tried, other means are over valid counterfactuals. *Proximity, as printed* is the Euclidean norm of changes "
    "divided by their median absolute deviations plus the share of categories changed; *weighted* has CERTIFAI's weights, "
    "the shares of numeric and categorical columns."
)
ABOUT_ROBUSTNESS = (
    "**First reading: the perturbed recourse.** The numbers of the input that change get normal noise of {small:.0%} or "
    "{large:.0%} of a standard deviation (the paper does not give the size), and the same recourse is applied: does it still "
    "reach the target? A margin of k steps goes k · δε beyond the first point that does. `robust=` is our default."
)
ABOUT_REEXPLAINED = (
    "**Second reading: the perturbed input explained again** (noise of 5 % of a standard deviation). *Valid*: the perturbed "
    "input has a valid counterfactual. *First recourse*: the recourse of the original input, applied to the perturbed one, "
    "reaches the target. *Second recourse*: that of the perturbed input, applied to the original one. The last three columns "
    "are the robustness of proximity and sparsity: the change of proximity, of the number of features, and the overlap of "
    "the features changed."
)
ABOUT_TOTAL = (
    "Set-up plus the median time of one explanation times the number of queries. Where lines cross, the set-up of one "
    "system has paid for itself."
)
ABOUT_STATEMENTS = (
    "Each statement of the paper once, split into what it says of FASTER-CE and what of a rival. A comparison agrees or "
    "differs where the 95 % interval of the paired difference between runs lies on one side of zero, and is undecided "
    "otherwise. 100 % agrees if it is 100 %, and is undecided if the interval contains it. A statement about three datasets "
    "agrees if it does on all. A reading that begins with *Possibly* was not tested."
)
ABOUT_ABLATION = (
    "Encoder, decoder, hyperplanes and prototypes are replaced by random numbers of the same mean and deviation, and "
    "the same queries are explained; means over three draws. *Identical*: share of queries with the same "
    "counterfactual (or none) as before; in brackets of those whose counterfactual changes four or more features. "
    "Where all are identical, the latent space decides nothing. *Origin* names where a search started, not what "
    "shaped its result."
)


def write(out: Path, cells: Sequence[Cell], plan: PaperPlan, about: dict[str, Any], *, quick: bool = False) -> None:
    """Write results.parquet, results.json, report.md with its pictures, and report.html."""
    tables = Tables(cells)
    tables.lines.to_parquet(out / "results.parquet")
    found = paper_statements.statements(tables)
    described = [{**vars(cell.key), **{k: v for k, v in cell.about.items() if k != "counterfactuals"}} for cell in cells]
    kept = [{"name": one.name, "subject": one.subject, "verdict": one.verdict} for one in found]
    write_whole(out / "results.json", json.dumps({**about, "statements": kept, "cells": described}, indent=1, default=str))
    sections = [(heading, list(blocks)) for heading, blocks in sections_of(tables, found, plan, about, quick)]
    sections = [(heading, blocks) for heading, blocks in sections if blocks]
    write_whole(out / "report.md", as_markdown(TITLE, sections, out))
    write_whole(out / "report.html", as_html(TITLE, sections))


def sections_of(
    tables: Tables, found: list[Statement], plan: PaperPlan, about: dict[str, Any], quick: bool
) -> Iterator[tuple[str, Iterator[Block]]]:
    yield "At a glance", overview(tables, found, plan, quick)
    yield "Black boxes and autoencoders (Table 1)", table_1(tables)
    yield "Comparison (Figure 3)", comparison(tables)
    yield "Total time over the number of queries", total_time(tables)
    yield "Robustness of recourse (Table 5)", robustness(tables)
    yield "Examples (Tables 2 to 4)", example_tables(tables)
    yield "What the paper says, and these numbers", statement_blocks(found)
    yield "Ablation: random numbers for the latent space", ablation_blocks(tables)
    yield "How it was measured", measured(tables, plan, about)


def overview(tables: Tables, found: list[Statement], plan: PaperPlan, quick: bool) -> Iterator[Block]:
    if quick:
        yield Text("**A quick run on little data: it shows that everything works; the numbers mean little.**")
    runs = tables.runs
    if len(runs):
        yield Text(
            f"{runs['data'].nunique()} datasets, {runs['seed'].nunique()} runs, both directions of the prediction, all "
            f"test rows of a class up to {plan.rows}: {int(runs['tried'].sum()):,} explanations."
        )
    for name, mine in (("FASTER-CE", True), ("the rivals", False)):
        part = [one for one in found if (one.subject == OURS) == mine]
        counts = {verdict: sum(one.verdict == verdict for one in part) for verdict in (AGREES, UNDECIDED, DIFFERS)}
        if part:
            yield Text(
                f"Of the paper's {len(part)} statements about {name}, **{counts[AGREES]} agree**, {counts[DIFFERS]} differ "
                f"on at least one dataset and {counts[UNDECIDED]} are undecided within the error bars."
            )


def table_1(tables: Tables) -> Iterator[Block]:
    cells = {data: [cell.about for cell in tables.networks(data)] for data in tables.datasets}
    known = {data: about for data, about in cells.items() if about}
    if not known:
        return
    yield Text(
        "Rows are split 70, 15 and 15 %. The network with the highest AUC on validation rows, averaged over runs, is the "
        "black box; accuracies are on test rows. The autoencoder minimises the paper's loss: the normalised Euclidean "
        "distance of numbers plus one minus the cosine similarity per category. *Queries*: of the first run."
    )
    header = ["data", "black box", "accuracy", "balanced accuracy", "AUC", "queries"]
    yield Grid(header, [black_box_line(data, about) for data, about in known.items()])
    header = ["data", "autoencoder", "loss, training", "loss, validation", "loss, test"]
    header += ["proximity of the reconstruction", "features it changes", "fit of the explainer, s"]
    yield Grid(header, [autoencoder_line(data, about) for data, about in known.items()])
    yield Text("The grid, on validation rows: AUC / balanced accuracy, means over runs.")
    yield grid_of_networks(tables)


def black_box_line(data: str, about: Sequence[dict[str, Any]]) -> list[str]:
    first, quality = about[0], [one["quality"]["test"] for one in about]
    weights = ", balanced weights" if first["weighted"] else ""
    return [
        data,
        f"{first['inputs']} inputs, {first['network']}{weights}",
        *(plus_minus([one[name] for one in quality], "{:.3f}") for name in ("accuracy", "balanced_accuracy", "auc")),
        ", ".join(f"{count} to {name}" for name, count in first["queries"].items()),
    ]


def autoencoder_line(data: str, about: Sequence[dict[str, Any]]) -> list[str]:
    losses = [plus_minus([one["losses"][part] for one in about], "{:.3f}") for part in ("training", "validation", "test")]
    rebuilt = [plus_minus([one["reconstruction"][name] for one in about], "{:.2f}") for name in ("undivided", "n_changed")]
    sizes = "-".join(map(str, about[0]["autoencoder"]))
    return [data, sizes, *losses, *rebuilt, plus_minus([one["setup"] for one in about], "{:.1f}")]


def grid_of_networks(tables: Tables) -> Grid:
    grids = {data: grid_table(list(tables.cells), data) for data in tables.datasets}
    rows = []
    for k, network in enumerate(GRID):
        texts = []
        for grid in grids.values():
            text = f"{grid[k][0]:.3f} / {grid[k][1]:.3f}"
            texts.append(f"**{text}**" if grid[k][0] == max(line[0] for line in grid) else text)
        rows.append([str(network), *texts])
    return Grid(["network", *grids], rows)


def comparison(tables: Tables) -> Iterator[Block]:
    runs = tables.runs
    if not len(runs):
        return
    yield Text(ABOUT_COMPARISON)
    titles = [title for title in ORDER if title in set(runs["title"])]
    panels = [(name, label, name in ("each", "total", "undivided")) for name, (label, _) in MEASURES.items()]
    panels = [panel for panel in panels if panel[0] != "proximity"]
    drawn = figures.bars(runs, panels, titles, "The paper's comparison, repeated")
    yield Picture("paper-figure", drawn, "Validity, sparsity, proximity and time of each method on three datasets")
    header = ["method", "runs", "queries", *(label for label, _ in MEASURES.values())]
    for data, part in runs.groupby("data", sort=False):
        yield Text(f"**{data}**")
        yield Grid(header, [run_line(title, part) for title in titles if title in set(part["title"])])
    yield Text("By target: validity % / proximity as printed.")
    yield by_target(tables.runs_by_target, titles)


def run_line(title: str, runs: pd.DataFrame) -> list[str]:
    part = runs[runs["title"] == title]
    counts = f"{len(part)}", f"{int(part['tried'].sum()):,}"
    return [title, *counts, *(plus_minus(part[name], form) for name, (_, form) in MEASURES.items())]


def by_target(runs: pd.DataFrame, titles: Sequence[str]) -> Grid:
    columns = list(dict.fromkeys(zip(runs["data"], runs["task"], strict=True)))
    rows = []
    for title in titles:
        line = [title]
        for data, target in columns:
            part = runs[(runs["title"] == title) & (runs["data"] == data) & (runs["task"] == target)]
            line.append(f"{part['valid'].mean():.0f} / {part['undivided'].mean():.2f}" if len(part) else "")
        rows.append(line)
    return Grid(["method", *(f"{data}, {target}" for data, target in columns)], rows)


def total_time(tables: Tables) -> Iterator[Block]:
    runs = tables.runs.dropna(subset=["setup", "each"]) if len(tables.runs) else tables.runs
    if not len(runs):
        return
    mean = runs.groupby(["data", "title"], sort=False)[["setup", "each"]].mean().reset_index()
    titles = [title for title in ORDER if title in set(mean["title"])]
    yield Text(ABOUT_TOTAL)
    yield Picture("paper-total-time", figures.total_time(mean, titles), "Seconds in all over the number of queries")
    rows = []
    for title in titles:
        part = mean[mean["title"] == title].set_index("data")
        cells = []
        for data in tables.datasets:
            known = data in part.index
            totals = [part.loc[data, "setup"] + n * part.loc[data, "each"] for n in (1, 100, 10_000)] if known else []
            cells.append(" / ".join(f"{total:,.1f}" for total in totals))
        rows.append([title, *cells])
    yield Text("Seconds for 1 / 100 / 10,000 queries.")
    yield Grid(["method", *tables.datasets], rows)


def robustness(tables: Tables) -> Iterator[Block]:
    runs = tables.robustness
    if not len(runs):
        return
    yield Text(ABOUT_ROBUSTNESS.format(small=NOISE["recourse"], large=NOISE["recourse_large"]))
    yield Grid(
        ["method", "robust %, 5 % noise", "paper", "robust %, 25 % noise", "proximity, as printed", "paper", "valid %"],
        [robust_line(name, title, runs) for name, title in robust_titles().items() if name in set(runs["method"])],
    )
    mean = runs.groupby("method", sort=False)[["undivided", "recourse_large"]].mean()
    curves = {}
    for margin in MARGINS:
        points = [(at_step(step, margin), f"{step:g}") for step in STEPS if at_step(step, margin) in mean.index]
        label = "FASTER-CE1 over δε" if margin == 0 else f"with a margin of {margin} step{'s' if margin > 1 else ''}"
        curves[label] = curve_of(mean, points if margin == 0 else [(name, "") for name, _ in points])
    curves["fasterce over robust="] = curve_of(mean, [(at_share(s), f"{s:g}") for s in SHARES if at_share(s) in mean.index])
    points = mean.loc[[name for name in RIVALS if name in mean.index]].reset_index()
    points = points.assign(title=points["method"].map(TITLES), proximity=points["undivided"], robust=points["recourse_large"])
    drawn = figures.curve({k: v for k, v in curves.items() if len(v)}, points, "What robustness costs (Lending Club)")
    yield Picture("paper-robustness", drawn, "Robustness against proximity, noise of 25 % of a standard deviation")
    yield from reexplained_blocks(tables.reexplained)


def curve_of(mean: pd.DataFrame, points: Sequence[tuple[str, str]]) -> pd.DataFrame:
    part = mean.loc[[name for name, _ in points]]
    return pd.DataFrame(
        {"proximity": part["undivided"], "robust": part["recourse_large"], "label": [label for _, label in points]}
    )


def robust_titles() -> dict[str, str]:
    steps = {at_step(step): f"FASTER-CE1 δε = {step:g}" for step in STEPS}
    margins = {
        at_step(step, k): f"δε = {step:g}, margin of {k} step{'s' if k > 1 else ''}" for step in STEPS for k in MARGINS[1:]
    }
    shares = {at_share(share): f"fasterce robust={share:g}" for share in SHARES}
    return steps | RIVALS | margins | shares


def robust_line(name: str, title: str, runs: pd.DataFrame) -> list[str]:
    part = runs[runs["method"] == name]
    printed = PRINTED.get(name)
    robust, near = ("–", "–") if printed is None else (
        f"{printed[0]:.2f} ± {printed[1]:.2f}", f"{printed[2]:.2f} ± {printed[3]:.2f}"
    )  # fmt: skip
    ours = [plus_minus(part[column], "{:.1f}") for column in ("recourse", "recourse_large")]
    return [
        title,
        ours[0],
        robust,
        ours[1],
        plus_minus(part["undivided"], "{:.2f}"),
        near,
        plus_minus(part["valid"], "{:.0f}"),
    ]


def reexplained_blocks(runs: pd.DataFrame) -> Iterator[Block]:
    if not len(runs):
        return
    titles = {at_step(step): f"FASTER-CE1 δε = {step:g}" for step in STEPS} | TITLES
    columns = {
        "queries": ("queries", "{:.0f}"),
        "valid": ("valid %", "{:.1f}"),
        "still": ("first recourse %", "{:.1f}"),
        "transfers": ("second recourse %", "{:.1f}"),
        "near": ("proximity", "{:.2f}"),
        "near_again": ("proximity again", "{:.2f}"),
        "near_change": ("change of proximity %", "{:.1f}"),
        "sparsity_change": ("change of sparsity", "{:.2f}"),
        "same_features": ("same features %", "{:.1f}"),
    }
    yield Text(ABOUT_REEXPLAINED)
    rows = [
        [titles.get(str(method), str(method)), *(plus_minus(part[name], form) for name, (_, form) in columns.items())]
        for method, part in runs.groupby("method", sort=False)
    ]
    yield Grid(["method", *(label for label, _ in columns.values())], rows)


def example_tables(tables: Tables) -> Iterator[Block]:
    for data, _, shown in tables.about(EXAMPLES, "example"):
        yield Text(
            f"**{data}**, to {shown['target']}: the query among those most like the paper's with most counterfactuals. "
            "Changed values are bold; of a wide table only some features, with the number of others that change."
        )
        lines = [*shown["paper"], *shown["default"]]
        wide = any(line["others"] for line in lines)
        rows = [["Input", *shown["input"], *([""] if wide else [])], *(example_line(line, shown, wide) for line in lines)]
        yield Grid(["", *shown["features"], *(["others"] if wide else [])], rows)


def example_line(line: dict[str, Any], shown: dict[str, Any], wide: bool) -> list[str]:
    values = [f"**{value}**" if moved else value for value, moved in zip(line["values"], line["changed"], strict=True)]
    values = values or ["none found", *[""] * (len(shown["features"]) - 1)]
    return [line["title"], *values, *([f"{line['others']}" if line["values"] else ""] if wide else [])]


def statement_blocks(found: list[Statement]) -> Iterator[Block]:
    if not found:
        return
    yield Text(ABOUT_STATEMENTS)
    for heading, mine in (("**Of FASTER-CE**", True), ("**Of rivals**", False)):
        part = [one for one in found if (one.subject == OURS) == mine]
        if part:
            yield Text(heading)
            yield Grid(
                ["the paper says", "this run", "numbers", "reading"],
                [[one.text, one.summary, numbers(one), "" if one.verdict == AGREES else reading(one.name)] for one in part],
            )


def numbers(one: Statement) -> str:
    return "; ".join(f"{check.scope}: {check.numbers}" for check in one.checks)


def ablation_blocks(tables: Tables) -> Iterator[Block]:
    found = tables.about(ABLATION, "ablation")
    if not found:
        return
    yield Text(ABOUT_ABLATION)
    rows = []
    for data, _, lines in found:
        for one in lines:
            many = f" ({percent(one['identical_many'])} of {one['queries_many']})" if one["queries_many"] else ""
            origin = ", ".join(f"{name} {percent(part)}" for name, part in one["origin"].items()) or "–"
            shares = [percent(one[name]) for name in ("found", "found_random")]
            rows.append(
                [data, one["engine"], one["method"], f"{one['queries']}", *shares, percent(one["identical"]) + many, origin]
            )
    header = ["data", "engine", "method", "queries", "found", "found, random", "identical", "counterfactuals by origin"]
    yield Grid(header, rows)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def measured(tables: Tables, plan: PaperPlan, about: dict[str, Any]) -> Iterator[Block]:
    machine, limits = about["machine"], plan.limits
    yield Text(
        f"`{about['command']}`, {about['seconds'] / 60:.0f} minutes, {about['cpu_seconds'] / 60:.0f} of them in our own "
        f"process (earlier cells are not included); {about['cells']} cells. {machine['cpu']}, {machine['cores']} cores, "
        f"load before {about['load']['before']}, after {about['load']['after']}; "
        + ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
        + ". Times are processor times of one thread, which a busy machine does not stretch; read them as ratios."
    )
    yield Text(
        f"**What was capped.** At most {plan.rows} queries per dataset, run and target. Ours explain all of them in one "
        f"call, and {plan.timed_rows} one at a time for the time per explanation. A rival explains one query at a time in "
        f"its own process, after one that is not counted, and starts no further one after {limits.method:g} s: the column "
        f"*queries* has their number. {RIVALS['alibi-proto']} has {plan.slow_limits.method:g} s, for the target "
        f"{SLOW_TARGET} only. CERTIFAI is our version, without a reset of features that are not needed, which its paper does "
        "not mention. DiCE sparsifies its counterfactuals by default. Total times are for the whole test sets "
        f"({', '.join(f'{n} {rows:,}' for n, rows in TEST_ROWS.items())} rows)."
    )
    failures = [
        f"{TITLES.get(cell.key.method, cell.key.method)} ({cell.key.data}, run {cell.key.seed}): {cell.about['failure']}"
        for cell in tables.cells
        if cell.about.get("failure")
    ]
    if failures:
        yield Text("**What failed.** " + "; ".join(failures))
    lines = tables.lines
    stopped = lines[lines["status"] == TIMEOUT].groupby("method").size() if len(lines) else pd.Series(dtype=int)
    if len(stopped):
        counts = ", ".join(f"{TITLES[str(method)]} {count}" for method, count in stopped.items())
        yield Text(
            f"**Queries stopped by the time-out** (wall clock; {limits.row:g} s, {plan.slow_limits.row:g} s for ICEGP): "
            f"{counts}. They count neither as valid nor as invalid, and with the time-out as their time."
        )
