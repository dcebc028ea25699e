"""The measures of `benchmarks/quality.py`, on models small enough to try every row."""

import json
import warnings
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks import quality, venvs
from benchmarks.yardstick import brute, cases, consistency, milp, optimum, report, timing, trees
from benchmarks.yardstick.cases import Case
from benchmarks.yardstick.consistency import Found
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from xgboost import XGBClassifier

from fasterce import FasterCE, Schema
from fasterce.config import Config
from fasterce.data.schema import Feature

TREECF = Path(venvs.__file__).parent / ".venvs" / "treecf" / ".installed"
SCHEMA = Schema(
    (
        Feature("x", "numeric", lower=0, upper=6, integer=True),
        Feature("c", "categorical", ("a", "b", "c")),
        Feature("y", "numeric", lower=0.05, upper=1.55, decimals=1),
    )
)
# All rows the schema allows: y is one of 0.1, 0.2, ... 1.5.
EVERY = np.array(list(product(range(7), range(3), np.arange(1, 16) / 10)))


def case(estimator: Any, low: float | None = None) -> Case:
    """A model of 300 rows; every second query has a y that is not a multiple of 0.1."""
    drawn = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "x": drawn.integers(0, 7, 300),
            "c": pd.Series(drawn.choice(["a", "b", "c"], 300), dtype="str"),
            "y": np.round(drawn.uniform(0.05, 1.55, 300), 1).clip(0.1, 1.5),
        }
    )
    X.loc[::2, "y"] += 0.043
    score = np.sin(X["x"]) + 2 * (X["c"] == "b") * (X["y"] - 0.6) + X["y"] ** 2 - 1.2
    model = make_pipeline(cases.encoder(SCHEMA), estimator)
    model.fit(X, score if low is not None else (score > 0).astype(int))
    rows = X if low is None else X[model.predict(X) < low]
    return Case("made", "model", SCHEMA, model, X, rows.reset_index(drop=True), low)


def least_distance(made: Case, query: int) -> float:
    """The distance of the nearest row that reaches the target, of all rows."""
    own = made.queries[query]
    candidates = np.concatenate([np.where(kept, own, EVERY) for kept in product((False, True), repeat=3)])
    hits = made.reached(candidates, np.full(len(candidates), query))
    return float(made.gower(candidates[hits], own).min()) if hits.any() else np.inf


