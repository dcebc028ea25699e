"""Exact scorers: the structure of the user's model, read into arrays for the compiled search loops."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from fasterce.config import CompiledConfig
from fasterce.kernels.arrays import NETWORK, NO_NETWORK, NO_TREES, TREES, Scorer
from fasterce.kernels.score import outputs
from fasterce.kernels.structs import arrays_of
from fasterce.models.adapters import OnnxModel, adapt
from fasterce.models.compiled.columns import Columns
from fasterce.models.compiled.form import DECISION, DECISIONS, NUMBER, PROBABILITY, OutputMap
from fasterce.models.compiled.model import NotCompiledError
from fasterce.models.compiled.preprocessing import Prober, Transform, learn_preprocessor
from fasterce.models.compiled.read_network import Layers, network_on_codes, read_layers
from fasterce.models.compiled.read_onnx import read_onnx
from fasterce.models.compiled.read_trees import ModelTrees, read_trees
from fasterce.models.compiled.reference import ReferenceRows, reference_rows
from fasterce.models.compiled.session import Prepare
from fasterce.models.compiled.steps import best_estimator, class_order, split_steps, unwrapped
from fasterce.models.compiled.trees import trees_on_codes
from fasterce.models.predictions import Predictions
from fasterce.models.predictor import Predictor
from fasterce.typing import Floats, Objects

# Rounding of sums, relative to the largest output, in single and double precision.
SINGLE_ROUNDING, DOUBLE_ROUNDING = 1e-6, 1e-12
# Decimals that votes are rounded to: sums in another order then tie wherever those of the model tie.
VOTE_DECIMALS = 12
NO_CLASSES: tuple[int, ...] = ()


@dataclass(frozen=True)
class ScorerReader:
    """Predictions from a scorer's outputs."""

    classes: tuple[Hashable, ...]
    map: OutputMap
    keep: bool

    @property
    def labels_apart(self) -> bool:
        """Whether labels do not follow from scores."""
        return self.map.form.platt is not None

    def predictions(self, found: Objects) -> Predictions:
        """Return the labels, and the scores where these are used."""
        votes = self.map.form == PROBABILITY
        values = np.asarray(np.round(found, VOTE_DECIMALS) if votes else found, dtype=np.float64)
        scores = self.map.scores(values)
        return Predictions(self.map.labels(values, scores), scores if self.keep else None)


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
    transform, structure, kind = _structure(model)
    numbers = predictor.numbers
    order = NO_CLASSES if numbers is not None else class_order(predictor.model, predictor.classes)
    if (numbers is not None) != (structure.form == NUMBER):
        raise NotCompiledError("models.compile_structure", received=structure.form.name)
    output_map = OutputMap.of(structure.form, order, numbers)
    scorer = _scorer(structure, Prober(transform, predictor.table, codes[0]), output_map, _sample(codes, config.checked_rows))
    reader = ScorerReader(predictor.classes, output_map, predictor.use_scores)
    rows = reference() if reference is not None else reference_rows(predictor, codes, config)
    return _checked(scorer, reader, rows, config, f"exact: {kind}")


def _structure(model: object) -> tuple[Transform, ModelTrees | Layers, str]:
    """Return the steps before the one with the structure, the structure, and what it is of."""
    inner = unwrapped(model)
    adapted = adapt(inner)
    if isinstance(adapted, OnnxModel):
        return *read_onnx(adapted), "ONNX"
    transform, last = _last_step(inner, adapted)
    structure = read_trees(last) or read_layers(last)
    if structure is None:
        raise NotCompiledError("models.compile_structure", received=type(last).__name__)
    return transform, structure, type(last).__name__


def _last_step(model: object, adapted: object) -> tuple[Transform, object]:
    """Return all steps before the one with the structure as a function of a frame, and that step."""
    transform, last = split_steps(best_estimator(getattr(adapted, "booster", model)))
    prepare = getattr(adapted, "prepare", None)
    encode = getattr(last, "_preprocess_X", None)

    def steps(frame: pd.DataFrame) -> Any:
        prepared = transform(frame if prepare is None else prepare(frame))
        return prepared if encode is None else encode(prepared, reset=False)

    return steps, last


def _sample(codes: Floats, count: int) -> Floats:
    """Return some rows, among them those with the least and the largest value of each feature."""
    rows = np.linspace(0, len(codes) - 1, min(len(codes), count)).astype(np.intp)
    picked = np.unique(np.concatenate([rows, codes.argmin(axis=0), codes.argmax(axis=0)]))
    return np.asarray(codes[picked])


def _scorer(structure: ModelTrees | Layers, prober: Prober, output_map: OutputMap, codes: Floats) -> Scorer:
    found = Scorer(
        kind=TREES,
        trees=NO_TREES,
        network=NO_NETWORK,
        outputs=output_map.matrix.shape[1],
        link=output_map.link,
        exact=True,
        error=DOUBLE_ROUNDING,
    )
    if isinstance(structure, Layers):
        network, exact = network_on_codes(structure, prober, output_map, codes)
        return arrays_of(found._replace(kind=NETWORK, network=network, exact=exact))
    # XGBoost treats what a sparse matrix leaves out as missing.
    sparse = structure.single and hasattr(prober.transform(prober.table.frame(codes[:1])), "toarray")
    preprocessor = learn_preprocessor(prober.transform, prober.table, codes, sparse).with_dtype(np.float64)
    columns = Columns(prober.transform, prober.table, preprocessor, prober.row)
    error = SINGLE_ROUNDING if structure.single else DOUBLE_ROUNDING
    return arrays_of(found._replace(trees=trees_on_codes(structure, columns, output_map), error=error))


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
        error = max(error, config.error_factor * float(gap.max()))
        if scorer.exact and error > config.max_exact_error * max(1.0, float(expected.std())):
            raise NotCompiledError("models.compile_scores", typical=f"{np.median(gap):.2g}", large=f"{error:.2g}")
    return ReadScorer(scorer._replace(error=error), reader, agreement, kind)


def _lead_error(found: Floats, expected: Floats, probabilities: bool) -> Floats:
    """Return the error of each row's leads; where these come from probabilities, as it would be at the boundary."""
    error = found - expected
    gap: Floats = np.abs(error - error[:, :1]).max(axis=1)
    if not probabilities:
        return gap
    best = np.sort(expected, axis=1)
    chance = expit(best[:, -1] - best[:, -2])
    return np.asarray(gap * 4 * chance * (1 - chance))
