"""Filters: conditions on rows in the language of formulas, such as `prediction == 'bad' and amount / duration > 800`.

A filter is made of comparisons between columns, values and formulas, of `in (...)` and `is null`, joined by and, or, not.
`=`, `<>`, `null`, `true`, `false` and keywords in capitals are accepted as in SQL. `prediction` and `score` are what the
model returns for a row; a name in backticks is always a column. The text is parsed by Python's parser and never executed.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from fasterce.constraints.formula import COMPARISONS, FUNCTIONS, Comparison, build_node
from fasterce.errors import InputError, SchemaError, unknown
from fasterce.typing import Category

PREDICTION, SCORE = "prediction", "score"
LONGEST, DEEPEST = 10_000, 100
TOKEN = re.compile(
    r"""(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")|(?P<column>`[^`]+`)|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<word>[^\W\d][\w.]*)|(?P<sign><>|[<>=!]=|=)""",
    re.VERBOSE,
)
SIGNS = {"=": "==", "<>": "!="}
KEYWORDS = {"null": "None", "true": "True", "false": "False"} | {word: word for word in ("and", "or", "not", "in", "is")}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class ColumnName:
    """A column of the input or, `from_model`, the prediction or score of the row."""

    text: str
    from_model: bool = False


@dataclass(frozen=True)
class Compare:
    """A column compared with a value."""

    name: ColumnName
    op: str
    value: Category


@dataclass(frozen=True)
class CompareFormulas:
    """Two formulas compared; `names` are the columns by the names they have in the formulas."""

    comparison: Comparison
    names: tuple[tuple[str, ColumnName], ...]


@dataclass(frozen=True)
class IsNull:
    """Whether a value is missing."""

    name: ColumnName


@dataclass(frozen=True)
class _Both:
    left: "Condition"
    right: "Condition"


class And(_Both):
    """Both parts hold."""


class Or(_Both):
    """At least one part holds."""


@dataclass(frozen=True)
class Not:
    inner: "Condition"


Leaf = Compare | CompareFormulas | IsNull
Condition = Leaf | And | Or | Not


def parse_filter(text: str) -> Condition:
    """Parse a filter.

    Raises
    ------
    InputError
        If it is anything else than comparisons joined by and, or, not.

    Examples
    --------
    >>> parse_filter("age >= 30")
    Compare(name=ColumnName(text='age', from_model=False), op='>=', value=30)
    """
    if not isinstance(text, str) or len(text) > LONGEST:
        raise InputError("constraints.filter_too_long", option="where", expected=LONGEST)
    return _FilterParser(text).parse()


def leaves(condition: Condition) -> Iterator[Leaf]:
    """Yield the comparisons and null checks of a filter."""
    if isinstance(condition, Leaf):
        yield condition
    elif isinstance(condition, Not):
        yield from leaves(condition.inner)
    else:
        yield from leaves(condition.left)
        yield from leaves(condition.right)


def names_of(condition: Condition) -> set[ColumnName]:
    """Return all names a filter uses."""
    found: set[ColumnName] = set()
    for leaf in leaves(condition):
        found |= {name for _, name in leaf.names} if isinstance(leaf, CompareFormulas) else {leaf.name}
    return found


def split(condition: Condition) -> tuple[Condition | None, Condition | None]:
    """Return the part that the input decides and the part that needs the model; both must hold."""
    by_input, by_model = list[Condition](), list[Condition]()
    for part in _conjuncts(condition):
        (by_model if any(name.from_model for name in names_of(part)) else by_input).append(part)
    return (reduce(And, by_input) if by_input else None), (reduce(And, by_model) if by_model else None)


def _conjuncts(condition: Condition) -> Iterator[Condition]:
    if isinstance(condition, And):
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    else:
        yield condition


def with_classes(condition: Condition, classes: Sequence[object]) -> Condition:
    """Return the filter with the classes that predictions are compared with as text of the model's own labels."""
    if isinstance(condition, Not):
        return Not(with_classes(condition.inner, classes))
    if isinstance(condition, (And, Or)):
        return type(condition)(with_classes(condition.left, classes), with_classes(condition.right, classes))
    prediction = ColumnName(PREDICTION, from_model=True)
    if isinstance(condition, IsNull) or prediction not in names_of(condition):
        return condition
    if isinstance(condition, CompareFormulas) or condition.op not in ("==", "!="):
        op = condition.comparison.op if isinstance(condition, CompareFormulas) else condition.op
        raise InputError("constraints.filter_class_comparison", option="where", received=op)
    value = condition.value
    meant = [label for label in classes if str(label) == str(value)] or [label for label in classes if label == value]
    if not meant:
        raise InputError(unknown("constraints.filter_unknown_class", value, classes, option="where"))
    return Compare(condition.name, condition.op, str(meant[0]))


