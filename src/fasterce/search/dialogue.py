"""Searches that take turns: each yields what it wants to know, all questions of a round go to the model in one call."""

from collections.abc import Callable, Generator, Sequence

from fasterce.search.goal import Indices
from fasterce.search.judge import Candidates, Edits, Judge, Verdict
from fasterce.search.pool import Pool
from fasterce.search.task import Task

Group = Candidates | Edits
Wish = Sequence[Group]
Search = Generator[Wish, list[Verdict], Pool]


def converse(judge: Judge, searches: Sequence[Search]) -> list[Pool] | None:
    """Run searches side by side, asking the model once a round, until each has returned its pool; None if time is up."""
    talk = side_by_side(searches)
    try:
        wish = next(talk)
        while True:
            if judge.limits.over:
                return None
            wish = talk.send(judge.judge(*wish))
    except StopIteration as done:
        return list(done.value)


def side_by_side(searches: Sequence[Search]) -> Generator[Wish, list[Verdict], list[Pool]]:
    """Several searches as one: their wishes of a round together, their pools at the end."""
    pools: dict[int, Pool] = {}
    wishes: dict[int, Wish] = {}
    answers: dict[int, list[Verdict] | None] = dict.fromkeys(range(len(searches)))
    while answers:
        for k, answer in answers.items():
            try:
                wishes[k] = next(searches[k]) if answer is None else searches[k].send(answer)
            except StopIteration as done:
                pools[k] = done.value
        verdicts = iter((yield [group for wish in wishes.values() for group in wish]) if wishes else [])
        answers = {k: [next(verdicts) for _ in wish] for k, wish in wishes.items()}
        wishes = {}
    return [pools[k] for k in range(len(searches))]


def for_some(rows: Indices, task: Task, search: Callable[[Task], Search]) -> Search:
    """A search for some of the task's rows; in its pool the other rows have nothing."""
    if not rows.size:
        return Pool.nothing(task.domain.base)
    inner = search(task.take(rows))
    try:
        wish = next(inner)
        while True:
            wish = inner.send((yield [group.of(rows) for group in wish]))
    except StopIteration as done:
        return Pool.among(done.value, rows, task.domain.base)
