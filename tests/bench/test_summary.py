"""Summaries of lines, computed by hand."""

import numpy as np
import pandas as pd
import pytest
from benchmarks import figures, summary

NAN = float("nan")


def lines(method: str, valid: list[float], gower: list[float], changed: list[str], seconds: list[float]) -> pd.DataFrame:
    blank = dict.fromkeys((*summary.PERCENT, *summary.MEANS), NAN)
    rows = {"method": method, "seed": 0, "row": range(len(valid)), "status": "found", **blank}
    return pd.DataFrame(
        {**rows, "valid": valid, "gower_l1": gower, "changed": changed, "seconds": seconds, "model_seconds": 0.005}
    )


OURS = lines(summary.REFERENCE, [1, 1, 1, 1], [0.1, 0.2, 0.3, 0.4], ["a", "a|b", "b", "c"], [0.01] * 4)
OTHER = lines("other", [1, 0, 1, 0], [0.5, NAN, 0.7, NAN], ["a", "a|b", "a|b", ""], [0.05, 0.05, 0.05, 9.0])
BOTH = pd.concat([OURS, OTHER], ignore_index=True)


def test_failures_count_in_shares_and_not_in_means() -> None:
    runs = summary.per_run(BOTH).set_index("method")
    assert runs.loc["other", "valid"] == 50
    assert runs.loc["other", "gower_l1"] == pytest.approx(0.6)
    assert runs.loc[summary.REFERENCE, "gower_l1"] == pytest.approx(0.25)


def test_times_are_ratios_of_medians_in_one_run() -> None:
    ratio = summary.times_reference(summary.per_run(BOTH))
    assert ratio.tolist() == pytest.approx([1.0, 5.0])


def test_time_in_the_model_is_a_share_of_the_whole() -> None:
    runs = summary.per_run(OURS)
    assert runs["in_model"].tolist() == pytest.approx([50.0])


def test_agreement_is_over_rows_both_explain() -> None:
    """Rows 0 and 2: the same feature, and b of a and b."""
    shares = summary.agreement(BOTH)
    assert shares.loc["other", summary.REFERENCE] == pytest.approx((1 + 0.5) / 2)
    assert shares.loc["other", "other"] == 1


def test_a_system_that_was_not_run_is_left_out_of_ranks() -> None:
    gone = OTHER.assign(method="gone", status="not_tried")
    assert set(summary.exclude_not_run(pd.concat([BOTH, gone]))["method"]) == {summary.REFERENCE, "other"}


def test_the_interval_holds_the_mean_and_shrinks() -> None:
    values = np.random.default_rng(0).random(400)
    low, high = summary.interval(values)
    assert low < values.mean() < high
    few = summary.interval(values[:20])
    assert few[1] - few[0] > high - low
    assert np.isnan(summary.interval([1.0])[0])


def test_the_front_is_what_nothing_beats() -> None:
    x, y = np.array([1.0, 2.0, 3.0, 2.0]), np.array([3.0, 2.0, 1.0, 2.5])
    assert figures.front(x, y).tolist() == [True, True, True, False]
    assert figures.front(np.array([1.0, 1.0]), np.array([1.0, 1.0])).tolist() == [True, True]
