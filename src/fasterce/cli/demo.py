"""`fasterce demo`: the main job on bundled data. `fasterce bench`: the benchmark, in a clone of the repository."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from fasterce.cli.exits import Exit, guarded
from fasterce.errors import InputError

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@guarded
def demo(
    page: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path("demo.html"),
) -> None:
    """Train a model on the bundled Adult data, explain a few rows, write demo.html."""
    from fasterce.cli.adult_demo import main  # noqa: PLC0415 - brings in scikit-learn's training side

    main(page)


@guarded
def bench(context: typer.Context) -> None:
    """Run the benchmark against other libraries; further arguments are passed on (try --quick, --help)."""
    if not (BENCHMARKS / "bench.py").is_file():
        raise InputError("cli.no_benchmark")
    sys.path.insert(0, str(BENCHMARKS.parent))
    raise typer.Exit(import_module("benchmarks.bench").main(context.args) or Exit.DONE)
