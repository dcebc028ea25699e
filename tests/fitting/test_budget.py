"""The cost of `fit` is the user's to set: rows are limited exactly, and a slow model gets a plan that can be named."""

import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fasterce import FasterCE, load
from fasterce.config import Config
from fasterce.data.review import SchemaWarning
from fasterce.errors import InputError, ModelError
from fasterce.fitting import budget
from fasterce.fitting.budget import ModelSpeed, TableSize, limit_sizes, time_model
from fasterce.fitting.validate import read_training_rows
from fasterce.models.predictor import Predictor

FAST = Config.fast()
PLANS = (2_400, 1_600, 1_000)
# Without probes for columns the model does not read, whose number depends on the model.
CONFIG = replace(FAST, fit=replace(FAST.fit, reduced_plans=PLANS, probe_model_rows=0))
Model = Callable[[pd.DataFrame], Any]


def people(rows: int = 600, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "pay": rng.normal(50, 15, rows).round(1),
            "debt": rng.gamma(2.0, 10.0, rows).round(1),
            "age": rng.integers(18, 80, rows),
            "job": rng.choice(["clerk", "nurse", "smith"], rows),
        }
    )


def granted(frame: pd.DataFrame) -> Any:
    return np.where(frame["pay"] - 0.8 * frame["debt"] + 5 * (frame["job"] == "nurse") > 32, "granted", "refused")


