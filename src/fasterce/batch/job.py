"""What is to be done with every shard, as plain data that travels to the workers, and the explainer each of them opens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

from fasterce import artifact
from fasterce.explainer import FasterCE
from fasterce.models import load_model
from fasterce.streams import Rows, open_rows


@dataclass(frozen=True)
class ModelSource:
    """Which model: None for the one the artifact brings, a file, import path or address, or the model itself."""

    given: Any = None
    trust_pickle: bool = False
    trusted: tuple[str, ...] = ()
    classes: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Opened:
    """An explainer with its model, and the model's digest for the records."""

    explainer: FasterCE
    model_digest: str | None


@dataclass(frozen=True)
class Job:
    """All that a worker needs to know.

    options       arguments of `explain`
    where         which rows, as it was typed; None for all
    id_column     a column that names the rows, and `keep`, those handed on
    partition_by  columns of the output that make folders
    group         the column by which cost is summed up
    batch_rows    how many rows are explained at a time
    output        the folder written to, and `token`, which of its runs this is
    records       whether audit records are written too
    """

    artifact: str
    model: ModelSource
    output: str
    options: Mapping[str, Any]
    where: str | None = None
    id_column: str | None = None
    keep: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    group: str | None = None
    batch_rows: int = 5000
    separator: str | None = None
    encoding: str | None = None
    records: bool = False
    token: str = ""

    def open(self) -> Opened:
        """The artifact and its model, loaded."""
        return open_explainer(self.artifact, self.model)

    def rows(self, source: str, explainer: FasterCE, columns: Sequence[str]) -> Rows:
        """A file of the input, read with these columns beside the explainer's."""
        return open_rows(
            source,
            table=explainer.table_,
            chunk_rows=self.batch_rows,
            separator=self.separator,
            encoding=self.encoding,
            ids=self.id_column,
            keep=columns,
        )


def open_explainer(folder: str | PathLike[str], model: ModelSource) -> Opened:
    """The explainer of a folder, with the model named or else the one the folder brings."""
    if model.given is None:
        loaded = artifact.bundled_model(folder, trusted=model.trusted)
        found, digest = loaded.model, loaded.digest
    elif isinstance(model.given, (str, PathLike)):
        loaded = load_model(
            fspath(model.given), trust_pickle=model.trust_pickle, trusted=model.trusted, classes=model.classes
        )
        found, digest = loaded.model, loaded.digest
    else:
        found, digest = model.given, None
    explainer = artifact.load(folder, found)
    explainer.progress = False
    return Opened(explainer, digest)
