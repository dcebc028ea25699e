"""Counts and sums that are added to exactly; quantiles that stay near; what a copy and an autoencoder are worth."""

from typing import Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import MISSING
from fasterce.data.table import Table
from fasterce.fitting.statistics import (
    BINS,
    TrainingStatistics,
    count_predictions,
    count_values,
    merged_profile,
    prediction_cuts,
    sizes,
    surrogate_agreement,
    weighted_quantiles,
)
from fasterce.latent.autoencoder import reconstruction_losses
from fasterce.latent.runtime import Callables
from fasterce.models.predictions import Predictions
from fasterce.models.predictor import Numbers
from fasterce.typing import Floats, Indices
from tests.changing import people, schema

FRAME = people(600, 0)
TABLE = Table.like(FRAME, schema(FRAME))
CODES = TABLE.read(FRAME).codes


def gapped(share: float = 0.2) -> pd.DataFrame:
    """The same people, with gaps in two numbers and a category."""
    frame, rng = FRAME.copy(), np.random.default_rng(1)
    for name in ("income", "savings", "job"):
        frame.loc[rng.random(len(frame)) < share, name] = None
    return frame


GAPPED = Table.like(gapped(), schema(gapped()))
HOLES = GAPPED.read(gapped()).codes


def statistics_of(codes: Floats, rows: Floats, table: Table = TABLE) -> TrainingStatistics:
    return TrainingStatistics.start(codes, rows, np.zeros(0), np.array([1, 1]), np.ones(3), table.schema)


def with_nan(codes: Floats) -> Floats:
    return np.where(codes == MISSING, np.nan, codes)


@given(st.integers(2, 598), st.integers(0, 5))
def test_sums_and_counts_do_not_depend_on_where_the_stream_is_cut(cut: int, seed: int) -> None:
    codes = np.random.default_rng(seed).permutation(CODES)
    start = statistics_of(codes[:cut], codes[:0])
    after = start.add_rows(codes[cut:], TABLE.schema)
    assert (int(after.seen), int(after.updates)) == (600, 1)
    np.testing.assert_allclose(after.mean, codes.mean(axis=0))
    np.testing.assert_allclose(after.squares / 600, codes.var(axis=0))
    np.testing.assert_array_equal(after.counts, count_values(codes, start.cuts, TABLE.schema))
    assert after.counts.sum() == 600 * len(TABLE.schema)


@given(st.integers(2, 598), st.integers(0, 5))
def test_what_is_missing_takes_no_part_in_sums_wherever_the_stream_is_cut(cut: int, seed: int) -> None:
    codes = np.random.default_rng(seed).permutation(HOLES)
    start = statistics_of(codes[:cut], codes[:0], GAPPED)
    after, there = start.add_rows(codes[cut:], GAPPED.schema), with_nan(codes)
    np.testing.assert_array_equal(after.present(GAPPED.schema), (~np.isnan(there)).sum(axis=0))
    np.testing.assert_allclose(after.mean, np.nanmean(there, axis=0))
    np.testing.assert_allclose(after.squares / after.present(GAPPED.schema), np.nanvar(there, axis=0))
    assert after.counts.sum() == 600 * len(GAPPED.schema)
    low, high = np.nanmin(there, axis=0), np.nanmax(there, axis=0)
    assert ((start.cuts >= low[:, None]) & (start.cuts <= high[:, None])).all(), "bins are cut among values that are there"


def test_missing_numbers_are_counted_beside_even_bins() -> None:
    assert sizes(GAPPED.schema) == [BINS, BINS + 1, BINS + 1, 4, 2]
    counts = statistics_of(HOLES, HOLES[:0], GAPPED).counts[BINS : 2 * BINS + 1]
    assert counts[BINS] == gapped()["income"].isna().sum()
    assert np.ptp(counts[:BINS]) <= 5


def test_a_column_that_was_or_is_all_missing_has_the_sums_of_the_other_rows() -> None:
    gone = HOLES[:300].copy()
    gone[:, 1] = MISSING
    for first, second in ((gone, HOLES[300:]), (HOLES[300:], gone)):
        start = statistics_of(first, first[:0], GAPPED)
        after = start.add_rows(second, GAPPED.schema)
        there = with_nan(HOLES[300:, 1])
        assert after.mean[1] == pytest.approx(np.nanmean(there))
        assert after.squares[1] == pytest.approx(np.nanvar(there) * np.isfinite(there).sum())
        merged = merged_profile(Profile.measure(first, GAPPED.schema), start, second, GAPPED.schema)
        whole = Profile.measure(HOLES[300:], GAPPED.schema)
        for name in ("low", "high", "std"):
            assert getattr(merged, name)[1] == pytest.approx(getattr(whole, name)[1]), name
        assert merged.median[1] == pytest.approx(whole.median[1], abs=0.5)
        assert (merged.spread[1] >= whole.low[1]).all()


def test_a_count_for_every_bin_and_category() -> None:
    assert sizes(TABLE.schema) == [BINS, BINS, BINS, 3, 2]
    counts = count_values(CODES, statistics_of(CODES, CODES[:0]).cuts, TABLE.schema)
    assert list(counts[-2:]) == list(np.bincount(CODES[:, 4].astype(int)))
    assert (counts[:BINS] > 30).all(), "ages are spread evenly over their bins"


