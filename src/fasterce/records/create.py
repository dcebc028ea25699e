"""Make audit records: for every row explained, the input, the options and the result."""

import json
import math
import re
import uuid
from collections.abc import Hashable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from fasterce import artifact
from fasterce.artifact.manifest import versions
from fasterce.errors import InputError, Problem, make_problem
from fasterce.explainer import FasterCE
from fasterce.explanation import MEASURED, Change, Explanation, Infeasibility
from fasterce.options import PaperOptions
from fasterce.records import configuration
from fasterce.records.cells import Cell, cell, converted, name, notes
from fasterce.records.cells import rows as table_rows
from fasterce.records.outcomes import Outcomes, outcomes
from fasterce.records.structure import FIELDS, FORMAT, VERSION, Record
from fasterce.records.wording import (
    CHANCE,
    CLASS,
    NUMBER,
    OTHER,
    Changes,
    Wording,
    WordingLike,
    as_wording,
    reason_text,
    target_kind,
    texts,
)
from fasterce.typing import Json

# Types of options that are the same if their text is, and how many sets of options are remembered as they are written.
PLAIN_OPTIONS = (str, bool, int, float)
MOST_DESCRIBED = 100
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
NOTICE = (
    "A counterfactual is not an adverse-action reason code: it says what would have changed the prediction, among the "
    "features that may change, and can leave out the factor that caused it."
)


def make(
    explainer: FasterCE,
    explanation: Explanation,
    *,
    model_digest: str | None = None,
    ids: Sequence[Json] | None = None,
    decision_ids: Sequence[Json] | None = None,
    subjects: Sequence[Json] | None = None,
    constraints_by: str | None = None,
    threshold: float | None = None,
    reasons: Sequence[Json] | None = None,
    reasons_method: str | None = None,
    template: WordingLike = None,
    retain_until: date | str | None = None,
    now: datetime | None = None,
) -> list[Record]:
    """Return one record per row of `explanation`, in order, as plain JSON.

    Parameters
    ----------
    explainer : FasterCE
        The explainer that explained, with its model.
    explanation : Explanation
        The result of one call of `explain`.
    model_digest : str, optional
        "sha256:…" of the model's file (`file_digest`); the record says so if it is not known.
    ids, decision_ids, subjects : sequence, optional
        Per row the request, the decision, and the pseudonym of the person.
    constraints_by : str, optional
        Who set the constraints.
    threshold : float, optional
        The threshold that the model's score is compared with, if a score decides.
    reasons, reasons_method : optional
        Per row a list of reasons found by another method, and that method.
    template : Wording or mapping, optional
        The wording of the text.
    retain_until : date or str, optional
        The date until which the record is kept.
    now : datetime, optional
        The time written in the records; by default the current time.

    Returns
    -------
    list of dict
        Configuration, constraints and digests are the same for the whole call, and one object shared by its records.

    Raises
    ------
    InputError
        If an argument does not fit, or the explanation is not of one call of this explainer.
    """
    explanation = explanation.in_pandas()
    if explanation.table.schema != explainer.schema_:
        raise InputError("records.other_schema", option="explainer")
    if (reasons is None) != (reasons_method is None):
        raise InputError("records.needs_both", option="reasons", other="reasons_method")
    wording, count = as_wording(template).with_schema(explainer.schema_), len(explanation)
    common = _common(explainer, explanation, wording) | {
        "time": _time(now),
        "digests": digests(explainer, model_digest),
        "retain_until": _date(retain_until),
    }
    common["constraints"]["set_by"] = _optional_text("constraints_by", constraints_by)
    changes = explanation.all_changes()
    rows = _rows(explainer, explanation, changes, _threshold(threshold))
    named = {"request": ids, "decision": decision_ids, "subject": subjects}
    options = ("ids", "decision_ids", "subjects")
    per_row = {key: _per_row(option, given, count) for option, (key, given) in zip(options, named.items(), strict=True)}
    given_reasons = _per_row("reasons", reasons, count)
    written = texts(explanation, wording, changes)
    records = []
    for k, label in enumerate(explanation.rows.index):
        own = {"record": str(uuid.uuid4()), "row": name(label), **{key: values[k] for key, values in per_row.items()}}
        found = None if given_reasons[k] is None else {"method": reasons_method, "reasons": given_reasons[k]}
        record = common | rows[k] | {"ids": own, "text": written[k], "reasons": found}
        records.append({field: record[field] for field in FIELDS})
    return records


