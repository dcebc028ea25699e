"""Rounds of evaluation: each search yields candidates, and those of all searches are evaluated in one call per round."""

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar, cast

from fasterce.search.context import SearchContext
from fasterce.search.evaluator import Candidates, Evaluation, Evaluator
from fasterce.search.pool import Pool
from fasterce.typing import Indices

Proposal = Sequence[Candidates]
Search = Generator[Proposal, list[Evaluation], Pool]
Result = TypeVar("Result")


def run_rounds(evaluator: Evaluator, searches: Sequence[Search]) -> list[Pool] | None:
    """Run searches in parallel, one model call per round, until each has returned its pool; None if time is up."""
    combined = in_parallel(searches)
    try:
        proposal = next(combined)
        while True:
            if evaluator.limits.over:
                return None
            proposal = combined.send(evaluator.evaluate(*proposal))
    except StopIteration as done:
        return list(done.value)


def in_parallel(searches: Sequence[Search]) -> Generator[Proposal, list[Evaluation], list[Pool]]:
    """Combine searches into one that yields their proposals of a round together and returns their pools."""
    pools: dict[int, Pool] = {}
    proposals: dict[int, Proposal] = {}
    pending: dict[int, list[Evaluation] | None] = dict.fromkeys(range(len(searches)))
    while pending:
        for k, received in pending.items():
            try:
                proposals[k] = next(searches[k]) if received is None else searches[k].send(received)
            except StopIteration as done:
                pools[k] = done.value
        evaluations = iter((yield [group for proposal in proposals.values() for group in proposal]) if proposals else [])
        pending = {k: [next(evaluations) for _ in proposal] for k, proposal in proposals.items()}
        proposals = {}
    return [pools[k] for k in range(len(searches))]


def for_rows(rows: Indices, context: SearchContext, search: Callable[[SearchContext], Search]) -> Search:
    """Run a search for some rows of the context; the other rows have nothing in its pool."""
    if not rows.size:
        return Pool.nothing(context.domain.base)
    pool = yield from addressed(rows, search(context.take(rows)))
    return Pool.among(pool, rows, context.domain.base)


def addressed(
    rows: Indices, search: Generator[Proposal, list[Evaluation], Result]
) -> Generator[Proposal, list[Evaluation], Result]:
    """Run a search that knows only some rows of a context: its candidates get the positions of these rows."""
    try:
        proposal = next(search)
        while True:
            proposal = search.send((yield [group.of(rows) for group in proposal]))
    except StopIteration as done:
        return cast(Result, done.value)
