"""Missing values in a stream: updates, drift reports and rechecks of a table with gaps."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from fasterce import FasterCE, Schema, load
from fasterce.config import Config, FitConfig, SurrogateConfig
from fasterce.data.profile import Profile
from fasterce.data.schema import MISSING
from fasterce.errors import InputError, ModelError
from fasterce.fitting import pipeline, update
from tests.changing import same, updated_twice

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning:fasterce")

CONFIG = Config(
    surrogate=SurrogateConfig(edited_rows_per_feature=500, min_edited_rows=2_000, steps_per_feature=40, min_steps=200)
)
NUMBERS = ["age", "income", "debt"]


def people(rows: int, seed: int, share: float = 0.2) -> pd.DataFrame:
    """Incomes, debts and jobs have gaps, ages have none."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "income": rng.gamma(3, 10, rows).round(1),
            "debt": pd.array(rng.integers(0, 30, rows), dtype="Int64"),
            "job": pd.Categorical(rng.choice(["clerk", "nurse"], rows), ["clerk", "nurse", "pilot"]),
        }
    )
    for name in ("income", "debt", "job"):
        frame.loc[rng.random(rows) < share, name] = None
    return frame


def merit(frame: pd.DataFrame) -> np.ndarray:
    income, debt = (
        frame[name].astype("Float64").fillna(usual).to_numpy(float) for name, usual in (("income", 12), ("debt", 9))
    )
    return np.asarray(income - debt + 6.0 * (frame["job"] == "nurse").to_numpy(bool))


