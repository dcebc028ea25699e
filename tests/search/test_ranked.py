"""Asking only about what looks best: with a copy that knows, with one that errs, and with one that lies."""

from typing import Any

import numpy as np
import pytest

from fasterce.search import methods, ranked, sweep, thorough
from fasterce.search.context import SearchContext
from fasterce.search.judge import Verdict
from fasterce.search.pool import Pool
from fasterce.search.rounds import Search, run_rounds
from fasterce.surrogate.runtime import Surrogate

ROWS = [[3.0, 1.0, 5.0, 7.0], [9.0, 2.0, 9.0, 3.0], [1.0, 0.0, 2.0, 19.0]]


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] - 12.0


def knowing(toys: Any, factor: float = 1.0, off: float = 0.0) -> Any:
    """A copy of `lead`, or one off by a factor and a constant."""

    def made(codec: Any) -> Surrogate:
        parts = {j: lambda value: factor * value for j in (0, 2)}
        return toys.copy_of(codec, parts, factor * -12.0 + off, error=max(0.05, abs(off)))

    return made


def asked_of(model: Any) -> int:
    return sum(len(question) for question in model.model_rows)


def talk(context: SearchContext, search: Any) -> Any:
    """What a generator of questions returns in the end."""
    try:
        proposal = next(search)
        while True:
            proposal = search.send(context.judge.judge(*proposal))
    except StopIteration as done:
        return done.value


def run(search: Search, context: SearchContext) -> Pool:
    pools = run_rounds(context.judge, [search])
    assert pools is not None
    return pools[0]


def flips(context: SearchContext, pool: Pool) -> bool:
    rows, _ = np.nonzero(pool.valid)
    return bool(((lead(pool.codes[pool.valid]) > 0) == context.judge.target[rows]).all())


def test_the_first_round_is_one_call_of_a_few_rows_and_flips(toys: Any) -> None:
    context, model = toys.scene(lead, ROWS, copy=knowing(toys))
    known = talk(context, ranked.first_round(context))
    assert len(model.model_rows) == 1
    assert asked_of(model) <= len(ROWS) * (len(ranked.FIRST) + ranked.SUREST)
    assert known.pool.valid.any(axis=1).all()
    assert flips(context, known.pool)
    some = known.take(np.array([2, 0]))
    np.testing.assert_array_equal(some.pool.codes, known.pool.codes[[2, 0]])
    np.testing.assert_array_equal(some.listed.margin(), known.listed.margin()[[2, 0]])


@pytest.mark.parametrize("graded", [True, False])
def test_nearer_is_never_more_expensive(toys: Any, graded: bool) -> None:
    context, _ = toys.scene(lead, ROWS, graded=graded, copy=knowing(toys, off=0.3))
    known = talk(context, ranked.first_round(context))
    pool = run(ranked.nearer(context, known), context)
    assert flips(context, pool)
    assert (pool.cost.min(axis=1) <= known.pool.cost.min(axis=1)).all()


@pytest.mark.parametrize(("factor", "off"), [(1.0, 0.0), (0.5, 0.0), (1.0, 0.4), (1.0, -0.4)])
def test_a_good_surrogate_and_a_fair_one_lead_to_the_boundary_with_few_evaluations(
    toys: Any, factor: float, off: float
) -> None:
    context, model = toys.scene(lead, ROWS, copy=knowing(toys, factor, off))
    pool = run(methods.closest(context), context)
    least = np.abs(lead(np.array(ROWS))) / 10
    assert (pool.cost.min(axis=1) >= least - 1e-9).all()
    assert (pool.cost.min(axis=1) <= least + (0.03 if factor == 1.0 else 0.06)).all()
    assert asked_of(model) <= (45 if factor == 1.0 else 80) * len(ROWS)


