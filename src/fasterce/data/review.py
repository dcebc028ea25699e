"""Review a table and its schema: what to check before rows are explained, each with the code to add."""

import json
import warnings
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fasterce.constraints.formula import FUNCTIONS
from fasterce.constraints.objects import Derived, Frozen, OnlyUp, Require
from fasterce.data import detect, one_hot, value_types
from fasterce.data.date_text import date_format, is_ambiguous, written_call
from fasterce.data.dtypes import EXACT, plain
from fasterce.data.number_text import NumberText, number_text
from fasterce.errors import Problem, make_problem
from fasterce.typing import Floats

if TYPE_CHECKING:
    from fasterce.data.schema import Feature, Schema

OUTCOME_WORDS = frozenset(
    {"target", "label", "outcome", "class", "y", "response", "survived", "churn", "churned", "defaulted"}
)
PROTECTED_WORDS = frozenset(
    {
        *("sex", "gender", "race", "ethnicity", "ethnic", "nationality", "religion", "disability", "disabled", "pregnant"),
        *("marital", "orientation", "birthplace", "caste", "foreign"),
    }
)
AGE_WORDS = frozenset({"age"})
# Rows, and numeric columns, up to which linear identities are searched for.
IDENTITY_ROWS, IDENTITY_COLUMNS = 500, 100
# Most columns a derived column is computed from, and how exact the identity must be, relative to its largest value.
MOST_TERMS, EXACTNESS = 4, 1e-9
# Findings that the warning of `fit` lists.
MOST_FINDINGS = 6
# Columns of a sum before it is written in parts.
LONGEST_SUM = 50


class SchemaWarning(UserWarning):
    """The data or the schema should be checked before rows are explained."""


@dataclass(frozen=True)
class Advice:
    """A finding to check, and the line of Python that resolves it.

    Parameters
    ----------
    problem : Problem
        What was found; `problem.column` is the column.
    code : str
        What to add: an entry of the list `parameter`, or a statement.
    remedy : str
        The same for the command line: an option of `fasterce inspect`, or a line of the schema file.
    parameter : str, default=""
        The parameter of `Schema.infer` that takes the entry; empty for a statement.
    """

    problem: Problem
    code: str
    remedy: str
    parameter: str = ""

    @property
    def line(self) -> str:
        """The parameter of `Schema.infer`, or the statement, to add."""
        return f"{self.parameter}=[{self.code}]" if self.parameter else self.code

    def __str__(self) -> str:
        return f"{self.problem.text()} Add: {self.line}"


def combined(advice: Sequence[Advice]) -> str:
    """Return the code that resolves all of the advice: imports, statements, then one call of `Schema.infer`."""
    statements = list(dict.fromkeys(one.code for one in advice if not one.parameter))
    entries: dict[str, list[str]] = {}
    for one in advice:
        if one.parameter:
            entries.setdefault(one.parameter, []).append(one.code)
    classes = sorted({code.partition("(")[0] for code in entries.get("constraints", ())})
    imports = ["from fasterce import Schema"]
    imports += [f"from fasterce.constraints import {', '.join(classes)}"] if classes else []
    imports = ["import pandas as pd", *imports] if any("pd." in code for code in statements) else imports
    constraints = entries.pop("constraints", [])
    given = [f"    {parameter}=[{', '.join(codes)}]," for parameter, codes in entries.items()]
    given += ["    constraints=[", *(f"        {code}," for code in constraints), "    ],"] if constraints else []
    return "\n".join([*imports, *statements, "schema = Schema.infer(", "    X,", *given, ")"])


def warn_of_columns(advice: Sequence[Advice], stacklevel: int = 2) -> None:
    """Give one warning for a schema that was inferred by `fit`: what to check, and the code that resolves all of it.

    `stacklevel` as in `warnings.warn`, counted from the caller.
    """
    # Findings about several columns come first: they make counterfactuals impossible most often.
    ordered = sorted(advice, key=lambda one: one.problem.column is not None)
    findings = [f"- {one.problem.text()}" for one in ordered[:MOST_FINDINGS]]
    left = len(advice) - len(findings)
    findings += [f"- and {left} more"] if left > 0 else []
    head, settled = (make_problem(f"review.{code}").text() for code in ("inferred", "inferred_lines"))
    text = "\n".join([head, *findings, settled, "", combined(advice), ""])
    warnings.warn(text, SchemaWarning, stacklevel=stacklevel + 1)


def review(table: pd.DataFrame, schema: "Schema", detected: Sequence[Hashable] = ()) -> list[Advice]:
    """Return the advice for a table and its schema, column by column, then about groups of columns.

    `detected` are the passthrough columns that were not named by the user.
    """
    found = [one for name in detected for one in _of_passthrough(table[name])]
    for feature in schema.features:
        if feature.name in table.columns:
            found += _of_feature(table[feature.name], feature, schema)
    groups = list(_one_hot_groups(table, schema))
    found += [advice for _, advice in groups]
    return found + list(_identities(table, schema, {name for names, _ in groups for name in names}))


