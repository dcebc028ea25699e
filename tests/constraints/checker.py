"""A second opinion on rules: one row, one answer, plain Python values, and nothing taken from the implementation.

`violations` lists what an answer does wrong. It knows nothing of the range of the data, which is no rule.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

Values = Mapping[Any, Any]
CLOSE = 1e-9


def violations(row: Values, answer: Values, constraints: Sequence[Any], schema: Any) -> list[str]:
    """What the answer does that the schema or a rule forbids, for this row."""
    features = {feature.name: feature for feature in schema.features}
    found = [f"schema: {text}" for feature in schema.features for text in _schema_violations(feature, row, answer)]
    derived = [constraint.feature for constraint in constraints if type(constraint).__name__ == "Derived"]
    orders = {
        constraint.feature: list(constraint.categories) for constraint in constraints if type(constraint).__name__ == "Order"
    }
    for name, feature in features.items():
        if feature.kind == "categorical" and feature.ordered:
            orders.setdefault(name, list(feature.categories))
    for constraint in constraints:
        kept = CHECKS[type(constraint).__name__](constraint, row, answer, features, orders, derived)
        if not kept:
            found.append(constraint.text)
    return found


def _schema_violations(feature: Any, row: Values, answer: Values) -> list[str]:
    before, after = row[feature.name], answer[feature.name]
    if feature.kind == "categorical":
        wrong = [] if after in feature.categories else [f"{feature.name} is no known category"]
        before, after = feature.categories.index(before), feature.categories.index(after)
    else:
        wrong = []
        if feature.declared and not _within(after, feature.lower, feature.upper):
            wrong.append(f"{feature.name} outside its range")
        if feature.integer and after != before and after != round(after):
            wrong.append(f"{feature.name} not whole")
    if not feature.mutable and after != before:
        wrong.append(f"{feature.name} changed")
    if (feature.direction == "up" and after < before) or (feature.direction == "down" and after > before):
        wrong.append(f"{feature.name} went the wrong way")
    return wrong


def _within(value: float, low: float | None, high: float | None) -> bool:
    """As a column of 32 bits would see it where the value is one."""
    above = low is None or value >= low or np.float32(value) == np.float32(low)
    return above and (high is None or value <= high or np.float32(value) == np.float32(high))


def _level(name: Any, value: Any, orders: Mapping[Any, list[Any]]) -> float:
    if name not in orders:
        return float(value)
    return float(orders[name].index(value)) if value in orders[name] else math.nan


def _frozen(constraint: Any, row: Values, answer: Values, *_: Any) -> bool:
    return all(row[name] == answer[name] for name in constraint.features)


def _one_way(sign: int) -> Callable[..., bool]:
    def kept(constraint: Any, row: Values, answer: Values, features: Any, orders: Any, derived: Any) -> bool:
        return all(
            row[name] == answer[name] or sign * (_level(name, answer[name], orders) - _level(name, row[name], orders)) > 0
            for name in constraint.features
        )

    return kept


def _range(constraint: Any, row: Values, answer: Values, *_: Any) -> bool:
    return _within(answer[constraint.feature], constraint.low, constraint.high)


def _near(constraint: Any, row: Values, answer: Values, *_: Any) -> bool:
    own, change = row[constraint.feature], answer[constraint.feature] - row[constraint.feature]
    slack = CLOSE * max(1.0, abs(own))
    either = [
        most
        for most in (constraint.by, None if constraint.percent is None else abs(own) * constraint.percent / 100)
        if most is not None
    ]
    ups, downs = (
        either + ([] if constraint.up is None else [constraint.up]),
        either + ([] if constraint.down is None else [constraint.down]),
    )
    return all(change <= most + slack for most in ups) and all(-change <= most + slack for most in downs)


def _step(constraint: Any, row: Values, answer: Values, *_: Any) -> bool:
    own, value = row[constraint.feature], answer[constraint.feature]
    if own == value:
        return True
    units = (value - (own if constraint.start == "row" else 0.0)) / constraint.size
    is_single = value in (float(np.float32(value)), float(str(np.float32(value))))
    single = 1e-6 * abs(value) / constraint.size if is_single else 0.0
    return abs(units - round(units)) <= 1e-7 + single


def _allowed(constraint: Any, row: Values, answer: Values, *_: Any) -> bool:
    return answer[constraint.feature] in constraint.categories


def _forbidden(constraint: Any, row: Values, answer: Values, *_: Any) -> bool:
    step = (row[constraint.feature], answer[constraint.feature])
    return step[0] == step[1] or step not in constraint.transitions


def _at_most(constraint: Any, row: Values, answer: Values, features: Any, orders: Any, derived: Any) -> bool:
    return sum(row[name] != answer[name] for name in row if name not in derived) <= constraint.k


def _evaluated(text: str, values: Values) -> float:
    """By Python itself, which a test may do with its own formulas."""
    names = {f"name_{place}": value for place, value in enumerate(values.values())}
    for place, name in enumerate(values):
        text = text.replace(f"`{name}`", f" name_{place} ")
        text = re.sub(rf"(?<![\w`]){re.escape(str(name))}(?![\w`])", f" name_{place} ", text)
    try:
        result = eval(text, {"min": min, "max": max, "abs": abs, "__builtins__": {}}, names)
    except (ZeroDivisionError, OverflowError):
        return math.nan
    return math.nan if isinstance(result, complex) else float(result)


def _require(constraint: Any, row: Values, answer: Values, features: Any, *_: Any) -> bool:
    left, op, right = re.split(r"(<=|>=|==|<|>)", constraint.formula)
    numbers = {name: value for name, value in answer.items() if features[name].kind == "numeric"}
    a, b = _evaluated(left, numbers), _evaluated(right, numbers)
    slack = CLOSE * max(abs(a), abs(b)) * 1.001
    if op == "==":
        coarsest = 0.0
        for name, number in numbers.items():
            moved = {**numbers, name: number + 10.0 ** -features[name].decimals}
            coarsest = max(coarsest, abs((_evaluated(left, moved) - _evaluated(right, moved)) - (a - b)))
        return abs(a - b) <= 0.5 * coarsest * (1 + 1e-6) + slack
    return {"<=": a <= b + slack, ">=": a >= b - slack, "<": a < b, ">": a > b}[op]


def _clause_met(wanted: Any, value: Any) -> bool:
    if isinstance(wanted, tuple):
        return any(value == one or (isinstance(one, float) and np.float32(one) == value) for one in wanted)
    return (wanted.low is None or value >= wanted.low) and (wanted.high is None or value <= wanted.high)


def _if(constraint: Any, row: Values, answer: Values, *_: Any) -> bool:
    asked = all(_clause_met(wanted, answer[name]) for name, wanted in constraint.when)
    return not asked or all(_clause_met(wanted, answer[name]) for name, wanted in constraint.then)


def _together(constraint: Any, row: Values, answer: Values, features: Any, orders: Any, derived: Any) -> bool:
    if row[constraint.leader] == answer[constraint.leader]:
        return constraint.slope is None or row[constraint.follower] == answer[constraint.follower]
    led = _level(constraint.leader, answer[constraint.leader], orders) - _level(
        constraint.leader, row[constraint.leader], orders
    )
    followed = _level(constraint.follower, answer[constraint.follower], orders) - _level(
        constraint.follower, row[constraint.follower], orders
    )
    if constraint.slope is None:
        return led * followed * (1 if constraint.direction == "same" else -1) > 0
    return _rounded_alike(
        row[constraint.follower] + constraint.slope * led, answer[constraint.follower], features[constraint.follower]
    )


def _rounded_alike(exact: float, value: float, feature: Any) -> bool:
    half = 0.5 * 10.0**-feature.decimals
    return abs(exact - value) <= half * (1 + 1e-6) + 2e-7 * max(abs(exact), abs(value))


def _derived(constraint: Any, row: Values, answer: Values, features: Any, *_: Any) -> bool:
    if all(row[name] == answer[name] for name in constraint.inputs):
        return bool(answer[constraint.feature] == row[constraint.feature])
    if isinstance(constraint.formula, str):
        return _rounded_alike(
            _evaluated(constraint.formula, answer_numbers(answer, features)),
            answer[constraint.feature],
            features[constraint.feature],
        )
    (exact,) = constraint.formula(pd.DataFrame([{name: answer[name] for name in constraint.inputs}]))
    if features[constraint.feature].kind == "categorical":
        return bool(exact == answer[constraint.feature])
    return _rounded_alike(float(exact), answer[constraint.feature], features[constraint.feature])


def answer_numbers(answer: Values, features: Any) -> dict[Any, float]:
    return {name: value for name, value in answer.items() if features[name].kind == "numeric"}


CHECKS: dict[str, Callable[..., bool]] = {
    "Frozen": _frozen,
    "OnlyUp": _one_way(1),
    "OnlyDown": _one_way(-1),
    "Range": _range,
    "Near": _near,
    "Step": _step,
    "Allowed": _allowed,
    "Forbidden": _forbidden,
    "Order": lambda *_: True,
    "AtMost": _at_most,
    "Require": _require,
    "If": _if,
    "Together": _together,
    "Derived": _derived,
}
