"""Missing values as legal states, end to end: they stay, are filled where that helps, and appear only if allowed."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from fasterce import FasterCE, Schema, load
from fasterce.config import Config, SurrogateConfig
from fasterce.constraints import Allowed, AtMost, Derived, Forbidden, If, Near, OnlyUp, Order, Require, Step, Together
from fasterce.constraints.objects import Between
from fasterce.errors import InputError, ModelError
from fasterce.explanation import Explanation
from fasterce.fairness import angles

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning:fasterce")

ROWS = 500
MAY_GO = ["debt", "job"]
METHODS = ("closest", "sparse", "realistic")
CONFIG = replace(
    Config.fast(),
    surrogate=SurrogateConfig(edited_rows_per_feature=500, min_edited_rows=2_500, steps_per_feature=20, min_steps=120),
)


def people(rows: int = ROWS, seed: int = 0, share: float = 0.15) -> pd.DataFrame:
    """Whole numbers with gaps, nullable and plain floats, words, truth values and an ordered category; `rate` has no gap."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows).astype(float),
            "income": rng.gamma(3, 10, rows).round(2),
            "debt": pd.array(rng.integers(0, 30, rows), dtype="Int64"),
            "job": rng.choice(["clerk", "nurse", "pilot"], rows),
            "owner": pd.array(rng.random(rows) < 0.5, dtype="boolean"),
            "grade": pd.Categorical(rng.choice(["low", "mid", "top"], rows), ["low", "mid", "top"], ordered=True),
            "rate": rng.uniform(0, 5, rows).round(1),
        }
    )
    for name in frame.columns[:-1]:
        frame.loc[rng.random(rows) < share, name] = None
    return frame


def merit(frame: pd.DataFrame) -> np.ndarray:
    """Income is best stated, debt best not: what is missing is neither zero nor the mean."""
    income = frame["income"].to_numpy(dtype=float, na_value=np.nan)
    debt = frame["debt"].to_numpy(dtype=float, na_value=np.nan)
    known = np.where(np.isnan(income), 12.0, income) - np.where(np.isnan(debt), 9.0, debt)
    return known + 8.0 * (frame["job"] == "pilot").to_numpy(dtype=bool, na_value=False) - 2.0 * frame["rate"].to_numpy()


def decision(frame: pd.DataFrame) -> np.ndarray:
    return np.where(merit(frame) > 10, "yes", "no")


def numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Everything as floats with NaN, which boosted trees take as it is."""
    coded = {
        "job": frame["job"].map({"clerk": 0.0, "nurse": 1.0, "pilot": 2.0}),
        "grade": frame["grade"].astype(object).map({"low": 0.0, "mid": 1.0, "top": 2.0}),
    }
    return frame.assign(**coded).astype("Float64").astype(float)


class OnNumbers:
    """A classifier of 0 and 1 on plain numbers, answering yes and no about people."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> "OnNumbers":
        self.inner.fit(numbers(X), (y == "yes").astype(int))
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.classes_[np.asarray(self.inner.predict(numbers(X))).astype(int)]

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.inner.predict_proba(numbers(X)))


def boosted() -> Any:
    return OnNumbers(HistGradientBoostingClassifier(max_iter=40, random_state=0))


def xgboost() -> Any:
    return OnNumbers(pytest.importorskip("xgboost").XGBClassifier(n_estimators=25, n_jobs=1))


def lightgbm() -> Any:
    return OnNumbers(pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=25, n_jobs=1, verbose=-1))


def imputing() -> Any:
    columns = make_column_transformer(
        (SimpleImputer(add_indicator=True), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), ["job", "owner", "grade"]),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=2000))


