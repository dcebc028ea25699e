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


class FarModel(ABC):
    """A model that is asked over HTTP, many rows a request and several requests at once.

    `predict_proba` is there unless the far side turned out, or is said, to answer labels only.
    """

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
        self.batch_rows = batch_rows
        if isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1:
            raise InputError(f"batch_rows must be a whole number of at least 1; got {batch_rows!r}.")
        self._reader = Reader(None if classes is None else tuple(classes), gives, label, chances)
        self._client = Client(Manners(**manners))
        self._classes = None if classes is None else np.array(list(classes), dtype=_kind(classes))
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
            raise AttributeError(f"{address(self.url)} answers labels only, so it has no 'predict_proba'")
        return self._predict_proba

    def _predict_proba(self, frame: pd.DataFrame) -> Floats:
        told = self._ask(frame)
        if told.chances is None:
            raise FarSideError(f"{address(self.url)} must answer with chances; got labels only.")
        return told.chances

    @property
    def classes_(self) -> NDArray[Any]:
        if self._classes is None:
            raise AttributeError("The classes are not known before the far side gave chances; expected classes=[…].")
        return self._classes

    def _ask(self, frame: Any) -> Told:
        frame = as_pandas(frame, "rows")
        if not isinstance(frame, pd.DataFrame):
            raise InputError(f"A model behind HTTP must be asked with a table; got {type(frame).__name__}.")
        if len(frame) == 0:
            width = 0 if self._classes is None else len(self._classes)
            return Told(np.zeros(0, dtype=object), np.zeros((0, width)) if self._gives_chances else None)
        self._prepare()
        return self._noted(self._client.ask_each(list(batches(frame, self.batch_rows)), self._put, self._read))

    def _noted(self, parts: list[Told]) -> Told:
        """Batches as one, and what they show of the far side: whether it gives chances, and of how many classes."""
        labelled, scored = ({getattr(part, kind) is not None for part in parts} for kind in ("labels", "chances"))
        widths = {(part.chances.shape[1], part.names) for part in parts if part.chances is not None}
        if len(labelled) > 1 or len(scored) > 1 or len(widths) > 1:
            raise FarSideError(f"{address(self.url)} must answer every batch alike; got different kinds of answers.")
        self._gives_chances = True in scored
        if self._classes is None and widths:
            width, names = widths.pop()
            self._classes = np.array(names, dtype=object) if names else np.arange(width)
        labels = np.concatenate([part.labels for part in parts]) if True in labelled else None
        return Told(labels, np.concatenate([part.chances for part in parts]) if True in scored else None)

    def _prepare(self) -> None:  # noqa: B027 - not every far side has to be asked about itself first
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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({address(self.url)!r})"


def _kind(classes: Sequence[Any]) -> Any:
    """The type of an array of classes: text and mixtures stay objects."""
    kinds = {type(name) for name in classes}
    return None if len(kinds) == 1 and kinds <= {int, float, bool} else object
