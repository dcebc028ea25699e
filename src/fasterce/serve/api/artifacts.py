"""Routes about what is served: artifacts, their schemas, applicants to choose from, reloading and metrics."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from fasterce.serve.api import metrics
from fasterce.serve.api.applicants import MAX_PAGE
from fasterce.serve.api.problems import HTTPProblem, documented
from fasterce.serve.api.records import pseudonym_key
from fasterce.serve.api.route import ServiceRoute, needs
from fasterce.serve.api.schemas import LONGEST_NAME, ApplicantPage, Artifacts, SchemaInfo
from fasterce.serve.api.state import ADMIN, APPLICANTS, EXPLAIN, METRICS, RECORDS, State
from fasterce.serve.keys import SCOPES
from fasterce.serve.letter import load_words

Artifact = Annotated[str | None, Query(max_length=LONGEST_NAME)]
router = APIRouter(tags=["about"], route_class=ServiceRoute)


@router.get("/v1/artifacts", openapi_extra=needs(EXPLAIN), responses=documented(401, 403, 503))
async def artifacts(state: State) -> Artifacts:
    """The artifacts that are served."""
    return Artifacts(artifacts=[state.info(state.dispatcher.describe(name)) for name in state.dispatcher.names()])


@router.get("/v1/schema", openapi_extra=needs(EXPLAIN), responses=documented(401, 403, 404, 422, 503))
async def schema(state: State, request: Request, artifact: Artifact = None) -> SchemaInfo:
    """The columns of an artifact, what may change, which targets there are, and what else the key permits."""
    found, settings = state.dispatcher.describe(artifact), state.settings
    limits = {"rows": settings.most_rows, "n": settings.most_n, "deadline_ms": settings.most_deadline_ms}
    digests = {"artifact": found.artifact_digest, "model": found.model_digest}
    words = load_words(settings.letter)
    records = {
        "kept": state.store is not None,
        "required": list(settings.required),
        "subjects": bool(pseudonym_key(state)),
        "letter": {name: words[name] for name in ("sender", "contact", "recipient")},
    }
    scopes = request.state.scopes
    permitted = set(SCOPES if scopes is None else scopes)
    may = {
        "list_applicants": found.name in state.applicants and APPLICANTS in permitted,
        "find_records": state.store is not None and RECORDS in permitted,
        "erase_records": state.store is not None and {RECORDS, ADMIN} <= permitted,
    }
    return SchemaInfo.model_validate({**found.schema, "limits": limits, "digests": digests, "records": records, "may": may})


@router.get("/v1/applicants", openapi_extra=needs(APPLICANTS), responses=documented(401, 403, 404, 422))
async def applicants(
    state: State,
    artifact: Artifact = None,
    query: Annotated[str, Query(max_length=LONGEST_NAME)] = "",
    first: Annotated[int, Query(ge=0, le=10**9)] = 0,
    count: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 20,
) -> ApplicantPage:
    """Applicants to choose from, if the server was given a file of them."""
    name = state.dispatcher.describe(artifact).name
    if name not in state.applicants:
        raise HTTPProblem(404, "no_applicants", "serve.no_applicants")
    total, people = state.applicants[name].find(query, first, count)
    return ApplicantPage(total=total, first=first, people=people)


@router.post("/v1/reload", openapi_extra=needs(ADMIN), responses=documented(401, 403, 409, 503))
async def reload(state: State) -> Artifacts:
    """Load the artifacts' folders again; the current versions stay in service until the new ones are ready."""
    return Artifacts(artifacts=[state.info(one) for one in await state.dispatcher.reload()])


@router.get("/metrics", openapi_extra=needs(METRICS), responses={200: {"content": {"text/plain": {}}}})
async def prometheus(state: State) -> Response:
    """Metrics for Prometheus."""
    text = state.metrics.text(state.dispatcher.load(), len(state.connections.open), state.connections.closed)
    return Response(text, media_type=metrics.TYPE)
