"""The method `realistic`: near to the query, near to known rows, and to the matter."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from fasterce import FasterCE, Schema
from fasterce.config import Config
from fasterce.search import methods
from fasterce.search.context import SearchContext
from fasterce.search.propose import nearest_examples
from fasterce.search.rounds import run_rounds

ROWS = [[3.0, 1.0, 5.0, 7.0], [9.0, 2.0, 9.0, 3.0], [1.0, 0.0, 2.0, 19.0]]


def best(variant: Any, context: SearchContext) -> np.ndarray:
    pools = run_rounds(context.evaluator, [variant(context, 1)])
    assert pools is not None
    return pools[0].best(1).codes[:, 0]


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] + 0.1 * codes[:, 3] - 16.0


def tied(rows: int = 500, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns a and b go together, c does not; the label depends on a + c. `other` is not read by any model."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows)
    frame = pd.DataFrame(
        {
            "a": a.round(2),
            "b": (2 * a + 0.2 * rng.normal(size=rows)).round(2),
            "c": rng.normal(size=rows).round(2),
            "other": rng.normal(size=rows).round(2),
        }
    )
    return frame, (frame["a"] + frame["c"] > 0.5).to_numpy().astype(int)


@pytest.fixture(scope="module", params=["linear", "forest", "function"])
def fitted(request: Any) -> tuple[FasterCE, pd.DataFrame]:
    """With an exact scorer for a linear model and for trees, and with the surrogate only."""
    frame, label = tied()
    model: Any = LogisticRegression() if request.param == "linear" else RandomForestClassifier(30, random_state=0)
    model.fit(frame.assign(other=0.0), label)
    predict = model if request.param != "function" else model.predict
    explainer = FasterCE(predict, Schema.infer(frame), config=Config.fast(), progress=False).fit(frame)
    return explainer, frame[model.predict(frame) == 0].head(25).reset_index(drop=True)


def test_a_column_the_model_does_not_read_stays(fitted: tuple[FasterCE, pd.DataFrame]) -> None:
    explainer, rows = fitted
    found = explainer.explain(rows, "realistic", target=1).counterfactuals
    np.testing.assert_array_equal(found["other"], rows["other"])


def test_columns_that_go_together_change_together(fitted: tuple[FasterCE, pd.DataFrame]) -> None:
    explainer, rows = fitted
    close, real = (explainer.explain(rows, method, target=1).counterfactuals for method in ("closest", "realistic"))
    assert (real["b"] - 2 * real["a"]).abs().mean() < 0.6
    assert (real["b"] - 2 * real["a"]).abs().mean() < (close["b"] - 2 * close["a"]).abs().mean()


def test_closest_is_never_dearer(fitted: tuple[FasterCE, pd.DataFrame]) -> None:
    explainer, rows = fitted
    if explainer.state_.compiled is None:
        pytest.skip("without an exact scorer each method has evaluated other candidates")
    for distance in ("percentile", "gower", "mad", "euclidean"):
        near, real = (explainer.explain(rows, method, target=1, distance=distance) for method in ("closest", "realistic"))
        assert (near.to_frame()["distance"].to_numpy() <= real.to_frame()["distance"].to_numpy() + 1e-9).all()


def test_no_copy_of_a_training_row_in_the_columns_that_changed(fitted: tuple[FasterCE, pd.DataFrame]) -> None:
    explainer, rows = fitted
    training, _ = tied()
    found = explainer.explain(rows, "realistic", target=1).counterfactuals
    for own, row in zip(rows.to_numpy(), found.to_numpy(), strict=True):
        changed = row != own
        shared = (training.to_numpy()[:, changed] == row[changed]).all(axis=1).sum()
        assert shared == 0 or changed.sum() == 1


def test_the_first_of_several_is_the_only_one(fitted: tuple[FasterCE, pd.DataFrame]) -> None:
    explainer, rows = fitted
    one, three = (explainer.explain(rows, "realistic", target=1, n=n).to_frame() for n in (1, 3))
    pd.testing.assert_frame_equal(one, three[three["rank"] == 0].reset_index(drop=True))


def test_realistic_stays_near_known_examples(toys: Any) -> None:
    """a and b always go together in the data: the closest counterfactual moves one of them, the realistic one both."""
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 10, 400)
    frame = pd.DataFrame({"a": a.round(2), "b": (a + rng.normal(size=400) * 0.1).round(2)})
    codec, codes = toys.codec(frame)
    direction = np.linalg.svd(codec.encode(codes), full_matrices=False)[2][:1]
    own = toys.identity.__class__(lambda matrix: matrix @ direction.T, lambda latent: latent @ direction)
    model = toys.Model(lambda points: points[:, 0] + points[:, 1] - 12.0)
    context = toys.context(toys.state(codec, codes, model, own), toys.domain(codec, [[4.0, 4.0]]), model)
    close, real = best(methods.closest, context)[0], best(methods.realistic, context)[0]
    assert abs(real[0] - real[1]) < 1.0
    assert abs(close[0] - close[1]) >= abs(real[0] - real[1])


def test_the_dial_goes_from_the_closest_to_a_known_row(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS)
    close, middle, real = (best(methods.realistic, replace(context, realism=dial)) for dial in (0.0, 0.5, 1.0))
    np.testing.assert_array_equal(close, best(methods.closest, context))
    examples = nearest_examples(context, 12)
    assert (real[:, None, :] == examples).all(axis=2).any(axis=1).all()
    price = [context.state.distance.total(one, context.domain.row).mean() for one in (close, middle, real)]
    assert price[0] <= price[1] <= price[2]


@pytest.mark.parametrize("frozen", [[], [1, 3]])
def test_more_realism_is_nearer_to_known_rows(toys: Any, frozen: list[int]) -> None:
    context, _ = toys.scene(lead, ROWS, frozen=frozen, copy=lambda codec: toys.copy_of(codec, PARTS, -16.0))
    examples = nearest_examples(context, 24)
    away = []
    for dial in (0.2, 0.5, 0.9):
        found = best(methods.realistic, replace(context, realism=dial))
        assert context.domain.contains(found[:, None])[:, 0].all()
        away.append(np.sort(context.state.distance.total(examples, found[:, None]), axis=1)[:, :5].mean())
    assert away[0] >= away[1] >= away[2]


PARTS = {0: lambda knots: knots, 2: lambda knots: knots, 3: lambda knots: 0.1 * knots}
