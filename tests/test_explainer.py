"""The API as a user meets it: what goes in, what comes out, and the one sentence for everything that cannot be."""

import inspect
import pickle
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fasterce import FasterCE, Schema
from fasterce.config import Config
from fasterce.constraints import Require
from fasterce.data.review import SchemaWarning
from fasterce.data.schema import Feature
from fasterce.errors import FasterCEError, InputError, ModelError, NotFittedError, SchemaError

IDENTITY = (lambda matrix: matrix, lambda latent: latent)
METHODS: tuple[Literal["closest", "sparse", "realistic"], ...] = ("closest", "sparse", "realistic")
GRADES = ["low", "mid", "high"]


def people(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "income": rng.normal(50, 15, rows).clip(5, 120).round(2),
            "weight": rng.normal(70, 10, rows).astype(np.float32),
            "job": rng.choice(["clerk", "nurse", "smith"], rows),
            "grade": pd.Categorical(rng.choice(GRADES, rows), GRADES, ordered=True),
            "code": rng.integers(1, 4, rows),
            "owner": rng.random(rows) < 0.5,
        },
        index=[f"p{k}" for k in range(rows)],
    )


def points(frame: pd.DataFrame) -> np.ndarray:
    return (
        frame["income"].to_numpy(dtype=float)
        + 0.3 * frame["age"].to_numpy(dtype=float)
        + 12 * frame["owner"].to_numpy(dtype=bool)
        + 8 * (frame["grade"] == "high").to_numpy(dtype=bool)
        + 6 * (frame["job"] == "nurse").to_numpy(dtype=bool)
        + 2 * frame["code"].to_numpy(dtype=float)
    )


def approve(frame: pd.DataFrame) -> np.ndarray:
    return np.where(points(frame) > 82, "yes", "no")


def grade_three(frame: pd.DataFrame) -> np.ndarray:
    return np.array(["poor", "fair", "good"])[np.digitize(points(frame), [75, 90])]


def constraints(frame: pd.DataFrame) -> Schema:
    return Schema.infer(frame, categorical=["code"], immutable=["job"], increasing=["age"], ranges={"income": (0, 200)})


def fit(model: Any, frame: pd.DataFrame, schema: Schema | None = None, **options: Any) -> FasterCE:
    usual: dict[str, Any] = {"autoencoder": IDENTITY, "progress": False, "config": Config.fast()}
    return FasterCE(model, schema, **usual | options).fit(frame)


def sentence(caught: pytest.ExceptionInfo[BaseException]) -> str:
    """Every refusal is one of ours and one line that ends with a full stop."""
    assert isinstance(caught.value, FasterCEError)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith((".", "?"))
    return text


@pytest.fixture(scope="module")
def training() -> pd.DataFrame:
    return people()


@pytest.fixture(scope="module")
def explainer(training: pd.DataFrame) -> FasterCE:
    return fit(approve, training, constraints(training))


@pytest.fixture(scope="module")
def refused() -> pd.DataFrame:
    rows = people(60, seed=1)
    return rows[approve(rows) == "no"].head(12)


@pytest.fixture(scope="module")
def trained(training: pd.DataFrame) -> FasterCE:
    """The real thing: a trained autoencoder."""
    return FasterCE(approve, constraints(training), progress=False, config=Config.fast()).fit(training)


# -- shape of the API ------------------------------------------------------------------------------------------------------


def test_names_and_defaults_are_those_promised() -> None:
    made = inspect.signature(FasterCE).parameters
    assert list(made)[:2] == ["model", "schema"]
    assert (made["schema"].default, made["random_state"].default, made["scores"].default) == (None, 0, "auto")
    parameters = inspect.signature(FasterCE.explain).parameters
    promised = {"method": "closest", "target": None, "n": 1, "features_to_vary": None, "permitted_range": None}
    assert {name: parameters[name].default for name in promised} == promised
    inferred = inspect.signature(Schema.infer).parameters
    names = ["X", "categorical", "immutable", "increasing", "decreasing", "ranges", "constraints", "may_go_missing"]
    names.append("passthrough")
    assert list(inferred) == names
    import fasterce

    for name in ("FasterCE", "Schema", "datasets", "load"):
        assert hasattr(fasterce, name), name


@pytest.mark.parametrize("method", METHODS)
def test_a_trained_explainer_finds_a_counterfactual_for_every_row(
    trained: FasterCE, refused: pd.DataFrame, method: Any
) -> None:
    result = trained.explain(refused, method)
    found = (result.status == "found").to_numpy()
    assert found.mean() > (0.7 if method == "sparse" else 0.99)
    assert (approve(result.counterfactuals[found]) == "yes").all()
    assert (result.counterfactuals.loc[found, "job"] == refused.loc[found, "job"]).all()
    assert (result.counterfactuals.loc[found, "age"] >= refused.loc[found, "age"]).all()


def test_counterfactuals_are_a_frame_like_the_rows(explainer: FasterCE, refused: pd.DataFrame) -> None:
    result = explainer.explain(refused)
    assert (result.status == "found").all()
    frame = result.counterfactuals
    assert list(frame.columns) == list(refused.columns)
    assert frame.dtypes.equals(refused.dtypes)
    assert frame.index.equals(refused.index)
    assert (approve(frame) == "yes").all()
    assert (result.prediction == "no").all()
    assert (result.target == "yes").all()
    assert (result.reason == "").all()
    assert len(result) == len(refused)


def test_missing_values_stand_where_there_is_no_counterfactual(explainer: FasterCE, refused: pd.DataFrame) -> None:
    rows = refused.head(4).copy()
    rows.loc[rows.index[1], "income"] = np.nan
    frame = explainer.explain(rows).counterfactuals
    assert frame.index.equals(rows.index)
    assert frame.isna().all(axis=1).tolist() == [False, True, False, False]
    assert not frame.iloc[[0, 2, 3]].isna().any(axis=None)
    assert str(frame["age"].dtype) == "Int64"
    assert str(frame["owner"].dtype) == "boolean"
    assert frame["grade"].dtype == rows["grade"].dtype
    assert frame["weight"].dtype == np.float32