@pytest.mark.parametrize("graded", [True, False])
@pytest.mark.parametrize("variant", [methods.closest, methods.sparse])
def test_a_surrogate_that_lies_costs_evaluations_but_no_counterfactuals(toys: Any, variant: Any, graded: bool) -> None:
    """It believes the opposite of everything: whatever it proposes fails, and the thorough search takes over."""
    context, _ = toys.scene(lead, ROWS, graded=graded, copy=knowing(toys, factor=-1.0))
    pool = run(variant(context), context)
    assert pool.valid.any(axis=1).all()
    assert flips(context, pool)
    assert (pool.cost.min(axis=1) <= np.abs(lead(np.array(ROWS))) / 10 + 0.1).all()


def test_several_counterfactuals_change_different_features(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS[:1], copy=knowing(toys))
    pool = run(methods.closest(context, 2), context)
    sets = [tuple(np.flatnonzero(code != ROWS[0])) for code in pool.codes[0][pool.valid[0]]]
    assert len(sets) == len(set(sets)) == 2
    assert flips(context, pool)


def test_one_feature_where_one_is_enough_though_two_are_cheaper(toys: Any) -> None:
    """Cheapest is half of the way by a and half by k, where k stops; sparse must not."""

    def bent(codes: np.ndarray) -> np.ndarray:
        return codes[:, 0] + 4 * np.minimum(codes[:, 3], 8.0) - 37.0

    def copy(codec: Any) -> Surrogate:
        return toys.copy_of(codec, {0: lambda value: value, 3: lambda value: 4 * np.minimum(value, 8.0)}, -37.0)

    context, _ = toys.scene(bent, ROWS[0], copy=copy)
    close, few = run(methods.closest(context), context).best(1), run(methods.sparse(context), context).best(1)
    assert np.flatnonzero(close.codes[0, 0] != ROWS[0]).tolist() == [0, 3]
    assert np.flatnonzero(few.codes[0, 0] != ROWS[0]).tolist() == [0]
    assert few.cost[0, 0] > close.cost[0, 0]


@pytest.mark.parametrize("size", [2, 3])
def test_sets_of_so_many_changes(toys: Any, size: int) -> None:
    def three(codes: np.ndarray) -> np.ndarray:
        return codes[:, 0] + codes[:, 2] + codes[:, 3] / 2 - 22.0

    def copy(codec: Any) -> Surrogate:
        return toys.copy_of(codec, {0: lambda value: value, 2: lambda value: value, 3: lambda value: value / 2}, -22.0)

    context, _ = toys.scene(three, ROWS[:1], copy=copy)
    pool = run(ranked.sets(context, size), context)
    assert pool.valid.any()
    assert (three(pool.codes[pool.valid]) > 0).all()
    assert ((pool.codes != context.domain.base[:, None]).sum(axis=2)[pool.valid] == size).all()


def test_finer_finds_a_window_between_the_levels_by_what_the_surrogate_expects(toys: Any) -> None:
    def window(codes: np.ndarray) -> np.ndarray:
        return 0.2 - np.abs(codes[:, 0] - 4.7)

    def copy(codec: Any) -> Surrogate:
        return toys.copy_of(codec, {0: lambda value: -np.abs(value - 4.7)}, 0.2)

    context, model = toys.scene(window, ROWS[0], copy=copy)
    swept = sweep.coarse(context)
    verdict, found = talk(context, thorough.sweep_all(context, swept))
    assert not found.valid.any()
    model.model_rows.clear()
    pool = run(ranked.finer(context, swept, verdict), context)
    assert pool.valid.any()
    assert abs(pool.best(1).codes[0, 0, 0] - 4.7) < 0.2
    assert asked_of(model) <= ranked.FINER


