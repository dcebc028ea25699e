"""Who is asked together, and who waits for whom."""

import asyncio
from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce.serve.messages import WorkerRequest
from fasterce.serve.workers.queue import MAX_HOLD, LatencyModel, PendingRequest, RequestQueue


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def waiting(loop: asyncio.AbstractEventLoop, rows: int = 1, seconds: float = 2.0, **options: Any) -> PendingRequest:
    return PendingRequest(WorkerRequest("a", ({"x": 1},) * rows, options, monotonic() + seconds, "r"), loop.create_future())


def queue(*given: PendingRequest, most_batch: int = 8) -> RequestQueue:
    made = RequestQueue(most_batch, 0.003)
    for one in given:
        made.add(one)
    return made


def test_the_first_takes_along_who_suits_it(loop: asyncio.AbstractEventLoop) -> None:
    first, other, like = waiting(loop, n=1), waiting(loop, n=2), waiting(loop, n=1)
    asked = queue(first, other, like)
    assert asked.take() == [first, like]
    assert asked.take() == [other]
    assert (asked.rows, len(asked)) == (0, 0)


def test_a_batch_has_no_more_rows_than_it_may_and_no_question_is_split(loop: asyncio.AbstractEventLoop) -> None:
    given = [waiting(loop, rows) for rows in (3, 6, 4, 1, 20)]
    asked = queue(*given)
    assert [[one.rows for one in asked.take()] for _ in range(3)] == [[3, 4, 1], [6], [20]]


def test_one_in_a_hurry_does_not_cut_others_short(loop: asyncio.AbstractEventLoop) -> None:
    hurried, calm, calmer = waiting(loop, seconds=0.1), waiting(loop, seconds=1.0), waiting(loop, seconds=9.0)
    asked = queue(hurried, calm, calmer)
    assert asked.take() == [hurried]
    assert asked.take() == [calm, calmer]


def test_a_lone_question_waits_for_nobody(loop: asyncio.AbstractEventLoop) -> None:
    asked = queue(waiting(loop))
    asked.note_load(1)
    assert asked.hold_seconds(1) == 0
    asked.take()
    asked.note_done(1, 0.05)
    asked.add(waiting(loop))
    assert asked.hold_seconds(1) == 0


def test_after_a_crowd_was_answered_the_first_waits_a_moment_for_the_others(loop: asyncio.AbstractEventLoop) -> None:
    asked = queue()
    asked.note_done(4, 0.05)
    asked.add(waiting(loop))
    assert 0 < asked.hold_seconds(1) <= MAX_HOLD
    assert asked.hold_seconds(4) == 0
    for _ in range(3):
        asked.add(waiting(loop))
    assert asked.hold_seconds(1) == 0


def test_one_that_must_be_alone_has_no_company(loop: asyncio.AbstractEventLoop) -> None:
    first, again = waiting(loop), waiting(loop)
    again.alone = True
    asked = queue(first)
    asked.add_first(again)
    asked.note_done(9, 0.05)
    assert asked.hold_seconds(1) == 0
    assert asked.take() == [again]


def after(calls: list[tuple[int, float]]) -> LatencyModel:
    model = LatencyModel()
    for rows, seconds in calls:
        model.observe(rows, seconds)
    return model


def test_a_call_and_its_rows_are_told_apart() -> None:
    model = after([(rows, 0.03 + 0.001 * rows) for _ in range(100) for rows in (1, 8, 64)])
    assert model.predict(1) == pytest.approx(0.031, rel=0.05)
    assert model.predict(64) == pytest.approx(0.094, rel=0.05)


def test_calls_of_one_size_tell_of_that_size_and_let_a_crowd_in() -> None:
    model = after([(1, 0.04)] * 300)
    assert model.predict(1) == pytest.approx(0.04, rel=0.05)
    assert 0.04 < model.predict(64) < 0.5


def test_a_machine_that_slows_down_is_noticed_soon() -> None:
    model = after([(8, 0.05)] * 200 + [(8, 0.5)] * 40)
    assert model.predict(8) > 0.4


@given(st.lists(st.tuples(st.integers(1, 256), st.floats(1e-6, 60)), max_size=50), st.integers(1, 256))
def test_never_negative_and_more_rows_never_take_less(calls: list[tuple[int, float]], rows: int) -> None:
    model = after(calls)
    assert 0 <= model.predict(rows) <= model.predict(rows + 1) + 1e-9
