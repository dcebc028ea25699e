"""Can a record be made again? The same input, options and explainer, and every change, status and score compared."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fasterce.artifact.manifest import versions
from fasterce.display.sheet import Sheet, Shown
from fasterce.errors import FasterCEError, InputError
from fasterce.explainer import FasterCE
from fasterce.explanation import MODEL_ERROR
from fasterce.records import configuration
from fasterce.records.cells import restored, restored_name
from fasterce.records.making import Record, digests, make
from fasterce.records.rescoring import SLACK
from fasterce.records.structure import check_structure

COMPARED = (
    *("replayable", "why_not_replayable", "outcome", "target", "constraints", "status", "reason", "refusal"),
    *("counterfactuals", "text"),
)
IS_COMPARED = (
    "Compared: digests, the seed, outcome and score, target, the rules in force, status, reason, refusal, every "
    "counterfactual and the text."
)
IS_TAKEN = (
    "Taken from the record and not proved: input and options (they are what was asked again), threshold, who set the rules, "
    "ids, time, software, reasons, notice, metrics, human review, retention."
)
# What the model's own arithmetic says may round otherwise in another company of rows.
MEASURED_BY_THE_MODEL = ("score", "prediction", "progress")
EXACT = 2**53

Difference = tuple[Any, str, Any, Any]


@dataclass(frozen=True)
class Replay(Shown):
    """The result of `replay`.

    count        how many records there were
    differences  (record's id, field, what was recorded, what it is now), in the order of the records
    skipped      (record's id, why it cannot be made again)
    notes        what could not be compared, and what is another version here
    """

    count: int
    differences: list[Difference]
    skipped: list[tuple[Any, str]]
    notes: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Every record was made again, and nothing in it is different."""
        return not self.differences and not self.skipped

    def __repr__(self) -> str:
        return f"Replay({self.count} records, {len(self.differences)} differences, {len(self.skipped)} skipped)"

    def _sheet(self) -> Sheet:
        changed = len({_key(record) for record, *_ in self.differences})
        again = self.count - changed - len(self.skipped)
        heading = f"{again} of {self.count} records were made again, the same in all that is compared"
        if changed:
            heading += f"; {changed} differ"
        if self.skipped:
            heading += f"; {len(self.skipped)} cannot be made again"
        columns = ["record", "field", "recorded", "now"]
        lines = [(record, field, _short(before), _short(now)) for record, field, before, now in self.differences]
        frame = pd.DataFrame(lines, columns=columns, dtype=object).set_index("record")
        skipped = tuple(f"{record}: {why}" for record, why in self.skipped[:10])
        return Sheet(f"{heading}.", frame, (*self.notes, *skipped, IS_COMPARED, IS_TAKEN))


def replay(records: Record | Sequence[Record], explainer: FasterCE, *, model_digest: str | None = None) -> Replay:
    """Make records again and say what differs: digests first, then every answer.

    Input and options are taken from the record, and so is what no explainer can know: ids, time, software, threshold, who
    set the rules, reasons, metrics, review, retention. `model_digest` is that of the model the explainer has; without it
    the model is compared by its answers only.
    """
    listed = [records] if isinstance(records, Mapping) else list(records)
    if not listed:
        raise InputError("replay needs at least one record; got none.")
    for record in listed:
        check_structure(record)
    try:
        return _Replaying(listed, explainer, model_digest).run()
    except FasterCEError:
        raise
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, RecursionError) as error:
        raise InputError(
            f"Records must have all that their schema asks for (see records.validate); got {type(error).__name__}: {error}."
        ) from error


class _Replaying:
    def __init__(self, records: Sequence[Record], explainer: FasterCE, model_digest: str | None) -> None:
        self.records, self.explainer, self.model_digest = records, explainer, model_digest
        self.differences: dict[int, list[Difference]] = {k: [] for k in range(len(records))}
        self.skipped: list[tuple[Any, str]] = []
        self.notes: dict[str, None] = {}

    def run(self) -> Replay:
        groups: dict[str, list[int]] = {}
        self._compare_circumstances()
        for k, record in enumerate(self.records):
            if record["replayable"]:
                groups.setdefault(_asked_alike(record), []).append(k)
            else:
                self.skipped.append((record["ids"]["record"], record["why_not_replayable"]))
        for members in groups.values():
            self._again(members)
        differences = [one for k in range(len(self.records)) for one in self.differences[k]]
        return Replay(len(self.records), differences, self.skipped, tuple(self.notes))

    def _compare_circumstances(self) -> None:
        """Digests that differ are differences; other versions are only told, since answers are compared themselves."""
        here = digests(self.explainer, self.model_digest)
        running = versions()
        for k, record in enumerate(self.records):
            for what, now in here.items():
                recorded = record["digests"][what]
                if what == "model" and (recorded is None or now is None):
                    self.notes["The model's digest could not be compared, since it was not given."] = None
                elif recorded != now:
                    self._note(k, f"digests.{what}", recorded, now)
            for what, version in record["software"].items():
                if running.get(what, version) != version:
                    self.notes[f"{what} was {version} and is {running[what]} here."] = None
            twin = None if self.explainer.twin_ is None else self.explainer.twin_.kind
            if record["configuration"]["twin"] != twin:
                self.notes[f"The twin of the model was {record['configuration']['twin']} and is {twin} here."] = None

    def _again(self, members: list[int]) -> None:
        """All records asked alike in one call."""
        first, schema = self.records[members[0]], self.explainer.schema_
        settings = first["configuration"]
        if settings["seed"] != self.explainer.random_state:
            for k in members:
                self._note(k, "configuration.seed", settings["seed"], self.explainer.random_state)
        rows = _rows([self.records[k]["input"] for k in members])
        try:
            asked = configuration.restored(_whole(settings["options"]), schema)
            explanation = self.explainer.explain(rows, **asked)
            threshold, set_by = first["outcome"]["threshold"], first["constraints"]["set_by"]
            now = make(self.explainer, explanation, template=settings["wording"], threshold=threshold, constraints_by=set_by)
        except FasterCEError as error:
            for k in members:
                self._note(k, "explain", "an explanation", str(error))
            return
        for k, again in zip(members, now, strict=True):
            self._compare(k, self.records[k], again)

    def _compare(self, k: int, record: Record, again: Record) -> None:
        failed = record["status"] == again["status"] == MODEL_ERROR
        for part in COMPARED:
            # A model that fails may say so in other words in other company.
            if not (failed and part in ("reason", "text")):
                for field, recorded, now in _differing(part, record[part], again[part]):
                    self._note(k, field, recorded, now)

    def _note(self, k: int, field: str, recorded: Any, now: Any) -> None:
        self.differences[k].append((self.records[k]["ids"]["record"], field, recorded, now))


def _asked_alike(record: Record) -> str:
    given = record["outcome"]["threshold"], record["constraints"]["set_by"]
    return _key([record["configuration"], record["input"]["columns"], *given])


def _rows(inputs: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The table as it was received, value by value; types are left to whoever reads it."""
    columns = [restored_name(column) for column in inputs[0]["columns"]]
    values = list(zip(*(one["values"] for one in inputs), strict=True))
    if len(values) != len(columns) or any(len(one["values"]) != len(columns) for one in inputs):
        raise InputError(f"A record's input must have one value for each of its {len(columns)} columns; got others.")
    index = pd.RangeIndex(len(inputs))
    series = [pd.Series([restored(value) for value in column], index, dtype=object) for column in values]
    frame = pd.concat(series, axis=1)
    frame.columns = pd.Index(columns, tupleize_cols=False)
    return frame


def _differing(field: str, recorded: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """Where two values differ, as deep down as can be said."""
    if isinstance(recorded, dict) and isinstance(now, dict) and recorded.keys() == now.keys():
        for part in recorded:
            yield from _differing(f"{field}.{part}", recorded[part], now[part])
    elif isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        for place, (one, other) in enumerate(zip(recorded, now, strict=True)):
            yield from _differing(f"{field}[{place}]", one, other)
    elif not (_alike(recorded, now) or _rounded_alike(field, recorded, now)):
        yield field, recorded, now


def _alike(one: Any, other: Any) -> bool:
    """40 is 40.0, since whoever writes JSON again may write either; true is not 1."""
    return bool(one == other) and (type(one) is type(other) or (_is_number(one) and _is_number(other)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _rounded_alike(field: str, recorded: Any, now: Any) -> bool:
    if not any(f".{name}" in field for name in MEASURED_BY_THE_MODEL):
        return False
    return _is_number(recorded) and _is_number(now) and math.isclose(recorded, now, rel_tol=SLACK, abs_tol=SLACK)


def _whole(written: Any) -> Any:
    """Options as any writer of JSON may have left them: whole numbers as such, since some options take no others."""
    if isinstance(written, dict):
        return {name: _whole(value) for name, value in written.items()}
    if isinstance(written, list):
        return [_whole(value) for value in written]
    exact = isinstance(written, float) and abs(written) <= EXACT and written.is_integer()
    return int(written) if exact else written


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
