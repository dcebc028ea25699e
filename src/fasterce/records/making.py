"""An audit record for every row explained: what went in, by what it was explained, what came out, and what was said of it."""

import json
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from fasterce import artifact
from fasterce.artifact.manifest import json_digest, versions
from fasterce.errors import InputError
from fasterce.explainer import FasterCE
from fasterce.explanation import MEASURED, Change, Explanation, Refusal
from fasterce.records import configuration
from fasterce.records.cells import cell, cells, name, notes
from fasterce.records.rescoring import Rescored, rescore
from fasterce.records.wording import (
    CHANCE,
    CLASS,
    NUMBER,
    OTHER,
    Changes,
    Wording,
    all_changes,
    all_texts,
    read,
    without_place,
)
from fasterce.targets import AnyOther, Chance, Number

FORMAT, VERSION = "fasterce-record", 1
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
NOTICE = (
    "A counterfactual is not an adverse-action reason code: it says what would have changed the answer, among the features "
    "that may change, and can leave out the factor that caused it."
)
ORDER = (
    *("format", "version", "ids", "time", "software", "digests", "configuration", "replayable", "why_not_replayable"),
    *("input", "outcome", "target", "constraints", "status", "reason", "refusal", "counterfactuals", "reasons", "text"),
    *("notice", "metrics", "human_review", "retain_until"),
)

Record = dict[str, Any]


def make(
    explainer: FasterCE,
    explanation: Explanation,
    *,
    model_digest: str | None = None,
    ids: Sequence[Any] | None = None,
    decision_ids: Sequence[Any] | None = None,
    subjects: Sequence[Any] | None = None,
    constraints_by: str | None = None,
    threshold: float | None = None,
    reasons: Sequence[Any] | None = None,
    reasons_method: str | None = None,
    template: Wording | Mapping[str, Any] | None = None,
    retain_until: date | str | None = None,
    now: datetime | None = None,
) -> list[Record]:
    """One record a row of `explanation`, in order, as plain JSON; the model is asked again, once for all of them.

    What is the same for the whole call (configuration, constraints, digests ...) is one object in all of its records.

    Parameters
    ----------
    explainer : the one that explained, with its model.
    explanation : the result of one call of `explain`.
    model_digest : "sha256:…" of the model's file (`file_digest`); None if it is not known, which the record says.
    ids, decision_ids, subjects : one a row: the request, the decision it is about, and whom it is about, by a pseudonym.
    constraints_by : who set the constraints.
    threshold : what the model's score was held to, if it is a score that decides.
    reasons, reasons_method : one list of reasons a row, found by other means, and by which.
    template : the wording of the text shown, see `Wording`.
    retain_until : the date until which the record is kept.
    now : the time written in the records; None for the time it is.
    """
    explanation = explanation.in_pandas()
    wording, count = read(template), len(explanation)
    if explanation.table.schema != explainer.schema_:
        raise InputError("Records are made with the explainer that explained; got one with another schema.")
    if (reasons is None) != (reasons_method is None):
        raise InputError("reasons and reasons_method must come together; got one without the other.")
    common = _common(explainer, explanation, wording, model_digest, constraints_by, retain_until, now)
    rescored = rescore(explainer, explanation)
    identified = zip(
        *(
            _per_row(what, given, count)
            for what, given in (("ids", ids), ("decision_ids", decision_ids), ("subjects", subjects))
        ),
        strict=True,
    )
    index = [cell(label) if not isinstance(label, tuple) else name(label) for label in explanation.rows.index]
    changes = all_changes(explanation)
    rows = _rows(explanation, rescored, changes, threshold)
    why = _per_row("reasons", reasons, count)
    said = all_texts(explanation, wording, changes)
    records = []
    for k, (request, decision, subject) in enumerate(identified):
        named = {"record": str(uuid.uuid4()), "request": request, "row": index[k], "decision": decision, "subject": subject}
        given = None if why[k] is None else {"method": reasons_method, "reasons": why[k]}
        records.append(_ordered(common | rows[k] | {"ids": named, "text": said[k], "reasons": given}))
    return records


def _ordered(record: Record) -> Record:
    return {part: record[part] for part in ORDER}


def _common(
    explainer: FasterCE,
    explanation: Explanation,
    wording: Wording,
    model_digest: str | None,
    constraints_by: str | None,
    retain_until: date | str | None,
    now: datetime | None,
) -> Record:
    """What all rows of a call have in common."""
    options, schema = explanation.options, explainer.schema_
    why_not = configuration.why_not_replayable(options)
    return {
        "format": FORMAT,
        "version": VERSION,
        "time": _time(now),
        "software": versions(),
        "digests": digests(explainer, model_digest),
        "configuration": {
            "options": configuration.written(options, schema),
            "seed": cell(explainer.random_state),
            "twin": None if explainer.twin_ is None else explainer.twin_.kind,
            "wording": wording.to_dict() or None,
        },
        "replayable": why_not is None,
        "why_not_replayable": why_not,
        "constraints": {
            "set_by": _said("constraints_by", constraints_by),
            "rules": configuration.constraints(options, schema),
        },
        "notice": NOTICE,
        "metrics": _metrics(explanation),
        "human_review": None,
        "retain_until": _date(retain_until),
    }


def digests(explainer: FasterCE, model_digest: str | None) -> dict[str, str | None]:
    if model_digest is not None and not (isinstance(model_digest, str) and DIGEST.fullmatch(model_digest)):
        raise InputError(f'model_digest must be "sha256:" and 64 hexadecimal digits; got {model_digest!r:.100}.')
    schema = f"sha256:{json_digest(explainer.schema_.to_dict())}"
    return {"model": model_digest, "schema": schema, "artifact": artifact.digest(explainer)}


