"""What models behind HTTP have in common: frames in, batches out and back, labels and chances."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.adapters.http.answers import Gives, Reader, Told
from fasterce.adapters.http.cells import batches
from fasterce.adapters.http.client import Client, FarSideError, Manners, Request, address, check_url
from fasterce.errors import InputError
from fasterce.frames import as_pandas
from fasterce.profile import Floats
from fasterce.schema import plain


class Answering(ABC):
    """Labels and chances from answers whose kind shows only when they come.

    `predict_proba` is there unless the answers turned out, or are said, to be labels only.
    """

    def __init__(
        self, where: str, classes: Sequence[Any] | None, gives: Gives, label: str | None, chances: str | Sequence[str] | None
    ) -> None:
        self._where = where
        self._reader = Reader(None if classes is None else tuple(map(plain, classes)), gives, label, chances)
        self._classes = None if classes is None else np.array(self._reader.classes, dtype=_kind(self._reader.classes or ()))
        self._gives_chances = None if gives == "auto" else gives == "chances"

    def predict(self, frame: pd.DataFrame) -> NDArray[Any]:
        """One label (or number) a row: the far side's own, or where it gives chances only the class with the largest."""
        told = self._ask(frame)
        if told.labels is not None:
            return told.labels
        assert told.chances is not None
        return np.asarray(self.classes_[told.chances.argmax(axis=1)])

    @property
    def predict_proba(self) -> Callable[[pd.DataFrame], Floats]:
        if self._gives_chances is False:
            raise AttributeError(f"{self._where} answers labels only, so it has no 'predict_proba'")
        return self._predict_proba

    def _predict_proba(self, frame: pd.DataFrame) -> Floats:
        told = self._ask(frame)
        if told.chances is None:
            raise FarSideError(f"{self._where} must answer with chances; got labels only.")
        return told.chances

    @property
    def classes_(self) -> NDArray[Any]:
        if self._classes is None:
            raise AttributeError("The classes are not known before the far side gave chances; expected classes=[…].")
        return self._classes

    def _ask(self, frame: Any) -> Told:
        frame = as_pandas(frame, "rows")
        if not isinstance(frame, pd.DataFrame):
            raise InputError(f"{type(self).__name__} must be asked with a table; got {type(frame).__name__}.")
        if len(frame) == 0:
            width = 0 if self._classes is None else len(self._classes)
            return Told(np.zeros(0, dtype=object), np.zeros((0, width)) if self._gives_chances else None)
        return self._noted(self._answers(frame))

    @abstractmethod
    def _answers(self, frame: pd.DataFrame) -> list[Told]:
        """What was told of each batch of rows."""

    def _noted(self, parts: list[Told]) -> Told:
        """Batches as one, and what they show of the far side: whether it gives chances, and of how many classes."""
        labelled, scored = ({getattr(part, kind) is not None for part in parts} for kind in ("labels", "chances"))
        widths = {(part.chances.shape[1], part.names) for part in parts if part.chances is not None}
        if len(labelled) > 1 or len(scored) > 1 or len(widths) > 1:
            raise FarSideError(f"{self._where} must answer every batch alike; got different kinds of answers.")
        self._gives_chances = True in scored
        if self._classes is None and widths:
            width, names = widths.pop()
            self._classes = np.array(names, dtype=object) if names else np.arange(width)
        labels = np.concatenate([part.labels for part in parts]) if True in labelled else None
        return Told(labels, np.concatenate([part.chances for part in parts]) if True in scored else None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._where!r})"


class FarModel(Answering):
    """A model that is asked over HTTP, many rows a request and several requests at once."""

    def __init__(
        self,
        url: str,
        *,
        classes: Sequence[Any] | None,
        gives: Gives,
        label: str | None,
        chances: str | Sequence[str] | None,
        batch_rows: int,
        manners: Mapping[str, Any],
    ) -> None:
        self.url = check_url(url)
        super().__init__(address(url), classes, gives, label, chances)
        self.batch_rows = batch_rows
        if isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1:
            raise InputError(f"batch_rows must be a whole number of at least 1; got {batch_rows!r}.")
        self._client = Client(Manners(**manners))

    def _answers(self, frame: pd.DataFrame) -> list[Told]:
        self._prepare()
        return self._client.ask_each(list(batches(frame, self.batch_rows)), self._put, self._read)

    def _prepare(self) -> None:
        """What must be known before the first batch."""

    @abstractmethod
    def _put(self, frame: pd.DataFrame) -> Request: ...

    @abstractmethod
    def _read(self, answer: Any, frame: pd.DataFrame, asked: Request) -> Told: ...

    def close(self) -> None:
        """Close the connections; they open again when asked."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _kind(classes: Sequence[Any]) -> Any:
    """The type of an array of classes: text and mixtures stay objects."""
    kinds = {type(name) for name in classes}
    return None if len(kinds) == 1 and kinds <= {int, float, bool} else object