MODELS: dict[str, Callable[[], Any]] = {
    "HistGradientBoosting": boosted,
    "XGBoost": xgboost,
    "LightGBM": lightgbm,
    "imputer": imputing,
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request: pytest.FixtureRequest) -> tuple[Any, FasterCE, pd.DataFrame]:
    training = people()
    model = MODELS[request.param]().fit(training, decision(training))
    schema = Schema.infer(training, immutable=["owner"], increasing=["age", "grade"], may_go_missing=MAY_GO)
    rows = people(120, seed=1)
    explainer = FasterCE(model, schema, progress=False, config=CONFIG).fit(training)
    return model, explainer, rows[model.predict(rows) == "no"].head(40)


def check_legal(result: Explanation, model: Any, rows: pd.DataFrame, may_go: list[str]) -> pd.DataFrame:
    """Every answer is the model's own, and gaps appear only where they may; gives the answers beside their rows."""
    long = result.to_frame()
    after = long[list(rows.columns)]
    before = rows.loc[long["query"]].reset_index(drop=True)
    assert (model.predict(after.astype(rows.dtypes)) != model.predict(before)).all()
    for name in rows.columns:
        gone = after[name].isna() & before[name].notna()
        assert not gone.any() or name in may_go, name
        filled = after[name].notna() & before[name].isna()
        listed = [name in changed for changed in long["changed"]]
        differs = (gone | filled).to_numpy() | ((after[name] != before[name]) & after[name].notna() & before[name].notna())
        assert differs.to_numpy(dtype=bool).tolist() == listed
    whole = after[["age", "debt"]].astype("Float64").astype(float).to_numpy()
    assert (np.isnan(whole) | (whole == np.round(whole))).all()
    ages = [frame["age"].to_numpy() for frame in (before, after)]
    assert not (ages[1] < ages[0]).any(), "one way, where there is a way at all"
    assert (after["owner"].isna() == before["owner"].isna()).all()
    return after


@pytest.mark.parametrize("method", METHODS)
def test_rows_with_missing_values_are_explained_within_the_constraints(
    fitted: tuple[Any, FasterCE, pd.DataFrame], method: Any
) -> None:
    model, explainer, rows = fitted
    assert rows.isna().any(axis=1).mean() > 0.5
    result = explainer.explain(rows, method)
    assert (result.status == "found").all()
    after = check_legal(result, model, rows, MAY_GO)
    kept = after.isna().to_numpy() & rows.isna().to_numpy()
    least = 0.3 if method == "realistic" else 0.7
    assert kept.sum() > least * rows.isna().to_numpy().sum(), "most gaps have nothing to do with it"


@pytest.mark.parametrize("options", [{"engine": "paper", "method": "all"}, {"margin": 0.3, "distance": "mad", "n": 3}])
def test_other_engines_and_distances_satisfy_the_constraints_too(
    fitted: tuple[Any, FasterCE, pd.DataFrame], options: dict[str, Any]
) -> None:
    model, explainer, rows = fitted
    result = explainer.explain(rows, **options)
    assert (result.status == "found").mean() > 0.9
    check_legal(result, model, rows, MAY_GO)


def test_alone_or_together_saved_or_not_the_counterfactuals_are_the_same(
    fitted: tuple[Any, FasterCE, pd.DataFrame], tmp_path: Path
) -> None:
    model, explainer, rows = fitted
    some = rows.head(8)
    together = explainer.explain(some, "all").to_frame()
    alone = pd.concat([explainer.explain(some.iloc[[k]], "all").to_frame() for k in range(len(some))], ignore_index=True)
    pd.testing.assert_frame_equal(alone, together)
    explainer.save(tmp_path / "saved")
    again = load(tmp_path / "saved", model)
    assert again.schema_ == explainer.schema_
    pd.testing.assert_frame_equal(again.explain(some, "all").to_frame(), together)


def simple(training: pd.DataFrame, score: Callable[[pd.DataFrame], np.ndarray], **constraints: Any) -> FasterCE:
    model = lambda frame: np.where(score(frame) > 0, "yes", "no")  # noqa: E731
    return FasterCE(model, Schema.infer(training, **constraints), progress=False, config=CONFIG).fit(training)


