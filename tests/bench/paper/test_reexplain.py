"""Perturbed inputs and recourse carried over, computed by hand."""

import numpy as np
import pandas as pd
import pytest
from benchmarks.paper import reexplain
from benchmarks.scoring import undivided_proximity

from fasterce import Schema, metrics
from fasterce.data.schema import Feature

TRAIN = pd.DataFrame({"x": np.arange(11.0), "y": np.arange(11), "c": pd.Series(list("abcabcabcab"), dtype="str")})
SCHEMA = Schema(
    (
        Feature("x", "numeric", lower=0.0, upper=10.0, decimals=1),
        Feature("y", "numeric", lower=0.0, upper=10.0, integer=True),
        Feature("c", "categorical", ("a", "b", "c")),
    )
)


@pytest.fixture
def scale() -> metrics.Scale:
    return metrics.Scale.of(TRAIN, SCHEMA)


@pytest.fixture
def pairs() -> reexplain.Pairs:
    before = pd.DataFrame({"x": [2.0], "y": [3], "c": pd.Series(["a"], dtype="str")})
    return reexplain.Pairs(before, before.assign(x=5.0, c="b"))


def test_only_changed_numbers_are_perturbed_within_their_range(scale: metrics.Scale, pairs: reexplain.Pairs) -> None:
    perturbed = reexplain.perturb(scale, pairs, 100.0, seed=0)
    assert perturbed["x"].between(0, 10).all()
    assert perturbed["x"].item() != 2.0
    assert (perturbed["y"].item(), perturbed["c"].item()) == (3, "a")


def test_the_same_recourse_moves_numbers_by_the_same_amount(scale: metrics.Scale, pairs: reexplain.Pairs) -> None:
    other = pairs.queries.assign(x=4.0, y=7)
    carried = reexplain.applied(scale, pairs, other)
    assert (carried["x"].item(), carried["y"].item(), carried["c"].item()) == (7.0, 7, "b")


def test_both_counterfactuals_are_compared(scale: metrics.Scale, pairs: reexplain.Pairs) -> None:
    other = reexplain.Pairs(pairs.queries, pairs.queries.assign(x=8.0))
    found = reexplain.compared(scale, pairs, other)
    assert found["sparsity_change"].item() == 1
    assert found["same_features"].item() == 0.5
    assert found["near_again"].item() == pytest.approx(6 / 3)


def test_undivided_proximity_has_no_weights_for_the_kinds_of_columns(scale: metrics.Scale, pairs: reexplain.Pairs) -> None:
    tables = pairs.queries, pairs.counterfactuals
    assert undivided_proximity(scale, *tables).item() == pytest.approx(3 / 3 + 1)
    assert metrics.proximity(scale, *tables).item() == pytest.approx(2 / 3 * 3 / 3 + 1 / 3)
