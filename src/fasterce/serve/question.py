"""What the front and the engines say to each other, as plain data: a question, its answer, and why there is none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fasterce.errors import FasterCEError


@dataclass(frozen=True)
class Question:
    """One request: rows as JSON objects and how they are to be explained.

    options : of `POST /v1/explain`, by the names they have there, as JSON: method, n, target, target_score, freeze, vary,
        ranges, rules, override, robust, distance, realism, diversity, budget, why_not. Questions with equal options may
        be answered in one call.
    until : when an answer is too late, on the front's monotonic clock.
    row_ids, decision_ids, subjects : one a row, or none; subjects as received, made pseudonyms by the engine.
    """

    artifact: str
    rows: tuple[Mapping[str, Any], ...]
    options: Mapping[str, Any]
    until: float
    request_id: str
    row_ids: tuple[str | int, ...] | None = None
    decision_ids: tuple[str, ...] | None = None
    subjects: tuple[str, ...] | None = None
    constraints_by: str | None = None
    retain_until: str | None = None


@dataclass(frozen=True)
class Kept:
    """One audit record as it is stored: what it is looked up by, and its JSON text."""

    id: str
    request: str
    decision: str | None
    subject: str | None
    artifact: str
    status: str
    time: str
    retain_until: str | None
    body: str


@dataclass(frozen=True)
class Answer:
    """A record a row, in order, and what the call cost that answered it (together with others, `batch_rows` in all)."""

    records: tuple[Kept, ...]
    description: "Description"
    calls: int
    rows_asked: int
    batch_rows: int
    seconds: float


@dataclass(frozen=True)
class Description:
    """An artifact as the engines have it: `schema` is the body of `GET /v1/schema` without limits."""

    name: str
    title: str
    artifact_digest: str
    model_digest: str | None
    model_kind: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    classes: tuple[Any, ...] = ()
    loaded: str = ""


@dataclass(frozen=True)
class Load:
    """How busy the engines are."""

    waiting_rows: int
    running_rows: int
    engines: int
    busy: int
    spare: bool
    restarts: int
    generation: int


class Unanswered(FasterCEError):
    """There is no answer; the sentence says why and holds nothing of a person's data."""


class Refused(Unanswered):
    """The question itself is wrong: `field` says where, as in the request body."""

    def __init__(self, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.field = field


class NoSuchArtifact(Unanswered):
    """There is no artifact of this name here."""


class Busy(Unanswered):
    """More is waiting than may wait."""

    def __init__(self, sentence: str, retry_after: float) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


class Late(Unanswered):
    """The deadline came before an answer."""


class EngineLost(Unanswered):
    """The process that was to answer died, twice."""


class NotReady(Unanswered):
    """No engine can answer now: starting, or closing."""


class StartFailed(Unanswered):
    """The artifacts or their models could not be loaded; `kind` names the error of fasterce.errors it was, if any."""

    def __init__(self, sentence: str, kind: str = "") -> None:
        super().__init__(sentence)
        self.kind = kind


class ReloadFailed(Unanswered):
    """The new version could not be loaded; the old one goes on."""