def passthrough_reason(column: pd.Series) -> str:
    """Return why a column of the training rows is passed through, in words."""
    if date_format(column) is not None:
        return "holds dates as text"
    if number_text(column) is not None:
        return "holds numbers as text"
    return detect.REASONS.get(detect.reason(column) or "", "is declared")


def _of_passthrough(column: pd.Series) -> Iterator[Advice]:
    name, why = column.name, detect.reason(column)
    typed = _of_text(column)
    if typed is not None:
        yield typed
    elif why is not None:
        yield Advice(make_problem(f"review.{why}", column=name), _written(name), f"Add: --passthrough {name}", "passthrough")


def _of_feature(column: pd.Series, feature: "Feature", schema: "Schema") -> Iterator[Advice]:
    name = feature.name
    typed = None if feature.numeric else _of_text(column)
    if typed is not None:
        yield typed
    if detect.has_word(name, OUTCOME_WORDS) and _few_values(column):
        line = f"X = X.drop(columns=[{_written(name)}])"
        yield Advice(make_problem("review.outcome", column=name), line, f"Add: --drop {name}")
    free = feature.mutable and not any(isinstance(c, Frozen) and name in c.columns for c in schema.constraints)
    if free and detect.has_word(name, PROTECTED_WORDS):
        yield Advice(make_problem("review.protected", column=name), _written(name), f"Add: --freeze {name}", "immutable")
    one_way = feature.direction == "up" or any(isinstance(c, OnlyUp) and name in c.columns for c in schema.constraints)
    if free and feature.numeric and not one_way and detect.has_word(name, AGE_WORDS):
        yield Advice(make_problem("review.age", column=name), _written(name), f"Add: --increasing {name}", "increasing")


def _of_text(column: pd.Series) -> Advice | None:
    """Return what to do about a column of text, or of objects, that holds dates or numbers."""
    if column.dtype == np.dtype(object) and _are_numbers(column.dropna()):
        return _numbers(column.name, NumberText(), "objects")
    format, numbers = date_format(column), number_text(column)
    if format is not None:
        return _dates(column, format)
    return None if numbers is None else _numbers(column.name, numbers)


def _are_numbers(present: pd.Series) -> bool:
    return len(present) > 0 and all(
        isinstance(value, Real) and not isinstance(value, bool) and abs(float(value)) <= EXACT for value in present
    )


def _numbers(name: Hashable, found: NumberText, code: str = "") -> Advice:
    code = code or ("decimal_comma" if found.decimal == "," else "thousands" if found.thousands else "numbers")
    line = found.written_call(_written(name))
    remedy = f"Pass: {found.options}" if found.options else f"In the file, column {name} must hold numbers only"
    return Advice(make_problem(f"review.{code}", column=name), line, remedy)


def _dates(column: pd.Series, format: str) -> Advice:
    name = column.name
    code = "review.dates_either" if is_ambiguous(column, format) else "review.dates"
    line = written_call(_written(name), column, format)
    return Advice(make_problem(code, column=name, format=format), line, f"Add: --dates {name}")


def _few_values(column: pd.Series) -> bool:
    try:
        return int(column.nunique()) <= detect.LIMITS.many
    except TypeError:
        return False


def _one_hot_groups(table: pd.DataFrame, schema: "Schema") -> Iterator[tuple[tuple[Hashable, ...], Advice]]:
    """Yield the groups of 0/1 and boolean columns that are one category, and the constraint that keeps them so."""
    usable = [
        feature.name
        for feature in schema.features
        if feature.name in table.columns and (feature.numeric or feature.is_flag) and "`" not in str(feature.name)
    ]
    for group in one_hot.find_groups(table, usable):
        if _has_constraint(schema, group.names):
            continue
        formula = f"{_sum(group.names)} {'==' if group.exactly_one else '<='} 1"
        entry = f"{{constraint: require, formula: {_yaml(formula)}}}"
        problem = make_problem(f"review.one_hot{'' if group.exactly_one else '_dropped'}", columns=list(group.names))
        remedy = f"Add to the constraints of the file: {entry}"
        yield group.names, Advice(problem, f"Require({_text(formula)})", remedy, "constraints")


def _sum(names: Sequence[Hashable]) -> str:
    """Return the sum of columns as a formula; a long one in parts, since the depth of formulas is limited."""
    if len(names) <= LONGEST_SUM:
        return " + ".join(quoted(name) for name in names)
    parts = [names[start : start + LONGEST_SUM] for start in range(0, len(names), LONGEST_SUM)]
    return " + ".join(f"({_sum(part)})" for part in parts)


