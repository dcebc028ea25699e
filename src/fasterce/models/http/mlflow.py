"""MLflow's scoring protocol: POST /invocations with a table returns predictions."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from fasterce.models.http.client import ConnectionOptions, RemoteModelError, Request
from fasterce.models.http.model import HttpModel, cells, texts, to_json
from fasterce.models.http.responses import Columns, Gives, Response, ResponseReader


class MLflowModel(HttpModel):
    """A model served by `mlflow models serve` or another server with its `/invocations`.

    Parameters
    ----------
    url : str
        The address of the server, with or without /invocations.
    classes : sequence, optional
        The classes, where the server returns positions 0 to C-1 or rows of probabilities.
    gives : {"auto", "labels", "chances"}, default="auto"
        What the server returns. "auto": one value per row is a label, several are probabilities. With "chances", a single
        number per row is the probability of the second class.
    label, chances : str, optional
        Names in a response made of records, if they are not obvious; `chances` may be several.
    params : mapping, optional
        Inference parameters to send along.
    batch_rows : int, default=2000
        Rows per request.
    **connection
        timeout (30.0 seconds per request), retries (3, when the server is busy with status 429, 502, 503 or 504, cannot be
        reached or takes too long), backoff (0.2 seconds before the first repetition, doubled each time, or as Retry-After
        says, at most 10), concurrency (4 requests at once), headers (sent with every request, such as a token; never shown,
        but pickled with the model), most_bytes (64 MiB, the largest response that is read), ca_file (certificates to trust
        instead of the usual ones; certificates are always checked) and trust_env (False; True uses the proxies of the
        environment).
    """

    def __init__(
        self,
        url: str,
        *,
        classes: Sequence[Hashable] | None = None,
        gives: Gives = "auto",
        label: str | None = None,
        chances: str | Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        batch_rows: int = 2_000,
        **connection: Any,
    ) -> None:
        super().__init__(url, ResponseReader(classes, gives, label, chances), batch_rows, ConnectionOptions(**connection))
        self.params = None if params is None else dict(params)
        start, mark, query = self.url.partition("?")
        self._invocations = f"{start.removesuffix('/').removesuffix('/invocations')}/invocations{mark}{query}"

    def _put(self, frame: pd.DataFrame) -> Request:
        columns = [cells(frame.iloc[:, j]) for j in range(frame.shape[1])]
        table = {"columns": list(frame.columns), "data": list(zip(*columns, strict=True))}
        content = {"dataframe_split": table} | ({} if self.params is None else {"params": self.params})
        return Request("POST", self._invocations, to_json(content), lambda: texts(frame))

    def _read(self, content: object, frame: pd.DataFrame, request: Request) -> Response:
        return self._reader.read(_columns(content), len(frame))


def _columns(content: object) -> Columns:
    """Return predictions as named columns; a bare list is one of them."""
    if isinstance(content, dict):
        if "predictions" not in content:
            error = "error_code" in content or "error" in content
            raise RemoteModelError("models.mlflow_error" if error else "models.mlflow_no_predictions")
        content = content["predictions"]
    if isinstance(content, dict):
        return content
    if not isinstance(content, list):
        raise RemoteModelError("models.mlflow_not_a_list", received=type(content).__name__)
    if not content or not isinstance(content[0], dict):
        return {"predictions": content}
    names = list(content[0])
    if any(not isinstance(record, dict) or list(record) != names for record in content):
        raise RemoteModelError("models.mlflow_records")
    return {name: [record[name] for record in content] for name in names}
