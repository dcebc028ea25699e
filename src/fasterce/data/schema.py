"""Schema: the columns of a table, their values, and how they may change."""

import datetime
import math
import sys
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from html import escape
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from fasterce.constraints import io
from fasterce.constraints.objects import Constraint, End
from fasterce.constraints.validate import as_constraints, check_constraints
from fasterce.data import detect, value_types
from fasterce.data.dtypes import Dtype, plain, sorted_values
from fasterce.data.frames import as_pandas
from fasterce.data.meaning import check_date_format, check_number_format, parsed_date, with_unit
from fasterce.data.review import Advice, SchemaWarning, review
from fasterce.errors import SchemaError, unknown
from fasterce.typing import Category, Floats, Json, JsonObject

Kind = Literal["numeric", "categorical"]
Direction = Literal["any", "up", "down"]
Missing = Literal["never", "stay", "may_appear"]
Preferred = Literal["any", "lower", "higher"]

# The code of a missing number: finite, so that rows can be compared, exact in 32 bits, and larger than any number in `fit`.
MISSING = -(2.0**100)
# Data written with more decimals than this is taken as measured, and proposed with FREE_DIGITS digits of its range.
MOST_DECIMALS = 6
FREE_DIGITS = 4
# The most decimals a file may declare: a 64-bit float has no more.
MOST_PLACES = 320
# Categories and characters shown in the text of a schema.
MOST_CATEGORIES = 8
MOST_SHOWN = 60


# The default factor of changes against a person's interest: they are proposed where others would cost three times as much.
AGAINST_COST = 3.0
# Entries of a feature that are one of several names, and those that are free text.
CHOICES = {"kind": Kind, "direction": Direction, "missing": Missing, "preferred": Preferred}
WORDS = ("label", "unit", "help", "format")


