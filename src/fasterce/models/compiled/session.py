"""Backends of a compiled model: ONNX Runtime, in blocks of a fixed number of rows.

A matrix product may round differently for one row and for a thousand. With blocks of one shape and one thread per block, the
prediction for a row does not depend on the other rows. Large batches spread their blocks over a few threads.
"""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Protocol

import numpy as np

from fasterce.latent.runtime import cores
from fasterce.models.adapters.onnx import start_session
from fasterce.typing import Floats, Objects

Inputs = Mapping[str, Objects]
Prepare = Callable[[Floats, int], Inputs]

# More threads do not help: memory bandwidth is the limit.
MOST_THREADS = 4
# Blocks per part: small enough to stay in a core's cache and to keep all threads busy to the end.
PART_BLOCKS = 24
# Blocks up to which one thread is faster than several.
FEW_BLOCKS = 4
# Rows per call of an estimator: a call takes as long as some hundred rows.
ESTIMATOR_BLOCK = 256


class Backend(Protocol):
    """Runs a model; `prepare` makes its inputs from codes, padded to a number of rows."""

    def run(self, prepare: Prepare, codes: Floats) -> Objects: ...


class GraphBackend:
    """One output of an ONNX graph, computed block by block."""

    def __init__(self, graph: bytes, block: int) -> None:
        self.graph = graph
        self.block = block
        self._session = start_session(graph)
        self._output = [self._session.get_outputs()[0].name]

    def __reduce__(self) -> tuple[object, ...]:
        return GraphBackend, (self.graph, self.block)

    def run(self, prepare: Prepare, codes: Floats) -> Objects:
        return in_parts(lambda part: self._part(prepare, part), codes, self.block)

    def _part(self, prepare: Prepare, codes: Floats) -> Objects:
        rows = len(codes)
        padded = -(-rows // self.block) * self.block
        inputs = prepare(codes, padded)
        found = [
            self._session.run(self._output, {name: column[start : start + self.block] for name, column in inputs.items()})[0]
            for start in range(0, padded, self.block)
        ]
        return (found[0] if len(found) == 1 else np.concatenate(found))[:rows]


class EstimatorBackend:
    """Probabilities by the model's last step itself, on blocks of a matrix: for steps that are faster than their graph.

    Rows with a missing value, on which the step may fail, get none.
    """

    def __init__(self, step: Any) -> None:
        self.step = step

    def run(self, prepare: Prepare, codes: Floats) -> Objects:
        padded = -(-len(codes) // ESTIMATOR_BLOCK) * ESTIMATOR_BLOCK
        (matrix,) = prepare(codes, padded).values()
        failed = ~np.isfinite(matrix).all(axis=1)
        matrix[failed] = 0.0
        starts = range(0, padded, ESTIMATOR_BLOCK)
        found = np.concatenate([self.step.predict_proba(matrix[start : start + ESTIMATOR_BLOCK]) for start in starts])
        found[failed] = np.nan
        return np.asarray(found[: len(codes)])


def in_parts(work: Callable[[Floats], Objects], codes: Floats, block: int) -> Objects:
    """Return the outputs for all rows in order; many blocks of rows are spread over the threads."""
    if len(codes) <= FEW_BLOCKS * block:
        return work(codes)
    size = block * min(PART_BLOCKS, -(-len(codes) // (block * threads())))
    parts = [codes[start : start + size] for start in range(0, len(codes), size)]
    return np.concatenate(list(_pool(os.getpid()).map(work, parts)))


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the pool of a process: the threads of a pool do not outlive a fork."""
    return ThreadPoolExecutor(threads(), thread_name_prefix=f"fasterce-compiled-{process}")


@cache
def threads() -> int:
    return min(cores(), MOST_THREADS)
