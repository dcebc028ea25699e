"""What models behind HTTP have in common: frames in, batches sent, labels and probabilities out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

import numpy as np
import pandas as pd

from fasterce.data.dtypes import plain
from fasterce.data.frames import as_pandas
from fasterce.errors import InputError
from fasterce.models.adapters.base import label_array
from fasterce.models.http.client import (
    Client,
    ConnectionOptions,
    ConnectionSettings,
    RemoteModelError,
    Request,
    address,
    check_url,
)
from fasterce.models.http.responses import Gives, Reader, Response
from fasterce.models.http.serialization import batches
from fasterce.typing import Floats, Objects


class ResponseModel(ABC):
    """Labels and probabilities from responses whose kind is known only when they arrive.

    `predict_proba` exists unless the responses are known to be labels only.
    """

    def __init__(
        self,
        name: str,
        classes: Sequence[Hashable] | None,
        gives: Gives,
        label: str | None,
        chances: str | Sequence[str] | None,
    ) -> None:
        self._name = name
        self._reader = Reader(None if classes is None else tuple(map(plain, classes)), gives, label, chances)
        self._classes = None if self._reader.classes is None else _class_array(self._reader.classes)
        self._has_probabilities = None if gives == "auto" else gives == "chances"

    def predict(self, frame: pd.DataFrame) -> Objects:
        """Return one label (or number) per row: the server's own, or the class with the largest probability."""
        response = self._evaluate(frame)
        if response.labels is not None:
            return response.labels
        assert response.chances is not None
        return np.asarray(self.classes_[response.chances.argmax(axis=1)])

    @property
    def predict_proba(self) -> Callable[[pd.DataFrame], Floats]:
        if self._has_probabilities is False:
            raise AttributeError(f"{self._name} returns labels only, so it has no 'predict_proba'")
        return self._predict_proba

    def _predict_proba(self, frame: pd.DataFrame) -> Floats:
        response = self._evaluate(frame)
        if response.chances is None:
            raise RemoteModelError("models.http_labels_only", name=self._name)
        return response.chances

    @property
    def classes_(self) -> Objects:
        if self._classes is None:
            raise AttributeError("The classes are unknown before the server returned probabilities; expected classes=[...].")
        return self._classes

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

    def __init__(
        self,
        url: str,
        *,
        classes: Sequence[Hashable] | None,
        gives: Gives,
        label: str | None,
        chances: str | Sequence[str] | None,
        batch_rows: int,
        **connection: Unpack[ConnectionSettings],
    ) -> None:
        self.url = check_url(url)
        super().__init__(address(url), classes, gives, label, chances)
        self.batch_rows = batch_rows
        if isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1:
            raise InputError("options.not_a_count", option="batch_rows", expected=1, received=batch_rows)
        self._client = Client(ConnectionOptions(**connection))

    def _responses(self, frame: pd.DataFrame) -> list[Response]:
        self._prepare()
        return self._client.send_each(list(batches(frame, self.batch_rows)), self._put, self._read)

    def _prepare(self) -> None:
        """Get what must be known before the first batch."""

    @abstractmethod
    def _put(self, frame: pd.DataFrame) -> Request: ...

    @abstractmethod
    def _read(self, content: Any, frame: pd.DataFrame, request: Request) -> Response: ...

    def close(self) -> None:
        """Close the connections; they open again when needed."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _class_array(classes: Sequence[Hashable]) -> Objects:
    """Return an array of classes; text and mixtures stay objects."""
    found = label_array(classes)
    return found.astype(object) if found.dtype.kind == "U" else found
