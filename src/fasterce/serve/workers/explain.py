"""Explain a batch of requests and write audit records as JSON text: what a worker does, without any processes."""

import os
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from time import monotonic, perf_counter

import numpy as np
import pandas as pd

from fasterce import artifact, records
from fasterce.errors import (
    ArtifactError,
    FasterCEError,
    InputError,
    MissingExtraError,
    ModelError,
    Problem,
    make_problem,
)
from fasterce.explainer import FasterCE
from fasterce.explanation import INVALID_INPUT, MODEL_ERROR, CounterfactualArrays, Explanation
from fasterce.records import Wording
from fasterce.records.create import Record
from fasterce.serve.messages import Description, InvalidRequest, StoredRecord, UnknownArtifact, WorkerRequest
from fasterce.serve.settings import ServedArtifact, Settings
from fasterce.serve.workers.describe import schema_body
from fasterce.serve.workers.options import explain_arguments, invalid_option
from fasterce.serve.workers.rows import RowReader

PSEUDONYM_KEY = "FASTERCE_PSEUDONYM_KEY"
# Time reserved for writing records: this many seconds, and at most this share of the time there is.
RESERVED_SECONDS, MAX_RESERVED_SHARE = 0.05, 0.3
LEAST_SECONDS = 0.001
PICKLE_NOT_TRUSTED = "models.pickle_not_trusted"
WARM_UP_SECONDS = 60.0

Outcome = tuple[StoredRecord, ...] | InvalidRequest


@dataclass(frozen=True)
class BatchResult:
    """The outcome of each request of a batch, in order; `cut_short` if the deadline changed anything.

    `problems` has the problem of each request for one row that is invalid.
    """

    outcomes: tuple[Outcome, ...]
    problems: tuple[Problem | None, ...]
    calls: int = 0
    model_rows: int = 0
    batch_rows: int = 0
    seconds: float = 0.0
    cut_short: bool = False


@dataclass
class LoadedArtifact:
    """An explainer with its model; `record_seconds` is how long the record of a row took lately."""

    explainer: FasterCE
    model_digest: str | None
    reader: RowReader
    description: Description
    record_seconds: float = 0.0


class BatchExplainer:
    """All artifacts of a service, loaded; requests for one artifact with the same options are explained in one call."""

    def __init__(self, settings: Settings) -> None:
        self.wording = Wording() if settings.wording is None else Wording.load(settings.wording)
        self.artifacts = {served.name: self._load(served) for served in settings.artifacts}

    @property
    def descriptions(self) -> list[Description]:
        return [loaded.description for loaded in self.artifacts.values()]

    def _load(self, served: ServedArtifact) -> LoadedArtifact:
        names = None if served.classes is None else [name.strip() for name in served.classes.split(",")]
        opened = artifact.open_explainer(served.folder, served.model, trusted=served.trusted, classes=names)
        explainer, digest = opened.explainer, opened.model_digest
        title = served.title or served.name
        body = schema_body(explainer, served.name, title, digest, self.wording)
        description = Description(
            name=served.name,
            title=title,
            artifact_digest=body["digests"]["artifact"],
            model_digest=digest,
            model_kind=opened.model_kind,
            schema=body,
            classes=tuple(body["target"].get("classes", ())),
            loaded=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        )
        return LoadedArtifact(explainer, digest, RowReader(explainer.state_.table), description)

    def warm_up(self) -> None:
        """Explain a typical row once, so that the first request does not pay for what is done only once."""
        for name, loaded in self.artifacts.items():
            row = {feature["name"]: feature["typical"] for feature in loaded.description.schema["features"]}
            target = [None, 0.0] if loaded.explainer.state_.numbers is not None else "any other"
            options = {"diagnose": False, "target": target}
            self.explain([WorkerRequest(name, (row,), options, monotonic() + WARM_UP_SECONDS, "warm-up")])

    def explain(self, requests: Sequence[WorkerRequest]) -> BatchResult:
        """Call `explain` once for all requests; one that is invalid does not affect the others."""
        started = perf_counter()
        loaded = self.artifacts.get(requests[0].artifact)
        if loaded is None:
            raise UnknownArtifact("serve.unknown_artifact", received=requests[0].artifact)
        errors = [_check(loaded, request) for request in requests]
        valid = [request for request, error in zip(requests, errors, strict=True) if error is None]
        try:
            explanation, made = self._records(loaded, valid)
        except InvalidRequest as common:
            return BatchResult(tuple(common if error is None else error for error in errors), (None,) * len(errors))
        remaining = iter(made)
        outcomes = tuple(
            tuple(_stored(loaded.description.name, next(remaining)) for _ in request.rows) if error is None else error
            for request, error in zip(requests, errors, strict=True)
        )
        if explanation is None:
            return BatchResult(outcomes, (None,) * len(errors), seconds=perf_counter() - started)
        usage = explanation.usage
        return BatchResult(
            outcomes,
            _row_problems(explanation, requests, errors),
            calls=usage.calls,
            model_rows=usage.rows,
            batch_rows=len(explanation),
            seconds=perf_counter() - started,
            cut_short=explanation.cut_short,
        )

    def _records(self, loaded: LoadedArtifact, requests: Sequence[WorkerRequest]) -> tuple[Explanation | None, list[Record]]:
        rows = [row for request in requests for row in request.rows]
        if not rows:
            return None, []
        frame = loaded.reader.frame(rows, [label for request in requests for label in _labels(request)])
        explanation = _explain(loaded, frame, requests)
        began = perf_counter()
        made = _made(loaded, explanation, self.wording)
        loaded.record_seconds = (perf_counter() - began) / len(rows)
        ids = (one for request in requests for one in _identities(request))
        return explanation, [_with_identity(record, identity) for record, identity in zip(made, ids, strict=True)]


