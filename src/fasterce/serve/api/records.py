"""Routes about stored records: one record, its letter, the records of a subject, decision or request; erasing a subject's."""

import hashlib
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from fasterce.records.pseudonyms import VARIABLE, pseudonym
from fasterce.serve.api.problems import FieldsProblem, HTTPProblem, documented, text
from fasterce.serve.api.route import ServiceRoute, needs
from fasterce.serve.api.schemas import LONGEST_NAME, RECORD, Erased, LetterList, LetterRequest, RecordList, SubjectQuery
from fasterce.serve.api.state import ADMIN, EXPLAIN, RECORDS, AppState, State
from fasterce.serve.letter import letter, load_words, policy, positions
from fasterce.serve.store import Store

Text = Annotated[str | None, Query(max_length=LONGEST_NAME)]
ERRORS = documented(400, 401, 403, 404, 413, 415, 422, 503)
# A key that may only explain reads back the records it made.
READ = needs(RECORDS, EXPLAIN)
router = APIRouter(tags=["records"], route_class=ServiceRoute, responses=ERRORS)


@router.get(
    "/v1/records/{id}",
    openapi_extra=READ,
    responses={200: {"content": {"application/json": {"schema": RECORD}}}},
    summary="A record",
)
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
    return await written(state, id, request, LetterRequest.model_validate({}))


@router.post(
    "/v1/records/{id}/letter",
    openapi_extra=READ,
    response_class=Response,
    responses={200: {"content": {"text/html": {}}}},
    summary="A letter with chosen alternatives, sender, contact and recipient",
)
async def chosen_letter(id: UUID, chosen: LetterRequest, state: State, request: Request) -> HTMLResponse:
    return await written(state, id, request, chosen)


async def written(state: AppState, id: UUID, request: Request, given: LetterRequest) -> HTMLResponse:
    found, chosen = json.loads(await body(state, id, request)), given.alternatives
    most = len(found["counterfactuals"]) - 1
    if chosen and max(chosen) > most:
        raise FieldsProblem("invalid_request", [("alternatives", text("no_such_alternative", most=most))])
    people = given.model_dump(include={"sender", "contact", "recipient"})
    page = letter(found, load_words(state.settings.letter), alternatives=chosen, **people)
    if given.keep:
        await store_letter(
            state, str(id), page, positions(found["counterfactuals"], chosen), getattr(request.state, "key", None)
        )
    return HTMLResponse(page, headers={"Content-Security-Policy": policy()})


async def store_letter(state: AppState, id: str, page: str, alternatives: Sequence[int], key: str | None) -> None:
    """Store with the record that a letter was written, before it is returned; the same letter again is stored once."""
    digest = hashlib.sha256(page.encode()).hexdigest()
    written_now = {
        "id": hashlib.sha256(f"{id}\n{digest}".encode()).hexdigest(),
        "record": id,
        "time": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "alternatives": json.dumps(alternatives),
        "digest": f"sha256:{digest}",
        "key": key,
    }
    if not await store_of(state).put_letter(written_now):
        raise HTTPProblem(404, "no_such_record", "serve.no_such_record")


@router.get("/v1/records/{id}/letters", openapi_extra=READ, summary="The letters written about a record")
async def letters(id: UUID, state: State, request: Request) -> LetterList:
    """When each was written, with which key, and which alternatives it contains."""
    await body(state, id, request)
    found = await store_of(state).get_letters(str(id))
    return LetterList.model_validate({"letters": [one | {"alternatives": json.loads(one["alternatives"])} for one in found]})


@router.post("/v1/records/find", openapi_extra=needs(RECORDS), summary="Find the records of a person")
async def find_of_subject(query: SubjectQuery, state: State) -> RecordList:
    """By the person's own identifier, of which the service makes the pseudonym."""
    key = pseudonym_key(state)
    if not key:
        raise FieldsProblem("invalid_request", [("subject", text("no_pseudonym_key", option="subject", variable=VARIABLE))])
    found = await store_of(state).find(subject=pseudonym(query.subject, key), first=query.first, count=query.count)
    return RecordList.model_validate({"records": found})


def pseudonym_key(state: AppState) -> str:
    """Return the key of pseudonyms, which the workers have too; empty if there is none."""
    return state.settings.environment.get(VARIABLE) or os.environ.get(VARIABLE, "")


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
