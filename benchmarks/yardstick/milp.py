"""The nearest counterfactual of a linear model or a ReLU network, by mixed-integer programming (HiGHS through SciPy).

The variables are moves away from the query: numbers go up or down by whole steps of the schema, a category is replaced. Each
unit that may be active or not gets one binary variable, between bounds on its input. The bounds use that all moves together
cost no more than a counterfactual that is already known, which makes most units constant.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from benchmarks.yardstick.cases import Case

# How far beyond the boundary the output must be, first and if the model does not confirm the result.
MARGINS = (1e-6, 1e-4)
RELATIVE_GAP = 1e-6
# Share added to the distance of a known counterfactual, so that tolerances do not exclude it.
SLACK = 1e-3
OPTIMAL, INFEASIBLE = 0, 2


@dataclass(frozen=True)
class Network:
    """Layers as functions of codes.

    Parameters
    ----------
    numbers : ndarray, shape (features, units)
        Weights of the first layer on numbers in their own units; zero rows for categories.
    categories : dict of ndarray, shape (categories, units)
        What each category of a feature adds to the first layer.
    bias : ndarray, shape (units,)
        Of the first layer.
    later : list of (weights, bias)
        The layers after it; ReLU before each. Empty for a linear model.
    """

    numbers: np.ndarray
    categories: dict[int, np.ndarray]
    bias: np.ndarray
    later: list[tuple[np.ndarray, np.ndarray]]

    @classmethod
    def of(cls, case: Case) -> "Network":
        """Read the pipeline of a case: scaler and one-hot encoder, then a linear model or an MLP."""
        layers = _layers(case.model[-1])
        weights, bias = layers[0]
        numeric, features = np.flatnonzero(case.numeric), len(case.numeric)
        numbers, categories, start = np.zeros((features, weights.shape[1])), {}, len(numeric)
        if len(numeric):
            scaler = case.model[0].named_transformers_["standardscaler"]
            numbers[numeric] = weights[: len(numeric)] / scaler.scale_[:, None]
            bias = bias - scaler.mean_ @ numbers[numeric]
        for j in np.flatnonzero(~case.numeric):
            stop = start + len(case.schema.features[j].categories)
            categories[int(j)], start = weights[start:stop], stop
        return cls(numbers, categories, bias, layers[1:])

    def first(self, own: np.ndarray) -> np.ndarray:
        """Return the inputs of the first layer's units for a row of codes."""
        return self.bias + own @ self.numbers + sum(added[int(own[j])] for j, added in self.categories.items())

    def output(self, own: np.ndarray) -> float:
        values = self.first(own)
        for weights, bias in self.later:
            values = np.maximum(values, 0) @ weights + bias
        return float(values[0])


def supports(case: Case) -> bool:
    """Return whether the model of a case can be read."""
    estimator = case.model[-1]
    return hasattr(estimator, "coefs_") or (hasattr(estimator, "coef_") and not hasattr(estimator, "support_"))


