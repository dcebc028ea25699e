"""Exact scorers: on any row, and on both sides of every edge, their arrays give what the model gives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from fasterce.config import CompiledConfig
from fasterce.data.schema import MISSING
from fasterce.kernels.score import outputs
from fasterce.models.compiled.scorer import ReadScorer, read_scorer
from fasterce.models.predictor import Predictor
from tests.models.compiled.models import columns, numbers, outcome, people, prepared
from tests.models.compiled.oracle import oracle

TWO, THREE = ("no", "yes"), ("bad", "fair", "good")
CONFIG = CompiledConfig()
# Scores below this are lost where probabilities are single-precision numbers.
LOWEST = -14.0


def boosted(**options: Any) -> Any:
    return XGBClassifier(n_estimators=20, max_depth=4, n_jobs=1, random_state=0, **options)


def light(**options: Any) -> Any:
    return LGBMClassifier(n_estimators=20, min_child_samples=5, n_jobs=1, random_state=0, verbose=-1, **options)


def falling(values: Any) -> Any:
    return -np.asarray(values, dtype=np.float64)


TREES: dict[str, Callable[[], Any]] = {
    "tree": lambda: DecisionTreeClassifier(max_depth=6, random_state=0),
    "forest": lambda: RandomForestClassifier(15, random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(15, max_depth=7, random_state=0),
    "bagging": lambda: BaggingClassifier(n_estimators=8, max_features=0.7, bootstrap_features=True, random_state=0),
    "bagged forests": lambda: BaggingClassifier(RandomForestClassifier(3, random_state=0), n_estimators=3, random_state=0),
    "vote": lambda: VotingClassifier(
        [("forest", RandomForestClassifier(5, random_state=0)), ("tree", DecisionTreeClassifier(max_depth=4))],
        voting="soft",
        weights=[2, 1],
    ),
    "ada boost": lambda: AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=12, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=15, random_state=0),
    "histogram boosting": lambda: HistGradientBoostingClassifier(max_iter=15),
    "xgboost": boosted,
    "lightgbm": light,
}
NETWORKS: dict[str, Callable[[], Any]] = {
    "logistic": LogisticRegression,
    "network": lambda: MLPClassifier((12, 6), max_iter=60, random_state=0),
}
# What stands before the model: nothing, scaled and one-hot, one column falling and another a curve, positions of categories.
STEPS: dict[str, tuple[Callable[[], Any], Callable[..., pd.DataFrame]]] = {
    "numbers": (lambda: "passthrough", numbers),
    "one-hot": (lambda: columns(sparse_threshold=0), people),
    "least and most": (lambda: columns(MinMaxScaler(), OrdinalEncoder()), people),
    "falling": (lambda: make_pipeline(FunctionTransformer(falling), StandardScaler()), numbers),
}


def drawn(frame: pd.DataFrame, predictor: Predictor, rows: int = 1500, seed: int = 5) -> np.ndarray:
    """Rows drawn column by column, half of the numbers anywhere within their range."""
    rng = np.random.default_rng(seed)
    codes = predictor.table.read(frame).codes
    found = np.column_stack([rng.choice(column, rows) for column in codes.T])
    for j, feature in enumerate(predictor.table.schema.features):
        if feature.numeric:
            seen = codes[codes[:, j] != MISSING, j]
            anywhere = rng.random(rows) < 0.5
            found[anywhere, j] = rng.uniform(seen.min(), seen.max(), anywhere.sum())
    return stored(predictor, found)


def at_edges(read: ReadScorer, predictor: Predictor, codes: np.ndarray, most: int = 3000, seed: int = 6) -> np.ndarray:
    """Rows with one number at an edge or just above it."""
    rng = np.random.default_rng(seed)
    trees = read.scorer.trees
    owner = np.repeat(np.arange(len(trees.edge_start) - 1), np.diff(trees.edge_start))
    both = np.concatenate([trees.edges, np.nextafter(trees.edges, np.inf)])
    picked = rng.permutation(len(both))[:most]
    rows = codes[rng.integers(len(codes), size=len(picked))].copy()
    rows[np.arange(len(picked)), np.concatenate([owner, owner])[picked]] = both[picked]
    return rows


def stored(predictor: Predictor, codes: np.ndarray) -> np.ndarray:
    """Codes as the model's columns can hold them."""
    whole = [str(dtype).lower().startswith("int") for dtype in predictor.table.dtypes]
    codes[:, whole] = np.round(codes[:, whole])
    single = [str(dtype) == "float32" for dtype in predictor.table.dtypes]
    codes[:, single] = codes[:, single].astype(np.float32)
    return codes


def check_equal(read: ReadScorer, predictor: Predictor, codes: np.ndarray, error: float, lowest: float = LOWEST) -> None:
    raw = oracle(read.scorer, codes)
    assert np.abs(raw - outputs(read.scorer, codes)).max() < 1e-9
    found, expected = read.reader.predictions(raw), predictor.evaluate(codes)
    assert expected.scores is not None
    assert found.scores is not None
    away = np.abs(np.maximum(found.scores, lowest) - np.maximum(expected.scores, lowest)).max(axis=1)
    assert away.max() < error * max(1.0, expected.scores.std())
    lead = np.sort(expected.scores, axis=1)
    sure = lead[:, -1] - lead[:, -2] > 2 * read.scorer.error
    assert (found.classes == expected.classes)[sure].all()


def read(model: Any, frame: pd.DataFrame, use_scores: bool = True) -> tuple[ReadScorer, Predictor, np.ndarray]:
    predictor, _, codes = prepared(model, frame, use_scores)
    return read_scorer(model, predictor, codes, CONFIG), predictor, codes


@pytest.mark.parametrize("classes", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", [*TREES, *NETWORKS])
def test_scorers_give_the_scores_of_the_model(name: str, steps: str, classes: tuple[str, ...]) -> None:
    make_steps, table = STEPS[steps]
    frame = table()
    truth = outcome(frame, tuple(range(len(classes))) if name == "xgboost" else classes)
    model = make_pipeline(make_steps(), (TREES | NETWORKS)[name]()).fit(frame, truth)
    found, predictor, _ = read(model, frame)
    assert found.scorer.exact
    assert found.agreement == 1.0
    codes = drawn(frame, predictor)
    error = 1e-4 if name == "xgboost" else 1e-9
    check_equal(found, predictor, codes, error)
    if name in TREES:
        check_equal(found, predictor, at_edges(found, predictor, codes), error)
