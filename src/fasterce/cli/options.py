"""Options that several commands share, and options declared by `fasterce.options` or by the parameters of a function."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from operator import getitem
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer
from typer.models import OptionInfo

from fasterce.cli.console import be_quiet
from fasterce.options import Kind, Option, offered

FILES, MODEL, SEARCH = "Files", "Model", "Counterfactuals"

Command = TypeVar("Command", bound=Callable[..., None])

# How an option is given as text on the command line, by the kind of its value: the type for Typer, and the format for people.
FORMS = {
    Kind.TARGET: (str | None, "A class, or LOW:HIGH."),
    Kind.BOUNDS: (str | None, "LOW:HIGH, either end may be left out."),
    Kind.COLUMNS: (list[str] | None, "a,b (or repeat)."),
    Kind.RANGES: (list[str] | None, "hours=20:40, hours=:40 or housing=own,rent (repeat)."),
    Kind.CONSTRAINTS: (Path | None, "A .yaml or .json file, see docs/constraints.md."),
    Kind.GROUP: (list[str] | None, "step=0.05 (repeat)."),
}


def in_panel(panel: str) -> Callable[..., Any]:
    """Return `typer.Option` for one panel of the help."""
    return lambda *flags, help, **more: typer.Option(*flags, help=help, rich_help_panel=panel, **more)


file_option, model_option = in_panel(FILES), in_panel(MODEL)

MODEL_SOURCE = model_option(
    "--model",
    help="A file (.onnx, XGBoost .json/.ubj, LightGBM .txt, .skops, .pkl), the URL of a scoring server, or "
    "package.module:name.",
)
QUIET = typer.Option("--quiet", "-q", help="Print errors and warnings only.")

Artifact = Annotated[Path, file_option("--artifact", "-a", help="Folder written by `fasterce fit`.")]

# One flag for rows, in two spellings that every command takes.
TABLE_FLAGS = ("--rows", "--data", "-r", "-d")
Rows = Annotated[str, file_option(*TABLE_FLAGS, help="CSV or Parquet file of rows; - reads CSV from stdin.")]
RequiredModel = Annotated[str, MODEL_SOURCE]
Trusted = Annotated[
    list[str] | None, model_option("--trusted", help="A type a .skops file may use, such as my_code.MyScaler (repeat).")
]
Classes = Annotated[str | None, model_option("--classes", help="Names of the model's classes 0, 1, …: refused,granted.")]
Keep = Annotated[list[str] | None, file_option("--keep", help="A column of the input to copy to the output (repeat).")]


@dataclass(frozen=True)
class LoadOptions:
    """How to load a model file."""

    trust_pickle: Annotated[
        bool,
        model_option(
            "--trust-pickle",
            help="Load a pickle or joblib file, which can run any code: only for files you, or someone you trust, have "
            "written.",
        ),
    ] = False
    trusted: Trusted = None
    classes: Classes = None


@dataclass(frozen=True)
class ModelOptions(LoadOptions):
    """Which model instead of the one in the artifact, and how to load it."""

    model: Annotated[str | None, MODEL_SOURCE] = None


@dataclass(frozen=True)
class CsvOptions:
    """How to read a CSV file."""

    separator: Annotated[str | None, file_option("--separator", help="Separator of a CSV file; detected by default.")] = None
    encoding: Annotated[str | None, file_option("--encoding", help="Encoding of a CSV file; UTF-8 by default.")] = None
    decimal: Annotated[str, file_option("--decimal", help="Decimal mark of the numbers in a CSV file: . or ,")] = "."
    thousands: Annotated[
        str | None, file_option("--thousands", help="Mark between thousands in a CSV file, such as . , ' or a space.")
    ] = None


@dataclass(frozen=True)
class RowOptions(CsvOptions):
    """Which rows of a file to explain."""

    id_column: Annotated[str | None, file_option("--id", help="A column with an identifier of each row.")] = None
    limit: Annotated[int | None, file_option("--limit", min=1, help="Only the first rows.")] = None


def with_options(
    command: Command,
    offered_options: Iterable[Option] | None = None,
    panel: str | None = SEARCH,
    more: Iterable[inspect.Parameter] = (),
    quiet: bool = True,
) -> Command:
    """Return a command with the options it does not spell out.

    A parameter whose type is a dataclass becomes one option per field. A last `**parameters` becomes one option per parameter
    in `more` and per declared option, by default those of `explain`. With `quiet`, there is a --quiet.
    """
    signature = inspect.signature(command)
    bundles: dict[str, Any] = {
        one.name: one.annotation for one in signature.parameters.values() if is_dataclass(one.annotation)
    }
    added: list[inspect.Parameter] = []
    for one in signature.parameters.values():
        if one.kind is inspect.Parameter.VAR_KEYWORD:
            declared = offered("cli") if offered_options is None else offered_options
            added += [*more, *(parameter(option, panel) for option in declared)]
        elif one.name in bundles:
            added += [_keyword(field.name, field.default, field.type) for field in fields(bundles[one.name])]
        else:
            added.append(_keyword(one.name, one.default, one.annotation))
    if quiet:
        added.append(_keyword("quiet", False, getitem(Annotated, (bool, QUIET))))

    @wraps(command)
    def run(**values: Any) -> None:
        be_quiet(values.pop("quiet", False))
        made = {name: kind(**{one.name: values.pop(one.name) for one in fields(kind)}) for name, kind in bundles.items()}
        command(**made, **values)

    run.__signature__ = signature.replace(parameters=added)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in added}
    return run  # type: ignore[return-value]


def parameter(option: Option, panel: str | None) -> inspect.Parameter:
    """Return the parameter of a command for one declared option."""
    annotation, form = FORMS.get(option.kind, (option.annotation, ""))
    if option.kind is Kind.FACTORS:
        annotation = Literal[option.choices]
    default = None if option.kind in FORMS else option.default
    help = f"{option.help} {form}".strip()
    described = typer.Option(*option.cli, help=help, rich_help_panel=panel)
    return _keyword(option.name, default, getitem(Annotated, (annotation, described)))


def parameters_of(function: Callable[..., object], described: Mapping[str, object]) -> list[inspect.Parameter]:
    """Return options for parameters of a function, which says their types and defaults."""
    known = inspect.signature(function).parameters
    return [
        _keyword(name, known[name].default, getitem(Annotated, (known[name].annotation, option)))
        for name, option in described.items()
    ]


def _keyword(name: str, default: object, annotation: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def flags_of(command: Callable[..., object]) -> dict[str, str]:
    """Return the first flag of each option of a command, by the name of its parameter."""
    found = {}
    for name, one in inspect.signature(command).parameters.items():
        for described in getattr(one.annotation, "__metadata__", ()):
            if isinstance(described, OptionInfo):
                # In an annotation, the first flag comes as the default.
                flags = (described.default, *(described.param_decls or ()), f"--{name.replace('_', '-')}")
                found[name] = next(flag.split("/")[0] for flag in flags if isinstance(flag, str) and flag.startswith("--"))
    return found
