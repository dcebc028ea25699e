"""Explain a batch of requests and write audit records as JSON text: what a worker does, without any processes."""

import os
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic, perf_counter

import numpy as np
import pandas as pd

from fasterce import artifact, records
from fasterce.errors import FasterCEError, InputError, ModelError, Problem, make_problem
from fasterce.explainer import FasterCE
from fasterce.explanation import INVALID_INPUT, MODEL_ERROR, CounterfactualArrays, Explanation
from fasterce.models.predictions import FAILED
from fasterce.records import Wording
from fasterce.records.cells import cell
from fasterce.records.files import SharedText, encode
from fasterce.records.pseudonyms import VARIABLE
from fasterce.records.structure import Record
from fasterce.serve.messages import (
    NO_USAGE,
    BatchUsage,
    Description,
    InvalidRequest,
    Json,
    StoredRecord,
    WorkerRequest,
    without_addresses,
)
from fasterce.serve.settings import ServedArtifact, Settings
from fasterce.serve.workers.convert import RowReader, explain_arguments, invalid_option
from fasterce.serve.workers.describe import schema_body

# Time reserved for writing records: this many seconds, and at most this share of the time there is.
RESERVED_SECONDS, MAX_RESERVED_SHARE = 0.05, 0.3
LEAST_SECONDS = 0.001
WARM_UP_SECONDS = 60.0


Outcome = tuple[StoredRecord, ...] | tuple[Json, ...] | InvalidRequest


