"""Copy a run to what is committed: `make bench-publish`.

The report and its figures go to `results/bench`, some figures to the site, and the short table of the README and of two pages
is generated from the report. `--paper` does the same for a run of `benchmarks.paper`: to `results/paper`, and its statements
and ablation to `docs/benchmark.md`.
"""

import argparse
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from benchmarks.store import write

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = HERE / "results" / "bench"
PICTURES = ("summary", "pareto-mlp-gower_l1-nn_ratio")
PAPER = HERE / "results" / "paper"
PAPER_PICTURES = ("paper-figure", "paper-robustness", "paper-total-time")
PAPER_PAGE = "docs/benchmark.md"
# Columns of the report's tables that are on the page, and engines of the ablation.
STATEMENT_COLUMNS = ("the paper says", "this run")
ABLATION_COLUMNS = ("data", "engine", "method", "identical", "counterfactuals by origin")
ENGINES = ("hybrid", "latent", "paper")
PAGES = ("README.md", "docs/performance.md", "docs/benchmark.md")
# Figures of the agreement of systems, some megabytes; they are in the report of the run only.
LEFT_OUT = re.compile(r"\n## Do they name the same features\?\n.*?(?=\n## )", re.DOTALL)
START, END = "<!-- bench -->\n\n", "\n\n<!-- /bench -->"
PAPER_START, PAPER_END = "<!-- paper -->\n\n", "\n\n<!-- /paper -->"
ABOUT_ABLATION = (
    "With random numbers in place of the autoencoder, hyperplanes and prototypes, this share of counterfactuals is the "
    "same; in brackets that of counterfactuals with four changes or more:"
)
# Titles as in the committed report.
SHOWN = (
    "fasterce closest",
    "fasterce closest, not compiled",
    "fasterce sparse",
    "NICE sparsity",
    "DiCE random",
    "CERTIFAI (our version)",
    "jax-relax VanillaCF",
    "treecf exact, 2 s a row",
    "MILP from closest, 2 s a row",
    "exhaustive: 1 feature, 2 on a grid",
)
COLUMNS = {
    "cells": "cells",
    "queries": "queries",
    "valid %": "valid %",
    "÷ nearest known": "÷ nearest known (95 %)",
    "ms": "ms",
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.publish", description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, help="the folder of the run")
    parser.add_argument("--note", default="", help="a sentence for the head of the report: what was special about the run")
    parser.add_argument("--paper", action="store_true", help="publish a run of `benchmarks.paper` instead")
    options = parser.parse_args(argv)
    if options.paper:
        copy_report(options.run or HERE / ".work" / "paper", options.note, PAPER, PAPER_PICTURES)
        block = paper_block((PAPER / "report.md").read_text(encoding="utf-8"))
        path = ROOT / PAPER_PAGE
        write(path, with_table(path.read_text(encoding="utf-8"), block, PAPER_PAGE, (PAPER_START, PAPER_END)))
        return
    copy_report(options.run or HERE / ".work" / "bench", options.note, RESULTS, PICTURES)
    table = short_table((RESULTS / "report.md").read_text(encoding="utf-8"))
    for page in PAGES:
        path = ROOT / page
        write(path, with_table(path.read_text(encoding="utf-8"), table, page))
        print(f"{page}: the table of the report")


def copy_report(run: Path, note: str, results: Path, pictures: Sequence[str]) -> None:
    """Copy the report with its figures, except the largest, and some figures to the site."""
    text = LEFT_OUT.sub("", (run / "report.md").read_text(encoding="utf-8"))
    title, _, rest = text.partition("\n\n")
    shutil.rmtree(results / "figures", ignore_errors=True)
    (results / "figures").mkdir(parents=True)
    for name in re.findall(r"\]\((figures/[^)]+)\)", text):
        shutil.copy(run / name, results / name)
    write(results / "report.md", f"{title}\n\n> {note}\n\n{rest}" if note else text)
    for name in pictures:
        shutil.copy(run / "figures" / f"{name}.svg", ROOT / "docs" / "pictures" / f"bench-{name}.svg")


def short_table(report: str) -> str:
    """Return some lines and columns of the report's table of gower_l1 over all datasets and models."""
    found = re.search(r"^\| gower_l1 \| cells \|.*?(?=\n\n)", report, re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit("The report has no table over all datasets.")
    head, _, *lines = ([part.strip() for part in line.strip("|").split(" | ")] for line in found[0].splitlines())
    by_system = {line[0]: [line[head.index(name)] for name in COLUMNS] for line in lines}
    return as_table(["gower_l1", *COLUMNS.values()], [[name, *by_system[name]] for name in SHOWN if name in by_system])


def paper_block(report: str) -> str:
    """Return what was run, how many statements agree, the verdict on each statement, and the ablation."""
    head, _, rest = report.partition("\n## ")
    sections = dict(part.partition("\n\n")[::2] for part in rest.split("\n## "))
    glance = [line for line in (*head.splitlines()[1:], *sections["At a glance"].splitlines()) if line]
    verdicts = _lines(sections["What the paper says, and these numbers"], STATEMENT_COLUMNS)
    ablation = [
        line
        for line in _lines(sections["Ablation: random numbers for the latent space"], ABLATION_COLUMNS)
        if line[1] in ENGINES
    ]
    tables = as_table(STATEMENT_COLUMNS, verdicts), as_table(ABLATION_COLUMNS, ablation)
    return "\n\n".join([*glance, tables[0], ABOUT_ABLATION, tables[1]])


def _lines(section: str, columns: Sequence[str]) -> list[list[str]]:
    """Return some columns of all tables of a section, which have the same heads."""
    rows = [[part.strip() for part in line.strip("|").split(" | ")] for line in section.splitlines() if line.startswith("|")]
    positions = [rows[0].index(name) for name in columns]
    return [[row[k] for k in positions] for row in rows if row != rows[0] and set(row[0]) != {"-"}]


def as_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def with_table(page: str, table: str, name: str, marks: tuple[str, str] = (START, END)) -> str:
    before, first, rest = page.partition(marks[0])
    _, last, after = rest.partition(marks[1])
    if not first or not last:
        raise SystemExit(f"{name} has no place for the table: {marks[0].strip()} ... {marks[1].strip()}.")
    return f"{before}{first}{table}{last}{after}"


if __name__ == "__main__":
    main()
