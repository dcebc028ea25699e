"""The candidates a search holds on to."""

from typing import Any

import numpy as np

from fasterce.search.distance import Distance
from fasterce.search.pool import Pool

ROW = [1.0, 1.0, 1.0, 2.0]


def pool_of(cost: list[list[float]], codes: Any = None) -> Pool:
    price = np.array(cost)
    codes = np.zeros((*price.shape, 2)) if codes is None else np.array(codes)
    return Pool(codes, np.isfinite(price), price, -price)


def test_start_prices_what_is_valid(toys: Any) -> None:
    codec, _ = toys.codec(toys.frame())
    domain = toys.domain(codec, ROW)
    codes = np.array([[[6.0, 2.0, 1.0, 2.0], [1.0, 1.0, 2.0, 2.0]]])
    pool = Pool.start(codes, np.array([[True, False]]), domain, Distance.gower(codec.profile.span, codec.numeric))
    np.testing.assert_allclose(pool.cost, [[1.5, np.inf]])


def test_best_sorts_by_price_and_keeps_parts_together() -> None:
    codes = np.arange(8.0).reshape(1, 4, 2)
    pool = pool_of([[3.0, np.inf, 1.0, 3.0]], codes).best(3)
    np.testing.assert_array_equal(pool.cost, [[1.0, 3.0, 3.0]])
    np.testing.assert_array_equal(pool.codes[0], codes[0, [2, 0, 3]])
    np.testing.assert_array_equal(pool.lead, [[-1.0, -3.0, -3.0]])
    assert pool.best(10).codes.shape == (1, 3, 2)


def test_distinct_keeps_the_cheapest_of_every_set_of_features() -> None:
    codes = [[[5.0, 0.0], [3.0, 0.0], [0.0, 2.0], [1.0, 1.0], [2.0, 0.0]]]
    pool = pool_of([[5.0, 3.0, 2.0, 4.0, np.inf]], codes).distinct(np.zeros((1, 2)))
    left = {tuple(code) for code, valid in zip(pool.codes[0], pool.valid[0], strict=True) if valid}
    assert left == {(3.0, 0.0), (0.0, 2.0), (1.0, 1.0)}
    assert np.isinf(pool.cost[~pool.valid]).all()
    np.testing.assert_array_equal(pool.cost[pool.valid], [2.0, 3.0, 4.0])


def test_pools_add_up() -> None:
    both = pool_of([[1.0]], [[[1.0, 1.0]]]) + pool_of([[0.5, 2.0]], [[[2.0, 2.0], [3.0, 3.0]]])
    np.testing.assert_array_equal(both.cost, [[1.0, 0.5, 2.0]])
    np.testing.assert_array_equal(both.best(1).codes, [[[2.0, 2.0]]])
    np.testing.assert_array_equal(both.lead, [[-1.0, -0.5, -2.0]])


def test_a_pool_of_some_rows_among_all() -> None:
    base = np.zeros((3, 2))
    spread = Pool.among(pool_of([[1.0, np.inf]], [[[1.0, 2.0], [3.0, 4.0]]]), np.array([1]), base)
    assert spread.valid.tolist() == [[False, False], [True, False], [False, False]]
    np.testing.assert_array_equal(spread.codes[1, 0], [1.0, 2.0])
    np.testing.assert_array_equal(spread.codes[[0, 2]], np.zeros((2, 2, 2)))
    assert spread.lead[1, 0] == -1.0
    assert spread.cost[1].tolist() == [1.0, np.inf]
    assert Pool.nothing(base).codes.shape == (3, 0, 2)
