"""Ranks and tests against values worked out by hand or printed in tables."""

import numpy as np
import pandas as pd
import pytest
from benchmarks import ranking


def lines(**scores: list[float]) -> pd.DataFrame:
    """Return a line for every method and row; nan is a row without a valid counterfactual."""
    parts = [
        pd.DataFrame(
            {"method": name, "row": range(len(values)), "gower_l1": values, "valid": np.isfinite(values).astype(float)}
        )
        for name, values in scores.items()
    ]
    return pd.concat(parts).assign(data="adult", model="mlp", seed=0, robust=lambda table: table["gower_l1"])


def test_mean_ranks_by_hand() -> None:
    found = ranking.rank(lines(a=[1, 1, 1, 1, 9.0], b=[2, 2, 2, 2, 2.0], c=[3, 3, 3, 3, 3.0]), "gower_l1")
    assert found is not None
    assert found.table["rank"].to_dict() == pytest.approx({"a": (4 * 1 + 3) / 5, "b": (4 * 2 + 1) / 5, "c": (4 * 3 + 2) / 5})
    assert found.best == "a"


def test_high_is_good_where_it_is() -> None:
    found = ranking.rank(lines(a=[1.0] * 6, b=[2.0] * 6), "robust")
    assert found is not None
    assert found.best == "b"


def test_no_valid_counterfactual_is_the_last_place_shared() -> None:
    nan = float("nan")
    found = ranking.rank(lines(a=[1.0] * 5, b=[nan] * 5, c=[nan] * 5), "gower_l1")
    assert found is not None
    assert found.table["rank"].to_dict() == pytest.approx({"a": 1.0, "b": 2.5, "c": 2.5})


def test_only_rows_that_all_systems_explained_count() -> None:
    table = lines(a=[1.0] * 8, b=[2.0] * 6)
    found = ranking.rank(table, "gower_l1")
    assert found is not None
    assert found.blocks == 6
    assert ranking.rank(lines(a=[1.0] * 8), "gower_l1") is None
    assert ranking.rank(lines(a=[1.0] * 2, b=[1.0] * 2), "gower_l1") is None


def test_the_distance_of_nemenyi_is_the_printed_one() -> None:
    """q = 2.569 for four methods at 5 %: with 14 blocks 2.569 * sqrt(4 * 5 / (6 * 14))."""
    assert ranking.nemenyi(4, 14) == pytest.approx(2.569 * np.sqrt(20 / 84), abs=1e-3)


def test_holm_by_hand() -> None:
    assert ranking.holm([0.01, 0.04, 0.03])[1:] == pytest.approx([0.03, 0.06, 0.06])
    assert np.isnan(ranking.holm([0.01])[0])


def test_friedman_of_a_clear_order_by_hand() -> None:
    """Ranks 1, 2, 3 in all of six rows: chi-square 12 with two degrees of freedom, p = exp(-6)."""
    blocks = pd.DataFrame({"a": [1.0] * 6, "b": [2.0] * 6, "c": [3.0] * 6})
    assert ranking.friedman(blocks) == pytest.approx(np.exp(-6))
    assert ranking.friedman(blocks.assign(b=1.0, c=1.0)) == 1.0


def test_systems_of_the_same_quality_are_tied_and_worse_ones_are_not() -> None:
    generator = np.random.default_rng(0)
    values = generator.random(40)
    found = ranking.rank(lines(a=list(values), b=list(generator.permutation(values)), c=list(values + 2)), "gower_l1")
    assert found is not None
    assert set(found.tied) == {"a", "b"} - {found.best}
