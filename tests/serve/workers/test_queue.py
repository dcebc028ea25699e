"""Who is asked together, and who waits for whom."""

import asyncio
from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce.serve.messages import BatchUsage, WorkerRequest
from fasterce.serve.workers.queue import MAX_HOLD, LatencyModel, LatencyModels, PendingRequest, Piece, RequestQueue


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def waiting(
    loop: asyncio.AbstractEventLoop, rows: int = 1, seconds: float = 2.0, client: str = "", **options: Any
) -> PendingRequest:
    request = WorkerRequest("a", ({"x": 1},) * rows, options, monotonic() + seconds, "r", queue=client)
    return PendingRequest(request, loop.create_future())


def queue(*given: PendingRequest, most_batch: int = 8) -> RequestQueue:
    made = RequestQueue(most_batch, 0.003)
    for one in given:
        made.add(one)
    return made


def take(asked: RequestQueue, most_rows: int = 1000) -> list[Piece]:
    return asked.take(lambda _: most_rows, lambda pending, rows: rows * pending.row_cost)


def taken(asked: RequestQueue, most_rows: int = 1000) -> list[PendingRequest]:
    return [piece.pending for piece in take(asked, most_rows)]


def test_the_first_takes_along_who_suits_it(loop: asyncio.AbstractEventLoop) -> None:
    first, other, like = waiting(loop, n=1), waiting(loop, n=2), waiting(loop, n=1)
    asked = queue(first, other, like)
    assert taken(asked) == [first, like]
    assert taken(asked) == [other]
    assert (asked.rows, len(asked)) == (0, 0)


def test_a_batch_has_no_more_rows_than_it_may_and_a_large_request_is_cut(loop: asyncio.AbstractEventLoop) -> None:
    asked = queue(*(waiting(loop, rows) for rows in (3, 6, 4, 1, 20)))
    batches = []
    while asked:
        batches.append([(piece.start, piece.stop) for piece in take(asked)])
    assert batches == [[(0, 3), (0, 4), (0, 1)], [(0, 6)], [(0, 8)], [(8, 16)], [(16, 20)]]


def test_pieces_yield_to_other_requests_of_the_same_client(loop: asyncio.AbstractEventLoop) -> None:
    large, small = waiting(loop, 20, n=1), waiting(loop, n=2)
    asked = queue(large, small)
    assert [taken(asked) for _ in range(4)] == [[large], [small], [large], [large]]


def test_clients_are_served_by_what_they_cost(loop: asyncio.AbstractEventLoop) -> None:
    """One with many large requests gets as much as one with small ones, and not more."""
    asked = queue(*(waiting(loop, 16, client="large", n=1) for _ in range(5)))
    for _ in range(30):
        asked.add(waiting(loop, client="small", n=2))
    given = {"large": 0.0, "small": 0.0}
    for _ in range(8):
        for piece in take(asked):
            given[piece.pending.request.queue] += piece.cost
    assert given["large"] > 0
    assert abs(given["large"] - given["small"]) <= 8


def test_one_who_comes_is_next(loop: asyncio.AbstractEventLoop) -> None:
    asked = queue(waiting(loop, 100, client="large"))
    for _ in range(3):
        take(asked)
    came = waiting(loop, client="small")
    asked.add(came)
    assert taken(asked) == [came]


def test_having_been_idle_is_not_saved_up(loop: asyncio.AbstractEventLoop) -> None:
    asked = queue(waiting(loop, client="small", n=2))
    take(asked)
    asked.add(waiting(loop, 1000, client="large", n=1))
    for _ in range(50):
        take(asked)
    for _ in range(50):
        asked.add(waiting(loop, client="small", n=2))
    clients = [take(asked)[0].pending.request.queue for _ in range(10)]
    assert clients.count("large") >= 4


def test_a_batch_is_as_long_as_it_may_be(loop: asyncio.AbstractEventLoop) -> None:
    models = LatencyModels(8, 0.06)
    single, large, costly = waiting(loop), waiting(loop, 20), waiting(loop, 20, n=100)
    assert models.most_rows(single, is_shared=True) == 8
    assert models.most_rows(large, is_shared=True) == 2, "nothing is known about its options yet"
    assert models.most_rows(costly, is_shared=False) == 2
    for _ in range(50):
        models.of(costly).observe(1, 0.02)
        models.of(costly).observe(4, 0.05)
    assert models.most_rows(costly, is_shared=True) == pytest.approx((0.03 - 0.01) / 0.01, abs=1)
    assert models.most_rows(costly, is_shared=False) == 8
    assert models.most_rows(waiting(loop, 4, n=100), is_shared=True) == 4, "it fits as a whole"


def test_what_comes_before_a_request(loop: asyncio.AbstractEventLoop) -> None:
    """All of its own client, and of another no more than this one is given."""
    large, own = waiting(loop, 1000, client="large", n=1), waiting(loop, 3, client="small", n=2)
    asked, new = queue(large, own), waiting(loop, 1, client="small", n=2)
    assert asked.rows_before(new) == {new.options: 4.0, large.options: pytest.approx(4 * new.row_cost)}


