"""The user's model with typed frames in, class positions and scores out, every call counted.

Labels alone are enough. Scores are used only where they were seen to agree with the labels.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np
import pandas as pd

from fasterce.data.dtypes import plain, sorted_values
from fasterce.data.table import FEW_ROWS, Table
from fasterce.errors import InputError, ModelError, Problem, make_problem, problem_of, unknown
from fasterce.latent.runtime import threads_for
from fasterce.models.adapters import adapt
from fasterce.models.adapters.base import SCORE_METHODS
from fasterce.models.predictions import FAILED, Predictions
from fasterce.typing import Floats, Indices, Objects

PredictFunction = Callable[[pd.DataFrame], object]
DirectFunction = Callable[[Floats], tuple[Objects, Floats]]

# Different labels, and different fractions among them, above which a model is taken to predict numbers rather than classes.
MOST_CLASSES = 100
MOST_FRACTIONS = 10
# Times a failing batch may be halved to find the rows that fail, and how many a batch that succeeds adds: a few bad rows are
# found one by one, while a model that always fails is abandoned after this number of calls.
FIRST_SPLITS, MOST_SPLITS = 32, 64
REGAINED_SPLITS = 3
# Share of rows whose best score must be that of the label for scores to be used; ties may differ.
SCORE_AGREEMENT = 0.999
# Probabilities are raised to this before their logarithm is taken.
SMALLEST_PROBABILITY = 1e-12
BELOW_AND_ABOVE = ("below", "above")


@dataclass
class ModelUsage:
    """How often the model was called, and with how many rows."""

    calls: int = 0
    rows: int = 0

    def __add__(self, more: "ModelUsage") -> "ModelUsage":
        return ModelUsage(self.calls + more.calls, self.rows + more.rows)


@dataclass(frozen=True)
class Numbers:
    """A regression model read as two classes, below and above `middle`; scores are the distance from it divided by
    `scale`."""

    middle: float
    scale: float

    def scores(self, values: Floats) -> Floats:
        """Return the scores of predicted numbers."""
        lead = (values - self.middle) / self.scale
        return np.stack([-lead / 2, lead / 2], axis=1)

    def values(self, scores: Floats) -> Floats:
        """Return the predicted numbers that have these scores."""
        return np.asarray(self.middle + self.scale * (scores[:, 1] - scores[:, 0]))


class Predictor:
    """Evaluate a model on rows of codes.

    Parameters
    ----------
    model : object
        The user's model, or one of our adapters.
    table : Table
        Turns codes into the frames the model takes.
    classes : sequence, optional
        The model's labels; `learn_classes` finds them.
    use_scores : bool, default=False
        Whether `evaluate` uses scores instead of labels.
    numbers : Numbers, optional
        Set for a model that predicts numbers instead of classes.
    direct : callable, optional
        The model for codes: labels and probabilities of one run, without a frame.

    Attributes
    ----------
    failure : Problem or None
        Why the model last failed on some row.
    usage : ModelUsage
        Calls and rows so far.
    """

    def __init__(
        self,
        model: object,
        table: Table,
        classes: Sequence[Hashable] = (),
        use_scores: bool = False,
        numbers: Numbers | None = None,
        direct: DirectFunction | None = None,
    ) -> None:
        self.numbers = numbers
        self.direct = direct
        self.model = adapt(model)
        self.table = table
        self.classes = tuple(plain(label) for label in classes)
        self.use_scores = use_scores
        self.usage = ModelUsage()
        self.learning = False
        self.failure: Problem | None = None
        self._predict = find_predict(self.model)

    def error(self) -> ModelError:
        """Return an exception with the last failure."""
        return ModelError(self.failure or make_problem("models.no_prediction"))

    def learn_classes(self, codes: Floats) -> Objects:
        """Evaluate training rows and note the labels.

        Raises
        ------
        ModelError
            The model failed, or its predictions are not class labels.
        """
        labels = self._labels(self.table.frame(codes))
        if bool(pd.isna(labels).any()):
            raise ModelError("models.missing_label")
        seen = pd.unique(pd.Series(labels, dtype=object))
        declared = getattr(self.model, "classes_", None)
        known = list(declared) if isinstance(declared, np.ndarray) and declared.ndim == 1 else sorted_values(seen)
        if len(known) > MOST_CLASSES or (len(known) > MOST_FRACTIONS and _fractions(known)):
            raise ModelError("models.too_many_classes", received=[plain(label) for label in known[:3]], count=len(known))
        self.classes = tuple(plain(label) for label in known)
        self.learning = declared is None
        unexpected = [plain(label) for label in seen if plain(label) not in self.classes]
        if unexpected:
            raise ModelError("models.unknown_class", expected=self.classes, received=unexpected[0])
        return labels

    def accepts(self, codes: Floats) -> bool:
        """Return whether the model returns labels for these rows; `failure` says why not."""
        return self._attempt(self._labels, self.table.frame(codes)) is not None

    def outputs(self, frame: pd.DataFrame) -> Objects | None:
        """Return what the model returns for a frame, probabilities where it has them; None if it fails."""
        name = find_scores(self.model)
        function = self._predict if name is None else getattr(self.model, name)
        return self._attempt(lambda rows: self._call(function, rows), frame)

    def learn_numbers(self, codes: Floats) -> Predictions:
        """Evaluate training rows with a regression model and note the median and the spread of its predictions."""
        values = self._values(self.table.frame(codes))
        self.numbers = Numbers(float(np.median(values)), float(np.std(values)) or 1.0)
        self.classes, self.use_scores = BELOW_AND_ABOVE, True
        scores = self.numbers.scores(values[:, 0])
        return Predictions(_best(scores, scores), scores)

    def from_labels(self, labels: Objects) -> Predictions:
        """Return predictions from labels as the model returns them."""
        return Predictions(self._positions(labels))

    @property
    def has_chances(self) -> bool:
        """Whether the model is a classifier with probabilities."""
        return self.numbers is None and find_scores(self.model) == "predict_proba"

    @property
    def scores_are_returned(self) -> bool:
        """Whether scores of a search are those of rows as they are returned: probabilities that no column beside the features
        changes."""
        return self.has_chances and not self.table.schema.passthrough

    def position(self, label: object) -> int:
        """Return the position of a class, whatever scalar type it is written in."""
        if pd.api.types.is_scalar(label) and not pd.isna(label) and label in self.classes:
            return self.classes.index(label)
        raise InputError(unknown("models.unknown_target", label, self.classes, option="target"))

    def trusted_scores(self, codes: Floats, labels: Objects) -> Predictions | None:
        """Evaluate rows by scores; None if the model has none or if they name other classes than its labels."""
        if len(codes) == 0 or find_scores(self.model) is None:
            return None
        scores = self._attempt(self._score, self.table.frame(codes))
        if scores is None or float(np.mean(scores.argmax(axis=1) == self._positions(labels))) < SCORE_AGREEMENT:
            return None
        return Predictions(_best(scores, scores), scores)

    def evaluate(self, codes: Floats) -> Predictions:
        """Evaluate rows in one batch, by scores where these are used. Rows the model fails on are found by halving and
        marked, never raised."""
        if not self.use_scores:
            return self.evaluate_labels(codes)
        scores = self._evaluate_parts(self._score, self.table.frame(codes), len(self.classes))
        return Predictions(_best(scores, scores), scores)

    def evaluate_labels(self, codes: Floats) -> Predictions:
        """Evaluate rows in one batch, by labels."""
        return Predictions(self.predict_labels(self.table.frame(codes)))

    def predict_labels(self, frame: pd.DataFrame) -> Indices:
        """Return class positions by the model's own labels, even where `evaluate` uses scores."""
        if self.numbers is not None:
            return self.verify(frame, raw=True).classes
        if len(frame) == 0:
            return np.zeros(0, dtype=np.intp)
        parts = self._halving(self._labels, frame, [FIRST_SPLITS])
        return np.concatenate([self._positions(part) for part in parts])

    def verify(self, frame: pd.DataFrame, raw: bool) -> Predictions:
        """Return the predictions verification relies on: labels, or where `raw` the probabilities or numbers."""
        if not raw:
            return Predictions(self.predict_labels(frame))
        if self.numbers is None:
            values = self._evaluate_parts(self._probabilities, frame, len(self.classes))
        else:
            values = self._evaluate_parts(self._values, frame, 1)
        scores = self._scores_of(values)
        return Predictions(_best(scores, values), scores, values)

    def verify_returned(self, rows: pd.DataFrame, places: Indices, before: Floats, after: Floats, raw: bool) -> Predictions:
        """Return what `verify` does for rows as they will be returned.

        Parameters
        ----------
        rows : DataFrame
            Queries.
        places : ndarray of shape (N,)
            The query of each row.
        before, after : ndarray of shape (N, features)
            Codes of these queries, and of the rows.
        raw : bool
            Whether the probabilities or numbers decide, not the labels.
        """
        found = None if self.direct is None or len(after) == 0 else self._verify_directly(self.direct, after, raw)
        return self.verify(self.table.as_returned(rows, places, before, after), raw) if found is None else found

    def _verify_directly(self, direct: DirectFunction, codes: Floats, raw: bool) -> Predictions | None:
        """Return labels with the probabilities of the same run; None if the model fails on a row, which frames find."""
        try:
            with threads_for(len(codes)):
                labels, values = direct(codes)
        except ModelError:
            return None
        if labels.shape != (len(codes),) or values.shape != (len(codes), len(self.classes)):
            return None
        self.usage.calls += 1
        self.usage.rows += len(codes)
        scores = self._scores_of(values)
        return Predictions(_best(scores, values) if raw else self._positions(labels), scores, values)

    def with_scores(self, classes: Indices, values: Floats | None) -> Predictions:
        """Return predictions made earlier, with the scores that follow from their values."""
        return Predictions(classes, None if values is None else self._scores_of(values), values)

    def _scores_of(self, values: Floats) -> Floats:
        return _log(values) if self.numbers is None else self.numbers.scores(values[:, 0])

    def _values(self, frame: pd.DataFrame) -> Floats:
        """Return the predictions of a regression model (N, 1)."""
        try:
            values = self._labels(frame).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError("models.not_a_number") from error
        if not np.isfinite(values).all():
            raise ModelError("models.not_a_number")
        return values[:, None]

    def _probabilities(self, frame: pd.DataFrame) -> Floats:
        output = self._call(getattr(self.model, "predict_proba"), frame)  # noqa: B009 - optional in the protocol
        if output.dtype.kind not in "fiub" or output.shape != (len(frame), len(self.classes)):
            raise self._misshapen("models.probability_count", output)
        return output.astype(np.float64)

    def _attempt(self, function: Callable[[pd.DataFrame], Objects], frame: pd.DataFrame) -> Objects | None:
        """Return what the model returns; None if it fails, and why in `failure`."""
        try:
            return function(frame)
        except ModelError as error:
            self.failure = error.problem
            return None

    def _evaluate_parts(self, function: Callable[[pd.DataFrame], Floats], frame: pd.DataFrame, width: int) -> Floats:
        """Return what the model returns for all rows (N, width), NaN for rows it fails on."""
        if len(frame) == 0:
            return np.zeros((0, width))
        parts = self._halving(function, frame, [FIRST_SPLITS])
        return np.concatenate([np.full((part, width), np.nan) if isinstance(part, int) else part for part in parts])

    def _halving(
        self, function: Callable[[pd.DataFrame], Objects], frame: pd.DataFrame, splits: list[int]
    ) -> list[Objects | int]:
        """Return outputs in order; a part the model fails on is split until single rows fail, and replaced by its length.

        Splitting continues while some parts succeed: a model that always fails gets few calls.
        """
        output = self._attempt(function, frame)
        if output is not None:
            splits[0] = min(splits[0] + REGAINED_SPLITS, MOST_SPLITS)
            return [output]
        if len(frame) == 1 or splits[0] <= 0:
            return [len(frame)]
        splits[0] -= 1
        half = len(frame) // 2
        return [
            *self._halving(function, frame.iloc[:half].reset_index(drop=True), splits),
            *self._halving(function, frame.iloc[half:].reset_index(drop=True), splits),
        ]

    def _call(self, function: PredictFunction, frame: pd.DataFrame) -> Objects:
        self.usage.calls += 1
        self.usage.rows += len(frame)
        frame = frame if _is_ours(self.model) else self.table.native(frame)
        try:
            with threads_for(len(frame)):
                output = np.asarray(function(frame))
        except Exception as error:
            raise ModelError(problem_of(error, "models.raised")) from error
        if output.ndim == 0 or len(output) != len(frame):
            raise self._misshapen("models.prediction_count", output, rows=len(frame))
        return output

    def _labels(self, frame: pd.DataFrame) -> Objects:
        output = self._call(self._predict, frame)
        if output.size != len(frame):
            raise self._misshapen("models.prediction_count", output, rows=len(frame))
        return output.reshape(len(frame))

    def _score(self, frame: pd.DataFrame) -> Floats:
        """Return one score per class, the largest that of the label: log-probabilities or decision values."""
        if self.numbers is not None:
            return self.numbers.scores(self._values(frame)[:, 0])
        name = find_scores(self.model)
        if name is None:
            raise ModelError("models.no_prediction")
        output = self._call(getattr(self.model, name), frame)
        if output.dtype.kind not in "fiub":
            raise ModelError("models.no_prediction")
        if output.ndim == 1 and len(self.classes) == 2:
            output = np.stack([-output, output], axis=1)
        if output.shape != (len(frame), len(self.classes)):
            raise self._misshapen("models.score_count", output)
        scores = output.astype(np.float64)
        if not np.isfinite(scores).all():
            self.failure = make_problem("models.score_not_finite")
        return _log(scores) if name == "predict_proba" else scores

    def _misshapen(self, code: str, output: Objects, **details: int) -> ModelError:
        return ModelError(code, expected=len(self.classes) or None, received=output.shape, **details)

    def _positions(self, labels: Objects | int) -> Indices:
        if isinstance(labels, int):
            return np.full(labels, FAILED, dtype=np.intp)
        if self.learning:
            self._note_new(labels)
        positions = _positions_of(labels, self.classes)
        unknown_rows = np.flatnonzero(positions < 0)
        if unknown_rows.size:
            label = labels[unknown_rows[0]]
            if pd.isna(label):
                self.failure = make_problem("models.missing_label")
            else:
                self.failure = make_problem("models.unknown_class", expected=self.classes, received=plain(label))
        return np.asarray(positions, dtype=np.intp)

    def _note_new(self, labels: Objects) -> None:
        seen = (plain(label) for label in pd.unique(pd.Series(labels, dtype=object)) if not pd.isna(label))
        self.classes += tuple(label for label in seen if label not in self.classes)


