"""Open Inference V2: the far side says what its inputs are, one for each column or one matrix for all."""

import os
from collections.abc import Mapping, Sequence
from itertools import chain, count
from typing import Any, Literal
from urllib.parse import quote

import numpy as np
import pandas as pd

from fasterce.adapters.http.answers import Columns, Gives, Told
from fasterce.adapters.http.cells import cells, texts, to_json
from fasterce.adapters.http.client import FarSideError, Request
from fasterce.adapters.http.model import FarModel
from fasterce.errors import InputError, shorten

Inputs = Literal["auto", "columns", "matrix"]
Content = dict[str, Any]

WHOLE = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
FLOATS = {"FP16": np.float16, "FP32": np.float32, "FP64": np.float64}
KNOWN = (*WHOLE, *FLOATS, "BOOL", "BYTES")


class InferenceModel(FarModel):
    """A model behind a server that speaks Open Inference V2 (KServe, MLServer, Triton, OpenVINO).

    A missing value is sent as null. The parameters that are not named here are those of `MLflowModel`.

    Parameters
    ----------
    url : the address of the server, with `name`, or of the model: http://host/v2/models/NAME.
    inputs : "columns" sends one input a column, "matrix" all columns, which must be numbers, as one. "auto" goes by the
        metadata the far side gives; where these name no inputs, by columns.
    parameters : request parameters; None says {"content_type": "pd"} (MLServer's for tables) for columns nobody declared.
    label, chances : names of outputs, if they are not obvious. Where given, only these are requested.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str | None = None,
        inputs: Inputs = "auto",
        parameters: Mapping[str, Any] | None = None,
        classes: Sequence[Any] | None = None,
        gives: Gives = "auto",
        label: str | None = None,
        chances: str | None = None,
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
        if inputs not in ("auto", "columns", "matrix"):
            raise InputError(f"inputs must be 'auto', 'columns' or 'matrix'; got {inputs!r}.")
        self.inputs = inputs
        self.parameters = None if parameters is None else dict(parameters)
        self._model = _model_address(self.url, name)
        self._declared: list[Content] | None = None
        self._turn = count()

    def __getstate__(self) -> Content:
        return {key: value for key, value in self.__dict__.items() if key != "_turn"}

    def __setstate__(self, state: Content) -> None:
        self.__dict__.update(state, _turn=count())

    @property
    def declared(self) -> list[Content]:
        """The inputs the far side declares, asked once; empty where it declares none."""
        if self._declared is None:
            metadata = self._client.get(self._model)
            told = metadata.get("inputs") or [] if isinstance(metadata, dict) else None
            if not isinstance(told, list) or not all(_is_input(one) for one in told):
                raise FarSideError("The metadata of a V2 model must list inputs with name, datatype and shape; got others.")
            self._declared = told
        return self._declared

    def _prepare(self) -> None:
        _ = self.declared

    def _put(self, frame: pd.DataFrame) -> Request:
        declared = self.declared
        content: Content = {"id": f"fasterce-{next(self._turn)}"}
        as_matrix = self.inputs == "matrix" or (self.inputs == "auto" and _is_matrix(declared, frame))
        a_table = not (as_matrix or declared)
        parameters = {"content_type": "pd"} if a_table and self.parameters is None else self.parameters
        if parameters:
            content["parameters"] = parameters
        content["inputs"] = [_matrix(frame, declared)] if as_matrix else _columns(frame, declared)
        wanted = [name for name in (self._reader.label, self._reader.chances) if name is not None]
        if wanted:
            content["outputs"] = [{"name": name} for name in wanted]
        return Request("POST", f"{self._model}/infer", to_json(content), lambda: texts(frame), content["id"])

    def _read(self, answer: Any, frame: pd.DataFrame, asked: Request) -> Told:
        if not isinstance(answer, dict) or not isinstance(answer.get("outputs"), list):
            what = "an error" if isinstance(answer, dict) and "error" in answer else "something else"
            raise FarSideError(f"A V2 server must answer with 'outputs'; got {what}.")
        if answer.get("id", asked.id) != asked.id:
            raise FarSideError("A V2 server must answer with the id of the request; got another one.")
        return self._reader.read(_outputs(answer["outputs"], len(frame)), len(frame))


def _model_address(url: str, name: str | None) -> str:
    start = url.removesuffix("/").removesuffix("/infer")
    if "/v2/models/" in start:
        if name is not None:
            raise InputError(f"The model must be named once, in url or by name=; got both ({name!r}).")
        return start
    if not name:
        raise InputError("The model must be named, by name= or by a url like http://host/v2/models/NAME; got no name.")
    return f"{start.removesuffix('/v2')}/v2/models/{quote(name, safe='')}"


def _is_input(one: Any) -> bool:
    return (
        isinstance(one, dict)
        and isinstance(one.get("name"), str)
        and one.get("datatype") in KNOWN
        and isinstance(one.get("shape"), list)
    )


def _is_matrix(declared: list[Content], frame: pd.DataFrame) -> bool:
    """One declared input that is not one of several columns."""
    if len(declared) != 1:
        return False
    width = declared[0]["shape"][-1] if len(declared[0]["shape"]) > 1 else 1
    return frame.shape[1] > 1 or (width != 1 and declared[0]["name"] != frame.columns[0])


def _matrix(frame: pd.DataFrame, declared: list[Content]) -> Content:
    texts_in = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name].dtype)]
    if texts_in:
        raise InputError(f"A matrix must be made of numbers; got other values in {shorten(texts_in, 4)}.")
    about: Content = declared[0] if declared else {"name": "input-0", "datatype": "FP64", "shape": [-1, -1]}
    width = about["shape"][-1]
    if isinstance(width, int) and width >= 0 and width != frame.shape[1]:
        raise InputError(f"The far side takes {width} numbers a row; got a table of {frame.shape[1]} columns.")
    values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    data = cells(pd.Series(_as(values.ravel(), about["datatype"])))
    return {"name": about["name"], "shape": list(values.shape), "datatype": about["datatype"], "data": data}


def _as(values: Any, datatype: str) -> Any:
    """Numbers as the far side will hold them; where some are missing they stay floats."""
    if datatype in FLOATS:
        return values.astype(FLOATS[datatype]).astype(np.float64)
    return values.astype(np.int64) if datatype in WHOLE and np.isfinite(values).all() else values


def _columns(frame: pd.DataFrame, declared: list[Content]) -> list[Content]:
    """One input a column, as declared, in the declared order; by the column's own type where nothing is declared."""
    if not declared:
        return [_column(frame[name], {"name": str(name), "shape": [-1, 1]}) for name in frame.columns]
    by_name = {str(name): name for name in frame.columns}
    if {one["name"] for one in declared} != set(by_name):
        wanted = shorten([one["name"] for one in declared], 4)
        raise InputError(f"The far side takes the inputs {wanted}; got the columns {shorten(by_name, 4)}.")
    return [_column(frame[by_name[one["name"]]], one) for one in declared]


