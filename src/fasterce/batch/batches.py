"""Rows of a shard that are wanted, gathered into full batches: one call of the model asks about as many as it can."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fasterce.batch import where
from fasterce.batch.where import SCORE, Name, Node
from fasterce.errors import InputError, ModelError
from fasterce.explainer import FasterCE
from fasterce.predictor import FAILED, Predictor
from fasterce.streams import Chunk

Mask = NDArray[np.bool_]

FEWEST_TO_TELL = 10


@dataclass(frozen=True)
class Batch:
    """Some rows: their positions in the whole input, the explainer's columns, ids, and the other columns read; `doubtful` are
    those the model failed on when it was asked whether they are wanted."""

    positions: NDArray[np.int64]
    frame: pd.DataFrame
    ids: pa.Array | None
    columns: pa.Table
    doubtful: Mask

    def __len__(self) -> int:
        return len(self.positions)

    @classmethod
    def of(cls, chunk: Chunk, first: int) -> "Batch":
        """A chunk whose first row has the position `first`."""
        return cls.plain(np.arange(first, first + len(chunk.frame)), chunk.frame, chunk.ids, chunk.passthrough)

    @classmethod
    def plain(cls, positions: NDArray[np.int64], frame: pd.DataFrame, ids: pa.Array | None, columns: pa.Table) -> "Batch":
        """Rows nothing was asked about yet."""
        return cls(positions, frame, ids, columns, np.zeros(len(positions), dtype=bool))

    @classmethod
    def join(cls, parts: Sequence["Batch"]) -> "Batch":
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.positions for part in parts]),
            pd.concat([part.frame for part in parts], ignore_index=True),
            None if parts[0].ids is None else pa.concat_arrays([part.ids for part in parts]),
            pa.concat_tables([part.columns for part in parts]),
            np.concatenate([part.doubtful for part in parts]),
        )

    def take(self, rows: Mask | slice) -> "Batch":
        if isinstance(rows, slice):
            rows = np.isin(np.arange(len(self)), np.arange(len(self))[rows])
        kept = pa.array(np.flatnonzero(rows))
        columns = self.columns.take(kept) if self.columns.num_columns else empty_columns(len(kept))
        ids = None if self.ids is None else self.ids.take(kept)
        return Batch(self.positions[rows], self.frame[rows].reset_index(drop=True), ids, columns, self.doubtful[rows])

    def column(self, name: str) -> pa.Array:
        return self.columns.column(name).combine_chunks() if len(self) else pa.array([], self.columns.field(name).type)


def empty_columns(rows: int) -> pa.Table:
    """A table of so many rows without a column."""
    return pa.table({"": pa.nulls(rows)}).select([])


@dataclass(frozen=True)
class Filter:
    """A condition, in the part the input answers and the part the model does; `score` is about the class at `position`."""

    given: Node | None = None
    asked: Node | None = None
    position: int = 0

    @classmethod
    def read(cls, text: str | None, explainer: FasterCE, target: Any) -> "Filter":
        """What was typed, checked against the model."""
        if text is None:
            return cls()
        given, asked = where.split(where.parse(text))
        if asked is None:
            return cls(given)
        if explainer.numbers_ is None:
            asked = where.check_classes(asked, explainer.classes_)
        of_scores = SCORE in {name.text for name in where.names(asked)}
        return cls(given, asked, _position(explainer, target) if of_scores else 0)

    @property
    def columns(self) -> list[str]:
        """The columns of the input it needs."""
        every = [part for part in (self.given, self.asked) if part is not None]
        return sorted({name.text for part in every for name in where.names(part) if not name.asked})

    def wanted_before(self, batch: Batch) -> Mask:
        """What the input says: only rows for which the condition is true."""
        if self.given is None:
            return np.ones(len(batch), dtype=bool)
        return _mask(where.evaluate(self.given, lambda name: batch.column(name.text)), False)

    def wanted(self, batch: Batch, predictor: Predictor) -> Batch:
        """The rows the model says are wanted; one it cannot be asked about stays, to be told by its status."""
        if self.asked is None or not len(batch):
            return batch
        reading = predictor.table.read(batch.frame)
        sound = np.ones(len(batch), dtype=bool)
        sound[list(reading.problems)] = False
        said = _Said(predictor, predictor.table.frame(reading.codes[sound]), self.position)
        part = batch.take(sound)

        def column(name: Name) -> pa.Array:
            return said.column(name.text) if name.asked else part.column(name.text)

        keep = np.ones(len(batch), dtype=bool)
        keep[sound] = _mask(where.evaluate(self.asked, column), False) | said.failed
        check_answering(said.failed, predictor.failure)
        doubtful = np.zeros(len(batch), dtype=bool)
        doubtful[sound] = said.failed
        return replace(batch, doubtful=doubtful).take(keep)


class _Said:
    """What the model says about some rows, asked when it is needed."""

    def __init__(self, predictor: Predictor, frame: pd.DataFrame, position: int) -> None:
        self.predictor, self.frame, self.position = predictor, frame, position
        self.failed: Mask = np.zeros(len(frame), dtype=bool)
        self.known: dict[str, pa.Array] = {}

    def column(self, name: str) -> pa.Array:
        if name not in self.known:
            raw = name == SCORE or self.predictor.numbers is not None
            final = self.predictor.last_word(self.frame, raw)
            failed = final.classes == FAILED
            self.failed |= failed
            if raw:
                place = 0 if self.predictor.numbers is not None else self.position
                values = final.values[:, place] if final.values is not None else np.full(len(self.frame), np.nan)
                self.known[name] = pa.array(values, mask=failed)
            else:
                labels = np.array([*map(str, self.predictor.classes), ""], dtype=object)
                self.known[name] = pa.array(labels[final.classes], pa.string(), mask=failed)
        return self.known[name]


def check_answering(failed: Mask, said: str) -> None:
    """A model that fails on a row is told by the row's status; one that fails on every row of many is down."""
    if len(failed) >= FEWEST_TO_TELL and failed.all():
        raise ModelError(f"The model must answer; it failed on all {len(failed)} rows of a batch: {said}")


def gathered(batches: Iterable[Batch], rows: int) -> Iterator[Batch]:
    """The same rows in batches of `rows`, the last one of what is left."""
    waiting: list[Batch] = []
    for batch in batches:
        if not len(batch):
            continue
        waiting.append(batch)
        while sum(map(len, waiting)) >= rows:
            joined = Batch.join(waiting)
            yield joined if len(joined) == rows else joined.take(slice(0, rows))
            waiting = [joined.take(slice(rows, None))] if len(joined) > rows else []
    if waiting:
        yield Batch.join(waiting)


def _mask(found: pa.Array, unknown: bool) -> Mask:
    return np.asarray(pc.fill_null(found, unknown).to_numpy(zero_copy_only=False), dtype=bool)


def _position(explainer: FasterCE, target: Any) -> int:
    """The class a score is the chance of: the wanted one, or the second of two."""
    if explainer.numbers_ is not None:
        return 0
    predictor = explainer._predictor()
    if not (predictor.use_scores and predictor.has_chances):
        raise InputError("where: score needs a model with predict_proba that agrees with its labels; this one has none.")
    if target is not None and target in explainer.classes_:
        return predictor.position(target)
    if len(explainer.classes_) != 2:
        raise InputError("where: score is the chance of the class wanted; expected a target, for there are more than two.")
    return 1