def _positions_of(labels: Objects, classes: Sequence[Hashable]) -> Indices:
    """Return the position of each label among the classes, -1 for none."""
    if len(labels) <= FEW_ROWS:
        place = {label: k for k, label in enumerate(classes)}
        found = [place.get(label, -1) for label in labels.tolist() if isinstance(label, Hashable)]
        if len(found) == len(labels) and min(found, default=-1) >= 0:
            return np.array(found, dtype=np.intp)
    return np.asarray(pd.Index(classes, dtype=object).get_indexer(pd.Index(labels.astype(object), dtype=object)))


def find_predict(model: object) -> PredictFunction:
    """Return the function that predicts: the model's `predict`, or the model itself."""
    if isinstance(model, type):
        raise InputError("models.class_as_model", option="model", received=model.__name__)
    predict = getattr(model, "predict", None)
    if callable(predict):
        return predict  # type: ignore[no-any-return]
    if callable(model):
        return model
    if isinstance(model, (str, PathLike)):
        raise InputError("models.path_as_model", option="model")
    raise InputError("models.no_predict", option="model", received=type(model).__name__)


def find_scores(model: object) -> str | None:
    """Return the name of the model's method that returns scores, or None."""
    return next((name for name in SCORE_METHODS if callable(getattr(model, name, None))), None)


def _is_ours(model: object) -> bool:
    """Return whether the model is one of our adapters, which take pandas regardless of the kind of table in `fit`."""
    return type(model).__module__.startswith("fasterce.")


def _fractions(labels: Sequence[Hashable]) -> bool:
    return any(isinstance(label, (float, np.floating)) and float(label) % 1 for label in labels)


def _best(scores: Floats, values: Floats) -> Indices:
    """Return the class with the largest score, `FAILED` for rows with a value that is not finite."""
    failed = ~np.isfinite(values).all(axis=1)
    if len(scores) == 0:
        return np.zeros(0, dtype=np.intp)
    return np.where(failed, FAILED, np.nan_to_num(scores).argmax(axis=1))


def _log(probabilities: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(probabilities, SMALLEST_PROBABILITY)))
