"""What the benchmarks share, and `benchmarks.scale`, on little data: no rival, no network."""

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    monkeypatch.syspath_prepend(str(ROOT))
    names = ("measuring", "scale", "setting", "rivals.problem", "rivals.certifai")
    return SimpleNamespace(**{name.split(".")[-1]: import_module(f"benchmarks.{name}") for name in names})


@pytest.fixture
def dumped(benchmarks: SimpleNamespace, tmp_path: Path) -> Any:
    setting = benchmarks.setting.prepare("german_credit", "xgboost", seed=0, train_rows=300)
    setting.dump(tmp_path)
    return benchmarks.problem.Problem(tmp_path), setting


def test_rivals_get_the_same_model_and_rows(dumped: Any) -> None:
    problem, setting = dumped
    pd.testing.assert_frame_equal(problem.frame(problem.codes(problem.rows)), setting.rows)
    np.testing.assert_array_equal(problem.predict_proba(problem.rows), setting.model.predict_proba(setting.rows))
    assert problem.usage.calls == 1
    assert problem.usage.rows == len(setting.rows)


def test_a_batch_is_of_distinct_refused_rows_the_real_ones_first(benchmarks: SimpleNamespace, dumped: Any) -> None:
    _, setting = dumped
    batch = setting.batch(3 * len(setting.rows))
    assert len(batch) == 3 * len(setting.rows)
    assert not batch.duplicated().any()
    pd.testing.assert_frame_equal(batch.iloc[: len(setting.rows)], setting.rows)
    assert (setting.model.predict(batch) != benchmarks.setting.TARGET).all()


def test_a_black_box_of_other_versions_is_refused(benchmarks: SimpleNamespace, dumped: Any) -> None:
    problem, _ = dumped
    spec = problem.spec | {"versions": {"numpy": "0.1"}}
    (problem.folder / "spec.json").write_text(json.dumps(spec))
    with pytest.raises(RuntimeError, match="made with"):
        benchmarks.problem.Problem(problem.folder)


def test_our_certifai_flips_the_model(benchmarks: SimpleNamespace, dumped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks.certifai, "POPULATION", 200)
    monkeypatch.setattr(benchmarks.certifai, "GENERATIONS", 5)
    problem, setting = dumped
    rival = benchmarks.certifai.Rival(problem, "genetic")
    counterfactual = rival.table(rival.explain(problem.rows.iloc[:1]))
    assert setting.model.predict(counterfactual)[0] == benchmarks.setting.TARGET


def test_scale_measures_rows_in_a_loaded_explainer(
    benchmarks: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarks.scale, "TRAINING_ROWS", 200)
    benchmarks.scale.fit(tmp_path, columns=6, seed=0)
    found = benchmarks.scale.measure(tmp_path, 6, 10, 2, "closest", 0)
    assert len(found["seconds"]) == 2
    assert found["found"] > 0
    assert found["model_rows"] > 10


def test_scale_writes_a_line_per_measurement(
    benchmarks: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarks.scale, "TRAINING_ROWS", 200)
    fitted = benchmarks.scale.fit(tmp_path, columns=6, seed=0)
    cells = benchmarks.scale.line(str(tmp_path), 6, 10, 1, fitted, SimpleNamespace(method="closest", seed=0))
    line = dict(zip(benchmarks.scale.HEADER, cells, strict=True))
    assert float(line["model rows each"].split()[0]) > 1
    assert float(line["found %"]) > 0


def test_time_inside_the_model_leaves_the_model_as_it_was(benchmarks: SimpleNamespace, dumped: Any) -> None:
    _, setting = dumped
    with benchmarks.measuring.metered(setting.model) as meter:
        setting.model.predict(setting.rows)
    assert meter.seconds > 0
    assert (meter.calls, meter.rows) == (1, len(setting.rows))
    assert "predict" not in vars(setting.model)


@pytest.mark.parametrize(
    ("values", "expected"), [([], ""), ([float("nan")], ""), ([1.0, 1.001], "1.00"), ([3, 1, 2], "2.00 (1.00 – 3.00)")]
)
def test_spread(benchmarks: SimpleNamespace, values: list[float], expected: str) -> None:
    assert benchmarks.measuring.spread(values) == expected