def test_to_frame_is_long_and_says_what_changed(explainer: FasterCE, refused: pd.DataFrame) -> None:
    result = explainer.explain(refused, n=3)
    long = result.to_frame()
    about = ["query", "rank", "method", "origin", "n_changed", "changed", "distance", "new_prediction"]
    assert list(long.columns) == [*about, *refused.columns]
    assert set(long["method"]) == {"closest"}
    assert (long["distance"] > 0).all()
    for _, line in long.iterrows():
        row = refused.loc[line["query"]]
        assert [name for name in refused.columns if line[name] != row[name]] == line["changed"]
        assert line["n_changed"] == len(line["changed"]) > 0
    best = long[long["rank"] == 0].set_index("query")[list(refused.columns)]
    pd.testing.assert_frame_equal(best, result.counterfactuals, check_names=False)


def test_usage_counts_calls_and_rows(training: pd.DataFrame, refused: pd.DataFrame) -> None:
    sizes: list[int] = []

    def model(frame: pd.DataFrame) -> np.ndarray:
        sizes.append(len(frame))
        return approve(frame)

    counting = fit(model, training)
    assert (counting.report_.calls, counting.report_.model_rows) == (len(sizes), sum(sizes))
    sizes.clear()
    result = counting.explain(refused)
    assert (result.usage.calls, result.usage.rows) == (len(sizes), sum(sizes))
    assert result.seconds > 0


def test_n_options_are_distinct_and_ranked_by_distance(explainer: FasterCE, refused: pd.DataFrame) -> None:
    long = explainer.explain(refused, n=3).to_frame()
    assert (long.groupby("query").size() == 3).mean() > 0.8
    assert (long.groupby("query").size() <= 3).all()
    for _, options in long.groupby("query"):
        assert options["rank"].tolist() == list(range(len(options)))
        assert options["distance"].is_monotonic_increasing
        assert len({tuple(changed) for changed in options["changed"]}) == len(options)
    assert (approve(long) == "yes").all()
    alone = explainer.explain(refused).to_frame()
    assert (long[long["rank"] == 0]["distance"].to_numpy() <= 1.05 * alone["distance"].to_numpy() + 1e-9).all()


def test_sparse_changes_one_feature(explainer: FasterCE, refused: pd.DataFrame) -> None:
    long = explainer.explain(refused, "sparse", n=2).to_frame()
    assert (long[long["rank"] == 0]["n_changed"] == 1).all()
    assert (long.groupby("query")["n_changed"].is_monotonic_increasing).all(), "more features only after fewer"
    closest = explainer.explain(refused).to_frame().set_index("query")["distance"]
    best = long[long["rank"] == 0].set_index("query")["distance"]
    assert (closest.loc[best.index] <= 1.02 * best + 1e-3).all()


def test_all_gives_every_method_and_the_nearest_first(explainer: FasterCE, refused: pd.DataFrame) -> None:
    every = explainer.explain(refused, "all")
    long = every.to_frame()
    for method in METHODS:
        alone = explainer.explain(refused, method).to_frame()
        mine = long[long["method"] == method]
        assert mine["query"].tolist() == alone["query"].tolist()
        np.testing.assert_allclose(mine["distance"], alone["distance"])
    best = long.loc[long["rank"] == 0]
    assert best["query"].tolist() == refused.index.tolist()
    nearest = long[long["method"] != "realistic"].groupby("query", sort=False)["distance"].min()
    assert (best["distance"].to_numpy() <= nearest.to_numpy() + 1e-9).all()


@pytest.mark.parametrize("method", METHODS)
def test_the_engine_paper_works_for_every_method(trained: FasterCE, refused: pd.DataFrame, method: Any) -> None:
    result = trained.explain(refused, method, engine="paper")
    found = (result.status == "found").to_numpy()
    assert found.mean() >= 0.5
    frame = result.counterfactuals[found]
    assert (approve(frame) == "yes").all()
    assert (frame["job"] == refused.loc[found, "job"]).all()
    assert (frame["age"] >= refused.loc[found, "age"]).all()
    if method == "sparse":
        assert (result.to_frame()["n_changed"] == 1).all()


def test_the_default_engine_refines_the_papers(trained: FasterCE, refused: pd.DataFrame) -> None:
    plain = trained.explain(refused, engine="paper").to_frame().set_index("query")
    refined = trained.explain(refused).to_frame().set_index("query").loc[plain.index]
    assert refined["n_changed"].mean() < plain["n_changed"].mean()
    assert (refined["distance"] < plain["distance"] + 1e-9).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_margin_goes_farther_and_still_flips(explainer: FasterCE, refused: pd.DataFrame, method: Any) -> None:
    near, far = (explainer.explain(refused, method, features_to_vary=["income"], margin=m) for m in (0.0, 0.5))
    assert (near.status == far.status).all()
    found = (near.status == "found").to_numpy()
    assert found.mean() > 0.5
    gain = points(far.counterfactuals[found]) - points(near.counterfactuals[found])
    spread = people()["income"].std()
    np.testing.assert_allclose(gain, 0.5 * spread, atol=0.1 * spread)
    assert (far.counterfactuals.loc[found, "income"] <= 200).all()


# -- target ----------------------------------------------------------------------------------------------------------------


def test_rows_that_are_where_they_should_be_are_left_alone(explainer: FasterCE) -> None:
    rows = people(30, seed=2)
    wanted = approve(rows) == "yes"
    result = explainer.explain(rows, target="yes")
    assert (result.status[wanted] == "already_target").all()
    assert (result.status[~wanted] == "found").all()
    assert (result.reason == "").all()
    assert result.counterfactuals[wanted].isna().all(axis=None)
    assert set(result.to_frame()["query"]) == set(rows.index[~wanted])


def test_without_a_target_both_classes_are_turned(explainer: FasterCE) -> None:
    rows = people(30, seed=2)
    result = explainer.explain(rows)
    assert (result.status == "found").mean() > 0.9
    found = (result.status == "found").to_numpy()
    assert (approve(result.counterfactuals[found]) != approve(rows)[found]).all()


def test_more_than_two_classes_need_a_target(training: pd.DataFrame) -> None:
    three = fit(grade_three, training, constraints(training))
    rows = people(40, seed=3)
    with pytest.raises(InputError) as caught:
        three.explain(rows)
    assert "'fair', 'good', 'poor'" in sentence(caught)
    for target in ("good", "fair", "poor"):
        result = three.explain(rows, target=target)
        assert ((result.status == "already_target") == (grade_three(rows) == target)).all()
        found = (result.status == "found").to_numpy()
        assert found.sum() > 5
        assert (grade_three(result.counterfactuals[found]) == target).all()
        assert (result.target == target).all()


def test_an_unknown_target_is_refused(explainer: FasterCE, refused: pd.DataFrame) -> None:
    with pytest.raises(InputError) as caught:
        explainer.explain(refused, target="yess")
    assert "Did you mean 'yes'?" in sentence(caught)