class Boosted:
    """Gradient-boosted trees on people's columns as plain numbers with NaN."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, bar: float, seed: int = 0) -> None:
        frame = people(500, seed)
        self.inner = HistGradientBoostingClassifier(max_iter=25, random_state=0).fit(self._plain(frame), merit(frame) > bar)

    @staticmethod
    def _plain(frame: pd.DataFrame) -> np.ndarray:
        job = frame["job"].astype(object).map({"clerk": 0.0, "nurse": 1.0, "pilot": 2.0}).astype(float)
        return np.column_stack([frame[NUMBERS].astype("Float64").astype(float), job])

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.inner.predict_proba(self._plain(frame)))

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.classes_[self.predict_proba(frame).argmax(axis=1)]


MODEL, LATER = Boosted(15.0), Boosted(22.0, seed=40)
START = people(500, 0)
SCHEMA = Schema.infer(START, increasing=["age"], may_go_missing=["debt"])
REFUSED = people(120, 9).loc[lambda frame: MODEL.predict(frame) == "no"].head(40)


def fitted(**settings: Any) -> FasterCE:
    return FasterCE(MODEL, SCHEMA, progress=False, random_state=1, **{"config": CONFIG} | settings).fit(START)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gaps") / "saved"
    fitted().save(folder)
    return folder


@pytest.fixture
def explainer(saved: Path) -> FasterCE:
    return load(saved, MODEL)


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gaps") / "forgetful"
    fitted(keep_rows=False).save(folder)
    return folder


def check_counterfactuals(explainer: FasterCE, model: Any) -> None:
    result = explainer.explain(REFUSED, target="yes")
    assert set(result.status) <= {"found", "already_target"}
    found = (result.status == "found").to_numpy()
    after, before = result.counterfactuals[found].astype(REFUSED.dtypes.to_dict()), REFUSED[found]
    assert (model.predict(after) == "yes").all()
    for name in ("income", "job"):
        assert not (after[name].isna() & before[name].notna()).any(), "only debts may go missing"
    assert (after["age"] >= before["age"]).all()


# -- update ----------------------------------------------------------------------------------------------------------------


def no_training(*_: Any, **__: Any) -> Any:
    raise AssertionError("nothing should be trained")


def test_more_rows_with_gaps_train_nothing_and_are_counted(explainer: FasterCE, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update, "train", no_training)
    monkeypatch.setattr(pipeline, "train_surrogate", no_training)
    new = people(300, 1)
    new.loc[3, "income"] = 300.0
    report = explainer.update(new)
    assert (report.seen, report.epochs, report.surrogate_retrained) == (800, 0, False)
    everyone = pd.concat([START, new])[NUMBERS].astype("Float64").astype(float)
    np.testing.assert_allclose(explainer.state_.statistics.mean[:3], everyone.mean())
    feature = explainer.schema_["income"]
    assert (feature.lower, feature.upper) == (everyone["income"].min(), 300.0)
    assert feature.missing == "stay"
    check_counterfactuals(explainer, MODEL)


def test_the_profile_is_that_of_a_fit_of_everything(explainer: FasterCE) -> None:
    new = people(200, 2, share=0.5)
    explainer.update(new)
    codes = explainer.state_.table.read(pd.concat([START, new])).codes
    full = Profile.measure(codes, explainer.schema_)
    for name, array in full.arrays().items():
        np.testing.assert_array_equal(array, explainer.state_.search.codec.profile.arrays()[name], err_msg=name)


def test_same_stream_same_explainer_saved_in_between_or_not(saved: Path, tmp_path: Path) -> None:
    parts = [people(150, k, share) for k, share in enumerate((0.2, 0.6))]
    one, other = updated_twice(saved, tmp_path, MODEL, parts)
    assert same(one, other)
    pd.testing.assert_frame_equal(one.explain(REFUSED).counterfactuals, other.explain(REFUSED).counterfactuals)


@pytest.mark.parametrize("keeping", [True, False])
def test_a_column_that_goes_missing_altogether_can_be_folded_in(saved: Path, forgetful: Path, keeping: bool) -> None:
    explainer = load(saved if keeping else forgetful, MODEL)
    explainer.config = replace(CONFIG, fit=FitConfig(evaluated_rows=300))
    before = explainer.state_.search.codec.profile
    for k in range(2):
        report = explainer.update(people(300, 3 + k).assign(income=np.nan))
    assert report.seen == 1100
    profile = explainer.state_.search.codec.profile
    assert (profile.low[1], profile.high[1]) == (before.low[1], before.high[1])
    assert profile.std[1] == pytest.approx(before.std[1])
    assert profile.median[1] == pytest.approx(before.median[1], abs=2.0)
    assert explainer.state_.statistics.mean[1] == pytest.approx(START["income"].mean())
    assert (profile.levels != MISSING).all()
    assert (explainer.schema_["income"].lower, explainer.schema_["income"].upper) == (profile.low[1], profile.high[1])
    check_counterfactuals(explainer, MODEL)


def gaps_rebuilt(explainer: FasterCE) -> float:
    """How often the autoencoder tells a missing number from one that is there."""
    coder, codec = explainer.state_.search.autoencoder, explainer.state_.search.codec
    codes = explainer.state_.table.read(people(300, 6)).codes
    rebuilt = codec.decode(coder.decode(coder.encode(codec.encode(codes))))
    return float(np.mean((rebuilt == MISSING)[:, 1:3] == (codes == MISSING)[:, 1:3]))


def test_a_new_category_widens_the_network_and_gaps_are_still_rebuilt(explainer: FasterCE) -> None:
    new = people(200, 5)
    new.loc[new.index[:100], "job"] = "pilot"
    width, before = explainer.state_.search.codec.width, gaps_rebuilt(explainer)
    report = explainer.update(new)
    assert (explainer.state_.search.codec.width, report.epochs > 0) == (width + 1, True)
    assert gaps_rebuilt(explainer) > before - 0.03
    check_counterfactuals(explainer, MODEL)


def test_a_new_model_must_take_missing_values_too(explainer: FasterCE) -> None:
    def fussy(frame: pd.DataFrame) -> np.ndarray:
        if frame["income"].isna().any():
            raise ValueError("Input contains NaN")
        return MODEL.predict(frame)

    before = explainer.state_.search
    with pytest.raises(
        ModelError, match=r"must accept missing values, which X or its schema has in .*'income'.*contains NaN"
    ):
        explainer.update(people(50, 7), model=fussy)
    assert explainer.state_.search is before
    explainer.update(people(50, 7), model=LATER)
    check_counterfactuals(explainer, LATER)


def test_a_gap_where_there_was_none_needs_another_fit(explainer: FasterCE) -> None:
    with pytest.raises(InputError, match=r"fit again for these.*'age' must not be missing"):
        explainer.update(people(30, 8).assign(age=np.nan))
    with pytest.raises(InputError, match="'income' must hold numbers of at most"):
        explainer.update(people(30, 8).assign(income=1e200))


# -- drift -----------------------------------------------------------------------------------------------------------------


def test_the_same_share_of_gaps_is_rarely_drift(saved: Path) -> None:
    """Which of the samples give a false alarm depends on the processor: the last digits of the weights differ."""
    reports = [load(saved, MODEL).drift(people(400, seed)) for seed in range(11, 21)]
    assert sum(report.drifted for report in reports) <= 2, [report.verdict for report in reports]
    assert all(list(report.frame["missing_then"] > 0) == [False, True, True, True] for report in reports)
    assert reports[0].frame.loc["income", "then"] == pytest.approx(START["income"].mean())
    assert reports[0].frame.loc["income", "now"] == pytest.approx(people(400, 11)["income"].mean())


@pytest.mark.parametrize("name", ["income", "debt", "job"])
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_column_that_goes_missing_is_an_alarm(saved: Path, name: str, share: float) -> None:
    rows = people(400, 14)
    rows.loc[np.random.default_rng(0).random(400) < share, name] = None
    report = load(saved, MODEL).drift(rows)
    assert report.frame.index[report.frame["drifted"]].tolist() == [name]
    assert report.frame.loc[name, "missing_now"] == pytest.approx(rows[name].isna().mean())
    assert report.frame.loc[name, "missing_then"] == pytest.approx(START[name].isna().mean())
    assert f"('{name}')" in report.verdict
    assert "missing_now" in report._repr_html_()
    if share == 1.0 and name != "job":
        assert np.isnan(report.frame.loc[name, "now"])


def test_gaps_that_are_all_filled_are_drift_too(explainer: FasterCE) -> None:
    report = explainer.drift(people(400, 15, share=0.0))
    assert report.frame.index[report.frame["drifted"]].tolist() == ["income", "debt", "job"]


def test_after_folding_it_in_it_is_drift_no_longer(explainer: FasterCE) -> None:
    explainer.update(people(4000, 16, share=0.6))
    assert not explainer.drift(people(300, 17, share=0.55)).frame["drifted"].any()


# -- recheck ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_table", [False, True])
def test_counterfactuals_with_missing_values_are_checked_and_repaired(explainer: FasterCE, as_table: bool) -> None:
    result = explainer.explain(REFUSED, target="yes")
    issued = result.to_frame()
    assert issued[list(REFUSED.columns)].isna().any(axis=None), "some gaps stay"
    given = {"rows": REFUSED, "target": "yes"} if as_table else {}
    first = explainer.recheck(issued if as_table else result, **given)
    assert first.counts == {"holds": len(issued)}
    pd.testing.assert_frame_equal(
        first.counterfactuals.astype(REFUSED.dtypes.to_dict()),
        issued[list(REFUSED.columns)].astype(REFUSED.dtypes.to_dict()),
        check_names=False,
    )
    checked = explainer.recheck(issued if as_table else result, model=LATER, **given)
    assert checked.counts.get("repaired", 0) > 0
    usable = checked.status.isin(["holds", "repaired", "replaced"]).to_numpy()
    after = checked.counterfactuals[usable].astype(REFUSED.dtypes.to_dict()).reset_index(drop=True)
    before = REFUSED.loc[checked.frame["query"][usable]].reset_index(drop=True)
    assert (LATER.predict(after) == "yes").all()
    assert (after["age"] >= before["age"]).all()
    for name in ("income", "job"):
        assert not (after[name].isna() & before[name].notna()).any()
    issued_rows = issued.loc[usable, list(REFUSED.columns)].reset_index(drop=True)
    for k, differs in enumerate(checked.frame["differs"][usable]):
        for name in REFUSED.columns:
            was, now = issued_rows[name][k], after[name][k]
            assert (name not in differs) == (was == now if pd.notna(was) and pd.notna(now) else pd.isna(was) and pd.isna(now))


# -- numbers ---------------------------------------------------------------------------------------------------------------


def test_a_model_of_numbers_lives_with_gaps_over_time() -> None:
    same_matrix = (lambda matrix: matrix, lambda latent: latent)
    explainer = FasterCE(merit, SCHEMA, progress=False, task="regression", autoencoder=same_matrix, config=CONFIG).fit(START)
    assert not explainer.drift(people(400, 11)).drifted
    issued = explainer.explain(REFUSED, target=(20, 30))
    explainer.update(people(200, 12, share=0.4), model=lambda frame: merit(frame) - 3)
    alarm = explainer.drift(people(400, 13).assign(income=np.nan))
    assert alarm.class_shift.drifted
    assert alarm.frame.loc["income", "drifted"]
    checked = explainer.recheck(issued)
    usable = checked.status.isin(["holds", "repaired", "replaced"]).to_numpy()
    assert (checked.status == "repaired").any()
    now = merit(checked.counterfactuals[usable].astype(REFUSED.dtypes.to_dict())) - 3
    assert ((now >= 20) & (now <= 30)).all()