@dataclass(frozen=True)
class BatchResult:
    """The outcome of each request of a batch, in order; `cut_short` if the deadline changed anything.

    `problems` has the problem of each request for one row that is invalid.
    """

    outcomes: Sequence[Outcome]
    problems: Sequence[Problem | None]
    usage: BatchUsage = NO_USAGE
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
    """All artifacts of a service, loaded; requests for one artifact with the same options are explained in one call.

    Parameters
    ----------
    settings : Settings
    efforts : bool, default True
        Whether descriptions have the efforts of others to compare with, which take as long as to load the rest.
    """

    def __init__(self, settings: Settings, efforts: bool = True) -> None:
        self.efforts = efforts
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
        body = schema_body(explainer, served.name, title, digest, self.wording, self.efforts)
        description = Description(
            name=served.name,
            title=title,
            artifact_digest=body["digests"]["artifact"],
            model_digest=digest,
            model_kind=opened.model_kind,
            schema=body,
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

    def run(self, requests: Sequence[WorkerRequest]) -> BatchResult:
        """Explain or predict the rows of all requests, which have the same action."""
        if requests[0].action == "explain":
            return self.explain(requests)
        loaded = self.artifacts[requests[0].artifact]
        outcomes: list[Outcome] = [_check(loaded, request) or _predictions(loaded, request) for request in requests]
        rows = sum(len(request.rows) for request in requests)
        return BatchResult(outcomes, [None] * len(requests), BatchUsage(len(requests), rows, rows))

    def model_problems(self) -> dict[str, Problem]:
        """Return why remote models do not respond, by artifact."""
        found = {}
        for name, loaded in self.artifacts.items():
            if loaded.description.is_remote:
                examples = loaded.explainer.state_.search.examples[:1]
                try:
                    loaded.explainer.model.predict(loaded.explainer.state_.table.frame(examples))
                except FasterCEError as error:
                    found[name] = error.problem
                except Exception as error:
                    found[name] = make_problem("serve.model_failed", kind=type(error).__name__)
        return found

    def explain(self, requests: Sequence[WorkerRequest]) -> BatchResult:
        """Call `explain` once for all requests; one that is invalid does not affect the others."""
        loaded = self.artifacts[requests[0].artifact]
        errors = [_check(loaded, request) for request in requests]
        valid = [request for request, error in zip(requests, errors, strict=True) if error is None]
        problems: list[Problem | None] = [None] * len(requests)
        if not valid:
            return BatchResult([error for error in errors if error is not None], problems)
        try:
            explanation = _explain(loaded, valid)
        except InvalidRequest as common:
            return BatchResult([common if error is None else error for error in errors], problems)
        began = perf_counter()
        made = _made(loaded, explanation, self.wording)
        loaded.record_seconds = (perf_counter() - began) / len(made)
        outcomes: list[Outcome] = []
        statuses = explanation.status.tolist()
        start = 0
        shared: SharedText = {}
        for k, (request, error) in enumerate(zip(requests, errors, strict=True)):
            if error is None:
                end = start + len(request.rows)
                outcomes.append(_stored(loaded.description.name, request, made[start:end], shared))
                if end == start + 1 and statuses[start] == INVALID_INPUT:
                    problems[k] = explanation.problems[start][0].without_row()
                start = end
            else:
                outcomes.append(error)
        usage = BatchUsage(explanation.usage.calls, explanation.usage.rows, len(explanation))
        return BatchResult(outcomes, problems, usage, explanation.cut_short)


def _predictions(loaded: LoadedArtifact, request: WorkerRequest) -> tuple[Json, ...] | InvalidRequest:
    """Return the model's predictions for the rows of a request, as JSON; null where the model failed."""
    explainer = loaded.explainer
    read = explainer.state_.table.read(loaded.reader.frame(request.rows, range(len(request.rows))))
    problem = read.first_problem
    if problem is not None:
        return InvalidRequest(problem.without_row(), f"instances[{problem.row}]")
    predictor = explainer._predictor()
    numbers = explainer.state_.numbers is not None
    found = predictor.verify(predictor.table.frame(read.codes), raw=numbers)
    if numbers and found.values is not None:
        return tuple(cell(value) for value in found.values[:, 0])
    return tuple(None if place == FAILED else cell(explainer.classes_[place]) for place in found.classes)


def _check(loaded: LoadedArtifact, request: WorkerRequest) -> InvalidRequest | None:
    """Return why a request cannot be explained whatever the model predicts; None if it can."""
    try:
        loaded.reader.check(request.rows)
        _pseudonyms(request)
    except InvalidRequest as error:
        return error
    return None


def _explain(loaded: LoadedArtifact, requests: Sequence[WorkerRequest]) -> Explanation:
    """Explain within the time left. A deadline that changed nothing is left out of the options, since the result does not
    depend on it."""
    labels: list[Hashable] = []
    for request in requests:
        labels += range(len(request.rows)) if request.row_ids is None else request.row_ids
    frame = loaded.reader.frame([row for request in requests for row in request.rows], labels)
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
    found = _without_addresses(found)
    return found if found.cut_short else replace(found, options={**found.options, "deadline": None})


def _without_addresses(found: Explanation) -> Explanation:
    """Leave the addresses of remote models out of the reasons of rows the model failed on."""
    statuses = found.status.tolist()
    if MODEL_ERROR not in statuses or not found.problems:
        return found
    problems = [
        [without_addresses(problem) for problem in one] if status == MODEL_ERROR else one
        for one, status in zip(found.problems, statuses, strict=True)
    ]
    reasons = [
        " ".join(problem.text() for problem in one) if status == MODEL_ERROR else reason
        for one, status, reason in zip(problems, statuses, found.reason, strict=True)
    ]
    return replace(found, problems=problems, reason=pd.Series(reasons, found.reason.index, dtype=object, name="reason"))


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


def _pseudonyms(request: WorkerRequest) -> Sequence[str | None]:
    """Return the subjects by names that cannot be traced back to a person without the key."""
    if request.subjects is None:
        return [None] * len(request.rows)
    key = os.environ.get(VARIABLE, "")
    if not key:
        raise InvalidRequest("serve.no_pseudonym_key", "subjects", option="subjects", variable=VARIABLE)
    try:
        return [records.pseudonym(subject, key) for subject in request.subjects]
    except InputError as error:
        raise InvalidRequest(error.problem, "subjects") from error


def _stored(name: str, request: WorkerRequest, made: Sequence[Record], shared: SharedText) -> tuple[StoredRecord, ...]:
    """Return the records of a request with what comes from it, in copies: records of a call share their parts, whose text is
    kept in `shared`."""
    decisions: Sequence[str | None] = request.decision_ids or [None] * len(made)
    edited: Sequence[Sequence[str]] = request.edited or [()] * len(made)
    found = []
    for record, decision, subject, columns in zip(made, decisions, _pseudonyms(request), edited, strict=True):
        ids = record["ids"] | {"request": request.request_id, "decision": decision, "subject": subject}
        own = record | {"ids": ids, "retain_until": request.retain_until}
        if request.constraints_by is not None:
            own["constraints"] = record["constraints"] | {"set_by": request.constraints_by}
        if columns:
            own["input"] = record["input"] | {"edited": [name for name in record["input"]["columns"] if name in columns]}
        found.append(
            StoredRecord(
                id=ids["record"],
                request=request.request_id,
                decision=decision,
                subject=subject,
                artifact=name,
                status=own["status"],
                time=own["time"],
                retain_until=request.retain_until,
                key=request.key,
                body=encode(own, shared),
            )
        )
    return tuple(found)
