"""A row's answer is its own: alone or in a batch, in any order, from any thread, to the last bit."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from xgboost import XGBClassifier

from fasterce.predictor import Asked
from fasterce.profile import Floats
from fasterce.twin import Twin, build
from fasterce.twin.compiled import Reading
from fasterce.twin.engine import FEW_BLOCKS, PART_BLOCKS, ForestEngine, GraphEngine, in_parts
from fasterce.twin.front import learn_front
from twin.models import coded as coded_rows
from twin.models import columns, numbers, outcome, people

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
    "all steps": make_pipeline(PCA(4, random_state=0), LogisticRegression()),
}


@pytest.fixture(scope="module", params=[(name, names) for name in MODELS for names in ((0, 1), (0, 1, 2))], ids=str)
def compiled(request: pytest.FixtureRequest) -> tuple[Twin, Floats]:
    name, names = request.param
    frame = people(600)
    model = make_pipeline(columns(sparse_threshold=0), MODELS[name]).fit(frame, outcome(frame, names))
    table, codes = coded_rows(frame)
    twin, why = build(model, table, names, codes, True)
    assert twin is not None, why
    return twin, coded_rows(people(ROWS, seed=3))[1]


def scores(twin: Twin, codes: Floats) -> Any:
    return twin.ask(codes).scores


def test_alone_or_in_any_company(compiled: tuple[Twin, Floats]) -> None:
    twin, codes = compiled
    rng = np.random.default_rng(0)
    together = scores(twin, codes)
    for row in rng.choice(ROWS, 25, replace=False):
        assert (scores(twin, codes[row : row + 1]) == together[row]).all()
    for size in (2, 7, 15, 16, 17, 47, 48, 49, 191, 193, 769, 1153):
        start = int(rng.integers(0, ROWS - size))
        assert (scores(twin, codes[start : start + size]) == together[start : start + size]).all()
    order = rng.permutation(ROWS)
    assert (scores(twin, codes[order]) == together[order]).all()
    assert (scores(twin, np.asfortranarray(codes)) == together).all()
    answers = twin.ask(codes)
    assert (answers.classes == together.argmax(axis=1)).all()


def test_many_threads_at_once_count_for_themselves(compiled: tuple[Twin, Floats]) -> None:
    twin, codes = compiled
    wanted = scores(twin, codes)
    sessions = [twin.session() for _ in range(4)]

    def work(session: Twin) -> bool:
        return all(
            (scores(session, codes[start : start + 500]) == wanted[start : start + 500]).all() for start in (0, 700, 1900)
        )

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, sessions))
    assert all(session.asked == Asked(3, 1500) for session in sessions)
    assert twin.session().asked == Asked()


def test_no_rows_are_an_answer_too(compiled: tuple[Twin, Floats]) -> None:
    twin, codes = compiled
    answers = twin.session().ask(codes[:0])
    assert answers.classes.shape == (0,)
    assert answers.scores is not None
    assert answers.scores.shape == (0, len(twin.reading.classes))


def test_one_session_asked_from_many_threads_loses_no_count() -> None:
    frame = numbers()
    model = LogisticRegression().fit(frame, outcome(frame))
    table, codes = coded_rows(frame)
    twin, _ = build(model, table, (0, 1), codes, True)
    assert twin is not None
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda row: twin.ask(codes[row : row + 2]), range(200)))
    assert twin.asked == Asked(200, 400)


def test_parts_keep_their_order() -> None:
    for rows in (1, FEW_BLOCKS * 4, FEW_BLOCKS * 4 + 1, PART_BLOCKS * 4 * 3 + 5):
        codes = np.arange(rows, dtype=np.float64)[:, None]
        assert (in_parts(lambda part: part * 2, codes, 4) == codes * 2).all()


def test_a_forest_tree_by_tree_is_the_forest_and_each_row_its_own() -> None:
    frame = people()
    model = make_pipeline(columns(), RandomForestClassifier(12, random_state=0))
    model.fit(frame, outcome(frame, ("a", "b", "c")))
    table, codes = coded_rows(frame)
    front = learn_front(model[:-1].transform, table, codes, False).held_as(np.float32)
    twin = Twin(front, ForestEngine(model[-1]), Reading(("a", "b", "c"), (0, 1, 2), "predict_proba", True), "trees")
    rows = coded_rows(people(900, seed=2))[1]
    together = scores(twin, rows)
    assert np.allclose(np.exp(together), model.predict_proba(table.frame(rows)), atol=1e-11)
    assert all((scores(twin, rows[row : row + 1]) == together[row]).all() for row in range(40))


def test_a_failed_row_is_marked() -> None:
    reading = Reading(("a", "b"), (1, 0), "predict_proba", True)
    answers = reading.answers(np.array([[0.2, 0.8], [np.nan, 0.5], [1.0, 0.0]], dtype=np.float32))
    assert answers.classes.tolist() == [0, -1, 1]
    assert answers.scores[2].tolist() == [np.log(1e-12), 0.0]
    by_label = Reading(("a", "b"), (0, 1), None, False)
    assert by_label.answers(np.array(["b", "c", "a"], dtype=object)).classes.tolist() == [1, -1, 0]
    by_value = Reading((0, 1), (0, 1), "decision_function", True)
    assert by_value.answers(np.array([[-2.0], [3.0]])).scores.tolist() == [[2.0, -2.0], [-3.0, 3.0]]


def test_a_graph_engine_survives_its_own_bytes(compiled: tuple[Twin, Floats]) -> None:
    twin, codes = compiled
    assert isinstance(twin.engine, GraphEngine)
    again = Twin(twin.front, GraphEngine(twin.engine.graph, twin.engine.block), twin.reading, twin.kind)
    assert (scores(again, codes[:100]) == scores(twin, codes[:100])).all()
