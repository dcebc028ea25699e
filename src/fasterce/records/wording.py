"""Explanations as sentences for the person they are about, in words that anyone can replace.

A template is filled by names alone: `{feature}` is looked up, nothing is evaluated, and what is filled in is not read again.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from fasterce import documents
from fasterce.display import wording as display
from fasterce.errors import InputError, unknown_name
from fasterce.explanation import ALREADY_TARGET, FOUND, INVALID_INPUT, MODEL_ERROR, NONE_FOUND, STOPPED, Change, Explanation
from fasterce.schema import Feature
from fasterce.targets import ANY_OTHER

Changes = list[list[Change]]

CLASS, OTHER, CHANCE, NUMBER = "class", "any other", "chance", "number"
PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
UNSAID = {INVALID_INPUT: "invalid_input", MODEL_ERROR: "model_error", STOPPED: "stopped", NONE_FOUND: "none_found"}
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
    """The sentences and their parts; `features`, `values` and `classes` put names people know in place of columns and codes.

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
    features: Mapping[Any, str] = field(default_factory=dict)
    values: Mapping[Any, Mapping[Any, str]] = field(default_factory=dict)
    classes: Mapping[Any, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for one in fields(self):
            given = getattr(self, one.name)
            if one.name in ("features", "values", "classes"):
                _check_labels(one.name, given)
            elif not isinstance(given, str):
                raise InputError(f"A wording's {one.name!r} must be a text; got {type(given).__name__}.")
            elif one.name in PLACEHOLDERS:
                _check_template(one.name, given)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> "Wording":
        """Only what is to be said otherwise has to be given."""
        if not isinstance(given, Mapping):
            raise InputError(f"A wording must be a dictionary of sentences; got {type(given).__name__}.")
        known = [one.name for one in fields(cls)]
        for name in given:
            if name not in known:
                raise InputError(unknown_name("part of a wording", name, known))
        return cls(**given)

    def to_dict(self) -> dict[str, Any]:
        """Only what is said otherwise than by default, as JSON can hold it."""
        usual = asdict(Wording())
        return {name: _by_text(value) for name, value in asdict(self).items() if value != usual[name]}

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Wording":
        """The wording in a .json, .yaml or .yml file."""
        return cls.from_dict(documents.read(path, "A wording"))

    def say(self, part: str, **filled: str) -> str:
        """One part with its placeholders filled."""

        def fill(found: re.Match[str]) -> str:
            return found[0][0] if found[1] is None else filled[found[1]]

        return PLACEHOLDER.sub(fill, getattr(self, part))

    def number(self, written: str) -> str:
        """A number written the English way, with this wording's decimal point and thousands."""
        return written.translate({ord(","): self.thousands, ord("."): self.decimal_point})

    def label(self, value: Any) -> str:
        """A class."""
        return _looked_up(self.classes, value) or self._plain(value)

    def feature(self, name: Any) -> str:
        return _looked_up(self.features, name) or display.text(name)

    def _plain(self, value: Any) -> str:
        if isinstance(value, (bool, np.bool_)):
            return self.yes if value else self.no
        return display.text(value)

    def from_to(self, feature: Feature, change: Change) -> tuple[str, str]:
        """Both values, precise enough to be told apart."""
        if feature.numeric:
            before, (after,) = display.values(feature, change.before, [change.after])
            return self.number(before), self.number(after)
        labels = _looked_up(self.values, feature.name) or {}
        return tuple(_looked_up(labels, value) or self._plain(value) for value in (change.before, change.after))  # type: ignore[return-value]

    def change_of(self, feature: Feature, change: Change) -> str:
        named = self.feature(feature.name)
        before, after = self.from_to(feature, change)
        if change.before is None:
            return self.say("becomes_known", feature=named, to=after)
        if change.after is None:
            return self.say("becomes_missing", **{"feature": named, "from": before})
        return self.say("change", **{"feature": named, "from": before, "to": after})

    def listed(self, parts: Sequence[str]) -> str:
        return self.last_comma.join([self.comma.join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)

    def bounds(self, low: float | None, high: float | None, chance: bool) -> str:
        """A wanted interval in words."""
        low, high = (None if end is None or np.isinf(end) else end for end in (low, high))
        written = {"low": low, "high": high}
        said = {end: "" if at is None else self.score(float(at), chance) for end, at in written.items()}
        part = "at_most" if low is None else "at_least" if high is None else "exactly" if low == high else "between"
        return self.say(part, **said)

    def score(self, value: float, chance: bool) -> str:
        """A chance in per cent, or a number."""
        return self.number(display.percent(value) if chance else display.predicted(value))


def read(template: "Wording | Mapping[str, Any] | None") -> Wording:
    if template is None:
        return Wording()
    return template if isinstance(template, Wording) else Wording.from_dict(template)


def text(explanation: Explanation, row: int = 0, template: Wording | Mapping[str, Any] | None = None) -> str:
    """What one row, by its position, has to change, in a sentence."""
    if not -len(explanation) <= row < len(explanation):
        raise InputError(f"row must be a position from 0 to {len(explanation) - 1}; got {row!r}.")
    return _Speaker(explanation, read(template), all_changes(explanation)).row(row % len(explanation))


def texts(explanation: Explanation, template: Wording | Mapping[str, Any] | None = None) -> list[str]:
    """A text for every row, in order."""
    return all_texts(explanation, read(template), all_changes(explanation))


def all_texts(explanation: Explanation, wording: Wording, changes: Changes) -> list[str]:
    speaker = _Speaker(explanation, wording, changes)
    return [speaker.row(row) for row in range(len(explanation))]


def all_changes(explanation: Explanation) -> Changes:
    """What every counterfactual changes."""
    given, table = explanation.answers, explanation.table
    found: Changes = [[] for _ in range(len(given))]
    names = table.schema.names
    answer, feature = np.nonzero(given.changed)
    cells = (answer, feature, given.before[answer, feature], given.codes[answer, feature])
    for k, j, before, after in zip(*(part.tolist() for part in cells), strict=True):
        found[k].append(Change(names[j], table.value(j, before), table.value(j, after)))
    return found


def without_place(reason: str, row: int) -> str:
    """A row's reason without its place in the table, which is another one in other company."""
    if reason.endswith(f" (row {row})."):
        return reason.removesuffix(f" (row {row}).") + "."
    return reason.replace(f" (row {row}). ", ". ", 1)


class _Speaker:
    """One explanation put into words; what is the same for all rows is looked up once."""

    def __init__(self, explanation: Explanation, wording: Wording, changes: Changes) -> None:
        self.wording, self.changes = wording, changes
        explanation = explanation.in_pandas()
        self.features = {feature.name: feature for feature in explanation.table.schema.features}
        self.score = explanation.answers.score.tolist()
        self.status, self.reason = explanation.status.tolist(), explanation.reason.tolist()
        self.prediction, self.target = explanation.prediction.tolist(), explanation.target.tolist()
        every = np.arange(len(explanation) + 1)
        self.start = np.searchsorted(explanation.answers.query, every).tolist()
        self.own_score = [np.nan] * len(explanation) if explanation.score is None else explanation.score.tolist()
        self.target_score: Any = explanation.options.get("target_score")

    def row(self, row: int) -> str:
        status = self.status[row]
        if status in UNSAID:
            reason = without_place(str(self.reason[row]), row)
            return self.wording.say(UNSAID[status], reason=reason, prediction=self._prediction(row))
        if status == ALREADY_TARGET:
            return self._said("already", row, "", self.own_score[row])
        sentences = [self._answer(row, answer) for answer in range(self.start[row], self.start[row + 1])]
        return " ".join(sentences[:1] + [self.wording.say("or_else", sentence=sentence) for sentence in sentences[1:]])

    def _answer(self, row: int, answer: int) -> str:
        changes = [self.wording.change_of(self.features[change.feature], change) for change in self.changes[answer]]
        return self._said(FOUND, row, self.wording.listed(changes), self.score[answer])

    def _said(self, part: str, row: int, changes: str, score: float) -> str:
        kind, words = self._kind(row), self.wording
        filled = {"changes": changes, "prediction": self._prediction(row), "target": self._target(row)}
        if kind in (CHANCE, NUMBER):
            low, high = self.target_score if kind == CHANCE else self.target[row]
            filled |= {"score": words.score(score, kind == CHANCE), "bounds": words.bounds(low, high, kind == CHANCE)}
        return words.say(part if kind == CLASS else f"{part}_{kind.removeprefix('any ')}", **filled)

    def _kind(self, row: int) -> str:
        wanted = self.target[row]
        if isinstance(wanted, tuple):
            return NUMBER
        if self.target_score is not None:
            return CHANCE
        return OTHER if isinstance(wanted, str) and wanted == ANY_OTHER else CLASS

    def _prediction(self, row: int) -> str:
        said = self.prediction[row]
        if self._kind(row) == NUMBER and not pd.isna(said):
            return self.wording.score(float(said), chance=False)
        return "" if said is None else self.wording.label(said)

    def _target(self, row: int) -> str:
        wanted = self.target[row]
        return "" if wanted is None or isinstance(wanted, tuple) else self.wording.label(wanted)


def _by_text(value: Any) -> Any:
    return {str(key): _by_text(label) for key, label in value.items()} if isinstance(value, Mapping) else value


def _looked_up(labels: Mapping[Any, Any], value: Any) -> Any:
    """By the value itself, or by its text, since files have no other keys."""
    for key in (value, str(value), json.dumps(value) if isinstance(value, bool) else None):
        if key is not None and key in labels:
            return labels[key]
    return None


def _check_template(part: str, given: str) -> None:
    for found in PLACEHOLDER.finditer(given):
        if found[0] in ("{", "}"):
            raise InputError(
                f"A wording's {part!r} must have its braces in pairs, doubled where they are meant; got {given!r}."
            )
        if found[1] is not None and found[1] not in PLACEHOLDERS[part]:
            raise InputError(f"A wording's {part!r}: {unknown_name('placeholder', found[1], PLACEHOLDERS[part])}")


def _check_labels(part: str, given: Any) -> None:
    inner = list(given.values()) if isinstance(given, Mapping) else [None]
    if part == "values":
        inner = [label for one in inner for label in (one.values() if isinstance(one, Mapping) else [None])]
    if not all(isinstance(label, str) for label in inner):
        shape = "{column: {value: label}}" if part == "values" else "{name: label}"
        raise InputError(f"A wording's {part!r} must be a dictionary {shape} of texts; got {given!r:.100}.")
