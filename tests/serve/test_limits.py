"""Shares of clients, and what a request costs."""

from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce.serve.limits import FairShare, row_cost
from fasterce.serve.messages import WorkerRequest


def cost(**options: Any) -> float:
    return row_cost(WorkerRequest("a", ({},), options, 0.0, "r"))


def test_what_a_row_costs() -> None:
    assert cost() == cost(n=1, method="sparse", robust=None) == 1
    assert cost(method="all") == 5
    assert cost(method="realistic") == 4
    assert [cost(n=n) for n in (2, 4, 64)] == [2, 3, 7]
    assert cost(robust=0.9) == 4
    assert cost(method="all", n=4, robust=1.0) == 18


def test_one_alone_may_have_all_and_a_second_its_half() -> None:
    share = FairShare(10)
    with share.hold("one", amount=9):
        assert share.permits("one")
        with share.hold("one", amount=1):
            assert not share.permits("one")
            assert share.permits("two")
            with share.hold("two", amount=5):
                assert not share.permits("two")
                assert share.permits("three")
    assert share.held == {}
    with pytest.raises(RuntimeError), share.hold("one"):
        raise RuntimeError
    assert share.permits("one")


def test_a_large_request_leaves_room_for_other_connections_of_its_address() -> None:
    share = FairShare(10)
    with ExitStack() as held:
        held.enter_context(share.hold("address", "large", 4096))
        assert not share.permits("address", "large")
        for k in range(9):
            assert share.permits("address", f"small {k}")
            held.enter_context(share.hold("address", f"small {k}"))
        # With ten connections a part is one row: an eleventh has to wait, and another address does not.
        assert not share.permits("address", "one more")
        assert not share.permits("address", "small 0")
        assert share.permits("another", "its first")


def test_connections_of_one_address_do_not_take_the_part_of_another() -> None:
    share = FairShare(10)
    with ExitStack() as held:
        for k in range(10):
            assert share.permits("many", f"{k}")
            held.enter_context(share.hold("many", f"{k}"))
        assert not share.permits("many", "10")
        for _ in range(5):
            assert share.permits("one", "its only")
            held.enter_context(share.hold("one", "its only"))
        assert not share.permits("one", "its only")
    assert share.held == {}


@given(st.lists(st.sampled_from("abcdefgh"), max_size=400))
def test_the_total_stays_within_bounds(asking: list[str]) -> None:
    share, holding = FairShare(20), []
    for client in asking:
        if share.permits(client):
            held = share.hold(client)
            held.__enter__()
            holding.append(held)
    assert share.total <= 20 * (1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5 + 1 / 6 + 1 / 7 + 1 / 8) + 8
