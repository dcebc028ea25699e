"""Whether answers hold when the input is noisy or the model fitted again: measured as said, and reached where possible."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from fasterce import FasterCE, Schema
from fasterce.config import Config
from fasterce.data.table import Table
from fasterce.errors import InputError
from fasterce.models.predictor import Predictor
from fasterce.search import robustness
from fasterce.search.query_targets import Named
from tests.samples import people

SAME = (lambda matrix: matrix, lambda latent: latent)
METHODS = ("closest", "sparse", "realistic", "all")
NOISY = ("age", "pay", "debt")


X, ROWS = (some.drop(columns="own") for some in (people(), people(20, seed=1)))
COLUMNS = list(X.columns)
TABLE = Table.like(X, Schema.infer(X))


def points(frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(
        0.03 * frame["age"] + 0.06 * frame["pay"] - 0.05 * frame["debt"] + 0.6 * (frame["job"] == "nurse") - 3.5, dtype=float
    )


class Scored:
    classes_ = np.array(["no", "yes"], dtype=object)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.classes_[(points(frame) > 0).astype(int)]

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        chance = 1 / (1 + np.exp(-points(frame)))
        return np.stack([1 - chance, chance], axis=1)


class Band:
    """Says "in" for a strip of `pay` so narrow that a shake leaves it."""

    classes_ = np.array(["in", "out"], dtype=object)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return np.where(np.abs(frame["pay"] - 60) < 0.3, "in", "out")


@cache
def explainer(scores: Any = "auto") -> FasterCE:
    return FasterCE(Scored(), autoencoder=SAME, progress=False, config=Config.fast(), compile="never", scores=scores).fit(X)


def predictor() -> Predictor:
    return Predictor(Scored(), TABLE, ("no", "yes"), use_scores=True)


def measured(result: Any, sigma: dict[str, float], rounds: int = 300) -> np.ndarray:
    """The share of noisy copies for which each counterfactual holds, with noise drawn by the test."""
    long, rng, schema = result.to_frame(), np.random.default_rng(99), explainer().schema_
    noisy = long[COLUMNS].loc[long.index.repeat(rounds)].reset_index(drop=True)
    for name, deviation in sigma.items():
        feature, own = schema[name], noisy[name].to_numpy(float)
        value = own + rng.normal(0, deviation, len(noisy))
        value = np.round(value) if feature.integer else value
        value = np.clip(value, np.minimum(feature.lower, own), np.maximum(feature.upper, own))
        noisy[name] = value.astype(X[name].dtype)
    wanted = np.repeat(result.target.loc[long["query"]].to_numpy(), rounds)
    return np.asarray(explainer().model.predict(noisy) == wanted).reshape(-1, rounds).mean(axis=1)


USUAL: dict[Any, float] = {name: float(0.05 * X[name].std()) for name in NOISY}


# -- noise ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scores", ["auto", "never"])
@pytest.mark.parametrize("method", METHODS)
def test_robust_counterfactuals_hold_under_other_noise(method: Any, scores: Any) -> None:
    result = explainer(scores).explain(ROWS, method, robust=0.95)
    assert (result.status == "found").all()
    said, found = result.to_frame()["robust"].to_numpy(), measured(result, USUAL)
    assert (said >= 0.95).all()
    assert found.mean() >= 0.95
    assert abs(said.mean() - found.mean()) < 0.04
    assert np.abs(said - found).max() < 0.15, "32 shakes of one answer have a standard error of 0.04"


@pytest.mark.parametrize("method", METHODS)
def test_robust_costs_some_distance_but_not_much(method: Any) -> None:
    plain, firm = explainer().explain(ROWS, method), explainer().explain(ROWS, method, robust=0.95)
    before, after = plain.to_frame()["distance"].mean(), firm.to_frame()["distance"].mean()
    assert before < after < 1.35 * before
    if method == "closest":
        assert measured(plain, USUAL).mean() < 0.9, "on the boundary itself a shake often leaves it"


def test_what_was_not_measured_is_not_shown() -> None:
    assert "robust" not in explainer().explain(ROWS.head(2)).to_frame()
    assert "ensemble_agreement" not in explainer().explain(ROWS.head(2), robust=0.5).to_frame()
    assert np.isnan(explainer().explain(ROWS.head(2)).arrays.robust).all()


def test_more_noise_needs_a_larger_distance() -> None:
    small, large = ({name: k * value for name, value in USUAL.items()} for k in (0.2, 4))
    near, far = (explainer().explain(ROWS, robust=0.95, noise=sigma) for sigma in (small, large))
    assert near.to_frame()["distance"].mean() < far.to_frame()["distance"].mean()
    assert measured(near, small).mean() >= 0.95
    assert measured(far, large).mean() >= 0.94
    assert measured(near, large).mean() < 0.8


def test_without_any_noise_everything_holds() -> None:
    plain = explainer().explain(ROWS)
    still = explainer().explain(ROWS, robust=1.0, noise=dict.fromkeys(NOISY, 0))
    assert (still.to_frame()["robust"] == 1).all()
    pd.testing.assert_frame_equal(still.to_frame().drop(columns="robust"), plain.to_frame())


@pytest.mark.parametrize("scores", ["auto", "never"])
def test_a_robust_counterfactual_alone_is_as_in_a_batch(scores: Any) -> None:
    together = explainer(scores).explain(ROWS.head(5), robust=0.95).to_frame()
    again = explainer(scores).explain(ROWS.head(5), robust=0.95).to_frame()
    pd.testing.assert_frame_equal(together, again, check_exact=True)
    for name in ROWS.index[:5]:
        alone = explainer(scores).explain(ROWS.loc[[name]], robust=0.95).to_frame()
        pd.testing.assert_frame_equal(alone, together[together["query"] == name].reset_index(drop=True), check_exact=True)


def test_rules_hold_while_going_on() -> None:
    result = explainer().explain(ROWS, robust=0.95, features_to_vary=["pay"], permitted_range={"pay": (0, 200)})
    found = result.to_frame()
    assert len(found)
    assert {name for names in found["changed"] for name in names} == {"pay"}
    assert found["pay"].between(0, 200).all()
    same = ROWS.loc[found["query"], ["age", "debt", "job"]].reset_index(drop=True)
    pd.testing.assert_frame_equal(found[["age", "debt", "job"]], same)


@pytest.mark.parametrize("budget", [75, 120, 300])
def test_draws_count_against_the_budget(budget: int) -> None:
    result = explainer().explain(ROWS, robust=0.95, budget=budget)
    assert result.usage.rows <= budget * len(ROWS)
    assert set(result.status) <= {"found", "stopped", "none_found"}
    assert (result.to_frame()["robust"] >= 0.95).all() if len(result.to_frame()) else True
    with pytest.raises(InputError, match=r"^budget must be .*at least \d+; got 20\.$"):
        explainer().explain(ROWS, robust=0.95, budget=20)


@pytest.mark.parametrize("method", ["closest", "realistic"])
def test_where_nothing_is_robust_nothing_is_returned_and_it_says_so(method: Any) -> None:
    training = pd.concat([X, X.head(60).assign(pay=60.0)])
    narrow = FasterCE(Band(), autoencoder=SAME, progress=False, config=Config.fast(), compile="never").fit(training)
    rows = ROWS[np.abs(ROWS["pay"] - 60) > 1].head(5)
    assert (narrow.explain(rows, method, target="in").status == "found").all()
    firm = narrow.explain(rows, method, target="in", robust=0.95, noise={"pay": 1.0})
    assert (firm.status == "none_found").all()
    assert firm.reason.str.contains("input noise").all()
    assert len(firm.to_frame()) == 0


def test_a_robust_number_and_a_robust_chance() -> None:
    numbers = FasterCE(points, autoencoder=SAME, progress=False, config=Config.fast(), task="regression").fit(X)
    result = numbers.explain(ROWS, target=(0.5, 1.5), robust=0.9)
    long = result.to_frame()
    assert (result.status != "none_found").all()
    assert (long["robust"] >= 0.9).all()
    assert long["new_score"].between(0.5, 1.5).all()
    chance = explainer().explain(ROWS, target="yes", target_score=(0.7, 1), robust=0.9)
    assert set(chance.status) <= {"found", "already_target"}
    assert (explainer().model.predict_proba(chance.to_frame()[COLUMNS])[:, 1] >= 0.7).all()


# -- fitted again ----------------------------------------------------------------------------------------------------------


def logistic(frame: pd.DataFrame, labels: Any) -> Any:
    """A model of its own kind on the numbers alone."""

    class Fitted:
        def __init__(self) -> None:
            self.inner = LogisticRegression(max_iter=1000).fit(frame[list(NOISY)] / 50, labels)
            self.classes_ = self.inner.classes_

        def predict(self, rows: pd.DataFrame) -> np.ndarray:
            return np.asarray(self.inner.predict(rows[list(NOISY)] / 50))

        def predict_proba(self, rows: pd.DataFrame) -> np.ndarray:
            return np.asarray(self.inner.predict_proba(rows[list(NOISY)] / 50))

    return Fitted()


@cache
def refitted() -> tuple[FasterCE, np.ndarray]:
    few = X.head(150)
    labels = np.where(points(few) + np.random.default_rng(3).normal(0, 1, len(few)) > 0, "yes", "no")
    made = FasterCE(logistic(few, labels), autoencoder=SAME, progress=False, config=Config.fast(), compile="never").fit(X)
    return made.fit_ensemble(logistic, few, labels, count=8), labels


def test_counterfactuals_hold_for_refitted_models() -> None:
    made, _ = refitted()
    plain, firm = made.explain(ROWS), made.explain(ROWS, ensemble_agreement=0.8)
    long = firm.to_frame()
    assert (firm.status == "found").all()
    assert (long["ensemble_agreement"] >= 0.8).all()
    wanted = firm.target.loc[long["query"]].to_numpy()
    share = np.mean([model.predict(long[COLUMNS]) == wanted for model in made.ensemble_], axis=0)
    np.testing.assert_allclose(long["ensemble_agreement"], share)
    before = np.mean([model.predict(plain.to_frame()[COLUMNS]) == plain.target for model in made.ensemble_], axis=0)
    assert (before < 0.8).any(), "not every plain answer survives"
    assert (made.model.predict(long[COLUMNS]) == wanted).all()


@pytest.mark.parametrize("share", [0.5, 0.8, 1.0])
def test_a_model_that_is_more_lenient_than_its_refits_is_overruled(share: float) -> None:
    """All refits want more than the model explained: what an answer lacks is seen in its lead, not in theirs alone."""

    class Strict(Scored):
        def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
            chance = 1 / (1 + np.exp(-(points(frame) - 1.0)))
            return np.stack([1 - chance, chance], axis=1)

        def predict(self, frame: pd.DataFrame) -> np.ndarray:
            return self.classes_[(points(frame) > 1.0).astype(int)]

    made = FasterCE(Scored(), autoencoder=SAME, progress=False, config=Config.fast(), compile="never").fit(X)
    made.fit_ensemble(lambda frame, labels: Strict(), X, points(X) > 0, count=4)
    rows = ROWS[points(ROWS) < 0]
    result = made.explain(rows, ensemble_agreement=share)
    assert (result.status == "found").all()
    assert (result.to_frame()["ensemble_agreement"] == 1).all()
    assert (points(result.to_frame()[COLUMNS]) > 1.0).all()


def test_both_trials_at_once() -> None:
    long = refitted()[0].explain(ROWS.head(8), ensemble_agreement=0.7, robust=0.9).to_frame()
    assert len(long)
    assert (long["ensemble_agreement"] >= 0.7).all()
    assert (long["robust"] >= 0.9).all()


def test_each_model_has_its_own_draw_and_the_seed_decides() -> None:
    seen: list[pd.DataFrame] = []

    def note(frame: pd.DataFrame, labels: Any) -> Any:
        seen.append(frame.assign(label=labels))
        return Scored()

    y = np.arange(len(X))
    assert len(robustness.ensemble(note, X, y, 3, 0)) == 3
    robustness.ensemble(note, X, y, 3, 0)
    robustness.ensemble(note, X, y, 3, 1)
    for k in range(3):
        pd.testing.assert_frame_equal(seen[k], seen[k + 3])
        assert not seen[k].equals(seen[k + 6])
    assert not seen[0].equals(seen[1])
    assert all(len(one) == len(X) for one in seen)
    pd.testing.assert_frame_equal(seen[0][COLUMNS], X.iloc[seen[0]["label"]].reset_index(drop=True))


# -- by itself -------------------------------------------------------------------------------------------------------------


def noise_check_of(*options: Any) -> robustness.NoiseCheck:
    return robustness.noise_check(predictor().evaluate, predictor().table, explainer().state_.search.codec, *options)


def test_draws_come_in_pairs_and_move_numbers_only() -> None:
    noise = noise_check_of(0.9, None, 0).noise
    np.testing.assert_array_equal(noise[::2], -noise[1::2])
    assert (noise[:, COLUMNS.index("job")] == 0).all()
    one = robustness.noise_check(
        predictor().evaluate, predictor().table, explainer().state_.search.codec, 0.9, {"pay": 0.0, "age": 30}, 0
    ).noise
    assert (one[:, COLUMNS.index("pay")] == 0).all()
    assert one[:, 0].std() == pytest.approx(30, rel=0.4)
    np.testing.assert_array_equal(one[:, 2], noise[:, 2])


def test_noisy_rows_keep_to_their_columns() -> None:
    check = robustness.noise_check(
        predictor().evaluate, predictor().table, explainer().state_.search.codec, 0.9, {"age": 40.0, "pay": 90.0}, 0
    )
    codes = TABLE.read(X.head(50)).codes
    noisy = check._noisy(codes)
    np.testing.assert_array_equal(noisy[:, 0], codes)
    assert (noisy[..., 0] % 1 == 0).all()
    for j, name in enumerate(NOISY):
        assert noisy[..., j].min() >= min(TABLE.schema[name].lower, X[name].min())
        assert noisy[..., j].max() <= max(TABLE.schema[name].upper, X[name].max())
    np.testing.assert_array_equal(noisy[..., 3], np.repeat(codes[:, 3:], noisy.shape[1], axis=1))


def test_the_lead_needed_is_what_the_wanted_share_of_cases_loses() -> None:
    lead = np.array([[1.0, 0.9, 0.8, 0.7, 0.6], [1.0, 2.0, 2.0, 2.0, 2.0]])
    assert robustness._need(lead, 0.5) == pytest.approx([0.22, 0.0])
    assert robustness._need(lead, 1.0) == pytest.approx([0.44, 0.0])


def test_a_failing_model_holds_nothing() -> None:
    class Broken(Scored):
        def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
            raise RuntimeError("gone")

    broken = Predictor(Broken(), TABLE, ("no", "yes"), use_scores=True)
    held = robustness.noise_check(broken.evaluate, broken.table, explainer().state_.search.codec, 0.9, None, 0).test(
        TABLE.read(X.head(3)).codes, Named(np.ones(3, dtype=np.intp)), np.arange(3)
    )
    assert (held.share == 0).all()
    assert np.isfinite(held.need).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"robust": 0}, r"^robust must be a number above 0 and at most 1; got 0\.$"),
        ({"robust": 95}, r"^robust must be .* got 95\.$"),
        ({"robust": True}, r"got True\.$"),
        ({"robust": "0.9"}, r"got '0\.9'\.$"),
        ({"robust": float("nan")}, r"got nan\.$"),
        ({"robust": 0.9, "noise": 0.1}, r"^noise must be a dictionary \{column: standard deviation\}; got 0\.1\.$"),
        ({"robust": 0.9, "noise": {"pya": 1}}, r"^Unknown column 'pya' in noise.*'pay'"),
        ({"robust": 0.9, "noise": {"job": 1}}, r"^noise must name numeric columns; 'job' is categorical\.$"),
        ({"robust": 0.9, "noise": {"pay": -1}}, r"at least 0; got -1 for 'pay'\.$"),
        ({"robust": 0.9, "noise": {"pay": "x"}}, r"got 'x' for 'pay'\.$"),
        ({"robust": 0.9, "noise": {"pay": float("nan")}}, r"got nan for 'pay'\.$"),
        (
            {"ensemble_agreement": 0.8},
            r"^ensemble_agreement needs refitted models; call fit_ensemble\(fit, X, y\) first\.$",
        ),
        ({"ensemble_agreement": 1.2}, r"^ensemble_agreement must be a number above 0 and at most 1; got 1\.2\.$"),
        ({"noise": {"pya": 1}}, r"^noise .*robust"),
    ],
)
def test_what_cannot_be_tried_is_one_clear_sentence(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        explainer().explain(ROWS, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("count", "labels", "message"),
    [
        (1, range(500), r"^count must be a whole number of at least 2; got 1\.$"),
        (2.0, range(500), r"got 2\.0\.$"),
        (True, range(500), r"got True\.$"),
        (3, range(7), r"^y must have one label for each of the 500 rows of X; got 7\.$"),
    ],
)
def test_an_ensemble_that_cannot_be(count: Any, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        explainer().fit_ensemble(logistic, X, list(labels), count=count)
