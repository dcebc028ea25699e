"""From the user's model to a twin, or to one sentence that says why there is none."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier

from fasterce.adapters import LightGBMModel, OnnxModel, XGBoostModel, adapt
from fasterce.errors import shorten
from fasterce.predictor import FAILED, Classes, Predictor, find_scores
from fasterce.profile import Floats
from fasterce.schema import plain
from fasterce.table import Table
from fasterce.twin.compiled import Reading, Twin
from fasterce.twin.engine import ForestEngine
from fasterce.twin.front import ColumnsFront, NoFrontError, TableFront, Transform, columns_front, learn_front
from fasterce.twin.own import BoosterEngine, SessionEngine, booster_front, session_front

Way = Callable[[], Twin]

AGREEMENT = 0.998
MOST_ASKED_ROWS = 2_000
MOST_EDITS = 3
SEED = 20_111
MOST_SAID = 160
FORESTS = (ExtraTreesClassifier, RandomForestClassifier)
VOTES = (*FORESTS, BaggingClassifier, DecisionTreeClassifier)
MANY_NODES = 100_000
VOTE_DECIMALS = 6
TREES = ("xgboost", "lightgbm", "sklearn.ensemble", "sklearn.tree")
# Beyond this the smaller of two single-precision probabilities is lost in the larger.
LOWEST_COMPARED = float(np.log(np.finfo(np.float32).eps))
TYPICAL_ERROR, LARGE_ERROR = 1e-3, 5e-2
BOOSTERS = (XGBoostModel, LightGBMModel)
INSTALL = "pip install 'fasterce[onnx]'"


class RefusedError(Exception):
    """No twin; the sentence says why."""


@dataclass(frozen=True)
class Held:
    """Rows and what the model itself says of them."""

    codes: Floats
    labels: Classes
    scores: Floats | None


def build(model: Any, table: Table, classes: tuple[Any, ...], codes: Floats, use_scores: bool) -> tuple[Twin | None, str]:
    """A twin that agrees with the model on the rows in `codes`, or None and one sentence that says why not."""
    try:
        return _build(model, table, classes, codes, use_scores), ""
    except ImportError as error:
        return None, f"A compiled twin needs a package that is not installed ({_said(error)}); expected: {INSTALL}."
    except Exception as error:
        return None, f"The model has no compiled twin: {_said(error)}."


def _build(model: Any, table: Table, classes: tuple[Any, ...], codes: Floats, use_scores: bool) -> Twin:
    adapted = adapt(model)
    own = isinstance(adapted, (OnnxModel, *BOOSTERS))
    if not own and not isinstance(model, BaseEstimator):
        raise RefusedError(
            f"it must be a scikit-learn, XGBoost or LightGBM classifier or an ONNX model; got {type(model).__name__}"
        )
    if len(codes) == 0:
        raise RefusedError("there are no rows to hold it to")
    gappy = [feature.name for feature in table.schema.features if feature.gappy]
    if gappy:
        raise RefusedError(f"values may be missing in {shorten(gappy, 3)}")
    if own:
        return _own(adapted, table, classes, codes, use_scores)
    _order(model, classes)
    convert = import_module("fasterce.twin.convert")
    held = _held(Predictor(model, table, classes, use_scores), codes)
    best, reasons = None, []
    for way in _ways(convert, model, table, held.codes, classes, use_scores):
        try:
            twin = _agreeing(way(), held)
        except ImportError:
            raise
        except Exception as error:
            reasons.append(_said(error))
            continue
        if best is None or twin.agreement > best.agreement:
            best = twin
        if best.agreement == 1.0:
            break
    if best is None:
        raise RefusedError("; ".join(dict.fromkeys(reasons)))
    return best


def _own(model: Any, table: Table, classes: tuple[Any, ...], codes: Floats, use_scores: bool) -> Twin:
    """The model itself, fed another way."""
    held = _held(Predictor(model, table, classes, use_scores), codes)
    twin = _own_session if isinstance(model, OnnxModel) else _own_booster
    return _agreeing(twin(model, table, classes, codes, use_scores), held)


def _own_session(model: OnnxModel, table: Table, classes: tuple[Any, ...], codes: Floats, use_scores: bool) -> Twin:
    """It is asked for labels where these are wanted: it need not tell its classes."""
    scores, order = ("predict_proba", _order(model, classes)) if use_scores else (None, ())
    reading = Reading(classes, order, scores, use_scores)
    return Twin(session_front(model, table, codes), SessionEngine(model, use_scores), reading, "onnx: the model itself")


def _own_booster(model: Any, table: Table, classes: tuple[Any, ...], codes: Floats, use_scores: bool) -> Twin:
    if find_scores(model) != "predict_proba":
        raise RefusedError(f"it gives no chances ({model.objective})")
    reading = Reading(classes, _order(model, classes), "predict_proba", use_scores)
    kind = f"{_package(model.booster)}: the model itself"
    return Twin(booster_front(model, table, codes), BoosterEngine(model), reading, kind)


def _searched(model: Any) -> Any:
    """What a search over parameters found, which is what it asks itself."""
    found = getattr(model, "best_estimator_", None)
    return model if found is None else _searched(found)


def _order(model: Any, classes: tuple[Any, ...]) -> tuple[int, ...]:
    """For every wanted class its position among the model's own."""
    known = [plain(label) for label in getattr(model, "classes_", ())]
    if set(known) != set(classes):
        raise RefusedError(f"its classes are {shorten(known)}; expected {shorten(classes)}")
    return tuple(known.index(label) for label in classes)


