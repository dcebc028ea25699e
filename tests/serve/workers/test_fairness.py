"""Single rows beside a client with large requests, on a simulated clock: what the order of the queue alone makes of them."""

from collections.abc import Mapping
from typing import Any

import pytest

from fasterce.serve.settings import Settings
from tests.serve.workers.simulation import Client, Simulation

SECONDS = 30.0
CLIENTS = 8
# Processor seconds of a call and of each of its rows in a worker: German Credit with an MLP as ONNX, by options.
SINGLE = (0.008, 0.0016)
LARGE: dict[str, tuple[tuple[float, float], Mapping[str, Any]]] = {
    "default": (SINGLE, {}),
    "n=10": ((0.011, 0.0033), {"n": 10}),
    "all": ((0.022, 0.008), {"method": "all"}),
    "all, n=10": ((0.022, 0.012), {"method": "all", "n": 10}),
    "all, n=10, robust": ((0.025, 0.0145), {"method": "all", "n": 10, "robust": 0.95}),
    "slower than believed": ((0.01, 0.04), {"n": 3}),
    "faster than believed": ((0.01, 0.001), {"method": "all", "n": 100}),
}
# Half of the speed of one machine to four times it; another model is another machine.
SPEEDS = (0.5, 1.0, 4.0)


def simulated(speed: float, seed: int, large: str | None = None) -> Simulation:
    clients = [Client(f"single {k}", 1, SINGLE[0] * speed, SINGLE[1] * speed) for k in range(CLIENTS)]
    if large is not None:
        (fixed, per_row), options = LARGE[large]
        clients.append(Client("large", 256, fixed * speed, per_row * speed, options, start=0.5))
    made = Simulation(clients, Settings.piece_ms, seed=seed)
    made.run(SECONDS)
    return made


def slowest(simulation: Simulation) -> float:
    """The 99th percentile of the seconds of single rows."""
    found = sorted(
        seconds for name, one in simulation.clients.items() for seconds in one.latencies if name.startswith("single")
    )
    return found[int(0.99 * (len(found) - 1))]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("large", LARGE)
def test_single_rows_take_at_most_three_times_as_long_beside_large_requests(large: str, speed: float, seed: int) -> None:
    beside, quiet = simulated(speed, seed, large), slowest(simulated(speed, seed))
    (fixed, per_row), _ = LARGE[large]
    # A row cannot be cut. One that takes more than twice as long as single rows do leaves them no way to three times: then
    # they may have to wait for two of it.
    longest = 1.3 * speed * (fixed + per_row)
    assert slowest(beside) <= (quiet + 2 * longest if longest > 2 * quiet else 3 * quiet)
    assert sum(rows for name, rows, _ in beside.pieces if name == "large") > 10, "nor do they starve the large ones"


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("large", LARGE)
def test_a_client_with_large_requests_gets_about_its_equal_part_of_the_time(large: str, speed: float) -> None:
    """However long its rows take, and whatever they were believed to cost."""
    pieces = simulated(speed, 0, large).pieces
    share = sum(seconds for name, _, seconds in pieces if name == "large") / sum(seconds for *_, seconds in pieces)
    assert 0.9 / (CLIENTS + 1) <= share <= 2.2 / (CLIENTS + 1)


@pytest.mark.parametrize("large", LARGE)
def test_no_piece_is_much_longer_than_it_should_be(large: str) -> None:
    """Also after hundreds of pieces of one size, from which nothing can be learned about larger ones."""
    pieces = simulated(1.0, 0, large).pieces
    (fixed, per_row), _ = LARGE[large]
    longest = max(2 * Settings.piece_ms / 1e3, 1.3 * (fixed + 2 * per_row))
    assert max(seconds for name, _, seconds in pieces if name == "large") <= longest


@pytest.mark.parametrize("clients", [16, 32, 64])
def test_a_worker_does_not_wait_for_all_of_a_crowd(clients: int) -> None:
    """While responses are sent and the next requests read, one by one, it explains those that are there."""
    crowd = [Client(f"single {k}", 1, *SINGLE) for k in range(clients)]
    simulation = Simulation(crowd, Settings.piece_ms, turnaround_each=0.0006)
    simulation.run(SECONDS)
    assert sum(seconds for *_, seconds in simulation.pieces) > 0.9 * SECONDS


def test_a_client_alone_is_not_slowed_down_by_pieces() -> None:
    fixed, per_row = SINGLE
    alone = Simulation([Client("large", 256, fixed, per_row)], Settings.piece_ms)
    (latencies,) = alone.run(SECONDS).values()
    assert sorted(latencies)[len(latencies) // 2] <= 1.3 * (fixed * 256 / 64 + per_row * 256)


def test_many_single_rows_share_calls_even_if_each_call_takes_long() -> None:
    """A model far away: 200 ms per call, hardly any per row."""
    clients = [Client(f"single {k}", 1, 0.2, 0.001) for k in range(32)]
    simulation = Simulation(clients, Settings.piece_ms)
    simulation.run(SECONDS)
    assert slowest(simulation) <= 3 * 0.232


@pytest.mark.parametrize("speed", [*SPEEDS, 6.0])
def test_a_crowd_of_single_rows_is_gathered_on_slow_machines_too(speed: float) -> None:
    """At least six tenths of what calls of 64 rows would make of it."""
    fixed, per_row = (seconds * speed for seconds in SINGLE)
    clients = [Client(f"single {k}", 1, fixed, per_row) for k in range(64)]
    Simulation(clients, Settings.piece_ms, seed=1).run(SECONDS)
    answered = sum(len(client.latencies) for client in clients)
    assert answered / SECONDS >= 0.6 * 64 / (fixed + 64 * per_row)
