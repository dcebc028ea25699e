"""What `fit` makes: settings it refuses, samples for every class, and a report that tells good pieces from bad ones."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from fasterce import FasterCE, Schema
from fasterce.config import Config, FitConfig
from fasterce.errors import InputError, SchemaError
from fasterce.fitting import pipeline
from fasterce.fitting.report import FitReport
from fasterce.fitting.validate import read_training_rows
from fasterce.latent.sampling import Samples
from fasterce.options import FitOptions

IDENTITY = (lambda matrix: matrix, lambda latent: latent)


def settings(**changes: Any) -> FitOptions:
    usual: dict[str, Any] = {
        "random_state": 0,
        "scores": "auto",
        "latent_dim": None,
        "autoencoder": IDENTITY,
        "progress": False,
    }
    return FitOptions(**usual | changes)


def plane(rows: int = 500, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.normal(size=rows).round(3),
            "b": rng.normal(size=rows).round(3),
            "n": rng.integers(0, 20, rows),
            "c": rng.choice(["x", "y", "z"], rows, p=[0.6, 0.3, 0.1]),
        }
    )


def linear(frame: pd.DataFrame) -> np.ndarray:
    total = frame["a"] - frame["b"] + 0.1 * (frame["n"] - 10) + (frame["c"] == "z")
    return np.where(total.to_numpy() > 0.2, "high", "low")


def rare(frame: pd.DataFrame) -> np.ndarray:
    return np.where((frame["a"] > 2.2).to_numpy(), "rare", "usual")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scores": "always"}, "scores must be one of 'auto', 'never'; got 'always'."),
        ({"random_state": None}, "random_state must be a whole number of at least 0; got None."),
        ({"random_state": -1}, "at least 0; got -1."),
        ({"random_state": 1.0}, "whole number"),
        ({"random_state": True}, "whole number"),
        ({"latent_dim": 0}, "latent_dim must be a whole number of at least 1; got 0."),
        ({"latent_dim": 2.5}, "got 2.5."),
    ],
)
def test_settings_are_checked_before_the_model_is_called(changes: dict[str, Any], words: str) -> None:
    def never(frame: pd.DataFrame) -> Any:
        raise AssertionError("the model was asked")

    with pytest.raises(InputError) as caught:
        pipeline.learn(never, plane(), None, settings(**changes))
    assert words in str(caught.value)


def test_numpy_whole_numbers_are_fine_as_settings() -> None:
    given = settings(random_state=np.int64(3), latent_dim=np.int32(2))
    assert (given.random_state, given.latent_dim) == (3, 2)


@pytest.mark.parametrize(
    ("encode", "decode", "words"),
    [
        (lambda m: m[0], lambda z: z, "encode must return one latent row per row"),
        (lambda m: m[:3], lambda z: z, "encode must return one latent row per row, 10 of them; got shape (3, 6)."),
        (lambda m: m, lambda z: z[:, :2], "decode must return shape (10, 6); got (10, 2)."),
    ],
)
def test_an_autoencoder_of_the_wrong_shape_is_refused(encode: Any, decode: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        pipeline.learn(linear, plane(), None, settings(autoencoder=(encode, decode)))
    assert words in str(caught.value)


def test_an_autoencoder_that_loses_numbers_is_refused() -> None:
    """NaN from a user's own encoder must end in a sentence, not in a crash somewhere in the algebra."""
    with pytest.raises(InputError, match=r"autoencoder"):
        pipeline.learn(linear, plane(), None, settings(autoencoder=(lambda m: m * np.nan, lambda z: z)))


@pytest.fixture(scope="module")
def trained() -> FasterCE:
    return FasterCE(linear, progress=False).fit(plane())


def test_the_report_of_a_linear_problem_is_good(trained: FasterCE) -> None:
    report = trained.report_
    assert report.agreement > 0.85 > report.agreement_base + 0.2
    features = report.features
    assert list(features.index) == ["a", "b", "n", "c"]
    assert list(features["measure"]) == ["R²", "R²", "R²", "accuracy"]
    assert (features["reconstruction"] > [0.9, 0.9, 0.9, 0.95]).all()
    assert (features["hyperplane"].iloc[:3] > 0.6).all()
    assert (features["reconstruction"] > features["base"]).all()
    assert features.loc["c", "base"] == pytest.approx(0.6, abs=0.1)
    assert 1 <= report.epochs <= 200
    assert report.latent == 4
    assert report.seconds > 0
    assert not report.scores


