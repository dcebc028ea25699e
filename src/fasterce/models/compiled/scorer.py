"""Exact scorers: the structure of the user's model, read into arrays for the compiled search loops."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from fasterce.config import CompiledConfig
from fasterce.kernels.arrays import IDENTITY, NETWORK, NO_NETWORK, NO_TREES, TREES, Scorer
from fasterce.kernels.score import outputs
from fasterce.models.compiled.columns import Columns
from fasterce.models.compiled.form import DECISION, DECISIONS, NUMBER, PROBABILITY, OutputMap
from fasterce.models.compiled.model import NotCompiledError
from fasterce.models.compiled.preprocessing import Transform, learn_preprocessor
from fasterce.models.compiled.read_network import Layers, network_on_codes, read_layers
from fasterce.models.compiled.read_trees import ModelTrees, read_trees
from fasterce.models.compiled.reference import ReferenceRows, reference_rows
from fasterce.models.compiled.session import Prepare
from fasterce.models.compiled.steps import best_estimator, class_order, package, split_steps
from fasterce.models.compiled.trees import trees_on_codes
from fasterce.models.predictions import Predictions
from fasterce.models.predictor import Predictor
from fasterce.typing import Floats, Objects

# Rounding of sums, relative to the largest output, in single and double precision.
SINGLE_ROUNDING, DOUBLE_ROUNDING = 1e-6, 1e-12
# Errors of unseen rows may be larger than those of reference rows.
ERROR_FACTOR = 2.0
# Largest error of an exact scorer, in standard deviations of scores.
MOST_ROUNDING = 1e-4
# Decimals of votes, so that sums in another order tie where the model's tie.
VOTE_DECIMALS = 12
NO_CLASSES: tuple[int, ...] = ()


@dataclass(frozen=True)
class ScorerReader:
    """Predictions from a scorer's outputs."""

    classes: tuple[Hashable, ...]
    map: OutputMap
    keep: bool

    def predictions(self, found: Objects) -> Predictions:
        """Return the labels, and the scores where these are used."""
        votes = self.map.form == PROBABILITY
        scores = self.map.scores(np.round(found, VOTE_DECIMALS) if votes else found)
        return Predictions(scores.argmax(axis=1), scores if self.keep else None)


@dataclass(frozen=True)
class ScorerBackend:
    """Evaluates a scorer."""

    scorer: Scorer

    def run(self, prepare: Prepare, codes: Floats) -> Objects:
        return np.asarray(outputs(self.scorer, np.ascontiguousarray(codes, dtype=np.float64)))


@dataclass(frozen=True)
class ReadScorer:
    """A scorer that agrees with the model, how its outputs are read, and what it was read from."""

    scorer: Scorer
    reader: ScorerReader
    agreement: float
    kind: str


def read_scorer(
    model: object,
    predictor: Predictor,
    codes: Floats,
    config: CompiledConfig,
    reference: Callable[[], ReferenceRows] | None = None,
) -> ReadScorer:
    """Return the model's trees or layers as a scorer on codes.

    Parameters
    ----------
    model : object
        The user's fitted model.
    predictor : Predictor
        The same model as labels and scores.
    codes : ndarray of shape (N, features)
        Training rows.
    config : CompiledConfig
    reference : callable, optional
        Returns the rows to check the scorer on; by default these are made from `codes`.

    Returns
    -------
    ReadScorer

    Raises
    ------
    NotCompiledError
        The model has no structure that can be read, or the scorer disagrees with it.
    """
    transform, last = _last_step(model, predictor)
    structure = read_trees(last) or read_layers(last)
    if structure is None:
        raise NotCompiledError("models.compile_structure", received=type(last).__name__)
    numbers = predictor.numbers
    order = NO_CLASSES if numbers is not None else class_order(predictor.model, predictor.classes)
    if (numbers is not None) != (structure.form == NUMBER):
        raise NotCompiledError("models.compile_objective", objective=structure.form.name)
    output_map = OutputMap.of(structure.form, order, numbers)
    columns = _columns(transform, last, predictor, codes)
    scorer = _scorer(structure, columns, output_map, codes)
    reader = ScorerReader(predictor.classes, output_map, predictor.use_scores)
    rows = reference() if reference is not None else reference_rows(predictor, codes, config)
    return _checked(scorer, reader, rows, config, f"exact: {type(last).__name__}")


def _last_step(model: Any, predictor: Predictor) -> tuple[Transform, Any]:
    """Return all steps before the one with the structure as a function of a frame, and that step."""
    adapted = predictor.model
    transform, last = split_steps(best_estimator(getattr(adapted, "booster", model)))
    prepare = getattr(adapted, "prepare", None)
    encode = getattr(last, "_preprocess_X", None)

    def steps(frame: pd.DataFrame) -> Any:
        prepared = transform(frame if prepare is None else prepare(frame))
        return prepared if encode is None else encode(prepared, reset=False)

    return steps, last


def _columns(transform: Transform, last: object, predictor: Predictor, codes: Floats) -> Columns:
    table = predictor.table
    sparse = package(last) == "xgboost" and hasattr(transform(table.frame(codes[:1])), "toarray")
    preprocessor = learn_preprocessor(transform, table, codes, sparse).with_dtype(np.float64)
    return Columns(transform, table, preprocessor, codes[0])


def _scorer(structure: ModelTrees | Layers, columns: Columns, output_map: OutputMap, codes: Floats) -> Scorer:
    trees = isinstance(structure, ModelTrees)
    return Scorer(
        kind=TREES if trees else NETWORK,
        trees=trees_on_codes(structure, columns, output_map) if isinstance(structure, ModelTrees) else NO_TREES,
        network=network_on_codes(structure, columns, output_map, codes) if isinstance(structure, Layers) else NO_NETWORK,
        outputs=output_map.matrix.shape[1],
        link=output_map.form.link if output_map.matrix.shape[1] > 1 or output_map.form == PROBABILITY else IDENTITY,
        exact=trees or not columns.preprocessor.curves,
        error=SINGLE_ROUNDING if isinstance(structure, ModelTrees) and structure.single else DOUBLE_ROUNDING,
    )


def _checked(scorer: Scorer, reader: ScorerReader, reference: ReferenceRows, config: CompiledConfig, kind: str) -> ReadScorer:
    """Return the scorer with its agreement and its error, if it is close enough to the model."""
    raw = outputs(scorer, np.ascontiguousarray(reference.codes))
    found = replace(reader, keep=True).predictions(raw)
    probabilities = reader.map.form not in (DECISION, DECISIONS, NUMBER)
    agreement = reference.agreement(found, probabilities, config)
    error = scorer.error * max(1.0, float(np.abs(raw).max()))
    expected = reference.predictions.scores
    if expected is not None and found.scores is not None:
        gap = _lead_error(found.scores, expected, probabilities)
        error = max(error, ERROR_FACTOR * float(gap.max()))
        if scorer.exact and error > MOST_ROUNDING * max(1.0, float(expected.std())):
            raise NotCompiledError("models.compile_scores", typical=f"{np.median(gap):.2g}", large=f"{error:.2g}")
    return ReadScorer(scorer._replace(error=error), reader, agreement, kind)


def _lead_error(found: Floats, expected: Floats, probabilities: bool) -> Floats:
    """Return the error of each row's leads; where these come from probabilities, as it would be at the boundary."""
    error = found - expected
    gap = np.abs(error - error[:, :1]).max(axis=1)
    if not probabilities:
        return gap
    best = np.sort(expected, axis=1)
    chance = expit(best[:, -1] - best[:, -2])
    return np.asarray(gap * 4 * chance * (1 - chance))
