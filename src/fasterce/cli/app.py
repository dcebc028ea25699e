"""The commands of `fasterce`, in the order a person needs them."""

from importlib import metadata
from typing import Annotated

import typer

from fasterce.cli.bench import bench
from fasterce.cli.check import check
from fasterce.cli.demo import demo
from fasterce.cli.explain import explain
from fasterce.cli.fit import fit
from fasterce.cli.inspect import inspect
from fasterce.cli.keys import keys
from fasterce.cli.replay import replay
from fasterce.cli.report import report

EPILOG = (
    "Exit codes: 0 done, 1 an unforeseen error, 2 wrong usage, 3 bad input, 4 the model, 5 the artifact, "
    "6 check or replay found a difference, 7 an extra is not installed, 130 interrupted."
)

app = typer.Typer(
    name="fasterce",
    help="Counterfactual explanations: what would have had to be different?",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fasterce {metadata.version('fasterce')}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    pass


for command in (demo, inspect, fit, explain, report, check, replay):
    app.command()(command)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})(bench)
app.add_typer(keys)
