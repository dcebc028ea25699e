"""Open Inference V2: the server declares its inputs, one per column or one matrix for all."""

from collections.abc import Hashable, Mapping, Sequence
from itertools import chain, count
from typing import Any, Literal
from urllib.parse import quote

import numpy as np
import pandas as pd

from fasterce.errors import InputError
from fasterce.models.http.client import ConnectionOptions, RemoteModelError, Request
from fasterce.models.http.model import HttpModel, cells, texts, to_json
from fasterce.models.http.responses import Columns, Gives, Response, ResponseReader
from fasterce.options import check_choice

Inputs = Literal["auto", "columns", "matrix"]
Content = dict[str, Any]

WHOLE = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
FLOATS = {"FP16": np.float16, "FP32": np.float32, "FP64": np.float64}
KNOWN = (*WHOLE, *FLOATS, "BOOL", "BYTES")


class InferenceModel(HttpModel):
    """A model behind a server with the Open Inference V2 protocol (KServe, MLServer, Triton, OpenVINO).

    A missing value is sent as null.

    Parameters
    ----------
    url : str
        The address of the server, with `name`, or of the model: http://host/v2/models/NAME.
    name : str, optional
        The name of the model.
    inputs : {"auto", "columns", "matrix"}, default="auto"
        "columns" sends one input per column, "matrix" all columns, which must be numbers, as one. "auto" follows the
        metadata of the server; where these declare no inputs, by columns.
    parameters : mapping, optional
        Request parameters; None sends {"content_type": "pd"} (MLServer's for tables) for columns not declared.
    label, chances : str, optional
        Names of outputs, if they are not obvious. If given, only these are requested.
    classes, gives, batch_rows, **connection
        As for `MLflowModel`.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str | None = None,
        inputs: Inputs = "auto",
        parameters: Mapping[str, Any] | None = None,
        classes: Sequence[Hashable] | None = None,
        gives: Gives = "auto",
        label: str | None = None,
        chances: str | None = None,
        batch_rows: int = 2_000,
        **connection: Any,
    ) -> None:
        super().__init__(url, ResponseReader(classes, gives, label, chances), batch_rows, ConnectionOptions(**connection))
        check_choice("inputs", inputs, ("auto", "columns", "matrix"))
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
        """The inputs the server declares, requested once; empty where it declares none."""
        if self._declared is None:
            metadata = self._client.get(self._model)
            inputs = metadata.get("inputs") or [] if isinstance(metadata, dict) else None
            if not isinstance(inputs, list) or not all(_is_input(one) for one in inputs):
                raise RemoteModelError("models.v2_metadata")
            self._declared = inputs
        return self._declared

    def _responses(self, frame: pd.DataFrame) -> list[Response]:
        _ = self.declared  # Requested before the first batch is.
        return super()._responses(frame)

    def _put(self, frame: pd.DataFrame) -> Request:
        declared = self.declared
        as_matrix = self.inputs == "matrix" or (self.inputs == "auto" and _is_matrix(declared, frame))
        a_table = not (as_matrix or declared)
        turn = f"fasterce-{next(self._turn)}"
        content: Content = {
            "id": turn,
            "parameters": {"content_type": "pd"} if a_table and self.parameters is None else self.parameters,
            "inputs": [_matrix(frame, declared)] if as_matrix else _columns(frame, declared),
            "outputs": [{"name": name} for name in (self._reader.label, self._reader.chances) if name is not None],
        }
        body = to_json({name: part for name, part in content.items() if part})
        return Request("POST", f"{self._model}/infer", body, lambda: texts(frame), turn)

    def _read(self, content: object, frame: pd.DataFrame, request: Request) -> Response:
        if not isinstance(content, dict) or not isinstance(content.get("outputs"), list):
            error = isinstance(content, dict) and "error" in content
            raise RemoteModelError("models.v2_error" if error else "models.v2_no_outputs")
        if content.get("id", request.id) != request.id:
            raise RemoteModelError("models.v2_id")
        return self._reader.read(_outputs(content["outputs"], len(frame)), len(frame))


def _model_address(url: str, name: str | None) -> str:
    start = url.removesuffix("/").removesuffix("/infer")
    if "/v2/models/" in start:
        if name is not None:
            raise InputError("models.v2_named_twice", option="name", received=name)
        return start
    if not name:
        raise InputError("models.v2_no_name", option="name")
    return f"{start.removesuffix('/v2')}/v2/models/{quote(name, safe='')}"


def _is_input(one: object) -> bool:
    match one:
        case {"name": str(), "datatype": str(datatype), "shape": list()}:
            return datatype in KNOWN
    return False


def _is_matrix(declared: list[Content], frame: pd.DataFrame) -> bool:
    """Return whether the only declared input takes all columns."""
    if len(declared) != 1:
        return False
    width = declared[0]["shape"][-1] if len(declared[0]["shape"]) > 1 else 1
    return frame.shape[1] > 1 or (width != 1 and declared[0]["name"] != frame.columns[0])


def _matrix(frame: pd.DataFrame, declared: list[Content]) -> Content:
    texts_in = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name].dtype)]
    if texts_in:
        raise InputError("models.v2_matrix_text", received=texts_in)
    about: Content = declared[0] if declared else {"name": "input-0", "datatype": "FP64", "shape": [-1, -1]}
    width = about["shape"][-1]
    if isinstance(width, int) and width >= 0 and width != frame.shape[1]:
        raise InputError("models.v2_width", expected=width, received=frame.shape[1])
    values = pd.Series(frame.to_numpy(dtype=np.float64, na_value=np.nan).ravel())
    data = _data(values, about["datatype"])
    return {"name": about["name"], "shape": list(frame.shape), "datatype": about["datatype"], "data": data}


def _data(column: pd.Series, datatype: str) -> list[object]:
    """Return the values of a column as the server will hold them, missing ones as None."""
    if datatype in FLOATS and pd.api.types.is_numeric_dtype(column.dtype):
        column = pd.Series(column.to_numpy(dtype=np.float64, na_value=np.nan).astype(FLOATS[datatype]).astype(np.float64))
    data = cells(column)
    if datatype in WHOLE:
        return [int(value) if isinstance(value, float) and value.is_integer() else value for value in data]
    return data


def _columns(frame: pd.DataFrame, declared: list[Content]) -> list[Content]:
    """Return one input per column, as declared and in the declared order; by the column's dtype where nothing is declared."""
    if not declared:
        return [_column(frame[name], {"name": str(name), "shape": [-1, 1]}) for name in frame.columns]
    by_name = {str(name): name for name in frame.columns}
    if {one["name"] for one in declared} != set(by_name):
        raise InputError("models.v2_columns", expected=[one["name"] for one in declared], received=list(by_name))
    return [_column(frame[by_name[one["name"]]], one) for one in declared]


