"""POST /v1/explain: give the request to a worker, store the records, then respond."""

import asyncio
import json
from collections import Counter
from collections.abc import Coroutine
from time import monotonic, perf_counter

from fastapi import APIRouter, Depends, Request, Response

from fasterce.errors import Problem
from fasterce.options import Kind, offered
from fasterce.serve.api import record_writer
from fasterce.serve.api.json_body import StrictJSONRoute
from fasterce.serve.api.problems import FieldsProblem, HTTPProblem, documented, http_problem, text
from fasterce.serve.api.schemas import ExplainRequest, ExplainResponse
from fasterce.serve.api.state import EXPLAIN, AppState, State, requires
from fasterce.serve.messages import NoResponse, WorkerRequest, WorkerResponse
from fasterce.serve.settings import Settings

INVALID = "invalid_input"
# Kinds of options that name columns.
BY_COLUMN = (Kind.COLUMNS, Kind.RANGES, Kind.FACTORS)
router = APIRouter(tags=["explain"], route_class=StrictJSONRoute)


@router.post(
    "/v1/explain",
    response_model=ExplainResponse,
    dependencies=[Depends(requires(EXPLAIN))],
    responses=documented(400, 401, 403, 404, 413, 415, 422, 429, 503, 504),
    summary="What would have had to be different?",
)
async def explain(body: ExplainRequest, request: Request, state: State) -> Response:
    started = perf_counter()
    response, stored = await run(state, body, request)
    if response.problem is not None:
        raise invalid_row(response.problem)
    head = {
        "request_id": request.state.request_id,
        "artifact": state.info(response.description).model_dump(),
        "kept": stored,
        "usage": {"calls": response.calls, "rows": response.model_rows, "batch_rows": response.batch_rows},
        "ms": round((perf_counter() - started) * 1e3, 2),
    }
    # Records are JSON already: they are inserted as they are, not parsed and written again.
    records = ",".join(record.body for record in response.records)
    return Response(f'{json.dumps(head)[:-1]}, "records": [{records}]}}', media_type="application/json")


async def run(state: AppState, body: ExplainRequest, request: Request) -> tuple[WorkerResponse, bool]:
    """Return the response of a worker, stored before the client sees it; and whether it was stored."""
    sent = worker_request(state, body, request.state.request_id)
    try:
        response = await unless_disconnected(request, state.dispatcher.explain(sent))
    except NoResponse as error:
        raise http_problem(error) from None
    state.metrics.observe(response)
    statuses = [record.status for record in response.records]
    request.state.log_fields = {
        "artifact": sent.artifact,
        "rows": len(statuses),
        "statuses": dict(Counter(statuses)),
        "batch_rows": response.batch_rows,
    }
    stored = body.keep and state.store is not None
    if stored and statuses != [INVALID]:
        await record_writer.store_records(state, response.records)
    return response, stored


async def unless_disconnected(request: Request, work: Coroutine[None, None, WorkerResponse]) -> WorkerResponse:
    """Return the result of the work, which is cancelled when the client disconnects."""
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(disconnected(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise HTTPProblem(499, "gone", "serve.client_gone")
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


async def disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def worker_request(state: AppState, body: ExplainRequest, request_id: str) -> WorkerRequest:
    """Return the request for a worker, checked as far as the schema goes; the worker checks the rest."""
    settings = state.settings
    if len(body.rows) > settings.most_rows:
        raise HTTPProblem(413, "too_many_rows", "serve.too_many_rows", expected=settings.most_rows, received=len(body.rows))
    description = state.describe(body.artifact)
    validator = state.validator(description)
    validator.check(body.rows)
    options = body.options()
    for option in offered("http"):
        if option.kind in BY_COLUMN and isinstance(options[str(option.http)], (list, dict)):
            validator.check_names(list(options[str(option.http)]), str(option.http))
    return WorkerRequest(
        artifact=description.name,
        rows=tuple(body.rows),
        options=options,
        until=monotonic() + deadline_ms(body, settings) / 1e3,
        request_id=request_id,
        row_ids=None if body.row_ids is None else tuple(body.row_ids),
        decision_ids=None if body.decision_ids is None else tuple(body.decision_ids),
        subjects=None if body.subjects is None else tuple(body.subjects),
        constraints_by=body.constraints_by,
        retain_until=record_writer.retain_until(settings),
    )


def deadline_ms(body: ExplainRequest, settings: Settings) -> int:
    if body.deadline_ms is not None and body.deadline_ms > settings.most_deadline_ms:
        raise FieldsProblem(
            "invalid_request", [("deadline_ms", text("deadline_too_long", expected=settings.most_deadline_ms))]
        )
    return body.deadline_ms or settings.deadline_ms


def invalid_row(problem: Problem) -> HTTPProblem:
    """Return the problem of a row the explainer rejects; what was sent is not repeated."""
    where = "rows[0]" if problem.column is None else f"rows[0].{problem.column}"
    return FieldsProblem("invalid_row", [(where, problem.text(with_received=False))])
