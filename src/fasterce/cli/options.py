"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

FILES, MODEL, WHAT = "Files", "Model", "What is wanted"


def file_option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=FILES, **more)


def model_option(*names: str, help: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=MODEL)


MODEL_SOURCE = model_option(
    "--model",
    help="A file (.onnx, XGBoost .json/.ubj, LightGBM .txt, .skops, .pkl), the URL of a scoring server, or "
    "package.module:name.",
)

Artifact = Annotated[Path, file_option("--artifact", "-a", help="Folder written by `fasterce fit`.")]
Rows = Annotated[str, file_option("--rows", "-r", help="CSV or Parquet file of rows; - reads CSV from stdin.")]
Model = Annotated[str | None, MODEL_SOURCE]
NeededModel = Annotated[str, MODEL_SOURCE]
TrustPickle = Annotated[
    bool,
    model_option(
        "--trust-pickle",
        help="Load a pickle or joblib file, which can run any code: only for files you, or someone you trust, have written.",
    ),
]
Trusted = Annotated[
    list[str] | None, model_option("--trusted", help="A type a .skops file may bring in, such as my_code.MyScaler (repeat).")
]
Classes = Annotated[str | None, model_option("--classes", help="Names of the model's classes 0, 1, …: refused,granted.")]
Separator = Annotated[
    str | None, file_option("--separator", help="Between the cells of a CSV file; found by itself if left out.")
]
Encoding = Annotated[str | None, file_option("--encoding", help="Of a CSV file; utf-8 if left out.")]
IdColumn = Annotated[str | None, file_option("--id", help="A column that names the rows.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors and warnings.")]


def wanted(*names: str, help: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=WHAT)


Method = Annotated[
    Literal["closest", "sparse", "realistic", "all"],
    wanted("--method", "-m", help="The smallest change, as few features as possible, like others, or all."),
]
Count = Annotated[int, wanted("--n", "-n", help="How many different answers a row.")]
Target = Annotated[str | None, wanted("--target", help="The wanted class, or LOW:HIGH for a model that answers numbers.")]
TargetScore = Annotated[str | None, wanted("--target-score", help="The wanted chance of the class, LOW:HIGH.")]
Freeze = Annotated[list[str] | None, wanted("--freeze", help="Columns that may not change: a,b (or repeat).")]
Vary = Annotated[list[str] | None, wanted("--vary", help="The only columns that may change: a,b (or repeat).")]
Range = Annotated[
    list[str] | None, wanted("--range", help="hours=20:40, hours=:40 or housing=own,rent (repeat): where an answer must be.")
]
RulesFile = Annotated[Path | None, wanted("--rules", help="A .yaml or .json file of rules (docs/constraints.md).")]
Robust = Annotated[float | None, wanted("--robust", help="The share of small shakes an answer must stand, such as 0.95.")]
Distance = Annotated[Literal["percentile", "gower", "mad"], wanted("--distance", help="What counts as far.")]
Realism = Annotated[float, wanted("--realism", help="For realistic: 0 near the row, 1 near people with the wanted answer.")]
Budget = Annotated[int | None, wanted("--budget", help="The most rows asked of the model for an explanation.")]
WhyNot = Annotated[bool, wanted("--why-not/--no-why-not", help="Find out what stands in the way of rows without an answer.")]
