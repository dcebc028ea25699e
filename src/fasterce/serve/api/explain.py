"""POST /v1/explain: give the request to a worker, store the records, then respond."""

import asyncio
import json
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from time import monotonic, perf_counter

from fastapi import APIRouter, Depends, Request, Response

from fasterce.errors import Problem
from fasterce.options import Kind, offered
from fasterce.serve.api.json_body import StrictJSONRoute
from fasterce.serve.api.problems import FieldsProblem, HTTPProblem, documented, text
from fasterce.serve.api.rows import RowValidator
from fasterce.serve.api.schemas import ExplainRequest, ExplainResponse
from fasterce.serve.api.state import EXPLAIN, AppState, State, requires
from fasterce.serve.messages import StoredRecord, WorkerRequest, WorkerResponse
from fasterce.serve.store import StoreError, UnstorableError

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
        "usage": asdict(response.usage),
        "ms": round((perf_counter() - started) * 1e3, 2),
    }
    # Records are JSON already: they are inserted as they are, not parsed and written again.
    records = ",".join(record.body for record in response.records)
    return Response(f'{json.dumps(head)[:-1]}, "records": [{records}]}}', media_type="application/json")


async def run(state: AppState, body: ExplainRequest, request: Request) -> tuple[WorkerResponse, bool]:
    """Return the response of a worker, stored before the client sees it; and whether it was stored."""
    sent = worker_request(state, body, request.state.request_id)
    response = await unless_disconnected(request, state.dispatcher.explain(sent))
    state.metrics.observe(response)
    statuses = [record.status for record in response.records]
    request.state.log_fields = {
        "artifact": sent.artifact,
        "rows": len(statuses),
        "statuses": dict(Counter(statuses)),
        "batch_rows": response.usage.batch_rows,
    }
    stored = body.keep and state.store is not None
    if stored and statuses != [INVALID]:
        await store_records(state, response.records)
    return response, stored


async def store_records(state: AppState, records: Sequence[StoredRecord]) -> None:
    """Store records before the response is sent: without a stored record there is no response."""
    assert state.store is not None
    started = perf_counter()
    try:
        await state.store.put(records)
    except StoreError as error:
        if not isinstance(error, UnstorableError):
            state.metrics.store_failures.inc()
        raise
    state.metrics.store_seconds.observe(perf_counter() - started)


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
    if (body.deadline_ms or 0) > settings.most_deadline_ms:
        too_long = text("deadline_too_long", expected=settings.most_deadline_ms)
        raise FieldsProblem("invalid_request", [("deadline_ms", too_long)])
    description = state.dispatcher.describe(body.artifact)
    validator = RowValidator(description)
    validator.check(body.rows)
    for names in body.edited or ():
        validator.check_names(names, "edited")
    if body.keep and state.store is not None:
        check_required(settings.required, body)
    options = body.options()
    for option in offered("http"):
        if option.kind in BY_COLUMN and isinstance(options[str(option.http)], (list, dict)):
            validator.check_names(list(options[str(option.http)]), str(option.http))
    days = settings.retention_days
    return WorkerRequest(
        artifact=description.name,
        rows=body.rows,
        options=options,
        until=monotonic() + (body.deadline_ms or settings.deadline_ms) / 1e3,
        request_id=request_id,
        row_ids=body.row_ids,
        decision_ids=body.decision_ids,
        subjects=body.subjects,
        edited=body.edited,
        constraints_by=body.constraints_by,
        retain_until=None if days is None else (datetime.now(UTC) + timedelta(days=days)).date().isoformat(),
    )


def check_required(required: Sequence[str], body: ExplainRequest) -> None:
    """Reject a request whose records would lack a field that this service requires."""
    lacking = [(name, text("required_for_record")) for name in required if getattr(body, name) is None]
    if lacking:
        raise FieldsProblem("invalid_request", lacking)


def invalid_row(problem: Problem) -> HTTPProblem:
    """Return the problem of a row the explainer rejects; what was sent is not repeated."""
    where = "rows[0]" if problem.column is None else f"rows[0].{problem.column}"
    return FieldsProblem("invalid_row", [(where, problem.text(with_received=False))])
