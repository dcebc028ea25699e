"""What most commands begin with: the model, the explainer, and rows to explain."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fasterce import artifact, io
from fasterce.artifact import OpenedExplainer
from fasterce.artifact.folder import MANIFEST, read
from fasterce.artifact.manifest import parse
from fasterce.cli.options import CsvOptions, LoadOptions, ModelOptions
from fasterce.cli.values import Subject, class_names
from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.errors import InputError
from fasterce.explainer import FasterCE
from fasterce.models.files.load import LoadedModel, load_model


def load_arguments(options: LoadOptions) -> dict[str, Any]:
    """Return the arguments of `load_model`."""
    names = class_names(options.classes)
    return {"trust_pickle": options.trust_pickle, "trusted": tuple(options.trusted or ()), "classes": names}


def load(source: str, options: LoadOptions) -> LoadedModel:
    """Load the model named; modules are looked for in the current folder too."""
    _import_from_here()
    return load_model(source, **load_arguments(options))


def open_explainer(folder: Path, options: ModelOptions) -> OpenedExplainer:
    """Open the explainer of a folder, with the model named or else the one in the folder."""
    if options.model is None and (options.trust_pickle or options.classes is not None):
        raise InputError("cli.no_model_file")
    _import_from_here()
    return artifact.open_explainer(folder, options.model, **load_arguments(options))


def _import_from_here() -> None:
    if "" not in sys.path:
        sys.path.insert(0, "")


def subject_of(explainer: FasterCE) -> Subject:
    """Return what options refer to."""
    state = explainer.state_
    return Subject(state.table.schema, state.classes, state.numbers is not None)


def read_subject(folder: Path) -> Subject:
    """Read what options refer to from an artifact, without loading arrays or the model."""
    manifest = parse(read(folder / MANIFEST), folder / MANIFEST)
    return Subject(Schema.from_dict(manifest["schema"]), manifest["classes"], manifest["numbers"] is not None)


def read_rows(
    source: str, table: Table, options: CsvOptions, *, id_column: str | None = None, limit: int | None = None
) -> pd.DataFrame:
    """Read the first `limit` rows for an explainer at once, with the id column as their index."""
    separator, encoding = options.separator, options.encoding
    with io.open_rows(source, table=table, limit=limit, ids=id_column, separator=separator, encoding=encoding) as rows:
        chunks = [_indexed(chunk) for chunk in rows]
    return pd.concat(chunks) if chunks else table.frame(np.zeros((0, len(table.schema))))


def _indexed(chunk: io.Chunk) -> pd.DataFrame:
    positions = range(chunk.first, chunk.first + len(chunk.frame))
    return chunk.frame.set_axis(positions if chunk.ids is None else chunk.ids.to_pylist())
