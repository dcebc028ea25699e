"""Open Inference V2: one tensor per column goes in, one record per row comes out, as tensors of text."""

import json
from collections.abc import Mapping, Sequence
from math import prod

from fastapi import APIRouter, Request
from pydantic import ValidationError

from fasterce.serve.api.explain import IdempotencyKey, run
from fasterce.serve.api.problems import FieldsProblem, HTTPProblem, InferenceProblemBody, documented, fields_of, text
from fasterce.serve.api.route import ServiceRoute, needs
from fasterce.serve.api.schemas import ExplainRequest, InferenceRequest, InferenceResponse, InputTensor, OutputTensor
from fasterce.serve.api.state import EXPLAIN, AppState, State
from fasterce.serve.messages import Description, Json

OUTPUTS = ("record", "status", "counterfactual")
VERSION_LETTERS = 12
KEY = needs(EXPLAIN)
ABOUT_ERRORS = documented(401, 403, 404, body=InferenceProblemBody)
READY_ERRORS = documented(404, 503, body=InferenceProblemBody)
INFER_ERRORS = documented(400, 401, 403, 404, 410, 413, 415, 422, 429, 503, 504, body=InferenceProblemBody)
# Options of /v1/explain that may be parameters.
PARAMETERS = frozenset(ExplainRequest.model_fields) - {"artifact", "rows"}
router = APIRouter(tags=["Open Inference V2"], route_class=ServiceRoute)


@router.get("/v2")
async def server() -> dict[str, Json]:
    return {"name": "fasterce", "version": "2", "extensions": []}


@router.get("/v2/health/live")
async def live() -> dict[str, bool]:
    return {"live": True}


@router.get("/v2/health/ready", responses=documented(503, body=InferenceProblemBody))
async def ready(state: State) -> dict[str, bool]:
    """Not while starting or closing, while records cannot be stored, or while a remote model does not respond."""
    await check_ready(state)
    return {"ready": True}


@router.get("/v2/models/{name}", openapi_extra=KEY, responses=ABOUT_ERRORS)
async def metadata(state: State, name: str) -> dict[str, Json]:
    return describe(state.dispatcher.describe(name))


@router.get("/v2/models/{name}/versions/{version}", openapi_extra=KEY, responses=ABOUT_ERRORS)
async def version_metadata(state: State, name: str, version: str) -> dict[str, Json]:
    return describe(of_version(state, name, version))


@router.get("/v2/models/{name}/ready", responses=READY_ERRORS)
async def model_ready(state: State, name: str) -> dict[str, Json]:
    await check_ready(state, state.dispatcher.describe(name).name)
    return {"name": name, "ready": True}


@router.get("/v2/models/{name}/versions/{version}/ready", responses=READY_ERRORS)
async def version_ready(state: State, name: str, version: str) -> dict[str, Json]:
    of_version(state, name, version)
    return await model_ready(state, name)


@router.post("/v2/models/{name}/infer", openapi_extra=KEY, responses=INFER_ERRORS)
async def infer(
    sent: InferenceRequest, request: Request, state: State, name: str, idempotency_key: IdempotencyKey = None
) -> InferenceResponse:
    """Options of /v1/explain are parameters of the request; other parameters are ignored, and named in the response."""
    state.dispatcher.describe(name)
    rows = rows_of(sent)
    reply = await run(state, explain_request(sent.parameters, name, rows), request, idempotency_key)
    wanted = [output.name for output in sent.outputs] if sent.outputs else list(OUTPUTS)
    outputs = [tensor for tensor in output_tensors(reply.records) if tensor.name in wanted]
    ignored = sorted(set(sent.parameters) - PARAMETERS)
    return InferenceResponse(
        model_name=name,
        model_version=version_of(reply.head["artifact"]["artifact_digest"]),
        id=sent.id,
        outputs=outputs,
        parameters={"ignored": ", ".join(ignored)} if ignored else {},
    )