def test_the_report_tells_a_bad_autoencoder_from_a_good_one() -> None:
    good = pipeline.learn(linear, plane(), None, settings()).report
    blind = (lambda m: m[:, [1, 2]], lambda z: np.hstack([np.zeros((len(z), 1)), z, np.zeros((len(z), 3))]))
    bad = pipeline.learn(linear, plane(), None, settings(autoencoder=blind)).report
    assert good.features["reconstruction"].tolist() == pytest.approx([1.0] * 4)
    assert bad.features.loc["a", "reconstruction"] < 0.05
    assert bad.features.loc["b", "reconstruction"] == pytest.approx(1.0)
    assert bad.agreement < good.agreement - 0.1
    assert good.agreement > 0.9
    assert good.agreement_base == pytest.approx(max((linear(plane()) == label).mean() for label in ("high", "low")))


def test_the_report_is_the_same_after_a_dictionary_and_prints(trained: FasterCE) -> None:
    report = trained.report_
    again = FitReport.from_dict(report.to_dict())
    pd.testing.assert_frame_equal(again.features, report.features, check_index_type=False)
    assert (again.agreement, again.calls, again.latent) == (report.agreement, report.calls, report.latent)
    for words in ("R²", "accuracy", "agrees with the model on", "4 latent dimensions", "the search uses labels"):
        assert words in str(report)


@pytest.mark.parametrize("few", [True, False])
def test_a_rare_class_has_its_rows_as_examples_and_samples_where_these_are_too_few(few: bool) -> None:
    frame = plane(800)
    seldom = rare(frame) == "rare"
    assert 0 < seldom.mean() < 0.03
    if few:
        frame = pd.concat([frame[~seldom], frame[seldom].head(FitConfig().rare_class_rows - 1)]).reset_index(drop=True)
    learned = pipeline.learn(rare, frame, None, settings())
    assert learned.classes == ("rare", "usual")
    of_rare = learned.search.example_classes == 0
    assert of_rare.sum() > 300 if few else of_rare.sum() == seldom.sum()
    examples = learned.table.frame(learned.search.examples)
    assert (rare(examples) == np.where(of_rare, "rare", "usual")).all()
    assert learned.report.agreement > 0.9


def test_examples_keep_declared_ranges_and_precision() -> None:
    schema = Schema.infer(plane(), ranges={"a": (-5, 5), "n": (0, 19)})
    state = pipeline.learn(linear, plane(), schema, settings()).search
    assert state.examples[:, 0].min() >= -5
    assert state.examples[:, 0].max() <= 5
    assert set(state.examples[:, 2]) <= set(range(20))
    assert set(state.examples[:, 3]) <= {0, 1, 2}
    np.testing.assert_allclose(state.examples[:, 1], state.examples[:, 1].round(3), atol=1e-12)
    assert state.typical.shape == (2,)
    assert (state.typical > 0).all()


def test_fit_evaluates_a_bounded_number_of_rows_in_few_calls() -> None:
    config = Config(fit=FitConfig(evaluated_rows=100))
    sizes: list[int] = []

    def model(frame: pd.DataFrame) -> np.ndarray:
        sizes.append(len(frame))
        return linear(frame)

    report = pipeline.learn(model, plane(), None, settings(config=config)).report
    assert sizes[0] == config.fit.timed_rows[0]
    assert sizes.count(100) <= 2, "training rows are evaluated once, after at most one timed call of the same size"
    assert (len(sizes), sum(sizes)) == (report.calls, report.model_rows)
    assert len(sizes) <= 9


def test_numbers_too_large_to_square_are_refused_by_name() -> None:
    frame = plane(30)
    frame.loc[3, "b"] = 1e200
    with pytest.raises(InputError, match=r"^Column 'b' must hold numbers of at most 1e\+30"):
        pipeline.learn(linear, frame, None, settings())


def test_a_class_that_only_samples_meet_is_learned() -> None:
    """Training rows show one class, samples between them another."""
    frame = plane(60)

    def island(table: pd.DataFrame) -> np.ndarray:
        unseen = ~table["a"].isin(frame["a"]).to_numpy() & (table["b"] > 0).to_numpy()
        return np.where(unseen, "new", "known")

    learned = pipeline.learn(island, frame, None, settings())
    assert learned.classes == ("known", "new")
    assert (learned.search.example_classes == 1).any()


