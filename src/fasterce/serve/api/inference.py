"""Open Inference V2: one tensor per column goes in, one record per row comes out, as tensors of text."""

import json
from math import prod

from fastapi import APIRouter, Depends, Request
from pydantic import ValidationError

from fasterce.serve.api.explain import run
from fasterce.serve.api.json_body import StrictJSONRoute
from fasterce.serve.api.problems import FieldsProblem, HTTPProblem, InferenceProblemBody, documented, fields_of, text
from fasterce.serve.api.schemas import ExplainRequest, InferenceRequest, InferenceResponse, InputTensor, OutputTensor
from fasterce.serve.api.state import EXPLAIN, AppState, State, requires
from fasterce.serve.messages import Description, Json, WorkerResponse

OUTPUTS = ("record", "status", "counterfactual")
VERSION_LETTERS = 12
DATATYPES = {"numeric": "FP64", "categorical": "BYTES", "time": "BYTES"}
KEY = [Depends(requires(EXPLAIN))]
ABOUT_ERRORS = documented(401, 403, 404, body=InferenceProblemBody)
READY_ERRORS = documented(404, 503, body=InferenceProblemBody)
INFER_ERRORS = documented(400, 401, 403, 404, 413, 415, 422, 429, 503, 504, body=InferenceProblemBody)
router = APIRouter(tags=["Open Inference V2"], route_class=StrictJSONRoute)


@router.get("/v2")
async def server() -> dict[str, Json]:
    return {"name": "fasterce", "version": "2", "extensions": []}


@router.get("/v2/health/live")
async def live() -> dict[str, bool]:
    return {"live": True}


@router.get("/v2/health/ready", responses=documented(503, body=InferenceProblemBody))
async def ready(state: State) -> dict[str, bool]:
    """Not while starting or closing, and not while records cannot be stored."""
    if state.closing or not state.dispatcher.ready or (state.store is not None and not await state.store.check()):
        raise HTTPProblem(503, "not_ready", "serve.not_ready")
    return {"ready": True}


@router.get("/v2/models/{name}", dependencies=KEY, responses=ABOUT_ERRORS)
@router.get("/v2/models/{name}/versions/{version}", dependencies=KEY, responses=ABOUT_ERRORS)
async def metadata(state: State, name: str, version: str | None = None) -> dict[str, Json]:
    found = of_version(state, name, version)
    inputs = [{"name": one["name"], "datatype": DATATYPES[one["kind"]], "shape": [-1]} for one in found.schema["features"]]
    outputs = [{"name": one, "datatype": "BYTES", "shape": [-1]} for one in OUTPUTS]
    return {"name": name, "versions": [version_of(found)], "platform": "fasterce", "inputs": inputs, "outputs": outputs}


@router.get("/v2/models/{name}/ready", responses=READY_ERRORS)
@router.get("/v2/models/{name}/versions/{version}/ready", responses=READY_ERRORS)
async def model_ready(state: State, name: str, version: str | None = None) -> dict[str, Json]:
    of_version(state, name, version)
    await ready(state)
    return {"name": name, "ready": True}


@router.post("/v2/models/{name}/infer", dependencies=KEY, responses=INFER_ERRORS)
@router.post("/v2/models/{name}/versions/{version}/infer", dependencies=KEY, responses=INFER_ERRORS)
async def infer(
    sent: InferenceRequest, request: Request, state: State, name: str, version: str | None = None
) -> InferenceResponse:
    """Options of /v1/explain are parameters of the request."""
    of_version(state, name, version)
    response, _ = await run(state, explain_request(sent, name), request)
    wanted = [output.name for output in sent.outputs] if sent.outputs else list(OUTPUTS)
    outputs = [tensor for tensor in output_tensors(response) if tensor.name in wanted]
    return InferenceResponse(model_name=name, model_version=version_of(response.description), id=sent.id, outputs=outputs)


def of_version(state: AppState, name: str, version: str | None) -> Description:
    found = state.dispatcher.describe(name)
    if version is not None and version != version_of(found):
        raise HTTPProblem(404, "no_such_version", "serve.no_such_version", expected=version_of(found))
    return found


def version_of(description: Description) -> str:
    """Return the first letters of the artifact's digest."""
    return description.artifact_digest.removeprefix("sha256:")[:VERSION_LETTERS]


def explain_request(sent: InferenceRequest, name: str) -> ExplainRequest:
    """Return the same request as /v1/explain would get."""
    columns = {tensor.name: values(tensor) for tensor in sent.inputs}
    lengths = {len(column) for column in columns.values()}
    if len(columns) < len(sent.inputs) or len(lengths) > 1:
        raise HTTPProblem(422, "invalid_request", "serve.not_one_tensor_per_column")
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    try:
        return ExplainRequest.model_validate({**sent.parameters, "artifact": name, "rows": rows})
    except ValidationError as error:
        fields = fields_of(error.errors(include_input=False, include_url=False))
        raise FieldsProblem("invalid_request", [(f"parameters.{where}", what) for where, what in fields]) from None


def values(tensor: InputTensor) -> list[Json]:
    flat = [one for part in tensor.data for one in (part if isinstance(part, list) else [part])]
    if len(flat) != prod(tensor.shape) or (len(tensor.shape) == 2 and tensor.shape[1] != 1):
        message = text("wrong_shape", shape=str(tensor.shape), values=len(flat))
        raise FieldsProblem("invalid_request", [("inputs", message)])
    return flat


def output_tensors(response: WorkerResponse) -> list[OutputTensor]:
    """Return the records, their statuses, and the first counterfactual of each (empty if there is none)."""
    bodies = [record.body for record in response.records]
    found = [json.loads(body)["counterfactuals"] for body in bodies]
    data = {
        "record": bodies,
        "status": [record.status for record in response.records],
        "counterfactual": [json.dumps(ranked[0]["values"]) if ranked else "" for ranked in found],
    }
    return [OutputTensor(name=name, shape=[len(bodies)], datatype="BYTES", data=values) for name, values in data.items()]
