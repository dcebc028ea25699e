"""Values to try for everyone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce.config import SearchConfig
from fasterce.constraints.compile.domain import MissingValues
from fasterce.data.schema import MISSING
from fasterce.search import levels
from fasterce.search.sweep import single_edits

CONFIG = SearchConfig()
SETS = (levels.coarse_levels, levels.dense_levels, levels.fine_levels)


@pytest.fixture(scope="module")
def codec(toys: Any) -> Any:
    return toys.codec(toys.frame())[0]


@pytest.mark.parametrize(
    ("made", "most"), list(zip(SETS, (CONFIG.coarse_levels, CONFIG.dense_levels, 2 * CONFIG.fine_levels), strict=True))
)
def test_levels_reach_the_ends_and_every_category(codec: Any, made: Any, most: int) -> None:
    feature, value = made(codec)
    for j in (0, 2, 3):
        mine = value[feature == j]
        assert 5 < len(mine) <= most
        assert (mine.min(), mine.max()) == (0.0, 20.0 if j == 3 else 10.0)
        assert (np.diff(mine) > 0).all()
    np.testing.assert_array_equal(value[feature == 1], [0, 1, 2, 3])


def test_dense_are_more_than_coarse_and_fine_more_than_dense(codec: Any) -> None:
    coarse, dense, fine = (len(made(codec)[0]) for made in SETS)
    assert coarse < dense < fine


def test_a_long_tail_is_covered_too(toys: Any) -> None:
    skewed, _ = toys.codec(pd.DataFrame({"x": [0.0] * 500 + list(range(1, 11))}))
    _, value = levels.coarse_levels(skewed)
    assert len(value) >= 6, "quantiles over people alone would give one value"


def test_many_columns_get_fewer_levels_each_but_never_too_few(toys: Any) -> None:
    rng = np.random.default_rng(0)
    wide, _ = toys.codec(pd.DataFrame(rng.normal(size=(60, 150)), columns=[f"x{j}" for j in range(150)]))
    for made in SETS:
        feature, _ = made(wide)
        assert (np.bincount(feature, minlength=150) >= CONFIG.min_levels).all()
    assert len(levels.dense_levels(wide)[0]) <= 2 * CONFIG.total_dense_levels


def test_fine_levels_hold_categories_too_rare_for_a_column_of_their_own(toys: Any) -> None:
    names = [f"s{k:02d}" for k in range(80)]
    codec, _ = toys.codec(pd.DataFrame({"shop": names + names[:70] * 9, "x": np.arange(710.0)}))
    offered = {made: set(made(codec)[1][made(codec)[0] == 0]) for made in SETS}
    assert len(offered[levels.fine_levels]) == 80
    assert offered[levels.coarse_levels] == offered[levels.dense_levels] < offered[levels.fine_levels]


def test_levels_are_worked_out_once(toys: Any) -> None:
    context, _ = toys.scene(lambda codes: codes[:, 0] - 5.0, [[3.0, 1.0, 5.0, 7.0]])
    known = context.state
    for name in ("coarse_levels", "dense_levels", "fine_levels"):
        assert getattr(known, name) is getattr(known, name)
    np.testing.assert_array_equal(known.dense_levels[1], levels.dense_levels(known.codec)[1])


def test_missing_is_a_level_where_it_may_appear_and_only_there(toys: Any) -> None:
    frame = toys.frame()
    frame.loc[5:20, ["a", "job"]] = None
    for named in ([], ["b"], ["a", "job"]):
        codec, _ = toys.codec(frame, may_go_missing=named)
        for made in SETS:
            feature, value = made(codec)
            assert (MISSING in value[feature == 0]) == ("a" in named)
            assert (MISSING in value[feature == 2]) == ("b" in named)
            assert 4.0 in value[feature == 1], "someone has no job, and the rules say who may"


def test_only_legal_gaps_are_tried(toys: Any) -> None:
    frame = toys.frame()
    frame.loc[5:20, ["a", "job"]] = None
    codec, _ = toys.codec(frame, may_go_missing=["job"])
    row = np.array([[MISSING, 4.0, 1.0, 2.0], [1.0, 1.0, 1.0, 2.0]])
    domain = toys.domain(codec, row)
    code = np.array([MISSING, 4.0, np.nan, np.nan])
    domain = replace(
        domain, missing=MissingValues(code, np.array([False, True, False, False])), allowed={1: np.arange(5) < 4}
    )
    edited = single_edits(domain, levels.dense_levels(codec))
    changed = edited != domain.base[:, None, :]
    open_ = [{(int(j), float(edited[i, k, j])) for k, j in zip(*np.nonzero(changed[i]), strict=True)} for i in (0, 1)]
    assert (1, 4.0) not in open_[0], "it is missing already"
    assert (1, 4.0) in open_[1]
    assert {v for f, v in open_[0] if f == 0} >= {0.0, 10.0}, "what is missing may be filled"
    assert not any(v == MISSING for some in open_ for _, v in some)
    assert {v for f, v in open_[0] if f == 1} == {0.0, 1.0, 2.0, 3.0}