def test_a_piece_keeps_the_labels_of_its_rows_and_gets_its_part_of_the_time(loop: asyncio.AbstractEventLoop) -> None:
    whole = waiting(loop, 20, seconds=10.0)
    asked = queue(whole)
    take(asked)
    (second,) = take(asked)
    request = second.request()
    assert request.row_ids == list(range(8, 16))
    assert len(request.rows) == 8
    assert 3.5 < request.until - monotonic() < 4.1
    assert take(queue(whole))[0].until == whole.request.until


def test_a_request_is_complete_when_all_its_pieces_are(loop: asyncio.AbstractEventLoop) -> None:
    whole = waiting(loop, 20)
    asked = queue(whole)
    pieces = [take(asked)[0] for _ in range(3)]
    usage = BatchUsage(1, 8, 8)
    assert whole.add(pieces[2], (16, 17, 18, 19), usage, 1) is None
    assert whole.add(pieces[0], tuple(range(8)), usage, 1) is None
    assert whole.add(pieces[1], tuple(range(8, 16)), usage, 1) == tuple(range(20))
    assert whole.usage == BatchUsage(3, 24, 24)


def test_what_is_left_of_a_request_can_be_dropped(loop: asyncio.AbstractEventLoop) -> None:
    whole, other = waiting(loop, 20), waiting(loop)
    asked = queue(whole, other)
    take(asked)
    asked.drop(whole)
    assert taken(asked) == [other]
    assert not asked


def test_one_in_a_hurry_does_not_cut_others_short(loop: asyncio.AbstractEventLoop) -> None:
    hurried, calm, calmer = waiting(loop, seconds=0.1), waiting(loop, seconds=1.0), waiting(loop, seconds=9.0)
    asked = queue(hurried, calm, calmer)
    assert taken(asked) == [hurried]
    assert taken(asked) == [calm, calmer]


def test_a_lone_question_waits_for_nobody(loop: asyncio.AbstractEventLoop) -> None:
    asked = queue(waiting(loop))
    asked.note_load(1)
    assert asked.hold_seconds(1) == 0
    take(asked)
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


@pytest.mark.parametrize(("crowd", "seconds", "enough"), [(6, 0.01, 6), (40, 0.05, 20), (40, 0.5, 40)])
def test_a_batch_waits_for_all_of_a_few_and_half_of_a_crowd(
    loop: asyncio.AbstractEventLoop, crowd: int, seconds: float, enough: int
) -> None:
    """But for all of a crowd where calls take so long that the wait does not count."""
    asked = queue(most_batch=64)
    asked.note_done(crowd, seconds)
    for _ in range(enough - 1):
        asked.add(waiting(loop))
    assert asked.hold_seconds(1) > 0
    asked.add(waiting(loop))
    assert asked.hold_seconds(1) == 0


def test_a_large_request_waits_a_moment_for_those_who_were_just_answered(loop: asyncio.AbstractEventLoop) -> None:
    asked = queue(waiting(loop, 100, client="large"))
    take(asked)
    asked.add(waiting(loop, client="small", n=2))
    assert asked.is_shared
    assert [one.request.queue for one in taken(asked)] == ["small"]
    asked.note_done(101, 0.02)
    assert 0 < asked.hold_seconds(1) <= MAX_HOLD
    asked.add(waiting(loop, client="small", n=2))
    assert [one.request.queue for one in taken(asked)] == ["small"]
    asked.note_done(100, 0.02)
    asked._free_at -= 1.0
    assert asked.hold_seconds(1) == 0


def test_one_that_must_be_alone_has_no_company(loop: asyncio.AbstractEventLoop) -> None:
    first, again = waiting(loop), waiting(loop)
    asked = queue(again)
    (piece,) = take(asked)
    piece.alone = True
    asked.add(first)
    asked.add_again(piece)
    asked.note_done(9, 0.05)
    assert asked.hold_seconds(1) == 0
    assert take(asked) == [piece]


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


def test_how_much_fits_into_a_time() -> None:
    model = after([(rows, 0.02 + 0.001 * rows) for _ in range(100) for rows in (1, 8, 64)])
    assert model.most_rows(0.06) == pytest.approx(40, rel=0.1)
    assert model.piece_rows(0.06) == pytest.approx(40, rel=0.1)
    # A model far away: calls are not made so short that they are all fixed part.
    slow = after([(rows, 0.2 + 0.001 * rows) for _ in range(100) for rows in (1, 8, 64)])
    assert slow.most_rows(0.06) == pytest.approx(400, rel=0.1)
    assert slow.piece_rows(0.06) == pytest.approx(100, rel=0.2)


def test_pieces_of_one_size_do_not_make_the_next_one_large() -> None:
    same = after([(4, 0.03)] * 300)
    assert same.most_rows(0.06) > 16
    assert same.piece_rows(0.06) == 8
    assert same.piece_rows(0.03) == 4


def test_a_piece_is_at_most_twice_as_large_as_the_last_one() -> None:
    assert after([]).piece_rows(10.0) == 2
    assert after([(2, 0.01)]).piece_rows(10.0) == 4
    assert after([(64, 0.1), (3, 0.01)]).piece_rows(10.0) == 6


@given(st.lists(st.tuples(st.integers(1, 256), st.floats(1e-6, 60)), max_size=50), st.integers(1, 256))
def test_never_negative_and_more_rows_never_take_less(calls: list[tuple[int, float]], rows: int) -> None:
    model = after(calls)
    assert 0 <= model.predict(rows) <= model.predict(rows + 1) + 1e-9