def _common(explainer: FasterCE, explanation: Explanation, wording: Wording) -> Record:
    """Return what all rows of a call have in common."""
    options = explanation.options
    unreproducible = configuration.unreproducible(options)
    return {
        "format": FORMAT,
        "version": VERSION,
        "software": versions(),
        **_of_options(explainer, options, wording),
        "replayable": not unreproducible,
        "why_not_replayable": str(make_problem("records.unreproducible", options=unreproducible)) if unreproducible else None,
        "notice": NOTICE,
        "metrics": _metrics(explanation),
        "human_review": None,
    }


def _of_options(explainer: FasterCE, options: Mapping[str, object], wording: Wording) -> Record:
    """Return the configuration and the constraints in force. Those of the last calls with plain options are kept as text, so
    that nobody can change them."""
    key = _plain_key(options)
    owner = (explainer.state_, explainer.random_state, wording)
    known = getattr(explainer, "_described", None)
    if known is None or any(one is not other for one, other in zip(known[0], owner, strict=True)):
        known = explainer._described = (owner, {})
    texts_of: dict[Hashable, str] = known[1]
    if key in texts_of:
        found: Record = json.loads(texts_of[key])
        return found
    schema, compiled = explainer.schema_, explainer.state_.compiled
    described: Record = {
        "configuration": {
            "options": configuration.written(options, schema),
            "seed": cell(explainer.random_state),
            "compiled": None if compiled is None else compiled.kind,
            "wording": wording.to_dict() or None,
        },
        "constraints": {"set_by": None, "constraints": configuration.constraints(options, schema)},
    }
    if key is not None and len(texts_of) < MOST_DESCRIBED:
        texts_of[key] = json.dumps(described)
    return described


def _plain_key(options: Mapping[str, object]) -> Hashable | None:
    """Return a key that is equal only for the same options; None if one of them is not a plain value."""
    key: list[Hashable] = []
    for option, value in options.items():
        is_plain = value is None or value == () or type(value) in PLAIN_OPTIONS
        part = _plain_key(value.values()) if isinstance(value, PaperOptions) else repr(value) if is_plain else None
        if part is None:
            return None
        key.append((option, part))
    return tuple(key)


def digests(explainer: FasterCE, model_digest: str | None) -> dict[str, str | None]:
    """Return the digests of model, schema and artifact."""
    if model_digest is not None and not (isinstance(model_digest, str) and DIGEST.fullmatch(model_digest)):
        raise InputError("records.not_a_digest", option="model_digest", received=model_digest)
    return {"model": model_digest, "schema": artifact.schema_digest(explainer), "artifact": artifact.digest(explainer)}


def _metrics(explanation: Explanation) -> Record:
    """Return the metrics of the whole call."""
    usage, compiled = explanation.usage, explanation.compiled
    return {
        "rows_explained": len(explanation),
        "model_calls": usage.calls,
        "model_rows": usage.rows,
        "compiled_calls": None if compiled is None else compiled.calls,
        "compiled_rows": None if compiled is None else compiled.rows,
        "seconds": float(explanation.seconds),
    }


def _rows(explainer: FasterCE, explanation: Explanation, changes: Changes, threshold: float | None) -> list[Record]:
    """Return the fields that differ from row to row."""
    found = outcomes(explainer, explanation)
    columns = list(explanation.rows.columns)
    names = [name(column) for column in columns]
    values = table_rows(explanation.rows)
    counterfactuals = _counterfactuals(explanation, found, changes, columns, values)
    start = np.searchsorted(explanation.arrays.query, np.arange(len(explanation) + 1)).tolist()
    problems = explanation.problems or [()] * len(explanation)
    return [
        {
            "input": {"columns": list(names), "values": list(values[k]), "notes": notes(columns, values[k])},
            "outcome": {**found.rows[k], "threshold": threshold},
            "target": _target(explainer, explanation, wanted),
            "status": status,
            "reason": reason_text(explanation, k) or None,
            "problems": [_problem(problem) for problem in problems[k]],
            "infeasible": _infeasible(explanation.infeasible.get(k)),
            "counterfactuals": counterfactuals[start[k] : start[k + 1]],
        }
        for k, (status, wanted) in enumerate(zip(explanation.status.tolist(), explanation.target.tolist(), strict=True))
    ]