def test_finer_asks_about_every_rare_category(toys: Any) -> None:
    import pandas as pd

    names = [f"s{k:02d}" for k in range(80)]
    codec, codes = toys.codec(pd.DataFrame({"shop": names + names[:70] * 9, "x": np.arange(710.0)}))
    model = toys.Model(lambda points: (points[:, 0] == 79) - 0.5)
    from dataclasses import replace

    state = replace(toys.state(codec, codes, model), surrogate=toys.copy_of(codec, {}, -0.5))
    context = toys.context(state, toys.domain(codec, codes[:1]), model)
    swept = sweep.coarse(context)
    verdict, found = talk(context, thorough.sweep_all(context, swept))
    assert not found.valid.any()
    pool = run(ranked.finer(context, swept, verdict), context)
    assert pool.best(1).codes[0, 0].tolist() == [79.0, codes[0, 1]]


def test_the_start_of_a_row_moved_into_its_range_is_what_the_surrogate_expects(toys: Any) -> None:
    rows, moved = [ROWS[0], ROWS[1]], [[6.0, 1.0, 5.0, 7.0], ROWS[1]]
    context, _ = toys.scene(lead, rows, base=moved, lower={0: 6.0}, copy=knowing(toys))
    np.testing.assert_allclose(context.start, [-4.0, -6.0])
    np.testing.assert_allclose(ranked.at_the_start(context), [-1.0, -6.0], atol=0.02)
    np.testing.assert_allclose(context.start, [-4.0, -6.0], err_msg="the context keeps its own")


def test_shrinking_keeps_what_flips_and_never_grows(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS[:1], copy=knowing(toys))
    codes = np.array([[[10.0, 1.0, 5.0, 7.0], [3.0, 1.0, 10.0, 7.0], [8.0, 1.0, 9.0, 7.0]]])
    start = Pool.start(codes, np.ones((1, 3), dtype=bool), context.domain, context.distance)
    pool = run(ranked.shrunk(context, start), context)
    assert flips(context, pool)
    assert pool.cost.min() <= 0.4 + 0.02
    for code, cost in zip(pool.codes[pool.valid], pool.cost[pool.valid], strict=True):
        same = ((codes[0] != ROWS[0]) == (code != ROWS[0])).all(axis=1)
        assert cost <= start.cost[0, same].max()


def test_a_sweep_leaves_out_what_is_hopeless_but_for_the_best(toys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked, "SWEPT", 3)
    context, _ = toys.scene(lead, [ROWS[0], [11.9, 1.0, 0.0, 7.0], [0.1, 1.0, 0.1, 7.0]], copy=knowing(toys))
    every = sweep.coarse(context)
    kept = ranked.hopeful(context, every)
    reached = np.abs(np.stack([lead(context.domain.base)] * every.value.shape[1], axis=1))
    gain = np.where(np.isin(every.feature, [0, 2]), every.value - context.domain.base[:, every.feature], 0.0)
    flipping = (gain - reached > 0) & every.open
    assert (kept.open <= every.open).all()
    assert kept.open[flipping].all(), "nothing that flips is left out"
    assert kept.open.sum() < every.open.sum() / 2
    assert kept.open[2].sum() == 3, "for the last row nothing flips alone"


def test_without_a_surrogate_all_is_swept(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS)
    every = sweep.coarse(context)
    assert ranked.hopeful(context, every) is every


def test_no_rows_ask_nothing(toys: Any) -> None:
    context, model = toys.scene(lead, np.zeros((0, 4)), copy=knowing(toys))
    for variant in (methods.closest, methods.sparse):
        assert run(variant(context), context).codes.shape[0] == 0
    assert model.model_rows == []


def test_verdicts_that_were_not_allowed_close_nothing_found(toys: Any) -> None:
    """Where a budget forbids the question nothing flips, and nothing breaks."""
    context, _ = toys.scene(lead, ROWS, copy=knowing(toys))
    search = ranked.first_round(context)
    proposal = next(search)
    silent = [Verdict(np.zeros(group.open.shape, dtype=bool), np.full(group.open.shape, -np.inf)) for group in proposal]
    with pytest.raises(StopIteration) as done:
        search.send(silent)
    assert not done.value.value.pool.valid.any()