def test_the_latent_size_is_the_users_or_one_a_feature() -> None:
    small = plane(80)
    assert FasterCE(linear, latent_dim=3, progress=False).fit(small).report_.latent == 3
    assert FasterCE(linear, progress=False).fit(small[["a", "b", "n", "c"]]).report_.latent == 4


def test_training_rows_are_read_once_and_refused_with_the_first_reason() -> None:
    frame = plane(20)
    table, _, codes = read_training_rows(frame, None)
    assert codes.shape == (20, 4)
    assert table.schema == Schema.infer(frame)
    with pytest.raises(InputError, match=r"X has 2 rows that cannot be used; the first: Column 'c' .* \(row 4\)"):
        read_training_rows(frame.assign(c=frame["c"].where(~frame.index.isin([4, 9]))), Schema.infer(frame))


def crossed(frame: pd.DataFrame) -> np.ndarray:
    return np.where((frame["a"] > 0) == (frame["b"] > 0), "same", "mixed")


def test_walks_cross_a_boundary_no_single_plane_describes() -> None:
    """The two outcomes lie crosswise: each row's walk goes by the hyperplane of its own region."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, (800, 2)).round(3), columns=["a", "b"])
    explainer = FasterCE(crossed, autoencoder=IDENTITY, progress=False).fit(frame)
    report = explainer.report_
    assert report.regions > 1
    assert report.agreement_one_plane < 0.75
    assert report.agreement_by_region > 0.9
    assert f"{report.regions} latent regions: right on 9" in str(report)
    # Beside an axis and away from the other one, the nearest boundary is plain.
    beside = pd.DataFrame({"a": [0.15, -0.15, 0.7, -0.7], "b": [0.7, -0.7, -0.15, 0.15]})
    walks = [explainer.walk(beside.iloc[[i]]) for i in range(len(beside))]
    assert all(walk.flip >= 0 for walk in walks)
    assert all(walk.height[0] < 0 for walk in walks), "on the wrong side of its own plane before it walks"
    result = explainer.explain(beside)
    assert (result.status == "found").all()
    assert (crossed(result.counterfactuals) != crossed(beside)).all()
    assert (np.abs(result.counterfactuals.to_numpy(dtype=float) - beside.to_numpy()).sum(axis=1) < 0.4).all()


def test_a_linear_problem_keeps_one_region() -> None:
    learned = pipeline.learn(linear, plane(), None, settings())
    assert learned.report.regions == len(learned.search.regions) == 1
    assert learned.report.agreement_one_plane == learned.report.agreement_by_region > 0.85
    assert "one latent region: its hyperplane is right on" in str(learned.report)


def test_samples_remember_the_row_they_were_drawn_around() -> None:
    codes, latent = np.zeros((4, 1)), np.zeros((4, 2))
    origins = pipeline._origins(Samples(latent, codes, codes, np.array([0, 2, -1, -1])), np.array([7, 8, 9]))
    np.testing.assert_array_equal(origins, [7, 9, -3, -4])


def test_rows_the_model_has_no_score_for_are_left_out() -> None:
    class Patchy:
        classes_ = np.array(["high", "low"])

        def predict(self, frame: pd.DataFrame) -> Any:
            return linear(frame)

        def predict_proba(self, frame: pd.DataFrame) -> Any:
            chance = np.where(linear(frame) == "high", 0.9, 0.1)
            chance[(frame["a"] == 2.12345).to_numpy()] = np.nan
            return np.stack([chance, 1 - chance], axis=1)

    frame = plane(1500)
    frame.loc[1400, "a"] = 2.12345
    learned = pipeline.learn(Patchy(), frame, None, settings())
    assert learned.use_scores
    assert set(learned.search.example_classes) == {0, 1}
    assert learned.statistics.classes.sum() == 1499
    assert 0.5 < learned.report.agreement <= 1


@pytest.mark.parametrize(
    ("model", "target", "words"),
    [
        (linear, "hihg", "The target of the schema must be a class of the model, one of 'high', 'low'; got 'hihg'."),
        (linear, (0.0, None), "must be a class of the model"),
        (LinearRegression(), "high", "The target of a schema must be a class or (low, high)"),
    ],
)
def test_a_declared_target_the_model_cannot_predict_is_refused(model: Any, target: Any, words: str) -> None:
    X = plane()
    if not callable(model):
        X = X.drop(columns="c")
        model = model.fit(X, X["a"])
    schema = Schema.infer(X).declare(target=target)
    with pytest.raises(SchemaError, match=re.escape(words)):
        FasterCE(model, schema, progress=False, config=Config.fast()).fit(X)