def _column(column: pd.Series, about: Content) -> Content:
    datatype = about.get("datatype") or _datatype(column)
    shape = [len(column), 1] if len(about["shape"]) > 1 else [len(column)]
    content: Content = {"name": about["name"], "shape": shape, "datatype": datatype, "data": _data(column, datatype)}
    return content | {"parameters": {"content_type": "str"}} if datatype == "BYTES" else content


def _datatype(column: pd.Series) -> str:
    """Return the datatype of a column; whole numbers and booleans with missing values are floats."""
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


def _outputs(outputs: list[object], rows: int) -> Columns:
    """Return every output as a list with one entry per row; data may be flat or nested."""
    found = {}
    for one in outputs:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str) or not isinstance(one.get("data"), list):
            raise RemoteModelError("models.v2_output")
        data, shape = one["data"], one.get("shape")
        nested = bool(data) and all(isinstance(part, list) for part in data)
        flat = list(chain.from_iterable(data)) if nested else data
        width = len(flat) // rows
        uneven = nested and {len(part) for part in data} != {width}
        if width == 0 or width * rows != len(flat) or uneven or (isinstance(shape, list) and shape[:1] != [rows]):
            raise RemoteModelError("models.v2_output_length", expected=rows, received=len(flat))
        found[one["name"]] = flat if width == 1 else [flat[k : k + width] for k in range(0, len(flat), width)]
    return found
