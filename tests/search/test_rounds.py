"""Searches that take turns."""

from dataclasses import replace
from typing import Any

import numpy as np

from fasterce.search import methods
from fasterce.search.evaluator import Evaluator
from fasterce.search.pool import Pool
from fasterce.search.rounds import Search, for_rows, run_rounds

ROWS = [[3.0, 1.0, 5.0, 7.0], [2.0, 0.0, 4.0, 9.0], [8.0, 2.0, 6.0, 3.0]]


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] - 15.5


def pools_of(evaluator: Evaluator, searches: list[Search]) -> list[Pool]:
    pools = run_rounds(evaluator, searches)
    assert pools is not None
    return pools


def test_three_searches_ask_no_more_often_than_the_longest_alone(toys: Any) -> None:
    context, model = toys.scene(lead, ROWS, trained=True)
    calls: list[int] = []
    alone: list[Pool] = []
    for variant in methods.VARIANTS.values():
        model.model_rows.clear()
        alone += pools_of(context.evaluator, [variant(replace(context))])
        calls.append(len(model.model_rows))
    model.model_rows.clear()
    context = replace(context)
    together = pools_of(context.evaluator, [variant(context) for variant in methods.VARIANTS.values()])
    assert len(model.model_rows) <= max(calls)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.codes, other.codes)
        np.testing.assert_array_equal(one.valid, other.valid)


def test_a_search_for_some_rows_leaves_the_others_empty(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS)
    (everyone,) = pools_of(context.evaluator, [methods.closest(context)])
    (some,) = pools_of(context.evaluator, [for_rows(np.array([1]), context, methods.closest)])
    assert some.valid.any(axis=1).tolist() == [False, True, False]
    np.testing.assert_array_equal(some.codes[1], everyone.codes[1])


def test_a_search_for_no_rows_asks_nothing(toys: Any) -> None:
    context, model = toys.scene(lead, ROWS)
    model.model_rows.clear()
    (pool,) = pools_of(context.evaluator, [for_rows(np.zeros(0, dtype=np.intp), context, methods.closest)])
    assert model.model_rows == []
    assert isinstance(pool, Pool)
    assert not pool.valid.any()
