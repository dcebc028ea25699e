"""Reproduce records: explain the same input with the same options again, and compare the results."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from fasterce.artifact.manifest import versions
from fasterce.errors import FasterCEError, InputError, make_problem
from fasterce.explainer import FasterCE
from fasterce.explanation import ALREADY_TARGET, FOUND, MODEL_ERROR
from fasterce.records import configuration
from fasterce.records.cells import converted, restored, restored_name
from fasterce.records.create import digests, make
from fasterce.records.outcomes import TOLERANCE
from fasterce.records.structure import Record, check_structure
from fasterce.typing import Json
from fasterce.viz.grid import Displayable, Sheet

COMPARED = (
    *("replayable", "why_not_replayable", "outcome", "target", "constraints", "status", "problems", "infeasible"),
    *("counterfactuals", "text"),
)
IS_COMPARED = (
    "Compared: digests, the seed, outcome and score, target, the constraints in force, status, problems, infeasible, every "
    "counterfactual and its text."
)
IS_TAKEN = (
    "Taken from the record and not proved: input and options (which are explained again), threshold, who set the "
    "constraints, ids, time, software, reason, reasons, notice, metrics, human review, retention."
)
ROUNDED = ("score", "prediction", "progress")  # Compared with a tolerance.
LARGEST_EXACT = 2**53
# The code of the problem that says that there is no counterfactual.
PROVEN = "search.proven"
MOST_SKIPPED = 10

Difference = tuple[Json, str, Json, Json]


@dataclass(frozen=True)
class Replay(Displayable):
    """The result of `replay`.

    Attributes
    ----------
    count : int
        Number of records.
    differences : list of tuple
        (id of the record, field, recorded value, value now), in the order of the records.
    skipped : list of tuple
        (id of the record, why it cannot be reproduced).
    notes : tuple of str
        What could not be compared, and which versions differ.
    """

    count: int
    differences: list[Difference]
    skipped: list[tuple[Json, str]]
    notes: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether every record was reproduced without a difference."""
        return not self.differences and not self.skipped

    def __repr__(self) -> str:
        return f"Replay({self.count} records, {len(self.differences)} differences, {len(self.skipped)} skipped)"

    def _sheet(self) -> Sheet:
        changed = len({_key(record) for record, *_ in self.differences})
        same = self.count - changed - len(self.skipped)
        heading = f"{same} of {self.count} records were reproduced, the same in all that is compared"
        if changed:
            heading += f"; {changed} differ"
        if self.skipped:
            heading += f"; {len(self.skipped)} cannot be reproduced"
        columns = ["record", "field", "recorded", "now"]
        lines = [(record, field, _short(before), _short(now)) for record, field, before, now in self.differences]
        frame = pd.DataFrame(lines, columns=columns, dtype=object).set_index("record")
        skipped = tuple(f"{record}: {why}" for record, why in self.skipped[:MOST_SKIPPED])
        return Sheet.from_frame(f"{heading}.", frame, (*self.notes, *skipped, IS_COMPARED, IS_TAKEN))


def replay(records: Record | Sequence[Record], explainer: FasterCE, *, model_digest: str | None = None) -> Replay:
    """Reproduce records and compare them: digests first, then every result.

    Input and options are taken from the record, as is what no explainer can know: ids, time, software, threshold, who set
    the constraints, reasons, metrics, review, retention.

    Parameters
    ----------
    records : dict or sequence of dict
        One record or several.
    explainer : FasterCE
        The explainer to reproduce them with.
    model_digest : str, optional
        Digest of the model the explainer has; without it the model is compared by its predictions only.

    Returns
    -------
    Replay

    Raises
    ------
    InputError
        If there is no record, or one lacks fields of the schema.
    """
    listed = [records] if isinstance(records, Mapping) else list(records)
    if not listed:
        raise InputError("records.no_records", option="records")
    for record in listed:
        check_structure(record)
    try:
        return _Replaying(listed, explainer, model_digest).run()
    except FasterCEError:
        raise
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, RecursionError) as error:
        raise InputError("records.invalid_record", reason=f"{type(error).__name__}: {error}") from error