def _check(loaded: LoadedArtifact, request: WorkerRequest) -> InvalidRequest | None:
    """Return why a request cannot be explained whatever the model predicts; None if it can."""
    try:
        loaded.reader.check(request.rows)
        _check_ids(request)
    except InvalidRequest as error:
        return error
    return None


def _row_problems(
    explanation: Explanation, requests: Sequence[WorkerRequest], errors: Sequence[InvalidRequest | None]
) -> tuple[Problem | None, ...]:
    """Return the problem of each request for one row that is invalid; `errors` are requests that were not explained."""
    found: list[Problem | None] = []
    place = 0
    for request, error in zip(requests, errors, strict=True):
        explained = 0 if error is not None else len(request.rows)
        invalid = explained == 1 and explanation.status.iloc[place] == INVALID_INPUT
        found.append(explanation.problems[place][0].without_row() if invalid else None)
        place += explained
    return tuple(found)


def _explain(loaded: LoadedArtifact, frame: pd.DataFrame, requests: Sequence[WorkerRequest]) -> Explanation:
    """Explain within the time left. A deadline that changed nothing is left out of the options, since the result does not
    depend on it."""
    arguments = explain_arguments(loaded.explainer, requests[0].options)
    left = min(request.until for request in requests) - monotonic()
    reserved = min(RESERVED_SECONDS + 2 * len(frame) * loaded.record_seconds, MAX_RESERVED_SHARE * left)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            deadline = max(left - reserved, LEAST_SECONDS)
            found = loaded.explainer.explain(frame, **arguments, deadline=deadline).in_pandas()
    except InputError as error:
        raise invalid_option(error) from error
    return found if found.cut_short else replace(found, options={**found.options, "deadline": None})


