"""Options that several commands share, and those of `explain` as `fasterce.options` declares them."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from operator import getitem
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer
from typer.models import OptionInfo

from fasterce.options import Kind, Option, offered

FILES, MODEL, SEARCH = "Files", "Model", "Counterfactuals"

Command = TypeVar("Command", bound=Callable[..., None])

# How the text of an option is given on the command line, by the kind of its value.
TYPES = {
    Kind.TARGET: str | None,
    Kind.BOUNDS: str | None,
    Kind.COLUMNS: list[str] | None,
    Kind.RANGES: list[str] | None,
    Kind.CONSTRAINTS: Path | None,
}
FORMATS = {
    Kind.TARGET: "A class, or LOW:HIGH.",
    Kind.BOUNDS: "LOW:HIGH, either end may be left out.",
    Kind.COLUMNS: "a,b (or repeat).",
    Kind.RANGES: "hours=20:40, hours=:40 or housing=own,rent (repeat).",
    Kind.CONSTRAINTS: "A .yaml or .json file, see docs/constraints.md.",
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

Artifact = Annotated[Path, file_option("--artifact", "-a", help="Folder written by `fasterce fit`.")]
Rows = Annotated[str, file_option("--rows", "-r", help="CSV or Parquet file of rows; - reads CSV from stdin.")]
Model = Annotated[str | None, MODEL_SOURCE]
RequiredModel = Annotated[str, MODEL_SOURCE]
TrustPickle = Annotated[
    bool,
    model_option(
        "--trust-pickle",
        help="Load a pickle or joblib file, which can run any code: only for files you, or someone you trust, have written.",
    ),
]
Trusted = Annotated[
    list[str] | None, model_option("--trusted", help="A type a .skops file may use, such as my_code.MyScaler (repeat).")
]
Classes = Annotated[str | None, model_option("--classes", help="Names of the model's classes 0, 1, …: refused,granted.")]
Separator = Annotated[str | None, file_option("--separator", help="Between the cells of a CSV file; detected if left out.")]
Encoding = Annotated[str | None, file_option("--encoding", help="Of a CSV file; utf-8 if left out.")]
IdColumn = Annotated[str | None, file_option("--id", help="A column with an identifier of each row.")]
Keep = Annotated[list[str] | None, file_option("--keep", help="A column of the input to copy to the output (repeat).")]
Limit = Annotated[int | None, file_option("--limit", min=1, help="Only the first rows.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and warnings only.")]


def with_options(command: Command, offered_options: Iterable[Option] | None = None, panel: str | None = SEARCH) -> Command:
    """Replace the last `**parameters` of a command by one parameter per declared option, by default those of `explain`."""
    signature = inspect.signature(command)
    own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    added = [parameter(one, panel) for one in (offered("cli") if offered_options is None else offered_options)]

    @wraps(command)
    def run(**values: Any) -> None:
        command(**values)

    run.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in (*own, *added)}
    return run  # type: ignore[return-value]


def parameter(option: Option, panel: str | None) -> inspect.Parameter:
    """Return the parameter of a command for one declared option."""
    annotation = TYPES.get(option.kind, option.annotation)
    if option.kind is Kind.FACTORS:
        annotation = Literal[option.choices]
    default = None if option.kind in TYPES else option.default
    help = " ".join(part for part in (option.help, FORMATS.get(option.kind, "")) if part)
    described = getitem(Annotated, (annotation, typer.Option(*option.cli, help=help, rich_help_panel=panel)))
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=described)


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
