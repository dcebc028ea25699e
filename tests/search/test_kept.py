"""What the search keeps between calls (tables of scorers, spaces, structures, memory of threads) is that of the explainer."""

import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import repeat
from multiprocessing import get_context

import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier

from fasterce import FasterCE, Schema
from fasterce.config import Config
from tests.changing import people, truth


def numbers(rows: int, seed: int, shift: float = 0.0) -> pd.DataFrame:
    return people(rows, seed, shift)[["age", "income", "savings"]]


def trees(seed: int, bar: float) -> GradientBoostingClassifier:
    frame = people(400, seed)
    model = GradientBoostingClassifier(n_estimators=12, random_state=0)
    return model.fit(frame[["age", "income", "savings"]], truth(frame, bar))


def found(explainer: FasterCE, rows: pd.DataFrame) -> pd.DataFrame:
    return explainer.explain(rows, n=2, distance="gower").to_frame()


def found_in_another_process(explainer: bytes, rows: pd.DataFrame) -> pd.DataFrame:
    return found(pickle.loads(explainer), rows)


def test_a_second_fit_an_update_and_threads_use_nothing_of_another_explainer() -> None:
    rows, first, second = numbers(70, seed=9), numbers(300, seed=0), numbers(300, seed=1, shift=1.0)
    schemas = [Schema.infer(frame, increasing=["age"]) for frame in (first, second)]
    explainer = FasterCE(trees(0, 58.0), schemas[0], progress=False, config=Config.fast()).fit(first)
    results, states = [found(explainer, rows)], [pickle.dumps(explainer)]
    explainer.set_params(model=trees(1, 70.0), schema=schemas[1]).fit(second)
    results.append(found(explainer, rows))
    states.append(pickle.dumps(explainer))
    explainer.update(numbers(100, 2), model=trees(2, 50.0))
    results.append(found(explainer, rows))
    states.append(pickle.dumps(explainer))

    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        fresh = [results[0], *processes.map(found_in_another_process, states[1:], repeat(rows))]
    assert not any(fresh[k].equals(fresh[k - 1]) for k in range(3)), "a state of another explainer would not be noticed"
    for result, expected in zip(results, fresh, strict=True):
        pd.testing.assert_frame_equal(result, expected)

    explainers = [pickle.loads(state) for state in states]
    with ThreadPoolExecutor(2) as threads:
        for k, result in enumerate(threads.map(lambda k: found(explainers[k % 3], rows), range(9))):
            pd.testing.assert_frame_equal(result, fresh[k % 3])