def _has_constraint(schema: "Schema", names: Sequence[Hashable]) -> bool:
    """Return whether a formula of the schema is about all of these columns already."""
    about = [set(map(str, one.columns)) for one in schema.constraints if isinstance(one, (Derived, Require))]
    return any(set(map(str, names)) <= columns for columns in about)


def _identities(table: pd.DataFrame, schema: "Schema", in_groups: set[Hashable]) -> Iterator[Advice]:
    """Yield columns that are exact linear combinations of a few others."""
    names = [
        feature.name
        for feature in schema.features
        if feature.name in table.columns
        and feature.numeric
        and feature.lower < feature.upper
        and feature.name not in in_groups
        and "`" not in str(feature.name)
    ][:IDENTITY_COLUMNS]
    every = _complete_rows(table, schema, names) if len(names) > 1 else np.zeros((0, 0))
    rows = every[:IDENTITY_ROWS]
    if len(rows) <= 2 * len(names) + 2 or not np.isfinite(every).all():
        return
    basis: list[int] = []
    # A column with a large spread is more often the sum than a part of it.
    for k in np.argsort(rows.std(axis=0), kind="stable"):
        terms = _combination(rows[:, basis], rows[:, k])
        if terms is None:
            basis.append(int(k))
            continue
        parts = [(names[basis[place]], weight) for place, weight in enumerate(terms[:-1]) if weight]
        holds = _is_exact(every[:, basis], every[:, k], terms)
        if holds and 0 < len(parts) <= MOST_TERMS and not _has_constraint(schema, [names[k], *(name for name, _ in parts)]):
            formula = _formula(parts, float(terms[-1]))
            code = f"Derived({_written(names[k])}, {_text(formula)})"
            entry = f"{{constraint: derived, feature: {_yaml(names[k])}, formula: {_yaml(formula)}}}"
            problem = make_problem("review.derived", column=names[k], columns=[name for name, _ in parts])
            yield Advice(problem, code, f"Add to the constraints of the file: {entry}", "constraints")


def _complete_rows(table: pd.DataFrame, schema: "Schema", names: Sequence[Hashable]) -> Floats:
    """Return the rows without a missing value as numbers; decimals, dates and durations are counted as in formulas."""
    columns = [
        table[name].to_numpy(dtype=np.float64, na_value=np.nan)
        if schema[name].value_type == value_types.NUMBER and pd.api.types.is_numeric_dtype(table[name].dtype)
        else value_types.to_numbers(table[name], schema[name].value_type)
        for name in names
    ]
    every: Floats = np.column_stack(columns)
    return every[~np.isnan(every).any(axis=1)]


def _combination(columns: Floats, target: Floats) -> Floats | None:
    """Return weights and offset of the columns that give the target exactly, None if there are none."""
    matrix = np.column_stack([columns, np.ones(len(target))])
    scale = np.abs(matrix).max(axis=0)
    scale[scale == 0] = 1.0
    weights = np.linalg.lstsq(matrix / scale, target, rcond=None)[0] / scale
    weights = _rounded(weights, np.abs(matrix).max(axis=0), float(np.abs(target).max()))
    return weights if _is_exact(columns, target, weights) else None


def _is_exact(columns: Floats, target: Floats, weights: Floats) -> bool:
    error = np.abs(columns @ weights[:-1] + weights[-1] - target).max()
    return bool(error <= EXACTNESS * max(1.0, float(np.abs(target).max())))


def _rounded(weights: Floats, sizes: Floats, size: float) -> Floats:
    """Return weights as a person would write them; those without an effect are 0."""
    tidy = np.array([float(f"{weight:.6g}") for weight in weights])
    return np.where(np.abs(tidy) * sizes <= 1e-7 * max(1.0, size), 0.0, tidy)


def _formula(parts: Sequence[tuple[Hashable, float]], offset: float) -> str:
    written = ""
    for name, weight in sorted(parts, key=lambda part: part[1] < 0):
        factor = "" if abs(weight) == 1 else f"{abs(weight):.6g} * "
        sign = (" - " if weight < 0 else " + ") if written else ("-" if weight < 0 else "")
        written += f"{sign}{factor}{quoted(name)}"
    return written + (f" {'-' if offset < 0 else '+'} {abs(offset):.6g}" if offset else "")


def _written(name: Hashable) -> str:
    """Return a column as Python writes it."""
    return repr(plain(name))


def _text(formula: str) -> str:
    """Return a formula as Python writes it, in double quotes where it has none itself."""
    return repr(formula) if '"' in formula or "\\" in formula else f'"{formula}"'


def _yaml(value: Hashable) -> str:
    """Return a name or a formula as a YAML file has it."""
    return json.dumps(plain(value), ensure_ascii=False, default=str)


def quoted(name: Hashable) -> str:
    """Return a column as a formula names it."""
    text = str(name)
    return text if text.isidentifier() and not iskeyword(text) and text not in FUNCTIONS else f"`{text}`"
