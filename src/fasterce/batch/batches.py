"""The rows of a shard that pass the filter, joined into full batches: one model call evaluates as many as possible."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fasterce.batch.where import evaluate
from fasterce.config import BatchConfig
from fasterce.constraints.filter import SCORE, ColumnName, Condition, names_of, parse_filter, split, with_classes
from fasterce.errors import InputError, ModelError, Problem
from fasterce.explainer import FasterCE
from fasterce.io.source import table_without_columns
from fasterce.models.predictions import FAILED
from fasterce.models.predictor import Predictor
from fasterce.typing import Mask

FEWEST_FAILED = BatchConfig().min_failed_rows


@dataclass(frozen=True)
class Batch:
    """Rows to explain.

    Attributes
    ----------
    positions : int array
        Positions in the whole input.
    frame : DataFrame
        The explainer's columns.
    ids : Arrow array or None
    columns : Arrow table
        The other columns read.
    unfiltered : bool array
        Rows the model failed on when it was evaluated for the filter.
    """

    positions: NDArray[np.int64]
    frame: pd.DataFrame
    ids: pa.Array | None
    columns: pa.Table
    unfiltered: Mask

    def __len__(self) -> int:
        return len(self.positions)

    @classmethod
    def make(cls, first: int, frame: pd.DataFrame, ids: pa.Array | None, columns: pa.Table) -> "Batch":
        """Return consecutive rows, the first at position `first`."""
        return cls(np.arange(first, first + len(frame)), frame, ids, columns, np.zeros(len(frame), dtype=bool))

    @classmethod
    def join(cls, parts: Sequence["Batch"]) -> "Batch":
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.positions for part in parts]),
            pd.concat([part.frame for part in parts], ignore_index=True),
            None if parts[0].ids is None else pa.concat_arrays([part.ids for part in parts]),
            pa.concat_tables([part.columns for part in parts]),
            np.concatenate([part.unfiltered for part in parts]),
        )

    def take(self, rows: Mask | slice) -> "Batch":
        kept = pa.array(np.arange(len(self))[rows])
        columns = self.columns.take(kept) if self.columns.num_columns else table_without_columns(len(kept))
        ids = None if self.ids is None else self.ids.take(kept)
        return Batch(self.positions[rows], self.frame[rows].reset_index(drop=True), ids, columns, self.unfiltered[rows])

    def column(self, name: str) -> pa.Array:
        return self.columns.column(name).combine_chunks() if len(self) else pa.array([], self.columns.field(name).type)


@dataclass(frozen=True)
class Filter:
    """A condition on rows, as a part on columns of the input and a part that needs the model.

    `position` is the class whose probability `score` is.
    """

    of_input: Condition | None = None
    of_model: Condition | None = None
    position: int = 0

    @classmethod
    def parse(cls, text: str | None, explainer: FasterCE, target: object) -> "Filter":
        """Parse a condition and check it against the model."""
        if text is None:
            return cls()
        of_input, of_model = split(parse_filter(text))
        if of_model is None:
            return cls(of_input)
        if explainer.state_.numbers is None:
            of_model = with_classes(of_model, explainer.classes_)
        uses_score = SCORE in {name.text for name in names_of(of_model)}
        return cls(of_input, of_model, _class_position(explainer, target) if uses_score else 0)

    @property
    def parts(self) -> list[Condition]:
        return [part for part in (self.of_input, self.of_model) if part is not None]

    @property
    def columns(self) -> list[str]:
        """The columns of the input it needs."""
        return sorted({name.text for part in self.parts for name in names_of(part) if not name.from_model})

    def select(self, batch: Batch, predictor: Predictor) -> Batch:
        """Return the rows for which the condition is true.

        A row that cannot be read or evaluated is kept, to be reported by its status.
        """
        if self.of_input is not None:
            batch = batch.take(_true(evaluate(self.of_input, lambda name: batch.column(name.text))))
        if self.of_model is None or not len(batch):
            return batch
        reading = predictor.table.read(batch.frame)
        readable = np.ones(len(batch), dtype=bool)
        readable[list(reading.problems)] = False
        evaluated = _ModelColumns(predictor, predictor.table.frame(reading.codes[readable]), self.position)
        part = batch.take(readable)

        def column(name: ColumnName) -> pa.Array:
            return evaluated.column(name.text) if name.from_model else part.column(name.text)

        keep, unfiltered = np.ones(len(batch), dtype=bool), np.zeros(len(batch), dtype=bool)
        keep[readable] = _true(evaluate(self.of_model, column)) | evaluated.failed
        check_model_is_up(evaluated.failed, predictor.error().problem)
        unfiltered[readable] = evaluated.failed
        return replace(batch, unfiltered=unfiltered).take(keep)


class _ModelColumns:
    """Predictions and scores of rows, evaluated when they are first needed."""

    def __init__(self, predictor: Predictor, frame: pd.DataFrame, position: int) -> None:
        self.predictor, self.frame, self.position = predictor, frame, position
        self.failed: Mask = np.zeros(len(frame), dtype=bool)
        self.known: dict[str, pa.Array] = {}

    def column(self, name: str) -> pa.Array:
        if name not in self.known:
            raw = name == SCORE or self.predictor.numbers is not None
            predictions = self.predictor.verify(self.frame, raw)
            failed = predictions.classes == FAILED
            self.failed |= failed
            if raw:
                place = 0 if self.predictor.numbers is not None else self.position
                missing = np.full((len(self.frame), place + 1), np.nan)
                values = missing if predictions.values is None else predictions.values
                self.known[name] = pa.array(values[:, place], mask=failed)
            else:
                labels = np.array([*map(str, self.predictor.classes), ""], dtype=object)
                self.known[name] = pa.array(labels[predictions.classes], pa.string(), mask=failed)
        return self.known[name]


def check_model_is_up(failed: Mask, reason: Problem | str) -> None:
    """Raise if a model fails on every one of many rows; a model that fails on some gives them a status."""
    if len(failed) >= FEWEST_FAILED and failed.all():
        raise ModelError("batch.model_down", rows=len(failed), reason=reason)


def rebatch(batches: Iterable[Batch], rows: int) -> Iterator[Batch]:
    """Yield the same rows in batches of `rows`; the last one has what is left."""
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


def _true(found: pa.Array) -> Mask:
    return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), dtype=bool)


def _class_position(explainer: FasterCE, target: object) -> int:
    """Return the class whose probability `score` is: the target, or the second of two."""
    if explainer.state_.numbers is not None:
        return 0
    predictor = explainer._predictor()
    if not (predictor.use_scores and predictor.has_chances):
        raise InputError("batch.no_scores", option="where")
    if target is not None and target in explainer.classes_:
        return predictor.position(target)
    if len(explainer.classes_) != 2:
        raise InputError("batch.score_needs_target", option="where")
    return 1
