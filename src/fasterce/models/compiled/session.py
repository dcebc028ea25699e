"""A compiled model at run time: ONNX Runtime in blocks of a fixed number of rows.

A matrix product may round differently for one row and for a thousand; with the block's shape always the same and one
thread a block, a row's answer does not depend on its company. Larger questions spread their blocks over a few threads.
"""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fasterce.latent.runtime import cores
from fasterce.profile import Floats

Inputs = Mapping[str, NDArray[Any]]
Prepare = Callable[[Floats, int], Inputs]

SILENT = 4
MOST_THREADS = 4
# Parts are small enough to stay in a core's cache and to keep all threads busy to the end.
PART_BLOCKS = 24
FEW_BLOCKS = 4
FOREST_ROWS = 128


class Engine(Protocol):
    """A compiled model; `prepare` makes its inputs from codes, padded to a number of rows."""

    def answer(self, prepare: Prepare, codes: Floats) -> NDArray[Any]: ...


class GraphEngine:
    """One output of an ONNX graph, computed block by block."""

    def __init__(self, graph: bytes, block: int) -> None:
        self.graph = graph
        self.block = block
        self._session = _start(graph)
        self._output = [self._session.get_outputs()[0].name]

    def __reduce__(self) -> tuple[Any, ...]:
        return GraphEngine, (self.graph, self.block)

    def answer(self, prepare: Prepare, codes: Floats) -> NDArray[Any]:
        return in_parts(lambda part: self._part(prepare, part), codes, self.block)

    def _part(self, prepare: Prepare, codes: Floats) -> NDArray[Any]:
        rows = len(codes)
        padded = -(-rows // self.block) * self.block
        inputs = prepare(codes, padded)
        found = [
            self._session.run(self._output, {name: column[start : start + self.block] for name, column in inputs.items()})[0]
            for start in range(0, padded, self.block)
        ]
        return (found[0] if len(found) == 1 else np.concatenate(found))[:rows]


class ForestEngine:
    """A large scikit-learn forest, tree by tree: too many nodes to convert in a moment or to walk row by row.

    Trees compare one row at a time and are summed in their order, so here too a row's answer is its own.
    """

    def __init__(self, forest: Any) -> None:
        self.forest = forest
        self._trees = [(grown.tree_, grown.tree_.value[:, 0, :]) for grown in forest.estimators_]

    def __reduce__(self) -> tuple[Any, ...]:
        return ForestEngine, (self.forest,)

    def answer(self, prepare: Prepare, codes: Floats) -> NDArray[Any]:
        return in_parts(lambda part: self._part(prepare, part), codes, FOREST_ROWS)

    def _part(self, prepare: Prepare, codes: Floats) -> NDArray[Any]:
        (matrix,) = prepare(codes, len(codes)).values()
        chances = np.zeros((len(codes), len(self.forest.classes_)))
        for tree, leaves in self._trees:
            chances += leaves[tree.apply(matrix)]
        return chances / len(self._trees)


def in_parts(work: Callable[[Floats], NDArray[Any]], codes: Floats, block: int) -> NDArray[Any]:
    """The answers to all rows in order; many blocks of rows are spread over the threads."""
    if len(codes) <= FEW_BLOCKS * block:
        return work(codes)
    size = block * min(PART_BLOCKS, -(-len(codes) // (block * threads())))
    parts = [codes[start : start + size] for start in range(0, len(codes), size)]
    return np.concatenate(list(_pool(os.getpid()).map(work, parts)))


def _start(graph: bytes) -> Any:
    import onnxruntime  # noqa: PLC0415 - an extra

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = SILENT
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """One pool a process: the threads of a pool do not survive a fork."""
    return ThreadPoolExecutor(threads(), thread_name_prefix=f"fasterce-twin-{process}")


@cache
def threads() -> int:
    return min(cores(), MOST_THREADS)