def _layers(estimator: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    if hasattr(estimator, "coefs_"):
        if estimator.activation != "relu":
            raise ValueError(f"activation {estimator.activation} is not piecewise linear")
        return list(zip(estimator.coefs_, estimator.intercepts_, strict=True))
    return [(np.reshape(estimator.coef_, (1, -1)).T, np.reshape(estimator.intercept_, 1))]


@dataclass
class Moves:
    """Possible changes of one query, each from 0 to `upper`.

    Parameters
    ----------
    effect : ndarray, shape (moves, units)
        What one unit of each adds to the first layer.
    cost, upper, feature : ndarray, shape (moves,)
    value : ndarray, shape (moves,)
        What one unit adds to a number; for a category its position.
    limits : list of (coefficients by move, upper bound)
        Linear constraints among the moves.
    """

    effect: np.ndarray
    cost: np.ndarray
    upper: np.ndarray
    feature: np.ndarray
    value: np.ndarray
    limits: list[tuple[dict[int, float], float]]

    @classmethod
    def of(cls, case: Case, network: Network, own: np.ndarray, budget: float) -> "Moves":
        """Return the moves whose cost alone is within the budget."""
        found: list[tuple[np.ndarray, float, float, int, float]] = []
        limits: list[tuple[dict[int, float], float]] = []
        for j in range(len(own)):
            if case.numeric[j]:
                starts = [_add_steps(case, network, own, j, way, budget, found, limits) for way in (1, -1)]
                limits.append(({k: 1.0 for k in starts if k is not None}, 1.0))
            elif budget >= 1:
                added, first = network.categories[j], len(found)
                found += [(added[c] - added[int(own[j])], 1.0, 1.0, j, c) for c in range(len(added)) if c != own[j]]
                limits.append((dict.fromkeys(range(first, len(found)), 1.0), 1.0))
        limits = [(row, upper) for row, upper in limits if row]
        if not found:
            return cls(np.zeros((0, len(network.bias))), *np.zeros((4, 0)), limits)
        effect, *rest = zip(*found, strict=True)
        return cls(np.array(effect), *(np.array(part, dtype=float) for part in rest), limits)

    def apply(self, case: Case, own: np.ndarray, amounts: np.ndarray) -> np.ndarray:
        """Return the query after the moves, numbers as multiples of their step."""
        codes = own.copy()
        for k in np.flatnonzero(np.round(amounts)):
            j = int(self.feature[k])
            codes[j] = codes[j] + np.round(amounts[k]) * self.value[k] if case.numeric[j] else self.value[k]
        changed = case.numeric & (codes != own)
        return np.where(changed, np.round(codes * case.scale) / case.scale, codes)

    def most(self, effect: np.ndarray, budget: float) -> np.ndarray:
        """Return the largest total of effects (moves, functions) within the budget: a fractional knapsack per function."""
        gain = np.maximum(effect, 0.0)
        order = np.argsort(-gain / self.cost[:, None], axis=0)
        cost = np.take_along_axis((self.cost * self.upper)[:, None].repeat(gain.shape[1], axis=1), order, axis=0)
        before = np.cumsum(cost, axis=0) - cost
        share = np.clip((budget - before) / np.maximum(cost, 1e-300), 0.0, 1.0)
        return np.asarray((share * np.take_along_axis(gain * self.upper[:, None], order, axis=0)).sum(axis=0))


def _add_steps(
    case: Case,
    network: Network,
    own: np.ndarray,
    j: int,
    way: int,
    budget: float,
    found: list[tuple[np.ndarray, float, float, int, float]],
    limits: list[tuple[dict[int, float], float]],
) -> int | None:
    """Add the steps of a number in one direction.

    From a value between two multiples, a binary move leads to the first one; return its position.
    """
    scale, weight = case.scale[j], network.numbers[j]
    multiple = own[j] * scale
    at_multiple = abs(multiple - round(multiple)) <= 1e-6
    low, high = (end[j] for end in case.grid)
    start = round(multiple) if at_multiple else float(np.ceil(multiple) if way > 0 else np.floor(multiple))
    start = max(start, low) if way > 0 else min(start, high)
    steps = high - start if way > 0 else start - low
    gap = 0.0 if at_multiple else abs(start / scale - own[j])
    unit = 1 / (scale * case.span[j])
    steps = min(steps, np.floor((budget - gap / case.span[j]) / unit + 1e-9))
    if steps < 0 or (at_multiple and steps == 0):
        return None
    first = None if at_multiple else len(found)
    if first is not None:
        found.append((way * gap * weight, gap / case.span[j], 1.0, j, way * gap))
        limits.append(({first + 1: 1.0, first: -steps}, 0.0))
    found.append((way * weight / scale, unit, steps, j, way / scale))
    return first


@dataclass
class Program:
    """A mixed-integer program that is built row by row; every variable is at least 0."""

    cost: list[float]
    upper: list[float]
    integer: list[int]
    rows: list[dict[int, float]]
    low: list[float]
    high: list[float]

    def variable(self, upper: float, *, integer: bool = False) -> int:
        self.cost.append(0.0)
        self.upper.append(upper)
        self.integer.append(int(integer))
        return len(self.cost) - 1

    def limit(self, row: dict[int, float], low: float, high: float) -> None:
        self.rows.append(row)
        self.low.append(low)
        self.high.append(high)

    def solve(self, seconds: float) -> Any:
        matrix = np.zeros((len(self.rows), len(self.cost)))
        for k, row in enumerate(self.rows):
            matrix[k, list(row)] = list(row.values())
        return milp(
            np.array(self.cost),
            integrality=np.array(self.integer),
            bounds=Bounds(0, np.array(self.upper)),
            constraints=LinearConstraint(matrix, np.array(self.low), np.array(self.high)),
            options={"time_limit": seconds, "mip_rel_gap": RELATIVE_GAP},
        )


@dataclass(frozen=True)
class Optimum:
    """The nearest counterfactual; `proven` if there is none nearer, or none at all. `codes` is None if none was found."""

    codes: np.ndarray | None
    proven: bool


def nearest(case: Case, network: Network, query: int, known: float | None, seconds: float) -> Optimum:
    """Return the nearest counterfactual of a query by gower_l1.

    Parameters
    ----------
    query : int
        Position in `case.rows`.
    known : float, optional
        Distance of a counterfactual that is known; none that is farther is looked for.
    seconds : float
        Time limit per program.
    """
    own = case.queries[query]
    budget = len(own) * 2.0 if known is None else known * (1 + SLACK)
    up, bound = _wanted(case, network, query)
    for margin in MARGINS:
        moves = Moves.of(case, network, own, budget)
        if not len(moves.cost):
            return Optimum(None, True)
        program = _program(network, moves, own, budget)
        _reach(program, up, bound, margin)
        result = program.problem.solve(seconds)
        if result.status == INFEASIBLE:
            return Optimum(None, True)
        if result.x is None:
            return Optimum(None, False)
        codes = moves.apply(case, own, result.x[: len(moves.cost)])
        if case.reached(codes[None], np.array([query]))[0]:
            return Optimum(codes, result.status == OPTIMAL)
    return Optimum(None, False)


def _wanted(case: Case, network: Network, query: int) -> tuple[bool, float]:
    """Return whether the output must be above (or below) a bound, and the bound."""
    if case.low is not None:
        return True, case.low
    return network.output(case.queries[query]) <= 0, 0.0


@dataclass
class _Layer:
    """Units as affine functions of variables (units of rows), with bounds: the state while a program is built."""

    problem: Program
    rows: list[dict[int, float]]
    constant: np.ndarray
    low: np.ndarray
    high: np.ndarray


def _program(network: Network, moves: Moves, own: np.ndarray, budget: float) -> _Layer:
    problem = Program([], [], [], [], [], [])
    for cost, upper in zip(moves.cost, moves.upper, strict=True):
        problem.cost[problem.variable(float(upper), integer=True)] = float(cost)
    problem.limit(dict(enumerate(moves.cost)), 0.0, budget)
    for row, upper in moves.limits:
        problem.limit(row, -np.inf, upper)
    constant = network.first(own)
    rows = [{k: float(moves.effect[k, unit]) for k in range(len(moves.cost))} for unit in range(len(constant))]
    layer = _Layer(
        problem, rows, constant, constant - moves.most(-moves.effect, budget), constant + moves.most(moves.effect, budget)
    )
    linear = _Relaxed(moves, budget, moves.effect, moves.effect, constant, constant)
    for weights, bias in network.later:
        layer, linear = _next(layer, linear, weights, bias)
    return layer


@dataclass
class _Relaxed:
    """Linear functions of the moves below and above each unit (moves, units), with constants (units,)."""

    moves: Moves
    budget: float
    lower: np.ndarray
    upper: np.ndarray
    lower_constant: np.ndarray
    upper_constant: np.ndarray

    def next(self, low: np.ndarray, high: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> "_Relaxed":
        """Pass through ReLU, bounded by the line through its ends above and by 0 or the identity below, and one layer."""
        unstable = (low < 0) & (high > 0)
        slope = np.where(unstable, high / np.where(unstable, high - low, 1.0), (low >= 0).astype(float))
        lift = np.where(unstable, -slope * low, 0.0)
        below = np.where(unstable, (high > -low).astype(float), slope)
        upper, upper_constant = self.upper * slope, self.upper_constant * slope + lift
        lower, lower_constant = self.lower * below, self.lower_constant * below
        plus, minus = np.maximum(weights, 0), np.minimum(weights, 0)
        return _Relaxed(
            self.moves,
            self.budget,
            lower @ plus + upper @ minus,
            upper @ plus + lower @ minus,
            lower_constant @ plus + upper_constant @ minus + bias,
            upper_constant @ plus + lower_constant @ minus + bias,
        )

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return (
            self.lower_constant - self.moves.most(-self.lower, self.budget),
            self.upper_constant + self.moves.most(self.upper, self.budget),
        )


def _next(layer: _Layer, linear: _Relaxed, weights: np.ndarray, bias: np.ndarray) -> tuple[_Layer, _Relaxed]:
    """Add ReLU units and the layer after them; bounds are the better of intervals and linear relaxation."""
    outputs = [_relu(layer, unit) for unit in range(len(layer.constant))]
    rows: list[dict[int, float]] = [{} for _ in bias]
    constant = bias.astype(float).copy()
    for unit, (row, fixed) in enumerate(outputs):
        constant += fixed * weights[unit]
        for k, weight in enumerate(weights[unit]):
            for variable, coefficient in row.items():
                rows[k][variable] = rows[k].get(variable, 0.0) + float(weight) * coefficient
    low, high = np.maximum(layer.low, 0), np.maximum(layer.high, 0)
    plus, minus = np.maximum(weights, 0), np.minimum(weights, 0)
    linear = linear.next(layer.low, layer.high, weights, bias)
    least, most = linear.bounds()
    least, most = np.maximum(least, low @ plus + high @ minus + bias), np.minimum(most, high @ plus + low @ minus + bias)
    return _Layer(layer.problem, rows, constant, least, most), linear


def _relu(layer: _Layer, unit: int) -> tuple[dict[int, float], float]:
    """Return the output of a unit as an affine function of variables: zero, its input, or a new variable."""
    row, constant, low, high = layer.rows[unit], float(layer.constant[unit]), float(layer.low[unit]), float(layer.high[unit])
    if high <= 0:
        return {}, 0.0
    if low >= 0:
        return row, constant
    problem = layer.problem
    output, active = problem.variable(high), problem.variable(1.0, integer=True)
    problem.limit({output: 1.0} | {k: -value for k, value in row.items()}, constant, np.inf)
    problem.limit({output: 1.0, active: -low} | {k: -value for k, value in row.items()}, -np.inf, constant - low)
    problem.limit({output: 1.0, active: -high}, -np.inf, 0.0)
    return {output: 1.0}, 0.0


def _reach(layer: _Layer, up: bool, bound: float, margin: float) -> None:
    """Demand an output beyond the bound."""
    offset = bound - float(layer.constant[0])
    if up:
        layer.problem.limit(layer.rows[0], offset + margin, np.inf)
    else:
        layer.problem.limit(layer.rows[0], -np.inf, offset - margin)
