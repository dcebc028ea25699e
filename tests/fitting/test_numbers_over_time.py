"""Models that answer numbers, over time: updates, drift of predictions, and rechecks of wanted numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from fasterce import FasterCE, load
from fasterce.artifact import arrays
from fasterce.artifact.arrays import arrays_of
from fasterce.config import Config
from fasterce.errors import ArtifactError, ModelError
from tests.changing import people, schema, truth

START = people(500, 0)
ROWS = people(60, 9)
SAME = (lambda matrix: matrix, lambda latent: latent)


def points(frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(frame["income"] + 0.4 * frame["savings"] + 10 * frame["owner"] + 4 * (frame["job"] == "nurse"))


def meaner(frame: pd.DataFrame) -> np.ndarray:
    return 0.8 * points(frame)


def regression(inner: Any) -> Any:
    columns = make_column_transformer((OneHotEncoder(), ["job", "owner"]), remainder="passthrough")
    return make_pipeline(columns, inner).fit(START, points(START))


MODELS = {"function": points, "linear": regression(LinearRegression()), "boosted": regression(GradientBoostingRegressor())}


@pytest.fixture(scope="module", params=MODELS)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    model, keep = MODELS[request.param], request.param != "linear"
    settings: dict[str, Any] = {
        "progress": False,
        "autoencoder": SAME,
        "task": "regression",
        "keep_rows": keep,
        "config": Config.fast(),
    }
    folder = tmp_path_factory.mktemp("numbers") / "saved"
    FasterCE(model, schema(START), **settings).fit(START).save(folder)
    return folder, model


@pytest.fixture
def explainer(saved: tuple[Path, Any]) -> FasterCE:
    return load(*saved, autoencoder=SAME)


def predicted(model: Any, frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(getattr(model, "predict", model)(frame))


def test_the_same_predictions_are_no_drift(explainer: FasterCE) -> None:
    report = explainer.drift(people(400, 1))
    assert not report.drifted, report.verdict
    assert isinstance(report.classes.index, pd.IntervalIndex)
    assert report.classes.sum().tolist() == pytest.approx([1, 1])
    assert report.classes["then"].between(0.08, 0.12).all()


def test_other_predictions_are_reported_in_the_models_own_numbers(explainer: FasterCE) -> None:
    rows = people(400, 1, shift=1.0)
    report = explainer.drift(rows)
    assert report.class_shift.drifted
    assert "the model's predictions are distributed differently" in report.verdict
    predictions = predicted(explainer.model, rows)
    for span, share in report.classes["now"].items():
        assert share == pytest.approx(np.mean((predictions >= span.left) & (predictions < span.right)), abs=0.006)
    middle = float(np.median(predicted(explainer.model, START)))
    assert report.classes.index[5].left == pytest.approx(middle, abs=0.5)
    above = f"{report.classes['now'].iloc[5:].sum():.1%}"
    for shown in (str(report), report._repr_html_()):
        assert f"Predictions of {report.classes.index[5].left:.6g} or more: " in shown
        assert f"→ {above}; stability index" in shown


def test_a_spread_that_leaves_the_middle_where_it_is_is_found_too(explainer: FasterCE) -> None:
    rows = people(400, 2)
    rows["income"] = 50 + 2.5 * (rows["income"] - 50)
    report = explainer.drift(rows)
    assert report.class_shift.drifted
    assert report.classes["now"].iloc[5:].sum() == pytest.approx(0.5, abs=0.1)


def test_rows_are_folded_in_saved_in_between_or_not(saved: tuple[Path, Any], tmp_path: Path) -> None:
    one, other = (load(*saved, autoencoder=SAME) for _ in range(2))
    for k in range(2):
        one.update(people(150, k, shift=0.5))
        other.update(people(150, k, shift=0.5))
        other.save(tmp_path / "between")
        other = load(tmp_path / "between", saved[1], autoencoder=SAME)
    left, right = (arrays_of(e.state_.search, e.state_.statistics) for e in (one, other))
    assert left.keys() == right.keys()
    assert all(np.array_equal(left[name], right[name]) for name in left)
    assert (int(one.state_.statistics.seen), int(one.state_.statistics.classes.sum())) == (800, 800)
    assert one.state_.numbers == other.state_.numbers
    issued = one.explain(ROWS, target=(70, None))
    pd.testing.assert_frame_equal(issued.counterfactuals, other.explain(ROWS, target=(70, None)).counterfactuals)
    found = issued.counterfactuals[(issued.status == "found").to_numpy()].astype(ROWS.dtypes.to_dict())
    assert len(found) > 20
    assert (predicted(one.model, found) >= 70).all()


def test_what_was_folded_in_is_what_was_seen(explainer: FasterCE) -> None:
    explainer.update(people(5000, 3, shift=1.0))
    assert not explainer.drift(people(300, 4, shift=0.95)).class_shift.drifted
    assert explainer.drift(people(300, 5, shift=-0.5)).class_shift.drifted


def test_a_new_model_is_read_anew(explainer: FasterCE) -> None:
    old = explainer.state_.numbers
    report = explainer.update(people(100, 6), model=meaner)
    assert (report.new_model, report.surrogate_retrained) == (True, True)
    assert explainer.state_.numbers is not None
    assert explainer.state_.numbers.middle < 0.9 * old.middle  # type: ignore[union-attr]
    assert not explainer.drift(people(300, 7)).drifted
    result = explainer.explain(ROWS, target=(70, 75))
    found = result.counterfactuals[(result.status == "found").to_numpy()].astype(ROWS.dtypes.to_dict())
    assert len(found) > 40
    assert ((meaner(found) >= 70) & (meaner(found) <= 75)).all()


def test_a_new_model_may_predict_classes(saved: tuple[Path, Any]) -> None:
    explainer = load(*saved, autoencoder=SAME)
    with pytest.raises(ModelError, match="one finite number per row"):
        explainer.update(people(50, 1), model=truth)
    explainer.task = "auto"
    explainer.update(people(50, 1), model=truth)
    assert (explainer.state_.numbers, explainer.classes_) == (None, ("no", "yes"))
    report = explainer.drift(people(200, 8))
    assert list(report.classes.index) == ["no", "yes"]
    assert "Predicted classes: no" in str(report)


@pytest.mark.parametrize("target", [(70, None), (60, 64), (None, 45)])
@pytest.mark.parametrize("as_table", [False, True])
def test_wanted_numbers_are_checked_and_repaired(explainer: FasterCE, target: Any, as_table: bool) -> None:
    issued = explainer.explain(ROWS, target=target)
    given = {"rows": ROWS, "target": target} if as_table else {}
    result = issued.to_frame() if as_table else issued
    assert explainer.recheck(result, **given).counts == {"holds": len(issued.to_frame())}
    checked = explainer.recheck(result, model=meaner, **given)
    low, high = (-np.inf if target[0] is None else target[0]), (np.inf if target[1] is None else target[1])
    now = meaner(issued.to_frame()[list(ROWS.columns)])
    assert list(checked.holds) == list((now >= low) & (now <= high))
    usable = checked.status.isin(["holds", "repaired", "replaced"]).to_numpy()
    after = checked.counterfactuals[usable].astype(ROWS.dtypes.to_dict()).reset_index(drop=True)
    before = ROWS.loc[checked.frame["query"][usable]].reset_index(drop=True)
    assert usable.any()
    assert ((meaner(after) >= low) & (meaner(after) <= high)).all()
    assert (after["owner"] == before["owner"]).all()
    assert (after["age"] >= before["age"]).all()
    needless = checked.status == "no_longer_needed"
    own = meaner(ROWS.loc[checked.frame["query"]])
    assert list(needless) == list((own >= low) & (own <= high))


def test_a_memory_without_its_bins_is_not_loaded(saved: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    unpack: Any = vars(arrays)["unpack"]
    monkeypatch.setattr(
        arrays, "unpack", lambda packed: {k: a for k, a in unpack(packed).items() if k != "statistics.prediction_cuts"}
    )
    with pytest.raises(ArtifactError, match=r"an array 'statistics\.prediction_cuts'; got none"):
        load(*saved, autoencoder=SAME)
