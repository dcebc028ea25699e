"""A compiled twin is asked instead of the model while searching; the model has the last word all the same."""

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fasterce
from fasterce import FasterCE, artifact
from fasterce.errors import InputError
from fasterce.models.predictions import Predictions
from fasterce.models.predictor import ModelUsage
from tests.models.compiled.models import without_scorer

pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")

SAME = (lambda matrix: matrix, lambda latent: latent)
METHODS = ("closest", "sparse", "realistic", "all")


def people(rows: int = 600, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "pay": rng.normal(50, 15, rows).round(1),
            "job": rng.choice(["clerk", "nurse", "smith"], rows),
            "own": rng.random(rows) < 0.5,
        },
        index=[f"p{k}" for k in range(rows)],
    )


ROWS = people(40, seed=1)


@pytest.fixture(scope="module")
def model() -> Any:
    frame = people()
    worth = 0.03 * frame["age"] + 0.06 * frame["pay"] + 0.8 * frame["own"] + 0.6 * (frame["job"] == "nurse") - 5.0
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(), make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, LogisticRegression(C=100)).fit(frame, np.where(worth > 0, "yes", "no"))


@pytest.fixture(scope="module", params=["auto", "never"])
def explainer(model: Any, request: pytest.FixtureRequest) -> FasterCE:
    """With a twin; by scores and by labels."""
    made = FasterCE(model, scores=request.param, autoencoder=SAME, progress=False).fit(people())
    assert made.state_.compiled is not None, made.report_.compiled
    return made


def check_true(model: Any, result: Any) -> None:
    long = result.to_frame()
    assert (model.predict(long[list(ROWS.columns)]) == result.target.loc[long["query"]].to_numpy()).all()
    assert (result.prediction == model.predict(ROWS)).all()
    assert len(result) == len(ROWS)


@pytest.mark.parametrize("method", METHODS)
def test_one_call_of_the_model_itself_confirms_rows_and_answers(model: Any, explainer: FasterCE, method: Any) -> None:
    result = explainer.explain(ROWS, method)
    assert (result.status == "found").all()
    check_true(model, result)
    assert result.usage.calls == 1
    assert result.usage.rows == len(ROWS) + len(result.to_frame())


def test_the_result_says_how_the_twin_was_used(explainer: FasterCE) -> None:
    result = explainer.explain(ROWS)
    assert result.compiled is not None
    assert "LogisticRegression" in result.compiled.kind
    assert result.compiled.agreement >= 0.998
    assert result.compiled.calls >= 1
    assert result.compiled.rows >= len(ROWS)
    again = explainer.explain(ROWS.head(1))
    assert again.compiled is not None
    assert again.compiled.rows < result.compiled.rows, "counted for each call anew"
    assert "LogisticRegression" in explainer.report_.compiled


def test_answers_are_as_near_as_the_models_own(model: Any, explainer: FasterCE) -> None:
    own = FasterCE(model, scores=explainer.scores, autoencoder=SAME, progress=False, compile="never").fit(people())
    near, plain = (one.explain(ROWS).to_frame()["distance"].mean() for one in (explainer, own))
    assert near == pytest.approx(plain, rel=0.05)


def test_no_twin_where_none_is_wanted(model: Any) -> None:
    own = FasterCE(model, autoencoder=SAME, progress=False, compile="never").fit(people())
    result = own.explain(ROWS.head(3))
    assert own.state_.compiled is None
    assert result.compiled is None
    assert own.report_.compiled == "none wanted"
    assert result.usage.calls > 1


def test_a_model_no_twin_can_be_made_of_is_asked_itself() -> None:
    own = FasterCE(lambda frame: (frame["age"] > 50).to_numpy(), autoencoder=SAME, progress=False).fit(people())
    assert own.state_.compiled is None
    assert "function" in own.report_.compiled
    assert own.explain(ROWS.head(3)).compiled is None


def test_an_unknown_wish_is_one_clear_sentence(model: Any) -> None:
    with pytest.raises(InputError, match=r"^compile must be one of 'auto', 'never'; got 'always'\.$"):
        FasterCE(model, autoencoder=SAME, progress=False, compile="always").fit(people())  # type: ignore[arg-type]


class Liar:
    """Stands in for a twin and answers what it likes."""

    kind, agreement, scorer = "a liar", 1.0, None

    def __init__(self, lie: Any, graded: bool) -> None:
        self.lie, self.graded, self.usage = lie, graded, ModelUsage()

    def session(self) -> "Liar":
        return Liar(self.lie, self.graded)

    def evaluate(self, codes: np.ndarray) -> Predictions:
        self.usage += ModelUsage(1, len(codes))
        lead = self.lie(codes)
        return Predictions((lead > 0).astype(np.intp), np.stack([-lead, lead], axis=1) if self.graded else None)


