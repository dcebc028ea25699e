"""The measures of realism, on a small table."""

from typing import Any

import numpy as np
import pytest
from benchmarks import realism
from benchmarks.yardstick import cases

TINY = dict.fromkeys(realism.MEASURES, 0.5)


@pytest.fixture(scope="module")
def setting() -> realism.RealismSetting:
    return realism.RealismSetting(cases.make("wine", "logistic", 100), 12)


def test_queries_are_refused_and_real_rows_accepted(setting: realism.RealismSetting) -> None:
    assert len(setting.query_codes) == 12
    assert (setting.case.predict(setting.query_codes) == 0).all()
    assert (setting.case.predict(setting.real) == 1).all()


def test_a_training_row_is_a_copy_and_its_changes_are_not_all_needed(setting: realism.RealismSetting) -> None:
    copied = np.repeat(setting.training[:1], 12, axis=0)
    found = realism.measure(setting, copied)
    assert found["nearest_training"] == 0
    assert found["nearest"] > 0
    assert found["changes"] > 5
    assert found["droppable"] == 1
    assert found["distance"] == pytest.approx(setting.case.gower(copied, setting.query_codes).mean())


def test_points_have_the_gower_distance(setting: realism.RealismSetting) -> None:
    first, second = setting.query_codes[:6], setting.query_codes[6:]
    apart = np.abs(setting.points(first) - setting.points(second)).sum(axis=1)
    np.testing.assert_allclose(apart, setting.case.gower(first, second))


def test_identities_are_found_and_broken_ones_counted(setting: realism.RealismSetting) -> None:
    assert setting.identities == []
    codes = setting.case.training
    codes[:, 2] = codes[:, 0] + codes[:, 1]
    changed = realism.RealismSetting(setting.case, 12)
    assert changed.identities == [(2, 0, 1)]
    assert realism.measure(changed, np.repeat(codes[:1], 12, axis=0))["identities"] == 1
    assert realism.measure(changed, np.repeat(codes[:1] + 0.5, 12, axis=0))["identities"] == 0


def test_a_discriminator_knows_rows_that_are_far_away() -> None:
    rng = np.random.default_rng(0)
    real = rng.normal(size=(60, 3))
    assert realism.discriminator_auc(real[:20] + 9, real, 0) == pytest.approx(1)
    assert realism.discriminator_auc(rng.normal(size=(30, 3)), real, 0) < 0.75


def test_the_page_counts_the_pairs_on_which_each_is_ahead() -> None:
    ours = TINY | {"distance": 0.2, "nearest": 0.4, "inliers": 0.9}
    cell: dict[str, Any] = {"data": "wine", "model": "mlp", "systems": {"fasterce": ours, "NICE": TINY}}
    earlier = {"data": "wine", "model": "mlp", "systems": {"fasterce": TINY | {"distance": 0.1, "nearest": 0.9}}}
    page = realism.page([cell, {"data": "wine", "model": "svc", "error": "too few rows"}], [earlier])
    assert "1 pairs of data and model" in page
    assert "- fasterce ahead of NICE, of 1 pairs: distance 1, nearest 1, nearest5 0" in page
    assert "both distance and nearest 1" in page
    assert "- before ahead of NICE, of 1 pairs: distance 1, nearest 0" in page
    assert "Data held back" not in page
