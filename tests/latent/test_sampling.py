"""Latent samples: repeatable, legal, near the data and beyond it."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce.config import LatentConfig
from fasterce.latent.runtime import Callables
from fasterce.latent.sampling import Samples, sample, to_values, within_declared_ranges

IDENTITY = Callables(lambda matrix: matrix, lambda latent: latent)


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, 200),
            "job": rng.choice(["p", "q", "r"], 200),
            "rate": rng.uniform(0, 10, 200).round(2),
        }
    )


def draw(encoded: Callable, frame: pd.DataFrame, seed: int = 0, **constraints: object) -> Samples:
    codec, _, matrix = encoded(frame, **constraints)
    return sample(matrix, IDENTITY, codec, seed)


def test_same_seed_same_samples(encoded: Callable, people: pd.DataFrame) -> None:
    one, again, other = (draw(encoded, people, seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.latent, again.latent)
    np.testing.assert_array_equal(one.codes, again.codes)
    assert not np.array_equal(one.latent, other.latent)


def test_global_random_state_is_left_alone(encoded: Callable, people: pd.DataFrame) -> None:
    random: Any = np.random
    before = random.get_state()[1].copy()
    draw(encoded, people)
    np.testing.assert_array_equal(random.get_state()[1], before)


def test_decoded_values_could_exist(encoded: Callable, people: pd.DataFrame) -> None:
    drawn = draw(encoded, people)
    age, job, rate = drawn.codes.T
    assert set(job) == {0.0, 1.0, 2.0}
    np.testing.assert_array_equal(age, np.round(age))
    np.testing.assert_array_equal(rate, np.round(rate, 2))
    for column, values in ((age, people["age"]), (rate, people["rate"])):
        assert column.min() == values.min(), "samples reach the ends of the range"
        assert column.max() == values.max()


def test_matrix_is_that_of_the_rounded_rows(encoded: Callable, people: pd.DataFrame) -> None:
    codec, _, matrix = encoded(people)
    drawn = sample(matrix, IDENTITY, codec, 0)
    assert len(drawn) == len(drawn.latent) == len(drawn.codes)
    np.testing.assert_array_equal(drawn.matrix, codec.encode(drawn.codes))


def test_whole_numbers_stay_whole_inside_a_fractional_range(encoded: Callable, people: pd.DataFrame) -> None:
    drawn = draw(encoded, people, ranges={"age": (19.5, 60.5)})
    age = drawn.codes[:, 0]
    np.testing.assert_array_equal(age, np.round(age))
    assert 20 <= age.min() <= age.max() <= 60


def test_samples_outside_declared_ranges_are_drawn_again(encoded: Callable, people: pd.DataFrame) -> None:
    free = draw(encoded, people)
    bound = draw(encoded, people, ranges={"rate": (0, 10)})
    assert len(free) == LatentConfig().min_samples
    assert len(bound) == len(free)
    kept = np.isin(free.latent[:, 1], bound.latent[:, 1])
    codec, _, _ = encoded(people)
    raw = codec.decode(free.latent)[:, 2]
    slack = 0.5
    inside = (raw >= -slack) & (raw <= 10 + slack)
    assert (~inside).sum() > 100
    np.testing.assert_array_equal(kept, inside)
    drawn_again = codec.decode(bound.latent)[inside.sum() :, 2]
    assert ((drawn_again >= -slack) & (drawn_again <= 10 + slack)).all()


def test_where_nothing_decodes_into_a_range_there_are_fewer_samples(encoded: Callable, people: pd.DataFrame) -> None:
    assert len(draw(encoded, people, ranges={"rate": (1e6, 2e6)})) == 0


def test_a_one_sided_range_drops_what_lies_on_the_wrong_side(encoded: Callable, people: pd.DataFrame) -> None:
    codec, _, _ = encoded(people, ranges={"rate": (0, math.inf)})
    codes = np.array([[30.0, 0.0, -40.0], [30.0, 0.0, 5.0], [30.0, 0.0, 400.0]])
    np.testing.assert_array_equal(within_declared_ranges(codes, codec), [False, True, True])


def test_observed_ranges_drop_nothing_but_clip(encoded: Callable, people: pd.DataFrame) -> None:
    codec, _, _ = encoded(people)
    wild = np.array([[1000.4, 0.0, -50.0], [33.6, 1.0, 3.14159]])
    assert within_declared_ranges(wild, codec).all()
    np.testing.assert_allclose(
        to_values(wild, codec), [[people["age"].max(), 0.0, people["rate"].min()], [34.0, 1.0, 3.14]], atol=1e-12
    )
    np.testing.assert_array_equal(wild[0], [1000.4, 0.0, -50.0])


def test_half_near_a_row_and_a_quarter_far_out(encoded: Callable) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {name: np.where(rng.random(300) < 0.5, -10.0, 10.0) + rng.normal(size=300) * 0.01 for name in "abcd"}
    )
    codec, _, matrix = encoded(frame)
    drawn = sample(matrix, IDENTITY, codec, 0)
    gap = np.linalg.norm(drawn.latent[:, None, :] - matrix[None, ::3, :], axis=2).min(axis=1)
    quarter = len(drawn) // 4
    near, around, cloud = gap[: 2 * quarter], gap[2 * quarter : 3 * quarter], gap[3 * quarter :]
    assert 0.3 < np.median(near) < 0.6, "a quarter of a standard deviation in four dimensions"
    assert np.median(around) > 2 * np.median(near)
    assert np.linalg.norm(drawn.latent[3 * quarter :], axis=1).max() > 1.5 * np.linalg.norm(matrix, axis=1).max()
    assert np.median(cloud) > np.median(around)


def test_count_grows_with_the_latent_space_up_to_a_limit(encoded: Callable, people: pd.DataFrame) -> None:
    codec, _, matrix = encoded(people)
    for dimensions, expected in ((5, LatentConfig().min_samples), (30, 6000), (100, LatentConfig().max_samples)):
        wide = np.concatenate([matrix, np.random.default_rng(0).normal(size=(200, dimensions - 5))], axis=1)
        own = Callables(lambda rows: rows, lambda latent: latent[:, :5])
        assert len(sample(wide, own, codec, 0)) == expected
