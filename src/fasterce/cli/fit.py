"""`fasterce fit`: learn from a table and a model, write an artifact."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from fasterce import io
from fasterce.artifact.bundle import can_bundle
from fasterce.cli import options
from fasterce.cli.console import is_quiet, say
from fasterce.cli.exits import guarded
from fasterce.cli.inspect import without
from fasterce.cli.loading import load
from fasterce.data.schema_io import load_schema
from fasterce.errors import InputError
from fasterce.explainer import FasterCE
from fasterce.options import FitOptions, declared

OFFERED = [option for option in declared(FitOptions) if option.cli]


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
    frame = io.read_table(data, schema=declared_schema, **vars(csv))
    explainer = FasterCE(loaded.model, declared_schema, progress=False if is_quiet() else None, **settings)
    explainer.fit(without(frame, drop or []))
    bundled = bundle and can_bundle(loaded)
    explainer.save(out, loaded if bundled else None)
    say(escape(str(explainer.report_)))
    say(f"Written to {out}, {'with' if bundled else 'without'} its model.")