# -- what may change -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_only_named_features_change(explainer: FasterCE, refused: pd.DataFrame, method: Any) -> None:
    long = explainer.explain(refused, method, features_to_vary=["owner", "income"]).to_frame()
    assert len(long) > 5
    assert {name for changed in long["changed"] for name in changed} <= {"owner", "income"}


def test_permitted_ranges_hold(explainer: FasterCE, refused: pd.DataFrame) -> None:
    permitted: dict[Any, Any] = {"income": (20, 70.5), "grade": ["low", "mid"], "code": [1, 2, 3], "owner": [False, True]}
    result = explainer.explain(refused, permitted_range=permitted, n=2)
    long = result.to_frame()
    assert len(long) > 5
    assert long["income"].between(20, 70.5).all()
    assert (long["grade"] != "high").all()
    assert (approve(long) == "yes").all()


def test_a_row_outside_a_permitted_range_is_brought_inside(explainer: FasterCE, refused: pd.DataFrame) -> None:
    rows = refused.head(6).assign(income=10.0, code=1)
    result = explainer.explain(rows, permitted_range={"income": (40, 120), "code": [2, 3]})
    assert (result.status == "found").all()
    assert result.counterfactuals["income"].between(40, 120).all()
    assert result.counterfactuals["code"].isin([2, 3]).all()
    assert (approve(result.counterfactuals) == "yes").all()


def test_a_row_outside_a_permitted_range_that_cannot_enter_it_says_so(explainer: FasterCE, refused: pd.DataFrame) -> None:
    rows = refused.head(3).assign(age=[50, 20, 51], job=["nurse", "nurse", "clerk"])
    aged = explainer.explain(rows, permitted_range={"age": (18, 40)})
    assert aged.status.tolist() == ["none_found", "found", "none_found"]
    sentence = "Column 'age' is 50, outside its permitted range, and may not change into it (row 0)."
    assert aged.reason.iloc[0].startswith(sentence)
    frozen = explainer.explain(rows, permitted_range={"job": ["nurse"]})
    assert frozen.status.tolist() == ["found", "found", "none_found"]
    assert "'job' is 'clerk'" in frozen.reason.iloc[2]
    unnamed = explainer.explain(rows.assign(income=1.0), permitted_range={"income": (5, 99)}, features_to_vary=["age"])
    assert set(unnamed.status) == {"none_found"}


@pytest.mark.parametrize("method", METHODS)
def test_entering_the_permitted_range_may_be_the_whole_counterfactual(training: pd.DataFrame, method: Any) -> None:
    nurses = fit(lambda frame: frame["job"].eq("nurse").to_numpy(), training)
    rows = training[training["job"] == "clerk"].head(5)
    result = nurses.explain(rows, method, features_to_vary=["job"], permitted_range={"job": ["nurse"]})
    assert (result.status == "found").all()
    assert (result.counterfactuals["job"] == "nurse").all()


@pytest.mark.parametrize("method", ["closest", "sparse"])
def test_entering_the_permitted_range_is_not_topped_up_with_needless_changes(training: pd.DataFrame, method: Any) -> None:
    young = fit(lambda frame: (frame["age"] <= 30).to_numpy(), training)
    rows = training[training["age"] > 40].head(5)
    long = young.explain(rows, method, permitted_range={"age": (18, 30)}).to_frame()
    assert long["changed"].tolist() == [["age"]] * 5
    assert long["age"].tolist() == [30] * 5


def test_whole_numbers_stay_whole_whoever_stands_beside() -> None:
    """A neighbour that cannot enter the permitted range must not change how others enter it."""
    frame = people().assign(age=lambda table: table["age"].astype(float))
    older = fit(approve, frame, Schema.infer(frame, increasing=["age"]))
    rows = frame[approve(frame) == "no"].head(2).assign(age=[75.0, 20.0])
    together = older.explain(rows, permitted_range={"age": (30.5, 60.5)})
    alone = older.explain(rows.iloc[[1]], permitted_range={"age": (30.5, 60.5)})
    assert together.status.tolist() == ["none_found", "found"]
    pd.testing.assert_frame_equal(together.counterfactuals.iloc[[1]], alone.counterfactuals, check_dtype=False)
    assert float(together.counterfactuals["age"].iloc[1]).is_integer()


@pytest.mark.parametrize(
    ("dtype", "limits", "permitted"),
    [
        ("int8", (0, 200), None),
        ("uint8", (-50, 100), None),
        ("uint8", None, (-5, 100)),
        ("int64", None, (0, 1e30)),
        ("Int64", None, (0, 1e30)),
        ("UInt8", (-50, 900), None),
    ],
)
def test_ranges_wider_than_the_columns_type_do_not_wrap_around(dtype: str, limits: Any, permitted: Any) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": pd.array(rng.integers(0, 100, 200), dtype=dtype), "y": rng.normal(size=200).round(2)})
    frame["x"] = frame["x"].astype(dtype)

    def strange(table: pd.DataFrame) -> np.ndarray:
        x = table["x"].to_numpy(dtype=float)
        return (x < 0) | (x > 150) | (table["y"] > 0).to_numpy()

    upward = ["x"] if dtype == "int8" else []
    schema = Schema.infer(frame, increasing=upward, immutable=["y"], ranges={"x": limits} if limits else None)
    rows = frame[frame["y"] <= 0].head(8)
    result = fit(strange, frame, schema).explain(rows, permitted_range={"x": permitted} if permitted else None)
    low, high = limits or permitted
    long = result.to_frame()
    assert len(long) + (result.status == "none_found").sum() == len(rows)
    for after, before in zip(long["x"], rows["x"].loc[long["query"]], strict=True):
        assert max(low, int(before) if upward else low) <= int(after) <= high


