"""Questions -> `explain` -> audit records as JSON text. No processes: this is what an engine does with a batch."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from time import monotonic, perf_counter
from typing import Any

import numpy as np
import pandas as pd

from fasterce import artifact, records
from fasterce.errors import ArtifactError, FasterCEError, InputError, MissingExtraError, ModelError
from fasterce.explainer import FasterCE
from fasterce.explanation import MODEL_ERROR, Answers, Explanation
from fasterce.models import LoadedModel, load_model
from fasterce.records import Wording
from fasterce.records.making import Record
from fasterce.records.wording import without_place
from fasterce.serve.engine.describing import schema_body
from fasterce.serve.engine.rows import RowReader
from fasterce.serve.engine.wishes import refused, wishes
from fasterce.serve.question import Description, Kept, NoSuchArtifact, Question, Refused
from fasterce.serve.settings import Served, Settings

PSEUDONYM_KEY = "FASTERCE_PSEUDONYM_KEY"
CONTRADICTS = "The model gave another answer, or none, when it was asked the same again; nothing it says of this row holds."
# Of the time there is, what is kept for making records: so many seconds, and never more than this share.
KEPT_BACK, MOST_KEPT_BACK = 0.05, 0.3
LEAST_SECONDS = 0.001
# Of the sentence about pickles, what a service does not offer.
NOT_HERE = ", or trust_pickle=True if you made the file yourself"

Outcome = tuple[Kept, ...] | Refused


@dataclass(frozen=True)
class Answered:
    """What became of each question of a batch, in order; `cut_short` if the deadline changed anything."""

    outcomes: tuple[Outcome, ...]
    calls: int = 0
    rows_asked: int = 0
    batch_rows: int = 0
    seconds: float = 0.0
    cut_short: bool = False


@dataclass
class Loaded:
    """An explainer with its model, ready to be asked; `recording` is how long a row's record took lately, in seconds."""

    explainer: FasterCE
    model_digest: str | None
    reader: RowReader
    description: Description
    recording: float = 0.0


class Answering:
    """All artifacts of a service, loaded; questions of one artifact with the same options are answered in one call."""

    def __init__(self, settings: Settings) -> None:
        self.wording = Wording() if settings.wording is None else Wording.load(settings.wording)
        self.loaded = {served.name: self._load(served) for served in settings.artifacts}

    @property
    def descriptions(self) -> list[Description]:
        return [loaded.description for loaded in self.loaded.values()]

    def _load(self, served: Served) -> Loaded:
        model = _model(served)
        explainer = artifact.load(served.folder, model.model)
        explainer.progress = False
        title = served.title or served.name
        body = schema_body(explainer, served.name, title, model.digest, self.wording)
        description = Description(
            served.name,
            title,
            body["digests"]["artifact"],
            model.digest,
            model.kind,
            body,
            tuple(body["target"].get("classes", ())),
            datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        )
        return Loaded(explainer, model.digest, RowReader(explainer.table_), description)

    def warm_up(self) -> None:
        """Ask about a typical row once, so that the first question does not pay for what is done only once."""
        for name, loaded in self.loaded.items():
            row = {feature["name"]: feature["typical"] for feature in loaded.description.schema["features"]}
            target = {"target": [None, 0.0]} if loaded.explainer.numbers_ is not None else {"target": "any other"}
            self.answer([Question(name, (row,), {"why_not": False, **target}, monotonic() + 60.0, "warm-up")])

    def answer(self, questions: Sequence[Question]) -> Answered:
        """One call of `explain` for all of them; a question that is wrong in itself is refused alone."""
        started = perf_counter()
        loaded = self.loaded.get(questions[0].artifact)
        if loaded is None:
            raise NoSuchArtifact(f"There is no artifact {questions[0].artifact!r:.100} here.")
        refusals = [self._refusal(loaded, question) for question in questions]
        admitted = [question for question, refusal in zip(questions, refusals, strict=True) if refusal is None]
        try:
            found, made = self._records(loaded, admitted)
        except Refused as to_all:
            return Answered(tuple(to_all if refusal is None else refusal for refusal in refusals))
        kept = iter(made)
        outcomes = tuple(
            tuple(_kept(loaded.description.name, next(kept)) for _ in question.rows) if refusal is None else refusal
            for question, refusal in zip(questions, refusals, strict=True)
        )
        asked = (found.asked.calls, found.asked.rows, len(found)) if found else (0, 0, 0)
        return Answered(outcomes, *asked, perf_counter() - started, found is not None and found.cut_short)

    def _refusal(self, loaded: Loaded, question: Question) -> Refused | None:
        """Why a question cannot be answered whatever the model says; None if it can."""
        try:
            loaded.reader.check(question.rows)
            _check_ids(question)
        except Refused as wrong:
            return wrong
        return None

    def _records(self, loaded: Loaded, questions: Sequence[Question]) -> tuple[Explanation | None, list[Record]]:
        rows = [row for question in questions for row in question.rows]
        if not rows:
            return None, []
        frame = loaded.reader.frame(rows, [label for question in questions for label in _labels(question)])
        explanation = _explain(loaded, frame, questions)
        began = perf_counter()
        made = _made(loaded, explanation, self.wording)
        loaded.recording = (perf_counter() - began) / len(rows)
        signed = zip(made, (one for question in questions for one in _signatures(question)), strict=True)
        return explanation, [_signed(record, signature) for record, signature in signed]


