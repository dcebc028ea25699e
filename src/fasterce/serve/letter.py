"""An audit record as a letter to the person it is about: one HTML page, ready to print, that loads nothing.

Every word is one of `letter.toml` or of a file that replaces some of them; labels, units and outcomes are the record's.
"""

import base64
import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from jinja2 import PackageLoader
from markupsafe import Markup

from fasterce.data.meaning import NARROW, formatted, with_unit
from fasterce.errors import InputError, unknown
from fasterce.serve.messages import Json
from fasterce.viz import templates

HERE = Path(__file__).parent
STYLE, WORDS = HERE / "static" / "letter.css", HERE / "letter.toml"
PLACEHOLDER = re.compile(r"\{(\w+)\}")
# Decimals of a number whose column declares no format.
MOST_DECIMALS = 6
LIKELY, UNLIKELY = 0.995, 0.005

Record = Mapping[str, Json]
Texts = Mapping[str, str]


@cache
def load_words(path: Path | None = None) -> Texts:
    """Return the words of a letter: the default ones, and those of a TOML file in their place.

    Raises
    ------
    InputError
        If the file cannot be read, or has a name, a placeholder or a value that the default has not.
    """
    usual: dict[str, str] = tomllib.loads(WORDS.read_text(encoding="utf-8"))
    if path is None:
        return usual
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError("serve.letter_unreadable", option="letter", path=str(path), reason=str(error)) from error
    for name, text in given.items():
        if name not in usual:
            raise InputError(unknown("serve.letter_unknown_word", name, usual, option="letter", path=str(path)))
        if not isinstance(text, str):
            raise InputError("serve.letter_not_text", option="letter", path=str(path), word=name)
        placeholders = set(PLACEHOLDER.findall(usual[name]))
        for placeholder in PLACEHOLDER.findall(text):
            if placeholder not in placeholders:
                about = {"option": "letter", "path": str(path), "word": name}
                raise InputError(unknown("serve.letter_unknown_placeholder", placeholder, sorted(placeholders), **about))
    return usual | given


def letter(record: Record, words: Texts | None = None, *, alternatives: Sequence[int] | None = None, **people: str) -> str:
    """Return the letter of a record.

    Parameters
    ----------
    record : mapping
    words : mapping, optional
        What `load_words` returned.
    alternatives : sequence of int, optional
        Positions of the counterfactuals that go into the letter; by default all. Those with the same changes are one.
    **people : str
        `sender`, `contact` and `recipient` in place of those of the words.
    """
    texts = {**(words or load_words()), **{name: text for name, text in people.items() if text}}
    writer = Writer(record, texts)
    environment = templates.environment().overlay(loader=PackageLoader("fasterce.serve"))
    return environment.get_template("letter.html.j2").render(
        record=record,
        words=texts,
        writer=writer,
        style=Markup(_style()),
        alternatives=distinct(record["counterfactuals"], alternatives),
        time=datetime.fromisoformat(record["time"]),
    )


def distinct(counterfactuals: Sequence[Record], chosen: Sequence[int] | None = None) -> list[Record]:
    """Return the chosen counterfactuals, of those with the same changes the first."""
    return [counterfactuals[k] for k in positions(counterfactuals, chosen)]


def positions(counterfactuals: Sequence[Record], chosen: Sequence[int] | None = None) -> list[int]:
    """Return the positions of the counterfactuals in a letter: of those chosen, and with the same changes, the first."""
    kept: list[int] = []
    for k in range(len(counterfactuals)) if chosen is None else sorted(set(chosen)):
        if counterfactuals[k]["changes"] not in [counterfactuals[other]["changes"] for other in kept]:
            kept.append(k)
    return kept


