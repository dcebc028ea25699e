"""Routes about stored records: one record, its letter, the records of a subject, decision or request; erasing a subject's."""

import json
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from fasterce.serve.api.problems import HTTPProblem, documented
from fasterce.serve.api.route import ServiceRoute, needs
from fasterce.serve.api.schemas import LONGEST_NAME, Erased, RecordList
from fasterce.serve.api.state import ADMIN, EXPLAIN, RECORDS, AppState, State
from fasterce.serve.letter import letter, policy
from fasterce.serve.store import Store

Text = Annotated[str | None, Query(max_length=LONGEST_NAME)]
ERRORS = documented(401, 403, 404, 422, 503)
# A key that may only explain reads back the records it made.
READ = needs(RECORDS, EXPLAIN)
router = APIRouter(tags=["records"], route_class=ServiceRoute, responses=ERRORS)


@router.get("/v1/records/{id}", openapi_extra=READ, summary="A record")
async def record(id: UUID, state: State, request: Request) -> Response:
    headers = {"Content-Disposition": f'inline; filename="record-{id}.json"'}
    return Response(await body(state, id, request), media_type="application/json", headers=headers)


@router.get(
    "/v1/records/{id}/letter",
    openapi_extra=READ,
    response_class=Response,
    responses={200: {"content": {"text/html": {}}}},
    summary="A record as a letter to print",
)
async def record_letter(id: UUID, state: State, request: Request) -> HTMLResponse:
    return HTMLResponse(letter(json.loads(await body(state, id, request))), headers={"Content-Security-Policy": policy()})


@router.get("/v1/records", openapi_extra=needs(RECORDS), summary="Find records")
async def find(
    state: State,
    subject: Text = None,
    decision: Text = None,
    request: Text = None,
    first: Annotated[int, Query(ge=0, le=10**9)] = 0,
    count: Annotated[int, Query(ge=1, le=200)] = 50,
) -> RecordList:
    """By the pseudonym of a subject, by a decision or by a request."""
    if subject is None and decision is None and request is None:
        raise HTTPProblem(422, "invalid_request", "serve.nothing_to_find")
    wanted = {"subject": subject, "decision": decision, "request": request}
    return RecordList.model_validate({"records": await store_of(state).find(**wanted, first=first, count=count)})


@router.delete("/v1/records", openapi_extra=needs(f"{RECORDS}+{ADMIN}"), summary="Erase the records of a subject")
async def erase(state: State, subject: Annotated[str, Query(min_length=1, max_length=LONGEST_NAME)]) -> Erased:
    return Erased(erased=await store_of(state).forget(subject))


async def body(state: AppState, id: UUID, request: Request) -> str:
    scopes = request.state.scopes
    own_only = scopes is not None and RECORDS not in scopes
    found = await store_of(state).get(str(id), request.state.key if own_only else None)
    if found is None:
        raise HTTPProblem(404, "no_such_record", "serve.no_such_record")
    return found


def store_of(state: AppState) -> Store:
    if state.store is None:
        raise HTTPProblem(404, "no_records", "serve.no_records")
    return state.store
