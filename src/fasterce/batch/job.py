"""What travels between the runner and its workers: the job, and what becomes of each shard."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fasterce.batch.counts import BatchCounts
from fasterce.errors import FasterCEError, Problem
from fasterce.typing import JsonObject

WORKER_DIED = "WorkerDied"


@dataclass(frozen=True)
class Job:
    """All that a worker needs to know.

    Attributes
    ----------
    artifact : str
        The folder of the explainer; each worker loads it once.
    model : mapping
        Further arguments of `open_explainer`: the model, and how to load it.
    output : str
        The folder to write.
    options : mapping
        Arguments of `explain`.
    where : str or None
        Which rows to explain.
    id_column : str or None
        A column that names the rows.
    keep, partition_by : tuple of str
        Columns to copy to the output, and columns of the output that make folders.
    group : str or None
        The column by whose values cost is summed up.
    batch_rows : int
        Rows explained at a time.
    records : bool
        Whether audit records are written too.
    token : str
        Which run of the output folder this is.
    """

    artifact: str
    model: Mapping[str, Any]
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


@dataclass(frozen=True)
class ShardProgress:
    """The counts of a shard so far."""

    number: int
    counts: BatchCounts


@dataclass(frozen=True)
class ShardDone:
    """A finished shard, with its description in the output folder."""

    number: int
    about: JsonObject


@dataclass(frozen=True)
class ShardFailed:
    """A failed attempt; `kind` is the name of the exception, `final` whether the shard is given up."""

    number: int
    kind: str
    problem: Problem
    final: bool


Event = ShardProgress | ShardDone | ShardFailed


def describe_error(error: Exception) -> tuple[str, Problem]:
    """Return the kind of an error and its problem, which any process can read."""
    kind = type(error).__name__
    if isinstance(error, FasterCEError):
        # As plain data: what was received may be an object of the user's that cannot be pickled.
        return kind, Problem.from_dict(error.problem.to_dict())
    return kind, Problem("batch.unexpected_error", details={"kind": kind, "text": " ".join(str(error).split())[:300]})