def policy() -> str:
    """Return the Content-Security-Policy of a letter: its own style by its digest, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


@cache
def _style() -> str:
    return STYLE.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Writer:
    """Writes the parts of one letter."""

    record: Record
    words: Texts

    @property
    def wording(self) -> Record:
        """Labels, units and formats of the record."""
        return self.record["configuration"]["wording"] or {}

    def fill(self, word: str, **values: str) -> str:
        """Return a word with its placeholders filled; what is filled in is not read again."""
        return PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), self.words[word])

    def feature(self, name: Json) -> str:
        """Return the label of a column at the head of a line."""
        label = self._label("features", name) or self.plain(name).replace("_", " ").strip() or self.plain(name)
        return label[:1].upper() + label[1:]

    def value(self, name: Json, value: Json) -> str:
        """Return a value of a column, with its unit."""
        known = self.wording.get("values", {}).get(str(name), {}).get(str(value))
        if known:
            return str(known)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return with_unit(self.number(value, self._label("formats", name)), self._label("units", name))
        return self.plain(value)

    def outcome(self, label: Json) -> str:
        """Return a class, or a predicted number, in words."""
        return self._label("classes", label) or self.plain(label)

    def plain(self, value: Json) -> str:
        """Return any JSON value of a record as readable text."""
        if value is None:
            return self.words["not_known"]
        if isinstance(value, bool):
            return self.words["yes" if value else "no"]
        if isinstance(value, (int, float)):
            return self.number(value)
        if isinstance(value, Mapping):
            return str(value.get("text", ""))
        return " ".join(map(self.plain, value)) if isinstance(value, (list, tuple)) else str(value)

    def number(self, value: float, format: str = "") -> str:
        written = formatted(value, format, MOST_DECIMALS)
        marks = {",": self.wording.get("thousands", ","), ".": self.wording.get("decimal_point", ".")}
        return written.translate(str.maketrans(marks))

    def share(self, value: float) -> str:
        """Return a probability in per cent."""
        below, above = value < UNLIKELY, value > LIKELY
        return f"{'< ' if below else '> ' if above else ''}{1 if below else 99 if above else round(100 * value)}{NARROW}%"

    def day(self, time: datetime) -> str:
        months = self.words["months"].split(",")
        return self.fill("date", day=str(time.day), month=months[time.month - 1].strip(), year=str(time.year))

    @property
    def chance(self) -> str | None:
        """The probability of the predicted class, None if there is none."""
        score, prediction = self.record["outcome"]["score"], self.record["outcome"]["prediction"]
        if score is None or score["kind"] != "chance" or prediction not in score["classes"]:
            return None
        value = score["values"][score["classes"].index(prediction)]
        return None if value is None else self.share(value)

    @property
    def wanted(self) -> str:
        """What is wanted, in words."""
        target = self.record["target"]
        if target is None or target["kind"] == "any other":
            return self.words["other_wanted"]
        if target["kind"] != "number":
            return self.outcome(target["class"])
        low, high = (None if end is None else self.number(end) for end in (target["low"], target["high"]))
        word = "at_most" if low is None else "at_least" if high is None else "between"
        return self.fill("number_wanted", bounds=self.fill(word, low=low or "", high=high or ""))

    @property
    def blocking(self) -> list[str]:
        """The constraints that prevent a counterfactual, in words."""
        found = self.record["infeasible"]
        return [] if found is None else [self.limit(*self._constraint(one)) for one in found["blocking"]]

    def _constraint(self, blocking: Record) -> tuple[Record, str]:
        """Return the constraint of a blocking one as data, and its text."""
        for one in self.record["constraints"]["constraints"]:
            shown = one["text"] if one["source"] == "constraints" else f"{one['text']} ({one['source']})"
            if shown == blocking["text"]:
                return one["constraint"], one["text"]
        return {}, blocking["text"]

    @property
    def limits(self) -> list[str]:
        """The limits of this request, in words; those of the schema are policy and are left out."""
        own = [one for one in self.record["constraints"]["constraints"] if one["source"] != "schema"]
        frozen = [one["constraint"]["features"] for one in own if one["constraint"]["constraint"] == "frozen"]
        kept = list(dict.fromkeys(name for names in frozen for name in names))
        if len(kept) < 2:
            return [self.limit(one["constraint"], one["text"]) for one in own]
        together = self._stay(kept)
        rest = [one for one in own if one["constraint"]["constraint"] != "frozen"]
        return [together, *(self.limit(one["constraint"], one["text"]) for one in rest)]

    def limit(self, constraint: Record, text: str) -> str:
        """Return a constraint in words; one that has no words of its own by its text, with the labels of its columns."""
        kind = constraint.get("constraint", "")
        if kind == "frozen":
            return self._stay(constraint["features"])
        if kind in ("only_up", "only_down"):
            return self.fill(kind, feature=self.listed(map(self.feature, constraint["features"])))
        name = constraint.get("feature")
        if kind == "range":
            ends = {end: self.value(name, constraint[end]) for end in ("low", "high") if constraint.get(end) is not None}
            word = "range" if len(ends) == 2 else f"range_{next(iter(ends), 'low')}"
            return self.fill(word, feature=self.feature(name), **ends)
        if kind == "allowed":
            return self.fill(
                kind,
                feature=self.feature(name),
                values=self.listed(self.value(name, category) for category in constraint["categories"]),
            )
        if kind == "near":
            return self.listed(self._near(constraint, name))
        for column in sorted(map(str, self.wording.get("features", {})), key=len, reverse=True):
            text = self.feature(column).join(re.split(rf"\b{re.escape(column)}\b", text))
        return text

    def _stay(self, names: Sequence[Json]) -> str:
        features = self.listed(map(self.feature, names))
        return self.fill("frozen_several", features=features) if len(names) > 1 else self.fill("frozen", feature=features)

    def _near(self, constraint: Record, name: Json) -> Iterable[str]:
        for way in ("up", "down", "by", "percent"):
            amount = constraint.get(way)
            if amount is not None:
                written = self.number(amount) if way == "percent" else self.value(name, amount)
                yield self.fill(f"near_{way}", feature=self.feature(name), amount=written)

    def listed(self, parts: Iterable[str]) -> str:
        *first, last = parts
        return self.words["and"].join([self.words["comma"].join(first), last]) if first else last

    def _label(self, part: str, name: Json) -> str:
        return str(self.wording.get(part, {}).get(str(name)) or "")
