"""Formulas over columns, parsed by Python's parser with a short list of what is allowed; nothing is ever executed."""

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from fasterce.errors import SchemaError
from fasterce.typing import Floats

LONGEST, DEEPEST = 20_000, 200
MOST_FACTORS = 64

Interval = tuple[float, float]
Linear = tuple[dict[str, float], float]

EVERYTHING: Interval = (-math.inf, math.inf)
NOTHING: Linear = ({}, 0.0)
OPERATORS: dict[type[ast.AST], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
COMPARISONS: dict[type[ast.AST], str] = {ast.LtE: "<=", ast.GtE: ">=", ast.Lt: "<", ast.Gt: ">", ast.Eq: "=="}
FUNCTIONS = {"min": 2, "max": 2, "abs": 1}
QUOTED = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Node:
    """A number (`op` "number"), a column (`op` "column") or an operation on other nodes."""

    op: str
    args: tuple["Node", ...] = ()
    value: float = 0.0
    column: str = ""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns used, each once, in the order written."""
        own = (self.column,) if self.op == "column" else ()
        return tuple(dict.fromkeys(own + tuple(name for arg in self.args for name in arg.columns)))

    def evaluate(self, columns: Mapping[str, Floats]) -> Floats:
        """Return the value for every row, infinite or NaN where there is none."""
        with np.errstate(all="ignore"):
            return self._evaluate(columns)

    def _evaluate(self, columns: Mapping[str, Floats]) -> Floats:
        if self.op == "number":
            return np.asarray(self.value, dtype=np.float64)
        if self.op == "column":
            return np.asarray(columns[self.column], dtype=np.float64)
        if self.op == "**":
            return _power(self.args[0]._evaluate(columns), self.args[1], columns)
        return np.asarray(OPERATIONS[self.op][0](*(arg._evaluate(columns) for arg in self.args)))

    @cached_property
    def constant(self) -> float | None:
        """The value of a formula without columns, if it is finite."""
        if self.columns:
            return None
        value = float(self.evaluate({}))
        return value if math.isfinite(value) else None

    @cached_property
    def linear(self) -> Linear | None:
        """({column: coefficient}, constant), or None where the formula is not linear."""
        if self.constant is not None:
            return {}, self.constant
        if self.op == "column":
            return {self.column: 1.0}, 0.0
        parts = [arg.linear for arg in self.args]
        if self.op in ("+", "-") and parts[0] is not None and parts[1] is not None:
            return combined(parts[0], parts[1], 1.0 if self.op == "+" else -1.0)
        if self.op == "negative" and parts[0] is not None:
            return combined(NOTHING, parts[0], -1.0)
        if self.op in ("*", "/"):
            return self._scaled(parts)
        return None

    def _scaled(self, parts: list[Linear | None]) -> Linear | None:
        left, right = self.args
        if parts[0] is not None and right.constant is not None and (self.op == "*" or right.constant != 0):
            return combined(NOTHING, parts[0], right.constant if self.op == "*" else 1.0 / right.constant)
        if self.op == "*" and parts[1] is not None and left.constant is not None:
            return combined(NOTHING, parts[1], left.constant)
        return None

    def interval(self, bounds: Mapping[str, Interval]) -> Interval:
        """Return bounds on the value when every column lies within its bounds (possibly too wide)."""
        if self.op == "number":
            return self.value, self.value
        if self.op == "column":
            return bounds.get(self.column, EVERYTHING)
        parts = [arg.interval(bounds) for arg in self.args]
        if self.op == "**":
            return _interval_power(parts[0], self.args[1].constant)
        low, high = OPERATIONS[self.op][1](*parts)
        return EVERYTHING if math.isnan(low) or math.isnan(high) else (low, high)


@dataclass(frozen=True)
class Comparison:
    """Two formulas and the relation between them."""

    left: Node
    op: str
    right: Node

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.left.columns + self.right.columns))

    @cached_property
    def linear(self) -> Linear | None:
        """left - right, where that is linear."""
        if self.left.linear is None or self.right.linear is None:
            return None
        return combined(self.left.linear, self.right.linear, -1.0)

    def possible(self, bounds: Mapping[str, Interval]) -> bool:
        """Return False if no values within these bounds can make it true."""
        (low, high), (other_low, other_high) = self.left.interval(bounds), self.right.interval(bounds)
        slack = 1e-9 * max((abs(end) for end in (low, high, other_low, other_high) if math.isfinite(end)), default=0.0)
        below, above = low <= other_high + slack, high >= other_low - slack
        return {"<=": below, "<": low < other_high, ">=": above, ">": high > other_low, "==": below and above}[self.op]


def combined(first: Linear, second: Linear, factor: float) -> Linear:
    """Return first + factor * second."""
    coefficients = dict(first[0])
    for name, value in second[0].items():
        coefficients[name] = coefficients.get(name, 0.0) + factor * value
    return coefficients, first[1] + factor * second[1]


@lru_cache(maxsize=512)
def parse_formula(text: str) -> Node:
    """Parse a formula such as `weight / height ** 2`."""
    names, body = _parsed(text)
    return build_node(body, names, text)


@lru_cache(maxsize=512)
def parse_comparison(text: str) -> Comparison:
    """Parse a comparison such as `monthly_payment * 12 <= 0.4 * income`."""
    names, body = _parsed(text)
    if not isinstance(body, ast.Compare) or len(body.ops) != 1 or type(body.ops[0]) not in COMPARISONS:
        raise SchemaError("constraints.not_a_comparison", received=text)
    left, right = (build_node(side, names, text) for side in (body.left, body.comparators[0]))
    found = Comparison(left, COMPARISONS[type(body.ops[0])], right)
    if not found.columns:
        raise SchemaError("constraints.comparison_without_column", received=text)
    return found


def _parsed(text: str) -> tuple[dict[str, str], ast.expr]:
    """Return the expression with names in backticks replaced by placeholders, and what these stand for."""
    if not isinstance(text, str):
        raise SchemaError("constraints.formula_not_text", received=text)
    if len(text) > LONGEST:
        raise SchemaError("constraints.formula_too_long", expected=LONGEST, received=len(text))
    names: dict[str, str] = {}

    def plain_name(match: re.Match[str]) -> str:
        placeholder = f"quoted_column_{len(names)}_"
        names[placeholder] = match.group(1)
        return f" {placeholder} "

    if "quoted_column_" in text:
        raise SchemaError("constraints.reserved_name", received=text)
    try:
        return names, ast.parse(QUOTED.sub(plain_name, text).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        single_equals = re.search(r"(?<![<>=!])=(?!=)", text)
        raise SchemaError(f"constraints.formula_{'single_equals' if single_equals else 'syntax'}", received=text) from error


def build_node(tree: ast.expr, names: Mapping[str, str], text: str, depth: int = 0) -> Node:
    """Convert a tree of Python's parser; `names` are the columns that placeholders stand for."""
    if depth > DEEPEST:
        raise SchemaError("constraints.formula_too_deep", expected=DEEPEST, received=text)

    def inner(*trees: ast.expr) -> tuple[Node, ...]:
        return tuple(build_node(part, names, text, depth + 1) for part in trees)

    match tree:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as value):
            return Node("number", value=_finite(value, text))
        case ast.Name(id=name):
            return Node("column", column=names.get(name, name))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return Node(OPERATORS[type(op)], inner(left, right))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Node("negative", inner(operand))
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return inner(operand)[0]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return _call(name, inner(*args), text)
    raise SchemaError("constraints.formula_syntax", received=text)


