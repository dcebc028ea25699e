"""Rounds of evaluation: each search yields candidates, and those of all searches are evaluated in one call per round."""

from collections.abc import Callable, Generator, Sequence

from fasterce.search.context import SearchContext
from fasterce.search.judge import Candidates, Edits, Judge, Verdict
from fasterce.search.pool import Pool
from fasterce.typing import Indices

Group = Candidates | Edits
Proposal = Sequence[Group]
Search = Generator[Proposal, list[Verdict], Pool]


def run_rounds(judge: Judge, searches: Sequence[Search]) -> list[Pool] | None:
    """Run searches in parallel, one model call per round, until each has returned its pool; None if time is up."""
    combined = in_parallel(searches)
    try:
        proposal = next(combined)
        while True:
            if judge.limits.over:
                return None
            proposal = combined.send(judge.judge(*proposal))
    except StopIteration as done:
        return list(done.value)


def in_parallel(searches: Sequence[Search]) -> Generator[Proposal, list[Verdict], list[Pool]]:
    """Combine searches into one that yields their proposals of a round together and returns their pools."""
    pools: dict[int, Pool] = {}
    proposals: dict[int, Proposal] = {}
    pending: dict[int, list[Verdict] | None] = dict.fromkeys(range(len(searches)))
    while pending:
        for k, received in pending.items():
            try:
                proposals[k] = next(searches[k]) if received is None else searches[k].send(received)
            except StopIteration as done:
                pools[k] = done.value
        verdicts = iter((yield [group for proposal in proposals.values() for group in proposal]) if proposals else [])
        pending = {k: [next(verdicts) for _ in proposal] for k, proposal in proposals.items()}
        proposals = {}
    return [pools[k] for k in range(len(searches))]


def for_rows(rows: Indices, context: SearchContext, search: Callable[[SearchContext], Search]) -> Search:
    """Run a search for some rows of the context; the other rows have nothing in its pool."""
    if not rows.size:
        return Pool.nothing(context.domain.base)
    inner = search(context.take(rows))
    try:
        proposal = next(inner)
        while True:
            proposal = inner.send((yield [group.of(rows) for group in proposal]))
    except StopIteration as done:
        return Pool.among(done.value, rows, context.domain.base)
