"""Which rows are wanted: `prediction = 'bad' and age >= 30`, parsed by hand and evaluated column by column.

Names are columns of the input, or `prediction` and `score`, what the model says; a name in backticks is always a column.
A comparison with a missing value is neither true nor false, as in SQL.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fasterce.errors import InputError, unknown_name
from fasterce.streams import cells

PREDICTION, SCORE = "prediction", "score"
LONGEST, DEEPEST = 10_000, 100
TOKEN = re.compile(
    r"""\s*(?:(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
    |(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")|(?P<column>`[^`]+`)|(?P<word>[^\W\d][\w.]*)
    |(?P<sign><=|>=|!=|<>|==|=|<|>|\(|\)|,))""",
    re.VERBOSE,
)
SIGNS = {"==": "=", "<>": "!="}
COMPARED = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
BOOLEANS = {"true": True, "false": False}
EXPECTED = "expected comparisons such as prediction = 'bad' and age >= 30, with and, or, not, in (…), is null"

Column = Callable[["Name"], pa.Array]


@dataclass(frozen=True)
class Name:
    """A column of the input, or what the model says."""

    text: str
    asked: bool


@dataclass(frozen=True)
class Compare:
    name: Name
    sign: str
    value: Any


@dataclass(frozen=True)
class IsNull:
    name: Name


@dataclass(frozen=True)
class Both:
    left: "Node"
    right: "Node"


@dataclass(frozen=True)
class Either:
    left: "Node"
    right: "Node"


@dataclass(frozen=True)
class Not:
    inner: "Node"


Node = Compare | IsNull | Both | Either | Not


def parse(text: str) -> Node:
    """What was typed, as a tree."""
    if not isinstance(text, str) or len(text) > LONGEST:
        got = f"{len(text)} characters" if isinstance(text, str) else repr(text)
        raise InputError(f"where must be a text of at most {LONGEST} characters; got {got}.")
    return _Parser(text).whole()


def names(node: Node) -> set[Name]:
    """All the names it uses."""
    if isinstance(node, (Compare, IsNull)):
        return {node.name}
    return names(node.inner) if isinstance(node, Not) else names(node.left) | names(node.right)


def split(node: Node) -> tuple[Node | None, Node | None]:
    """What can be said of a row before the model is asked, and what only then; both must hold."""
    parts = list(_conjuncts(node))
    asked = [part for part in parts if any(name.asked for name in names(part))]
    return _all([part for part in parts if part not in asked]), _all(asked)


def evaluate(node: Node, column: Column) -> pa.Array:
    """True, false or null for every row."""
    if isinstance(node, Both):
        return pc.and_kleene(evaluate(node.left, column), evaluate(node.right, column))
    if isinstance(node, Either):
        return pc.or_kleene(evaluate(node.left, column), evaluate(node.right, column))
    if isinstance(node, Not):
        return pc.invert(evaluate(node.inner, column))
    array = column(node.name)
    if isinstance(node, IsNull):
        return pc.is_null(array, nan_is_null=True)
    return _compared(node, cells.decoded(array))


def check_types(node: Node, kinds: Mapping[str, pa.DataType], where: str) -> None:
    """Every column must be there and be comparable with what it is compared with."""
    for part in _leaves(node):
        if part.name.asked:
            continue
        if part.name.text not in kinds:
            raise InputError(f"where, in {where}: {unknown_name('column', part.name.text, kinds)}")
        if isinstance(part, Compare):
            _check_comparable(part, kinds[part.name.text])


def check_classes(node: Node, classes: Sequence[Any]) -> Node:
    """The same with the classes a prediction is compared with as the model says them."""
    if isinstance(node, Not):
        return Not(check_classes(node.inner, classes))
    if isinstance(node, (Both, Either)):
        return type(node)(check_classes(node.left, classes), check_classes(node.right, classes))
    if isinstance(node, IsNull) or not node.name.asked or node.name.text != PREDICTION:
        return node
    if node.sign not in ("=", "!="):
        raise InputError(f"where: a prediction that is a class can be = or != one; got {node.sign!r}.")
    meant = [label for label in classes if str(label) == str(node.value)] or [c for c in classes if c == node.value]
    if not meant:
        raise InputError(f"where: {unknown_name('class', node.value, classes)}")
    return Compare(node.name, node.sign, str(meant[0]))


def _conjuncts(node: Node) -> Iterator[Node]:
    if isinstance(node, Both):
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _all(parts: Sequence[Node]) -> Node | None:
    return reduce(Both, parts) if parts else None


def _leaves(node: Node) -> Iterator[Compare | IsNull]:
    if isinstance(node, (Compare, IsNull)):
        yield node
    elif isinstance(node, Not):
        yield from _leaves(node.inner)
    else:
        yield from _leaves(node.left)
        yield from _leaves(node.right)


def _check_comparable(part: Compare, kind: pa.DataType) -> None:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if cells.is_text(inner) or pa.types.is_null(inner):
        return
    if pa.types.is_boolean(inner):
        fits, wanted = isinstance(part.value, bool), "true or false"
    else:
        fits, wanted = isinstance(part.value, (int, float)) and not isinstance(part.value, bool), "a number"
        if not (pa.types.is_integer(inner) or pa.types.is_floating(inner) or pa.types.is_decimal(inner)):
            raise InputError(f"where: column {part.name.text!r} must hold numbers, text or booleans; got {kind}.")
    if not fits:
        raise InputError(f"where: column {part.name.text!r} must be compared with {wanted}; got {part.value!r}.")


def _compared(node: Compare, array: pa.Array) -> pa.Array:
    value, compare = node.value, COMPARED[node.sign]
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.bool_())
    if isinstance(value, str):
        return compare(cells.as_text(array), value)
    if not cells.is_text(array.type):
        plain = array.cast(pa.float64()) if pa.types.is_decimal(array.type) else array
        found = compare(plain, pa.scalar(value))
        return pc.if_else(pc.is_nan(plain), None, found) if pa.types.is_floating(plain.type) else found
    texts = cells.as_text(array)
    if isinstance(value, bool):
        words = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
        known = pc.is_in(words, value_set=pa.array(list(BOOLEANS)))
        return compare(pc.if_else(known, pc.equal(words, "true"), None), value)
    numbers, good = cells.numbers_of(texts)
    return compare(pa.array(numbers, mask=~np.asarray(good)), float(value))


class _Parser:
    """Recursive descent: or, and, not, a comparison or parentheses."""

    def __init__(self, text: str) -> None:
        self.text, self.place, self.depth = text, 0, 0
        self.kind, self.token = "", ""
        self._next()

    def whole(self) -> Node:
        found = self._either()
        if self.kind != "end":
            raise self._wrong()
        return found

    def _either(self) -> Node:
        found = self._both()
        while self._taken("or"):
            found = Either(found, self._both())
        return found

    def _both(self) -> Node:
        found = self._single()
        while self._taken("and"):
            found = Both(found, self._single())
        return found

    def _single(self) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            raise InputError(f"where must be at most {DEEPEST} levels deep; got more.")
        if self._taken("not"):
            found: Node = Not(self._single())
        elif self._taken("("):
            found = self._either()
            self._must(")")
        else:
            found = self._comparison()
        self.depth -= 1
        return found

    def _comparison(self) -> Node:
        name = self._name()
        if self._taken("is"):
            negated = self._taken("not")
            self._must("null")
            return Not(IsNull(name)) if negated else IsNull(name)
        negated = self._taken("not")
        if self._taken("in"):
            equal: list[Node] = [Compare(name, "=", value) for value in self._list()]
            found = reduce(Either, equal)
            return Not(found) if negated else found
        sign = SIGNS.get(self.token, self.token)
        if negated or self.kind != "sign" or sign not in COMPARED:
            raise self._wrong()
        self._next()
        return Compare(name, sign, self._value())

    def _list(self) -> list[Any]:
        self._must("(")
        found = [self._value()]
        while self._taken(","):
            found.append(self._value())
        self._must(")")
        return found

    def _name(self) -> Name:
        kind, token = self.kind, self.token
        if kind not in ("word", "column"):
            raise self._wrong()
        self._next()
        if kind == "column":
            return Name(token[1:-1], asked=False)
        return Name(token, asked=token in (PREDICTION, SCORE))

    def _value(self) -> Any:
        kind, token = self.kind, self.token
        if kind == "number":
            found: Any = int(token) if re.fullmatch(r"[+-]?\d{1,18}", token) else float(token)
        elif kind == "text":
            found = token[1:-1].replace(token[0] * 2, token[0])
        elif kind == "word" and token.lower() in BOOLEANS:
            found = BOOLEANS[token.lower()]
        else:
            hint = f" Text is written in quotes: {token!r}." if kind == "word" else ""
            raise self._wrong(hint)
        self._next()
        return found

    def _taken(self, wanted: str) -> bool:
        taken = self.kind in ("word", "sign") and self.token.lower() == wanted
        if taken:
            self._next()
        return taken

    def _must(self, wanted: str) -> None:
        if not self._taken(wanted):
            raise self._wrong()

    def _next(self) -> None:
        self.start = self.place
        if not self.text[self.place :].strip():
            self.kind, self.token = "end", ""
            return
        found = TOKEN.match(self.text, self.place)
        if found is None:
            self.kind, self.token = "strange", self.text[self.place :].strip()[:20]
            return
        self.place = found.end()
        self.kind, self.token = str(found.lastgroup), found[str(found.lastgroup)]

    def _wrong(self, hint: str = "") -> InputError:
        got = "nothing more" if self.kind == "end" else repr(self.token[:40])
        return InputError(f"where: {EXPECTED}; got {got} at character {self.start + 1} of {self.text[:200]!r}.{hint}")