def two_columns(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.integers(0, 11, rows).astype(float), "b": rng.uniform(0, 10, rows).round(1)})
    frame.loc[rng.random(rows) < 0.3, "a"] = np.nan
    return frame


def test_a_gap_is_filled_where_only_that_helps_with_a_usual_whole_number() -> None:
    """Any a from 4 on will do: of those the one nearest to the median is told, not the first or the last."""
    explainer = simple(two_columns(), lambda frame: (frame["a"].fillna(-1) - 3.5).to_numpy())
    result = explainer.explain(pd.DataFrame({"a": [np.nan], "b": [1.0]}))
    (change,) = result.changes(0)
    assert (change.feature, change.before) == ("a", None)
    assert change.after in (4, 5, 6)
    assert result.arrays.distance[0] == pytest.approx(1.0, abs=1e-4)
    assert "missing → " in str(result)


def test_a_gap_stays_where_another_change_is_nearer() -> None:
    explainer = simple(two_columns(), lambda frame: (frame["a"].fillna(3) / 2 + frame["b"] - 5).to_numpy())
    result = explainer.explain(pd.DataFrame({"a": [np.nan], "b": [3.0]}))
    assert [change.feature for change in result.changes(0)] == ["b"]
    assert result.counterfactuals["a"].isna().all()


@pytest.mark.parametrize("may_go", [[], ["a"]])
def test_a_value_goes_missing_only_if_allowed(may_go: list[str]) -> None:
    """Nothing but a missing a is answered with yes."""
    explainer = simple(two_columns(), lambda frame: frame["a"].isna().to_numpy() - 0.5, may_go_missing=may_go)
    result = explainer.explain(pd.DataFrame({"a": [5.0], "b": [1.0]}), "all")
    if may_go:
        assert (result.status == "found").all()
        assert {(change.before, change.after) for change in result.changes(0)} == {(5, None)}
        assert result.counterfactuals["a"].isna().all()
        assert "5 → missing" in str(result)
    else:
        assert result.status.tolist() == ["none_found"]


def test_what_nobody_lacks_in_training_may_go_missing_too() -> None:
    score = lambda frame: (frame["b"].isna() | (frame["a"] == 10)).to_numpy() - 0.5  # noqa: E731
    explainer = simple(two_columns(), score, may_go_missing=["b"])
    result = explainer.explain(pd.DataFrame({"a": [5.0, np.nan], "b": [1.0, 2.0]}), features_to_vary=["b"])
    assert (result.status == "found").all()
    assert result.counterfactuals["b"].isna().all()
    assert result.counterfactuals["a"].isna().tolist() == [False, True]


def test_a_permitted_range_lets_a_gap_stay_and_binds_what_fills_it() -> None:
    explainer = simple(two_columns(), lambda frame: (frame["a"].fillna(0) - 3.5).to_numpy(), may_go_missing=["a"])
    rows = pd.DataFrame({"a": [np.nan, 1.0], "b": [1.0, 1.0]})
    result = explainer.explain(rows, permitted_range={"a": (8, 9)})
    assert set(result.counterfactuals["a"]) <= {8.0, 9.0}
    none = explainer.explain(rows.head(1), permitted_range={"a": (0, 2)})
    assert none.status.tolist() == ["none_found"]
    stays = explainer.explain(rows.head(1), features_to_vary=["b"])
    assert stays.status.tolist() == ["none_found"]


def test_a_gap_where_training_had_none_is_invalid_input() -> None:
    explainer = simple(two_columns(), lambda frame: (frame["b"] - 5).to_numpy())
    result = explainer.explain(pd.DataFrame({"a": [np.nan, 1.0], "b": [1.0, np.nan]}))
    assert result.status.tolist() == ["found", "invalid_input"]
    assert result.reason.iloc[1] == "Column 'b' must not be missing (row 1)."


