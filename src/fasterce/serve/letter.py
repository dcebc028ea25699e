"""An audit record as a letter to the person it is about: one HTML page, ready to print, that loads nothing."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from jinja2 import PackageLoader
from markupsafe import Markup

from fasterce.serve.messages import Json
from fasterce.viz import templates

STYLE = Path(__file__).parent / "static" / "letter.css"
ORGANISATION = "[Organisation, address]"
CONTACT = "[Name, telephone, e-mail of the person in charge]"
RECIPIENT = "[Name and address of the applicant]"
GROUP_FROM = 10_000
SIGNIFICANT_DIGITS = 6

Record = Mapping[str, Json]


def letter(record: Record, *, organisation: str = ORGANISATION, contact: str = CONTACT, recipient: str = RECIPIENT) -> str:
    """Return the letter: the text of the record, each change, what was decided by what and when, and whom to contact.

    What a record does not know (the sender, the person in charge, the name of the applicant) is a placeholder in brackets.
    """
    environment = templates.environment().overlay(loader=PackageLoader("fasterce.serve"))
    return environment.get_template("letter.html.j2").render(
        record=record,
        words=Words(record["configuration"]["wording"] or {}),
        formatted=formatted,
        style=Markup(_style()),
        organisation=organisation,
        contact=contact,
        recipient=recipient,
        chance=_chance(record["outcome"]),
        time=datetime.fromisoformat(record["time"]),
    )


def policy() -> str:
    """Return the Content-Security-Policy of a letter: its own style by its digest, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


@cache
def _style() -> str:
    return STYLE.read_text(encoding="utf-8")


def _chance(outcome: Record) -> str | None:
    score, prediction = outcome["score"], outcome["prediction"]
    if score is None or score["kind"] != "chance" or prediction not in score["classes"]:
        return None
    value = score["values"][score["classes"].index(prediction)]
    return None if value is None else _percent(value)


@dataclass(frozen=True)
class Words:
    """Names of features, values and classes: those of the wording file, or as they are."""

    wording: Record

    def feature(self, name: Json) -> str:
        known = self.wording.get("features", {}).get(str(name))
        return known or _readable(formatted(name))

    def value(self, name: Json, value: Json) -> str:
        return self.wording.get("values", {}).get(str(name), {}).get(str(value)) or formatted(value)

    def label(self, value: Json) -> str:
        return self.wording.get("classes", {}).get(str(value)) or formatted(value)


def formatted(value: Json) -> str:
    """Return any JSON value of a record as a person reads it."""
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, Mapping):
        return str(value.get("text", ""))
    if isinstance(value, (list, tuple)):
        return " ".join(formatted(part) for part in value)
    return str(value)


def _readable(name: str) -> str:
    spaced = name.replace("_", " ").strip() or name
    return spaced[:1].upper() + spaced[1:]


def _number(value: float) -> str:
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.{SIGNIFICANT_DIGITS}g}" if abs(value) < GROUP_FROM else f"{value:,.2f}"
    return f"{int(value):,}" if abs(value) >= GROUP_FROM else str(int(value))


def _percent(value: float) -> str:
    if value < 0.005:
        return "less than 1 %"
    return f"{100 * value:.0f} %" if value <= 0.995 else "more than 99 %"
