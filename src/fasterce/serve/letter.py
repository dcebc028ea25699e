"""An audit record as a letter to the person it is about: one HTML page, ready to print, that loads nothing."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

STYLE = Path(__file__).parent / "page" / "letter.css"
ORGANISATION = "[Organisation, address]"
CONTACT = "[Name, telephone, e-mail of the person in charge]"
RECIPIENT = "[Name and address of the applicant]"
GROUP_FROM = 10_000
SIGNIFICANT = 6
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
OPENINGS = {
    "found": "What would have had to be different",
    "already_target": "What would have had to be different",
    "none_found": "Why no change is proposed",
    "stopped": "Why no change is proposed",
    "invalid_input": "Why this could not be explained",
    "model_error": "Why this could not be explained",
}

Record = Mapping[str, Any]


def letter(record: Record, *, organisation: str = ORGANISATION, contact: str = CONTACT, recipient: str = RECIPIENT) -> str:
    """The record's own words, what would change from what to what, what was decided by what and when, and whom to ask.

    What a record does not know (the sender, the person in charge, the applicant's name) is a placeholder in brackets.
    """
    parts = (
        _head(record, organisation, recipient),
        _decision(record),
        _answer(record),
        _contact(contact),
        _origin(record),
    )
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(_subject(record))}</title>\n<style>{_style()}</style>\n</head>\n"
        f'<body class="letter-page">\n<main><article class="letter">\n{body}\n</article></main>\n</body>\n</html>\n'
    )


def policy() -> str:
    """The Content-Security-Policy a letter is served with: its own style by its digest, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


@cache
def _style() -> str:
    return STYLE.read_text(encoding="utf-8")


def _subject(record: Record) -> str:
    decision = record["ids"]["decision"]
    return "Your decision explained" if decision is None else f"Your decision {_written(decision)} explained"


def _head(record: Record, organisation: str, recipient: str) -> str:
    subject = record["ids"]["subject"]
    reference = [("Date", _day(record["time"])), ("Reference", record["ids"]["record"])]
    if subject is not None:
        reference.append(("Subject", _written(subject)))
    return (
        f'<header class="letter-head"><p class="letter-from">{_lines(organisation)}</p>'
        f'<p class="letter-to">{_lines(recipient)}</p>{_pairs(reference, "letter-reference")}</header>\n'
        f"<h1>{escape(_subject(record))}</h1>"
    )


def _decision(record: Record) -> str:
    prediction, words = record["outcome"]["prediction"], _words(record)
    if prediction is None:
        return "<h2>The decision</h2>\n<p>The model could not be asked about these details.</p>"
    said = f"On the details below, the model's answer was <strong>{escape(_label(words, prediction))}</strong>."
    chance = _chance(record["outcome"]["score"], prediction)
    return f"<h2>The decision</h2>\n<p>{said}{escape(chance)}</p>\n{_details(record)}"


def _chance(score: Mapping[str, Any] | None, prediction: Any) -> str:
    if score is None or score["kind"] != "chance" or prediction not in score["classes"]:
        return ""
    value = score["values"][score["classes"].index(prediction)]
    return "" if value is None else f" It holds this to be {_percent(value)} likely."


def _details(record: Record) -> str:
    words, given = _words(record), record["input"]
    pairs = [
        (_feature(words, name), _value(words, name, value))
        for name, value in zip(given["columns"], given["values"], strict=True)
    ]
    return f"<h3>The details it was based on</h3>\n{_pairs(pairs, 'letter-details')}"


def _answer(record: Record) -> str:
    opening = OPENINGS.get(record["status"], OPENINGS["found"])
    tables = "\n".join(_alternative(record, k, one) for k, one in enumerate(record["counterfactuals"]))
    reason = record["reason"] if record["status"] == "found" else None
    remark = f"<p>{escape(reason)}</p>" if reason else ""
    return f"<h2>{opening}</h2>\n<p>{escape(record['text'])}</p>\n{tables}\n{remark}\n{_unlocked(record)}".rstrip()


def _alternative(record: Record, place: int, one: Mapping[str, Any]) -> str:
    title = f"Possibility {place + 1}" if len(record["counterfactuals"]) > 1 else "The change"
    answer = escape(_label(_words(record), one["prediction"]))
    said = f'<p class="letter-then">The model was asked again; its answer would be <strong>{answer}</strong>.</p>'
    return f"{_changes(record, one['changes'], title)}\n{said}"


def _unlocked(record: Record) -> str:
    """What would do without the rules that stand in the way."""
    refusal = record["refusal"]
    return _changes(record, refusal["unlocked"], "Without this rule") if refusal and refusal["unlocked"] else ""


def _changes(record: Record, changes: Iterable[Mapping[str, Any]], title: str) -> str:
    words = _words(record)
    rows = "\n".join(
        f'<tr><th scope="row">{escape(_feature(words, change["feature"]))}</th>'
        f"<td>{escape(_value(words, change['feature'], change['from']))}</td>"
        f"<td><strong>{escape(_value(words, change['feature'], change['to']))}</strong></td></tr>"
        for change in changes
    )
    head = '<tr><th scope="col">Detail</th><th scope="col">Now</th><th scope="col">Would have to be</th></tr>'
    return f"<table>\n<caption>{escape(title)}</caption>\n<thead>{head}</thead>\n<tbody>{rows}</tbody>\n</table>"


def _contact(contact: str) -> str:
    return (
        "<h2>If you disagree</h2>\n<p>You may have a person look at this decision, correct a detail that is wrong, and say "
        f'what you think of it.</p>\n<p class="letter-contact">{_lines(contact)}</p>'
    )


def _origin(record: Record) -> str:
    digests = record["digests"]
    pairs = [
        ("Decided and explained", record["time"].replace("T", " ").split(".")[0] + " UTC"),
        ("Model", digests["model"] or "not recorded"),
        ("Explainer", digests["artifact"] or "not recorded"),
        ("Software", f"fasterce {record['software'].get('fasterce', '')}".strip()),
        ("Record", record["ids"]["record"]),
    ]
    return (
        '<footer class="letter-foot"><h2>How this was made</h2>\n'
        f"{_pairs(pairs, 'letter-origin')}\n<p>{escape(record['notice'])}</p></footer>"
    )


def _pairs(pairs: Iterable[tuple[str, Any]], name: str) -> str:
    rows = "".join(f"<div><dt>{escape(term)}</dt><dd>{escape(str(said))}</dd></div>" for term, said in pairs)
    return f'<dl class="{name}">{rows}</dl>'


def _lines(text: str) -> str:
    return "<br>".join(escape(line) for line in text.splitlines())


def _words(record: Record) -> Mapping[str, Any]:
    return record["configuration"]["wording"] or {}


def _feature(words: Mapping[str, Any], name: Any) -> str:
    known = words.get("features", {}).get(str(name))
    return known if known else _readable(_written(name))


def _readable(name: str) -> str:
    spaced = name.replace("_", " ").strip() or name
    return spaced[:1].upper() + spaced[1:]


def _value(words: Mapping[str, Any], name: Any, value: Any) -> str:
    known = words.get("values", {}).get(str(name), {}).get(str(value))
    return known if known else _written(value)


def _label(words: Mapping[str, Any], value: Any) -> str:
    known = words.get("classes", {}).get(str(value))
    return known if known else _written(value)


def _written(value: Any) -> str:
    """Any JSON value of a record as a person reads it."""
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, Mapping):
        return str(value.get("text", ""))
    if isinstance(value, (list, tuple)):
        return " ".join(_written(part) for part in value)
    return str(value)


def _number(value: float) -> str:
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.{SIGNIFICANT}g}" if abs(value) < GROUP_FROM else f"{value:,.2f}"
    return f"{int(value):,}" if abs(value) >= GROUP_FROM else str(int(value))


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %" if 0.005 <= value <= 0.995 else "less than 1 %" if value < 0.5 else "more than 99 %"


def _day(time: str) -> str:
    year, month, day = time[:10].split("-")
    return f"{int(day)} {MONTHS[int(month) - 1]} {year}"
