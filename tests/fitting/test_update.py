"""A stream folded in: as good as a full fit, deterministic, all or nothing, and nothing trained that need not be."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from changing import people, pipeline, schema, strict, truth
from fasterce import FasterCE, fitting, load, updating
from fasterce.artifact.arrays import arrays_of
from fasterce.errors import InputError, MissingExtraError, ModelError, NotFittedError
from fasterce.latent import train as training
from fasterce.latent.runtime import Network
from fasterce.surrogate import train as distilling

START = people(700, 0)
REFUSED = people(300, 9).loc[lambda frame: truth(frame) == "no"].head(60)


def fitted(model: Any = truth, start: pd.DataFrame = START, **settings: Any) -> FasterCE:
    usual = {"progress": False, "twin": "never", "random_state": 1}
    return FasterCE(model, schema(start), **usual | settings).fit(start)


def same(one: FasterCE, other: FasterCE) -> bool:
    left, right = (arrays_of(e.knowledge_, e.memory_) for e in (one, other))
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


@pytest.fixture(scope="module", autouse=True)
def a_small_copy() -> Iterator[None]:
    """Distilled from a fifth of the questions in half of the steps; it still agrees with the model nearly always."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "EDITED_A_FEATURE": 1_000,
            "FEWEST_EDITED": 5_000,
            "FEWEST_STEPS": 250,
            "STEPS_A_FEATURE": 50,
        }.items():
            patch.setattr(distilling, name, value)
        yield


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


def check_answers(explainer: FasterCE, rows: pd.DataFrame, model: Any) -> Any:
    result = explainer.explain(rows, target="yes")
    assert set(result.status) <= {"found", "already_target"}
    found = (result.status == "found").to_numpy()
    assert found.any()
    assert (model(result.counterfactuals[found].astype(rows.dtypes.to_dict())) == "yes").all()
    assert (result.counterfactuals["owner"][found].astype(bool) == rows["owner"][found]).all()
    assert (result.counterfactuals["age"][found] >= rows["age"][found]).all()
    return result


def test_more_of_the_same_trains_nothing_and_keeps_the_answers_good(
    explainer: FasterCE, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updating, "train", no_training)
    monkeypatch.setattr(fitting, "distil", no_training)
    before = explainer.knowledge_
    report = explainer.update(people(300, 1))
    assert (report.rows, report.seen, report.epochs, report.redistilled) == (300, 1000, 0, False)
    assert not report.reconstruction.drifted
    assert explainer.knowledge_.autoencoder is before.autoencoder
    assert explainer.knowledge_.surrogate is before.surrogate
    assert len(explainer.knowledge_.examples) == 1000
    assert (int(explainer.memory_.seen), int(explainer.memory_.updates)) == (1000, 1)
    assert "300 new rows; 1000 rows seen in all" in str(report)
    check_answers(explainer, REFUSED, truth)


def test_as_good_as_a_full_fit_of_everything(explainer: FasterCE) -> None:
    new = people(400, 2, shift=0.8)
    explainer.update(new)
    full = fitted(start=pd.concat([START, new], ignore_index=True))
    mine, theirs = (check_answers(one, REFUSED, truth).summary() for one in (explainer, full))
    assert mine["distance"] < 1.2 * theirs["distance"]
    assert mine["rows_asked_each"] < 1.5 * theirs["rows_asked_each"] + 5
    for name, array in full.knowledge_.codec.profile.arrays().items():
        np.testing.assert_array_equal(array, explainer.knowledge_.codec.profile.arrays()[name], err_msg=name)


def test_same_seed_same_stream_same_explainer_saved_in_between_or_not(saved: Path, tmp_path: Path) -> None:
    one, other = load(saved, truth), load(saved, truth)
    for k, shift in enumerate((0.0, 1.5)):
        one.update(people(150, k, shift))
        other.update(people(150, k, shift))
        other.save(tmp_path / "between")
        other = load(tmp_path / "between", truth)
    assert same(one, other)
    assert int(other.memory_.updates) == 2
    pd.testing.assert_frame_equal(one.explain(REFUSED).counterfactuals, other.explain(REFUSED).counterfactuals)


