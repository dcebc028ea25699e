"""MLflow's scoring protocol: POST /invocations with a table, back come predictions."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fasterce.adapters.http.answers import Columns, Gives, Told
from fasterce.adapters.http.cells import cells, texts, to_json
from fasterce.adapters.http.client import FarSideError, Request
from fasterce.adapters.http.model import FarModel


class MLflowModel(FarModel):
    """A model served by `mlflow models serve` or anything that speaks its `/invocations`.

    Parameters
    ----------
    url : the address of the server, with or without /invocations.
    classes : the classes, where the far side answers positions 0..C-1 or rows of chances.
    gives : "labels", "chances", or "auto": one value a row is a label, several are chances. With "chances" a single number
        a row is the chance of the second class.
    label, chances : names in the answer where it is made of records, if they are not obvious; `chances` may be several.
    params : inference parameters to send along.
    timeout : seconds one request may take.
    retries, backoff : how often a request is tried again when the far side is busy (429, 502, 503, 504), cannot be reached
        or takes too long, and seconds before the first time; doubled each time, or what Retry-After says, at most 10.
    batch_rows, concurrency : rows a request, requests at once.
    headers : sent with every request, a token for instance; never shown. They are pickled with the model.
    most_bytes : the largest answer that is read.
    ca_file : certificates to trust instead of the usual ones. Certificates are always checked.
    trust_env : use the proxies named by the environment; off, so that rows go only where `url` says.
    """

    def __init__(
        self,
        url: str,
        *,
        classes: Sequence[Any] | None = None,
        gives: Gives = "auto",
        label: str | None = None,
        chances: str | Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        backoff: float = 0.2,
        batch_rows: int = 2_000,
        concurrency: int = 4,
        headers: Mapping[str, str] | None = None,
        most_bytes: int = 64 * 2**20,
        ca_file: str | os.PathLike[str] | None = None,
        trust_env: bool = False,
    ) -> None:
        manners = {
            **{"timeout": timeout, "retries": retries, "backoff": backoff, "concurrency": concurrency},
            **{"most_bytes": most_bytes, "headers": dict(headers or {}), "ca_file": ca_file, "trust_env": trust_env},
        }
        super().__init__(
            url, classes=classes, gives=gives, label=label, chances=chances, batch_rows=batch_rows, manners=manners
        )
        self.params = None if params is None else dict(params)
        start, mark, query = self.url.partition("?")
        self._invocations = f"{start.removesuffix('/').removesuffix('/invocations')}/invocations{mark}{query}"

    def _put(self, frame: pd.DataFrame) -> Request:
        columns = [cells(frame.iloc[:, j]) for j in range(frame.shape[1])]
        table = {"columns": list(frame.columns), "data": list(zip(*columns, strict=True))}
        content = {"dataframe_split": table} | ({} if self.params is None else {"params": self.params})
        return Request("POST", self._invocations, to_json(content), lambda: texts(frame))

    def _read(self, answer: Any, frame: pd.DataFrame, asked: Request) -> Told:
        return self._reader.read(_columns(answer), len(frame))


def _columns(answer: Any) -> Columns:
    """Predictions as named columns; a bare list is one of them."""
    if isinstance(answer, dict):
        if "predictions" not in answer:
            what = "an error" if "error_code" in answer or "error" in answer else "something else"
            raise FarSideError(f"An MLflow server must answer with 'predictions'; got {what}.")
        answer = answer["predictions"]
    if isinstance(answer, dict):
        return answer
    if not isinstance(answer, list):
        raise FarSideError(f"An MLflow server must answer with a list of predictions; got a {type(answer).__name__}.")
    if not answer or not isinstance(answer[0], dict):
        return {"predictions": answer}
    names = list(answer[0])
    if any(not isinstance(record, dict) or list(record) != names for record in answer):
        raise FarSideError("An MLflow server must answer with records of the same keys; got different ones.")
    return {name: [record[name] for record in answer] for name in names}