@dataclass(frozen=True)
class Feature:
    """One column: its kind, its values and how it may change.

    Parameters
    ----------
    name : hashable
    kind : {"numeric", "categorical"}
    categories : tuple
        The values of a categorical feature, in order if it is `ordered`.
    ordered : bool
        Whether the categories have an order, lowest first.
    lower, upper : float
        The range of a numeric feature.
    declared : bool
        Whether the user stated the range, so that a row outside it is bad input. An inferred range lets such a row stay
        where it is.
    integer : bool
        Whether values are whole numbers.
    decimals : int
        The precision of proposed values.
    mutable : bool
        Whether the value may change.
    direction : {"any", "up", "down"}
        In which direction it may change.
    missing : {"never", "stay", "may_appear"}
        Whether a value may be missing: it may stay missing or be filled, and it may appear where there was a value.
    value_type : str, default="number"
        What the numbers stand for: "number", "decimal" (`decimal.Decimal`), "date" (counted in days), "datetime" (in
        seconds), "datetime[Europe/Berlin]" (times of that zone, in seconds), "timedelta[D]", "timedelta[s]" or a period such
        as "period[M]". `lower` and `upper` are such counts.
    label : str
        The name for people, as it stands in a sentence; by default the name with spaces.
    unit : str
        The unit of a number, written after it, such as "months"; "month|months" has another word for one.
    help : str
        What the column means, in a sentence.
    format : str
        How numbers are written, such as ",.2f", ".1%" or "d"; by default with `decimals` and separated thousands. For dates
        and times, how they are written and read as text, such as "%d.%m.%Y"; by default year-month-day.
    preferred : {"any", "lower", "higher"}
        Which values are in the person's interest. A change the other way costs more, and is flagged.
    against_cost : float
        The factor, at least 1, by which the cost of a change against `preferred` is multiplied in every distance.
    """

    name: Hashable
    kind: Kind
    categories: tuple[Category, ...] = ()
    ordered: bool = False
    lower: float = -math.inf
    upper: float = math.inf
    declared: bool = False
    integer: bool = False
    decimals: int = 0
    mutable: bool = True
    direction: Direction = "any"
    missing: Missing = "never"
    value_type: str = value_types.NUMBER
    label: str = ""
    unit: str = ""
    help: str = ""
    format: str = ""
    preferred: Preferred = "any"
    against_cost: float = AGAINST_COST

    def __post_init__(self) -> None:
        if not value_types.is_known(self.value_type):
            raise SchemaError(
                "data.unknown_value_type", column=self.name, expected=value_types.NAMES, received=self.value_type
            )
        for entry, choices in CHOICES.items():
            value = getattr(self, entry)
            if value not in get_args(choices):
                raise SchemaError(f"data.unknown_{entry}", column=self.name, expected=get_args(choices), received=value)
        if self.kind == "categorical":
            self._check_categories()
        elif not self.lower <= self.upper:
            raise SchemaError("data.range_reversed", column=self.name, received=(self.lower, self.upper))
        self._check_meaning()

    def _check_meaning(self) -> None:
        for entry in WORDS:
            if not isinstance(getattr(self, entry), str):
                raise SchemaError("data.entry_not_text", column=self.name, entry=entry, received=getattr(self, entry))
        for entry in ("unit", "format"):
            if getattr(self, entry) and not self.numeric:
                raise SchemaError("data.entry_needs_number", column=self.name, entry=entry)
        if self.format and self.has_date_format:
            check_date_format(self.format, self.name)
        else:
            check_number_format(self.format, self.name)
        if self.preferred != "any" and not (self.numeric or (self.ordered and not self.nullable)):
            raise SchemaError("data.unordered_preference", column=self.name, received=self.preferred)
        factor = self.against_cost
        if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 1 <= factor < math.inf:
            raise SchemaError("data.entry_not_a_factor", column=self.name, entry="against_cost", received=factor)

    def _check_categories(self) -> None:
        if not self.categories:
            raise SchemaError("data.no_categories", column=self.name)
        if len(set(self.categories)) != len(self.categories):
            raise SchemaError("data.repeated_categories", column=self.name, received=self.categories)
        if self.direction != "any" and not self.ordered:
            raise SchemaError("data.unordered", column=self.name, direction=self.direction)

    @property
    def numeric(self) -> bool:
        """Whether the feature is a number."""
        return self.kind == "numeric"

    @property
    def is_flag(self) -> bool:
        """Whether the categories are False and True (or 0 and 1), so that formulas can count with them."""
        return self.categories == (False, True)

    @property
    def nullable(self) -> bool:
        """Whether a value may be missing."""
        return self.missing != "never"

    @property
    def missing_code(self) -> float:
        """The code of a missing value; for a categorical feature the one after the last category."""
        return MISSING if self.numeric else float(len(self.categories))

    @property
    def n_codes(self) -> int:
        """The number of codes of a categorical feature."""
        return len(self.categories) + self.nullable

    @property
    def is_time(self) -> bool:
        """Whether values are dates, times, durations or periods."""
        return value_types.is_time(self.value_type)

    @property
    def has_date_format(self) -> bool:
        """Whether `format` is about dates or times, which a file may have as text."""
        return self.value_type == value_types.DATE or value_types.is_datetime(self.value_type)

    def number(self, value: object) -> float:
        """Return a value of a numeric feature, such as a date, as the number that stands for it; NaN if it is none.

        Parameters
        ----------
        value : number, date, time, duration or text

        Returns
        -------
        float
        """
        value = plain(value)
        if isinstance(value, str) and self.format and self.has_date_format:
            value = parsed_date(value, self.format)
        if isinstance(value, float) and math.isinf(value):
            return value
        return value_types.to_number(value, self.value_type)

    def bound(self, end: End) -> float:
        """Return the end of a range as a number; a number is one in the unit of the feature."""
        return float(end) if isinstance(end, (int, float)) else self.number(end)

    def value(self, number: float) -> Any:
        """Return the value a number stands for; an open end of a range stays infinite.

        Parameters
        ----------
        number : float

        Returns
        -------
        number, date, time, duration or period
        """
        if self.value_type == value_types.NUMBER or math.isinf(number):
            return int(number) if self.integer and math.isfinite(number) and number == round(number) else number
        return value_types.to_value(number, self.value_type)

    def text(self, number: float) -> str:
        """Return a number as text, to the precision of the feature; a date or duration as such.

        Parameters
        ----------
        number : float

        Returns
        -------
        str
        """
        if self.value_type == value_types.NUMBER or math.isinf(number):
            return f"{round(number, self.decimals) + 0.0:.15g}"
        return self.written(self.value(number))

    def written(self, value: object) -> str:
        """Return a date, time, duration or period as text, a date by `format`."""
        if self.format and self.has_date_format and isinstance(value, datetime.date):
            return value.strftime(self.format)
        return value_types.as_text(value)

    @property
    def title(self) -> str:
        """The name for people: the label, or the name with spaces."""
        return self.label or str(self.name).replace("_", " ").strip() or str(self.name)

    def with_unit(self, written: str) -> str:
        """Return a written number with its unit."""
        return with_unit(written, self.unit)

    def is_against(self, before: float, after: float) -> bool:
        """Return whether a change between two codes goes against `preferred`."""
        if self.preferred == "any" or self.missing_code in (before, after):
            return False
        return after < before if self.preferred == "higher" else after > before

    def category(self, code: int) -> Category:
        """Return the category of a code, "missing" for a missing one."""
        return self.categories[code] if code < len(self.categories) else "missing"

    def to_dict(self) -> JsonObject:
        """Return plain values for JSON; an open end of a range is None.

        Returns
        -------
        dict
        """
        values = asdict(self) | {"categories": list(self.categories)}
        values = {name: value for name, value in values.items() if name not in MEANING or value != MEANING[name]}
        return values | {bound: None for bound in ("lower", "upper") if math.isinf(values[bound])}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Json]) -> "Feature":
        """Return the feature that `to_dict` described.

        Parameters
        ----------
        fields : dict
            As `to_dict` returns it.

        Returns
        -------
        Feature
        """
        values: JsonObject = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
        for bound, open_end in (("lower", -math.inf), ("upper", math.inf)):
            values[bound] = open_end if values.get(bound) is None else values[bound]
        _check_types(values)
        try:
            return cls(**values)
        except TypeError as error:
            raise SchemaError("data.not_a_feature", error=str(error)) from error