def _made(loaded: LoadedArtifact, explanation: Explanation, wording: Wording) -> list[Record]:
    """Return the records of all rows. Rows for which the model contradicts itself are found by halving, and get the status
    of a model error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return records.make(loaded.explainer, explanation, model_digest=loaded.model_digest, template=wording)
    except ModelError:
        if len(explanation) == 1:
            return _made(loaded, _contradicted(explanation), wording)
        half = len(explanation) // 2
        parts = (explanation.take(0, half), explanation.take(half, len(explanation)))
        return [record for part in parts for record in _made(loaded, part, wording)]


def _contradicted(explanation: Explanation) -> Explanation:
    """Return the explanation of one row with nothing but a model error."""
    index = explanation.rows.index
    none: CounterfactualArrays = explanation.arrays.where(np.zeros(len(explanation.arrays), dtype=bool))
    nothing = pd.Series([None], index, dtype=object)
    number = pd.Series([np.nan], index)
    problem = make_problem("serve.model_inconsistent")
    return replace(
        explanation,
        status=pd.Series([MODEL_ERROR], index, dtype=object),
        reason=pd.Series([str(problem)], index, dtype=object),
        prediction=number if explanation.prediction.dtype.kind == "f" else nothing,
        target=nothing,
        score=number,
        arrays=none,
        infeasible={},
        problems=(),
        probabilities=None,
    )


def _labels(request: WorkerRequest) -> Sequence[Hashable]:
    return range(len(request.rows)) if request.row_ids is None else request.row_ids


def _check_ids(request: WorkerRequest) -> None:
    count = len(request.rows)
    for field in ("row_ids", "decision_ids", "subjects"):
        given = getattr(request, field)
        if given is not None and len(given) != count:
            raise InvalidRequest("serve.not_one_per_row", field, option=field, expected=count, received=len(given))
        if given is not None and not all(isinstance(one, (str, int)) and not isinstance(one, bool) for one in given):
            raise InvalidRequest("serve.not_ids", field, option=field)
    if request.retain_until is not None:
        try:
            date.fromisoformat(request.retain_until)
        except ValueError:
            raise InvalidRequest("serve.not_a_date", "retain_until", option="retain_until") from None
    if request.subjects is not None:
        _pseudonyms(request)


def _pseudonyms(request: WorkerRequest) -> list[str]:
    """Return the subjects by names that cannot be traced back to a person without the key."""
    key = os.environ.get(PSEUDONYM_KEY, "")
    if not key:
        raise InvalidRequest("serve.no_pseudonym_key", "subjects", option="subjects", variable=PSEUDONYM_KEY)
    try:
        return [records.pseudonym(subject, key) for subject in request.subjects or ()]
    except InputError as error:
        raise InvalidRequest(error.problem, "subjects") from error


def _identities(request: WorkerRequest) -> list[Record]:
    """Return the parts of each record that come from the request."""
    count = len(request.rows)
    subjects: Sequence[str | None] = [None] * count if request.subjects is None else _pseudonyms(request)
    decisions: Sequence[str | None] = [None] * count if request.decision_ids is None else request.decision_ids
    return [
        {
            "ids": {"request": request.request_id, "decision": decision, "subject": subject},
            "set_by": request.constraints_by,
            "retain_until": request.retain_until and date.fromisoformat(request.retain_until).isoformat(),
        }
        for decision, subject in zip(decisions, subjects, strict=True)
    ]


def _with_identity(record: Record, identity: Record) -> Record:
    """Return a copy: parts of a record are shared by all records of a call."""
    return record | {
        "ids": record["ids"] | identity["ids"],
        "constraints": record["constraints"] | {"set_by": identity["set_by"]},
        "retain_until": identity["retain_until"],
    }


def _stored(name: str, record: Record) -> StoredRecord:
    ids = record["ids"]
    return StoredRecord(
        id=ids["record"],
        request=ids["request"],
        decision=None if ids["decision"] is None else str(ids["decision"]),
        subject=ids["subject"],
        artifact=name,
        status=record["status"],
        time=record["time"],
        retain_until=record["retain_until"],
        body=records.to_json(record),
    )


def error_kind(error: Exception) -> str:
    """Return the name of the class in `fasterce.errors` that decides the exit code."""
    kinds = (ArtifactError, MissingExtraError, ModelError)
    return next((kind.__name__ for kind in kinds if isinstance(error, kind)), "")


def load_problem(error: Exception) -> Problem:
    """Return why an artifact could not be loaded. A service does not offer to trust a pickle."""
    if isinstance(error, FasterCEError):
        problem = error.problem
        return replace(problem, code="models.pickle_not_accepted") if problem.code == PICKLE_NOT_TRUSTED else problem
    return make_problem("serve.artifact_not_loaded", kind=type(error).__name__, reason=str(error)[:300])
