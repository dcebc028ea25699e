"""Several answers: different in what they change, without changes they could do without, ranked."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce import FasterCE
from fasterce.search.diversity import chosen
from fasterce.search.pool import Pool

SAME = (lambda matrix: matrix, lambda latent: latent)
ROW = np.zeros((1, 4))


def pool(*sets: tuple[tuple[int, ...], float]) -> Pool:
    """One row, candidates that change the features of each set, at a price; a price of inf is no answer."""
    codes = np.zeros((1, len(sets), 4))
    for k, (features, _) in enumerate(sets):
        codes[0, k, list(features)] = 1.0 + k
    cost = np.array([[price for _, price in sets]])
    return Pool(codes, np.isfinite(cost), cost, np.zeros_like(cost))


def sets_of(found: Pool) -> list[tuple[int, ...]]:
    return [tuple(np.flatnonzero(codes)) for codes, valid in zip(found.codes[0], found.valid[0], strict=True) if valid]


def test_of_the_same_features_only_the_cheapest_is_chosen() -> None:
    assert sets_of(chosen(pool(((0,), 0.5), ((0,), 0.2), ((1,), 0.9)), ROW, 3, 0.5)) == [(0,), (1,)]


def test_a_set_that_holds_another_comes_last() -> None:
    assert sets_of(chosen(pool(((0,), 0.1), ((0, 1), 0.2), ((2, 3), 3.0)), ROW, 3, 0.0)) == [(0,), (2, 3), (0, 1)]


def test_the_dial_weighs_what_options_share() -> None:
    some = pool(((0, 1), 1.0), ((1, 2), 1.1), ((3,), 1.6))
    assert sets_of(chosen(some, ROW, 2, 0.0)) == [(0, 1), (1, 2)]
    assert sets_of(chosen(some, ROW, 2, 1.0)) == [(0, 1), (3,)]


def test_fewer_features_first_where_the_fewest_are_wanted() -> None:
    some = pool(((0, 1), 0.1), ((2,), 0.9), ((3,), 0.5))
    assert sets_of(chosen(some, ROW, 3, 0.5, fewest=True)) == [(3,), (2,), (0, 1)]


def test_nothing_is_made_of_nothing() -> None:
    assert sets_of(chosen(pool(((0,), np.inf)), ROW, 3, 0.5)) == []
    assert chosen(Pool.nothing(ROW), ROW, 3, 0.5).codes.shape[1] == 0


class Score:
    """Every feature counts, so there are many ways."""

    classes_ = np.array([0, 1])
    weights = np.array([1.0, 0.8, 0.9, 0.7, 1.1])

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        lead = frame[list("abcde")].to_numpy() @ self.weights + 1.5 * (frame["kind"] == "x").to_numpy() - 2.0
        return np.stack([1 / (1 + np.exp(lead)), 1 / (1 + np.exp(-lead))], axis=1)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.predict_proba(frame).argmax(axis=1)


@pytest.fixture(scope="module")
def world() -> tuple[FasterCE, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 5)).round(2), columns=list("abcde")).assign(kind=rng.choice(["x", "y"], 600))
    explainer = FasterCE(Score(), autoencoder=SAME, progress=False, compile="never").fit(X)
    return explainer, X[Score().predict(X) == 0].head(40)


@pytest.mark.parametrize("method", ["closest", "sparse"])
@pytest.mark.parametrize("n", [2, 5])
def test_options_are_different_needed_and_true(world: tuple[FasterCE, pd.DataFrame], method: Any, n: int) -> None:
    explainer, rows = world
    result = explainer.explain(rows, method, n=n)
    lines = result.to_frame()
    count = lines.groupby("query").size().reindex(rows.index, fill_value=0)
    assert (count == n).mean() > 0.9
    said = result.reason.to_numpy() != ""
    assert said[count.to_numpy() < n].all(), "fewer is said"
    assert (Score().predict(lines) == 1).all()
    for _, options in lines.groupby("query"):
        assert len({tuple(names) for names in options["changed"]}) == len(options)
    if method == "closest":
        undone = [
            option[list(rows.columns)].where(rows.columns != name, rows.loc[option["query"]])
            for _, option in lines.iterrows()
            for name in option["changed"]
        ]
        assert len(undone) >= len(lines)
        assert (Score().predict(pd.DataFrame(undone).astype(rows.dtypes.to_dict())) == 0).all(), "every change is needed"


def test_the_same_counterfactual_is_not_shown_twice(world: tuple[FasterCE, pd.DataFrame]) -> None:
    explainer, rows = world
    lines = explainer.explain(rows, "all", n=3).to_frame()
    assert not lines.duplicated(["query", *rows.columns]).any()
