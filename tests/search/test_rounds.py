"""Searches that take turns."""

from typing import Any

import numpy as np

from fasterce.search import variants
from fasterce.search.dialogue import converse, for_some
from fasterce.search.pool import Pool

ROWS = [[3.0, 1.0, 5.0, 7.0], [2.0, 0.0, 4.0, 9.0], [8.0, 2.0, 6.0, 3.0]]


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] - 15.5


def test_three_searches_ask_no_more_often_than_the_longest_alone(toys: Any) -> None:
    task, model = toys.scene(lead, ROWS)
    calls, alone = [], []
    for variant in variants.VARIANTS.values():
        model.questions.clear()
        alone += converse(task.judge, [variant(task)])
        calls.append(len(model.questions))
    model.questions.clear()
    together = converse(task.judge, [variant(task) for variant in variants.VARIANTS.values()])
    assert len(model.questions) == max(calls)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.codes, other.codes)
        np.testing.assert_array_equal(one.valid, other.valid)


def test_a_search_for_some_rows_leaves_the_others_empty(toys: Any) -> None:
    task, _ = toys.scene(lead, ROWS)
    (everyone,) = converse(task.judge, [variants.closest(task)])
    (some,) = converse(task.judge, [for_some(np.array([1]), task, variants.closest)])
    assert some.valid.any(axis=1).tolist() == [False, True, False]
    np.testing.assert_array_equal(some.codes[1], everyone.codes[1])


def test_a_search_for_no_rows_asks_nothing(toys: Any) -> None:
    task, model = toys.scene(lead, ROWS)
    model.questions.clear()
    (pool,) = converse(task.judge, [for_some(np.zeros(0, dtype=np.intp), task, variants.closest)])
    assert model.questions == []
    assert isinstance(pool, Pool)
    assert not pool.valid.any()
