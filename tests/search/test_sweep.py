"""All single changes of queries."""

from typing import Any

import numpy as np
import pytest

from fasterce.search import levels
from fasterce.search.sweep import single_edits

ROW = [3.0, 1.0, 5.25, 7.0]


@pytest.fixture(scope="module")
def codec(toys: Any) -> Any:
    return toys.codec(toys.frame())[0]


def test_each_differs_in_one_feature_at_most_and_is_legal(toys: Any, codec: Any) -> None:
    domain = toys.domain(
        codec, [ROW, [10.0, 3.0, 0.0, 20.0]], frozen=[2], lower={0: 2.0}, upper={0: 8.0, 3: 12.0}, allowed={1: [1, 2]}
    )
    edited = single_edits(domain, levels.coarse_levels(codec))
    changed = edited != domain.base[:, None, :]
    assert (changed.sum(axis=2) <= 1).all()
    assert not changed[:, :, 2].any()
    assert domain.contains(edited)[changed.any(axis=2)].all()
    tried = {(int(j), float(edited[0, k, j])) for k, j in zip(*np.nonzero(changed[0]), strict=True)}
    assert {(0, 2.0), (0, 8.0), (3, 0.0), (3, 12.0), (1, 2.0)} <= tried, "the ends of the query's own range are tried"
    assert (1, 0.0) not in tried


def test_unbounded_ranges_try_nothing_infinite(toys: Any, codec: Any) -> None:
    domain = toys.domain(codec, ROW, upper={0: np.inf}, lower={0: -np.inf})
    edited = single_edits(domain, levels.coarse_levels(codec))
    assert np.isfinite(edited).all()
    assert (edited[:, :, 0] != ROW[0]).any()
