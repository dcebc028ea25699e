"""KServe V1: instances go in, explanations or predictions come out."""

from collections.abc import Sequence
from time import monotonic

from fastapi import APIRouter, Request, Response

from fasterce.serve.api.explain import IdempotencyKey, check_rows, run, unless_disconnected
from fasterce.serve.api.inference import ABOUT_ERRORS, INFER_ERRORS, KEY, READY_ERRORS, explain_request, model_ready
from fasterce.serve.api.problems import FieldsProblem, text
from fasterce.serve.api.route import ServiceRoute
from fasterce.serve.api.rows import RowValidator
from fasterce.serve.api.schemas import Explanations, InstancePredictions, InstancesRequest
from fasterce.serve.api.state import State
from fasterce.serve.messages import Description, Json, WorkerRequest

router = APIRouter(tags=["KServe V1"], route_class=ServiceRoute)


@router.get("/v1/models", openapi_extra=KEY, responses=ABOUT_ERRORS)
async def models(state: State) -> dict[str, list[str]]:
    return {"models": state.dispatcher.names()}


@router.get("/v1/models/{name}", responses=READY_ERRORS)
async def model(state: State, name: str) -> dict[str, Json]:
    return await model_ready(state, name)


@router.post("/v1/models/{name}:explain", response_model=Explanations, openapi_extra=KEY, responses=INFER_ERRORS)
async def explain(
    sent: InstancesRequest, request: Request, state: State, name: str, idempotency_key: IdempotencyKey = None
) -> Response:
    """Options of /v1/explain are `parameters`; others are ignored."""
    rows = rows_of(sent, state.dispatcher.describe(name))
    reply = await run(state, explain_request(sent.parameters, name, rows), request, idempotency_key)
    return Response(f'{{"explanations": [{",".join(reply.records)}]}}', media_type="application/json")


@router.post("/v1/models/{name}:predict", openapi_extra=KEY, responses=INFER_ERRORS)
async def predict(sent: InstancesRequest, request: Request, state: State, name: str) -> InstancePredictions:
    """What the model predicts: a class or a number per instance, null where it fails. Nothing is stored."""
    description, settings = state.dispatcher.describe(name), state.settings
    rows = rows_of(sent, description)
    check_rows(settings, rows)
    RowValidator(description).check(rows)
    until = monotonic() + settings.deadline_ms / 1e3
    wanted = WorkerRequest(
        description.name,
        rows,
        {},
        until,
        request.state.request_id,
        client=request.state.client,
        queue=request.state.queue,
        action="predict",
    )
    response = await unless_disconnected(request, state.dispatcher.explain(wanted))
    return InstancePredictions(predictions=list(response.predictions))


def rows_of(sent: InstancesRequest, description: Description) -> list[dict[str, Json]]:
    names = [feature["name"] for feature in description.schema["features"]]
    return [one if isinstance(one, dict) else named(one, names, place) for place, one in enumerate(sent.instances)]


def named(cells: Sequence[Json], names: Sequence[str], place: int) -> dict[str, Json]:
    if len(cells) != len(names):
        message = text("instance_length", expected=len(names), received=len(cells))
        raise FieldsProblem("invalid_request", [(f"instances[{place}]", message)])
    return dict(zip(names, cells, strict=True))
