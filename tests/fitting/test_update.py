"""A stream folded in: as good as a full fit, deterministic, all or nothing, and nothing trained that need not be."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce import FasterCE, load
from fasterce.config import Config, FitConfig, SurrogateConfig
from fasterce.errors import InputError, ModelError, NotFittedError
from fasterce.fitting import pipeline as fit_pipeline
from fasterce.fitting import update
from fasterce.latent.runtime import Network
from tests.changing import people, pipeline, same, schema, strict, truth, updated_twice

SURROGATE = SurrogateConfig(edited_rows_per_feature=1_000, min_edited_rows=5_000, min_steps=250, steps_per_feature=50)
CONFIG = Config(surrogate=SURROGATE)
START = people(700, 0)
REFUSED = people(300, 9).loc[lambda frame: truth(frame) == "no"].head(60)


def fitted(model: Any = truth, start: pd.DataFrame = START, **settings: Any) -> FasterCE:
    usual: dict[str, Any] = {"progress": False, "compile": "never", "random_state": 1, "config": CONFIG}
    return FasterCE(model, schema(start), **usual | settings).fit(start)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("update") / "saved"
    fitted().save(folder)
    return folder


@pytest.fixture
def explainer(saved: Path) -> FasterCE:
    return load(saved, truth)


def no_training(*_: Any, **__: Any) -> Any:
    raise AssertionError("nothing should be trained")


def check_counterfactuals(explainer: FasterCE, rows: pd.DataFrame, model: Any) -> Any:
    result = explainer.explain(rows, target="yes")
    assert set(result.status) <= {"found", "already_target"}
    found = (result.status == "found").to_numpy()
    assert found.any()
    assert (model(result.counterfactuals[found].astype(rows.dtypes.to_dict())) == "yes").all()
    assert (result.counterfactuals["owner"][found].astype(bool) == rows["owner"][found]).all()
    assert (result.counterfactuals["age"][found] >= rows["age"][found]).all()
    return result


def test_more_of_the_same_trains_nothing_and_keeps_the_counterfactuals_good(
    explainer: FasterCE, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(update, "train", no_training)
    monkeypatch.setattr(fit_pipeline, "train_surrogate", no_training)
    before = explainer.state_.search
    report = explainer.update(people(300, 1))
    assert (report.rows, report.seen, report.epochs, report.surrogate_retrained) == (300, 1000, 0, False)
    assert not report.reconstruction.drifted
    assert explainer.state_.search.autoencoder is before.autoencoder
    assert explainer.state_.search.surrogate is before.surrogate
    assert len(explainer.state_.search.examples) == 1000
    assert (int(explainer.state_.statistics.seen), int(explainer.state_.statistics.updates)) == (1000, 1)
    assert "300 new rows; 1000 rows seen in all" in str(report)
    check_counterfactuals(explainer, REFUSED, truth)


def test_as_good_as_a_full_fit_of_everything(explainer: FasterCE) -> None:
    new = people(400, 2, shift=0.8)
    explainer.update(new)
    full = fitted(start=pd.concat([START, new], ignore_index=True))
    mine, theirs = (check_counterfactuals(one, REFUSED, truth).summary() for one in (explainer, full))
    assert mine["distance"] < 1.2 * theirs["distance"]
    assert mine["model_rows_each"] < 1.5 * theirs["model_rows_each"] + 5
    for name, array in full.state_.search.codec.profile.arrays().items():
        np.testing.assert_array_equal(array, explainer.state_.search.codec.profile.arrays()[name], err_msg=name)


def test_same_seed_same_stream_same_explainer_saved_in_between_or_not(saved: Path, tmp_path: Path) -> None:
    parts = [people(150, k, shift) for k, shift in enumerate((0.0, 1.5))]
    one, other = updated_twice(saved, tmp_path, truth, parts)
    assert same(one, other)
    assert int(other.state_.statistics.updates) == 2
    pd.testing.assert_frame_equal(one.explain(REFUSED).counterfactuals, other.explain(REFUSED).counterfactuals)


def test_what_rebuilds_badly_is_trained_on_from_where_it_was() -> None:
    explainer = fitted(random_state=2)
    strange = people(500, 3)
    strange["savings"] = 300 + 0.5 * strange["age"]
    old = explainer.report_.epochs
    network = explainer.state_.search.autoencoder
    report = explainer.update(strange)
    assert report.reconstruction.drifted
    assert report.epochs > 0
    assert explainer.report_.epochs == old + report.epochs
    assert explainer.state_.search.autoencoder is not network
    assert f"trained for {report.epochs} more epochs" in str(report)
    assert not explainer.drift(strange).reconstruction.drifted
    assert explainer.schema_["savings"].upper > 300
    check_counterfactuals(explainer, REFUSED, truth)


def test_a_category_nobody_had_before_gets_a_column() -> None:
    start = START.assign(job=pd.Categorical(START["job"], ["clerk", "nurse", "pilot", "smith"]))
    explainer = fitted(start=start)
    new = people(200, 4)
    new["job"] = pd.Categorical(np.where(new["job"] == "smith", "pilot", new["job"]), ["clerk", "nurse", "pilot", "smith"])
    width = explainer.state_.search.codec.width
    report = explainer.update(new)
    assert explainer.state_.search.codec.width == width + 1
    assert report.epochs > 0
    rows = new[truth(new) == "no"].head(20)
    check_counterfactuals(explainer, rows, truth)


def test_columns_of_your_own_autoencoder_cannot_grow() -> None:
    start = START.assign(job=pd.Categorical(START["job"], ["clerk", "nurse", "pilot", "smith"]))
    explainer = fitted(start=start, autoencoder=(lambda m: m, lambda z: z))
    explainer.update(start.head(50))
    with pytest.raises(InputError, match="no columns for; fit again"):
        explainer.update(start.head(50).assign(job=pd.Categorical(["pilot"] * 50, start["job"].cat.categories)))


def test_a_new_model_evaluates_everything_again(explainer: FasterCE) -> None:
    report = explainer.update(people(100, 5), model=strict)
    assert report.new_model
    assert report.surrogate_retrained
    assert explainer.model is strict
    examples = explainer.state_.table.frame(explainer.state_.search.examples)
    labels = np.array(explainer.classes_)[explainer.state_.search.example_classes]
    assert (strict(examples) == labels).all()
    check_counterfactuals(explainer, REFUSED, strict)


def test_a_new_model_may_name_its_classes_differently(explainer: FasterCE) -> None:
    explainer.update(people(100, 5), model=lambda frame: np.where(truth(frame) == "yes", "a good one", "refused"))
    assert explainer.classes_ == ("a good one", "refused")
    result = explainer.explain(REFUSED, target="a good one")
    assert (result.status == "found").all()


def test_a_function_may_predict_a_class_it_never_did_before(saved: Path) -> None:
    def three(frame: pd.DataFrame) -> Any:
        return np.where(frame["income"] > 200, "maybe", truth(frame))

    explainer: Any = load(saved, three)
    assert explainer.classes_ == ("no", "yes")
    rich = people(200, 13)
    report = explainer.update(rich.assign(income=rich["income"] + 180))
    assert explainer.classes_ == ("no", "yes", "maybe")
    assert report.surrogate_retrained
    result = explainer.explain(REFUSED, target="maybe")
    assert (result.status == "found").all()
    assert (three(result.counterfactuals) == "maybe").all()


def test_the_new_model_is_compiled() -> None:
    pytest.importorskip("skl2onnx")
    explainer = fitted(pipeline(START), compile="auto")
    assert explainer.state_.compiled is not None
    kept = explainer.state_.compiled
    explainer.update(people(100, 6))
    assert explainer.state_.compiled is kept
    model = pipeline(people(500, 7), 70.0)
    explainer.update(people(100, 6), model=model)
    assert explainer.state_.compiled is not None
    assert explainer.state_.compiled is not kept
    result = explainer.explain(REFUSED, target="yes")
    found = (result.status == "found").to_numpy()
    assert (model.predict(result.counterfactuals[found].astype(REFUSED.dtypes.to_dict())) == "yes").all()
    assert explainer.report_.compiled.startswith(explainer.state_.compiled.kind)


def test_a_copy_that_no_longer_agrees_is_distilled_again(saved: Path) -> None:
    state = {"bar": 58.0}
    explainer = load(saved, lambda frame: truth(frame, state["bar"]))
    state["bar"] = 68.0
    report = explainer.update(people(400, 8))
    assert report.surrogate is not None
    assert report.surrogate.drifted
    assert report.surrogate_retrained
    assert not explainer.drift(people(400, 12)).surrogate.drifted  # type: ignore[union-attr]


def test_no_more_is_kept_than_fit_keeps(explainer: FasterCE) -> None:
    explainer.config = replace(CONFIG, fit=FitConfig(examples_per_class=150, evaluated_rows=400))
    for k in range(3):
        explainer.update(people(500, 20 + k, shift=0.5))
        assert len(explainer.state_.search.examples) == 300
        assert len(explainer.state_.statistics.rows) == 400
    assert int(explainer.state_.statistics.seen) == 2200
    new = explainer.state_.statistics.rows[:, 1] > START["income"].max()
    assert 0 < new.mean() < 0.3
    check_counterfactuals(explainer, REFUSED, truth)


def test_without_rows_nothing_of_the_stream_is_kept(tmp_path: Path) -> None:
    explainer = fitted(keep_rows=False)
    new = people(300, 10, shift=0.3)
    report = explainer.update(new)
    assert report.from_samples
    assert "decoded samples stood for those seen before" in str(report)
    assert len(explainer.state_.statistics.rows) == 0
    seen = explainer.state_.table.read(pd.concat([START, new])).codes
    kept = {tuple(row) for row in explainer.state_.search.examples}
    assert sum(tuple(row) in kept for row in seen) < 5
    check_counterfactuals(explainer, REFUSED, truth)
    explainer.save(tmp_path / "saved")
    assert same(load(tmp_path / "saved", truth), explainer)
    assert not explainer.drift(people(300, 11, shift=0.1)).frame["drifted"].any()


def test_whatever_raises_leaves_everything_as_it_was(explainer: FasterCE) -> None:
    before, counterfactuals = dict(explainer.__dict__), explainer.explain(REFUSED.head(5)).counterfactuals
    calls = []

    def failing(frame: pd.DataFrame) -> Any:
        calls.append(len(frame))
        if len(calls) > 1:
            raise RuntimeError("gone")
        return truth(frame)

    with pytest.raises(ModelError, match="gone"):
        explainer.update(people(100, 1), model=failing)
    assert explainer.__dict__ == before
    pd.testing.assert_frame_equal(explainer.explain(REFUSED.head(5)).counterfactuals, counterfactuals)


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda frame: frame.head(0), "fitting.too_few_rows"),
        (lambda frame: frame.drop(columns="job"), "data.missing_columns"),
        (lambda frame: frame.assign(job="pilot"), "fitting.unusable_new_rows"),
        (lambda frame: frame.assign(income=np.nan), "fitting.unusable_new_rows"),
        (lambda frame: frame.assign(income=1e200), "fitting.number_too_large"),
        (lambda frame: frame.to_numpy()[None], "data.not_a_table"),
    ],
)
def test_bad_rows_are_rejected(explainer: FasterCE, spoil: Any, code: str) -> None:
    before = explainer.state_.search
    with pytest.raises(InputError) as error:
        explainer.update(spoil(people(30, 0)))
    assert error.value.problem.code == code
    assert explainer.state_.search is before


def test_bad_models_and_unfitted_explainers(explainer: FasterCE) -> None:
    with pytest.raises(NotFittedError):
        FasterCE(truth).update(START)
    with pytest.raises(InputError, match="predict method or be callable"):
        explainer.update(START, model=7)


def test_a_single_row_is_an_update_too(explainer: FasterCE) -> None:
    assert explainer.update(people(1, 3)).seen == 701
    assert isinstance(explainer.state_.search.autoencoder, Network)


@given(st.lists(st.floats(0.5, 50), min_size=1, max_size=40), st.integers(1, 30), st.integers(0, 99))
def test_a_reservoir_keeps_as_many_as_it_may(weights: list[float], most: int, seed: int) -> None:
    kept = update.reservoir(np.array(weights), most, np.random.default_rng(seed))
    assert kept.sum() == min(most, len(weights))


def test_a_reservoir_is_fair_to_weights() -> None:
    weight = np.repeat([9.0, 1.0], [100, 900])
    rng = np.random.default_rng(0)
    share = np.mean([update.reservoir(weight, 50, rng)[:100].mean() for _ in range(200)]) / (50 / 1800 * 9)
    assert share == pytest.approx(1, abs=0.15)
