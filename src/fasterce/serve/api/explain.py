"""POST /v1/explain: give the request to a worker, store the records, then respond."""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic, perf_counter
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response

from fasterce.errors import Problem
from fasterce.options import Kind, offered
from fasterce.serve.api.problems import FieldsProblem, HTTPProblem, documented, text
from fasterce.serve.api.route import ServiceRoute, needs
from fasterce.serve.api.rows import RowValidator
from fasterce.serve.api.schemas import ExplainRequest, ExplainResponse
from fasterce.serve.api.state import EXPLAIN, AppState, State
from fasterce.serve.limits import row_cost
from fasterce.serve.messages import Json, StoredRecord, WorkerRequest, WorkerResponse
from fasterce.serve.settings import Settings
from fasterce.serve.store import RepeatedKeyError, Store, StoreError, UnstorableError

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        pattern=r"^[\x21-\x7e]+$",
        description="The same key again returns the stored reply instead of storing another",
    ),
]
# Kinds of options that name columns.
BY_COLUMN = (Kind.COLUMNS, Kind.RANGES, Kind.FACTORS)
router = APIRouter(tags=["explain"], route_class=ServiceRoute)


@dataclass(frozen=True)
class Reply:
    """The response to a request: everything but the records, and the records as JSON text."""

    head: dict[str, Json]
    records: Sequence[str]

    def text(self) -> str:
        """Return it as JSON. Records are inserted as they are, not parsed and written again."""
        return f'{json.dumps(self.head)[:-1]}, "records": [{",".join(self.records)}]}}'


@router.post(
    "/v1/explain",
    response_model=ExplainResponse,
    openapi_extra=needs(EXPLAIN),
    responses=documented(400, 401, 403, 404, 410, 413, 415, 422, 429, 503, 504),
    summary="What would have had to be different?",
)
async def explain(body: ExplainRequest, request: Request, state: State, idempotency_key: IdempotencyKey = None) -> Response:
    return Response((await run(state, body, request, idempotency_key)).text(), media_type="application/json")


async def run(state: AppState, body: ExplainRequest, request: Request, key: str | None = None) -> Reply:
    """Return the reply, stored before the client sees it; the one that is stored, if the idempotency key has one."""
    if key is None or state.store is None or not body.keep:
        return await new_reply(state, body, request)
    client = f"{request.state.client}\n{key}"
    reply_id = hashlib.sha256(client.encode()).hexdigest()
    fingerprint = hashlib.sha256(request.url.path.encode() + b"\n" + request.state.body).hexdigest()
    found = await stored_reply(state.store, reply_id, fingerprint)
    if found is not None:
        return found
    try:
        return await new_reply(state, body, request, {"id": reply_id, "fingerprint": fingerprint})
    except RepeatedKeyError:
        found = await stored_reply(state.store, reply_id, fingerprint)
        assert found is not None
        return found


async def stored_reply(store: Store, reply_id: str, fingerprint: str) -> Reply | None:
    """Return what was answered before; HTTPProblem if that was another request, or its records are gone."""
    found = await store.get_reply(reply_id)
    if found is None:
        return None
    if found["fingerprint"] != fingerprint:
        raise HTTPProblem(422, "idempotency_key", "serve.idempotency_key_used")
    ids = json.loads(found["records"])
    bodies = await store.get_bodies(ids)
    if len(bodies) < len(ids):
        raise HTTPProblem(410, "erased", "serve.reply_erased")
    return Reply(json.loads(found["head"]), [bodies[one] for one in ids])


async def new_reply(
    state: AppState, body: ExplainRequest, request: Request, identity: Mapping[str, str] | None = None
) -> Reply:
    """Have a worker explain the rows, and store the records, with the reply if it has an identity."""
    started = perf_counter()
    sent = worker_request(state, body, request)
    response = await unless_disconnected(request, state.dispatcher.explain(sent))
    state.metrics.observe(response)
    statuses = [record.status for record in response.records]
    request.state.log_fields = {
        "artifact": sent.artifact,
        "rows": len(statuses),
        "statuses": dict(Counter(statuses)),
        "batch_rows": response.usage.batch_rows,
    }
    if response.problem is not None:
        raise invalid_row(response.problem)
    head = {
        "request_id": request.state.request_id,
        "artifact": state.info(response.description).model_dump(),
        "kept": body.keep and state.store is not None,
        "usage": asdict(response.usage),
        "ms": round((perf_counter() - started) * 1e3, 2),
    }
    if head["kept"]:
        await store_records(state, response.records, head, identity)
    return Reply(head, [record.body for record in response.records])


async def store_records(
    state: AppState, records: Sequence[StoredRecord], head: Mapping[str, Json], identity: Mapping[str, str] | None
) -> None:
    """Store records before the response is sent: without a stored record there is no response."""
    assert state.store is not None
    started = perf_counter()
    try:
        if identity is None:
            await state.store.put(records)
        else:
            ids, now = [record.id for record in records], datetime.now(UTC).isoformat(timespec="microseconds")
            written = {"head": json.dumps(head), "records": json.dumps(ids), "time": now}
            await state.store.put_reply(records, {**identity, **written})
    except StoreError as error:
        if not isinstance(error, (UnstorableError, RepeatedKeyError)):
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


def worker_request(state: AppState, body: ExplainRequest, request: Request) -> WorkerRequest:
    """Return the request for a worker, checked as far as the schema goes; the worker checks the rest."""
    settings = state.settings
    check_rows(settings, body.rows)
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
    if options["n"] > settings.most_n:
        raise FieldsProblem("invalid_request", [("n", text("n_too_large", expected=settings.most_n))])
    days = settings.retention_days
    made = WorkerRequest(
        artifact=description.name,
        rows=body.rows,
        options=options,
        until=monotonic() + (body.deadline_ms or settings.deadline_ms) / 1e3,
        request_id=request.state.request_id,
        row_ids=body.row_ids,
        decision_ids=body.decision_ids,
        subjects=body.subjects,
        edited=body.edited,
        constraints_by=body.constraints_by,
        retain_until=None if days is None else (datetime.now(UTC) + timedelta(days=days)).date().isoformat(),
        key=getattr(request.state, "key", None),
        client=request.state.client,
        queue=request.state.queue,
    )
    cost = round(len(body.rows) * row_cost(made))
    if cost > settings.most_cost:
        raise HTTPProblem(413, "too_costly", "serve.too_costly", expected=settings.most_cost, received=cost)
    return made


def check_rows(settings: Settings, rows: Sequence[Json]) -> None:
    if len(rows) > settings.most_rows:
        raise HTTPProblem(413, "too_many_rows", "serve.too_many_rows", expected=settings.most_rows, received=len(rows))


def check_required(required: Sequence[str], body: ExplainRequest) -> None:
    """Reject a request whose records would lack a field that this service requires."""
    lacking = [(name, text("required_for_record")) for name in required if getattr(body, name) is None]
    if lacking:
        raise FieldsProblem("invalid_request", lacking)


def invalid_row(problem: Problem) -> HTTPProblem:
    """Return the problem of a row the explainer rejects; what was sent is not repeated."""
    where = "rows[0]" if problem.column is None else f"rows[0].{problem.column}"
    return FieldsProblem("invalid_row", [(where, problem.text(with_received=False))])
