"""Predictions and scores of rows and counterfactuals, as records hold them.

Labels, numbers, and probabilities of a call that wanted a score are those that verification obtained. Probabilities that it
did not need are obtained here, by one call of `predict_proba` for the whole batch.
"""

import math
from dataclasses import dataclass

import numpy as np

from fasterce.errors import ModelError
from fasterce.explainer import FasterCE
from fasterce.explanation import Explanation
from fasterce.models.predictor import Predictor
from fasterce.records.cells import cell
from fasterce.typing import Floats, Indices, Json, JsonObject

TOLERANCE = 1e-9  # A model's arithmetic may round differently when other rows are evaluated in the same call.


@dataclass(frozen=True)
class Outcomes:
    """Prediction and score of every row, and of every counterfactual."""

    rows: list[JsonObject]
    counterfactuals: list[JsonObject]


def outcomes(explainer: FasterCE, explanation: Explanation) -> Outcomes:
    """Return what the model predicts; raise ModelError where it contradicts the explanation."""
    predictor, arrays = explainer._predictor(), explanation.arrays
    known = np.flatnonzero(explanation.prediction.notna().to_numpy(dtype=bool))
    own = explanation.prediction.iloc[known].tolist()
    if predictor.numbers is not None:
        found = [{"prediction": value, "score": {"kind": "number", "value": value}} for value in own + arrays.score.tolist()]
    else:
        place = {label: position for position, label in enumerate(predictor.classes)}
        other = [row for row, label in zip(known.tolist(), own, strict=True) if label not in place]
        if other:
            raise ModelError("records.other_model", row=other[0], expected=len(other), most=len(own))
        positions = np.concatenate([np.array([place[label] for label in own], dtype=np.intp), arrays.predicted])
        scores = _probabilities(explanation, known)
        if scores is None and predictor.use_scores and predictor.has_chances:
            scores = _evaluate(predictor, explanation, known)
        if scores is not None:
            _check_largest(scores, positions, np.concatenate([known, arrays.query]))
        found = _classified([cell(label) for label in predictor.classes], positions, scores)
    rows: list[JsonObject] = [{"prediction": None, "score": None}] * len(explanation)
    for row, one in zip(known.tolist(), found, strict=False):
        rows[row] = one
    return Outcomes(rows, found[len(known) :])


def _probabilities(explanation: Explanation, known: Indices) -> Floats | None:
    """Return the probabilities that verification obtained, if it did."""
    after = explanation.arrays.probabilities
    if explanation.probabilities is None or (len(after) and not after.shape[1]):
        return None
    own = explanation.probabilities[known]
    found = np.concatenate([own, after]) if len(after) else own
    return found if np.isfinite(found).all() else None


def _evaluate(predictor: Predictor, explanation: Explanation, known: Indices) -> Floats:
    """Return the probabilities of rows and counterfactuals as they were returned."""
    arrays, every = explanation.arrays, np.concatenate([known, explanation.arrays.query])
    codes = predictor.table.read(explanation.rows).codes[known]
    before, after = np.concatenate([codes, arrays.before]), np.concatenate([codes, arrays.codes])
    found = predictor.verify_returned(explanation.rows, every, before, after, raw=True).values
    assert found is not None
    if predictor.failure is not None:
        raise ModelError("records.model_failed", reason=predictor.failure)
    return found


def _check_largest(scores: Floats, positions: Indices, rows: Indices) -> None:
    """Scores are used only if their largest is the predicted class, so another one contradicts the explanation."""
    contradicted = np.flatnonzero(scores[np.arange(len(scores)), positions] < scores.max(axis=1) - TOLERANCE)
    if len(contradicted):
        row = int(rows[contradicted[0]])
        raise ModelError("records.other_model", row=row, expected=len(contradicted), most=len(rows))


def _classified(labels: list[Json], positions: Indices, scores: Floats | None) -> list[JsonObject]:
    names = [labels[k] for k in positions.tolist()]
    if scores is None:
        return [{"prediction": name, "score": None} for name in names]
    finite = [[value if math.isfinite(value) else None for value in line] for line in scores.tolist()]
    return [
        {"prediction": name, "score": {"kind": "chance", "classes": list(labels), "values": values}}
        for name, values in zip(names, finite, strict=True)
    ]
