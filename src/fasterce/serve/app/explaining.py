"""POST /v1/explain: a request becomes a question for the desk, its answer is kept, then told."""

import asyncio
import json
from collections.abc import Coroutine
from time import monotonic, perf_counter
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from fasterce.serve.app import keeping
from fasterce.serve.app.bodies import Asked, Explained
from fasterce.serve.app.house import EXPLAIN, House, house_of, needs
from fasterce.serve.app.problems import Problem, documented, problem_of
from fasterce.serve.app.reading import CarefulRoute
from fasterce.serve.app.rows import Rows
from fasterce.serve.question import Answer, Question, Unanswered

OPTIONS = (
    *("method", "n", "target", "target_score", "freeze", "vary", "ranges", "rules", "override", "robust", "distance"),
    *("realism", "diversity", "budget", "why_not"),
)
INVALID = "invalid_input"
GOT = "; got "
router = APIRouter(tags=["explain"], route_class=CarefulRoute)


@router.post(
    "/v1/explain",
    response_model=Explained,
    dependencies=[Depends(needs(EXPLAIN))],
    responses=documented(400, 401, 403, 404, 413, 415, 422, 429, 503, 504),
    summary="What would have had to be different?",
)
async def explain(asked: Asked, request: Request, house: Annotated[House, Depends(house_of)]) -> Response:
    started = perf_counter()
    answer, kept = await answered(house, asked, request)
    if len(answer.records) == 1 and answer.records[0].status == INVALID:
        raise invalid(house.rows_of(answer.description), answer.records[0].body)
    head = {
        "request_id": request.state.request_id,
        "artifact": house.said(answer.description).model_dump(),
        "kept": kept,
        "asked": {"calls": answer.calls, "rows": answer.rows_asked, "batch_rows": answer.batch_rows},
        "ms": round((perf_counter() - started) * 1e3, 2),
    }
    # Records are JSON already: they are put in as they are, not read and written again.
    records = ",".join(record.body for record in answer.records)
    body = f'{json.dumps(head)[:-1]}, "records": [{records}]}}'
    return Response(body, media_type="application/json")


async def answered(house: House, asked: Asked, request: Request) -> tuple[Answer, bool]:
    """The desk's answer, kept before anybody sees it; and whether it was."""
    question = question_of(house, asked, request.state.request_id)
    try:
        answer = await unless_gone(request, house.desk.explain(question))
    except Unanswered as error:
        raise problem_of(error) from None
    house.metrics.answered(answer)
    statuses = [record.status for record in answer.records]
    facts = {
        "artifact": question.artifact,
        "rows": len(statuses),
        "statuses": {one: statuses.count(one) for one in set(statuses)},
    }
    request.state.facts = facts | {"batch_rows": answer.batch_rows}
    kept = asked.keep and house.store is not None
    if kept and statuses != [INVALID]:
        await keeping.keep(house, answer.records)
    return answer, kept


async def unless_gone(request: Request, asking: Coroutine[Any, Any, Answer]) -> Answer:
    """The answer; nobody goes on working for a client who has left."""
    answer = asyncio.create_task(asking)
    leaving = asyncio.create_task(left(request))
    try:
        await asyncio.wait((answer, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise Problem(499, "gone", "The client is gone.")
        return answer.result()
    finally:
        answer.cancel()
        leaving.cancel()


async def left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def question_of(house: House, asked: Asked, request_id: str) -> Question:
    """Checked as far as the schema goes; the engines check the rest."""
    settings = house.settings
    if len(asked.rows) > settings.most_rows:
        raise Problem(
            413, "too_many_rows", f"Expected at most {settings.most_rows} rows in a request; got {len(asked.rows)}."
        )
    try:
        description = house.desk.describe(asked.artifact)
    except Unanswered as error:
        raise problem_of(error) from None
    rows = house.rows_of(description)
    rows.check(asked.rows)
    distance = asked.distance if isinstance(asked.distance, dict) else {}
    for where, names in (
        ("freeze", asked.freeze),
        ("vary", asked.vary or []),
        ("ranges", asked.ranges),
        ("distance", distance),
    ):
        rows.check_names(list(names), where)
    return Question(
        artifact=description.name,
        rows=tuple(asked.rows),
        options=options_of(asked),
        until=monotonic() + deadline_of(asked, settings.deadline_ms, settings.most_deadline_ms) / 1e3,
        request_id=request_id,
        row_ids=_tuple(asked.row_ids),
        decision_ids=_tuple(asked.decision_ids),
        subjects=_tuple(asked.subjects),
        constraints_by=asked.constraints_by,
        retain_until=keeping.retain_until(settings),
    )


def options_of(asked: Asked) -> dict[str, Any]:
    return {name: getattr(asked, name) for name in OPTIONS}


def deadline_of(asked: Asked, usual: int, most: int) -> int:
    if asked.deadline_ms is not None and asked.deadline_ms > most:
        sentence = f"Expected at most {most} ms."
        raise Problem(422, "invalid_request", f"deadline_ms: {sentence}", [("deadline_ms", sentence)])
    return asked.deadline_ms or usual


def invalid(rows: Rows, record: str) -> Problem:
    """A row the schema's models let pass and the explainer does not; what was sent is not repeated."""
    reason = json.loads(record)["reason"]
    where, what = rows.place_of(reason), f"{reason.partition(GOT)[0].rstrip('.')}."
    return Problem(422, "invalid_row", f"{where}: {what}", [(where, what)])


def _tuple(given: Any) -> Any:
    return None if given is None else tuple(given)
