"""The chance of the wanted answer and its slope, for rivals that descend gradients.

A scikit-learn MLP or logistic regression behind a column transformer is differentiated exactly, from its weights. Any
other black box is asked on both sides: a number is moved a tenth of its deviation, a category is switched over. Each
slope counts as one call, for the exact one as well.
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
    """Rectified layers and a logistic end, on an affine function of the encoded row."""

    def __init__(self, problem: Problem, encoding: Encoding, weights: dict[str, np.ndarray]) -> None:
        self.problem = problem
        self.inlet, self.offset = inlet(problem, encoding, weights)
        count = sum(name.startswith("W") for name in weights)
        self.layers = [(weights[f"W{k}"], weights[f"b{k}"]) for k in range(count)]

    def probability(self, row: np.ndarray) -> float:
        return self.value_and_slope(row)[0]

    def value_and_slope(self, row: np.ndarray) -> tuple[float, np.ndarray]:
        self.problem.clock.calls += 1
        self.problem.clock.rows += 1
        value, active = row @ self.inlet + self.offset, []
        for weight, bias in self.layers[:-1]:
            value = value @ weight + bias
            active.append(value > 0)
            value = np.where(active[-1], value, 0.0)
        weight, bias = self.layers[-1]
        score = (value @ weight + bias)[0]
        probability = 0.5 * (1 + np.tanh(score / 2))
        slope = probability * (1 - probability) * weight[:, 0]
        for (weight, _), on in zip(self.layers[-2::-1], reversed(active), strict=True):
            slope = weight @ np.where(on, slope, 0.0)
        return float(probability), self.inlet @ slope


class Differences:
    """Asked of the black box itself: twice a number, once a category, all in one call."""

    def __init__(self, problem: Problem, encoding: Encoding) -> None:
        self.problem, self.encoding = problem, encoding
        self.deviation = problem.codes(problem.X_train).std(axis=0)

    def probability(self, row: np.ndarray) -> float:
        return float(self.problem.ask(self.encoding.codes(row[None]))[0, self.problem.wanted])

    def value_and_slope(self, row: np.ndarray) -> tuple[float, np.ndarray]:
        own = self.encoding.codes(row[None])[0]
        trials, places = [own], []
        for j, block in enumerate(self.encoding.blocks):
            for code, column, weight in self._trials(j, own[j], block):
                trials.append(np.where(np.arange(len(own)) == j, code, own))
                places.append((column, weight))
        chances = self.problem.ask(np.array(trials))[:, self.problem.wanted]
        slope = np.zeros(self.encoding.width)
        for (column, weight), chance in zip(places, chances[1:], strict=True):
            slope[column] += weight * (chance - chances[0])
        return float(chances[0]), slope

    def _trials(self, j: int, own: float, block: slice) -> list[tuple[float, int, float]]:
        """Other codes of a feature, the column each tells about, and what its difference in chance weighs there."""
        if j in self.problem.categorical:
            others = [k for k in range(block.stop - block.start) if k != own]
            return [(float(k), block.start + k, 1.0) for k in others]
        low, high, decimals = self.problem.limits(j)
        step = max(STEP * self.deviation[j], 10.0**-decimals)
        moved = {float(np.clip(np.round(own + way * step, decimals), low, high)) for way in (-1, 1)} - {own}
        return [(code, block.start, self.encoding.scale[j] / (code - own) / len(moved)) for code in moved]


def known_weights(problem: Problem) -> dict[str, np.ndarray] | None:
    """Weights of a smooth black box; where the model is kept elsewhere, from the file its keeper wrote."""
    if problem.far is None:
        return weights_of(problem)
    problem.ask(problem.rows.iloc[:1])
    path = problem.folder / FILE
    return dict(np.load(path)) if path.exists() else None


def weights_of(problem: Problem) -> dict[str, np.ndarray] | None:
    """The last step's layers, and how each code moves what the columns before it give: an affine function, probed."""
    layers = layers_of(problem.model[-1]) if hasattr(problem.model, "steps") else None
    if layers is None:
        return None
    base = problem.codes(problem.X_train.iloc[:1])
    found = {"base": base[0], "start": transformed(problem, base)[0]}
    for j in range(base.shape[1]):
        values = np.array(problem.spec["numeric"][problem.columns[j]][:2]) if j in problem.numeric else None
        codes = np.arange(len(problem.categories(j))) if values is None else values
        trials = np.repeat(base, len(codes), axis=0)
        trials[:, j] = codes
        given = transformed(problem, trials)
        moved = problem.codes(problem.frame(trials))[:, j]
        found[f"move{j}"] = given if values is None else (given[1:] - given[:1]) / ((moved[1] - moved[0]) or 1.0)
    sign = 1 if problem.wanted == 1 else -1
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


def inlet(problem: Problem, encoding: Encoding, weights: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The affine function from this encoding's matrix to what the first layer is given."""
    slopes, offset = np.zeros((encoding.width, len(weights["start"]))), weights["start"].copy()
    for j, block in enumerate(encoding.blocks):
        move = weights[f"move{j}"]
        if j in problem.numeric:
            slopes[block] = move * encoding.scale[j]
            offset += move[0] * (encoding.shift[j] - weights["base"][j])
        else:
            slopes[block] = move - weights["start"]
    return slopes, offset


def save(problem: Problem) -> None:
    """Weights as a file beside the model, for processes that cannot read the model; whole or not at all."""
    weights = weights_of(problem)
    if weights:
        part = problem.folder / f".{FILE}.part.npz"
        np.savez(part, **weights)
        Path(part).replace(problem.folder / FILE)