@router.post("/v2/models/{name}/versions/{version}/infer", openapi_extra=KEY, responses=INFER_ERRORS)
async def version_infer(
    sent: InferenceRequest, request: Request, state: State, name: str, version: str, idempotency_key: IdempotencyKey = None
) -> InferenceResponse:
    """The same for a version."""
    of_version(state, name, version)
    return await infer(sent, request, state, name, idempotency_key)


async def check_ready(state: AppState, artifact: str | None = None) -> None:
    problem = await state.not_ready(artifact)
    if problem is not None:
        raise HTTPProblem(503, "not_ready", "serve.not_ready", cause=problem)


def describe(found: Description) -> dict[str, Json]:
    inputs = [{"name": one["name"], "datatype": datatype(one), "shape": [-1]} for one in found.schema["features"]]
    outputs = [{"name": one, "datatype": "BYTES", "shape": [-1]} for one in OUTPUTS]
    versions = [version_of(found.artifact_digest)]
    return {"name": found.name, "versions": versions, "platform": "fasterce", "inputs": inputs, "outputs": outputs}


def datatype(feature: Mapping[str, Json]) -> str:
    """Return the type of a column's tensor."""
    if feature["kind"] == "numeric":
        return "FP64"
    kinds = {type(category) for category in feature["categories"]}
    return "BOOL" if kinds == {bool} else "INT64" if kinds == {int} else "BYTES"


def of_version(state: AppState, name: str, version: str) -> Description:
    found = state.dispatcher.describe(name)
    served = version_of(found.artifact_digest)
    if version != served:
        raise HTTPProblem(404, "no_such_version", "serve.no_such_version", expected=served)
    return found


def version_of(digest: str) -> str:
    """Return the first letters of the artifact's digest."""
    return digest.removeprefix("sha256:")[:VERSION_LETTERS]


def rows_of(sent: InferenceRequest) -> list[dict[str, Json]]:
    """Return the tensors, one per column, as rows."""
    columns = {tensor.name: values(tensor) for tensor in sent.inputs}
    lengths = {len(column) for column in columns.values()}
    if len(columns) < len(sent.inputs) or len(lengths) > 1:
        raise HTTPProblem(422, "invalid_request", "serve.not_one_tensor_per_column")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def explain_request(parameters: Mapping[str, Json], name: str, rows: Sequence[Mapping[str, Json]]) -> ExplainRequest:
    """Return the same request as /v1/explain would get."""
    known = {option: value for option, value in parameters.items() if option in PARAMETERS}
    try:
        return ExplainRequest.model_validate({**known, "artifact": name, "rows": rows})
    except ValidationError as error:
        fields = fields_of(error.errors(include_input=False, include_url=False))
        raise FieldsProblem("invalid_request", [(f"parameters.{where}", what) for where, what in fields]) from None


def values(tensor: InputTensor) -> list[Json]:
    if tensor.data is None:
        raise HTTPProblem(400, "binary", "serve.binary_tensors")
    flat = [one for part in tensor.data for one in (part if isinstance(part, list) else [part])]
    if len(flat) != prod(tensor.shape) or (len(tensor.shape) == 2 and tensor.shape[1] != 1):
        message = text("wrong_shape", shape=str(tensor.shape), values=len(flat))
        raise FieldsProblem("invalid_request", [("inputs", message)])
    # Some clients send 0 and 1.
    return [bool(one) if one in (0, 1) else one for one in flat] if tensor.datatype == "BOOL" else flat


def output_tensors(bodies: Sequence[str]) -> list[OutputTensor]:
    """Return the records, their statuses, and the first counterfactual of each (empty if there is none)."""
    read = [json.loads(body) for body in bodies]
    found = [one["counterfactuals"] for one in read]
    data = {
        "record": list(bodies),
        "status": [one["status"] for one in read],
        "counterfactual": [json.dumps(ranked[0]["values"]) if ranked else "" for ranked in found],
    }
    return [OutputTensor(name=name, shape=[len(bodies)], datatype="BYTES", data=values) for name, values in data.items()]