class _FilterParser:
    """Translate a filter to Python's grammar, parse it, and convert the tree; names become placeholders."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: dict[str, ColumnName] = {}

    def parse(self) -> Condition:
        try:
            tree = ast.parse(TOKEN.sub(self._translate, self.text).strip(), mode="eval").body
            return self._condition(tree, 0)
        except (SyntaxError, RecursionError, MemoryError, SchemaError) as error:
            raise self._not_a_filter() from error

    def _translate(self, match: re.Match[str]) -> str:
        kind, token = match.lastgroup, match.group()
        if kind == "text":
            return repr(token[1:-1].replace(token[0] * 2, token[0]))
        if kind == "number":
            return repr(int(token) if token.isdigit() and len(token) <= 18 else float(token))
        if kind == "sign":
            return SIGNS.get(token, token)
        if kind == "word" and token.lower() in KEYWORDS:
            return f" {KEYWORDS[token.lower()]} "
        if kind == "word" and token in FUNCTIONS and self.text[match.end() :].lstrip().startswith("("):
            return token
        placeholder = f"name_{len(self.names)}_"
        quoted = kind == "column"
        self.names[placeholder] = ColumnName(token[1:-1]) if quoted else ColumnName(token, token in (PREDICTION, SCORE))
        return f" {placeholder} "

    def _condition(self, tree: ast.expr, depth: int) -> Condition:
        if depth > DEEPEST:
            raise InputError("constraints.filter_too_deep", option="where", expected=DEEPEST)
        match tree:
            case ast.BoolOp(op=op, values=values):
                return reduce(And if isinstance(op, ast.And) else Or, (self._condition(part, depth + 1) for part in values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Not(self._condition(operand, depth + 1))
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                pairs = zip([left, *comparators], ops, comparators, strict=False)
                return reduce(And, (self._leaf(first, op, second) for first, op, second in pairs))
        raise self._not_a_filter()

    def _leaf(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Condition:
        name = self._name(left)
        if isinstance(op, (ast.Is, ast.IsNot)):
            if name is None or not (isinstance(right, ast.Constant) and right.value is None):
                raise self._not_a_filter()
            return IsNull(name) if isinstance(op, ast.Is) else Not(IsNull(name))
        if isinstance(op, (ast.In, ast.NotIn)):
            listed = right.elts if isinstance(right, (ast.Tuple, ast.List)) else [right]
            values = [value for value in map(_literal, listed) if value is not None]
            if name is None or not values or len(values) < len(listed):
                raise self._not_a_filter()
            equal: list[Condition] = [Compare(name, "==", value) for value in values]
            return reduce(Or, equal) if isinstance(op, ast.In) else Not(reduce(Or, equal))
        return self._comparison(left, "!=" if isinstance(op, ast.NotEq) else COMPARISONS[type(op)], right)

    def _comparison(self, left: ast.expr, op: str, right: ast.expr) -> Condition:
        for side, other, sign in ((left, right, op), (right, left, MIRRORED.get(op, op))):
            name, value = self._name(side), _literal(other)
            if name is not None and value is not None:
                return Compare(name, sign, value)
        comparison = Comparison(build_node(left, {}, self.text), op, build_node(right, {}, self.text))
        if not comparison.columns or not set(comparison.columns) <= set(self.names):
            raise self._not_a_filter()
        return CompareFormulas(comparison, tuple((column, self.names[column]) for column in comparison.columns))

    def _name(self, tree: ast.expr) -> ColumnName | None:
        return self.names.get(tree.id) if isinstance(tree, ast.Name) else None

    def _not_a_filter(self) -> InputError:
        return InputError("constraints.not_a_filter", option="where", received=self.text)


def _literal(tree: ast.expr) -> Category | None:
    """Return the value of a literal, None for anything else."""
    match tree:
        case ast.Constant(value=str() | bool() | int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=ast.Constant(value=int() | float() as value)):
            if not isinstance(value, bool):
                return -value if isinstance(sign, ast.USub) else value
    return None
