"""The probability of the target class and its gradient, for rivals that use gradient descent.

A scikit-learn MLP or logistic regression behind a column transformer is differentiated exactly, from its weights. For any
other black box the gradient is a finite difference: a number is moved by a tenth of its standard deviation in both
directions, a category is switched. Each gradient counts as one call, also an exact one.
"""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rivals.encoding import Encoding
from benchmarks.rivals.problem import Problem

STEP = 0.1
FILE = "network.npz"


def of(problem: Problem, encoding: Encoding) -> Any:
    weights = known_weights(problem)
    return Exact(problem, encoding, weights) if weights else Differences(problem, encoding)


class Exact:
    """ReLU layers and a logistic output, on an affine function of the encoded row."""

    def __init__(self, problem: Problem, encoding: Encoding, weights: dict[str, np.ndarray]) -> None:
        self.problem = problem
        self.input_layer, self.offset = input_layer(problem, encoding, weights)
        count = sum(name.startswith("W") for name in weights)
        self.layers = [(weights[f"W{k}"], weights[f"b{k}"]) for k in range(count)]

    def probability(self, row: np.ndarray) -> float:
        return self.value_and_gradient(row)[0]

    def value_and_gradient(self, row: np.ndarray) -> tuple[float, np.ndarray]:
        self.problem.usage.calls += 1
        self.problem.usage.rows += 1
        value, active = row @ self.input_layer + self.offset, []
        for weight, bias in self.layers[:-1]:
            value = value @ weight + bias
            active.append(value > 0)
            value = np.where(active[-1], value, 0.0)
        weight, bias = self.layers[-1]
        score = (value @ weight + bias)[0]
        probability = 0.5 * (1 + np.tanh(score / 2))
        gradient = probability * (1 - probability) * weight[:, 0]
        for (weight, _), on in zip(self.layers[-2::-1], reversed(active), strict=True):
            gradient = weight @ np.where(on, gradient, 0.0)
        return float(probability), self.input_layer @ gradient


class Differences:
    """Finite differences: two evaluations per number, one per category, all in one model call."""

    def __init__(self, problem: Problem, encoding: Encoding) -> None:
        self.problem, self.encoding = problem, encoding
        self.deviation = problem.codes(problem.X_train).std(axis=0)

    def probability(self, row: np.ndarray) -> float:
        return float(self.problem.predict_proba(self.encoding.codes(row[None]))[0, self.problem.target])

    def value_and_gradient(self, row: np.ndarray) -> tuple[float, np.ndarray]:
        query = self.encoding.codes(row[None])[0]
        candidates, columns = [query], []
        for j, block in enumerate(self.encoding.blocks):
            for code, column, weight in self._candidates(j, query[j], block):
                candidates.append(np.where(np.arange(len(query)) == j, code, query))
                columns.append((column, weight))
        probabilities = self.problem.predict_proba(np.array(candidates))[:, self.problem.target]
        gradient = np.zeros(self.encoding.width)
        for (column, weight), probability in zip(columns, probabilities[1:], strict=True):
            gradient[column] += weight * (probability - probabilities[0])
        return float(probabilities[0]), gradient

    def _candidates(self, j: int, query: float, block: slice) -> list[tuple[float, int, float]]:
        """Return other codes of a feature, each with the column of the gradient it is for and its weight there."""
        if j in self.problem.categorical:
            others = [k for k in range(block.stop - block.start) if k != query]
            return [(float(k), block.start + k, 1.0) for k in others]
        low, high, decimals = self.problem.limits(j)
        step = max(STEP * self.deviation[j], 10.0**-decimals)
        moved = {float(np.clip(np.round(query + way * step, decimals), low, high)) for way in (-1, 1)} - {query}
        return [(code, block.start, self.encoding.scale[j] / (code - query) / len(moved)) for code in moved]


def known_weights(problem: Problem) -> dict[str, np.ndarray] | None:
    """Return the weights of a differentiable model, or None; those of a remote model are in a file its server wrote."""
    if problem.remote is None:
        return weights_of(problem)
    problem.predict_proba(problem.rows.iloc[:1])
    path = problem.folder / FILE
    return dict(np.load(path)) if path.exists() else None


def weights_of(problem: Problem) -> dict[str, np.ndarray] | None:
    """Return the layers of the last step, and the affine function of the codes before it, found by evaluating it."""
    layers = layers_of(problem.model[-1]) if hasattr(problem.model, "steps") else None
    if layers is None:
        return None
    base = problem.codes(problem.X_train.iloc[:1])
    found = {"base": base[0], "start": transformed(problem, base)[0]}
    for j in range(base.shape[1]):
        values = np.array(problem.spec["numeric"][problem.columns[j]][:2]) if j in problem.numeric else None
        codes = np.arange(len(problem.categories(j))) if values is None else values
        candidates = np.repeat(base, len(codes), axis=0)
        candidates[:, j] = codes
        given = transformed(problem, candidates)
        moved = problem.codes(problem.frame(candidates))[:, j]
        found[f"move{j}"] = given if values is None else (given[1:] - given[:1]) / ((moved[1] - moved[0]) or 1.0)
    sign = 1 if problem.target == 1 else -1
    layers[-1] = (sign * layers[-1][0], sign * layers[-1][1])
    for k, (weight, bias) in enumerate(layers):
        found |= {f"W{k}": weight, f"b{k}": bias}
    return found


def layers_of(last: Any) -> list[tuple[np.ndarray, np.ndarray]] | None:
    if getattr(last, "activation", None) == "relu" and getattr(last, "out_activation_", None) == "logistic":
        return list(zip(last.coefs_, last.intercepts_, strict=True))
    if type(last).__name__ == "LogisticRegression" and last.coef_.shape[0] == 1:
        return [(last.coef_.T, last.intercept_)]
    return None


def transformed(problem: Problem, codes: np.ndarray) -> np.ndarray:
    return np.asarray(problem.model[:-1].transform(problem.frame(codes)), dtype=float)


def input_layer(problem: Problem, encoding: Encoding, weights: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the affine function from the matrix of an encoding to the input of the first layer."""
    matrix, offset = np.zeros((encoding.width, len(weights["start"]))), weights["start"].copy()
    for j, block in enumerate(encoding.blocks):
        move = weights[f"move{j}"]
        if j in problem.numeric:
            matrix[block] = move * encoding.scale[j]
            offset += move[0] * (encoding.shift[j] - weights["base"][j])
        else:
            matrix[block] = move - weights["start"]
    return matrix, offset


def save(problem: Problem) -> None:
    """Write the weights to a file beside the model, for processes that cannot read the model."""
    weights = weights_of(problem)
    if weights:
        part = problem.folder / f".{FILE}.part.npz"
        np.savez(part, **weights)
        Path(part).replace(problem.folder / FILE)
