"""The three variants on problems whose best answer is known."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce.constraints.compile import CompiledConstraints
from fasterce.fitting import pipeline
from fasterce.fitting.state import FittedState
from fasterce.models.predictions import Predictions
from fasterce.options import FitOptions
from fasterce.search import methods
from fasterce.search.context import SearchContext
from fasterce.search.evaluator import Evaluator
from fasterce.search.pool import Pool
from fasterce.search.query_targets import Named
from fasterce.search.rounds import run_rounds


def run(variant: Any, context: SearchContext, n: int = 1) -> Pool:
    pools = run_rounds(context.evaluator, [variant(context, n)])
    assert pools is not None
    return pools[0]


ROWS = [[3.0, 1.0, 5.0, 7.0], [9.0, 2.0, 9.0, 3.0], [1.0, 0.0, 2.0, 19.0]]
ALL = list(methods.VARIANTS.items())


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] - 12.0


def best(pool: Any) -> np.ndarray:
    return pool.best(1).codes[:, 0]


@pytest.mark.parametrize(("name", "variant"), ALL)
@pytest.mark.parametrize("graded", [True, False])
def test_counterfactuals_flip_and_obey(toys: Any, name: str, variant: Any, graded: bool) -> None:
    context, _ = toys.scene(lead, ROWS[:2], graded=graded, frozen=[1], upper={0: 9.5}, trained=True)
    pool = run(variant, context)
    assert pool.valid.any(axis=1).all()
    assert context.domain.contains(pool.codes)[pool.valid].all()
    rows, _ = np.nonzero(pool.valid)
    np.testing.assert_array_equal((lead(pool.codes[pool.valid]) > 0).astype(int), context.evaluator.target[rows])


def test_closest_finds_the_known_boundary(toys: Any) -> None:
    """Moving a and b costs the same a unit: the distance to the boundary is the lead's size over the range."""
    context, _ = toys.scene(lead, ROWS, trained=True)
    found = run(methods.closest, context)
    distance = context.distance.total(best(found), context.domain.row)
    least = np.abs(lead(np.array(ROWS))) / 10
    assert (distance >= least - 1e-9).all()
    assert (distance <= least + 0.03).all()


def test_closest_prefers_the_cheaper_feature(toys: Any) -> None:
    context, _ = toys.scene(lambda codes: codes[:, 0] + 4 * codes[:, 2] - 32.0, ROWS[0], trained=True)
    found = best(run(methods.closest, context))[0]
    np.testing.assert_array_equal(np.flatnonzero(found != ROWS[0]), [2])
    assert found[2] == pytest.approx(7.26, abs=0.03)


def test_sparse_finds_the_cheapest_single_change(toys: Any) -> None:
    context, _ = toys.scene(lambda codes: np.maximum(codes[:, 0] - 9.0, codes[:, 3] - 12.2), ROWS[0], trained=True)
    pool = run(methods.sparse, context)
    np.testing.assert_array_equal(best(pool), [[3.0, 1.0, 5.0, 13.0]])
    changed: set[Any] = {tuple(np.flatnonzero(code != ROWS[0])) for code in pool.best(2).codes[0]}
    assert changed == {(3,), (0,)}


@pytest.mark.parametrize("variant", [methods.sparse, methods.closest])
def test_two_features_where_one_is_not_enough(toys: Any, variant: Any) -> None:
    context, _ = toys.scene(lambda codes: np.minimum(codes[:, 0] - 6.0, codes[:, 2] - 7.0), ROWS[0], trained=True)
    found = run(variant, context)
    assert found.valid.any()
    np.testing.assert_allclose(best(found), [[6.01, 1.0, 7.01, 7.0]], atol=0.3)


def test_sparse_looks_closer_where_the_coarse_levels_miss(toys: Any) -> None:
    context, _ = toys.scene(lambda codes: 0.2 - np.abs(codes[:, 0] - 4.55), ROWS[0], trained=True)
    found = run(methods.sparse, context)
    assert found.valid.any()
    assert abs(best(found)[0, 0] - 4.55) < 0.2


def test_named_features_alone_change(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS[0], named=(2, 3), frozen=[0, 1], trained=True)
    for _, variant in ALL:
        pool = run(variant, context)
        assert pool.valid.any()
        np.testing.assert_array_equal(pool.codes[pool.valid][:, [0, 1]], [[3.0, 1.0]] * int(pool.valid.sum()))


def test_a_category_that_must_change(toys: Any) -> None:
    context, _ = toys.scene(lambda codes: (codes[:, 1] == 3) - 0.5, ROWS, trained=True)
    for _, variant in ALL:
        found = best(run(variant, context))
        assert (found[:, 1] == 3).all()
    np.testing.assert_array_equal(best(run(methods.closest, context))[:, [0, 2, 3]], np.array(ROWS)[:, [0, 2, 3]])


