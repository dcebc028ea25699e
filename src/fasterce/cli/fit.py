"""`fasterce inspect`: the columns of a table, as a schema to edit. `fasterce fit`: from table and model to an artifact."""

from collections.abc import Collection, Hashable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich import box
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from fasterce import io
from fasterce.artifact.bundle import can_bundle
from fasterce.cli import options
from fasterce.cli.console import is_quiet, say, show
from fasterce.cli.exits import guarded
from fasterce.cli.loading import interval, load, names_of
from fasterce.data.review import Advice, review
from fasterce.data.schema import Schema, infer
from fasterce.data.schema_io import load_schema, save_schema
from fasterce.errors import InputError
from fasterce.explainer import FasterCE
from fasterce.options import FitOptions, declared
from fasterce.viz.formatting import text

Wanted = Annotated[
    str | None, typer.Option("--wanted", help="The class people want, or LOW:HIGH of a number: the target of explanations.")
]
Unwanted = Annotated[
    list[str] | None,
    typer.Option("--unwanted", help="A class against people's interest; of two, the other is wanted (repeat)."),
]
OFFERED = [option for option in declared(FitOptions) if option.cli]
Names = list[str] | None


@guarded
@options.with_options
def inspect(
    csv: options.CsvOptions,
    data: Annotated[
        str | None, typer.Argument(help="A CSV or Parquet file of training rows; - reads CSV from stdin.")
    ] = None,
    rows: Annotated[
        str | None, options.file_option(*options.TABLE_FLAGS, help="The same file as an option, as in other commands.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the schema to this .yaml or .json file.")] = None,
    drop: Annotated[Names, typer.Option("--drop", help="A column the model does not get, such as the label: a,b.")] = None,
    categorical: Annotated[Names, typer.Option("--categorical", help="Numbers that are codes, not amounts: a,b.")] = None,
    freeze: Annotated[Names, typer.Option("--freeze", help="Columns that cannot change: a,b (or repeat).")] = None,
    increasing: Annotated[Names, typer.Option("--increasing", help="Columns that can only go up, such as age: a,b.")] = None,
    passthrough: Annotated[
        Names, typer.Option("--passthrough", help="More columns that are not features, such as an id: a,b.")
    ] = None,
    dates: Annotated[Names, typer.Option("--dates", help="Columns of a CSV file that are dates or times: a,b.")] = None,
    wanted: Wanted = None,
    unwanted: Unwanted = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing schema file.")] = False,
) -> None:
    """Infer a schema from a table, show it with what to check, and write it as a YAML file to edit."""
    source = rows if data is None else data
    if source is None or (data is not None and rows is not None):
        raise InputError("cli.one_table", option="rows")
    if out is not None and out.exists() and not force:
        raise InputError("cli.schema_exists", option="out", received=str(out))
    listed = [name.strip() for text in dates or [] for name in text.split(",")]
    frame = io.read_table(source, **vars(csv), dates=listed)
    kept = without(frame, drop or [])
    given = {"categorical": categorical, "immutable": freeze, "increasing": increasing, "passthrough": passthrough}
    flags = {"immutable": "freeze"}
    named = {name: names_of(kept.columns, texts or [], flags.get(name, name)) for name, texts in given.items()}
    passed = named.pop("passthrough")
    written = {name: {"format": text} for name, text in frame.attrs.get(io.DATE_FORMATS, {}).items() if name in kept}
    schema = infer(kept, named, passthrough=passed).declare(written, target=_target(wanted), unwanted=unwanted or ())
    show(_drawing(schema, len(frame)))
    _say_advice(kept, schema, passed)
    if out is not None:
        save_schema(schema, out, f"Columns of {Path(source).name if source != '-' else 'stdin'}, {len(frame)} rows.")
        say(f"Written to {out}: edit it, then fasterce fit --schema {out} …")


@guarded
@partial(options.with_options, offered_options=OFFERED, panel=None)
def fit(
    rows: Annotated[str, options.file_option(*options.TABLE_FLAGS, help="CSV or Parquet file of training rows.")],
    model: options.RequiredModel,
    loading: options.LoadOptions,
    out: Annotated[Path, options.file_option("--out", "-o", help="Folder to write, such as german.fasterce.")],
    csv: options.CsvOptions,
    schema: Annotated[
        Path | None, options.file_option("--schema", "-s", help="Written by `fasterce inspect`; inferred if left out.")
    ] = None,
    drop: Annotated[
        list[str] | None, options.file_option("--drop", help="Without --schema: a column the model does not use (repeat).")
    ] = None,
    wanted: Wanted = None,
    unwanted: Unwanted = None,
    bundle: Annotated[
        bool, typer.Option(help="Copy the model file into the artifact if it is of a kind that is safe to load.")
    ] = True,
    **settings: Any,
) -> None:
    """Fit an explainer for a model and write it as a folder that `fasterce explain` reads."""
    declared_schema = load_schema(schema) if schema is not None else None
    if declared_schema is not None and drop:
        raise InputError("cli.drop_with_schema", option="drop")
    loaded = load(model, loading)
    frame = without(io.read_table(rows, schema=declared_schema, **vars(csv)), drop or [])
    columns = infer(frame) if declared_schema is None else declared_schema
    if declared_schema is None and any(not one.remedy.startswith("Pass:") for one in _say_advice(frame, columns)):
        say("Add what you need to: fasterce inspect … -o schema.yaml; then fit with --schema schema.yaml.")
    columns = columns.declare(target=_target(wanted), unwanted=unwanted or ())
    explainer = FasterCE(loaded.model, columns, progress=False if is_quiet() else None, **settings).fit(frame)
    if explainer.declared_target is not None:
        say(f"Wanted: {explainer.declared_target}")
    bundled = bundle and can_bundle(loaded)
    explainer.save(out, loaded if bundled else None)
    if declared_schema is not None and explainer.report_.advice:
        _say_advice(frame, columns, columns.passthrough)
        say(f"These are options of fasterce inspect; or set the entries of the columns in {schema}, whose head lists them.")
    say(escape(str(replace(explainer.report_, advice=[]))))
    say(f"Written to {out}, {'with' if bundled else 'without'} its model.")


def _say_advice(frame: pd.DataFrame, schema: Schema, confirmed: Collection[Hashable] = ()) -> list[Advice]:
    """Print what to check, and return it; `confirmed` are the passthrough columns that were named."""
    found = review(frame, schema, [name for name in schema.passthrough if name not in confirmed])
    for advice in found:
        say(f"[yellow]Check[/yellow] {escape(str(advice.problem))} {escape(advice.remedy)}")
    return found


def _target(wanted: str | None) -> object:
    """Return the class, or the bounds LOW:HIGH of a number; either end may be left out."""
    try:
        return wanted if wanted is None else interval(wanted, "wanted")
    except InputError:
        return wanted


def without(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return the table without some of its columns."""
    return frame.drop(columns=names_of(frame.columns, names, "drop"))


def _drawing(schema: Schema, rows: int) -> RichTable:
    title = f"{len(schema) + len(schema.passthrough)} columns, {rows:,} rows"
    drawing = RichTable(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold")
    shown = schema.to_frame()
    for name in shown.columns:
        drawing.add_column(str(name), overflow="fold")
    for line in shown.itertuples(index=False):
        drawing.add_row(*(Text(text(value) if value != "" else "") for value in line))
    return drawing
