"""Shares of clients, and what a request costs."""

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
    assert cost(method="all") == 3
    assert cost(n=5) == 2
    assert cost(robust=0.9) == 2
    assert cost(method="all", n=5, robust=1.0) == 12


def test_one_alone_may_have_all_and_a_second_its_half() -> None:
    share = FairShare(10)
    with share.hold("one", 9):
        assert share.permits("one")
        with share.hold("one", 1):
            assert not share.permits("one")
            assert share.permits("two")
            with share.hold("two", 5):
                assert not share.permits("two")
                assert share.permits("three")
    assert share.held == {}
    with pytest.raises(RuntimeError), share.hold("one"):
        raise RuntimeError
    assert share.permits("one")


@given(st.lists(st.sampled_from("abcdefgh"), max_size=400))
def test_the_total_stays_within_bounds(asking: list[str]) -> None:
    share, holding = FairShare(20), []
    for client in asking:
        if share.permits(client):
            held = share.hold(client)
            held.__enter__()
            holding.append(held)
    assert sum(share.held.values()) <= 20 * (1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5 + 1 / 6 + 1 / 7 + 1 / 8) + 8
