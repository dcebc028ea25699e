"""The NumPy forward pass: the right numbers, and the same to the last bit whatever else is in the batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from fasterce.latent.runtime import BLOCK_ROWS, FEW_ROWS, Callables, Layer, Network, forward, product, softmax, threads_for


def random_network(rng: np.random.Generator, width: int, hidden: int, latent: int, blocks: tuple[slice, ...] = ()) -> Network:
    def layer(inputs: int, outputs: int) -> Layer:
        return Layer(rng.normal(size=(inputs, outputs)), rng.normal(size=outputs))

    return Network(
        (layer(width, hidden), layer(hidden, latent)),
        (layer(latent, hidden), layer(hidden, width)),
        blocks,
    )


def test_encode_is_two_layers_with_a_relu_between() -> None:
    rng = np.random.default_rng(0)
    network = random_network(rng, 7, 19, 4)
    rows = rng.normal(size=(150, 7))
    first, last = network.encoder
    expected = np.maximum(rows @ first.weight + first.bias, 0) @ last.weight + last.bias
    np.testing.assert_allclose(network.encode(rows), expected, rtol=0, atol=1e-10)
    assert (expected < 0).any(), "the last layer must not be rectified"


def test_decode_is_linear_in_numbers_and_softmax_in_each_block() -> None:
    rng = np.random.default_rng(1)
    network = random_network(rng, 8, 11, 3, (slice(2, 5), slice(5, 8)))
    latent = rng.normal(size=(40, 3))
    first, last = network.decoder
    plain = np.maximum(latent @ first.weight + first.bias, 0) @ last.weight + last.bias
    out = network.decode(latent)
    np.testing.assert_allclose(out[:, :2], plain[:, :2], atol=1e-10)
    for block in network.blocks:
        powers = np.exp(plain[:, block])
        np.testing.assert_allclose(out[:, block], powers / powers.sum(axis=1, keepdims=True), atol=1e-10)


def test_decode_keeps_the_leading_axes() -> None:
    rng = np.random.default_rng(2)
    network = random_network(rng, 5, 9, 3, (slice(3, 5),))
    latent = rng.normal(size=(6, 4, 3))
    out = network.decode(latent)
    assert out.shape == (6, 4, 5)
    np.testing.assert_array_equal(out.reshape(24, 5), network.decode(latent.reshape(24, 3)))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 3 * BLOCK_ROWS + 1),
    width=st.integers(1, 40),
    hidden=st.integers(1, 70),
    latent=st.integers(1, 12),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_row_does_not_depend_on_its_company(rows: int, width: int, hidden: int, latent: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(rng, width, hidden, latent)
    matrix = rng.normal(size=(rows, width)) * 10.0 ** rng.integers(-3, 4, size=(rows, 1))
    together = network.encode(matrix)
    order = rng.permutation(rows)
    np.testing.assert_array_equal(network.encode(matrix[order]), together[order])
    for row in rng.integers(rows, size=3):
        np.testing.assert_array_equal(network.encode(matrix[row : row + 1])[0], together[row])
        np.testing.assert_array_equal(network.decode(together[row : row + 1])[0], network.decode(together)[row])


def test_product_equals_matmul_for_any_number_of_rows() -> None:
    rng = np.random.default_rng(4)
    right = rng.normal(size=(6, 3))
    for rows in (0, 1, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 5 * BLOCK_ROWS):
        left = rng.normal(size=(rows, 6))
        found = product(left, right)
        assert found.shape == (rows, 3)
        np.testing.assert_allclose(found, left @ right, atol=1e-12)


def test_no_rows_encode_to_no_rows() -> None:
    network = random_network(np.random.default_rng(5), 4, 8, 3)
    assert network.encode(np.zeros((0, 4))).shape == (0, 3)
    assert network.decode(np.zeros((0, 3))).shape == (0, 4)
    assert network.decode(np.zeros((0, 21, 3))).shape == (0, 21, 4)


def test_forward_does_not_write_into_its_input() -> None:
    rng = np.random.default_rng(6)
    network = random_network(rng, 4, 5, 3, (slice(1, 4),))
    rows = rng.normal(size=(3, 4))
    kept = rows.copy()
    network.decode(network.encode(rows))
    forward(network.encoder, rows)
    np.testing.assert_array_equal(rows, kept)


def test_softmax_of_large_logits_is_finite() -> None:
    out = softmax(np.array([[1e4, 1e4, -1e4], [0.0, np.log(3.0), -np.inf]]))
    np.testing.assert_allclose(out, [[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]], atol=1e-12)


def test_arrays_round_trip() -> None:
    rng = np.random.default_rng(7)
    network = random_network(rng, 6, 9, 2, (slice(2, 6),))
    again = Network.from_arrays(network.arrays(), network.blocks)
    rows = rng.normal(size=(10, 6))
    np.testing.assert_array_equal(again.encode(rows), network.encode(rows))
    np.testing.assert_array_equal(again.decode(again.encode(rows)), network.decode(network.encode(rows)))
    assert (len(again.encoder), len(again.decoder)) == (2, 2)


def test_own_functions_are_wrapped() -> None:
    seen: list[tuple[int, ...]] = []

    def decode(latent: np.ndarray) -> np.ndarray:
        seen.append(latent.shape)
        return np.repeat(latent, 2, axis=1)

    own = Callables(lambda matrix: (matrix[:, ::2] * 2).astype(np.float32).tolist(), decode)
    latent = own.encode(np.arange(8.0).reshape(2, 4))
    assert isinstance(latent, np.ndarray)
    assert latent.dtype == np.float64
    np.testing.assert_array_equal(latent, [[0.0, 4.0], [8.0, 12.0]])
    walked = own.decode(np.arange(24.0).reshape(3, 4, 2))
    assert walked.shape == (3, 4, 4)
    np.testing.assert_array_equal(walked[2, 3], [22.0, 22.0, 23.0, 23.0])
    assert seen == [(12, 2)], "the function sees a plain matrix"


@pytest.mark.parametrize("shape", [(0, 2), (0, 21, 2)])
def test_own_decoder_of_nothing_gives_nothing(shape: tuple[int, ...]) -> None:
    own = Callables(lambda matrix: matrix, lambda latent: latent)
    assert own.decode(np.zeros(shape)).shape == shape


def test_few_rows_are_evaluated_on_one_thread_and_the_number_of_threads_comes_back() -> None:
    def counts() -> set[int]:
        return {pool["num_threads"] for pool in threadpool_info()}

    with threadpool_limits(2):
        with threads_for(FEW_ROWS + 1):
            assert counts() == {2}
        with threads_for(1):
            assert counts() == {1}
        assert counts() == {2}
        with pytest.raises(ZeroDivisionError), threads_for(1):
            raise ZeroDivisionError
        assert counts() == {2}
