"""What is served: artifacts, their schemas, people to pick; reloading; health and metrics."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from fasterce.serve.app import metrics
from fasterce.serve.app.bodies import LONGEST_NAME, Artifacts, People, Reloaded, SchemaSaid
from fasterce.serve.app.house import ADMIN, EXPLAIN, METRICS, House, house_of, needs
from fasterce.serve.app.people import MOST_PAGE
from fasterce.serve.app.problems import Problem, documented, problem_of
from fasterce.serve.question import Description, Unanswered

MOST_ANSWERS = 100
HouseHere = Annotated[House, Depends(house_of)]
Artifact = Annotated[str | None, Query(max_length=LONGEST_NAME)]
router = APIRouter(tags=["about"])


@router.get(
    "/v1/artifacts", response_model=Artifacts, dependencies=[Depends(needs(EXPLAIN))], responses=documented(401, 403, 503)
)
async def artifacts(house: HouseHere) -> Artifacts:
    """What can be explained here."""
    return Artifacts(artifacts=[house.said(described(house, name)) for name in house.desk.names()])


@router.get(
    "/v1/schema",
    response_model=SchemaSaid,
    dependencies=[Depends(needs(EXPLAIN))],
    responses=documented(401, 403, 404, 422, 503),
)
async def schema(house: HouseHere, artifact: Artifact = None) -> SchemaSaid:
    """The columns of an artifact, what may change, and what can be wanted."""
    found, settings = described(house, artifact), house.settings
    limits = {"rows": settings.most_rows, "n": MOST_ANSWERS, "deadline_ms": settings.most_deadline_ms}
    digests = {"artifact": found.artifact_digest, "model": found.model_digest}
    return SchemaSaid.model_validate({**found.schema, "limits": limits, "digests": digests})


@router.get(
    "/v1/applicants",
    response_model=People,
    dependencies=[Depends(needs(EXPLAIN))],
    responses=documented(401, 403, 404, 422),
)
async def applicants(
    house: HouseHere,
    artifact: Artifact = None,
    query: Annotated[str, Query(max_length=LONGEST_NAME)] = "",
    first: Annotated[int, Query(ge=0, le=10**9)] = 0,
    count: Annotated[int, Query(ge=1, le=MOST_PAGE)] = 20,
) -> People:
    """People to choose from, where the server was given a file of them."""
    name = described(house, artifact).name
    if name not in house.people:
        raise Problem(404, "no_applicants", "This server was given no people to choose from.")
    total, people = house.people[name].find(query, first, count)
    return People(total=total, first=first, people=people)


@router.post(
    "/v1/reload", response_model=Reloaded, dependencies=[Depends(needs(ADMIN))], responses=documented(401, 403, 409, 503)
)
async def reload(house: HouseHere) -> Reloaded:
    """Load the artifacts' folders anew; what is there goes on until the new versions are ready."""
    try:
        found = await house.desk.reload()
    except Unanswered as error:
        raise problem_of(error) from None
    return Reloaded(artifacts=[house.said(one) for one in found])


@router.get("/metrics", dependencies=[Depends(needs(METRICS))], responses={200: {"content": {"text/plain": {}}}})
async def measured(house: HouseHere) -> Response:
    """For Prometheus."""
    return Response(house.metrics.text(house.desk.load()), media_type=metrics.TYPE)


def described(house: House, name: str | None) -> Description:
    try:
        return house.desk.describe(name)
    except Unanswered as error:
        raise problem_of(error) from None
