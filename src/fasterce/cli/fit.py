"""`fasterce inspect`: the columns of a table, as a schema to edit. `fasterce fit`: from table and model to an artifact."""

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
from fasterce.data.schema import Feature, Schema
from fasterce.data.schema_io import load_schema, save_schema
from fasterce.errors import InputError
from fasterce.explainer import FasterCE
from fasterce.options import FitOptions, declared
from fasterce.viz.formatting import bounds, cut

Wanted = Annotated[
    str | None, typer.Option("--wanted", help="The class people want, or LOW:HIGH of a number: the target of explanations.")
]
Unwanted = Annotated[
    list[str] | None,
    typer.Option("--unwanted", help="A class against people's interest; of two, the other is wanted (repeat)."),
]
OFFERED = [option for option in declared(FitOptions) if option.cli]
MOST_CATEGORIES = 8
MANY_CATEGORIES = 50


@guarded
@options.with_options
def inspect(
    data: Annotated[str, typer.Argument(help="A CSV or Parquet file of training rows; - reads CSV from stdin.")],
    csv: options.CsvOptions,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the schema to this .yaml or .json file.")] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", help="A column the model does not use, the label or an id: a,b (or repeat)."),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option("--categorical", help="Numbers that are codes, not amounts: a,b (or repeat)."),
    ] = None,
    freeze: Annotated[list[str] | None, typer.Option("--freeze", help="Columns that cannot change: a,b (or repeat).")] = None,
    wanted: Wanted = None,
    unwanted: Unwanted = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing schema file.")] = False,
) -> None:
    """Infer a schema from a table, show it, and write it as a YAML file to edit."""
    if out is not None and out.exists() and not force:
        raise InputError("cli.schema_exists", option="out", received=str(out))
    frame = io.read_table(data, **vars(csv))
    kept = without(frame, drop or [])
    schema = Schema.infer(
        kept,
        categorical=names_of(kept.columns, categorical or [], "categorical"),
        immutable=names_of(kept.columns, freeze or [], "freeze"),
    ).declare(target=_target(wanted), unwanted=unwanted or ())
    show(_drawing(schema, len(frame)))
    for line in remarks(schema, len(frame)):
        say(f"[yellow]Check[/yellow] {line}")
    if out is not None:
        save_schema(schema, out, f"Columns of {Path(data).name if data != '-' else 'stdin'}, {len(frame)} rows.")
        say(f"Written to {out}: edit it, then fasterce fit --schema {out} …")


@guarded
@partial(options.with_options, offered_options=OFFERED, panel=None)
def fit(
    data: Annotated[str, options.file_option("--data", "-d", help="CSV or Parquet file of training rows.")],
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
    frame = without(io.read_table(data, schema=declared_schema, **vars(csv)), drop or [])
    columns = Schema.infer(frame) if declared_schema is None else declared_schema
    columns = columns.declare(target=_target(wanted), unwanted=unwanted or ())
    explainer = FasterCE(loaded.model, columns, progress=False if is_quiet() else None, **settings).fit(frame)
    if explainer.declared_target is not None:
        say(f"Wanted: {explainer.declared_target}")
    bundled = bundle and can_bundle(loaded)
    explainer.save(out, loaded if bundled else None)
    say(escape(str(explainer.report_)))
    say(f"Written to {out}, {'with' if bundled else 'without'} its model.")


def _target(wanted: str | None) -> object:
    """Return the class, or the bounds LOW:HIGH of a number; either end may be left out."""
    try:
        return wanted if wanted is None else interval(wanted, "wanted")
    except InputError:
        return wanted


def without(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return the table without some of its columns."""
    return frame.drop(columns=names_of(frame.columns, names, "drop"))


def remarks(schema: Schema, rows: int) -> list[str]:
    """Return hints about columns that are probably not what they seem."""
    found = []
    for feature in schema.features:
        if not feature.numeric and len(feature.categories) > max(MANY_CATEGORIES, rows // 2):
            found.append(
                f"{feature.name}: {len(feature.categories)} different texts in {rows} rows; an id or a date? (--drop)"
            )
        elif feature.numeric and feature.lower == feature.upper:
            found.append(f"{feature.name}: always {feature.lower:.15g}; it cannot explain anything")
        elif (
            feature.integer and feature.upper - feature.lower >= rows - 1 > 0 and "id" in str(feature.name).lower().split("_")
        ):
            found.append(f"{feature.name}: as many values as rows; an id? (--drop)")
    return found


def _drawing(schema: Schema, rows: int) -> RichTable:
    drawing = RichTable(
        box=box.SIMPLE_HEAD, title=f"{len(schema)} columns, {rows:,} rows", title_justify="left", title_style="bold"
    )
    for name in ("column", "kind", "values", "change", "missing"):
        drawing.add_column(name, overflow="fold")
    for feature in schema.features:
        change = feature.direction if feature.mutable else "never"
        line = (str(feature.name), _kind(feature), _values(feature), change, "" if not feature.nullable else feature.missing)
        drawing.add_row(*map(Text, line))
    return drawing


def _kind(feature: Feature) -> str:
    if not feature.numeric:
        return "ordered" if feature.ordered else "categorical"
    return "whole number" if feature.integer else "number"


def _values(feature: Feature) -> str:
    if feature.numeric:
        return bounds(feature.lower, feature.upper)
    shown = ", ".join(cut(category) for category in feature.categories[:MOST_CATEGORIES])
    left = len(feature.categories) - MOST_CATEGORIES
    return f"{shown}, … {left} more" if left > 0 else shown