def _readings(model: Any, last: Any, classes: tuple[Any, ...], use_scores: bool) -> list[Reading]:
    """The graph's labels say most where labels are all that is wanted, but for votes, which may tie."""
    order, method = _order(model, classes), find_scores(model)
    by_label = Reading(classes, order, None, False)
    if method is None:
        return [by_label]
    votes = isinstance(last, VOTES)
    by_score = Reading(classes, order, method, use_scores, VOTE_DECIMALS if votes else None)
    if use_scores:
        return [by_score]
    return [by_score, by_label] if votes else [by_label, by_score]


def _ways(convert: Any, model: Any, table: Table, codes: Floats, classes: tuple[Any, ...], use_scores: bool) -> Iterator[Way]:
    """Ways to a twin, the most promising first: trees compare single-precision numbers, most others do not."""
    found = _searched(model)
    transform, last = _steps(found)
    numbers = (np.float32, np.float64) if type(last).__module__.startswith(TREES) else (np.float64, np.float32)
    choices = list(product(_readings(model, last, classes, use_scores), numbers))
    try:
        front = learn_front(transform, table, codes, _zero_is_missing(transform, last, table, codes))
    except Exception as error:
        yield partial(_refuse, _said(error))
        yield from _whole_ways(convert, found, table, codes, choices)
        return
    kind = type(last).__name__ if last is found else f"table front + {type(last).__name__}"
    if isinstance(last, FORESTS) and sum(grown.tree_.node_count for grown in last.estimators_) > MANY_NODES:
        reading = replace(choices[0][0], decimals=None)
        yield lambda: Twin(front.held_as(np.float32), ForestEngine(last), reading, f"trees: {kind}")
        return
    for reading, number in choices:
        yield partial(_with_matrix, convert, last, front.held_as(number), reading, f"onnx: {kind}")


def _whole_ways(convert: Any, model: Any, table: Table, codes: Floats, choices: list[tuple[Reading, Any]]) -> Iterator[Way]:
    """All steps as one graph, where they are not a table; a table of numbers alone is one input to most models."""
    kind = f"onnx: all of {type(model).__name__}"
    if all(feature.numeric for feature in table.schema.features):
        front = learn_front(lambda frame: frame, table, codes, False)
        for reading, number in choices:
            yield partial(_with_matrix, convert, model, front.held_as(number), reading, kind)
    for reading, number in choices:
        yield partial(_with_columns, convert, model, columns_front(table, number), reading, kind)


