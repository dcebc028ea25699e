"""Encoder and decoder at run time, with NumPy only.

Products are computed in blocks of a fixed number of rows. A BLAS product may round differently for one row and for a
thousand; with blocks of one shape, the latent vector of a row does not depend on the rows evaluated with it.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from fasterce.typing import Floats

# Part of the arithmetic: another block may round differently.
BLOCK_ROWS = 64
# Parts of work and rows of a model call from which several threads pay off.
FEWEST_PARTS = 4
FEW_ROWS = 256


class Autoencoder(Protocol):
    """Two maps between the codec's matrix and the latent space."""

    def encode(self, matrix: Floats) -> Floats: ...

    def decode(self, latent: Floats) -> Floats: ...


@dataclass(frozen=True)
class Layer:
    weight: Floats
    bias: Floats


@dataclass(frozen=True)
class Network:
    """A trained autoencoder. `blocks` are the slices of the decoder's output that are one-hot categories."""

    encoder: tuple[Layer, ...]
    decoder: tuple[Layer, ...]
    blocks: tuple[slice, ...]

    def encode(self, matrix: Floats) -> Floats:
        return forward(self.encoder, matrix)

    def decode(self, latent: Floats) -> Floats:
        matrix = forward(self.decoder, latent)
        for block in self.blocks:
            matrix[..., block] = softmax(matrix[..., block])
        return matrix

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            f"{part}.{depth}.{name}": getattr(layer, name)
            for part in ("encoder", "decoder")
            for depth, layer in enumerate(getattr(self, part))
            for name in ("weight", "bias")
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], blocks: tuple[slice, ...]) -> "Network":
        def layers(part: str) -> tuple[Layer, ...]:
            depth = sum(name.startswith(f"{part}.") and name.endswith(".weight") for name in arrays)
            return tuple(Layer(arrays[f"{part}.{k}.weight"], arrays[f"{part}.{k}.bias"]) for k in range(depth))

        return cls(layers("encoder"), layers("decoder"), blocks)


@dataclass(frozen=True)
class Callables:
    """A user's own encoder and decoder: functions between the codec's matrix and a latent matrix."""

    encoder: Callable[[Floats], Any]
    decoder: Callable[[Floats], Any]

    def encode(self, matrix: Floats) -> Floats:
        return np.asarray(self.encoder(matrix), dtype=np.float64)

    def decode(self, latent: Floats) -> Floats:
        flat = latent.reshape(-1, latent.shape[-1])
        decoded = np.asarray(self.decoder(flat), dtype=np.float64)
        return decoded.reshape(*latent.shape[:-1], decoded.shape[-1])


def forward(layers: tuple[Layer, ...], inputs: Floats) -> Floats:
    values = inputs.reshape(-1, inputs.shape[-1])
    for depth, layer in enumerate(layers):
        values = product(values, layer.weight) + layer.bias
        if depth < len(layers) - 1:
            values = np.maximum(values, 0.0)
    return values.reshape(*inputs.shape[:-1], layers[-1].weight.shape[1])


def product(left: Floats, right: Floats) -> Floats:
    """Return `left @ right`, each row bit for bit the same whichever rows are multiplied with it."""
    rows, inner = left.shape
    padded = np.zeros((-(-rows // BLOCK_ROWS) * BLOCK_ROWS, inner))
    padded[:rows] = left
    with on_one_thread():
        blocks = padded.reshape(-1, BLOCK_ROWS, inner) @ right
    return np.asarray(blocks.reshape(len(padded), right.shape[1])[:rows])


def on_one_thread() -> Any:
    """Keep BLAS to one thread: small products gain nothing from several and lose much on a busy machine."""
    return _blas_threads().limit(limits=1)


@contextmanager
def threads_for(rows: int) -> Iterator[None]:
    """Keep all libraries to one thread for a few rows; those that have one are left alone, which takes no time."""
    pools = () if rows > FEW_ROWS else _all_threads(_loaded()).lib_controllers
    before = [(pool, count) for pool in pools if (count := pool.num_threads) not in (None, 1)]
    try:
        for pool, _ in before:
            pool.set_num_threads(1)
        yield
    finally:
        for pool, count in before:
            pool.set_num_threads(count)


def _loaded() -> tuple[bool, ...]:
    return tuple(name in sys.modules for name in ("xgboost", "lightgbm", "torch", "sklearn"))


@cache
def _all_threads(loaded: tuple[bool, ...]) -> Any:
    """Return the controller of all thread pools, a new one once another library is loaded."""
    return ThreadpoolController()


def spread(work: Callable[[int], None], parts: Sequence[int]) -> None:
    """Do each part, in threads where there are several: NumPy releases the interpreter lock in its inner loops."""
    if len(parts) < FEWEST_PARTS:
        for part in parts:
            work(part)
    else:
        list(_workers().map(work, parts))


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores(), thread_name_prefix="fasterce")


def cores() -> int:
    """Return the number of threads to use: FASTERCE_THREADS where set, else the cores available."""
    given = os.environ.get("FASTERCE_THREADS", "")
    if given.isdecimal() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _blas_threads() -> Any:
    return ThreadpoolController().select(user_api="blas")


def softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
