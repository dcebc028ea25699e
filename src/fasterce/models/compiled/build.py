"""Compile the user's model, or return why it cannot be compiled."""

from collections.abc import Callable, Hashable, Iterator
from copy import copy
from functools import cache, partial, reduce
from importlib import import_module
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from fasterce.config import CompiledConfig
from fasterce.data.table import Table
from fasterce.errors import Problem, make_problem, problem_of
from fasterce.models.adapters import CatBoostModel, LightGBMModel, OnnxModel, RenamedModel, XGBoostModel, adapt
from fasterce.models.adapters.base import type_names
from fasterce.models.compiled.model import CodesPreprocessor, CompiledModel, NotCompiledError, OutputReader
from fasterce.models.compiled.native import SessionBackend, session_preprocessor
from fasterce.models.compiled.preprocessing import (
    TablePreprocessor,
    Transform,
    column_preprocessor,
    learn_preprocessor,
)
from fasterce.models.compiled.reference import ReferenceRows, reference_rows
from fasterce.models.compiled.scorer import ScorerBackend, read_scorer
from fasterce.models.compiled.session import EstimatorBackend
from fasterce.models.compiled.steps import best_estimator, class_order, package, split_steps, unwrapped
from fasterce.models.predictor import ModelUsage, Numbers, Predictor, find_scores
from fasterce.typing import Floats

Compile = Callable[[], CompiledModel]
Formats = list[tuple[OutputReader, DTypeLike]]

DEFAULTS = CompiledConfig()
# Estimators of scikit-learn whose probabilities are shares of votes; by name, since importing them takes time and memory.
VOTES = {
    ("sklearn", name)
    for name in ("ExtraTreesClassifier", "RandomForestClassifier", "BaggingClassifier", "DecisionTreeClassifier")
}
# Models whose graph takes many times as long as they do themselves.
NEIGHBOURS = {("sklearn", "KNeighborsClassifier")}
# Models whose structure is read or that are not compiled.
READ_ONLY = (XGBoostModel, LightGBMModel, CatBoostModel, RenamedModel)
NATIVE = (OnnxModel, XGBoostModel, LightGBMModel, CatBoostModel)
TREES = ("xgboost", "lightgbm", "sklearn.ensemble", "sklearn.tree")


def build(
    model: object,
    table: Table,
    classes: tuple[Hashable, ...],
    codes: Floats,
    use_scores: bool,
    config: CompiledConfig = DEFAULTS,
    numbers: Numbers | None = None,
    usage: ModelUsage | None = None,
) -> tuple[CompiledModel | None, Problem | None]:
    """Return a compiled model that agrees with the model on the rows in `codes`, or None and the reason.

    The calls and rows of the comparison are added to `usage`.
    """
    try:
        predictor = Predictor(model, table, classes, use_scores, numbers)
        predictor.usage = predictor.usage if usage is None else usage
        return _build(model, predictor, codes, config), None
    except ImportError as error:
        return None, make_problem("models.compile_packages", cause=problem_of(error))
    except Exception as error:
        return None, make_problem("models.not_compiled", cause=problem_of(error))


def _build(model: object, predictor: Predictor, codes: Floats, config: CompiledConfig) -> CompiledModel:
    inner = unwrapped(model)
    if not isinstance(inner, BaseEstimator) and not isinstance(adapt(inner), NATIVE):
        raise NotCompiledError("models.compile_type", received=type(model).__name__)
    if len(codes) == 0:
        raise NotCompiledError("models.compile_no_rows")
    if predictor.numbers is None and not isinstance(predictor.model, OnnxModel):
        class_order(predictor.model, predictor.classes)
    reference = cache(lambda: reference_rows(predictor, codes, config))
    try:
        read = read_scorer(model, predictor, codes, config, reference)
        return CompiledModel(CodesPreprocessor(), ScorerBackend(read.scorer), read.reader, read.kind, read.agreement)
    except Exception as error:
        if predictor.numbers is not None or isinstance(predictor.model, READ_ONLY):
            raise
        reason = problem_of(error)
    return _converted(model, predictor, codes, reference(), config, [reason])


def _converted(
    model: object,
    predictor: Predictor,
    codes: Floats,
    reference: ReferenceRows,
    config: CompiledConfig,
    reasons: list[Problem],
) -> CompiledModel:
    """Return the model as an ONNX graph, or the model itself given its inputs without a DataFrame."""
    if isinstance(predictor.model, OnnxModel):
        return _agreeing(_native(predictor, codes), reference, config)
    best = None
    for attempt in _attempts(model, predictor, reference.codes, config):
        try:
            compiled = _agreeing(attempt(), reference, config)
        except ImportError:
            raise
        except Exception as error:
            reasons.append(problem_of(error))
            continue
        if best is None or compiled.agreement > best.agreement:
            best = compiled
        if best.agreement == 1.0:
            break
    if best is None:
        raise NotCompiledError(_joined(reasons))
    return best


def _joined(reasons: list[Problem]) -> Problem:
    different = [reason for k, reason in enumerate(reasons) if reason not in reasons[:k]]
    return reduce(lambda first, second: make_problem("models.both", first=first, second=second), different)