def test_a_model_that_refuses_missing_values_is_reported_in_one_sentence() -> None:
    training = two_columns()
    model = LogisticRegression().fit(training.dropna(), training.dropna()["b"] > 5)
    with pytest.raises(ModelError) as caught:
        FasterCE(model, progress=False, config=CONFIG).fit(training)
    message = str(caught.value)
    assert message.startswith(
        "The model must accept missing values, which X or its schema has in 'a'; got: The model raised ValueError"
    )
    assert message.endswith(".")
    with pytest.raises(ModelError, match=r"has in 'b'; got"):
        FasterCE(model, Schema.infer(training.dropna(), may_go_missing=["b"]), progress=False).fit(training.dropna())
    with pytest.raises(InputError, match=r"Column 'a' must not be missing"):
        FasterCE(model, Schema.infer(training.dropna()), progress=False, config=CONFIG).fit(training)


def test_a_model_that_fails_on_everything_is_not_blamed_for_missing_values() -> None:
    def broken(frame: pd.DataFrame) -> np.ndarray:
        raise ValueError("out of order")

    with pytest.raises(ModelError, match=r"^The model raised ValueError: out of order"):
        FasterCE(broken, progress=False).fit(two_columns())


# --- any table, any gaps, any model ----------------------------------------------------------------------------------


