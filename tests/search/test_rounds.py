"""Searches that take turns."""

from typing import Any

import numpy as np

from fasterce.search import methods
from fasterce.search.judge import Judge
from fasterce.search.pool import Pool
from fasterce.search.rounds import Search, for_rows, run_rounds

ROWS = [[3.0, 1.0, 5.0, 7.0], [2.0, 0.0, 4.0, 9.0], [8.0, 2.0, 6.0, 3.0]]


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] - 15.5


def pools_of(judge: Judge, searches: list[Search]) -> list[Pool]:
    pools = run_rounds(judge, searches)
    assert pools is not None
    return pools


def test_three_searches_ask_no_more_often_than_the_longest_alone(toys: Any) -> None:
    context, model = toys.scene(lead, ROWS)
    calls: list[int] = []
    alone: list[Pool] = []
    for variant in methods.VARIANTS.values():
        model.model_rows.clear()
        alone += pools_of(context.judge, [variant(context)])
        calls.append(len(model.model_rows))
    model.model_rows.clear()
    together = pools_of(context.judge, [variant(context) for variant in methods.VARIANTS.values()])
    assert len(model.model_rows) == max(calls)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.codes, other.codes)
        np.testing.assert_array_equal(one.valid, other.valid)


def test_a_search_for_some_rows_leaves_the_others_empty(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS)
    (everyone,) = pools_of(context.judge, [methods.closest(context)])
    (some,) = pools_of(context.judge, [for_rows(np.array([1]), context, methods.closest)])
    assert some.valid.any(axis=1).tolist() == [False, True, False]
    np.testing.assert_array_equal(some.codes[1], everyone.codes[1])


def test_a_search_for_no_rows_asks_nothing(toys: Any) -> None:
    context, model = toys.scene(lead, ROWS)
    model.model_rows.clear()
    (pool,) = pools_of(context.judge, [for_rows(np.zeros(0, dtype=np.intp), context, methods.closest)])
    assert model.model_rows == []
    assert isinstance(pool, Pool)
    assert not pool.valid.any()
