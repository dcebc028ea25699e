"""Gradients against finite differences, Adam against its formula, schedules at their ends."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from fasterce.latent.autoencoder import ReconstructionLoss
from fasterce.latent.runtime import forward
from fasterce.latent.training import Adam, DenseLayers, cosine_rate, one_cycle_rate


def numeric_gradient(network: DenseLayers, loss: Callable[[], float], step: float = 1e-6) -> np.ndarray:
    """Central differences, one parameter after the other."""
    found = np.empty_like(network.parameters)
    for i, value in enumerate(network.parameters.copy()):
        network.parameters[i] = value + step
        above = loss()
        network.parameters[i] = value - step
        below = loss()
        network.parameters[i] = value
        found[i] = (above - below) / (2 * step)
    return found


@pytest.mark.parametrize("columns", [["a", "b", "job", "c"], ["a", "b"], ["job"]])
def test_gradient_of_the_autoencoder(encoded: Callable, correlated: pd.DataFrame, columns: list[str]) -> None:
    codec, _, matrix = encoded(correlated[columns])
    rows = matrix[:12].copy()
    if "job" in columns:
        rows[0, codec.blocks[0].columns] = 0.0  # a category that is not in the table
    loss = ReconstructionLoss(codec)
    network = DenseLayers((codec.width, 5, 3, 5, codec.width), (True, False, True, False), np.random.default_rng(0), float)
    network.backward(loss(rows, network.forward(rows))[1])
    expected = numeric_gradient(network, lambda: loss(rows, network.forward(rows))[0])
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(network.gradient, expected, atol=1e-7)


def test_gradient_with_sparse_inputs() -> None:
    rng = np.random.default_rng(1)
    rows = np.where(rng.random((20, 9)) < 0.3, rng.normal(size=(20, 9)), 0.0)
    wanted: Any = rng.normal(size=(20, 2))
    network = DenseLayers((9, 6, 2), (True, False), rng, float)
    network.backward((network.forward(csr_array(rows)) - wanted) / wanted.size)
    expected = numeric_gradient(network, lambda: float(np.square(network.forward(rows) - wanted).mean() / 2))
    np.testing.assert_allclose(network.gradient, expected, atol=1e-8)


def test_layers_are_what_the_runtime_evaluates() -> None:
    rng = np.random.default_rng(2)
    network, other = (DenseLayers((4, 7, 3), (True, False), rng) for _ in range(2))
    rows = rng.normal(size=(30, 4))
    np.testing.assert_allclose(network.forward(rows), forward(tuple(network.layers()), rows), atol=1e-6)
    other.load(network.layers())
    np.testing.assert_array_equal(other.parameters, network.parameters)


def test_adam_follows_its_formula() -> None:
    rng = np.random.default_rng(3)
    parameters: Any = rng.normal(size=5)
    adam, expected, mean, square = Adam(parameters), parameters.copy(), np.zeros(5), np.zeros(5)
    for step in range(1, 6):
        gradient: Any = rng.normal(size=5)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        expected -= 0.01 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        adam.step(gradient, 0.01)
        np.testing.assert_allclose(parameters, expected, rtol=1e-12)


def test_schedules_rise_and_fall() -> None:
    cosine = [cosine_rate(step, 10) for step in range(11)]
    assert cosine == sorted(cosine, reverse=True)
    assert (cosine[0], cosine[5], cosine[10]) == pytest.approx((1.0, 0.5, 0.0))
    cycle = [one_cycle_rate(step, 100) for step in range(100)]
    assert cycle[:31] == sorted(cycle[:31])
    assert cycle[30:] == sorted(cycle[30:], reverse=True)
    assert (cycle[0], cycle[30]) == pytest.approx((0.04, 1.0))
    assert 0 < cycle[99] < 0.001
