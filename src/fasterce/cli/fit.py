"""`fasterce fit`: learn from a table and a model, write an artifact."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from fasterce import streams
from fasterce.artifact.bundle import can_travel
from fasterce.cli import options
from fasterce.cli.console import be_quiet, is_quiet, say
from fasterce.cli.exits import guarded
from fasterce.cli.inspect import without
from fasterce.cli.loading import Trust
from fasterce.errors import InputError
from fasterce.explainer import FasterCE
from fasterce.schema_file import load_schema


@guarded
def fit(
    data: Annotated[str, options.file_option("--data", "-d", help="CSV or Parquet file of training rows.")],
    model: options.NeededModel,
    out: Annotated[Path, options.file_option("--out", "-o", help="Folder to write, such as german.fasterce.")],
    schema: Annotated[
        Path | None, options.file_option("--schema", "-s", help="Written by `fasterce inspect`; inferred if left out.")
    ] = None,
    drop: Annotated[
        list[str] | None, options.file_option("--drop", help="Without --schema: a column the model does not get (repeat).")
    ] = None,
    trust_pickle: options.TrustPickle = False,
    trusted: options.Trusted = None,
    classes: options.Classes = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    task: Annotated[
        Literal["auto", "classification", "regression"], typer.Option(help="Does the model answer classes or numbers?")
    ] = "auto",
    twin: Annotated[
        Literal["auto", "never"], typer.Option(help="Search on a compiled copy of the model if one agrees.")
    ] = "auto",
    keep_rows: Annotated[bool, typer.Option(help="Keep training rows in the artifact as examples.")] = True,
    bundle: Annotated[
        bool, typer.Option(help="Put a copy of the model file into the artifact, where it is safe to load.")
    ] = True,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    quiet: options.Quiet = False,
) -> None:
    """Fit an explainer for a model and write it as a folder that `fasterce explain` reads."""
    be_quiet(quiet)
    declared = load_schema(schema) if schema is not None else None
    if declared is not None and drop:
        raise InputError("--drop is for a fit without --schema: the schema says which columns the model gets.")
    loaded = Trust(trust_pickle, trusted, classes).load(model)
    frame = streams.read_table(data, separator=separator, encoding=encoding, schema=declared)
    explainer = FasterCE(
        loaded.model,
        declared,
        random_state=seed,
        task=task,
        twin=twin,
        keep_rows=keep_rows,
        progress=False if is_quiet() else None,
    )
    explainer.fit(without(frame, drop or []))
    bundled = bundle and can_travel(loaded)
    explainer.save(out, loaded if bundled else None)
    say(escape(str(explainer.report_)))
    say(f"Written to {out}, {'with' if bundled else 'without'} its model.")
