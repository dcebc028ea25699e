"""What the pages in docs/ show must run as it stands."""

import pytest

from tests.docs.pages import run_page


def test_the_page_about_change_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_page("change.md")
    shown = capsys.readouterr().out
    assert "rows look like the training rows" in shown or "Drift in 400 rows" in shown
    assert "400 new rows and a new model" in shown
    assert "counterfactuals still hold" in shown
    checked = names["checked"]
    assert len(checked) == 20
    assert not checked.holds.all(), "the page shows repairs"


def test_the_page_about_results_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_page("answers.md")
    surer, lower, options = names["surer"], names["lower"], names["options"]
    assert (surer.to_frame()["new_score"] >= 0.7).all()
    assert (names["amount"].predict(lower.counterfactuals.dropna()) <= 2_000).all()
    assert set(lower.status) <= {"found", "already_target"}
    assert options.to_frame().groupby("query").size().between(1, 4).all()
    assert (names["steady"].to_frame()["robust"] >= 0.95).all()
    assert (names["lasting"].to_frame()["ensemble_agreement"] >= 0.8).all()
    assert "'only telephone may change (features_to_vary)' prevents it" in capsys.readouterr().out


def test_the_page_about_kinds_of_models_runs() -> None:
    names = run_page("model-kinds.md")
    for model, result, wanted in (
        (names["calibrated"], names["isotonic"], "good"),
        (names["stack"], names["stacking"], "good"),
        (names["cautious"], names["thresholded"], "good"),
        (names["forest"], names["anomalies"], 1),
    ):
        assert (result.status == "found").all()
        assert (model.predict(result.counterfactuals) == wanted).all()
    assert (names["cautious"].predict_proba(names["thresholded"].counterfactuals)[:, 1] >= 0.75).all()
    assert (names["expected_months"](names["longer"].counterfactuals.dropna()) >= 30).all()
    assert set(names["longer"].status) == {"found"}
