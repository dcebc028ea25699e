"""Codes as scaled numbers and one-hot columns, and back, for rivals that need the input of a neural network."""

import numpy as np

from benchmarks.rivals.problem import Problem


class Encoding:
    """Each category is a block of columns. `numbers` is "standard" (scaled by mean and deviation of the training rows), a
    range such as (0, 1) to which the limits are scaled, or "raw"."""

    def __init__(self, problem: Problem, numbers: str | tuple[float, float] = "standard") -> None:
        self.problem = problem
        codes = problem.codes(problem.X_train)
        self.shift, self.scale = np.zeros(codes.shape[1]), np.ones(codes.shape[1])
        self.blocks: list[slice] = []
        start = 0
        for j in range(codes.shape[1]):
            width = 1 if j in problem.numeric else len(problem.categories(j))
            self.blocks.append(slice(start, start + width))
            start += width
            if j in problem.numeric:
                self.shift[j], self.scale[j] = self._scaling(j, codes[:, j], numbers)
        self.width = start

    def _scaling(self, j: int, column: np.ndarray, numbers: str | tuple[float, float]) -> tuple[float, float]:
        if numbers == "raw":
            return 0.0, 1.0
        if numbers == "standard":
            return column.mean(), column.std() or 1.0
        low, high, _ = self.problem.spec["numeric"][self.problem.columns[j]]
        scale = ((high - low) or 1.0) / (numbers[1] - numbers[0])
        return low - numbers[0] * scale, scale

    def matrix(self, codes: np.ndarray) -> np.ndarray:
        matrix = np.zeros((len(codes), self.width))
        for j, block in enumerate(self.blocks):
            if j in self.problem.numeric:
                matrix[:, block.start] = (codes[:, j] - self.shift[j]) / self.scale[j]
            else:
                matrix[np.arange(len(codes)), block.start + codes[:, j].astype(np.intp)] = 1.0
        return matrix

    def codes(self, matrix: np.ndarray) -> np.ndarray:
        """Return the nearest valid codes: the largest column of a block, numbers rounded and clipped to their limits."""
        codes = np.empty((len(matrix), len(self.blocks)))
        for j, block in enumerate(self.blocks):
            if j in self.problem.numeric:
                low, high, decimals = self.problem.limits(j)
                number = matrix[:, block.start] * self.scale[j] + self.shift[j]
                codes[:, j] = np.clip(np.round(number, decimals), low, high)
            else:
                codes[:, j] = matrix[:, block].argmax(axis=1)
        return codes

    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the lowest and highest permitted value of every column."""
        low, high = np.zeros(self.width), np.ones(self.width)
        for j in self.problem.numeric:
            least, most, _ = self.problem.limits(j)
            low[self.blocks[j]] = (least - self.shift[j]) / self.scale[j]
            high[self.blocks[j]] = (most - self.shift[j]) / self.scale[j]
        return low, high

    def frozen(self) -> np.ndarray:
        """Return which columns belong to an immutable feature."""
        frozen = np.zeros(self.width, dtype=bool)
        for j in self.problem.immutable:
            frozen[self.blocks[j]] = True
        return frozen