@st.composite
def worlds(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.DataFrame, Schema, Any]:
    """People with gaps anywhere, rules at random, a model that goes by values and by gaps."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    names = draw(st.lists(st.sampled_from(list(people(2).columns)), min_size=2, unique=True))
    training = people(150, seed, draw(st.sampled_from([0.02, 0.2, 0.6])))[names]
    able = [name for name in names if name != "rate" or draw(st.booleans())]
    constraints: dict[str, Any] = {
        "may_go_missing": [name for name in able if draw(st.booleans())],
        "immutable": [name for name in names if draw(st.integers(0, 3)) == 0][: len(names) - 1],
        "increasing": [name for name in names if name in ("age", "debt", "grade") and draw(st.booleans())],
    }
    schema = Schema.infer(training, **constraints)
    weight = rng.normal(size=(2, len(names)))
    places = [_places(training[name]) for name in names]
    centre = sum(w * np.nan_to_num(p).mean() for w, p in zip(weight[0], places, strict=True))

    def model(frame: pd.DataFrame) -> np.ndarray:
        lead = np.full(len(frame), -centre)
        for name, there, absent in zip(names, *weight, strict=True):
            place = _places(frame[name])
            lead += np.where(np.isnan(place), 2 * absent, there * np.nan_to_num(place))
        return np.where(lead > 0, "yes", "no")

    queries = training.iloc[rng.integers(len(training), size=6)].reset_index(drop=True)
    return training, queries, schema, model


def _places(column: pd.Series) -> np.ndarray:
    """Values on a scale from about 0 to 1, NaN where there are none."""
    if column.name in ("job", "grade"):
        words = ["clerk", "nurse", "pilot"] if column.name == "job" else ["low", "mid", "top"]
        return column.astype(object).map({word: k / 2 for k, word in enumerate(words)}).to_numpy(dtype=float, na_value=np.nan)
    return column.astype("Float64").to_numpy(dtype=float, na_value=np.nan) / {"owner": 1, "rate": 5}.get(str(column.name), 50)


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(worlds(), st.sampled_from(["closest", "sparse", "realistic", "all"]), st.sampled_from(["percentile", "mad", "gower"]))
def test_what_comes_back_is_true_and_legal_alone_or_in_a_batch(world: Any, method: Any, distance: Any) -> None:
    training, queries, schema, model = world
    if len(set(model(training))) < 2:
        return
    turned = np.random.default_rng(0).permutation(len(queries))
    explainer = FasterCE(model, schema, progress=False, autoencoder=(lambda m: m, lambda m: m), config=CONFIG).fit(training)
    result = explainer.explain(queries, method, distance=distance)
    long = result.to_frame()
    for (_, line), (_, before) in zip(long.iterrows(), queries.loc[long["query"]].iterrows(), strict=True):
        for feature in schema.features:
            was, now = before[feature.name], line[feature.name]
            if pd.isna(was) and pd.isna(now):
                continue
            if pd.isna(now):
                assert feature.missing == "may_appear"
                assert feature.mutable
            elif pd.isna(was):
                assert feature.missing != "never"
                assert feature.mutable
                assert not feature.numeric or feature.lower <= now <= feature.upper
                assert not feature.integer or now == round(now)
            elif was != now:
                assert feature.mutable
                up = feature.categories.index(now) > feature.categories.index(was) if not feature.numeric else now > was
                assert feature.direction != "up" or up
    after = long[list(queries.columns)].astype(queries.dtypes)
    assert (model(after) != model(queries.loc[long["query"]])).all()
    shuffled = explainer.explain(queries.iloc[turned], method, distance=distance)
    pd.testing.assert_frame_equal(shuffled.counterfactuals.sort_index(), result.counterfactuals, check_dtype=False)
    first = explainer.explain(queries.iloc[:1], method, distance=distance)
    assert first.to_frame()["distance"].tolist() == long.loc[long["query"] == 0, "distance"].tolist()


# --- with rules, shakes and the page about it ------------------------------------------------------------------------


def ledger(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"a": rng.integers(0, 21, rows).astype(float), "b": rng.integers(0, 21, rows).astype(float)})
    frame["total"] = frame["a"] + frame["b"]
    frame["word"] = rng.choice(["low", "mid", "top"], rows)
    frame.loc[rng.random(rows) < 0.2, ["a", "total"]] = np.nan
    frame.loc[rng.random(rows) < 0.2, "word"] = None
    return frame


def lead(frame: pd.DataFrame) -> np.ndarray:
    return (frame["total"].fillna(0) + 3 * (frame["word"] == "top") - 24).to_numpy(dtype=float)


ROW = pd.DataFrame(
    {"a": [np.nan, 4.0, np.nan], "b": [3.0, 5.0, 9.0], "total": [np.nan, 9.0, np.nan], "word": [None, "low", "mid"]}
)


def test_a_derived_column_is_computed_once_its_inputs_are_filled() -> None:
    explainer = simple(ledger(), lead, constraints=[Derived("total", "a + b")], may_go_missing=["a", "b", "word"])
    result = explainer.explain(ROW, "all")
    assert (result.status == "found").all()
    after = result.to_frame()
    assert (after["total"] == after["a"] + after["b"]).all(), "nothing but a total makes it a yes"


def test_a_constraint_between_columns_ignores_missing_values_and_is_no_way_out() -> None:
    """The second row breaks a <= b - 3 as it is; emptying a would be the easy way."""
    explainer = simple(ledger(), lead, constraints=[Require("a <= b - 3")], may_go_missing=["a", "b"])
    result = explainer.explain(ROW, "all", n=2)
    assert (result.status == "found").all()
    after = result.to_frame()
    stays = after["a"].isna()
    assert stays.any()
    assert (after.loc[stays, "query"] != 1).all()
    assert (after.loc[~stays, "a"] <= after.loc[~stays, "b"] - 3).all()
    assert after["b"].notna().all()


def moved_alike(was: dict[str, Any], now: dict[str, Any]) -> bool:
    return was["a"] is None or now["a"] - was["a"] == now["b"] - was["b"]


def small_if_top(was: dict[str, Any], now: dict[str, Any]) -> bool:
    return now["word"] != "top" or now["a"] is None or now["a"] <= 10


def near_and_allowed(was: dict[str, Any], now: dict[str, Any]) -> bool:
    stayed = was["word"] is None and now["word"] is None
    return (stayed or now["word"] in ("mid", "top")) and (was["a"] is None or abs(now["a"] - was["a"]) <= 2)


def downhill(was: dict[str, Any], now: dict[str, Any]) -> bool:
    order = ["top", "mid", "low"]
    return None in (was["word"], now["word"]) or order.index(now["word"]) >= order.index(was["word"])


def open_and_on_grid(was: dict[str, Any], now: dict[str, Any]) -> bool:
    return (now["word"] != "top" or was["word"] is None) and (now["a"] == was["a"] or now["a"] % 5 == 0)


def one_change(was: dict[str, Any], now: dict[str, Any]) -> bool:
    return sum(was[name] != now[name] for name in was) <= 1


CONSTRAINTS: dict[Any, list[Any]] = {
    moved_alike: [Together("b", "a", slope=1.0)],
    small_if_top: [If({"word": ["top"]}, {"a": Between(0, 10)})],
    near_and_allowed: [Near("a", by=2), Allowed("word", ("mid", "top"))],
    downhill: [Order("word", ("top", "mid", "low")), OnlyUp("word")],
    open_and_on_grid: [Forbidden("word", (("low", "top"), ("mid", "top"))), Step("a", 5)],
    one_change: [AtMost(1)],
}


@pytest.fixture(scope="module")
def loose() -> FasterCE:
    return simple(ledger(), lead, may_go_missing=["b", "total", "word"])


@pytest.mark.parametrize("kept", CONSTRAINTS, ids=lambda kept: kept.__name__)
def test_every_kind_of_constraint_allows_missing_values(loose: FasterCE, kept: Any) -> None:
    result = loose.explain(ROW, "all", constraints=CONSTRAINTS[kept], n=2)
    assert (result.status == "found").sum() >= 2
    long = result.to_frame()
    for query, now in zip(long["query"], with_none(long[list(ROW.columns)]), strict=True):
        was = with_none(ROW)[query]
        assert kept(was, now), (was, now)
    assert (lead(long) > 0).all()


def with_none(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return frame.astype(object).where(frame.notna(), None).to_dict(orient="records")


def test_counterfactuals_under_noise_keep_their_missing_values() -> None:
    explainer = simple(ledger(), lead)
    result = explainer.explain(ROW, robust=0.9)
    assert (result.status == "found").all()
    assert (lead(result.counterfactuals) > 0).all()


def test_the_page_about_missing_values_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).parents[1] / "docs" / "missing.md"
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec"), names)
    assert "missing → " in capsys.readouterr().out
    assert names["schema"]["income"].missing == "stay"
    assert names["schema"]["debt"].missing == "never"
    assert names["loose"]["debt"].missing == "may_appear"
    assert names["result"].counterfactuals["income"].notna().all()
    assert names["model"].predict(names["result"].counterfactuals).all()
    assert names["explainer"].report_.compiled == "exact: HistGradientBoostingClassifier, agrees on 100.00%"


def test_the_reason_for_none_found_says_missing_in_words() -> None:
    explainer = simple(two_columns(), lambda frame: (frame["a"].fillna(-1) - 3.5).to_numpy(), immutable=["a"])
    result = explainer.explain(pd.DataFrame({"a": [np.nan], "b": [1.0]}))
    assert result.status.tolist() == ["none_found"]
    assert "without it, a missing -> " in result.reason.iloc[0]


def test_a_figure_says_missing_in_words() -> None:
    pytest.importorskip("matplotlib")
    from fasterce.viz import plots

    explainer = simple(two_columns(), lambda frame: (frame["a"].fillna(-1) - 3.5).to_numpy())
    figure = plots.dumbbell(explainer.explain(pd.DataFrame({"a": [np.nan], "b": [1.0]})))
    assert any("missing → " in text.get_text() for text in figure.axes[0].texts)


def test_angles_of_columns_with_gaps_are_named(loose: FasterCE) -> None:
    frame = angles(loose, ["word", "a"]).frame
    assert set(frame.loc[frame["protected"] == "word", "category"]) == {"low", "mid", "top", "missing"}
    assert {"there", "missing"} < set(frame.loc[frame["protected"] == "a", "category"])