class _Replaying:
    def __init__(self, records: Sequence[Record], explainer: FasterCE, model_digest: str | None) -> None:
        self.records, self.explainer, self.model_digest = records, explainer, model_digest
        self.differences: dict[int, list[Difference]] = {k: [] for k in range(len(records))}
        self.notes: dict[str, None] = {}

    def run(self) -> Replay:
        self._compare_environment()
        groups: dict[str, list[int]] = {}
        skipped = []
        for k, record in enumerate(self.records):
            if record["replayable"]:
                groups.setdefault(_call_key(record), []).append(k)
            else:
                skipped.append((record["ids"]["record"], record["why_not_replayable"]))
        for members in groups.values():
            self._explain_again(members)
        differences = [one for k in range(len(self.records)) for one in self.differences[k]]
        return Replay(len(self.records), differences, skipped, tuple(self.notes))

    def _compare_environment(self) -> None:
        """Report digests that differ as differences, and other versions as notes."""
        here = digests(self.explainer, self.model_digest)
        running = versions()
        state = self.explainer.state_.compiled
        compiled = None if state is None else state.kind
        for k, record in enumerate(self.records):
            for what, now in here.items():
                recorded = record["digests"][what]
                if what == "model" and (recorded is None or now is None):
                    self._note("records.no_model_digest")
                elif recorded != now:
                    self._differ(k, f"digests.{what}", recorded, now)
            for what, version in record["software"].items():
                if running.get(what, version) != version:
                    self._note("records.other_version", what=what, expected=version, received=running[what])
            recorded = record["configuration"]["compiled"]
            if recorded != compiled:
                self._note("records.other_compiled", expected=str(recorded), received=str(compiled))

    def _explain_again(self, members: list[int]) -> None:
        """Reproduce all records of equal configuration in one call."""
        first = self.records[members[0]]
        settings = first["configuration"]
        if settings["seed"] != self.explainer.random_state:
            for k in members:
                self._differ(k, "configuration.seed", settings["seed"], self.explainer.random_state)
        rows = _rows([self.records[k]["input"] for k in members])
        try:
            options = configuration.restored(converted(settings["options"], _whole))
            explanation = self.explainer.explain(rows, **options)
            threshold, set_by = first["outcome"]["threshold"], first["constraints"]["set_by"]
            now = make(self.explainer, explanation, template=settings["wording"], threshold=threshold, constraints_by=set_by)
        except FasterCEError as error:
            for k in members:
                self._differ(k, "explain", "an explanation", str(error))
            return
        for k, again in zip(members, now, strict=True):
            record = self.records[k]
            for part in COMPARED:
                for field, recorded, value in _differing(part, _data(part, record), _data(part, again)):
                    self._differ(k, field, recorded, value)

    def _differ(self, k: int, field: str, recorded: Json, now: Json) -> None:
        self.differences[k].append((self.records[k]["ids"]["record"], field, recorded, now))

    def _note(self, code: str, **fields: str) -> None:
        self.notes[str(make_problem(code, **fields))] = None


def _call_key(record: Record) -> str:
    given = record["outcome"]["threshold"], record["constraints"]["set_by"]
    return _key([record["configuration"], record["input"]["columns"], *given])


def _rows(inputs: Sequence[Record]) -> pd.DataFrame:
    """Return the recorded input as a table of object columns."""
    columns = [restored_name(column) for column in inputs[0]["columns"]]
    if any(len(one["values"]) != len(columns) for one in inputs):
        raise InputError("records.value_count", expected=len(columns))
    frame = pd.DataFrame([[restored(value) for value in one["values"]] for one in inputs], dtype=object)
    frame.columns = pd.Index(columns, tupleize_cols=False)
    return frame


def _data(part: str, record: Record) -> Json:
    """Return one field without texts of messages, which may be in another language."""
    value = record[part]
    if part == "text":
        return value if record["status"] in (FOUND, ALREADY_TARGET) else None
    if part == "problems" and record["status"] == MODEL_ERROR:
        return [problem["code"] for problem in value]
    if part == "problems":
        # Details may hold texts as well; the data they are made of is compared in `infeasible`.
        return [{key: one for key, one in problem.items() if key != "details"} for problem in value]
    if part == "constraints":
        return value | {part: [_without_text(one) for one in value[part]]}
    if part == "infeasible" and value is not None:
        # Earlier records say this in `problems` alone.
        proven = PROVEN in [problem["code"] for problem in record["problems"]]
        return {"proven": proven} | value | {"blocking": [_without_text(one) for one in value["blocking"]]}
    return value


def _without_text(value: Record) -> Record:
    return {key: one for key, one in value.items() if key != "text"}


def _differing(field: str, recorded: Json, now: Json) -> Iterator[tuple[str, Json, Json]]:
    """Yield the innermost places at which two values differ."""
    if isinstance(recorded, dict) and isinstance(now, dict) and recorded.keys() == now.keys():
        for part in recorded:
            yield from _differing(f"{field}.{part}", recorded[part], now[part])
    elif isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        for place, (one, other) in enumerate(zip(recorded, now, strict=True)):
            yield from _differing(f"{field}[{place}]", one, other)
    elif not (_equal(recorded, now) or _nearly_equal(field, recorded, now)):
        yield field, recorded, now


def _equal(one: Json, other: Json) -> bool:
    """40 equals 40.0, since another tool may write either; true does not equal 1."""
    return bool(one == other) and (type(one) is type(other) or (_is_number(one) and _is_number(other)))


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _nearly_equal(field: str, recorded: Json, now: Json) -> bool:
    if not any(f".{part}" in field for part in ROUNDED):
        return False
    return _is_number(recorded) and _is_number(now) and math.isclose(recorded, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _whole(written: Json) -> Json:
    """Return a whole number as such, since another tool may have written 3.0 for 3."""
    exact = isinstance(written, float) and abs(written) <= LARGEST_EXACT and written.is_integer()
    return int(written) if exact else written


def _key(value: Json) -> str:
    return json.dumps(value, sort_keys=True)


def _short(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