# Entries about meaning, with their defaults: a file holds those that were declared.
MEANING: Mapping[str, Json] = {
    one.name: one.default for one in fields(Feature) if one.name in (*WORDS, "preferred", "against_cost")
}


def _check_types(values: Mapping[str, Json]) -> None:
    """Check the types of fields read from a file; text is not converted to a boolean."""
    name = values.get("name")
    for entry in ("ordered", "declared", "integer", "mutable"):
        check_boolean(values.get(entry, False), name, entry)
    check_decimals(values.get("decimals", 0), name, -MOST_PLACES)
    for entry in ("lower", "upper"):
        if isinstance(values[entry], bool) or not isinstance(values[entry], (int, float)):
            raise SchemaError("data.entry_not_a_number", column=name, entry=entry, received=values[entry])


def check_boolean(value: Json, column: Hashable, entry: str) -> None:
    if not isinstance(value, bool):
        raise SchemaError("data.entry_not_a_boolean", column=column, entry=entry, received=value)


def check_decimals(value: Json, column: Hashable, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST_PLACES:
        raise SchemaError("data.entry_not_decimals", column=column, entry="decimals", received=value)


@dataclass(frozen=True, repr=False)
class Schema:
    """The columns of a table, in order, and the constraints (see `fasterce.constraints`) every counterfactual satisfies.

    Parameters
    ----------
    features : tuple of Feature
    constraints : tuple of Constraint, default=()
    passthrough : sequence, default=()
        Columns of the table that are not features, such as an id or free text: they never change, and the model gets them as
        they are.
    target : object, optional
        The wanted class, or the interval (low, high) of a predicted number: the default target of `explain`.
    unwanted : tuple, default=()
        Classes that are against the person's interest. Of two classes, the other one is wanted.
    outcomes : mapping, optional
        Words for the classes, such as {"bad": "Refused", "good": "Granted"}.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [25, 40, 61], "sex": ["f", "m", "f"], "income": [1.5, 2.25, 3.0]})
    >>> schema = Schema.infer(people, immutable=["sex"], increasing=["age"])
    >>> schema["age"].direction, schema["sex"].mutable, schema["income"].decimals
    ('up', False, 2)
    """

    features: tuple[Feature, ...]
    constraints: tuple[Constraint, ...] = ()
    passthrough: Sequence[Hashable] = ()
    target: Json = None
    unwanted: tuple[Json, ...] = ()
    outcomes: Mapping[Json, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not self.features:
            raise SchemaError("data.empty_schema")
        if isinstance(self.passthrough, str):
            raise SchemaError("data.names_not_a_list", received=self.passthrough)
        object.__setattr__(self, "passthrough", tuple(self.passthrough))
        every = (*self.names, *self.passthrough)
        repeated = [name for name in dict.fromkeys(every) if every.count(name) > 1]
        if repeated:
            raise SchemaError("data.repeated_features", received=repeated)
        object.__setattr__(self, "constraints", as_constraints(self.constraints))
        check_constraints(self.constraints, self.features)
        self._check_outcomes()

    def _check_outcomes(self) -> None:
        """Check the declared outcomes as far as they can be without the model."""
        target = tuple(self.target) if isinstance(self.target, list) else self.target
        object.__setattr__(self, "target", target)
        unwanted = self.unwanted if isinstance(self.unwanted, (list, tuple)) else (self.unwanted,)
        object.__setattr__(self, "unwanted", tuple(unwanted))
        if isinstance(target, tuple) and (len(target) != 2 or not all(map(_is_end, target)) or target == (None, None)):
            raise SchemaError("data.target_not_bounds", option="target", received=self.target)
        if target is not None and target in self.unwanted:
            raise SchemaError("data.wanted_and_unwanted", option="target", received=target)
        words = self.outcomes
        if not isinstance(words, Mapping) or not all(isinstance(word, str) and word.strip() for word in words.values()):
            raise SchemaError("data.outcomes_not_words", option="outcomes", received=words)

    def outcome(self, label: Json) -> str | None:
        """Return the word for a class, None if there is none; a file may have the class as text.

        Parameters
        ----------
        label : class of the model

        Returns
        -------
        str or None
        """
        return self.outcomes.get(label, self.outcomes.get(str(label)))

    def wanted(self, classes: Sequence[Json]) -> Json:
        """Return the declared target among the classes of a model (none for a number), None if none is declared.

        Parameters
        ----------
        classes : sequence
            The classes of the model.

        Returns
        -------
        class, (low, high) or None

        Raises
        ------
        SchemaError
            The declared target is not one of the classes, or not an interval where there are none.
        """
        known = {str(label): label for label in classes}
        unwanted = {str(label) for label in self.unwanted}
        if self.target is None and unwanted and len(classes) == 2:
            left = [label for text, label in known.items() if text not in unwanted]
            return left[0] if len(left) == 1 else None
        if self.target is not None and classes and str(self.target) not in known:
            raise SchemaError("data.target_not_a_class", option="target", expected=list(classes), received=self.target)
        if self.target is not None and not classes and not isinstance(self.target, tuple):
            raise SchemaError("data.target_not_bounds", option="target", received=self.target)
        return known.get(str(self.target), self.target)

    @cached_property
    def has_preferences(self) -> bool:
        """Whether some column has a preferred direction."""
        return any(feature.preferred != "any" for feature in self.features)

    def cost_factors(self) -> Floats | None:
        """Return the factors of the costs of going down and up, shape (2, features); None if no direction is preferred.

        Codes of ordered categories are in their order, so that up and down mean the same as for numbers.

        Returns
        -------
        ndarray of shape (2, features) or None
        """
        if not self.has_preferences:
            return None
        factors = np.ones((2, len(self.features)))
        for j, feature in enumerate(self.features):
            if feature.preferred != "any":
                factors[1 if feature.preferred == "lower" else 0, j] = feature.against_cost
        return factors

    @cached_property
    def names(self) -> tuple[Hashable, ...]:
        """The names of the columns, in order."""
        return tuple(feature.name for feature in self.features)

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, name: Hashable) -> Feature:
        return self.features[self.position(name)]

    def position(self, name: Hashable) -> int:
        """Return the position of a column; the error for an unknown one suggests the nearest name.

        Parameters
        ----------
        name : hashable

        Returns
        -------
        int
        """
        if name in self.passthrough:
            raise SchemaError("data.passthrough_column", column=name)
        try:
            return self.names.index(name)
        except ValueError:
            raise SchemaError(unknown("data.unknown_column", name, self.names)) from None

    def positions(self, names: Iterable[Hashable]) -> list[int]:
        """Return the positions of several columns.

        Parameters
        ----------
        names : iterable

        Returns
        -------
        list of int
        """
        return [self.position(name) for name in names]

    @property
    def nullable_numbers(self) -> list[int]:
        """Positions of the numeric columns whose values may be missing."""
        return [j for j, feature in enumerate(self.features) if feature.numeric and feature.nullable]

    def declare(
        self,
        columns: Mapping[Any, Mapping[str, Json]] | None = None,
        *,
        target: Json = None,
        unwanted: Sequence[Json] = (),
        outcomes: Mapping[Json, str] | None = None,
    ) -> "Schema":
        """Return the schema with more declared about columns and outcomes.

        Parameters
        ----------
        columns : mapping, optional
            By column, entries of `Feature` to set, such as {"duration": {"unit": "months", "preferred": "lower"}}.
        target, unwanted, outcomes : optional
            As in `Schema`; those left out stay as they are.

        Returns
        -------
        Schema

        Examples
        --------
        >>> import pandas as pd
        >>> schema = Schema.infer(pd.DataFrame({"duration": [6, 24], "purpose": ["car", "repairs"]}))
        >>> schema = schema.declare({"duration": {"label": "term", "unit": "months"}}, target="good")
        >>> schema["duration"].title, schema["duration"].with_unit("24"), schema.target
        ('term', '24 months', 'good')
        """
        known = [one.name for one in fields(Feature)]
        features = list(self.features)
        for name, entries in (columns or {}).items():
            for entry in entries:
                if entry not in known:
                    raise SchemaError(unknown("data.unknown_entry_of_column", entry, known, column=name))
            given: JsonObject = {
                entry: tuple(value) if isinstance(value, list) else value for entry, value in entries.items()
            }
            features[self.position(name)] = replace(self[name], **given)
        return replace(
            self,
            features=tuple(features),
            target=self.target if target is None else target,
            unwanted=tuple(unwanted) or self.unwanted,
            outcomes=outcomes or self.outcomes,
        )

    def unconstrained(self) -> "Schema":
        """Return the same columns, free to change in either direction at the same cost, without constraints and target.

        Returns
        -------
        Schema
        """
        free = tuple(replace(f, mutable=True, direction="any", preferred="any") for f in self.features)
        return Schema(free, passthrough=self.passthrough)

    def to_dict(self) -> JsonObject:
        """Return plain values for JSON: the features, and constraints, outcomes and passthrough columns if there are any.

        Returns
        -------
        dict
        """
        described: JsonObject = {"features": [feature.to_dict() for feature in self.features]}
        described |= {"constraints": io.to_dict(self.constraints)} if self.constraints else {}
        described |= {"passthrough": list(self.passthrough)} if self.passthrough else {}
        return described | self.outcomes_to_dict()

    def outcomes_to_dict(self) -> JsonObject:
        """Return what is declared about outcomes as plain values.

        Returns
        -------
        dict
        """
        found: JsonObject = {} if self.target is None else {"target": plain_target(self.target)}
        found |= {"unwanted": [plain(label) for label in self.unwanted]} if self.unwanted else {}
        return found | ({"outcomes": {_key(label): word for label, word in self.outcomes.items()}} if self.outcomes else {})

    @classmethod
    def from_dict(cls, fields: Mapping[str, Json]) -> "Schema":
        """Return the schema that `to_dict` described.

        Parameters
        ----------
        fields : dict
            As `to_dict` returns it.

        Returns
        -------
        Schema
        """
        features = tuple(Feature.from_dict(feature) for feature in fields["features"])
        return cls(
            features,
            io.from_dict(fields.get("constraints", ())),
            tuple(fields.get("passthrough", ())),
            **{name: fields[name] for name in OUTCOMES if name in fields},
        )

    @classmethod
    def infer(
        cls,
        X: object,
        categorical: Sequence[Hashable] | None = None,
        immutable: Sequence[Hashable] | None = None,
        increasing: Sequence[Hashable] | None = None,
        decreasing: Sequence[Hashable] | None = None,
        ranges: Mapping[Hashable, tuple[object, object]] | None = None,
        constraints: Sequence[Constraint] | None = None,
        may_go_missing: Sequence[Hashable] | None = None,
        passthrough: Sequence[Hashable] | None = None,
    ) -> "Schema":
        """Infer kinds, categories, precision and observed ranges from a table.

        Text, pandas categoricals and booleans are categorical; numbers, dates, times and durations are numeric unless
        named in `categorical`. Where the table has missing values they may stay or be filled. Columns that look like an id
        or free text, and empty and constant ones, are passed through unless another parameter names them. What you should
        look at is warned of (`SchemaWarning`), each time with the line to add; `review` returns the same as a list.

        Parameters
        ----------
        X : pandas, Polars or PyArrow table
        categorical : sequence, optional
            Numeric columns to treat as categorical.
        immutable : sequence, optional
            Columns that may not change.
        increasing, decreasing : sequence, optional
            Columns that may only go up, or only down.
        ranges : mapping, optional
            The range (low, high) of numeric columns, as dates for a column of dates. A row outside it is bad input.
        constraints : sequence of Constraint, optional
            See `fasterce.constraints`.
        may_go_missing : sequence, optional
            Columns whose value may become missing.
        passthrough : sequence, optional
            Columns that are not features, in addition to those detected.

        Returns
        -------
        Schema

        Raises
        ------
        SchemaError
            If a name is unknown or a column cannot be numeric or categorical.
        """
        table = as_pandas(X)
        named = {"categorical": categorical, "immutable": immutable, "increasing": increasing, "decreasing": decreasing}
        schema = infer(table, {**named, "may_go_missing": may_go_missing}, ranges, constraints, passthrough)
        for advice in review(table, schema, [name for name in schema.passthrough if name not in (passthrough or ())]):
            warnings.warn(str(advice), SchemaWarning, stacklevel=2)
        return schema

    def review(self, X: object) -> list[Advice]:
        """Return what to check before rows are explained with this schema, each with the code to add.

        Parameters
        ----------
        X : pandas, Polars or PyArrow table
            The training rows.

        Returns
        -------
        list of Advice
        """
        return review(as_pandas(X), self)

    def to_frame(self) -> pd.DataFrame:
        """Return the schema as a table to read: one line per column.

        Returns
        -------
        DataFrame
        """
        lines = [(feature.name, *_described(feature)) for feature in self.features]
        lines += [(name, "passthrough", "", "never", "") for name in self.passthrough]
        return pd.DataFrame(lines, columns=["column", "kind", "values", "change", "missing"])

    def __repr__(self) -> str:
        shown = self.to_frame()
        lines = [
            list(shown.columns),
            *([str(value)[:MOST_SHOWN] for value in line] for line in shown.itertuples(index=False)),
        ]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        return "\n".join([f"Schema of {len(self)} features", *padded, *(constraint.text for constraint in self.constraints)])

    def _repr_html_(self) -> str:
        listed = "".join(f"<li>{escape(constraint.text)}</li>" for constraint in self.constraints)
        table = str(self.to_frame().to_html(index=False, justify="left", border=0))
        return table + (f"<p>Constraints</p><ul>{listed}</ul>" if listed else "")


def _described(feature: Feature) -> tuple[str, str, str, str]:
    """Return kind, values, change and missing values of a feature as text."""
    change = feature.direction if feature.mutable else "never"
    missing = feature.missing if feature.nullable else ""
    if not feature.numeric:
        shown = ", ".join(str(category) for category in feature.categories[:MOST_CATEGORIES])
        left = len(feature.categories) - MOST_CATEGORIES
        kind = "ordered" if feature.ordered else "categorical"
        return kind, f"{shown}, … {left} more" if left > 0 else shown, change, missing
    kind = "whole number" if feature.integer else "number"
    kind = kind if feature.value_type == value_types.NUMBER else feature.value_type
    low, high = (feature.text(end) for end in (feature.lower, feature.upper))
    return kind, f"{low} to {high}{' (declared)' if feature.declared else ''}", change, missing


def infer(
    table: pd.DataFrame,
    named: Mapping[str, Sequence[Hashable] | None] | None = None,
    ranges: Mapping[Hashable, tuple[object, object]] | None = None,
    constraints: Sequence[Constraint] | None = None,
    passthrough: Sequence[Hashable] | None = None,
) -> Schema:
    """Do what `Schema.infer` does, without warnings; `named` are its lists of columns by parameter."""
    check_table(table, "X")
    lists = {name: columns or () for name, columns in (named or {}).items()}
    ranges, passthrough = dict(ranges or {}), passthrough or ()
    for columns in (*lists.values(), ranges, passthrough):
        _check_known(columns, table.columns)
    both = set(lists.get("increasing", ())) & set(lists.get("decreasing", ()))
    if both:
        raise SchemaError("data.both_directions", received=both)
    wanted = {name for columns in (*lists.values(), ranges) for name in columns}
    if clash := sorted(map(str, wanted & set(passthrough))):
        raise SchemaError("data.passthrough_named", received=clash)
    passed = [name for name in table.columns if name in passthrough or (name not in wanted and detect.reason(table[name]))]
    if len(passed) == len(table.columns) and not passthrough:
        # A schema needs at least one feature.
        passed = []
    features = [_infer_column(table[name], lists, ranges.get(name)) for name in table.columns if name not in passed]
    return Schema(tuple(features), as_constraints(constraints), tuple(passed))


def _infer_column(
    column: pd.Series, named: Mapping[str, Sequence[Hashable]], limits: tuple[object, object] | None
) -> Feature:
    name = column.name
    feature = _infer_feature(column, name in named.get("categorical", ()))
    if limits is not None:
        feature = _declare_range(feature, limits)
    missing: Missing = "stay" if bool(column.isna().any()) else "never"
    if name in named.get("may_go_missing", ()):
        missing = "may_appear"
    direction: Direction = "up" if name in named.get("increasing", ()) else "any"
    if name in named.get("decreasing", ()):
        direction = "down"
    return replace(feature, mutable=name not in named.get("immutable", ()), direction=direction, missing=missing)


# What a schema declares about outcomes.
OUTCOMES = ("target", "unwanted", "outcomes")


def plain_target(target: Json) -> Json:
    """Return a target for JSON; the end of an interval may be None."""
    return list(target) if isinstance(target, tuple) else plain(target)


def _key(label: Json) -> Json:
    """Return a class as a key of a JSON object: text, since JSON has no other keys."""
    return label if isinstance(label, str) else str(plain(label))


def _is_end(end: Json) -> bool:
    return end is None or (isinstance(end, (int, float)) and not isinstance(end, bool) and not math.isnan(end))


def check_table(X: pd.DataFrame, option: str) -> None:
    """Check that a table has columns of different names."""
    if X.columns.has_duplicates:
        repeated = list(X.columns[X.columns.duplicated()].unique())
        raise SchemaError("data.repeated_columns", option=option, received=repeated)
    if X.shape[1] == 0:
        raise SchemaError("data.no_columns", option=option)


def _check_known(named: Iterable[Hashable], columns: pd.Index) -> None:
    if isinstance(named, str):
        raise SchemaError("data.names_not_a_list", received=named)
    for name in named:
        if name not in columns:
            raise SchemaError(unknown("data.unknown_column", name, columns))


def _infer_feature(column: pd.Series, as_category: bool) -> Feature:
    if len(column) == 0:
        raise SchemaError("data.no_rows", column=column.name)
    dtype, types = column.dtype, pd.api.types
    value_type = None if as_category else value_types.detect(column)
    if value_type is not None:
        return _infer_numeric(column, value_type)
    if types.is_complex_dtype(dtype):
        raise SchemaError("data.unsupported_dtype", column=column.name, received=str(dtype))
    if as_category or types.is_bool_dtype(dtype) or not types.is_numeric_dtype(dtype):
        return _infer_categorical(column)
    return _infer_numeric(column)


def _infer_categorical(column: pd.Series) -> Feature:
    ordered = False
    values: Iterable[object]
    if isinstance(column.dtype, pd.CategoricalDtype):
        values, ordered = column.cat.categories, bool(column.cat.ordered)
    elif pd.api.types.is_bool_dtype(column.dtype):
        values = [False, True]
    else:
        values = _distinct(column.dropna())
    categories = tuple(plain(value) for value in values)
    for value in categories:
        if not isinstance(value, Category):
            raise SchemaError("data.unsupported_category", column=column.name, received=value, type=type(value).__name__)
    if not categories:
        raise SchemaError("data.all_missing", column=column.name)
    return Feature(column.name, "categorical", categories, ordered)


def _infer_numeric(column: pd.Series, value_type: str = value_types.NUMBER) -> Feature:
    present = column.dropna()
    is_plain = value_type == value_types.NUMBER
    values = present.to_numpy(dtype=np.float64) if is_plain else value_types.to_numbers(present, value_type)
    values = values[np.isfinite(values)]
    if values.size == 0:
        raise SchemaError("data.no_finite_number", column=column.name)
    integer = bool(np.all(values == np.round(values)))
    return Feature(
        column.name,
        "numeric",
        lower=float(values.min()),
        upper=float(values.max()),
        integer=integer,
        decimals=0 if integer else _decimals(values, _rounding(column.dtype)),
        value_type=value_type,
    )


def _rounding(dtype: Dtype) -> float:
    """Return how far, relative to a column's largest value, a written number may be from what its type holds."""
    return 1e-12 if getattr(dtype, "itemsize", 8) > 4 else 2e-7


def _decimals(values: Floats, rounding: float) -> int:
    """Return the decimals the data is written with; for measured floats, four digits of the range."""
    span = (float(values.max()) - float(values.min())) or float(np.abs(values).max()) or 1.0
    slack = rounding * float(np.abs(values).max())
    for decimals in range(1, MOST_DECIMALS + 1):
        if slack > 0.1 * 10.0**-decimals:
            break
        if np.allclose(values, np.round(values, decimals), rtol=0, atol=slack):
            return decimals
    return max(0, FREE_DIGITS - 1 - math.floor(math.log10(min(span, sys.float_info.max))))


def _declare_range(feature: Feature, limits: tuple[object, object]) -> Feature:
    if not feature.numeric:
        raise SchemaError("data.range_of_categories", column=feature.name, received=limits)
    try:
        low, high = (feature.number(limit) for limit in limits)
    except (TypeError, ValueError):
        low = high = math.nan
    if math.isnan(low) or math.isnan(high):
        raise SchemaError("data.not_a_range", column=feature.name, received=limits)
    return replace(feature, lower=low, upper=high, declared=True)


def _distinct(column: pd.Series) -> list[object]:
    """Return the distinct values in order."""
    try:
        return sorted_values(column.unique())
    except TypeError:
        return list(column)
