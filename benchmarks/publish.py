"""From a run to what is committed: `make bench-publish`.

The report and its pictures go to `results/bench`, some pictures to the site, and the short table of the README and of two
pages is written anew from the report's own, line by line. `--paper` does the same for a run of `benchmarks.paper`: to
`results/paper`, its statements and its ablation to `docs/benchmark.md`.
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
OF_STATEMENTS = ("the paper says", "this run")
OF_ABLATION = ("data", "engine", "method", "identical", "counterfactuals by origin")
ENGINES = ("hybrid", "latent", "paper")
PAGES = ("README.md", "docs/performance.md", "docs/benchmark.md")
# Megabytes of pictures of who agrees with whom, a black box each: they are in the run's own report.
LEFT_OUT = re.compile(r"\n## Do they name the same features\?\n.*?(?=\n## )", re.DOTALL)
FIRST, LAST = "<!-- bench -->\n\n", "\n\n<!-- /bench -->"
FIRST_PAPER, LAST_PAPER = "<!-- paper -->\n\n", "\n\n<!-- /paper -->"
ABOUT_ABLATION = (
    "With random numbers in place of the autoencoder, hyperplanes and prototypes, this share of counterfactuals is the "
    "same; in brackets that of counterfactuals with four changes or more:"
)
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
    parser.add_argument("--said", default="", help="a sentence for the head of the report: what was special about the run")
    parser.add_argument("--paper", action="store_true", help="publish a run of `benchmarks.paper` instead")
    options = parser.parse_args(argv)
    if options.paper:
        keep(options.run or HERE / ".work" / "paper", options.said, PAPER, PAPER_PICTURES)
        block = paper_block((PAPER / "report.md").read_text(encoding="utf-8"))
        path = ROOT / PAPER_PAGE
        write(path, with_table(path.read_text(encoding="utf-8"), block, PAPER_PAGE, (FIRST_PAPER, LAST_PAPER)))
        return
    keep(options.run or HERE / ".work" / "bench", options.said, RESULTS, PICTURES)
    table = short_table((RESULTS / "report.md").read_text(encoding="utf-8"))
    for page in PAGES:
        path = ROOT / page
        write(path, with_table(path.read_text(encoding="utf-8"), table, page))
        print(f"{page}: the table of the report")


def keep(run: Path, said: str, results: Path, pictures: Sequence[str]) -> None:
    """The report with the pictures it shows, all but the largest, and copies of some for the site."""
    text = LEFT_OUT.sub("", (run / "report.md").read_text(encoding="utf-8"))
    title, _, rest = text.partition("\n\n")
    shutil.rmtree(results / "figures", ignore_errors=True)
    (results / "figures").mkdir(parents=True)
    for name in re.findall(r"\]\((figures/[^)]+)\)", text):
        shutil.copy(run / name, results / name)
    write(results / "report.md", f"{title}\n\n> {said}\n\n{rest}" if said else text)
    for name in pictures:
        shutil.copy(run / "figures" / f"{name}.svg", ROOT / "docs" / "pictures" / f"bench-{name}.svg")


def short_table(report: str) -> str:
    """Of the report's table of gower_l1 over all datasets and black boxes, some lines and columns."""
    found = re.search(r"^\| gower_l1 \| cells \|.*?(?=\n\n)", report, re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit("The report has no table over all datasets.")
    head, _, *lines = ([part.strip() for part in line.strip("|").split(" | ")] for line in found[0].splitlines())
    own = {line[0]: [line[head.index(name)] for name in COLUMNS] for line in lines}
    return as_table(["gower_l1", *COLUMNS.values()], [[name, *own[name]] for name in SHOWN if name in own])


def paper_block(report: str) -> str:
    """Of the report on the paper: what was run, how many statements agree, each statement's verdict, and the ablation."""
    said, _, rest = report.partition("\n## ")
    sections = dict(part.partition("\n\n")[::2] for part in rest.split("\n## "))
    glance = [line for line in (*said.splitlines()[1:], *sections["At a glance"].splitlines()) if line]
    verdicts = _lines(sections["What the paper says, and these numbers"], OF_STATEMENTS)
    ablation = [
        line for line in _lines(sections["Ablation: random numbers for the latent space"], OF_ABLATION) if line[1] in ENGINES
    ]
    tables = as_table(OF_STATEMENTS, verdicts), as_table(OF_ABLATION, ablation)
    return "\n\n".join([*glance, tables[0], ABOUT_ABLATION, tables[1]])


def _lines(section: str, columns: Sequence[str]) -> list[list[str]]:
    """Some columns of all tables of a section that have the same heads."""
    rows = [[part.strip() for part in line.strip("|").split(" | ")] for line in section.splitlines() if line.startswith("|")]
    places = [rows[0].index(name) for name in columns]
    return [[row[k] for k in places] for row in rows if row != rows[0] and set(row[0]) != {"-"}]


def as_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def with_table(page: str, table: str, name: str, marks: tuple[str, str] = (FIRST, LAST)) -> str:
    before, first, rest = page.partition(marks[0])
    _, last, after = rest.partition(marks[1])
    if not first or not last:
        raise SystemExit(f"{name} has no place for the table: {marks[0].strip()} ... {marks[1].strip()}.")
    return f"{before}{first}{table}{last}{after}"


if __name__ == "__main__":
    main()
