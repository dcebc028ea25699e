"""The last word: the model's own label for the final rows. What it does not confirm is not returned."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fasterce.profile import Floats
from fasterce.search.goal import Indices, Mask
from fasterce.search.pool import Pool
from fasterce.search.project import Domain

TRIES = 2


def verify(
    pool: Pool,
    group: NDArray[np.intp],
    domain: Domain,
    confirm: Callable[[Indices, Floats], tuple[Mask, Floats]],
    wanted: int,
) -> tuple[Mask, Floats]:
    """Which candidates (rows, R) are legal and confirmed, the first `wanted` of every group (R,) of a row, and the number
    the model says of each.

    `confirm` is given the rows' positions and their candidates. A row whose first choice is refused by the model gets a
    second try with the candidates behind it.
    """
    legal = domain.contains(pool.codes) & pool.valid & (pool.codes != domain.row[:, None, :]).any(axis=2)
    confirmed, asked = np.zeros_like(legal), np.zeros_like(legal)
    value = np.full(legal.shape, np.nan)
    for _ in range(TRIES):
        ask = np.zeros_like(legal)
        for one in np.unique(group):
            mine = group == one
            ask |= _next(legal & ~asked & mine, wanted - (confirmed & mine).sum(axis=1))
        if not ask.any():
            break
        rows = np.nonzero(ask)[0]
        confirmed[ask], value[ask] = confirm(rows, pool.codes[ask])
        asked |= ask
    return confirmed, value


def _next(open_: Mask, count: Indices) -> Mask:
    """The first `count` open candidates of every row."""
    return np.asarray(open_ & (np.cumsum(open_, axis=1) <= count[:, None]))
