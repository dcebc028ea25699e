"""Reference rows: known rows and edited ones, with the model's own predictions, to check what was compiled."""

from dataclasses import dataclass

import numpy as np

from fasterce.config import CompiledConfig
from fasterce.models.compiled.model import NotCompiledError
from fasterce.models.predictions import FAILED, Predictions
from fasterce.models.predictor import Predictor
from fasterce.typing import Floats

# Of the reference rows: the same model is compiled the same way each time.
SEED = 20_111
# Beyond this the smaller of two single-precision probabilities is lost in the larger.
LOWEST_COMPARED = float(np.log(np.finfo(np.float32).eps))


@dataclass(frozen=True)
class ReferenceRows:
    """Rows and the model's own predictions for them."""

    codes: Floats
    predictions: Predictions

    def agreement(self, found: Predictions, probabilities: bool, config: CompiledConfig) -> float:
        """Return the share of rows with the model's label; raises `NotCompiledError` if it is too small or scores differ."""
        expected = self.predictions
        agreement = float(np.mean(found.classes == expected.classes))
        if agreement < config.min_agreement:
            raise NotCompiledError("models.compile_agreement", agreement=f"{agreement:.1%}")
        if expected.scores is not None and found.scores is not None:
            error = score_error(found.scores, expected.scores, probabilities)
            typical, large = float(np.median(error)), float(np.quantile(error, 0.99))
            if not (typical <= config.max_typical_score_error and large <= config.max_large_score_error):
                raise NotCompiledError("models.compile_scores", typical=f"{typical:.2g}", large=f"{large:.2g}")
        return agreement


def score_error(found: Floats, expected: Floats, probabilities: bool) -> Floats:
    """Return the largest error of a score per row, in standard deviations of scores where these are larger than 1."""
    if probabilities:
        found, expected = np.maximum(found, LOWEST_COMPARED), np.maximum(expected, LOWEST_COMPARED)
    return np.asarray(np.abs(found - expected).max(axis=1) / max(1.0, float(expected.std())))


def reference_rows(predictor: Predictor, codes: Floats, config: CompiledConfig) -> ReferenceRows:
    """Return known rows, half of them with a few features as other rows have them, as a search would evaluate."""
    rng = np.random.default_rng(SEED)
    rows = config.reference_rows // (4 if predictor.use_scores else 2)
    known = codes if len(codes) <= rows else codes[np.sort(rng.choice(len(codes), rows, replace=False))]
    edited = known.copy()
    others = known[rng.integers(len(known), size=len(known))]
    for _ in range(config.max_edits):
        column = rng.integers(known.shape[1], size=len(known))
        cells = np.arange(len(known)), column
        edited[cells] = others[cells]
    rows_codes = np.vstack([known, edited])
    labels = predictor.predict_labels(predictor.table.frame(rows_codes))
    sound = labels != FAILED
    if not sound.any():
        raise NotCompiledError("models.compile_reference", cause=predictor.error().problem)
    scores = predictor.evaluate(rows_codes).scores if predictor.use_scores else None
    return ReferenceRows(rows_codes[sound], Predictions(labels, scores).take(sound))