def test_thirty_two_bit_floats_keep_a_permitted_range_as_their_type_holds_it() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200).astype(np.float32), "y": rng.normal(size=200).round(2)})
    narrow = fit(lambda table: (table["y"] > 0).to_numpy(), frame)
    result = narrow.explain(frame.head(20), permitted_range={"x": (-0.1, 0.1)})
    assert (result.status == "found").all()
    assert result.counterfactuals["x"].dtype == np.float32
    assert result.counterfactuals["x"].between(np.float32(-0.1), np.float32(0.1)).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "closet"}, "method must be one of 'closest', 'sparse', 'realistic', 'all'; got 'closet'"),
        ({"engine": "papers"}, "Did you mean 'paper'?"),
        ({"n": 0}, "n must be a whole number from 1 to 100; got 0"),
        ({"n": 1.5}, "n must be a whole number"),
        ({"n": True}, "n must be a whole number"),
        ({"paper": {"step": 0}}, "paper.step must be a number"),
        ({"paper": {"step": float("nan")}}, "paper.step must be a number"),
        ({"margin": -1}, "margin must be a number of at least 0"),
        ({"margin": float("inf")}, "margin must be a number"),
        ({"margin": "far"}, "margin must be a number"),
        ({"features_to_vary": []}, "at least one column"),
        ({"features_to_vary": "income"}, "must be a list of column names"),
        ({"features_to_vary": ["incme"]}, "Did you mean 'income'?"),
        ({"features_to_vary": ["job"]}, "'job' cannot (schema: immutable)"),
        ({"permitted_range": {"incom": (0, 1)}}, "Did you mean 'income'?"),
        ({"permitted_range": {"income": (5, 4)}}, "must hold at least one value"),
        ({"permitted_range": {"income": (201, 300)}}, "inside the schema's [0, 200]"),
        ({"permitted_range": {"income": 5}}, "must be (low, high)"),
        ({"permitted_range": {"income": (1, 2, 3)}}, "must be (low, high)"),
        ({"permitted_range": {"income": (float("nan"), 3)}}, "must hold at least one value"),
        ({"permitted_range": {"age": (20.2, 20.8)}}, "must hold a whole number"),
        ({"permitted_range": {"grade": []}}, "must be a list of categories"),
        ({"permitted_range": {"grade": "high"}}, "must be a list of categories"),
        ({"permitted_range": {"grade": ["high", "hi"]}}, "must name known categories"),
    ],
)
def test_options_that_cannot_be_are_refused(
    explainer: FasterCE, refused: pd.DataFrame, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError) as caught:
        explainer.explain(refused, **options)
    assert words in sentence(caught)


# -- estimator manners -----------------------------------------------------------------------------------------------------


def test_get_params_and_clone(explainer: FasterCE, training: pd.DataFrame) -> None:
    params = explainer.get_params(deep=False)
    names = (
        "model",
        "schema",
        "random_state",
        "scores",
        "latent_dim",
        "autoencoder",
        "progress",
        "keep_rows",
        "compile",
        "task",
        "max_fit_rows",
        "max_fit_seconds",
        "config",
    )
    assert set(params) == set(names)
    assert params["model"] is approve
    compiled = clone(explainer)
    assert not hasattr(compiled, "state_")
    assert (compiled.random_state, compiled.schema) == (0, explainer.schema)
    rows = people(5, seed=4)
    pd.testing.assert_frame_equal(compiled.fit(training).explain(rows).to_frame(), explainer.explain(rows).to_frame())
    assert compiled.set_params(random_state=4).random_state == 4


def test_before_fit_everything_is_refused(tmp_path: Any, refused: pd.DataFrame) -> None:
    unfitted = FasterCE(approve)
    for ask in (unfitted.explain, unfitted.walk):
        with pytest.raises(NotFittedError) as caught:
            ask(refused)
        assert "fit(X_train)" in sentence(caught)
    with pytest.raises(NotFittedError):
        unfitted.save(tmp_path / "never")


def test_fit_infers_a_schema_and_reports(training: pd.DataFrame) -> None:
    learned = fit(approve, training, None)
    assert learned.fit(training) is learned
    assert learned.schema is None
    assert learned.schema_ == Schema.infer(training)
    assert learned.classes_ == ("no", "yes")
    assert "prediction hyperplane agrees" in str(learned.report_)


def test_another_seed_learns_another_sample(training: pd.DataFrame) -> None:
    one, two, again = (fit(approve, training, random_state=seed).state_.search for seed in (0, 1, 0))
    assert np.array_equal(one.hyperplanes.normals, again.hyperplanes.normals)
    assert not np.array_equal(one.hyperplanes.normals, two.hyperplanes.normals)


def test_the_global_random_state_is_left_alone(training: pd.DataFrame, refused: pd.DataFrame) -> None:
    np.random.seed(3)  # noqa: NPY002 - the legacy global state is what must not be touched
    random: Any = np.random
    before = random.get_state()[1].copy()
    FasterCE(approve, progress=False, config=Config.fast()).fit(training.head(60)).explain(refused)
    assert np.array_equal(random.get_state()[1], before)


def test_a_trained_fit_is_repeatable(training: pd.DataFrame, refused: pd.DataFrame) -> None:
    small = training.head(60)
    one, two = (
        FasterCE(approve, random_state=5, progress=False, config=Config.fast()).fit(small).explain(refused, "all")
        for _ in range(2)
    )
    pd.testing.assert_frame_equal(one.to_frame(), two.to_frame())


def test_your_own_autoencoder_is_used(training: pd.DataFrame, refused: pd.DataFrame) -> None:
    shapes: list[tuple[str, tuple[int, ...]]] = []

    def encode(matrix: np.ndarray) -> np.ndarray:
        shapes.append(("encode", matrix.shape))
        return matrix[:, :4]

    def decode(latent: np.ndarray) -> np.ndarray:
        shapes.append(("decode", latent.shape))
        return np.hstack([latent, np.zeros((len(latent), 10))])

    own = fit(approve, training, constraints(training), autoencoder=(encode, decode))
    assert own.report_.latent == 4
    assert own.report_.epochs == 0
    width = own.state_.search.codec.width
    assert width == 3 + 3 + 3 + 3 + 2
    shapes.clear()
    result = own.explain(refused, engine="paper")
    found = result.status == "found"
    assert found.any()
    assert (approve(result.counterfactuals[found].astype(refused.dtypes.to_dict())) == "yes").all()
    assert {kind for kind, _ in shapes} == {"encode", "decode"}
    assert all(len(shape) == 2 and shape[1] == (width if kind == "encode" else 4) for kind, shape in shapes)


# -- rows that come in -----------------------------------------------------------------------------------------------------


