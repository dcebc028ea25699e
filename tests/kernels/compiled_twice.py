"""A kernel for the tests of the cache."""

from fasterce.kernels.jit import compiled


@compiled
def doubled(value: float) -> float:
    return 2.0 * value