@pytest.mark.parametrize(("table", "codes"), [(TABLE, CODES), (GAPPED, HOLES)], ids=["whole", "gaps"])
def test_with_all_rows_remembered_the_profile_is_measured_anew(table: Table, codes: Floats) -> None:
    before = Profile.measure(codes[:400], table.schema)
    merged = merged_profile(before, statistics_of(codes[:400], codes[:400], table), codes[400:], table.schema)
    for name, array in Profile.measure(codes, table.schema).arrays().items():
        np.testing.assert_array_equal(merged.arrays()[name], array, err_msg=name)


@pytest.mark.parametrize(("table", "codes"), [(TABLE, CODES), (GAPPED, HOLES)], ids=["whole", "gaps"])
@pytest.mark.parametrize("kept", [0, 300])
def test_without_them_ranges_deviations_and_shares_are_exact_and_quantiles_near(
    table: Table, codes: Floats, kept: int
) -> None:
    old, new = codes[:400], codes[400:] + np.array([0, 20, 0, 0, 0]) * (codes[400:] != MISSING)
    merged = merged_profile(Profile.measure(old, table.schema), statistics_of(old, old[:kept], table), new, table.schema)
    whole = Profile.measure(np.concatenate([old, new]), table.schema)
    for name in ("low", "high", "std", "frequency"):
        np.testing.assert_allclose(getattr(merged, name), getattr(whole, name), err_msg=name)
    numbers = slice(0, 3)
    gap = np.abs(merged.levels - whole.levels)[numbers].mean(axis=1) / whole.std[numbers]
    assert (gap < 0.12).all()
    assert (np.diff(merged.levels) >= 0).all()
    assert (np.abs(merged.median - whole.median)[numbers] < 0.2 * whole.std[numbers]).all()
    np.testing.assert_allclose(merged.bent_std[numbers], whole.bent_std[numbers], rtol=0.1)


@given(st.integers(1, 40), st.integers(0, 1000))
def test_weights_count_like_repetitions(rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, weight = rng.normal(size=(rows, 2)), rng.integers(1, 5, rows)
    shares = np.array([0.1, 0.37, 0.5, 0.93])
    repeated = np.repeat(points, weight, axis=0)
    found = weighted_quantiles(points, weight.astype(float), shares)
    slack = 4 / rows
    ends: list[tuple[float, Literal["lower", "higher"]]] = [(-slack, "lower"), (slack, "higher")]
    low, high = (np.quantile(repeated, np.clip(shares + s, 0, 1), axis=0, method=m).T for s, m in ends)
    assert ((found >= low) & (found <= high)).all()


def test_the_loss_is_none_for_perfect_rebuilding_and_grows_with_what_is_lost() -> None:
    codec = Codec(TABLE.schema, Profile.measure(CODES, TABLE.schema))
    matrix = codec.encode(CODES)
    perfect, blurred, blind = (
        reconstruction_losses(Callables(lambda m: m, decode), codec, matrix).mean()
        for decode in (lambda z: z, lambda z: z + 0.1, np.ones_like)
    )
    assert perfect == pytest.approx(0, abs=1e-9)
    assert 0.05 < blurred < blind


def test_a_gap_that_is_not_rebuilt_is_a_loss() -> None:
    codec = Codec(GAPPED.schema, Profile.measure(HOLES, GAPPED.schema))
    matrix = codec.encode(HOLES)
    swapped = matrix.copy()
    for block in codec.missing_blocks:
        swapped[:, block.columns] = matrix[:, block.columns][:, ::-1]
    loss = reconstruction_losses(Callables(lambda m: m, lambda z: swapped), codec, matrix)
    np.testing.assert_allclose(loss, len(codec.missing_blocks), atol=1e-9)
    assert reconstruction_losses(Callables(lambda m: m, lambda z: z), codec, matrix).max() == pytest.approx(0, abs=1e-9)


def test_numbers_are_counted_in_bins_and_the_last_bit_does_not_matter() -> None:
    numbers = Numbers(middle=2.0, scale=0.7)
    values = np.repeat([1.0, 2.0, 3.0], 100)
    predictions = Predictions(np.zeros(300, dtype=np.intp), numbers.scores(values))
    cuts = prediction_cuts(predictions, numbers)
    counts = count_predictions(predictions, numbers, cuts, 2)
    assert sorted(counts[counts > 0]) == [100, 100, 100]
    for slip in (1e-15, -1e-15):
        again = Predictions(predictions.classes, numbers.scores(values * (1 + slip)))
        np.testing.assert_array_equal(count_predictions(again, numbers, cuts, 2), counts)
    assert list(count_predictions(Predictions(np.array([1, 1, 0])), None, np.zeros(0), 3)) == [1, 2, 0]


class Half:
    """A surrogate that predicts class 1 where the second number is positive."""

    def labels(self, codes: Floats) -> Indices:
        return (codes[:, 1] > 0).astype(np.intp)


def test_agreement_counts_rows_however_many_there_are() -> None:
    codes = np.random.default_rng(0).normal(size=(2500, 3))
    classes = (codes[:, 1] > 0).astype(np.intp)
    classes[:250] = 1 - classes[:250]
    assert surrogate_agreement(Half(), codes, classes, 1000) == pytest.approx(0.9)  # type: ignore[arg-type]
    assert surrogate_agreement(Half(), codes[:0], classes[:0], 1000) == 0.0  # type: ignore[arg-type]