class Clock:
    """Time that passes only while a model is evaluated."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.sizes: list[int] = []
        monkeypatch.setattr(budget, "perf_counter", lambda: self.now)

    def evaluated(self, rows: int, per_call: float, per_row: float) -> None:
        self.now += per_call + per_row * rows
        self.sizes.append(rows)

    def model(self, per_call: float = 0.0, per_row: float = 0.0, loading: float = 0.0) -> Model:
        def slow(frame: pd.DataFrame) -> Any:
            self.evaluated(len(frame), per_call + (0 if self.sizes else loading), per_row)
            return granted(frame)

        return slow

    def pipeline(self, per_row: float, last: Any) -> Pipeline:
        """Return a fitted scikit-learn pipeline that is slow in the same way."""
        clock = self

        class Slow(Pipeline):
            def predict(self, X: pd.DataFrame, **more: Any) -> Any:
                clock.evaluated(len(X), 0.0, per_row)
                return super().predict(X, **more)

            def predict_proba(self, X: pd.DataFrame, **more: Any) -> Any:
                clock.evaluated(len(X), 0.0, per_row)
                return super().predict_proba(X, **more)

        columns = make_column_transformer((StandardScaler(), ["pay", "debt", "age"]), (OneHotEncoder(), ["job"]))
        data = people()
        target = data["pay"] - data["debt"] if isinstance(last, LinearRegression) else granted(data)
        return Slow(make_pipeline(columns, last).steps).fit(data, target)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def fitted(model: Any, **options: Any) -> FasterCE:
    usual: dict[str, Any] = {"progress": False, "config": CONFIG, "compile": "never"}
    return FasterCE(model, **usual | options).fit(people())


def quietly_fitted(model: Any, **options: Any) -> FasterCE:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", SchemaWarning)
        return fitted(model, **options)


def test_a_fast_model_gets_the_full_plan_after_one_timed_call(clock: Clock) -> None:
    explainer = quietly_fitted(clock.model(per_call=0.001, per_row=0.0001))
    assert explainer.report_.max_fit_rows is None
    assert clock.sizes[:2] == [10, 600]
    assert sum(clock.sizes) == explainer.report_.model_rows == 10 + 600 + explainer.report_.samples + 1_600


def test_a_slow_model_gets_the_largest_plan_within_the_time_and_the_warning_names_it(clock: Clock) -> None:
    with pytest.warns(UserWarning, match="The model is slow") as caught:
        explainer = fitted(clock.model(per_row=0.03))
    slow = next(one for one in caught if one.category is not SchemaWarning)
    words = str(slow.message)
    assert slow.filename == __file__, "the line that calls fit"
    assert explainer.report_.max_fit_rows == 1_600
    assert "would spend about 1 min 30 s in it for 3,000 rows, so at most 1,600 are evaluated (about 48 s)" in words
    assert re.search(r"closest counterfactuals were \d+% farther away on average", words)
    assert "max_fit_rows=1600 " in words
    assert "max_fit_rows=1600" in str(explainer.report_)


@pytest.mark.parametrize(("per_row", "plan"), [(0.019, None), (0.021, 2_400), (0.026, 1_600), (0.05, 1_000), (9.0, 1_000)])
def test_the_plan_follows_from_the_time_per_row(clock: Clock, per_row: float, plan: int | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert fitted(clock.model(per_row=per_row)).report_.max_fit_rows == plan


def test_the_time_allowed_is_the_users(clock: Clock) -> None:
    assert quietly_fitted(clock.model(per_row=0.03), max_fit_seconds=100).report_.max_fit_rows is None
    with pytest.warns(UserWarning, match="max_fit_rows=1000 "):
        assert fitted(clock.model(per_row=0.001), max_fit_seconds=1.5).report_.max_fit_rows == 1_000


def test_the_named_limit_reproduces_the_plan_without_timing(clock: Clock) -> None:
    with pytest.warns(UserWarning, match="max_fit_rows=1600 "):
        chosen = fitted(clock.model(per_row=0.03))
    clock.sizes.clear()
    named = quietly_fitted(clock.model(per_row=1e-6), max_fit_rows=1_600)
    assert clock.sizes[0] == 200, "an eighth of the limit, and no timed call before"
    rows = people(20, seed=5)
    pd.testing.assert_frame_equal(named.explain(rows, n=2).to_frame(), chosen.explain(rows, n=2).to_frame())
    assert named.state_.search.surrogate is not None
    assert chosen.state_.search.surrogate is not None
    np.testing.assert_array_equal(named.state_.search.surrogate.entries, chosen.state_.search.surrogate.entries)


@pytest.mark.parametrize("limit", [1_000, 1_777, 2_900])
@pytest.mark.parametrize("kind", ["labels", "scores", "numbers", "compiled"])
def test_no_more_rows_than_allowed_are_evaluated(clock: Clock, kind: str, limit: int) -> None:
    last = LinearRegression() if kind == "numbers" else LogisticRegression()
    model: Any = clock.model() if kind == "labels" else clock.pipeline(0.0, last)
    explainer = quietly_fitted(model, max_fit_rows=limit, compile="auto" if kind == "compiled" else "never")
    assert sum(clock.sizes) == explainer.report_.model_rows <= limit
    assert len(clock.sizes) == explainer.report_.calls <= 16
    assert explainer.report_.surrogate_agreement is not None
    target = (30, None) if kind == "numbers" else "granted"
    result = explainer.explain(people(20, seed=5), target=target)
    assert (result.status != "none_found").all()
    if kind == "compiled":
        assert explainer.state_.compiled is not None
        assert explainer.report_.model_rows < limit / 2, "rows of the compiled model do not count"


def test_a_generous_limit_is_the_full_plan(clock: Clock) -> None:
    full, limited = (quietly_fitted(clock.model(), **options) for options in ({}, {"max_fit_rows": 100_000}))
    rows = people(20, seed=5)
    pd.testing.assert_frame_equal(full.explain(rows).to_frame(), limited.explain(rows).to_frame())
    assert limited.report_.model_rows == full.report_.model_rows - CONFIG.fit.timed_rows[0]


def test_a_slow_model_that_can_be_compiled_keeps_the_full_plan(clock: Clock) -> None:
    model = clock.pipeline(0.01, LogisticRegression())
    explainer = quietly_fitted(model, compile="auto", max_fit_seconds=50)
    assert explainer.state_.compiled is not None
    assert explainer.report_.max_fit_rows is None
    with pytest.warns(UserWarning, match="The model is slow"):
        assert fitted(model, compile="never", max_fit_seconds=50).report_.max_fit_rows == 2_400


def test_a_class_too_rare_for_the_limit_is_reported_with_it() -> None:
    rows = people(4_000)
    rare = float(rows["pay"].max())
    explainer = FasterCE(lambda frame: np.where(frame["pay"] < rare, "usual", "rare"), max_fit_rows=1_000, config=CONFIG)
    with pytest.raises(ModelError, match="that max_fit_rows=1000 allows; got 'usual' for all of them, so allow more rows"):
        explainer.fit(rows)


# -- timing ----------------------------------------------------------------------------------------------------------------


def timed(clock: Clock, model: Model, fast: float = 1e-9, rows: int = 600) -> ModelSpeed:
    table, _, codes = read_training_rows(people(rows), None)
    return time_model(Predictor(model, table), codes, fast, CONFIG.fit)


@pytest.mark.parametrize("rows", [10, 600])
def test_overhead_per_call_is_not_taken_for_time_per_row(clock: Clock, rows: int) -> None:
    speed = timed(clock, clock.model(per_call=0.2, per_row=0.001), rows=rows)
    assert [speed.per_call, speed.per_row] == pytest.approx([0.2, 0.001])
    assert clock.sizes == [10, 100, 1_000]


def test_a_first_call_that_loads_the_model_is_not_held_against_it(clock: Clock) -> None:
    speed = timed(clock, clock.model(per_row=0.001, loading=20.0))
    assert speed.per_row == pytest.approx(0.001)


def test_a_very_slow_model_is_not_called_with_many_rows_to_time_it(clock: Clock) -> None:
    speed = timed(clock, clock.model(per_row=1.0))
    assert speed.per_row == pytest.approx(1.0)
    assert clock.sizes == [10, 100]


def test_a_model_that_fails_when_timed_is_reported_as_ever(clock: Clock) -> None:
    def failing(frame: pd.DataFrame) -> Any:
        clock.evaluated(len(frame), 100.0, 0.0)
        raise RuntimeError("gone")

    with pytest.raises(ModelError, match="gone"):
        quietly_fitted(failing)


def test_the_forecast_counts_the_rows_that_fit_evaluates() -> None:
    size = TableSize(rows=48_842, features=14, dimensions=14, scored=True)
    assert size.model_rows(Config(), compiled=False) == 2 * 10_000 + 4_000 + 40_000 + 70_000 + 30_000 + 2 * 2_000
    assert size.model_rows(Config(), compiled=True) == 2 * 10_000 + 4_000 + 2_000
    labels = replace(size, rows=1_000, scored=False)
    assert labels.model_rows(Config(), compiled=False) == 1_000 + 4_000 + 70_000 + 2 * 2_000
    assert ModelSpeed(0.2, 0.001).forecast(100_000, Config().fit) == pytest.approx(104)


def test_sizes_depend_on_the_limit_alone_and_never_grow() -> None:
    assert limit_sizes(Config(), None) == Config()
    small = limit_sizes(Config(), 4_000)
    assert (small.fit.evaluated_rows, small.latent.samples(20), small.compiled.reference_rows) == (500, 500, 250)
    assert limit_sizes(small, 4_000) == small == limit_sizes(small, 400_000)
    assert len(Config().fit.reduced_plans) == len(Config().fit.reduced_plan_costs)


# -- the option ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_fit_rows": 999}, "max_fit_rows must be a whole number of at least 1000; got 999."),
        ({"max_fit_rows": 2e3}, "max_fit_rows must be a whole number"),
        ({"max_fit_rows": "all"}, "max_fit_rows must be a whole number"),
        ({"max_fit_seconds": 0}, "max_fit_seconds must be a number above 0; got 0."),
        ({"max_fit_seconds": None}, "max_fit_seconds must be a number above 0"),
        ({"max_fit_seconds": float("nan")}, "max_fit_seconds must be a number above 0"),
    ],
)
def test_bad_limits_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        fitted(granted, **options)


def test_the_plan_is_stored_and_update_keeps_to_it(clock: Clock, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="max_fit_rows=1600 "):
        chosen = fitted(clock.model(per_row=0.03), max_fit_seconds=60)
    chosen.save(tmp_path / "slow.fasterce")
    loaded = load(tmp_path / "slow.fasterce", granted)
    assert loaded.report_.max_fit_rows == 1_600
    assert (loaded.max_fit_rows, loaded.max_fit_seconds) == (None, 60)
    rows = people(20, seed=5)
    pd.testing.assert_frame_equal(loaded.explain(rows).to_frame(), chosen.explain(rows).to_frame())
    report = loaded.update(people(300, seed=6), model=granted)
    assert report.surrogate_retrained
    assert report.model_rows <= 2 * 1_600
    assert loaded.report_.max_fit_rows == 1_600

    fitted(granted, max_fit_rows=1_200, max_fit_seconds=5).save(tmp_path / "given.fasterce")
    given = load(tmp_path / "given.fasterce", granted)
    assert (given.max_fit_rows, given.max_fit_seconds, given.report_.max_fit_rows) == (1_200, 5, 1_200)