def _column(column: pd.Series, about: Content) -> Content:
    datatype = about.get("datatype") or _datatype(column)
    data = cells(column)
    if datatype in FLOATS and pd.api.types.is_numeric_dtype(column.dtype):
        data = cells(pd.Series(_as(column.to_numpy(dtype=np.float64, na_value=np.nan), datatype)))
    elif datatype in WHOLE:
        data = [int(value) if isinstance(value, float) and value.is_integer() else value for value in data]
    shape = [len(column), 1] if len(about["shape"]) > 1 else [len(column)]
    content: Content = {"name": about["name"], "shape": shape, "datatype": datatype, "data": data}
    return content | {"parameters": {"content_type": "str"}} if datatype == "BYTES" else content


def _datatype(column: pd.Series) -> str:
    """Whole numbers and booleans with gaps are sent as floats, which every far side can hold missing."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    if not pd.api.types.is_numeric_dtype(dtype):
        return "BYTES"
    if pd.api.types.is_float_dtype(dtype):
        return "FP32" if getattr(dtype, "itemsize", 8) == 4 else "FP64"
    if bool(column.isna().any()):
        return "FP64"
    return "BOOL" if pd.api.types.is_bool_dtype(dtype) else "INT64"


def _outputs(outputs: list[Any], rows: int) -> Columns:
    """Every output as a list with an entry a row; data may come flat or nested."""
    found = {}
    for one in outputs:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str) or not isinstance(one.get("data"), list):
            raise FarSideError("A V2 output must have a name and data in JSON; got something else.")
        data, shape = one["data"], one.get("shape")
        nested = bool(data) and all(isinstance(part, list) for part in data)
        flat = list(chain.from_iterable(data)) if nested else data
        width = len(flat) // rows
        uneven = nested and {len(part) for part in data} != {width}
        if width == 0 or width * rows != len(flat) or uneven or (isinstance(shape, list) and shape[:1] != [rows]):
            raise FarSideError(f"A V2 output must have an entry a row; got {len(flat)} values for {rows} rows.")
        found[one["name"]] = flat if width == 1 else [flat[k : k + width] for k in range(0, len(flat), width)]
    return found