def test_only_permitted_categories_even_after_shrinking(toys: Any) -> None:
    """Category codes between the row's and the answer's are neither nearer nor permitted."""
    codec, codes = toys.codec(pd.DataFrame({"job": list("abcde") * 20, "x": np.arange(100.0)}))
    model = toys.Model(lambda points: np.isin(points[:, 0], [2, 4]) - 0.5)
    context = toys.context(toys.state(codec, codes, model), toys.domain(codec, [0.0, 50.0], allowed={0: [0, 4]}), model)
    for _, variant in ALL:
        pool = run(variant, context)
        assert pool.valid.any()
        assert context.domain.contains(pool.codes)[pool.valid].all()


def test_margin_goes_beyond(toys: Any) -> None:
    near, _ = toys.scene(lead, ROWS[:2], trained=True)
    far, _ = toys.scene(lead, ROWS[:2], margin=0.5, trained=True)
    for _, variant in ALL:
        assert (np.abs(lead(best(run(variant, far)))) > np.abs(lead(best(run(variant, near)))) + 0.2).all()


@pytest.mark.parametrize(("name", "variant"), ALL)
def test_a_row_alone_is_answered_as_in_company(toys: Any, name: str, variant: Any) -> None:
    codec, codes = toys.codec(toys.frame())
    model = toys.Model(lead)
    state = toys.state(codec, codes, model)
    together = run(variant, toys.context(state, toys.domain(codec, codes[:25]), model)).best(1)
    for i in (0, 7, 24):
        alone = run(variant, toys.context(state, toys.domain(codec, codes[i : i + 1]), model)).best(1)
        np.testing.assert_array_equal(alone.codes[0], together.codes[i])
        np.testing.assert_array_equal(alone.valid[0], together.valid[i])


@pytest.mark.parametrize(("name", "variant"), ALL)
def test_the_number_of_evaluations_does_not_grow_with_the_rows(toys: Any, name: str, variant: Any) -> None:
    codec, codes = toys.codec(toys.frame())
    model = toys.Model(lead)
    state = toys.state(codec, codes, model)
    calls = []
    for rows in (codes[:2], codes[:60]):
        model.model_rows.clear()
        run(variant, toys.context(state, toys.domain(codec, rows), model))
        calls.append(len(model.model_rows))
    assert max(calls) <= 9
    assert abs(calls[0] - calls[1]) <= 2


@pytest.mark.parametrize(("name", "variant"), ALL)
def test_no_rows_no_counterfactuals(toys: Any, name: str, variant: Any) -> None:
    context, _ = toys.scene(lead, np.zeros((0, 4)), trained=True)
    assert run(variant, context).codes.shape[0] == 0


@pytest.mark.parametrize(("name", "variant"), ALL)
def test_several_different_options(toys: Any, name: str, variant: Any) -> None:
    context, _ = toys.scene(lead, ROWS[0], trained=True)
    pool = run(variant, context, 3)
    sets = [tuple(np.flatnonzero(code != ROWS[0])) for code in pool.codes[0][pool.valid[0]]]
    assert len(sets) >= 2
    assert len(set(sets)) == len(sets)


@pytest.fixture(scope="module")
def learned() -> tuple[FittedState, pd.DataFrame]:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "income": rng.normal(50, 15, 300).round(1),
            "age": rng.integers(18, 80, 300),
            "owner": rng.random(300) < 0.4,
        }
    )
    settings = FitOptions(autoencoder=(lambda matrix: matrix, lambda latent: latent), progress=False)
    return pipeline.learn(approve, frame, None, settings), frame


def approve(frame: pd.DataFrame) -> np.ndarray:
    return np.where(frame["income"] + 10 * frame["owner"] > 60, "yes", "no")


@pytest.mark.parametrize(("name", "variant"), ALL)
def test_a_plain_function_and_a_frame(learned: tuple[FittedState, pd.DataFrame], name: str, variant: Any) -> None:
    made, frame = learned
    table = made.table
    rows = frame[approve(frame) == "no"].head(20)
    domain, blocked = CompiledConstraints.compile(table, made.search.codec, None, None).domain(table.read(rows).codes)
    assert not blocked

    def ask(codes: np.ndarray) -> Any:

        return Predictions((approve(table.frame(codes)) == "yes").astype(np.intp))

    context = SearchContext(
        made.search,
        domain,
        Evaluator(ask, Named(np.ones(20, dtype=np.intp)), False),
        start=np.full(20, -1.0),
        lead=np.full(20, -1.0),
    )
    pool = run(variant, context).best(1)
    assert pool.valid.all()
    assert (approve(table.frame(pool.codes[:, 0])) == "yes").all()
    if name != "realistic":
        needed = np.maximum(60 - rows["income"] - 10 * rows["owner"], 0).to_numpy()
        income = pool.codes[:, 0, 0] - rows["income"].to_numpy()
        span = float(made.search.codec.profile.span[0])
        assert (income <= needed + span / 40 + 0.2).all()
