"""Records that were kept: one, its letter, those of a subject, a decision or a request; and erasing a subject's."""

import json
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import HTMLResponse

from fasterce.serve.app.bodies import LONGEST_NAME, Erased, RecordList
from fasterce.serve.app.house import ADMIN, RECORDS, House, house_of, needs
from fasterce.serve.app.keeping import unkept
from fasterce.serve.app.problems import Problem, documented
from fasterce.serve.letter import letter, policy
from fasterce.serve.store import Store, StoreError

HouseHere = Annotated[House, Depends(house_of)]
Text = Annotated[str | None, Query(max_length=LONGEST_NAME)]
router = APIRouter(tags=["records"], dependencies=[Depends(needs(RECORDS))])


@router.get("/v1/records/{id}", responses=documented(401, 403, 404, 422, 503), summary="A record")
async def record(id: UUID, house: HouseHere) -> Response:
    headers = {"Content-Disposition": f'inline; filename="record-{id}.json"'}
    return Response(await body(house, id), media_type="application/json", headers=headers)


@router.get(
    "/v1/records/{id}/letter",
    response_class=Response,
    responses={200: {"content": {"text/html": {}}}, **documented(401, 403, 404, 422, 503)},
    summary="A record as a letter to print",
)
async def printed(id: UUID, house: HouseHere) -> HTMLResponse:
    return HTMLResponse(letter(json.loads(await body(house, id))), headers={"Content-Security-Policy": policy()})


@router.get("/v1/records", response_model=RecordList, responses=documented(401, 403, 404, 422, 503), summary="Find records")
async def found(
    house: HouseHere,
    subject: Text = None,
    decision: Text = None,
    request: Text = None,
    first: Annotated[int, Query(ge=0, le=10**9)] = 0,
    count: Annotated[int, Query(ge=1, le=200)] = 50,
) -> RecordList:
    """By the pseudonym of a subject, by a decision or by a request."""
    if subject is None and decision is None and request is None:
        raise Problem(422, "invalid_request", "Expected a subject, a decision or a request to look for.")
    try:
        lines = await store_of(house).find(subject=subject, decision=decision, request=request, first=first, count=count)
    except StoreError as error:
        raise unkept(error) from None
    return RecordList.model_validate({"records": lines})


@router.delete(
    "/v1/records",
    response_model=Erased,
    dependencies=[Depends(needs(ADMIN))],
    responses=documented(401, 403, 404, 422, 503),
    summary="Erase the records of a subject",
)
async def erased(house: HouseHere, subject: Annotated[str, Query(min_length=1, max_length=LONGEST_NAME)]) -> Erased:
    try:
        return Erased(erased=await store_of(house).forget(subject))
    except StoreError as error:
        raise unkept(error) from None


async def body(house: House, id: UUID) -> str:
    try:
        found = await store_of(house).get(str(id))
    except StoreError as error:
        raise unkept(error) from None
    if found is None:
        raise Problem(404, "no_such_record", "There is no record of this id, or no more.")
    return found


def store_of(house: House) -> Store:
    if house.store is None:
        raise Problem(404, "no_records", "This server keeps no records.")
    return house.store
