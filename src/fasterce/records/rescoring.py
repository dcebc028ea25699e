"""The model asked once more about every row and counterfactual as given out: one call for labels, one for chances."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.errors import ModelError
from fasterce.explainer import FasterCE
from fasterce.explanation import Explanation
from fasterce.predictor import FAILED, Final, Predictor
from fasterce.profile import Floats
from fasterce.records.cells import cell
from fasterce.targets import Chance, Number, Target, choose

# A model's arithmetic may round otherwise in another company of rows.
SLACK = 1e-9


@dataclass(frozen=True)
class Rescored:
    """What the model says of rows and of answers: labels or numbers, and a chance a class if it has them."""

    target: Target
    classes: tuple[Any, ...]
    rows: list[dict[str, Any]]
    answers: list[dict[str, Any]]


def rescore(explainer: FasterCE, explanation: Explanation) -> Rescored:
    """Raises where the model does not say of a row or an answer what the explanation says."""
    predictor = explainer._predictor()
    target = choose(predictor, explanation.options["target"], explanation.options["target_score"])
    given, query = explanation.answers, explanation.answers.query
    known = np.flatnonzero(explanation.prediction.notna().to_numpy(dtype=bool))
    codes = predictor.table.read(explanation.rows).codes
    every = np.concatenate([known, query])
    before = np.concatenate([codes[known], given.before])
    frame = predictor.table.as_returned(explanation.rows.iloc[every], before, np.concatenate([codes[known], given.codes]))
    said = predictor.last_word(frame, target.raw)
    _check(explanation, predictor, target, known, said)
    told = _told(said, _chances(explainer, predictor, frame, said), predictor)
    rows: list[dict[str, Any]] = [{"prediction": None, "score": None}] * len(explanation)
    for row, one in zip(known.tolist(), told, strict=False):
        rows[row] = one
    return Rescored(target, predictor.classes, rows, told[len(known) :])


def _chances(explainer: FasterCE, predictor: Predictor, frame: pd.DataFrame, said: Final) -> Floats | None:
    """Chances are recorded where they agree with the labels; what was said already is not asked again."""
    if predictor.numbers is not None or not (explainer.use_scores_ and predictor.has_chances):
        return None
    return predictor.last_word(frame, raw=True).values if said.values is None else said.values


def _told(said: Final, chances: Floats | None, predictor: Predictor) -> list[dict[str, Any]]:
    if predictor.numbers is not None:
        assert said.values is not None
        return [{"prediction": value, "score": {"kind": "number", "value": value}} for value in said.values[:, 0].tolist()]
    labels = [cell(label) for label in predictor.classes]
    names = [labels[k] for k in said.classes.tolist()]
    if chances is None:
        return [{"prediction": name, "score": None} for name in names]
    values: list[list[Any]] = chances.tolist()
    for k in np.flatnonzero(~np.isfinite(chances).all(axis=1)).tolist():
        values[k] = [one if np.isfinite(one) else None for one in values[k]]
    return [
        {"prediction": name, "score": {"kind": "chance", "classes": list(labels), "values": line}}
        for name, line in zip(names, values, strict=True)
    ]


def _check(explanation: Explanation, predictor: Predictor, target: Target, known: NDArray[np.intp], said: Final) -> None:
    own = said.take(slice(0, len(known)))
    after = said.take(slice(len(known), None))
    if (said.classes == FAILED).any():
        raise ModelError(f"A record needs the model's answer to every row and counterfactual; {predictor.failure}")
    differing = _differing(explanation, predictor, known, own)
    if len(differing):
        row = int(known[differing[0]])
        raise ModelError(
            "A record is made with the model that was explained; this one gives another answer to "
            f"{len(differing)} of {len(known)} rows, first to row {row}: expected {explanation.prediction.iloc[row]!r}."
        )
    classes = np.full(len(explanation), FAILED, dtype=np.intp)
    classes[known] = own.classes
    goal = target.goal(Final(classes))
    query = explanation.answers.query
    confirmed = target.confirmed(goal, after, query)
    if isinstance(target, (Chance, Number)):
        confirmed = confirmed | _nearly(target.value(goal, after, query), target.low, target.high)
    if not confirmed.all():
        row = int(query[~confirmed][0])
        raise ModelError(
            f"A record holds confirmed counterfactuals only; the model does not confirm {int((~confirmed).sum())} of "
            f"{len(confirmed)} any more, the first for row {row}."
        )


def _differing(explanation: Explanation, predictor: Predictor, known: NDArray[np.intp], own: Final) -> NDArray[np.intp]:
    """Positions in `known` of rows about which the model says something else now."""
    before = explanation.prediction.iloc[known]
    if predictor.numbers is not None:
        assert own.values is not None
        return np.flatnonzero(~np.isclose(before.to_numpy(dtype=np.float64), own.values[:, 0], rtol=SLACK, atol=SLACK))
    now = [predictor.classes[k] for k in own.classes.tolist()]
    return np.flatnonzero([one != other for one, other in zip(before.tolist(), now, strict=True)])


def _nearly(values: Floats, low: float, high: float) -> NDArray[np.bool_]:
    slack = SLACK * np.maximum(1.0, np.abs(values))
    return np.asarray((values >= low - slack) & (values <= high + slack))