def _model(served: Served) -> LoadedModel:
    """The model named or the one the folder brings; a pickle is never loaded here."""
    if served.model is None:
        return artifact.bundled_model(served.folder, trusted=served.trusted)
    names = None if served.classes is None else [name.strip() for name in served.classes.split(",")]
    return load_model(served.model, trusted=served.trusted, classes=names)


def _explain(loaded: Loaded, frame: pd.DataFrame, questions: Sequence[Question]) -> Explanation:
    """Within the time there is; a deadline that changed nothing is not mentioned, since the answers do not depend on it."""
    wanted = wishes(loaded.explainer, questions[0].options)
    left = min(question.until for question in questions) - monotonic()
    kept_back = min(KEPT_BACK + 2 * len(frame) * loaded.recording, MOST_KEPT_BACK * left)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = loaded.explainer.explain(frame, **wanted, deadline=max(left - kept_back, LEAST_SECONDS)).in_pandas()
    except InputError as error:
        raise refused(error) from error
    return found if found.cut_short else replace(found, options={**found.options, "deadline": None})


def _made(loaded: Loaded, explanation: Explanation, wording: Wording) -> list[Record]:
    """Records of all rows. Where the model contradicts itself the rows it does so about are found by halving, and are said
    to be its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return records.make(loaded.explainer, explanation, model_digest=loaded.model_digest, template=wording)
    except ModelError:
        if len(explanation) == 1:
            return _made(loaded, _contradicted(explanation), wording)
        half = len(explanation) // 2
        parts = (_part(explanation, 0, half), _part(explanation, half, len(explanation)))
        return [record for part in parts for record in _made(loaded, part, wording)]


def _part(explanation: Explanation, first: int, end: int) -> Explanation:
    """Some of the rows."""
    some = slice(first, end)
    answers = explanation.answers.where((explanation.answers.query >= first) & (explanation.answers.query < end))
    reasons = [without_place(reason, first + k) for k, reason in enumerate(explanation.reason.iloc[some].tolist())]
    return replace(
        explanation,
        rows=explanation.rows.iloc[some],
        status=explanation.status.iloc[some],
        reason=pd.Series(reasons, explanation.reason.index[some], dtype=object, name="reason"),
        prediction=explanation.prediction.iloc[some],
        target=explanation.target.iloc[some],
        score=None if explanation.score is None else explanation.score.iloc[some],
        answers=replace(answers, query=answers.query - first),
        refusals={row - first: refusal for row, refusal in explanation.refusals.items() if first <= row < end},
    )


def _contradicted(explanation: Explanation) -> Explanation:
    """One row, of which nothing is said but that the model failed."""
    index = explanation.rows.index
    none: Answers = explanation.answers.where(np.zeros(len(explanation.answers), dtype=bool))
    nothing = pd.Series([None], index, dtype=object)
    number = pd.Series([np.nan], index)
    return replace(
        explanation,
        status=pd.Series([MODEL_ERROR], index, dtype=object),
        reason=pd.Series([CONTRADICTS], index, dtype=object),
        prediction=number if explanation.prediction.dtype.kind == "f" else nothing,
        target=nothing,
        score=number,
        answers=none,
        refusals={},
    )


def _labels(question: Question) -> Sequence[Any]:
    return range(len(question.rows)) if question.row_ids is None else question.row_ids


def _check_ids(question: Question) -> None:
    count = len(question.rows)
    for field in ("row_ids", "decision_ids", "subjects"):
        given = getattr(question, field)
        if given is not None and len(given) != count:
            raise Refused(f"{field} must have one entry for each of the {count} rows; got {len(given)}.", field)
        if given is not None and not all(isinstance(one, (str, int)) and not isinstance(one, bool) for one in given):
            raise Refused(f"{field} must be texts or whole numbers.", field)
    if question.retain_until is not None:
        try:
            date.fromisoformat(question.retain_until)
        except ValueError:
            raise Refused("retain_until must be a date, such as 2030-12-31.", "retain_until") from None
    if question.subjects is not None:
        _pseudonyms(question)


def _pseudonyms(question: Question) -> list[str]:
    """Whom the rows are about, by names that lead back to no one without the key."""
    key = os.environ.get(PSEUDONYM_KEY, "")
    if not key:
        raise Refused(f"subjects are stored by pseudonyms only, and this service has no {PSEUDONYM_KEY}.", "subjects")
    try:
        return [records.pseudonym(subject, key) for subject in question.subjects or ()]
    except InputError as error:
        raise Refused(str(error), "subjects") from error


def _signatures(question: Question) -> list[Record]:
    """What of a record is the question's, row by row."""
    count = len(question.rows)
    subjects: Sequence[Any] = [None] * count if question.subjects is None else _pseudonyms(question)
    decisions: Sequence[Any] = [None] * count if question.decision_ids is None else question.decision_ids
    return [
        {
            "ids": {"request": question.request_id, "decision": decision, "subject": subject},
            "set_by": question.constraints_by,
            "retain_until": question.retain_until and date.fromisoformat(question.retain_until).isoformat(),
        }
        for decision, subject in zip(decisions, subjects, strict=True)
    ]


def _signed(record: Record, signature: Record) -> Record:
    """Parts of a record are shared by all of a call, so what differs is put in anew."""
    return record | {
        "ids": record["ids"] | signature["ids"],
        "constraints": record["constraints"] | {"set_by": signature["set_by"]},
        "retain_until": signature["retain_until"],
    }


def _kept(name: str, record: Record) -> Kept:
    ids = record["ids"]
    return Kept(
        ids["record"],
        ids["request"],
        ids["decision"] if ids["decision"] is None else str(ids["decision"]),
        ids["subject"],
        name,
        record["status"],
        record["time"],
        record["retain_until"],
        records.to_json(record),
    )


def kind_of(error: Exception) -> str:
    """Which of our errors it is, by name."""
    kinds = (ArtifactError, MissingExtraError, ModelError)
    return next((kind.__name__ for kind in kinds if isinstance(error, kind)), "")


def sentence_of(error: Exception) -> str:
    """Why an artifact could not be loaded, in one sentence."""
    if isinstance(error, FasterCEError):
        return str(error).replace(NOT_HERE, "")
    return f"An artifact could not be loaded: {type(error).__name__}: {str(error)[:300]}."
