"""Base classes of models behind HTTP: frames in, batches sent as JSON, labels and probabilities out."""

import json
from abc import ABC, abstractmethod
from typing import Self

import numpy as np
import pandas as pd

from fasterce.data.dtypes import plain
from fasterce.data.frames import as_pandas
from fasterce.errors import InputError, check_count
from fasterce.models.adapters.base import WithClasses, method_if
from fasterce.models.http.client import Client, ConnectionOptions, RemoteModelError, Request, address, check_url
from fasterce.models.http.responses import Response, ResponseReader
from fasterce.typing import Floats, Objects


class ResponseModel(WithClasses, ABC):
    """Labels and probabilities from responses whose kind is known only when they arrive.

    `predict_proba` exists unless the responses are known to be labels only.
    """

    def __init__(self, name: str, reader: ResponseReader) -> None:
        self._name = name
        self._reader = reader
        self._classes = reader.class_array
        self._has_probabilities = None if reader.gives == "auto" else reader.gives == "chances"

    def predict(self, frame: pd.DataFrame) -> Objects:
        """Return one label (or number) per row: the server's own, or the class with the largest probability."""
        response = self._evaluate(frame)
        if response.labels is not None:
            return response.labels
        assert response.chances is not None
        return np.asarray(self.classes_[response.chances.argmax(axis=1)])

    @method_if(lambda self: self._has_probabilities is not False)
    def predict_proba(self, frame: pd.DataFrame) -> Floats:
        response = self._evaluate(frame)
        if response.chances is None:
            raise RemoteModelError("models.http_labels_only", name=self._name)
        return response.chances

    def _evaluate(self, frame: object) -> Response:
        rows = as_pandas(frame, "rows")
        if len(rows) == 0:
            width = 0 if self._classes is None else len(self._classes)
            return Response(np.zeros(0, dtype=object), np.zeros((0, width)) if self._has_probabilities else None)
        return self._joined(self._responses(rows))

    @abstractmethod
    def _responses(self, frame: pd.DataFrame) -> list[Response]:
        """Return the response to each batch of rows."""

    def _joined(self, parts: list[Response]) -> Response:
        """Join batches, and note whether the server returns probabilities, and of how many classes."""
        labels = [part.labels for part in parts if part.labels is not None]
        chances = [part.chances for part in parts if part.chances is not None]
        widths = {(part.chances.shape[1], part.names) for part in parts if part.chances is not None}
        if len(labels) not in (0, len(parts)) or len(chances) not in (0, len(parts)) or len(widths) > 1:
            raise RemoteModelError("models.http_different_batches", name=self._name)
        self._has_probabilities = bool(chances)
        if self._classes is None and widths:
            width, names = widths.pop()
            self._classes = np.array(names, dtype=object) if names else np.arange(width)
        return Response(np.concatenate(labels) if labels else None, np.concatenate(chances) if chances else None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r})"


class HttpModel(ResponseModel):
    """A model evaluated over HTTP, with many rows per request and several requests at once."""

    def __init__(self, url: str, reader: ResponseReader, batch_rows: int, connection: ConnectionOptions) -> None:
        self.url = check_url(url)
        super().__init__(address(url), reader)
        self.batch_rows = batch_rows
        check_count("batch_rows", batch_rows)
        self._client = Client(connection)

    def _responses(self, frame: pd.DataFrame) -> list[Response]:
        batches = [frame.iloc[start : start + self.batch_rows] for start in range(0, len(frame), self.batch_rows)]
        return self._client.send_each(batches, self._put, self._read)

    @abstractmethod
    def _put(self, frame: pd.DataFrame) -> Request: ...

    @abstractmethod
    def _read(self, content: object, frame: pd.DataFrame, request: Request) -> Response: ...

    def close(self) -> None:
        """Close the connections; they open again when needed."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def cells(column: pd.Series) -> list[object]:
    """Return the values of a column: whole numbers, floats, booleans and text keep their type."""
    missing = column.isna()
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf" and not missing.any():
        return list(column.tolist())
    return [plain(value) for value in column.astype(object).where(~missing, None)]


def texts(frame: pd.DataFrame) -> set[str]:
    """Return every text in a table, which must not appear in a message about it."""
    found: set[str] = set()
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name].dtype):
            found.update(str(value) for value in frame[name].dropna().unique())
    return found


def to_json(content: object) -> bytes:
    try:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError):
        raise InputError("models.http_values") from None
