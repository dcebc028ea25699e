"""What most commands begin with: the model, the explainer, and what is wanted of it."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fasterce import artifact, streams
from fasterce.cli import values
from fasterce.constraints import Frozen
from fasterce.constraints.files import load as load_rules
from fasterce.errors import InputError
from fasterce.explainer import FasterCE
from fasterce.models import LoadedModel, load_model
from fasterce.table import Table


@dataclass(frozen=True)
class Trust:
    """What the user said about the model file."""

    trust_pickle: bool = False
    trusted: Sequence[str] | None = None
    classes: str | None = None

    def load(self, source: str) -> LoadedModel:
        """The model named; modules of one's own are looked for in the current folder too."""
        if "" not in sys.path:
            sys.path.insert(0, "")
        return load_model(
            source,
            trust_pickle=self.trust_pickle,
            trusted=tuple(self.trusted or ()),
            classes=values.class_names(self.classes),
        )


@dataclass(frozen=True)
class Opened:
    """An explainer with its model, and the model's digest for the records."""

    explainer: FasterCE
    model_digest: str | None
    model_source: str


def open_explainer(folder: Path, model: str | None, trust: Trust) -> Opened:
    """The explainer of a folder, with the model named or else the one the folder brings."""
    loaded = _bundled(folder, trust) if model is None else trust.load(model)
    explainer = artifact.load(folder, loaded.model)
    explainer.progress = False
    return Opened(explainer, loaded.digest, loaded.source)


def _bundled(folder: Path, trust: Trust) -> LoadedModel:
    if trust.trust_pickle or trust.classes is not None:
        raise InputError("--trust-pickle and --classes are about a model file; expected --model too, or neither.")
    return artifact.bundled_model(folder, trusted=tuple(trust.trusted or ()))


def read_rows(source: str, table: Table, limit: int | None = None, **reading: Any) -> pd.DataFrame:
    """Rows for an explainer, all at once: the first `limit` of them, named by the id column if there is one."""
    with streams.open_rows(source, table=table, limit=limit, **reading) as rows:
        chunks = [_named(chunk) for chunk in rows]
    return pd.concat(chunks) if chunks else table.frame(np.zeros((0, len(table.schema))))


def _named(chunk: streams.Chunk) -> pd.DataFrame:
    places = range(chunk.first, chunk.first + len(chunk.frame))
    return chunk.frame.set_axis(places if chunk.ids is None else chunk.ids.to_pylist())


def wanted(
    explainer: FasterCE,
    *,
    target: str | None,
    target_score: str | None,
    freeze: Sequence[str] | None,
    vary: Sequence[str] | None,
    range_: Sequence[str] | None,
    rules: Path | None,
    **plain: Any,
) -> dict[str, Any]:
    """The options of `explain` from what was typed."""
    schema = explainer.schema_
    given = list(load_rules(rules)) if rules is not None else []
    frozen = values.columns(schema, freeze or [], "--freeze")
    return {
        "target": values.target(explainer.classes_, target, explainer.numbers_ is not None),
        "target_score": None if target_score is None else values.interval(target_score, "--target-score"),
        "features_to_vary": values.columns(schema, vary, "--vary") if vary else None,
        "permitted_range": values.ranges(schema, range_ or []) or None,
        "rules": [*given, *([Frozen(*frozen)] if frozen else [])],
        **plain,
    }
