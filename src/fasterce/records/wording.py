"""Explanations as sentences for the person concerned, in words that can be replaced.

A template is filled by names alone: `{feature}` is looked up, nothing is evaluated, and what is filled in is not read again.
"""

import json
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from fasterce.data.meaning import with_unit
from fasterce.data.schema import Feature, Schema
from fasterce.errors import InputError, unknown
from fasterce.explanation import ALREADY_TARGET, FOUND, INVALID_INPUT, MODEL_ERROR, NONE_FOUND, STOPPED, Change, Explanation
from fasterce.io import documents
from fasterce.options import Bounds
from fasterce.search.target import ANY_OTHER
from fasterce.viz import formatting

Changes = list[list[Change]]
Labels = Mapping[Hashable, str]

CLASS, OTHER, CHANCE, NUMBER = "class", "any other", "chance", "number"
PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
WITHOUT_RESULT = (INVALID_INPUT, MODEL_ERROR, STOPPED, NONE_FOUND)
# By part, the placeholders it may have.
PLACEHOLDERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("found", "found_other"), ("changes", "target", "prediction")),
    **dict.fromkeys(("already", "already_other"), ("target", "prediction")),
    **dict.fromkeys(("found_chance", "found_number"), ("changes", "target", "prediction", "score", "bounds")),
    **dict.fromkeys(("already_chance", "already_number"), ("target", "prediction", "score", "bounds")),
    "change": ("feature", "from", "to"),
    "becomes_known": ("feature", "to"),
    "becomes_missing": ("feature", "from"),
    "or_else": ("sentence",),
    **dict.fromkeys(("none_found", "stopped", "invalid_input", "model_error"), ("reason", "prediction")),
    **dict.fromkeys(("exactly", "at_least", "at_most", "between"), ("low", "high")),
}