def _counterfactuals(
    explanation: Explanation,
    outcome: Outcomes,
    changes: Changes,
    columns: list[Hashable],
    values: list[tuple[Cell, ...]],
) -> list[Record]:
    arrays = explanation.arrays
    place = {column: k for k, column in enumerate(columns)}
    measured = {part: getattr(arrays, part).tolist() for part in ("distance", *MEASURED)}
    found = []
    for k, (row, rank, method) in enumerate(
        zip(arrays.query.tolist(), arrays.rank.tolist(), arrays.method.tolist(), strict=True)
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
                **outcome.counterfactuals[k],
                "confirmed": True,
                **{part: _finite(measure[k]) for part, measure in measured.items()},
            }
        )
    return found


def _change(change: Change) -> Record:
    return change.to_dict(cell) | {"feature": name(change.feature)}


def _problem(problem: Problem) -> Record:
    """Return a problem as data, without the position of its row, which depends on the other rows of the call."""
    found = problem.without_row().to_dict()
    values = {key: name(getattr(problem, key)) for key in ("column", "received") if getattr(problem, key) is not None}
    return dict(converted(found | values, cell))


def _infeasible(found: Infeasibility | None) -> Record | None:
    if found is None:
        return None
    return {
        "blocking": [
            {"text": one.text, "origin": one.origin, "columns": [name(column) for column in one.columns]}
            for one in found.blocking
        ],
        "unlocked": [_change(change) for change in found.unlocked],
        "constrained": found.constrained,
        "progress": found.progress,
        "proven": found.proven,
    }


def _target(explainer: FasterCE, explanation: Explanation, wanted: Any) -> Record | None:
    if wanted is None:
        return None
    options = explanation.options
    kind = target_kind(wanted, options["target_score"])
    if kind == OTHER and wanted in explainer.classes_:
        kind = CLASS
    # An open end is None for a number; for a probability it is 0 or 1.
    low, high = {NUMBER: options["target"], CHANCE: options["target_score"]}.get(kind, (None, None))
    least, most = (0.0, 1.0) if kind == CHANCE else (None, None)
    return {
        "kind": kind,
        "class": cell(wanted) if kind in (CLASS, CHANCE) else None,
        "low": least if low is None else _finite(float(low)),
        "high": most if high is None else _finite(float(high)),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _per_row(option: str, given: Sequence[Json] | None, count: int) -> list[Json]:
    if given is None:
        return [None] * count
    if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__len__") or len(given) != count:
        received = len(given) if hasattr(given, "__len__") and not isinstance(given, str) else given
        raise InputError("records.not_per_row", option=option, expected=count, received=received)
    return [_reasons(one) if option == "reasons" else _id(option, one) for one in given]


def _id(option: str, value: object) -> Cell:
    if isinstance(value, uuid.UUID):
        return str(value)
    found = cell(value)
    if isinstance(found, dict):
        raise InputError("records.not_an_id", option=option, received=value)
    return found


def _reasons(value: object) -> list[Json] | None:
    if value is None:
        return None
    try:
        listed: object = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError("records.reasons_not_json", option="reasons", received=value) from error
    if not isinstance(listed, list):
        raise InputError("records.reasons_not_lists", option="reasons", received=value)
    return listed


def _optional_text(option: str, value: str | None) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InputError("records.not_text", option=option, received=type(value).__name__)
    return value


def _threshold(value: float | None) -> float | None:
    found = cell(value)
    if found is not None and (isinstance(found, bool) or not isinstance(found, (int, float))):
        raise InputError("records.not_finite", option="threshold", received=value)
    return found


def _time(now: datetime | None) -> str:
    if now is None:
        now = datetime.now(UTC)
    if not isinstance(now, datetime) or now.tzinfo is None:
        raise InputError("records.no_time_zone", option="now", received=now)
    return now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _date(given: date | str | None) -> str | None:
    """Return a day as YYYY-MM-DD."""
    if given is None:
        return None
    try:
        found = date.fromisoformat(given) if isinstance(given, str) else given
        return (found.date() if isinstance(found, datetime) else found).isoformat()
    except (ValueError, AttributeError) as error:
        raise InputError("records.not_a_date", option="retain_until", received=given) from error
