"""The module of each command: a call imports only the one it runs, and no NumPy for `fasterce serve` or `--version`."""

import os
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

import fasterce

EPILOG = (
    "Exit codes: 0 done, 1 an unexpected error, 2 wrong usage, 3 bad input, 4 the model, 5 the artifact, "
    "6 check or replay found a difference, 7 an extra is not installed, 130 interrupted."
)
# In the order of use; a function is a command, a Typer a group of them.
COMMANDS = {
    "demo": "fasterce.cli.demo:demo",
    "inspect": "fasterce.cli.fit:inspect",
    "fit": "fasterce.cli.fit:fit",
    "explain": "fasterce.cli.explain:explain",
    "batch": "fasterce.cli.batch:batch",
    "report": "fasterce.cli.explain:report",
    "check": "fasterce.cli.check:check",
    "replay": "fasterce.cli.check:replay",
    "serve": "fasterce.cli.serve:serve",
    "bench": "fasterce.cli.demo:bench",
    "keys": "fasterce.cli.keys:keys",
}
PASS_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
SETTINGS = {"bench": PASS_ARGUMENTS}
# Set by shells: "source_bash" asks for the script of completion, "complete_bash" for words.
COMPLETION = "_FASTERCE_COMPLETE"


def required_commands(arguments: list[str]) -> list[str]:
    """Return the command these arguments name, or all of them for help, completion of words and misspelt names."""
    first = arguments[0] if arguments else ""
    if first == "--version" or os.environ.get(COMPLETION, "").startswith("source_"):
        return []
    return [first] if first in COMMANDS else list(COMMANDS)


def make_app(names: Iterable[str]) -> typer.Typer:
    """Return the command line with these commands only."""
    app = typer.Typer(
        name="fasterce",
        help="Counterfactual explanations: what would have to be different?",
        epilog=EPILOG,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_about)
    for name in names:
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(import_module(module), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name, context_settings=SETTINGS.get(name))(command)
    return app


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"fasterce {fasterce.__version__}")
        raise typer.Exit


def _about(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass
