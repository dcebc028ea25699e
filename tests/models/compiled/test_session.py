"""A row's answer is its own: alone or in a batch, in any order, from any thread, to the last bit."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from xgboost import XGBClassifier

from fasterce.models.compiled import CompiledModel, build
from fasterce.models.compiled.model import OutputReader
from fasterce.models.compiled.session import FEW_BLOCKS, PART_BLOCKS, EstimatorBackend, GraphBackend, in_parts
from fasterce.models.predictions import FAILED
from fasterce.models.predictor import ModelUsage
from fasterce.typing import Floats
from tests.models.compiled.models import coded as coded_rows
from tests.models.compiled.models import columns, numbers, outcome, people, without_scorer

ROWS = 3_000
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
MODELS = {
    "network": MLPClassifier((33, 17), max_iter=25, random_state=0),
    "network with tanh": MLPClassifier((20,), max_iter=25, random_state=0, activation="tanh"),
    "logistic": LogisticRegression(),
    "xgboost": XGBClassifier(n_estimators=40, n_jobs=1, random_state=0),
    "lightgbm": LGBMClassifier(n_estimators=40, n_jobs=1, random_state=0, verbose=-1),
    "forest": RandomForestClassifier(40, max_depth=8, random_state=0),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=30, random_state=0),
    "vector machine": SVC(),
    "neighbours": KNeighborsClassifier(9, weights="distance"),
    "all steps": make_pipeline(PCA(4, random_state=0), LogisticRegression()),
}


KINDS = [(name, names, "converted") for name in MODELS for names in ((0, 1), (0, 1, 2))]
EXACT = [(name, names, "exact") for name, names, _ in KINDS if name not in ("vector machine", "neighbours", "all steps")]


@pytest.fixture(scope="module", params=[*KINDS, *EXACT], ids=str)
def compiled(request: pytest.FixtureRequest) -> tuple[CompiledModel, Floats]:
    name, names, exact = request.param
    frame = people(600)
    model = make_pipeline(columns(sparse_threshold=0), clone(MODELS[name])).fit(frame, outcome(frame, names))
    table, codes = coded_rows(frame)
    with without_scorer() if exact == "converted" else nullcontext():
        compiled, why = build(model, table, names, codes, True)
    assert compiled is not None, why
    return compiled, coded_rows(people(ROWS, seed=3))[1]


def scores(compiled: CompiledModel, codes: Floats) -> Any:
    return compiled.evaluate(codes).scores


def test_alone_or_in_any_company(compiled: Any) -> None:
    compiled, codes = compiled
    rng = np.random.default_rng(0)
    together = scores(compiled, codes)
    for row in rng.choice(ROWS, 25, replace=False):
        assert (scores(compiled, codes[row : row + 1]) == together[row]).all()
    for size in (2, 7, 15, 16, 17, 47, 48, 49, 191, 193, 769, 1153):
        start = int(rng.integers(0, ROWS - size))
        assert (scores(compiled, codes[start : start + size]) == together[start : start + size]).all()
    order = rng.permutation(ROWS)
    assert (scores(compiled, codes[order]) == together[order]).all()
    assert (scores(compiled, np.asfortranarray(codes)) == together).all()
    predictions = compiled.evaluate(codes)
    assert (predictions.classes == together.argmax(axis=1)).all()


def test_many_threads_at_once_count_for_themselves(compiled: Any) -> None:
    compiled, codes = compiled
    wanted = scores(compiled, codes)
    sessions = [compiled.session() for _ in range(4)]

    def work(session: CompiledModel) -> bool:
        return all(
            (scores(session, codes[start : start + 500]) == wanted[start : start + 500]).all() for start in (0, 700, 1900)
        )

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, sessions))
    assert all(session.usage == ModelUsage(3, 1500) for session in sessions)
    assert compiled.session().usage == ModelUsage()


def test_no_rows_give_no_predictions(compiled: Any) -> None:
    compiled, codes = compiled
    predictions = compiled.session().evaluate(codes[:0])
    assert predictions.classes.shape == (0,)
    assert predictions.scores is not None
    assert predictions.scores.shape == (0, len(compiled.reader.classes))


def test_one_session_called_from_many_threads_loses_no_count() -> None:
    frame = numbers()
    model = LogisticRegression().fit(frame, outcome(frame))
    table, codes = coded_rows(frame)
    compiled, _ = build(model, table, (0, 1), codes, True)
    assert compiled is not None
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda row: compiled.evaluate(codes[row : row + 2]), range(200)))
    assert compiled.usage == ModelUsage(200, 400)


def test_parts_keep_their_order() -> None:
    for rows in (1, FEW_BLOCKS * 4, FEW_BLOCKS * 4 + 1, PART_BLOCKS * 4 * 3 + 5):
        codes = np.arange(rows, dtype=np.float64)[:, None]
        assert (in_parts(lambda part: part * 2, codes, 4) == codes * 2).all()


def test_a_failed_row_is_marked() -> None:
    reader = OutputReader(("a", "b"), (1, 0), "predict_proba", True)
    predictions = reader.predictions(np.array([[0.2, 0.8], [np.nan, 0.5], [1.0, 0.0]], dtype=np.float32))
    assert predictions.classes.tolist() == [0, -1, 1]
    assert predictions.scores is not None
    assert predictions.scores[2].tolist() == [np.log(1e-12), 0.0]
    by_label = OutputReader(("a", "b"), (0, 1), None, False)
    assert by_label.predictions(np.array(["b", "c", "a"], dtype=object)).classes.tolist() == [1, -1, 0]
    by_value = OutputReader((0, 1), (0, 1), "decision_function", True)
    scored = by_value.predictions(np.array([[-2.0], [3.0]])).scores
    assert scored is not None
    assert scored.tolist() == [[2.0, -2.0], [-3.0, 3.0]]


def test_a_backend_is_the_same_after_its_own_bytes(compiled: Any) -> None:
    compiled, codes = compiled
    again = pickle.loads(pickle.dumps(compiled))
    assert type(again.backend) is type(compiled.backend)
    assert (again.scorer is None) == isinstance(compiled.backend, GraphBackend | EstimatorBackend)
    assert (scores(again, codes[:100]) == scores(compiled, codes[:100])).all()


def test_nearest_neighbours_are_evaluated_by_the_step_itself_and_fail_on_missing_values_alone() -> None:
    frame = numbers()
    model = make_pipeline(columns(sparse_threshold=0), KNeighborsClassifier(9)).fit(frame, outcome(frame, (0, 1)))
    table, codes = coded_rows(frame)
    compiled, why = build(model, table, (0, 1), codes, True)
    assert compiled is not None, why
    assert compiled.kind == "table + KNeighborsClassifier itself"
    rows = codes[:300].copy()
    rows[7, 0] = np.nan
    found = compiled.evaluate(rows).classes
    assert found[7] == FAILED
    assert (np.delete(found, 7) == np.delete(model.predict(frame[:300]), 7)).all()
