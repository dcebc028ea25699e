"""What most commands begin with: the model, the explainer, and rows to explain."""

import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import pandas as pd

from fasterce import artifact, io
from fasterce.artifact import OpenedExplainer
from fasterce.artifact.folder import MANIFEST, read
from fasterce.artifact.manifest import parse
from fasterce.cli.values import Subject, class_names
from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.errors import InputError
from fasterce.explainer import FasterCE
from fasterce.models.files.load import LoadedModel, load_model


class LoadArguments(TypedDict):
    trust_pickle: bool
    trusted: tuple[str, ...]
    classes: Sequence[Hashable] | None


@dataclass(frozen=True)
class ModelOptions:
    """The options about a model file."""

    trust_pickle: bool = False
    trusted: Sequence[str] | None = None
    classes: str | None = None

    def load(self, source: str) -> LoadedModel:
        """Load the model named; modules are looked for in the current folder too."""
        _import_from_here()
        return load_model(source, **self.arguments())

    def arguments(self) -> LoadArguments:
        """Return the arguments of `load_model`."""
        return {
            "trust_pickle": self.trust_pickle,
            "trusted": tuple(self.trusted or ()),
            "classes": class_names(self.classes),
        }


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


def open_explainer(folder: Path, model: str | None, options: ModelOptions) -> OpenedExplainer:
    """Open the explainer of a folder, with the model named or else the one in the folder."""
    if model is None and (options.trust_pickle or options.classes is not None):
        raise InputError("cli.no_model_file")
    _import_from_here()
    return artifact.open_explainer(folder, model, **options.arguments())


def read_rows(
    source: str,
    table: Table,
    *,
    separator: str | None,
    encoding: str | None,
    ids: str | None = None,
    limit: int | None = None,
) -> pd.DataFrame:
    """Read the first `limit` rows for an explainer at once, with the id column as their index."""
    with io.open_rows(source, table=table, limit=limit, ids=ids, separator=separator, encoding=encoding) as rows:
        chunks = [_indexed(chunk) for chunk in rows]
    return pd.concat(chunks) if chunks else table.frame(np.zeros((0, len(table.schema))))


def _indexed(chunk: io.Chunk) -> pd.DataFrame:
    positions = range(chunk.first, chunk.first + len(chunk.frame))
    return chunk.frame.set_axis(positions if chunk.ids is None else chunk.ids.to_pylist())