def _call(name: str, args: tuple[Node, ...], text: str) -> Node:
    if (name == "abs" and len(args) != 1) or len(args) < FUNCTIONS[name]:
        raise SchemaError("constraints.formula_arguments", received=text)
    first, *others = args
    for other in others:
        first = Node(name, (first, other))
    return first if others else Node(name, (first,))


def _finite(value: float, text: str) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise SchemaError("constraints.formula_number", received=text)
    return number


def _power(base: Floats, exponent: Node, columns: Mapping[str, Floats]) -> Floats:
    """Compute whole powers by multiplication, so that a row alone and in a batch gives the same bits."""
    times = exponent.constant
    if times is not None and times == round(times) and abs(times) <= MOST_FACTORS:
        result = np.ones_like(base)
        for _ in range(abs(int(times))):
            result = result * base
        return np.asarray(1.0 / result if times < 0 else result)
    if times == 0.5:
        return np.asarray(np.sqrt(base))
    return np.asarray(np.power(*np.broadcast_arrays(base, exponent._evaluate(columns))).copy())


def _interval_power(base: Interval, times: float | None) -> Interval:
    if times is None or times != round(times) or not 0 <= times <= MOST_FACTORS:
        return EVERYTHING
    try:
        ends = sorted(end**times for end in base)
    except OverflowError:
        return EVERYTHING
    if times % 2 == 0 and base[0] < 0 < base[1]:
        return (0.0 if times else 1.0), ends[1]
    return ends[0], ends[1]


def _products(a: Interval, b: Interval) -> Interval:
    products = [0.0 if 0.0 in (x, y) else x * y for x in a for y in b]
    return min(products), max(products)


def _quotients(a: Interval, b: Interval) -> Interval:
    if b[0] <= 0 <= b[1]:
        return EVERYTHING
    return _products(a, (1.0 / b[1], 1.0 / b[0]))


def _absolute(a: Interval) -> Interval:
    ends = sorted(abs(end) for end in a)
    return (0.0 if a[0] <= 0 <= a[1] else ends[0]), ends[1]


# Every operation but powers: on arrays, and on intervals.
OPERATIONS: dict[str, tuple[np.ufunc, Callable[..., Interval]]] = {
    "+": (np.add, lambda a, b: (a[0] + b[0], a[1] + b[1])),
    "-": (np.subtract, lambda a, b: (a[0] - b[1], a[1] - b[0])),
    "*": (np.multiply, _products),
    "/": (np.divide, _quotients),
    "negative": (np.negative, lambda a: (-a[1], -a[0])),
    "min": (np.minimum, lambda a, b: (min(a[0], b[0]), min(a[1], b[1]))),
    "max": (np.maximum, lambda a, b: (max(a[0], b[0]), max(a[1], b[1]))),
    "abs": (np.abs, _absolute),
}
