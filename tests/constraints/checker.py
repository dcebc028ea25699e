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


def violations(row: Values, answer: Values, rules: Sequence[Any], schema: Any) -> list[str]:
    """What the answer does that the schema or a rule forbids, for this row."""
    features = {feature.name: feature for feature in schema.features}
    found = [f"schema: {text}" for feature in schema.features for text in _schema_violations(feature, row, answer)]
    derived = [rule.feature for rule in rules if type(rule).__name__ == "Derived"]
    orders = {rule.feature: list(rule.categories) for rule in rules if type(rule).__name__ == "Order"}
    for name, feature in features.items():
        if feature.kind == "categorical" and feature.ordered:
            orders.setdefault(name, list(feature.categories))
    for rule in rules:
        kept = CHECKS[type(rule).__name__](rule, row, answer, features, orders, derived)
        if not kept:
            found.append(rule.text)
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


def _frozen(rule: Any, row: Values, answer: Values, *_: Any) -> bool:
    return all(row[name] == answer[name] for name in rule.features)


def _one_way(sign: int) -> Callable[..., bool]:
    def kept(rule: Any, row: Values, answer: Values, features: Any, orders: Any, derived: Any) -> bool:
        return all(
            row[name] == answer[name] or sign * (_level(name, answer[name], orders) - _level(name, row[name], orders)) > 0
            for name in rule.features
        )

    return kept


def _range(rule: Any, row: Values, answer: Values, *_: Any) -> bool:
    return _within(answer[rule.feature], rule.low, rule.high)


def _near(rule: Any, row: Values, answer: Values, *_: Any) -> bool:
    own, change = row[rule.feature], answer[rule.feature] - row[rule.feature]
    slack = CLOSE * max(1.0, abs(own))
    either = [most for most in (rule.by, None if rule.percent is None else abs(own) * rule.percent / 100) if most is not None]
    ups, downs = either + ([] if rule.up is None else [rule.up]), either + ([] if rule.down is None else [rule.down])
    return all(change <= most + slack for most in ups) and all(-change <= most + slack for most in downs)


def _step(rule: Any, row: Values, answer: Values, *_: Any) -> bool:
    own, value = row[rule.feature], answer[rule.feature]
    if own == value:
        return True
    units = (value - (own if rule.start == "row" else 0.0)) / rule.size
    single = 1e-6 * abs(value) / rule.size if value == float(np.float32(value)) else 0.0
    return abs(units - round(units)) <= 1e-7 + single


def _allowed(rule: Any, row: Values, answer: Values, *_: Any) -> bool:
    return answer[rule.feature] in rule.categories


def _forbidden(rule: Any, row: Values, answer: Values, *_: Any) -> bool:
    step = (row[rule.feature], answer[rule.feature])
    return step[0] == step[1] or step not in rule.transitions


def _at_most(rule: Any, row: Values, answer: Values, features: Any, orders: Any, derived: Any) -> bool:
    return sum(row[name] != answer[name] for name in row if name not in derived) <= rule.k


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


def _require(rule: Any, row: Values, answer: Values, features: Any, *_: Any) -> bool:
    left, op, right = re.split(r"(<=|>=|==|<|>)", rule.formula)
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


def _if(rule: Any, row: Values, answer: Values, *_: Any) -> bool:
    asked = all(_clause_met(wanted, answer[name]) for name, wanted in rule.when)
    return not asked or all(_clause_met(wanted, answer[name]) for name, wanted in rule.then)


def _together(rule: Any, row: Values, answer: Values, features: Any, orders: Any, derived: Any) -> bool:
    if row[rule.leader] == answer[rule.leader]:
        return rule.slope is None or row[rule.follower] == answer[rule.follower]
    led = _level(rule.leader, answer[rule.leader], orders) - _level(rule.leader, row[rule.leader], orders)
    followed = _level(rule.follower, answer[rule.follower], orders) - _level(rule.follower, row[rule.follower], orders)
    if rule.slope is None:
        return led * followed * (1 if rule.direction == "same" else -1) > 0
    return _rounded_alike(row[rule.follower] + rule.slope * led, answer[rule.follower], features[rule.follower])


def _rounded_alike(exact: float, value: float, feature: Any) -> bool:
    half = 0.5 * 10.0**-feature.decimals
    return abs(exact - value) <= half * (1 + 1e-6) + 2e-7 * max(abs(exact), abs(value))


def _derived(rule: Any, row: Values, answer: Values, features: Any, *_: Any) -> bool:
    if all(row[name] == answer[name] for name in rule.inputs):
        return bool(answer[rule.feature] == row[rule.feature])
    if isinstance(rule.formula, str):
        return _rounded_alike(
            _evaluated(rule.formula, answer_numbers(answer, features)), answer[rule.feature], features[rule.feature]
        )
    (exact,) = rule.formula(pd.DataFrame([{name: answer[name] for name in rule.inputs}]))
    if features[rule.feature].kind == "categorical":
        return bool(exact == answer[rule.feature])
    return _rounded_alike(float(exact), answer[rule.feature], features[rule.feature])


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
