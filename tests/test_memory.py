"""Counts and sums that are added to exactly; quantiles that stay near; what a copy and an autoencoder are worth."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce.codec import Codec
from fasterce.latent.runtime import Callables
from fasterce.memory import (
    BINS,
    Memory,
    copy_agreement,
    merged_profile,
    reconstruction_losses,
    sizes,
    tally,
    weighted_quantiles,
)
from fasterce.profile import Floats, Profile
from fasterce.table import Table
from streams import people, schema

FRAME = people(600, 0)
TABLE = Table.like(FRAME, schema(FRAME))
CODES = TABLE.read(FRAME).codes


def memory_of(codes: Floats, rows: Floats) -> Memory:
    return Memory.start(codes, rows, np.array([1, 1]), np.ones(3), TABLE.schema)


@given(st.integers(2, 598), st.integers(0, 5))
def test_sums_and_counts_do_not_depend_on_where_the_stream_is_cut(cut: int, seed: int) -> None:
    codes = np.random.default_rng(seed).permutation(CODES)
    start = memory_of(codes[:cut], codes[:0])
    after = start.and_rows(codes[cut:], TABLE.schema)
    assert (int(after.seen), int(after.updates)) == (600, 1)
    np.testing.assert_allclose(after.mean, codes.mean(axis=0))
    np.testing.assert_allclose(after.squares / 600, codes.var(axis=0))
    np.testing.assert_array_equal(after.counts, tally(codes, start.cuts, TABLE.schema))
    assert after.counts.sum() == 600 * len(TABLE.schema)


def test_a_count_for_every_bin_and_category() -> None:
    assert sizes(TABLE.schema) == [BINS, BINS, BINS, 3, 2]
    counts = tally(CODES, memory_of(CODES, CODES[:0]).cuts, TABLE.schema)
    assert list(counts[-2:]) == list(np.bincount(CODES[:, 4].astype(int)))
    assert (counts[:BINS] > 30).all(), "ages are spread evenly over their bins"


def test_with_all_rows_remembered_the_profile_is_measured_anew() -> None:
    merged = merged_profile(
        Profile.measure(CODES[:400], TABLE.schema), memory_of(CODES[:400], CODES[:400]), CODES[400:], TABLE.schema
    )
    for name, array in Profile.measure(CODES, TABLE.schema).arrays().items():
        np.testing.assert_array_equal(merged.arrays()[name], array, err_msg=name)


@pytest.mark.parametrize("kept", [0, 300])
def test_without_them_ranges_deviations_and_shares_are_exact_and_quantiles_near(kept: int) -> None:
    old, new = CODES[:400], CODES[400:] + np.array([0, 20, 0, 0, 0])
    merged = merged_profile(Profile.measure(old, TABLE.schema), memory_of(old, old[:kept]), new, TABLE.schema)
    whole = Profile.measure(np.concatenate([old, new]), TABLE.schema)
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
    low, high = (
        np.quantile(repeated, np.clip(shares + s, 0, 1), axis=0, method=m).T
        for s, m in ((-slack, "lower"), (slack, "higher"))
    )
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


class Half:
    """A copy that answers class 1 where the second number is positive."""

    def read(self, codes: Any, feature: Any) -> Any:
        return codes[:, :, None].astype(np.float32)

    def hidden(self, own: Any) -> Any:
        return own[:, 1]

    def outputs(self, hidden: Any) -> Any:
        return hidden


def test_agreement_counts_rows_however_many_there_are() -> None:
    codes = np.random.default_rng(0).normal(size=(2500, 3))
    classes = (codes[:, 1] > 0).astype(np.intp)
    classes[:250] = 1 - classes[:250]
    assert copy_agreement(Half(), codes, classes) == pytest.approx(0.9)  # type: ignore[arg-type]
    assert copy_agreement(None, codes, classes) == 0.0
