"""A verdict follows the numbers, within their error bars."""

import pandas as pd
import pytest
from benchmarks.paper import statements
from benchmarks.paper.readings import MEASURED, POSSIBLE, reading
from benchmarks.paper.statements import AGREES, DIFFERS, UNDECIDED, Runs
from benchmarks.paper.tables import Tables
from benchmarks.store import Cell, Key

SEEDS = (0, 1, 2, 3, 4)


def cell(method: str, seed: int, target: str = "favourable", data: str = "adult", **numbers: float) -> Cell:
    """Two queries of a method with the same numbers."""
    usual = {"valid": 1.0, "n_changed": 3.0, "undivided": 1.0, "proximity": 0.5, "gower_l1": 0.2, "seconds": 0.01}
    one = {"status": "found", "reason": "", "changed": "", **usual, **numbers}
    lines = pd.DataFrame([{"row": row, **one, "feature": "age"} for row in (0, 1)])
    return Cell(Key(data, "mlp", target, method, seed), "test", {"setup": 1.0}, lines)


def found(*cells: Cell) -> dict[str, statements.Statement]:
    return {one.name: one for one in statements.statements(Tables(cells))}


def test_an_interval_widens_with_the_spread_of_the_runs() -> None:
    assert statements.interval([1.0, 1.0, 1.0]) == (1.0, 1.0)
    low, high = statements.interval([0.0, 2.0])
    assert low < 0
    assert high > 2


@pytest.mark.parametrize(
    ("differences", "verdict"), [([-1.0, -1.1, -0.9], AGREES), ([1.0, 1.1, 0.9], DIFFERS), ([-1.0, 1.0, 0.1], UNDECIDED)]
)
def test_a_comparison_is_decided_outside_the_error_bars_only(differences: list[float], verdict: str) -> None:
    assert statements.below(differences) == verdict


@pytest.mark.parametrize(
    ("percentages", "verdict"),
    [([100.0, 100.0], AGREES), ([94.0, 94.2, 94.1], DIFFERS), ([90.0, 98.0], UNDECIDED)],
)
def test_a_wide_interval_is_no_support_for_100_percent(percentages: list[float], verdict: str) -> None:
    assert statements.complete(percentages) == verdict


def test_a_query_stopped_by_our_clock_is_neither_valid_nor_invalid() -> None:
    stopped = cell("alibi-proto", 0)
    stopped.lines.loc[1, ["status", "valid"]] = ["timeout", 0.0]
    (run,) = Tables([stopped]).runs.itertuples()
    assert (run.valid, run.tried) == (100.0, 2)


def test_a_statement_about_a_rival_is_not_counted_for_faster_ce() -> None:
    both = found(*(cell(method, seed) for method in ("ce1", "dice-random") for seed in SEEDS))
    assert both["valid-ce1"].subject == "FASTER-CE"
    assert both["valid-dice-random"].subject == "DiCE"


def test_faster_means_every_rival_and_every_run() -> None:
    ours = [cell(method, seed, seconds=0.01 + seed / 1e4) for method in ("ce1", "ce2", "ce3") for seed in SEEDS]
    slow = [cell("dice-random", seed, seconds=0.1) for seed in SEEDS]
    quick = [cell("latentcf-adam", seed, seconds=0.001) for seed in SEEDS]
    assert found(*ours, *slow)["fast"].verdict == AGREES
    assert found(*ours, *slow, *quick)["fast"].verdict == DIFFERS


def test_counterfactuals_are_compared_on_the_queries_both_explained() -> None:
    ours, rival = cell("ce1", 0, undivided=1.0), cell("certifai-genetic", 0, undivided=2.0)
    ours.lines.loc[1, "undivided"] = 9.0
    rival = Cell(rival.key, rival.fingerprint, rival.about, rival.lines.iloc[:1])
    tables = Tables([ours, rival])
    first, second = Runs(tables.runs, tables.lines).both("adult", "ce1", "certifai-genetic", "undivided")
    assert (first.item(), second.item()) == (1.0, 2.0)


def test_comparable_allows_a_factor() -> None:
    rival = [cell("certifai-genetic", seed) for seed in SEEDS]
    assert found(*rival, *(cell("ce1", seed, undivided=1.3) for seed in SEEDS))["near-small"].verdict == AGREES
    assert found(*rival, *(cell("ce1", seed, undivided=1.8) for seed in SEEDS))["near-small"].verdict == DIFFERS


def test_a_statement_says_on_which_datasets_it_agrees() -> None:
    cells = [
        cell("ce1", seed, data=data, valid=valid)
        for seed in SEEDS
        for data, valid in (("adult", 1.0), ("german_credit", 0.0))
    ]
    one = found(*cells)["valid-ce1"]
    assert one.verdict == DIFFERS
    assert one.summary == "differs; agrees on adult"


def test_a_reading_nobody_tested_says_so() -> None:
    assert not set(MEASURED) & set(POSSIBLE)
    assert all(reading(name).startswith("*Possibly:*") for name in POSSIBLE)
    assert all(not reading(name).startswith("*Possibly:*") for name in MEASURED)
    assert reading("no such statement") == ""
