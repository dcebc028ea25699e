"""Open Inference V2: a tensor a column goes in, a record a row comes out, as tensors of text."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import ValidationError

from fasterce.serve.app.about import described
from fasterce.serve.app.bodies import Asked, Inference, Inferred, Tensor, TensorSaid
from fasterce.serve.app.explaining import answered
from fasterce.serve.app.house import EXPLAIN, House, house_of, needs
from fasterce.serve.app.problems import DESCRIPTIONS, InferenceProblemBody, Problem
from fasterce.serve.app.reading import CarefulRoute
from fasterce.serve.app.validation import fields_of
from fasterce.serve.question import Answer, Description

OUTPUTS = ("record", "status", "counterfactual")
VERSION_LETTERS = 12
NUMBERS = {"numeric": "FP64", "categorical": "BYTES"}
HouseHere = Annotated[House, Depends(house_of)]
router = APIRouter(tags=["Open Inference V2"], route_class=CarefulRoute)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": InferenceProblemBody, "description": DESCRIPTIONS[status]} for status in statuses}


@router.get("/v2")
async def server() -> dict[str, Any]:
    return {"name": "fasterce", "version": "2", "extensions": []}


@router.get("/v2/health/live")
async def live() -> dict[str, bool]:
    return {"live": True}


@router.get("/v2/health/ready", responses=documented(503))
async def ready(house: HouseHere) -> dict[str, bool]:
    """Not while starting or closing, and not where records cannot be kept."""
    if not house.ready or (house.store is not None and not await house.store.check()):
        raise Problem(503, "not_ready", "Not ready.")
    return {"ready": True}


@router.get("/v2/models/{name}", dependencies=[Depends(needs(EXPLAIN))], responses=documented(401, 403, 404))
@router.get(
    "/v2/models/{name}/versions/{version}", dependencies=[Depends(needs(EXPLAIN))], responses=documented(401, 403, 404)
)
async def metadata(house: HouseHere, name: str, version: str | None = None) -> dict[str, Any]:
    found = of_version(house, name, version)
    inputs = [{"name": one["name"], "datatype": NUMBERS[one["kind"]], "shape": [-1]} for one in found.schema["features"]]
    outputs = [{"name": one, "datatype": "BYTES", "shape": [-1]} for one in OUTPUTS]
    return {"name": name, "versions": [version_of(found)], "platform": "fasterce", "inputs": inputs, "outputs": outputs}


@router.get("/v2/models/{name}/ready", responses=documented(404, 503))
@router.get("/v2/models/{name}/versions/{version}/ready", responses=documented(404, 503))
async def model_ready(house: HouseHere, name: str, version: str | None = None) -> dict[str, Any]:
    of_version(house, name, version)
    await ready(house)
    return {"name": name, "ready": True}


@router.post(
    "/v2/models/{name}/infer",
    response_model=Inferred,
    dependencies=[Depends(needs(EXPLAIN))],
    responses=documented(400, 401, 403, 404, 413, 415, 422, 429, 503, 504),
)
@router.post(
    "/v2/models/{name}/versions/{version}/infer",
    response_model=Inferred,
    dependencies=[Depends(needs(EXPLAIN))],
    responses=documented(400, 401, 403, 404, 413, 415, 422, 429, 503, 504),
)
async def infer(sent: Inference, request: Request, house: HouseHere, name: str, version: str | None = None) -> Inferred:
    """Options of /v1/explain are parameters of the request."""
    of_version(house, name, version)
    answer, _ = await answered(house, asked_of(sent, name), request)
    wanted = [output.name for output in sent.outputs] if sent.outputs else list(OUTPUTS)
    outputs = [tensor for tensor in told(answer) if tensor.name in wanted]
    return Inferred(model_name=name, model_version=version_of(answer.description), id=sent.id, outputs=outputs)


def of_version(house: House, name: str, version: str | None) -> Description:
    found = described(house, name)
    if version is not None and version != version_of(found):
        raise Problem(404, "no_such_version", f"Version {version_of(found)} is served, and no other.")
    return found


def version_of(description: Description) -> str:
    """The first letters of the artifact's digest."""
    return description.artifact_digest.removeprefix("sha256:")[:VERSION_LETTERS]


def asked_of(sent: Inference, name: str) -> Asked:
    """The same request as /v1/explain would get."""
    columns = {tensor.name: values(tensor) for tensor in sent.inputs}
    lengths = {len(column) for column in columns.values()}
    if len(columns) < len(sent.inputs) or len(lengths) > 1:
        raise Problem(422, "invalid_request", "inputs must be one tensor a column, all of the same length.")
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    try:
        return Asked.model_validate({**sent.parameters, "artifact": name, "rows": rows})
    except ValidationError as error:
        wrong = fields_of(error.errors(include_input=False, include_url=False))
        raise Problem(422, "invalid_request", f"parameters: {wrong[0][0]}: {wrong[0][1]}", wrong) from None


def values(tensor: Tensor) -> Sequence[Any]:
    flat = [one for part in tensor.data for one in (part if isinstance(part, list) else [part])]
    count = 1
    for size in tensor.shape:
        count *= size
    if len(flat) != count or (len(tensor.shape) == 2 and tensor.shape[1] != 1):
        sentence = f"Expected shape [rows] or [rows, 1] and as many values; got {tensor.shape} and {len(flat)} values."
        raise Problem(422, "invalid_request", f"inputs: {sentence}", [("inputs", sentence)])
    return flat


def told(answer: Answer) -> list[TensorSaid]:
    """The whole record, its status, and the first counterfactual alone (empty where there is none)."""
    first = [first_of(record.body) for record in answer.records]
    data = [[record.body for record in answer.records], [record.status for record in answer.records], first]
    shape = [len(answer.records)]
    return [TensorSaid(name=name, shape=shape, datatype="BYTES", data=said) for name, said in zip(OUTPUTS, data, strict=True)]


def first_of(record: str) -> str:
    found = json.loads(record)["counterfactuals"]
    return json.dumps(found[0]["values"]) if found else ""
