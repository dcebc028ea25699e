"""Review a table and its schema: what to look at before rows are explained, each with the line to add."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fasterce.constraints.formula import FUNCTIONS
from fasterce.constraints.objects import Derived, Frozen, OnlyUp, Require
from fasterce.data import detect
from fasterce.data.dtypes import plain
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
# Texts of a column that are looked at to tell whether they are dates.
SAMPLED_TEXTS = 200
DATE_PATTERN = r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([T ].*)?\s*"
# Rows, and numeric columns, up to which linear identities are searched for.
IDENTITY_ROWS, IDENTITY_COLUMNS = 500, 100
# Most columns a derived column is computed from, and how exact the identity must be, relative to its largest value.
MOST_TERMS, EXACTNESS = 4, 1e-9


class SchemaWarning(UserWarning):
    """The data or the schema has something to look at before rows are explained."""


@dataclass(frozen=True)
class Advice:
    """Something to look at, and the line of Python that would settle it.

    Parameters
    ----------
    problem : Problem
        What was found; `problem.column` is the column.
    line : str
        What to add: a parameter of `Schema.infer`, or a statement.
    remedy : str
        The same for the command line: an option of `fasterce inspect`, or a line of the schema file.
    """

    problem: Problem
    line: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.problem.text()} Add: {self.line}"


def review(table: pd.DataFrame, schema: "Schema", detected: Sequence[Hashable] = ()) -> list[Advice]:
    """Return the advice for a table and its schema, column by column, then about groups of columns.

    `detected` are the passthrough columns that nobody has named.
    """
    found = [one for name in detected for one in _of_passthrough(table[name])]
    for feature in schema.features:
        if feature.name in table.columns:
            found += _of_feature(table[feature.name], feature, schema)
    groups = list(_one_hot_groups(table, schema))
    found += [advice for _, advice in groups]
    return found + list(_identities(table, schema, {name for names, _ in groups for name in names}))


def _of_passthrough(column: pd.Series) -> Iterator[Advice]:
    name, why = column.name, detect.reason(column)
    if _is_date_like(column):
        yield _dates(name)
    elif why is not None:
        yield Advice(
            make_problem(f"review.{why}", column=name), f"passthrough=[{_written(name)}]", f"Add: --passthrough {name}"
        )


def _of_feature(column: pd.Series, feature: "Feature", schema: "Schema") -> Iterator[Advice]:
    name = feature.name
    if not feature.numeric and _is_date_like(column):
        yield _dates(name)
    if detect.has_word(name, OUTCOME_WORDS) and _few_values(column):
        line = f"X = X.drop(columns=[{_written(name)}])"
        yield Advice(make_problem("review.outcome", column=name), line, f"Add: --drop {name}")
    free = feature.mutable and not any(isinstance(c, Frozen) and name in c.columns for c in schema.constraints)
    if free and detect.has_word(name, PROTECTED_WORDS):
        yield Advice(make_problem("review.protected", column=name), f"immutable=[{_written(name)}]", f"Add: --freeze {name}")
    one_way = feature.direction == "up" or any(isinstance(c, OnlyUp) and name in c.columns for c in schema.constraints)
    if free and feature.numeric and not one_way and detect.has_word(name, AGE_WORDS):
        line = f"increasing=[{_written(name)}]"
        yield Advice(make_problem("review.age", column=name), line, f"Add: --increasing {name}")


def _dates(name: Hashable) -> Advice:
    line = f"X[{_written(name)}] = pd.to_datetime(X[{_written(name)}])"
    return Advice(make_problem("review.dates", column=name), line, f"Add: --dates {name}")


def _is_date_like(column: pd.Series) -> bool:
    texts = column.dropna().head(SAMPLED_TEXTS)
    if texts.empty or not all(isinstance(value, str) for value in texts):
        return False
    return bool(texts.astype(str).str.fullmatch(DATE_PATTERN).all())


def _few_values(column: pd.Series) -> bool:
    try:
        return int(column.nunique()) <= detect.LIMITS.many
    except TypeError:
        return False


def _one_hot_groups(table: pd.DataFrame, schema: "Schema") -> Iterator[tuple[list[Hashable], Advice]]:
    """Yield groups of 0/1 columns with one prefix of which exactly one is 1 in every row."""
    flags: dict[str, list[Hashable]] = {}
    for feature in schema.features:
        if feature.name in table.columns and feature.numeric and _is_flag(table[feature.name]):
            flags.setdefault(_prefix(feature.name), []).append(feature.name)
    for prefix, names in flags.items():
        together = table[names].to_numpy(dtype=np.float64).sum(axis=1) if len(names) > 1 else np.zeros(0)
        if len(together) == 0 or (together != 1).any() or _has_constraint(schema, names):
            continue
        formula = f"{' + '.join(quoted(name) for name in names)} == 1"
        line = f'constraints=[Require("{formula}")]'
        remedy = f'Add to the constraints of the file: {{constraint: require, formula: "{formula}"}}'
        yield names, Advice(make_problem("review.one_hot", columns=names, prefix=prefix), line, remedy)


def _prefix(name: Hashable) -> str:
    text = str(name)
    cuts = [text.rfind(mark) for mark in "_=.:- "]
    return text[: max(cuts)] if max(cuts) > 0 else ""


def _is_flag(column: pd.Series) -> bool:
    if not pd.api.types.is_numeric_dtype(column.dtype) or column.isna().any():
        return False
    return bool(column.isin([0, 1]).all())


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
        and pd.api.types.is_numeric_dtype(table[feature.name].dtype)
    ][:IDENTITY_COLUMNS]
    every = table[names].dropna().to_numpy(dtype=np.float64) if len(names) > 1 else np.zeros((0, 0))
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
            line = f'constraints=[Derived({_written(names[k])}, "{formula}")]'
            entry = f'{{constraint: derived, feature: {names[k]}, formula: "{formula}"}}'
            problem = make_problem("review.derived", column=names[k], columns=[name for name, _ in parts])
            yield Advice(problem, line, f"Add to the constraints of the file: {entry}")


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


def quoted(name: Hashable) -> str:
    """Return a column as a formula names it."""
    text = str(name)
    return text if text.isidentifier() and not iskeyword(text) and text not in FUNCTIONS else f"`{text}`"
