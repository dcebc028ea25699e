"""What docs/models.md shows must run as it stands, and give what it says."""

from pathlib import Path

import pytest

from tests.docs.pages import run_page

for needed in ("xgboost", "torch", "skl2onnx", "onnxruntime"):
    pytest.importorskip(needed)


def test_the_page_about_models_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_page("models.md")
    shown = capsys.readouterr().out
    assert "onnx sha256:" in shown
    assert "must return the same prediction for a row alone and in a batch" in shown
    X, pipeline = names["X"], names["pipeline"]
    wanted = ["granted" if label else "refused" for label in pipeline.predict(X)]
    assert (names["loaded"].model.predict(X) == wanted).mean() > 0.99
    assert set(names["by_name"].predict(X)) == {"refused", "granted"}
