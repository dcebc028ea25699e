"""Verification: the model evaluates the final candidates, and only those it confirms are returned."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fasterce.config import SearchConfig
from fasterce.constraints.compile.domain import Domain
from fasterce.search.pool import Pool
from fasterce.typing import Floats, Indices, Mask

DEFAULTS = SearchConfig()


def verify(
    pool: Pool,
    group: NDArray[np.intp],
    domain: Domain,
    confirm: Callable[[Indices, Floats], tuple[Mask, Floats]],
    wanted: int,
    attempts: int = DEFAULTS.verification_attempts,
    legal: Mask | None = None,
) -> tuple[Mask, Floats]:
    """Return which candidates (rows, R) are legal and confirmed, the first `wanted` per row and group (R,), and the number
    predicted for each.

    `confirm` takes the positions of rows and their candidates. A row whose first candidate is not confirmed gets a second
    attempt with the next ones. `legal` is which candidates are in the domain, if that is known.
    """
    legal = domain.contains(pool.codes) if legal is None else legal
    legal = legal & pool.valid & (pool.codes != domain.row[:, None, :]).any(axis=2)
    confirmed, evaluated = np.zeros_like(legal), np.zeros_like(legal)
    value = np.full(legal.shape, np.nan)
    for _ in range(attempts):
        chosen = np.zeros_like(legal)
        for one in set(group.tolist()):
            mine = group == one
            chosen |= _next(legal & ~evaluated & mine, wanted - (confirmed & mine).sum(axis=1))
        if not chosen.any():
            break
        rows = np.nonzero(chosen)[0]
        confirmed[chosen], value[chosen] = confirm(rows, pool.codes[chosen])
        evaluated |= chosen
    return confirmed, value


def _next(open_: Mask, count: Indices) -> Mask:
    """Return the first `count` open candidates of every row."""
    return np.asarray(open_ & (np.cumsum(open_, axis=1) <= count[:, None]))
