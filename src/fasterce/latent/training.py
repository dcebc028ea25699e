"""Train small networks with NumPy: dense layers, ReLU, Adam.

All arrays are float32, and BLAS is kept to one thread, so that the weights depend on the seed and not on the number of cores.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fasterce.latent.runtime import Layer
from fasterce.typing import Floats32


class Matrix(Protocol):
    """Rows to train on: an array, or a sparse matrix of SciPy."""

    @property
    def T(self) -> "Matrix": ...

    def __matmul__(self, other: Floats32, /) -> Floats32: ...


class DenseLayers:
    """Dense layers in a row, with a ReLU after those marked in `relu`.

    Parameters
    ----------
    sizes : sequence of int
        Width of the inputs and of every layer's outputs.
    relu : sequence of bool
        Whether a ReLU follows, one per layer.
    rng : numpy.random.Generator
        Draws the first weights, uniform within one over the square root of a layer's inputs.
    dtype : dtype, default=float32
        Type of weights and gradients.

    Attributes
    ----------
    parameters, gradient : ndarray of shape (parameters,)
        All weights and biases, and the derivative of the loss with respect to each; layers are views into them.
    """

    def __init__(
        self, sizes: Sequence[int], relu: Sequence[bool], rng: np.random.Generator, dtype: DTypeLike = np.float32
    ) -> None:
        self.relu = relu
        shapes = list(pairwise(sizes))
        drawn = [rng.uniform(-1, 1, (inputs + 1) * outputs) / np.sqrt(inputs) for inputs, outputs in shapes]
        self.parameters = np.concatenate(drawn).astype(dtype)
        self.gradient = np.zeros_like(self.parameters)
        self._layers = _views(self.parameters, shapes)
        self._slopes = _views(self.gradient, shapes)
        self._inputs: list[Matrix] = []

    def forward(self, inputs: Matrix) -> Floats32:
        """Return the outputs of rows; what `backward` needs is kept."""
        self._inputs, values = [], inputs
        for (weight, bias), relu in zip(self._layers, self.relu, strict=True):
            self._inputs.append(values)
            values = values @ weight
            values += bias
            if relu:
                np.maximum(values, 0.0, out=values)
        return np.asarray(values)

    def backward(self, slope: Floats32) -> None:
        """Set `gradient` from the derivative of the loss with respect to the last outputs, which is overwritten."""
        for depth in range(len(self._layers) - 1, -1, -1):
            inputs = self._inputs[depth]
            self._slopes[depth][0][...] = inputs.T @ slope
            self._slopes[depth][1][...] = slope.sum(axis=0)
            if depth:
                slope = slope @ self._layers[depth][0].T
                if self.relu[depth - 1]:
                    slope *= np.asarray(inputs) > 0

    def layers(self) -> list[Layer]:
        """Return a copy of the layers."""
        return [Layer(weight.astype(np.float64), bias.astype(np.float64)) for weight, bias in self._layers]

    def load(self, layers: Sequence[Layer]) -> None:
        """Replace the weights by those of layers of the same sizes."""
        for (weight, bias), layer in zip(self._layers, layers, strict=True):
            weight[...], bias[...] = layer.weight, layer.bias


class Adam:
    """Adam (Kingma and Ba, 2015) over one vector of parameters, which `step` changes in place."""

    decay = 0.9, 0.999
    epsilon = 1e-8

    def __init__(self, parameters: Floats32) -> None:
        self.parameters = parameters
        self.mean, self.square = np.zeros_like(parameters), np.zeros_like(parameters)
        self.steps = 0

    def step(self, gradient: Floats32, rate: float) -> None:
        """Take one step of the size `rate`; `gradient` is overwritten."""
        self.steps += 1
        first, second = self.decay
        self.mean += (1 - first) * (gradient - self.mean)
        np.square(gradient, out=gradient)
        self.square += (1 - second) * (gradient - self.square)
        root = np.sqrt(self.square, out=gradient)
        root *= (1 - second**self.steps) ** -0.5
        root += self.epsilon
        self.parameters -= rate / (1 - first**self.steps) * self.mean / root


def cosine_rate(step: float, steps: float) -> float:
    """Return the step size relative to the first one, falling to zero along half a cosine."""
    return float((1 + np.cos(np.pi * step / steps)) / 2)


def one_cycle_rate(step: int, steps: int) -> float:
    """Return the step size relative to the highest one: rising for three tenths of the steps, then falling to zero."""
    rise = 0.3 * steps
    return 0.04 + 0.96 * cosine_rate(rise - step, rise) if step < rise else cosine_rate(step - rise, steps - rise)


def _views(flat: Floats32, shapes: Sequence[tuple[int, int]]) -> list[tuple[Floats32, Floats32]]:
    """Return each layer's weight and bias as views into `flat`."""
    found, start = [], 0
    for inputs, outputs in shapes:
        weight: NDArray[np.float32] = flat[start : start + inputs * outputs].reshape(inputs, outputs)
        start += inputs * outputs
        found.append((weight, flat[start : start + outputs]))
        start += outputs
    return found