def test_what_rebuilds_badly_is_trained_on_from_where_it_was(explainer: FasterCE) -> None:
    strange = people(500, 3)
    strange["savings"] = 300 + 0.5 * strange["age"]
    old = explainer.report_.epochs
    network = explainer.knowledge_.autoencoder
    report = explainer.update(strange)
    assert report.reconstruction.drifted
    assert report.epochs > 0
    assert explainer.report_.epochs == old + report.epochs
    assert explainer.knowledge_.autoencoder is not network
    assert f"trained on for {report.epochs} epochs" in str(report)
    assert not explainer.drift(strange).reconstruction.drifted
    assert explainer.schema_["savings"].upper > 300
    check_answers(explainer, REFUSED, truth)


def test_a_category_nobody_had_before_gets_a_column() -> None:
    start = START.assign(job=pd.Categorical(START["job"], ["clerk", "nurse", "pilot", "smith"]))
    explainer = fitted(start=start)
    new = people(200, 4)
    new["job"] = pd.Categorical(np.where(new["job"] == "smith", "pilot", new["job"]), ["clerk", "nurse", "pilot", "smith"])
    width = explainer.knowledge_.codec.width
    report = explainer.update(new)
    assert explainer.knowledge_.codec.width == width + 1
    assert report.epochs > 0
    rows = new[truth(new) == "no"].head(20)
    check_answers(explainer, rows, truth)


def test_columns_of_your_own_autoencoder_cannot_grow() -> None:
    start = START.assign(job=pd.Categorical(START["job"], ["clerk", "nurse", "pilot", "smith"]))
    explainer = fitted(start=start, autoencoder=(lambda m: m, lambda z: z))
    explainer.update(start.head(50))
    with pytest.raises(InputError, match="no columns for; expected another fit"):
        explainer.update(start.head(50).assign(job=pd.Categorical(["pilot"] * 50, start["job"].cat.categories)))


def test_a_new_model_is_asked_about_everything_again(explainer: FasterCE) -> None:
    report = explainer.update(people(100, 5), model=strict)
    assert report.new_model
    assert report.redistilled
    assert explainer.model is strict
    examples = explainer.table_.frame(explainer.knowledge_.examples)
    said = np.array(explainer.classes_)[explainer.knowledge_.example_classes]
    assert (strict(examples) == said).all()
    check_answers(explainer, REFUSED, strict)


def test_a_new_model_may_name_its_classes_differently(explainer: FasterCE) -> None:
    explainer.update(people(100, 5), model=lambda frame: np.where(truth(frame) == "yes", "a good one", "refused"))
    assert explainer.classes_ == ("a good one", "refused")
    result = explainer.explain(REFUSED, target="a good one")
    assert (result.status == "found").all()


def test_a_function_may_answer_a_class_it_never_did_before(saved: Path) -> None:
    def three(frame: pd.DataFrame) -> Any:
        return np.where(frame["income"] > 200, "maybe", truth(frame))

    explainer = load(saved, three)
    assert explainer.classes_ == ("no", "yes")
    rich = people(200, 13)
    report = explainer.update(rich.assign(income=rich["income"] + 180))
    assert explainer.classes_ == ("no", "yes", "maybe")
    assert report.redistilled
    result = explainer.explain(REFUSED, target="maybe")
    assert (result.status == "found").all()
    assert (three(result.counterfactuals) == "maybe").all()


def test_a_twin_is_made_of_the_new_model() -> None:
    pytest.importorskip("skl2onnx")
    explainer = fitted(pipeline(START), twin="auto")
    assert explainer.twin_ is not None
    kept = explainer.twin_
    explainer.update(people(100, 6))
    assert explainer.twin_ is kept
    model = pipeline(people(500, 7), 70.0)
    explainer.update(people(100, 6), model=model)
    assert explainer.twin_ is not None
    assert explainer.twin_ is not kept
    result = explainer.explain(REFUSED, target="yes")
    found = (result.status == "found").to_numpy()
    assert (model.predict(result.counterfactuals[found].astype(REFUSED.dtypes.to_dict())) == "yes").all()
    assert explainer.report_.twin.startswith(explainer.twin_.kind)


def test_a_copy_that_no_longer_agrees_is_distilled_again(saved: Path) -> None:
    state = {"bar": 58.0}
    explainer = load(saved, lambda frame: truth(frame, state["bar"]))
    state["bar"] = 68.0
    report = explainer.update(people(400, 8))
    assert report.copy is not None
    assert report.copy.drifted
    assert report.redistilled
    assert not explainer.drift(people(400, 12)).copy.drifted  # type: ignore[union-attr]