LIES = {
    "always yes": lambda codes: np.ones(len(codes)),
    "always no": lambda codes: -np.ones(len(codes)),
    "the opposite": lambda codes: 60.0 - codes[:, 1],
    "another model": lambda codes: codes[:, 0] - 45.0,
    "noise": lambda codes: np.sin(1e4 * codes.sum(axis=1)),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("method", ["closest", "sparse", "all"])
def test_a_twin_that_lies_costs_time_but_no_truth(
    model: Any, explainer: FasterCE, monkeypatch: pytest.MonkeyPatch, lie: str, method: Any
) -> None:
    liar: Any = Liar(LIES[lie], explainer.state_.use_scores)
    monkeypatch.setattr(explainer, "state_", replace(explainer.state_, compiled=liar))
    result = explainer.explain(ROWS, method)
    check_true(model, result)
    assert (result.status == "found").all(), "what it was wrong about is done again by the model"
    assert result.usage.calls > 1
    assert result.compiled is not None
    assert result.compiled.kind == "a liar"


def test_a_lying_twin_cannot_hide_rows_that_are_there_already(
    model: Any, explainer: FasterCE, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = model.predict(ROWS) == "yes"
    for lie in LIES.values():
        liar: Any = Liar(lie, explainer.state_.use_scores)
        monkeypatch.setattr(explainer, "state_", replace(explainer.state_, compiled=liar))
        result = explainer.explain(ROWS, target="yes")
        assert ((result.status == "already_target") == there).all()
        assert (result.status[~there] == "found").all()


def test_a_twin_that_fails_is_no_twin(model: Any, explainer: FasterCE, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows a twin cannot answer are left to the model."""
    silent = Liar(LIES["noise"], explainer.state_.use_scores)

    class Failing(Liar):
        def session(self) -> "Failing":
            return Failing(self.lie, self.graded)

        def evaluate(self, codes: np.ndarray) -> Predictions:
            answers = super().evaluate(codes)
            return Predictions(np.full(len(codes), -1), answers.scores)

    failing: Any = Failing(silent.lie, silent.graded)
    monkeypatch.setattr(explainer, "state_", replace(explainer.state_, compiled=failing))
    result = explainer.explain(ROWS)
    assert (result.status == "found").all()
    check_true(model, result)


def test_rows_one_by_one_get_the_answers_of_the_batch(explainer: FasterCE) -> None:
    long = explainer.explain(ROWS, "all", n=2).to_frame().set_index("query")
    for name in ROWS.index[:12]:
        alone = explainer.explain(ROWS.loc[[name]], "all", n=2).to_frame().set_index("query")
        pd.testing.assert_frame_equal(alone, long.loc[[name]])


def test_a_budget_does_not_bind_the_twin(explainer: FasterCE) -> None:
    free, bound = explainer.explain(ROWS), explainer.explain(ROWS, budget=5)
    pd.testing.assert_frame_equal(free.to_frame(), bound.to_frame())
    assert (bound.reason == "").all()
    assert bound.usage.rows <= 5 * len(ROWS)


# -- saved and loaded ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(model: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[FasterCE, Any]:
    trained = FasterCE(model, progress=False).fit(people())
    folder = tmp_path_factory.mktemp("compiled") / "explainer"
    trained.save(folder)
    return trained, folder


def test_loading_makes_the_twin_anew_and_answers_the_same(model: Any, saved: tuple[FasterCE, Any]) -> None:
    trained, folder = saved
    loaded = fasterce.load(folder, model)
    assert loaded.state_.compiled is not None
    assert trained.state_.compiled is not None
    assert loaded.state_.compiled.kind == trained.state_.compiled.kind
    one, two = trained.explain(ROWS, "all"), loaded.explain(ROWS, "all")
    pd.testing.assert_frame_equal(one.to_frame(), two.to_frame())
    assert two.usage.calls == 1


def test_loading_where_no_twin_can_be_made_warns_and_asks_the_model(
    model: Any, saved: tuple[FasterCE, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder = saved
    why = "Compiling the model needs a package that is not installed"
    monkeypatch.setattr(artifact, "make", lambda *args: (None, why))
    with pytest.warns(UserWarning, match=rf"fitted with a compiled model, and none can be made here \({why}\)"):
        loaded = fasterce.load(folder, model)
    result = loaded.explain(ROWS)
    assert result.compiled is None
    assert (result.status == "found").all()
    check_true(model, result)


def test_loading_without_the_extra_says_what_to_install(
    model: Any, saved: tuple[FasterCE, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError("No module named 'skl2onnx'")

    monkeypatch.setattr(sys.modules["fasterce.models.compiled.build"], "import_module", missing)
    with (
        without_scorer(),
        pytest.warns(UserWarning, match=r"No module named 'skl2onnx'\); expected: pip install 'fasterce\[onnx\]'"),
    ):
        fasterce.load(saved[1], model)


def test_one_saved_without_a_twin_loads_without_a_warning(model: Any, tmp_path: Any, recwarn: Any) -> None:
    plain = FasterCE(model, progress=False, compile="never").fit(people())
    plain.save(tmp_path / "plain")
    loaded = fasterce.load(tmp_path / "plain", model)
    assert (loaded.compile, loaded.state_.compiled) == ("never", None)
    assert not [str(w.message) for w in recwarn if "compiled" in str(w.message)]