def _metrics(explanation: Explanation) -> dict[str, Any]:
    """Of the call, not of the row."""
    asked, twin = explanation.asked, explanation.twin
    return {
        "rows_explained": len(explanation),
        "model_calls": asked.calls,
        "rows_asked": asked.rows,
        "twin_calls": None if twin is None else twin.calls,
        "twin_rows_asked": None if twin is None else twin.rows,
        "seconds": float(explanation.seconds),
    }


def _rows(explanation: Explanation, rescored: Rescored, changes: Changes, threshold: float | None) -> list[Record]:
    """What is every row's own."""
    columns = list(explanation.rows.columns)
    names = [name(column) for column in columns]
    values = list(zip(*(cells(explanation.rows[column]) for column in columns), strict=True))
    answers = _answers(explanation, rescored, changes, columns, values)
    start = np.searchsorted(explanation.answers.query, np.arange(len(explanation) + 1)).tolist()
    targets = _targets(explanation, rescored)
    limit = _threshold(threshold)
    return [
        {
            "input": {"columns": list(names), "values": list(values[k]), "notes": notes(columns, values[k])},
            "outcome": {**rescored.rows[k], "threshold": limit},
            "target": targets[k],
            "status": status,
            "reason": without_place(reason, k) or None,
            "refusal": _refusal(explanation.refusals.get(k)),
            "counterfactuals": answers[start[k] : start[k + 1]],
        }
        for k, (status, reason) in enumerate(zip(explanation.status.tolist(), explanation.reason.tolist(), strict=True))
    ]


def _answers(
    explanation: Explanation, rescored: Rescored, changes: Changes, columns: list[Any], values: list[Any]
) -> list[Record]:
    given = explanation.answers
    place = {column: k for k, column in enumerate(columns)}
    measured = {part: getattr(given, part).tolist() for part in ("distance", *(one for one in MEASURED if one != "score"))}
    found = []
    for k, (row, rank, method) in enumerate(
        zip(given.query.tolist(), given.rank.tolist(), given.method.tolist(), strict=True)
    ):
        after = list(values[row])
        for change in changes[k]:
            after[place[change.feature]] = cell(change.after)
        found.append(
            {
                "rank": rank,
                "method": str(method),
                "changes": [_change(change) for change in changes[k]],
                "n_changed": len(changes[k]),
                "values": after,
                **rescored.answers[k],
                "confirmed": True,
                **{part: _finite(measure[k]) for part, measure in measured.items()},
            }
        )
    return found


def _change(change: Change) -> dict[str, Any]:
    return {"feature": name(change.feature), "from": cell(change.before), "to": cell(change.after)}


def _refusal(refusal: Refusal | None) -> dict[str, Any] | None:
    if refusal is None:
        return None
    unlocked = [_change(change) for change in refusal.unlocked]
    return {"blocking": list(refusal.blocking), "unlocked": unlocked, "ruled": refusal.ruled, "progress": refusal.progress}


def _targets(explanation: Explanation, rescored: Rescored) -> list[dict[str, Any] | None]:
    target = rescored.target
    wanted = explanation.target.tolist()
    if isinstance(target, Number):
        whole = {"kind": NUMBER, "class": None, "low": _finite(target.low), "high": _finite(target.high)}
        return [None if one is None else dict(whole) for one in wanted]
    kind = CHANCE if isinstance(target, Chance) else OTHER if isinstance(target, AnyOther) else CLASS
    ends = {"low": target.low, "high": target.high} if isinstance(target, Chance) else {"low": None, "high": None}
    return [None if one is None else {"kind": kind, "class": None if kind == OTHER else cell(one), **ends} for one in wanted]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _per_row(what: str, given: Sequence[Any] | None, count: int) -> list[Any]:
    if given is None:
        return [None] * count
    if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__len__") or len(given) != count:
        got = f"{len(given)}" if hasattr(given, "__len__") and not isinstance(given, str) else repr(given)[:60]
        raise InputError(f"{what} must be a list with one entry for each of the {count} rows; got {got}.")
    return [_jsonable(what, one) for one in given]


def _jsonable(what: str, value: Any) -> Any:
    """Ids are single values; reasons may be lists and dictionaries of them."""
    if isinstance(value, uuid.UUID):
        return str(value)
    if what != "reasons":
        found = cell(value)
        if isinstance(found, dict):
            raise InputError(f"{what} must be texts or numbers; got {value!r:.100}.")
        return found
    if value is None:
        return None
    try:
        listed = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"reasons must be lists that JSON can hold; got {value!r:.100} ({error}).") from error
    if not isinstance(listed, list):
        raise InputError(f"reasons must have a list for every row, or None; got {value!r:.100}.")
    return listed


def _said(what: str, value: str | None) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InputError(f"{what} must be a text; got {type(value).__name__}.")
    return value


def _threshold(value: float | None) -> float | None:
    found = cell(value)
    if found is not None and (isinstance(found, bool) or not isinstance(found, (int, float))):
        raise InputError(f"threshold must be a finite number; got {value!r:.100}.")
    return found


def _time(now: datetime | None) -> str:
    if now is None:
        now = datetime.now(UTC)
    if not isinstance(now, datetime) or now.tzinfo is None:
        raise InputError(f"now must be a datetime that knows its time zone; got {now!r:.100}.")
    return now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _date(given: date | str | None) -> str | None:
    """A day, as YYYY-MM-DD."""
    if given is None:
        return None
    try:
        found = date.fromisoformat(given) if isinstance(given, str) else given
        return (found.date() if isinstance(found, datetime) else found).isoformat()
    except (ValueError, AttributeError) as error:
        raise InputError(f"retain_until must be a date, such as '2030-12-31'; got {given!r:.100}.") from error