def test_no_more_is_kept_than_fit_keeps(explainer: FasterCE, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "MOST_EXAMPLES", 150)
    monkeypatch.setattr(fitting, "MOST_ASKED_ROWS", 400)
    for k in range(3):
        explainer.update(people(500, 20 + k, shift=0.5))
        assert len(explainer.knowledge_.examples) == 300
        assert len(explainer.memory_.rows) == 400
    assert int(explainer.memory_.seen) == 2200
    new = explainer.memory_.rows[:, 1] > START["income"].max()
    assert 0 < new.mean() < 0.3
    check_answers(explainer, REFUSED, truth)


def test_without_rows_nothing_of_the_stream_is_kept(tmp_path: Path) -> None:
    explainer = fitted(keep_rows=False)
    new = people(300, 10, shift=0.3)
    report = explainer.update(new)
    assert report.from_samples
    assert "decoded samples stood for those seen before" in str(report)
    assert len(explainer.memory_.rows) == 0
    seen = explainer.table_.read(pd.concat([START, new])).codes
    kept = {tuple(row) for row in explainer.knowledge_.examples}
    assert sum(tuple(row) in kept for row in seen) < 5
    check_answers(explainer, REFUSED, truth)
    explainer.save(tmp_path / "saved")
    assert same(load(tmp_path / "saved", truth), explainer)
    assert not explainer.drift(people(300, 11, shift=0.1)).frame["drifted"].any()


def test_whatever_raises_leaves_everything_as_it_was(explainer: FasterCE) -> None:
    before, answers = dict(explainer.__dict__), explainer.explain(REFUSED.head(5)).counterfactuals
    calls = []

    def failing(frame: pd.DataFrame) -> Any:
        calls.append(len(frame))
        if len(calls) > 2:
            raise RuntimeError("gone")
        return truth(frame)

    with pytest.raises(ModelError, match="gone"):
        explainer.update(people(100, 1), model=failing)
    assert explainer.__dict__ == before
    pd.testing.assert_frame_equal(explainer.explain(REFUSED.head(5)).counterfactuals, answers)


def test_pytorch_is_needed_only_for_training(explainer: FasterCE, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "torch_or_none", lambda: None)
    monkeypatch.setattr(updating, "torch_or_none", lambda: None)
    explainer.update(people(50, 1))
    before = explainer.knowledge_
    with pytest.raises(MissingExtraError, match="Distilling the copy again needs PyTorch"):
        explainer.update(people(50, 1), model=strict)
    with pytest.raises(MissingExtraError, match="Training the autoencoder needs PyTorch"):
        explainer.update(people(300, 1).assign(savings=999.5, income=-500.25))
    assert explainer.knowledge_ is before


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda frame: frame.head(0), "at least one row; got none"),
        (lambda frame: frame.drop(columns="job"), "missing 'job'"),
        (lambda frame: frame.assign(job="pilot"), r"new_rows has 30 rows .* fit again .*'pilot' \(row 0\)"),
        (lambda frame: frame.assign(income=np.nan), "must not be missing"),
        (lambda frame: frame.assign(income=1e200), "at most 1e"),
        (lambda frame: frame.to_numpy(), "must be a pandas, Polars or PyArrow table"),
    ],
)
def test_bad_rows_get_one_sentence(explainer: FasterCE, spoil: Any, sentence: str) -> None:
    before = explainer.knowledge_
    with pytest.raises(InputError, match=sentence):
        explainer.update(spoil(people(30, 0)))
    assert explainer.knowledge_ is before


def test_bad_models_and_unfitted_explainers(explainer: FasterCE) -> None:
    with pytest.raises(NotFittedError):
        FasterCE(truth).update(START)
    with pytest.raises(InputError, match="predict method or be callable"):
        explainer.update(START, model=7)


def test_a_single_row_is_an_update_too(explainer: FasterCE) -> None:
    assert explainer.update(people(1, 3)).seen == 701
    assert isinstance(explainer.knowledge_.autoencoder, Network)


@given(st.lists(st.floats(0.5, 50), min_size=1, max_size=40), st.integers(1, 30), st.integers(0, 99))
def test_a_reservoir_keeps_as_many_as_it_may(weights: list[float], most: int, seed: int) -> None:
    kept = updating.reservoir(np.array(weights), most, np.random.default_rng(seed))
    assert kept.sum() == min(most, len(weights))


def test_a_reservoir_is_fair_to_weights() -> None:
    weight = np.repeat([9.0, 1.0], [100, 900])
    rng = np.random.default_rng(0)
    share = np.mean([updating.reservoir(weight, 50, rng)[:100].mean() for _ in range(200)]) / (50 / 1800 * 9)
    assert share == pytest.approx(1, abs=0.15)