def _refuse(why: str) -> Twin:
    raise RefusedError(why)


def _with_matrix(convert: Any, model: Any, front: TableFront, reading: Reading, kind: str) -> Twin:
    return Twin(front, convert.on_matrix(model, front.width, front.base.dtype, reading.scores), reading, kind)


def _with_columns(convert: Any, model: Any, front: ColumnsFront, reading: Reading, kind: str) -> Twin:
    return Twin(front, convert.on_columns(model, front, reading.scores), reading, kind)


def _steps(model: Any) -> tuple[Transform, Any]:
    """All steps but the last as one, and the last."""
    if not isinstance(model, Pipeline):
        return lambda frame: frame, model
    transform, last = _steps(model.steps[-1][1])
    if len(model.steps) == 1:
        return transform, last
    before = model[:-1]
    return lambda frame: transform(before.transform(frame)), last


def _zero_is_missing(transform: Transform, last: Any, table: Table, codes: Floats) -> bool:
    """XGBoost takes what a sparse matrix leaves out for missing, not for zero."""
    return _package(last) == "xgboost" and hasattr(transform(table.frame(codes[:1])), "toarray")


def _held(predictor: Predictor, codes: Floats) -> Held:
    """Known rows, half of them with a few features as other rows have them, as a search would ask."""
    rng = np.random.default_rng(SEED)
    rows = MOST_ASKED_ROWS // (4 if predictor.use_scores else 2)
    known = codes if len(codes) <= rows else codes[np.sort(rng.choice(len(codes), rows, replace=False))]
    edited = known.copy()
    others = known[rng.integers(len(known), size=len(known))]
    for _ in range(MOST_EDITS):
        column = rng.integers(known.shape[1], size=len(known))
        taken = np.arange(len(known)), column
        edited[taken] = others[taken]
    asked = np.vstack([known, edited])
    labels = predictor.label(predictor.table.frame(asked))
    answered = labels != FAILED
    if not answered.any():
        raise RefusedError(f"it answers no row itself ({predictor.failure})")
    scores = predictor.ask(asked).scores if predictor.use_scores else None
    return Held(asked[answered], labels[answered], None if scores is None else scores[answered])


def _agreeing(twin: Twin, held: Held) -> Twin:
    """The twin with its agreement, if it is close enough."""
    answers = twin.session().ask(held.codes)
    agreement = float(np.mean(answers.classes == held.labels))
    if agreement < AGREEMENT:
        raise RefusedError(f"compiled, it gives the same label for only {agreement:.1%} of known rows")
    if held.scores is not None and answers.scores is not None:
        _check_scores(answers.scores, held.scores, twin.reading.scores == "predict_proba")
    return Twin(twin.front, twin.engine, twin.reading, twin.kind, agreement)


def _check_scores(found: Floats, wanted: Floats, chances: bool) -> None:
    if chances:
        found, wanted = np.maximum(found, LOWEST_COMPARED), np.maximum(wanted, LOWEST_COMPARED)
    error = np.abs(found - wanted).max(axis=1) / max(1.0, float(wanted.std()))
    typical, large = float(np.median(error)), float(np.quantile(error, 0.99))
    if not (typical <= TYPICAL_ERROR and large <= LARGE_ERROR):
        raise RefusedError(f"compiled, its scores are off by {typical:.2g} typically and {large:.2g} at worst")


def _package(model: Any) -> str:
    return type(model).__module__.split(".")[0]


def _said(error: Exception) -> str:
    """An exception in a few words, to stand inside a sentence."""
    text = (str(error).strip().splitlines() or [""])[0][:MOST_SAID].rstrip(". ")
    return text if isinstance(error, (RefusedError, NoFrontError)) else f"{type(error).__name__}: {text}"
