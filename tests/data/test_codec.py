"""Codes and the matrix an autoencoder sees: there and back without loss, whatever the columns."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasterce.data.codec import MOST_SLOTS, Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import MISSING, Schema
from fasterce.data.table import Table


def coded(X: pd.DataFrame) -> tuple[Codec, np.ndarray]:
    schema = Schema.infer(X, immutable=list(X.columns))
    codes = Table.like(X, schema).read(X).codes
    return Codec(schema, Profile.measure(codes, schema)), codes


def people(rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "job": rng.choice(["clerk", "nurse", "smith"], rows),
            "age": rng.integers(18, 80, rows),
            "owner": rng.random(rows) < 0.5,
            "income": np.round(np.exp(rng.normal(8, 2, rows)), 2),
            "fixed": 7.5,
            "only": "same",
        }
    )


def test_numbers_come_first_then_one_block_for_each_category_column() -> None:
    codec, codes = coded(people())
    assert codec.numeric.tolist() == [1, 3, 4]
    assert codec.categorical.tolist() == [0, 2, 5]
    assert [(block.feature, block.columns) for block in codec.blocks] == [
        (0, slice(3, 6)),
        (2, slice(6, 8)),
        (5, slice(8, 9)),
    ]
    assert codec.width == 9
    matrix = codec.encode(codes)
    assert matrix.shape == (200, 9)
    for block in codec.blocks:
        part = matrix[:, block.columns]
        assert set(np.unique(part)) <= {0.0, 1.0}
        assert (part.sum(axis=1) == 1).all()
        assert (part.argmax(axis=1) == codes[:, block.feature]).all()


def test_numbers_are_standardised_and_constant_columns_are_zero() -> None:
    codec, codes = coded(people())
    matrix = codec.encode(codes)
    assert matrix[:, :2].mean(axis=0) == pytest.approx([0, 0], abs=1e-9)
    assert matrix[:, :2].std(axis=0) == pytest.approx([1, 1])
    assert (matrix[:, 2] == 0).all()


def test_decoding_gives_back_what_was_encoded() -> None:
    codec, codes = coded(people())
    back = codec.decode(codec.encode(codes))
    assert np.array_equal(back[:, codec.categorical], codes[:, codec.categorical])
    assert back == pytest.approx(codes, rel=1e-9, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    numbers=st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=12),
    letters=st.lists(st.sampled_from("abc"), min_size=12, max_size=12),
)
def test_decoding_gives_back_any_numbers_within_rounding(numbers: list[float], letters: list[str]) -> None:
    codec, codes = coded(pd.DataFrame({"c": letters[: len(numbers)], "x": numbers}))
    matrix = codec.encode(codes)
    assert np.isfinite(matrix).all()
    back = codec.decode(matrix)
    assert np.array_equal(back[:, 0], codes[:, 0])
    assert np.allclose(back[:, 1], codes[:, 1], rtol=1e-9, atol=1e-9 * max(1.0, np.abs(codes[:, 1]).max()))


def test_values_far_from_the_data_stay_finite_both_ways() -> None:
    codec, codes = coded(people())
    far = codes[:4].copy()
    far[:, 3] = [1e15, -1e15, 1e300, -1e300]
    matrix = codec.encode(far)
    assert np.isfinite(matrix).all()
    assert np.isfinite(codec.decode(matrix)).all()
    wild = np.full((2, codec.width), 1e6)
    wild[1] = -1e6
    assert np.isfinite(codec.decode(wild)).all()


def test_the_likeliest_category_is_decoded() -> None:
    codec, codes = coded(people())
    matrix = codec.encode(codes[:1])
    matrix[0, 3:6] = [0.2, 0.5, 0.3]
    assert codec.decode(matrix)[0, 0] == 1


def test_decoding_works_on_batches_of_any_shape() -> None:
    codec, codes = coded(people())
    matrix = codec.encode(codes)
    assert np.array_equal(codec.decode(matrix.reshape(20, 10, -1)), codec.decode(matrix).reshape(20, 10, -1))


def test_rare_categories_beyond_the_most_frequent_have_no_column_of_their_own() -> None:
    often = [f"c{k:03}" for k in range(MOST_SLOTS)] * 2
    rare = [f"b{k}" for k in range(5)]
    codec, codes = coded(pd.DataFrame({"c": often + rare, "x": range(len(often + rare))}))
    block = codec.blocks[0]
    assert codec.width == 1 + MOST_SLOTS
    assert set(block.codes) == set(codes[: len(often), 0])
    assert (np.diff(block.codes) > 0).all()
    matrix = codec.encode(codes)
    assert (matrix[: len(often), 1:].sum(axis=1) == 1).all()
    assert (matrix[len(often) :, 1:] == 0).all()
    assert np.array_equal(codec.decode(matrix)[: len(often), 0], codes[: len(often), 0])


def test_tables_of_one_kind_only() -> None:
    numbers, codes = coded(people()[["age", "income"]])
    assert numbers.width == 2
    assert numbers.blocks == ()
    assert numbers.decode(numbers.encode(codes)) == pytest.approx(codes)
    categories, codes = coded(people()[["job", "owner"]])
    assert categories.width == 5
    assert np.array_equal(categories.decode(categories.encode(codes)), codes)


def gappy_people(rows: int = 200) -> pd.DataFrame:
    people_ = people(rows).drop(columns=["fixed", "only"]).astype({"age": "float64", "owner": "boolean"})
    rng = np.random.default_rng(4)
    for name in ("job", "age", "income"):
        people_.loc[rng.random(rows) < 0.2, name] = None
    return people_


def test_missing_values_come_back_from_the_matrix() -> None:
    codec, codes = coded(gappy_people())
    assert [block.feature for block in codec.missing_blocks] == codec.nullable.tolist() == [1, 3]
    matrix = codec.encode(codes)
    assert matrix.shape[1] == codec.width == 2 + 4 + 2 + 2 * 2
    absent = codes[:, [1, 3]] == MISSING
    assert absent.any(axis=0).all()
    assert (matrix[:, :2][absent] == 0).all(), "a missing number is as its mean"
    np.testing.assert_array_equal(matrix[:, [9, 11]], absent)
    np.testing.assert_array_equal(matrix[:, [8, 10]], ~absent)
    back = codec.decode(matrix)
    np.testing.assert_allclose(back, codes, rtol=1e-9)
    np.testing.assert_array_equal(back[:, [1, 3]] == MISSING, absent)


def test_without_missing_values_there_is_no_column_for_them() -> None:
    codec, _ = coded(people())
    assert codec.missing_blocks == ()
    assert codec.one_hot == codec.blocks