@dataclass(frozen=True)
class Wording:
    """The sentences of a text.

    Parameters
    ----------
    found, found_other, found_chance, found_number : str
        A counterfactual, for a target that is a class, any other class, a probability or a number.
    already, already_other, already_chance, already_number : str
        A row that already has the target.
    none_found, stopped, invalid_input, model_error : str
        A row without a counterfactual, by its status.
    change, becomes_known, becomes_missing : str
        One change: of a value, from a missing value, to a missing value.
    or_else : str
        The second and further counterfactuals.
    comma, last_comma : str
        Separators between changes.
    exactly, at_least, at_most, between : str
        Bounds of a probability or number.
    decimal_point, thousands : str
        The marks in numbers.
    yes, no : str
        Booleans.
    features, values, classes : mapping
        Labels of columns, of categories by column, and of classes. Those not given come from the schema.
    units, formats : mapping
        Units and formats of numeric columns. Those not given come from the schema.

    Examples
    --------
    >>> Wording(change="{feature} = {to}").change
    '{feature} = {to}'
    """

    found: str = "If {changes}, the decision would be {target}."
    found_other: str = "If {changes}, the decision would no longer be {prediction}."
    found_chance: str = "If {changes}, the chance of {target} would be {score}."
    found_number: str = "If {changes}, the prediction would be {score}."
    already: str = "The decision already is {prediction}."
    already_other: str = "The decision already is {prediction}."
    already_chance: str = "The chance of {target} already is {score}."
    already_number: str = "The prediction already is {score}."
    none_found: str = "{reason}"
    stopped: str = "{reason}"
    invalid_input: str = "This could not be explained: {reason}"
    model_error: str = "This could not be explained: {reason}"
    change: str = "{feature} were {to} instead of {from}"
    becomes_known: str = "{feature} were known and {to}"
    becomes_missing: str = "{feature} were not known instead of {from}"
    or_else: str = "Or: {sentence}"
    comma: str = ", "
    last_comma: str = " and "
    exactly: str = "exactly {low}"
    at_least: str = "at least {low}"
    at_most: str = "at most {high}"
    between: str = "between {low} and {high}"
    decimal_point: str = "."
    thousands: str = ","
    yes: str = "true"
    no: str = "false"
    features: Labels = field(default_factory=dict)
    values: Mapping[Hashable, Labels] = field(default_factory=dict)
    classes: Labels = field(default_factory=dict)
    units: Labels = field(default_factory=dict)
    formats: Labels = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in fields(self):
            given = getattr(self, part.name)
            if part.name in ("features", "values", "classes", "units", "formats"):
                _check_labels(part.name, given)
            elif not isinstance(given, str):
                raise InputError("records.part_not_text", part=part.name, received=type(given).__name__)
            elif part.name in PLACEHOLDERS:
                _check_template(part.name, given)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> "Wording":
        """Make a wording from the parts that differ from the default.

        Parameters
        ----------
        given : mapping
            Parts by name.

        Returns
        -------
        Wording
        """
        if not isinstance(given, Mapping):
            raise InputError("records.not_a_wording", received=type(given).__name__)
        known = [part.name for part in fields(cls)]
        for name in given:
            if name not in known:
                raise InputError(unknown("records.unknown_part", name, known))
        return cls(**given)

    def to_dict(self) -> dict[str, Any]:
        """Return the parts that differ from the default, as plain values for JSON.

        Returns
        -------
        dict
        """
        usual = {part.name: {} if part.default is MISSING else part.default for part in fields(self)}
        return {name: _by_text(getattr(self, name)) for name in usual if getattr(self, name) != usual[name]}

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Wording":
        """Load a wording from a file.

        Parameters
        ----------
        path : path
            A .json, .yaml or .yml file.

        Returns
        -------
        Wording
        """
        return cls.from_dict(documents.read(path, "wording"))

    def with_schema(self, schema: Schema) -> "Wording":
        """Return the wording, completed by the labels, units, formats and outcomes of a schema.

        Parameters
        ----------
        schema : Schema
            Supplies what the wording does not define.

        Returns
        -------
        Wording
        """
        # The last result is kept: every call of `make` needs it, and to check a wording takes longer than to use it.
        known: tuple[Schema, Wording] | None = self.__dict__.get("_merged")
        if known is None or known[0] is not schema:
            merged = self._merged_with(schema)
            object.__setattr__(merged, "_merged", (schema, merged))
            known = (schema, merged)
            object.__setattr__(self, "_merged", known)
        return known[1]

    def _merged_with(self, schema: Schema) -> "Wording":
        declared = {
            "features": {feature.name: feature.label for feature in schema.features if feature.label},
            "units": {feature.name: feature.unit for feature in schema.features if feature.unit},
            "formats": {
                feature.name: feature.format for feature in schema.features if feature.format and not feature.is_time
            },
            "classes": dict(schema.outcomes),
        }
        own = {part: {str(key): label for key, label in getattr(self, part).items()} for part in declared}
        merged = {part: {str(key): label for key, label in labels.items()} | own[part] for part, labels in declared.items()}
        found: dict[str, Any] = {part: labels for part, labels in merged.items() if labels}
        return replace(self, **found)

    def fill(self, part: str, **values: str) -> str:
        """Return one part with its placeholders filled."""

        def filled(found: re.Match[str]) -> str:
            return found[0][0] if found[1] is None else values[found[1]]

        return PLACEHOLDER.sub(filled, getattr(self, part))

    def number(self, written: str) -> str:
        """Replace decimal point and thousands separators of a number."""
        return written.translate({ord(","): self.thousands, ord("."): self.decimal_point})

    def label(self, value: object) -> str:
        """Return the label of a class."""
        return _label(self.classes, value) or self._plain(value)

    def feature(self, name: object) -> str:
        """Return the label of a column."""
        return _label(self.features, name) or formatting.text(name)

    def _plain(self, value: object) -> str:
        if isinstance(value, (bool, np.bool_)):
            return self.yes if value else self.no
        return formatting.text(value)

    def before_and_after(self, feature: Feature, change: Change) -> tuple[str, str]:
        """Return both values of a change, with enough decimals to tell them apart."""
        if feature.numeric:
            format = _label(self.formats, feature.name) or ""
            written = feature if feature.format == format else replace(feature, format=format)
            before, (after,) = formatting.values(written, change.before, [change.after])
            unit = _label(self.units, feature.name) or ""
            known = [with_unit(self.number(value), unit) for value in (before, after)]
            return known[0], known[1]
        labels = _label(self.values, feature.name) or {}
        before, after = (_label(labels, value) or self._plain(value) for value in (change.before, change.after))
        return before, after

    def describe(self, feature: Feature, change: Change) -> str:
        """Return one change as part of a sentence."""
        label = self.feature(feature.name)
        before, after = self.before_and_after(feature, change)
        if change.before is None:
            return self.fill("becomes_known", feature=label, to=after)
        if change.after is None:
            return self.fill("becomes_missing", **{"feature": label, "from": before})
        return self.fill("change", **{"feature": label, "from": before, "to": after})

    def join(self, parts: Sequence[str]) -> str:
        """Join parts of a sentence, such as "a, b and c"."""
        return self.last_comma.join([self.comma.join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)

    def bounds(self, low: float | None, high: float | None, chance: bool) -> str:
        """Return a target interval in words."""
        low, high = (None if end is None or np.isinf(end) else end for end in (low, high))
        ends = {name: "" if end is None else self.score(float(end), chance) for name, end in (("low", low), ("high", high))}
        if low is None:
            return self.fill("at_most", **ends)
        if high is None:
            return self.fill("at_least", **ends)
        return self.fill("exactly" if low == high else "between", **ends)

    def score(self, value: float, chance: bool) -> str:
        """Return a chance in per cent, or a number."""
        return self.number(formatting.percent(value) if chance else formatting.predicted(value))


WordingLike = Wording | Mapping[str, Any] | None


def as_wording(template: WordingLike) -> Wording:
    """Return a `Wording`, given one, a dictionary or None."""
    if template is None:
        return _default()
    return template if isinstance(template, Wording) else Wording.from_dict(template)


@cache
def _default() -> Wording:
    return Wording()


def text(explanation: Explanation, row: int = 0, template: WordingLike = None) -> str:
    """Return what has to change in the row at a position, in a sentence.

    Parameters
    ----------
    explanation : Explanation
    row : int, default 0
        Position of the row.
    template : Wording or dict, optional
        Other texts than the default.

    Returns
    -------
    str
    """
    if not -len(explanation) <= row < len(explanation):
        raise InputError("records.not_a_row", option="row", most=len(explanation) - 1, received=row)
    return _Writer(explanation, as_wording(template), explanation.all_changes()).row(row % len(explanation))


def texts(explanation: Explanation, template: WordingLike = None, changes: Changes | None = None) -> list[str]:
    """Return the text of every row, in order; `changes` are those of `Explanation.all_changes`, if they are known.

    Parameters
    ----------
    explanation : Explanation
    template : Wording or dict, optional
        Other texts than the default.
    changes : list, optional
        Those of `Explanation.all_changes`, if they are known.

    Returns
    -------
    list of str
    """
    writer = _Writer(explanation, as_wording(template), explanation.all_changes() if changes is None else changes)
    return [writer.row(row) for row in range(len(explanation))]


def reason_text(explanation: Explanation, row: int) -> str:
    """Return the reason of a row without its position, which depends on the other rows of the call."""
    if not explanation.problems:
        return str(explanation.reason.iloc[row])
    return " ".join(problem.without_row().text() for problem in explanation.problems[row])


def target_kind(target: object, target_score: Bounds | None) -> str:
    """Return what is wanted of a row: a number, a probability, any other class, or a class."""
    if isinstance(target, tuple):
        return NUMBER
    if target_score is not None:
        return CHANCE
    return OTHER if isinstance(target, str) and target == ANY_OTHER else CLASS


class _Writer:
    """Writes the texts of one explanation; what is the same for all rows is looked up once."""

    def __init__(self, explanation: Explanation, wording: Wording, changes: Changes) -> None:
        self.changes = changes
        self.explanation = explanation = explanation.in_pandas()
        self.wording = wording.with_schema(explanation.table.schema)
        self.features = {feature.name: feature for feature in explanation.table.schema.features}
        self.score = explanation.arrays.score.tolist()
        self.status = explanation.status.tolist()
        self.prediction, self.target = explanation.prediction.tolist(), explanation.target.tolist()
        every = np.arange(len(explanation) + 1)
        self.start = np.searchsorted(explanation.arrays.query, every).tolist()
        self.own_score = [np.nan] * len(explanation) if explanation.score is None else explanation.score.tolist()
        self.target_score: Bounds | None = explanation.options.get("target_score")

    def row(self, row: int) -> str:
        status = self.status[row]
        if status in WITHOUT_RESULT:
            reason = reason_text(self.explanation, row)
            return self.wording.fill(status, reason=reason, prediction=self._prediction(row))
        if status == ALREADY_TARGET:
            return self._sentence("already", row, "", self.own_score[row])
        found = []
        for k in range(self.start[row], self.start[row + 1]):
            changes = [self.wording.describe(self.features[change.feature], change) for change in self.changes[k]]
            found.append(self._sentence(FOUND, row, self.wording.join(changes), self.score[k]))
        return " ".join(found[:1] + [self.wording.fill("or_else", sentence=sentence) for sentence in found[1:]])

    def _sentence(self, part: str, row: int, changes: str, score: float) -> str:
        kind, wording = target_kind(self.target[row], self.target_score), self.wording
        values = {"changes": changes, "prediction": self._prediction(row), "target": self._target(row)}
        if kind in (CHANCE, NUMBER):
            low, high = self.target[row] if self.target_score is None else self.target_score
            values |= {"score": wording.score(score, kind == CHANCE), "bounds": wording.bounds(low, high, kind == CHANCE)}
        suffix = {CLASS: "", OTHER: "_other", CHANCE: "_chance", NUMBER: "_number"}[kind]
        return wording.fill(part + suffix, **values)

    def _prediction(self, row: int) -> str:
        prediction = self.prediction[row]
        if isinstance(self.target[row], tuple) and not pd.isna(prediction):
            return self.wording.score(float(prediction), chance=False)
        return "" if prediction is None else self.wording.label(prediction)

    def _target(self, row: int) -> str:
        target = self.target[row]
        return "" if target is None or isinstance(target, tuple) else self.wording.label(target)


def _by_text(value: object) -> object:
    return {str(key): _by_text(label) for key, label in value.items()} if isinstance(value, Mapping) else value


def _label(labels: Mapping[Any, Any], value: object) -> Any:
    """Look a value up by itself, or by its text, since files have no other keys."""
    for key in (value, str(value), json.dumps(value) if isinstance(value, bool) else None):
        if key is not None and key in labels:
            return labels[key]
    return None


def _check_template(part: str, given: str) -> None:
    for found in PLACEHOLDER.finditer(given):
        if found[0] in ("{", "}"):
            raise InputError("records.unpaired_braces", part=part, received=given)
        if found[1] is not None and found[1] not in PLACEHOLDERS[part]:
            raise InputError(unknown("records.unknown_placeholder", found[1], PLACEHOLDERS[part], part=part))


def _check_labels(part: str, given: object) -> None:
    labels: list[object] = list(given.values()) if isinstance(given, Mapping) else [None]
    if part == "values":
        labels = [label for one in labels for label in (one.values() if isinstance(one, Mapping) else [None])]
    if not all(isinstance(label, str) for label in labels):
        shape = "{column: {value: label}}" if part == "values" else "{name: label}"
        raise InputError("records.not_labels", part=part, expected=shape, received=given)