def _native(predictor: Predictor, codes: Floats) -> CompiledModel:
    """Return an ONNX model itself, given its inputs without a DataFrame."""
    model, table, use_scores = predictor.model, predictor.table, predictor.use_scores
    assert isinstance(model, OnnxModel)
    _check_complete(table)
    # Its labels are used where these are all that is needed: it may not know its classes.
    method, order = ("predict_proba", class_order(model, predictor.classes)) if use_scores else (None, ())
    reader = OutputReader(predictor.classes, order, method, use_scores)
    preprocessor = session_preprocessor(model, table, codes)
    return CompiledModel(preprocessor, SessionBackend(model, use_scores), reader, "onnx: the model itself")


def _readers(model: object, last: object, predictor: Predictor, vote_decimals: int) -> list[OutputReader]:
    """Return output formats, the best first: labels where labels are all that is needed, but not for votes, which may tie."""
    classes, use_scores = predictor.classes, predictor.use_scores
    order, method = class_order(model, classes), find_scores(model)
    by_label = OutputReader(classes, order, None, False)
    if method is None:
        return [by_label]
    votes = bool(type_names(last) & VOTES)
    by_score = OutputReader(classes, order, method, use_scores, vote_decimals if votes else None)
    if use_scores:
        return [by_score]
    return [by_score, by_label] if votes else [by_label, by_score]


def _attempts(model: object, predictor: Predictor, codes: Floats, config: CompiledConfig) -> Iterator[Compile]:
    """Yield ways to compile, the most promising first: trees compare single-precision numbers, most others do not."""
    convert = import_module("fasterce.models.compiled.convert")
    table, found = predictor.table, best_estimator(model)
    transform, last = split_steps(found)
    numbers = (np.float32, np.float64) if type(last).__module__.startswith(TREES) else (np.float64, np.float32)
    formats: Formats = list(product(_readers(model, last, predictor, config.vote_decimals), numbers))
    try:
        preprocessor = learn_preprocessor(transform, table, codes, _zero_is_missing(transform, last, table, codes))
    except Exception as error:
        yield partial(_fail, problem_of(error))
        yield from _attempts_on_all_steps(convert, found, table, codes, formats)
        return
    if type_names(last) & NEIGHBOURS:
        yield partial(_on_estimator, last, preprocessor.with_dtype(np.float64), predictor)
    kind = type(last).__name__ if last is found else f"table + {type(last).__name__}"
    for reader, number in formats:
        yield partial(_on_matrix, convert, last, preprocessor.with_dtype(number), reader, f"onnx: {kind}")


def _attempts_on_all_steps(
    convert: ModuleType, model: object, table: Table, codes: Floats, formats: Formats
) -> Iterator[Compile]:
    """Yield ways to compile all steps as one graph; a table of numbers alone is one input to most models."""
    _check_complete(table)
    kind = f"onnx: all of {type(model).__name__}"
    if all(feature.numeric for feature in table.schema.features):
        preprocessor = learn_preprocessor(lambda frame: frame, table, codes, False)
        for reader, number in formats:
            yield partial(_on_matrix, convert, model, preprocessor.with_dtype(number), reader, kind)
    for reader, number in formats:
        yield partial(_on_columns, convert, model, column_preprocessor(table, number), reader, kind)


def _fail(problem: Problem) -> CompiledModel:
    raise NotCompiledError(problem)


def _on_estimator(last: Any, preprocessor: TablePreprocessor, predictor: Predictor) -> CompiledModel:
    """Return the last step itself, given its matrix without the other steps."""
    if issparse(last._fit_X) or callable(last.metric) or callable(last.weights):
        raise NotCompiledError("models.compile_structure", received=type(last).__name__)
    # Without the names of columns, which it would miss in a matrix.
    step = copy(last)
    step.__dict__.pop("feature_names_in_", None)
    order = class_order(predictor.model, predictor.classes)
    reader = OutputReader(predictor.classes, order, "predict_proba", predictor.use_scores)
    return CompiledModel(preprocessor, EstimatorBackend(step), reader, f"table + {type(last).__name__} itself")


def _on_matrix(convert: ModuleType, model: Any, preprocessor: Any, reader: OutputReader, kind: str) -> CompiledModel:
    graph = convert.on_matrix(model, preprocessor.width, preprocessor.base.dtype, reader.scores)
    return CompiledModel(preprocessor, graph, reader, kind)


def _on_columns(convert: ModuleType, model: Any, preprocessor: Any, reader: OutputReader, kind: str) -> CompiledModel:
    return CompiledModel(preprocessor, convert.on_columns(model, preprocessor, reader.scores), reader, kind)


def _zero_is_missing(transform: Transform, last: object, table: Table, codes: Floats) -> bool:
    """Return whether zeros are missing values: XGBoost treats what a sparse matrix leaves out as missing."""
    return package(last) == "xgboost" and hasattr(transform(table.frame(codes[:1])), "toarray")


def _check_complete(table: Table) -> None:
    """Refuse missing values, which graphs cannot be given."""
    with_missing = [feature.name for feature in table.schema.features if feature.nullable]
    if with_missing:
        raise NotCompiledError("models.compile_missing_values", columns=with_missing)


def _agreeing(compiled: CompiledModel, reference: ReferenceRows, config: CompiledConfig) -> CompiledModel:
    """Return the compiled model with its agreement, if it is close enough to the model."""
    found = compiled.session().evaluate(reference.codes)
    probabilities = isinstance(compiled.reader, OutputReader) and compiled.reader.scores == "predict_proba"
    agreement = reference.agreement(found, probabilities, config)
    return CompiledModel(compiled.preprocessor, compiled.backend, compiled.reader, compiled.kind, agreement)