@cache
def network_world(name: str) -> Case:
    options = {"solver": "lbfgs", "max_iter": 200, "random_state": 0}
    estimators = {
        "linear": (LogisticRegression(), None),
        "one layer": (MLPClassifier(hidden_layer_sizes=(5,), **options), None),
        "two layers": (MLPClassifier(hidden_layer_sizes=(8, 5), **options), None),
        "numbers": (MLPRegressor(hidden_layer_sizes=(6,), **options), 0.8),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return case(*estimators[name])


@pytest.mark.parametrize("name", ["linear", "one layer", "two layers", "numbers"])
def test_the_program_finds_the_nearest_of_all_rows(name: str) -> None:
    made = network_world(name)
    network = milp.Network.of(made)
    for query in range(6):
        expected = least_distance(made, query)
        found = milp.nearest(made, network, query, None, 20)
        assert found.proven
        assert found.codes is not None
        assert made.allowed(found.codes, made.queries[query])
        assert made.gower(found.codes, made.queries[query]) == pytest.approx(expected)
        # With a counterfactual known, here the nearest and a farther one, the bounds are tighter and the result the same.
        for known in (expected, 1.3 * expected):
            again = milp.nearest(made, network, query, known, 20)
            assert again.codes is not None
            assert made.gower(again.codes, made.queries[query]) == pytest.approx(expected)


def test_nothing_nearer_than_the_optimum_is_proven() -> None:
    made = network_world("two layers")
    found = milp.nearest(made, milp.Network.of(made), 0, 0.99 * least_distance(made, 0), 20)
    assert found.proven
    assert found.codes is None


def test_a_network_read_from_a_pipeline_gives_its_predictions() -> None:
    made = network_world("two layers")
    network = milp.Network.of(made)
    odds = [network.output(own) for own in made.queries[:50]]
    assert 1 / (1 + np.exp(-np.array(odds))) == pytest.approx(made.model.predict_proba(made.rows.iloc[:50])[:, 1])


@pytest.mark.skipif(not TREECF.exists(), reason="needs the environment that `make bench-quality` makes for treecf")
def test_treecf_finds_the_nearest_of_all_rows() -> None:
    made = case(XGBClassifier(n_estimators=12, max_depth=4, n_jobs=1))
    found = trees.nearest(made, np.arange(6), 5.0, 60.0)
    assert len(found) == 6
    for query, result in found.items():
        assert result.proven
        assert result.codes is not None
        assert made.gower(result.codes, made.queries[query]) == pytest.approx(least_distance(made, query))


def test_distances_are_compared_with_proven_optima_only() -> None:
    distance = np.array([0.2, 0.3, np.inf, 0.1, 0.5])
    found = optimum.compare(distance, {0: 0.1, 1: 0.3, 2: 0.4, 3: None, 4: np.inf})
    assert (found["tried"], found["proven"], found["compared"], found["missed"]) == (5, 4, 2, 1)
    assert found["ratio_of_means"] == pytest.approx(0.25 / 0.2)
    assert found["worst_ratio"] == 2
    assert found["within"] == 1
    assert found["contradicted"] == 0


def test_a_distance_below_the_optimum_is_a_contradiction() -> None:
    assert optimum.compare(np.array([0.09, 0.1]), {0: 0.1, 1: 0.1})["contradicted"] == 1


# Consistency


class Sum:
    """Class 1 where x + 10 y is more than 12."""

    classes_ = (0, 1)

    def predict(self, rows: pd.DataFrame) -> np.ndarray:
        return (rows["x"].to_numpy() + 10 * rows["y"].to_numpy() > 12.0001).astype(int)


@pytest.fixture
def added() -> Case:
    X = pd.DataFrame({"x": [0, 6, 3], "c": pd.Series(["a", "b", "c"], dtype="str"), "y": [0.1, 1.5, 0.8]})
    rows = pd.DataFrame({"x": [3, 1], "c": pd.Series(["a", "a"], dtype="str"), "y": [0.8, 0.2]})
    return Case("made", "sum", SCHEMA, Sum(), X, rows)


def found(query: list[int], codes: list[list[float]], distance: list[float], status: list[str]) -> Found:
    values = np.array(codes, dtype=float).reshape(-1, 3)
    return Found(np.array(query), values, np.array(distance), np.full(len(query), 1), np.array(status))


def test_exhaustive_search_finds_every_single_change(added: Case) -> None:
    query, feature, value = brute.singles(added, np.array([0]), 10_000)
    assert set(query) == {0}
    assert sorted(zip(feature.tolist(), value.tolist(), strict=True)) == [
        (0, 5),
        (0, 6),
        *((2, y / 10) for y in range(10, 16)),
    ]
    narrow = brute.singles(added, np.array([0]), 10_000, within=0.26)
    assert sorted(zip(narrow[1].tolist(), narrow[2].tolist(), strict=True)) == [(2, 1.0)]


def test_exhaustive_search_finds_pairs_none_of_which_suffices_alone(added: Case) -> None:
    assert brute.pairs(added, 0, 10_000) == {frozenset({0, 2})}


def test_unnecessary_and_too_large_changes_are_counted(added: Case) -> None:
    smallest, too_far, unnecessary = [5, 0, 0.8], [6, 0, 0.8], [5, 1, 0.8]
    counts = [
        consistency._minimal(added, found([0], [codes], [0.5], ["found"]), "closest")
        for codes in (smallest, too_far, unnecessary)
    ]
    assert [count["closest_unnecessary"] for count in counts] == [0, 0, 1]
    assert [count["closest_one_step_back"] for count in counts] == [0, 1, 0]


def test_another_call_that_is_closer_beats_closest() -> None:
    status = ["found", "found"]
    closest = found([0, 1], [[5, 0, 0.8]] * 2, [0.5, 0.4], status)
    sparse = found([0, 1], [[5, 0, 0.8]] * 2, [0.25, 0.4], status)
    several = found([0, 0, 1], [[5, 0, 0.8]] * 3, [0.6, 0.7, 0.4], status)
    counts = consistency._beaten(closest, sparse, several, closest)
    assert (counts["beaten"], counts["beaten_by_sparse"], counts["beaten_by_n3"]) == (1, 1, 0)
    assert counts["largest_excess"] == 2
    assert counts["n3_first_worse"] == 1


def test_values_that_miss_the_target_or_are_not_allowed_are_invalid(added: Case) -> None:
    codes = [[4, 0, 0.8], [5, 0, 0.85], [7, 0, 0.8], [5, 0, 0.8]]
    counts = consistency._invalid(added, [found([0] * 4, codes, [0.1] * 4, ["found"])])
    assert counts == {"invalid": 1, "not_allowed": 2}


def test_fewer_than_three_are_refuted_by_another_minimal_set(added: Case) -> None:
    single = brute.singles(added, np.array([0, 1]), 10_000)
    by_x = found([0], [[5, 0, 0.8]], [0.3], ["found", "already_target"])
    assert consistency._short(added, by_x, single) == {
        "short": 1,
        "short_refuted_by_single": 1,
        "short_refuted_by_pair": 0,
    }
    both = found([0, 0], [[5, 0, 0.8], [3, 0, 1.0]], [0.3, 0.2], ["found", "already_target"])
    assert consistency._short(added, both, single)["short_refuted_by_pair"] == 1


def test_the_command_writes_tables_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "FasterCE", partial(FasterCE, config=Config.fast()))
    monkeypatch.setattr(optimum, "KEPT", tmp_path)
    out = tmp_path / "quality.md"
    arguments = ["--datasets", "wine", "--models", "logistic", "--rows", "4", "--batch", "8", "--out", str(out)]
    quality.main(arguments)
    cell = json.loads(out.with_suffix(".json").read_text())["cells"][0]
    assert "error" not in cell
    assert cell["optimum"]["contradicted"] == 0
    assert cell["optimum"]["ratio_of_means"] >= 1
    assert cell["consistency"]["invalid"] == cell["consistency"]["not_allowed"] == 0
    assert cell["time"]["query_ms_p50"] > cell["time"]["predict_one_ms_p50"] > 0
    assert cell["fit"]["fit_model_rows"] > 50
    assert "## Against the exact optimum" in capsys.readouterr().out


def test_two_runs_are_compared_cell_by_cell() -> None:
    old = {"data": "wine", "model": "mlp5", "time": {"query_ms_p50": 8.0}, "fit": {"fit_model_rows": 5000}}
    new = {"data": "wine", "model": "mlp5", "fit": {"fit_model_rows": 4000, "fit_cpu_seconds": 1.5}}
    page = report.page([new, {"data": "wine", "model": "svc", "error": "none"}], "command", [old])
    assert "| data | model | fit CPU s | fit rows |" in page
    assert "| wine | mlp5 |  → 1.5 | 5,000 → 4,000 |" in page


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        quality.main(["--parts", "speed"])
    assert "must be some of optimum,consistency,time" in capsys.readouterr().err