def spoilt(**changes: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def spoil(rows: pd.DataFrame) -> pd.DataFrame:
        rows = rows.copy()
        for name, value in changes.items():
            rows[name] = rows[name].astype(object)
            rows.loc[rows.index[2], name] = value
        return rows

    return spoil


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (spoilt(income=np.nan), "Column 'income' must not be missing (row 2)."),
        (spoilt(age=None), "Column 'age' must not be missing (row 2)."),
        (spoilt(job=None), "Column 'job' must not be missing"),
        (spoilt(grade=np.nan), "Column 'grade' must not be missing"),
        (spoilt(owner=pd.NA), "Column 'owner' must not be missing"),
        (spoilt(job="pilot"), "Column 'job' must be one of 'clerk', 'nurse', 'smith'; got 'pilot' (row 2)."),
        (spoilt(code=9), "Column 'code' must be one of 1, 2, 3; got 9 (row 2)."),
        (spoilt(income=-1.0), "Column 'income' must be within [0, 200]; got -1 (row 2)."),
        (spoilt(income=np.inf), "Column 'income' must be a finite number; got inf (row 2)."),
        (spoilt(income="fifty"), "Column 'income' must be a finite number; got 'fifty' (row 2)."),
        (spoilt(age=33.5), "Column 'age' must be a whole number; got 33.5 (row 2)."),
        (spoilt(age=10**30), "Column 'age' must be a whole number below 2**53; got 1000"),
        (spoilt(job="pilot", income=np.nan), "Column 'income' must not be missing"),
    ],
)
def test_one_bad_row_does_not_spoil_the_batch(explainer: FasterCE, refused: pd.DataFrame, spoil: Any, words: str) -> None:
    rows = spoil(refused)
    result = explainer.explain(rows)
    assert result.status.iloc[2] == "invalid_input"
    assert result.reason.iloc[2].startswith(words)
    assert pd.isna(result.prediction.iloc[2])
    assert result.counterfactuals.iloc[2].isna().all()
    others = [k for k in range(len(rows)) if k != 2]
    alone = explainer.explain(refused.iloc[others])
    assert result.status.iloc[others].tolist() == alone.status.tolist() == ["found"] * len(others)
    found = result.counterfactuals.iloc[others].astype(refused.dtypes.to_dict())
    pd.testing.assert_frame_equal(found, alone.counterfactuals)


@pytest.mark.parametrize("method", [*METHODS, "all"])
@pytest.mark.parametrize("engine", ["hybrid", "latent", "paper"])
def test_nothing_to_explain_gives_an_empty_result(
    explainer: FasterCE, refused: pd.DataFrame, method: Any, engine: Any
) -> None:
    result = explainer.explain(refused.iloc[:0], method, engine=engine)
    assert len(result) == len(result.status) == len(result.to_frame()) == 0
    assert result.counterfactuals.dtypes.equals(refused.dtypes)
    assert result.usage.calls == 0
    assert "0 rows" in repr(result)


def test_a_trained_explainer_explains_nothing_too(trained: FasterCE, refused: pd.DataFrame) -> None:
    assert len(trained.explain(refused.iloc[:0])) == 0


@pytest.mark.parametrize("method", [*METHODS, "all"])
def test_a_batch_without_a_row_to_search_for_is_explained(explainer: FasterCE, refused: pd.DataFrame, method: Any) -> None:
    assert set(explainer.explain(refused.assign(job="pilot"), method).status) == {"invalid_input"}
    assert set(explainer.explain(refused, method, target="no").status) == {"already_target"}
    assert set(explainer.explain(refused.assign(age=70), method, permitted_range={"age": (1, 60)}).status) == {"none_found"}


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda rows: rows.drop(columns="age"), "rows must have the columns of the schema; missing 'age'."),
        (lambda rows: rows.rename(columns={"age": "ages"}), "missing 'age' (and has the unexpected 'ages')"),
        (lambda rows: rows.assign(agee=1), "Did you mean 'age'?"),
        (lambda rows: pd.concat([rows, rows[["age"]]], axis=1), "unique column names; got 'age' more than once"),
        (lambda rows: rows.to_numpy()[:, :2], "rows must be an array with one column per feature"),
        (lambda rows: rows.iloc[0].drop("age"), "rows must have the columns of the schema; missing 'age'."),
        (lambda rows: None, "list of dictionaries or a NumPy array; got NoneType"),
    ],
)
def test_tables_that_are_no_rows_of_this_schema_are_refused(
    explainer: FasterCE, refused: pd.DataFrame, spoil: Any, words: str
) -> None:
    with pytest.raises(SchemaError if "NoneType" in words or "unique" in words else InputError) as caught:
        explainer.explain(spoil(refused))
    assert words in sentence(caught)


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(6),
        pd.Index([3, 3, 1, 1, 1, 0]),
        pd.date_range("2024-01-01", periods=6),
        pd.MultiIndex.from_product([["a", "b"], [1, 2, 3]], names=["one", "two"]),
        pd.Index([0.5, 1.5, 2.5, 3.5, 4.5, 5.5], name="half"),
        pd.CategoricalIndex(list("abcabc")),
    ],
)
def test_any_index_is_kept(explainer: FasterCE, refused: pd.DataFrame, index: pd.Index) -> None:
    rows = refused.head(6).set_axis(index)
    rows.iloc[4, rows.columns.get_loc("income")] = np.nan
    result = explainer.explain(rows, n=2)
    for part in (result.counterfactuals, result.status, result.reason, result.prediction, result.target):
        assert part.index.equals(index)
        assert part.index.names == index.names
    plain = explainer.explain(refused.head(6).reset_index(drop=True).mask(rows.isna().to_numpy()), n=2)
    long = result.to_frame()
    assert long["query"].tolist() == [index[k] for k in plain.to_frame()["query"]]
    assert long["distance"].tolist() == plain.to_frame()["distance"].tolist()


def test_column_order_and_types_of_the_query_come_back(explainer: FasterCE, refused: pd.DataFrame) -> None:
    rows = refused[refused.columns[::-1]].astype(
        {"age": "Int32", "income": "Float64", "job": "category", "grade": object, "code": np.int16, "owner": "boolean"}
    )
    result = explainer.explain(rows)
    assert list(result.counterfactuals.columns) == list(rows.columns)
    assert result.counterfactuals.dtypes.equals(rows.dtypes)
    as_usual = explainer.explain(refused).counterfactuals
    for name in refused.columns:
        assert result.counterfactuals[name].astype(object).tolist() == as_usual[name].astype(object).tolist()


def test_the_query_is_not_modified_and_not_shared(explainer: FasterCE, refused: pd.DataFrame) -> None:
    rows = refused.copy(deep=True)
    result = explainer.explain(rows, "all", n=2)
    result.counterfactuals.loc[:, "income"] = -1.0
    pd.testing.assert_frame_equal(rows, refused)
    rows["income"] = 0.0
    assert (result.rows["income"] == refused["income"]).all()
    assert (result.to_frame()["income"] > 0).all()


