"""The paper's part of a report: its figure made again, its robustness table, what it claims, and its examples."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from benchmarks import beside, figures, paper
from benchmarks.page import Block, Grid, Picture, Section, Text
from benchmarks.summary import Results

CURVES = {
    "FASTER-CE1 over δε": f"{paper.CE1}-step-",
    "the same, one δε beyond": f"{paper.CE1}-beyond-",
    "fasterce over robust=": "robust-",
}
ABOUT_THE_PAPER = (
    'With its plain reading (`reading="paper"`, δε = 0.1): decoded latent points as they are, nothing refined. FASTER-CE2 '
    "is averaged over all features, FASTER-CE3 has the immutable columns frozen. The paper prints its comparison as a "
    "figure without numbers; what it says about it in words is checked below."
)
ABOUT_ROBUSTNESS = (
    "**Robustness on Lending Club.** The changed numbers of the input are shaken (5 % of a standard deviation; the paper "
    "does not say how much) and the same recourse is applied: is it still valid? CE1 stops at the first point that flips, "
    "or, where said, one δε beyond. Another Lending Club table than the paper's and another black box, so compare the order "
    "and not the size."
)


def papers(results: Results) -> Iterator[Section]:
    runs, robust = beside.figure_runs(results), beside.robustness_runs(results)
    if not len(runs) and not len(robust) and not results.examples:
        return
    blocks: list[Block] = [Text(ABOUT_THE_PAPER)]
    if len(runs):
        panels = [(name, said, name in ("each", "total")) for name, (said, _) in beside.MEASURES.items()]
        titles = [title for title in beside.FIGURE if title in set(runs["title"])]
        blocks.append(
            Picture(
                "paper-figure", figures.bars(runs, panels, titles, "The paper's comparison, made again"), "The paper's figure"
            )
        )
        for data, lines in beside.figure_table(runs):
            blocks += [
                Text(f"**{data}**, mean ± deviation over runs; validity of the rows that were tried"),
                Grid(["method", "runs", *(said for said, _ in beside.MEASURES.values())], lines),
            ]
    blocks += robustness_blocks(robust)
    found = beside.claims(runs, robust)
    if found:
        agreeing = sum(one.verdict == "agrees" for one in found)
        blocks.append(Text(f"**What the paper says, and these numbers**: {agreeing} of {len(found)} statements agree."))
        blocks.append(
            Grid(["the paper says", "this run", "numbers"], [[one.said, one.verdict, one.numbers] for one in found])
        )
    blocks += [block for data, shown in results.examples.items() for block in example(data, shown)]
    yield "The paper's experiments", blocks


def robustness_blocks(robust: pd.DataFrame) -> list[Block]:
    if not len(robust):
        return []
    header = ("method", "recourse robust %", "paper", "proximity", "paper", "robust %, all shaken", "valid %")
    mean = (
        robust.groupby(["method", "title"], sort=False)[["proximity", "recourse"]]
        .mean()
        .reset_index()
        .rename(columns={"recourse": "robust"})
    )
    curves = {}
    for name, prefix in CURVES.items():
        part = mean[mean["method"].str.startswith(prefix)]
        if len(part):
            curves[name] = part.assign(said=part["method"].str.rpartition("-")[2])
    points = mean[~mean["method"].str.startswith(tuple(CURVES.values()))]
    drawn = figures.curve(curves, points, "What robustness costs (Lending Club)")
    return [
        Text(ABOUT_ROBUSTNESS),
        Grid(header, beside.robustness_table(robust)),
        Picture("paper-robustness", drawn, "Robustness against proximity"),
    ]


def example(data: str, shown: dict[str, Any]) -> Iterator[Block]:
    yield Text(
        f"**{data}**: one row as in the paper's example tables, changed values bold; only features that some answer changes."
    )
    lines = [["Input", *shown["input"]]]
    for answer in shown["answers"]:
        values = [
            f"**{value}**" if moved else value for value, moved in zip(answer["values"], answer["changed"], strict=True)
        ]
        lines.append([answer["title"], *values])
    yield Grid(["", *shown["features"]], lines)
