"""Candidates from known examples."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fasterce import FasterCE
from fasterce.config import Config
from fasterce.search import propose

ROW = [3.0, 1.0, 5.0, 7.0]


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] - 12.0


def test_nearest_examples_are_of_the_wanted_class_and_nearest(toys: Any) -> None:
    context, model = toys.scene(lead, [ROW, [9.0, 2.0, 9.0, 3.0]])
    found = propose.nearest_examples(context, 5)
    known = context.state
    for i, target in ((0, 1), (1, 0)):
        assert (model.label(found[i]) == target).all()
        gaps = context.distance.total(known.examples[known.example_classes == target], context.domain.base[i])
        mine = context.distance.total(found[i], context.domain.base[i])
        assert (np.diff(mine) >= 0).all()
        np.testing.assert_allclose(mine[0], gaps.min())
        assert mine[-1] <= np.quantile(gaps, 0.05)


def test_a_class_without_examples_leaves_the_row(toys: Any) -> None:
    context, _ = toys.scene(lead, ROW)
    bare = replace(context.state, example_classes=np.zeros(len(context.state.examples), dtype=np.intp))
    lonely = replace(context, state=bare)
    np.testing.assert_array_equal(propose.nearest_examples(lonely, 3), [[ROW] * 3])
    np.testing.assert_array_equal(propose.more_examples(lonely)[0, 0], ROW)
    assert not propose.neighbours(lonely, propose.nearest_examples(lonely)).open.any()


def test_fewer_examples_than_requested(toys: Any) -> None:
    context, _ = toys.scene(lead, ROW)
    few = np.flatnonzero(context.state.example_classes == 1)[:2]
    small = replace(context.state, examples=context.state.examples[few], example_classes=np.ones(2, dtype=np.intp))
    found = propose.nearest_examples(replace(context, state=small), 4)
    assert {tuple(code) for code in found[0, :2]} == {tuple(code) for code in context.state.examples[few]}
    np.testing.assert_array_equal(found[0, 2:], [ROW] * 2)


def test_more_examples_include_the_deepest(toys: Any) -> None:
    context, model = toys.scene(lead, ROW)
    found = propose.more_examples(context)
    assert found.shape == (1, 2 * context.config.more_examples, 4)
    assert (model.label(found[0]) == 1).all()
    wanted = context.state.examples[context.state.example_classes == 1]
    assert lead(found[0, context.config.more_examples :]).mean() > np.quantile(lead(wanted), 0.9)


def test_neighbours_flip_with_nothing_frozen_and_obey_what_is(toys: Any) -> None:
    context, _ = toys.scene(lead, ROW)
    known = propose.neighbours(context, propose.nearest_examples(context))
    assert known.open.all()
    assert (lead(known.codes[0]) > 0).all()
    bound, _ = toys.scene(lead, ROW, frozen=[1], upper={0: 6.0})
    known = propose.neighbours(bound, propose.nearest_examples(bound))
    assert bound.domain.contains(known.codes).all()
    assert (known.codes[0, :, 1] == 1.0).all()


def test_trifles_are_taken_back(toys: Any) -> None:
    context, _ = toys.scene(lead, ROW)
    codes = np.array([[[3.1, 1.0, 5.0, 7.0], [3.5, 1.0, 5.19, 7.0], [3.0, 2.0, 5.0, 7.0]]])
    found = propose.without_trifles(context, propose.different(context, codes))
    np.testing.assert_array_equal(found.codes, [[ROW, [3.5, 1.0, 5.0, 7.0], [3.0, 2.0, 5.0, 7.0]]])
    np.testing.assert_array_equal(found.open, [[False, True, True]])


def test_known_rows_make_counterfactuals_of_a_network_nearer_and_none_much_farther() -> None:
    """A network whose margin falls before it rises: the nearest rows of the target lie beyond the dip."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.uniform(-3, 3, size=(900, 4)).round(1), columns=list("abcd"))
    y = (np.sin(2.0 * X["a"]) + np.sin(2.0 * X["b"]) + 0.3 * X["c"] - 0.3 * X["d"] > 0.9).astype(int)
    model = make_pipeline(StandardScaler(), MLPClassifier((24, 12), max_iter=400, random_state=0)).fit(X, y)
    rows = X[model.predict(X) == 0].head(80)
    distance = {}
    for starts in (0, 4):
        fast = Config.fast()
        config = replace(fast, search=replace(fast.search, known_starts=starts, expansions=4))
        result = FasterCE(model, random_state=0, progress=False, config=config).fit(X).explain(rows)
        assert (result.status == "found").all()
        distance[starts] = result.to_frame()["distance"].to_numpy()
        from_known = (result.to_frame()["origin"] == "examples").sum()
    assert from_known > 0
    assert (distance[4] < distance[0] - 1e-9).any()
    assert (distance[4] <= 1.01 * distance[0]).all()