def test_a_query_finer_than_the_training_type_is_explained_truly() -> None:
    """Trained on 32-bit floats, asked with a 64-bit 0.1: what comes back must flip the model as it stands there."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200).astype(np.float32), "y": rng.normal(size=200).round(2)})

    def model(table: pd.DataFrame) -> np.ndarray:
        return ((table["x"].astype(np.float64) > 0.1) & (table["y"] > 0)).to_numpy()

    rows = pd.DataFrame({"x": [0.1], "y": [-1.0]})
    result = fit(model, frame).explain(rows, features_to_vary=["y"])
    if result.status.iloc[0] == "found":
        assert model(result.counterfactuals).tolist() == [True]
    assert model(rows).tolist() == [False]


def test_whole_numbers_too_large_for_a_float_are_passed_through() -> None:
    """Beyond 2**53 two ids may share one float: what is verified would not be what is returned."""
    frame = pd.DataFrame({"id": np.arange(2**53 + 1, 2**53 + 101), "y": np.linspace(-1, 1, 100).round(2)})
    explainer = fit(lambda table: (table["y"] > 0).to_numpy(), frame)
    result = explainer.explain(frame.head(3))
    assert explainer.schema_.passthrough == ("id",)
    assert result.counterfactuals["id"].tolist() == frame["id"].head(3).tolist()
    declared = Schema((Feature("id", "numeric", integer=True), Feature("y", "numeric", decimals=2)))
    with pytest.raises(InputError) as caught:
        FasterCE(lambda table: (table["y"] > 0).to_numpy(), declared, progress=False).fit(frame)
    assert "Column 'id' must be a whole number below 2**53" in sentence(caught)


# -- tables that come into fit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda rows: rows.iloc[:0], "at least"),
        (lambda rows: rows.iloc[:5], "X must have at least 10 rows; got 5."),
        (lambda rows: rows[[]], "X must have at least one column."),
        (lambda rows: [1, 2], "list of dictionaries or a NumPy array; got list."),
        (lambda rows: pd.concat([rows, rows], axis=1), "unique column names"),
        (lambda rows: rows.assign(income=rows["income"].replace(rows["income"].iloc[3], np.inf)), "got inf (row 3)"),
        (lambda rows: rows.assign(job=[[1]] * len(rows)), "Column 'job'"),
    ],
)
def test_training_tables_that_cannot_be_are_refused(training: pd.DataFrame, spoil: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        fit(approve, spoil(training))
    assert words in sentence(caught)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda rows: rows.drop(columns="age"), "missing 'age'"),
        (lambda rows: rows.assign(more=1), "Unknown column 'more'"),
        (lambda rows: rows.assign(job="pilot"), "X has 300 rows that cannot be used; the first: Column 'job' must be one of"),
        (lambda rows: rows.assign(income=-5.0), "must be within [0, 200]; got -5 (row 0)"),
        (lambda rows: rows.assign(income=rows["income"].where(rows["income"] < 60)), "Column 'income' must not be missing"),
    ],
)
def test_training_tables_that_contradict_the_schema_are_refused(training: pd.DataFrame, spoil: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        fit(approve, spoil(training), constraints(training))
    assert words in sentence(caught)


def test_a_constant_column_is_harmless_and_never_changes(training: pd.DataFrame, refused: pd.DataFrame) -> None:
    flat = {"tax": 7, "rate": 0.25, "land": "here", "flag": True}
    result = fit(approve, training.assign(**flat)).explain(refused.assign(**flat), "all", n=2)
    assert set(result.status) == {"found"}
    long = result.to_frame()
    assert {(line.tax, line.rate, line.land) for line in long.itertuples()} == {(7, 0.25, "here")}


@pytest.mark.parametrize("last", [True, False])
def test_a_column_constant_in_training_may_differ_in_the_rows(
    training: pd.DataFrame, refused: pd.DataFrame, last: bool
) -> None:
    place = training.shape[1] if last else 0
    constant, odd = training.copy(), refused.head(4).copy()
    constant.insert(place, "year", 2020.0)
    odd.insert(place, "year", [2020.0, 2021.0, 1900.0, 2020.5])
    result = fit(approve, constant).explain(odd)
    assert (result.status == "found").all()
    assert (result.counterfactuals["year"] == odd["year"]).all()


def test_a_table_of_one_column_is_enough() -> None:
    numbers = pd.DataFrame({"x": np.linspace(0, 1, 50).round(3)})
    result = fit(lambda frame: (frame["x"] > 0.6).to_numpy(), numbers).explain(numbers, "all")
    assert (result.status == "found").all()
    assert ((result.counterfactuals["x"] > 0.6) != (numbers["x"] > 0.6)).all()
    words = pd.DataFrame({"w": ["a", "b", "c"] * 20})
    result = fit(lambda frame: (frame["w"] == "c").to_numpy(), words).explain(words.head(3))
    assert ((result.counterfactuals["w"] == "c") != (words["w"].head(3) == "c")).all()


def test_a_category_seen_by_nobody_does_not_upset_the_model(training: pd.DataFrame, refused: pd.DataFrame) -> None:
    """Unused levels are what a filter leaves behind; a one-hot encoder fitted on the data has never heard of them."""
    levels = [*GRADES, "unused"]

    def strict(frame: pd.DataFrame) -> np.ndarray:
        if (frame["grade"] == "unused").any():
            raise ValueError("Found unknown categories ['unused']")
        return approve(frame)

    wide, rows = (frame.assign(grade=frame["grade"].cat.set_categories(levels)) for frame in (training, refused))
    result = fit(strict, wide).explain(rows)
    assert (result.status == "found").all()
    assert result.usage.calls <= 12


# -- models that misbehave -------------------------------------------------------------------------------------------------


def raising(frame: pd.DataFrame) -> Any:
    raise ZeroDivisionError("out of order")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (raising, "The model raised ZeroDivisionError: out of order"),
        (lambda frame: ["yes"], "one prediction per row; got an array of shape (1,) for 300 rows."),
        (lambda frame: "yes", "one prediction per row; got an array of shape () for 300 rows."),
        (lambda frame: None, "one prediction per row; got an array of shape ()"),
        (lambda frame: np.full(len(frame), np.nan), "must return a label for every row; got a missing one."),
        (lambda frame: np.zeros((len(frame), 2)), "one prediction per row; got an array of shape (300, 2) for 300 rows."),
        (lambda frame: frame["income"].to_numpy(), "must return class labels; got"),
        (lambda frame: ["yes"] * len(frame), "must predict at least two classes; got 'yes'"),
    ],
)
def test_models_that_cannot_be_explained_are_refused_in_fit(training: pd.DataFrame, model: Any, words: str) -> None:
    with pytest.raises(ModelError) as caught:
        fit(model, training)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_model_that_is_none_is_refused(training: pd.DataFrame) -> None:
    with pytest.raises(InputError) as caught:
        fit(17, training)
    assert "model must have a predict method or be callable; got int." in sentence(caught)


def test_a_declared_class_list_must_hold_the_labels(training: pd.DataFrame) -> None:
    class Liar:
        classes_ = np.array(["maybe", "never"])

        def predict(self, frame: pd.DataFrame) -> np.ndarray:
            return approve(frame)

    with pytest.raises(ModelError, match=r"must return one of 'maybe', 'never'; got '(no|yes)'\.$"):
        fit(Liar(), training)


class Moody:
    """Says what `approve` says until told otherwise."""

    def __init__(self, scores: bool) -> None:
        self.mood: Callable[[pd.DataFrame, Any], Any] = lambda frame, answer: answer
        if scores:
            self.classes_ = np.array(["no", "yes"])
            self.predict_proba = self._chances

    def predict(self, frame: pd.DataFrame) -> Any:
        return self.mood(frame, approve(frame))

    def _chances(self, frame: pd.DataFrame) -> Any:
        chance = 1 / (1 + np.exp(-(points(frame) - 82) / 5))
        return self.mood(frame, np.stack([1 - chance, chance], axis=1))


def fails_on(wrong: Callable[[pd.DataFrame], np.ndarray], how: str) -> Callable[[pd.DataFrame, Any], Any]:
    def mood(frame: pd.DataFrame, answer: Any) -> Any:
        bad = wrong(frame)
        if how == "raises" and bad.any():
            raise RuntimeError("no comment")
        if how == "missing":
            answer = answer.astype(object if answer.ndim == 1 else float)
            answer[bad] = np.nan
        if how == "stranger" and answer.ndim == 1:
            answer = np.where(bad, "perhaps", answer)
        return answer[:-1] if how == "short" and bad.any() else answer

    return mood


@pytest.mark.parametrize("scores", [False, True])
@pytest.mark.parametrize("how", ["raises", "missing", "short", "stranger"])
def test_a_model_that_fails_on_one_row_fails_for_that_row_only(
    training: pd.DataFrame, refused: pd.DataFrame, scores: bool, how: str
) -> None:
    model = Moody(scores)
    moody = fit(model, training, constraints(training))
    rows = refused.assign(age=[19, *range(30, 41)])
    usual = moody.explain(rows)
    model.mood = fails_on(lambda frame: (frame["age"] == 19).to_numpy(), how)
    result = moody.explain(rows)
    assert result.status.tolist() == ["model_error", *["found"] * 11]
    assert result.reason.iloc[0].startswith("The model ")
    assert result.counterfactuals.iloc[0].isna().all()
    pd.testing.assert_frame_equal(
        result.counterfactuals.iloc[1:].astype(rows.dtypes.to_dict()), usual.counterfactuals.iloc[1:]
    )


@pytest.mark.parametrize("scores", [False, True])
@pytest.mark.parametrize("how", ["raises", "missing", "short", "stranger"])
def test_a_model_that_fails_altogether_gives_every_row_a_status(
    training: pd.DataFrame, refused: pd.DataFrame, scores: bool, how: str
) -> None:
    model = Moody(scores)
    moody = fit(model, training, constraints(training))
    model.mood = fails_on(lambda frame: np.ones(len(frame), dtype=bool), how)
    result = moody.explain(refused, "all")
    assert set(result.status) == {"model_error"}
    assert (result.reason != "").all()
    assert len(result.to_frame()) == 0


def test_good_rows_are_explained_among_many_bad_ones(training: pd.DataFrame) -> None:
    """Half of a large batch makes the model raise: the other half gets what it would get alone."""
    model = Moody(False)
    moody = fit(model, training, Schema.infer(training, immutable=["code"]))
    rows = people(120, seed=8)
    model.mood = fails_on(lambda frame: (frame["code"] == 2).to_numpy(), "raises")
    bad = (rows["code"] == 2).to_numpy()
    result = moody.explain(rows)
    assert (result.status[bad] == "model_error").all()
    alone = moody.explain(rows[~bad])
    assert (result.status[~bad] == alone.status).all()


def test_candidates_the_model_fails_on_are_only_passed_over(training: pd.DataFrame, refused: pd.DataFrame) -> None:
    model = Moody(False)
    moody = fit(model, training, constraints(training))
    model.mood = fails_on(lambda frame: (frame["income"] > 100).to_numpy(), "missing")
    result = moody.explain(refused)
    assert (result.status == "found").all()
    assert (result.counterfactuals["income"] <= 100).all()


def test_scores_that_part_from_the_labels_do_not_decide(training: pd.DataFrame) -> None:
    """Labels cut at 0.5005, scores at 0.5: a row in between is what its label says, and so is its answer."""

    class Cut:
        classes_ = np.array([0, 1])

        def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
            chance = 1 / (1 + np.exp(-frame["x"].to_numpy()))
            return np.stack([1 - chance, chance], axis=1)

        def predict(self, frame: pd.DataFrame) -> np.ndarray:
            return (self.predict_proba(frame)[:, 1] > 0.5005).astype(int)

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(0, 3, 300), "y": rng.normal(size=300)})
    rows = pd.DataFrame({"x": [0.001, 0.0015, 1.0], "y": [0.0, 0.0, 0.0]})
    cut = fit(Cut(), frame)
    assert cut.state_.use_scores
    result = cut.explain(rows)
    assert result.prediction.tolist() == Cut().predict(rows).tolist() == [0, 0, 1]
    found = (result.status == "found").to_numpy()
    assert found.any()
    assert (Cut().predict(result.counterfactuals[found]) != Cut().predict(rows[found])).all()


def test_a_model_that_scribbles_on_its_table_does_not_spoil_ours(training: pd.DataFrame, refused: pd.DataFrame) -> None:
    def scribbler(frame: pd.DataFrame) -> np.ndarray:
        answer = approve(frame)
        frame["income"] = 0.0
        frame.pop("job")
        return answer

    before, rows = training.copy(deep=True), refused.copy(deep=True)
    result = fit(scribbler, training, constraints(training)).explain(refused)
    pd.testing.assert_frame_equal(training, before)
    pd.testing.assert_frame_equal(refused, rows)
    assert (result.status == "found").all()
    assert (approve(result.counterfactuals) == "yes").all()


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"total_CFs": 3}, "total_CFs of DiCE is n here."),
        ({"desired_class": 1}, 'desired_class of DiCE is target here (leave it out for DiCE\'s "opposite").'),
        ({"desired_range": [0, 1]}, "desired_range of DiCE is target here."),
        ({"targt": 1}, "Did you mean 'target'?"),
    ],
)
def test_the_error_for_names_of_dice_and_misspelt_ones_names_ours(
    explainer: FasterCE, refused: pd.DataFrame, option: dict[str, Any], words: str
) -> None:
    with pytest.raises(TypeError) as caught:
        explainer.explain(refused, **option)
    assert isinstance(caught.value, InputError)
    assert words in str(caught.value)


def test_the_target_of_the_schema_is_the_default_and_never_turns() -> None:
    """Without a declaration two classes turn into each other; with one, a row that has the wanted class needs nothing."""
    frame = people(200)

    def decide(rows: pd.DataFrame) -> Any:
        return np.where(rows["income"] > 50, "good", "bad")

    fast: dict[str, Any] = {"random_state": 0, "config": Config.fast()}
    schema = Schema.infer(frame)
    open_ended = FasterCE(decide, schema, **fast).fit(frame)
    assert open_ended.declared_target is None
    assert set(open_ended.explain(frame.head(20)).target) == {"good", "bad"}
    for declared in ({"target": "good"}, {"unwanted": ["bad"]}):
        explainer = FasterCE(decide, schema.declare(**declared), **fast).fit(frame)
        found = explainer.explain(frame.head(20))
        assert set(found.target) == {"good"}
        assert list(found.status == "already_target") == list(decide(frame.head(20)) == "good")
        assert found.options["target"] == "good", "the record says what was aimed at"
        other = explainer.explain(frame.head(20), target="any other")
        assert (other.target != other.prediction).all()


# -- mistakes of a first afternoon -----------------------------------------------------------------------------------------


def test_a_class_is_no_model(training: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="must be a fitted model; got the class LogisticRegression itself"):
        fit(LogisticRegression, training)


@pytest.mark.parametrize("labels", [np.array(["yes", "no"] * 20), pd.Series(["yes", "no"] * 20)])
def test_labels_are_no_training_rows(labels: Any) -> None:
    with pytest.raises(InputError, match="X must be a table of training rows; got a single row or column"):
        fit(approve, labels)


def test_numbers_as_text_that_the_model_reads_are_named() -> None:
    frame = people(100).assign(income=lambda rows: rows["income"].astype(str))
    with (
        pytest.warns(SchemaWarning, match="Column 'income' holds numbers as text"),
        pytest.raises(ModelError, match="it reads 'income', which is passed through") as caught,
    ):
        fit(lambda rows: np.where(rows["income"].astype(float) > 50, "yes", "no"), frame)
    sentence(caught)


def test_numbers_in_a_column_of_objects_are_named() -> None:
    frame = people(60)[["age", "income"]].astype(object)
    with pytest.warns(SchemaWarning, match=r"X\['income'\] = pd.to_numeric\(X\['income'\]\)"):
        Schema.infer(frame)


def test_whole_numbers_that_no_float_holds_are_passed_through() -> None:
    frame = people(60)[["age", "income"]].assign(account=[10**30 + k for k in range(60)])
    with pytest.warns(SchemaWarning, match="beyond 2\\*\\*53"):
        assert Schema.infer(frame).passthrough == ("account",)


# -- advice about an inferred schema ---------------------------------------------------------------------------------------


def test_fit_without_a_schema_warns_once_with_lines_that_settle_it() -> None:
    frame = pd.get_dummies(people(120).drop(columns=["grade", "weight"]), columns=["job"])
    with pytest.warns(SchemaWarning) as warned:
        fit(lambda rows: np.where(rows["income"] > 50, "yes", "no"), frame)
    (text,) = [str(one.message) for one in warned if one.category is SchemaWarning]
    assert warned[0].filename == __file__
    assert "'job_clerk', 'job_nurse', 'job_smith' are one category in one-hot form" in text
    assert "Column 'age' may fall" in text
    assert "explainer.report_" in text
    names: dict[str, Any] = {"X": frame}
    exec(text.partition("resolves all of them.")[2], names)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SchemaWarning)
        explainer = fit(lambda rows: np.where(rows["income"] > 50, "yes", "no"), frame, names["schema"])
    assert explainer.report_.advice == []


def test_boolean_dummies_stay_one_hot_in_counterfactuals() -> None:
    frame = pd.get_dummies(people(300).drop(columns=["grade", "weight"]), columns=["job"])
    dummies = ["job_clerk", "job_nurse", "job_smith"]

    def model(rows: pd.DataFrame) -> np.ndarray:
        return np.where(rows["job_nurse"].to_numpy() & (rows["code"] < 3).to_numpy(), "yes", "no")

    refused = frame[model(frame) == "no"].head(30)
    with_line = Schema.infer(frame, increasing=["age"], constraints=[Require("job_clerk + job_nurse + job_smith == 1")])
    found = fit(model, frame, with_line).explain(refused, features_to_vary=[*dummies, "code"]).counterfactuals
    assert (model(found) == "yes").all()
    assert (found[dummies].sum(axis=1) == 1).all()
    assert (found.dtypes == frame.dtypes).all()


def test_a_result_read_late_is_that_of_its_call(training: pd.DataFrame) -> None:
    """The columns of a result are made when they are first read: from nothing that may change until then."""
    rows = people(20, seed=5)
    explainer = fit(approve, training, constraints(training))
    read, late, stored = (explainer.explain(rows) for _ in range(3))
    names = ("status", "reason", "prediction", "target", "score")
    expected = {name: getattr(read, name).copy() for name in names}
    stored = pickle.loads(pickle.dumps(stored))
    explainer.model = grade_three
    explainer.fit(training)
    rows.index = [f"other {k}" for k in range(len(rows))]
    rows["income"] = 0.0
    for name in names:
        pd.testing.assert_series_equal(getattr(late, name), expected[name])
        pd.testing.assert_series_equal(getattr(stored, name), expected[name])
        assert getattr(late, name) is getattr(late, name)
