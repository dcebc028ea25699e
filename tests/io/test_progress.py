"""A progress bar is for people: it changes nothing that is iterated, and keeps quiet where nobody looks."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce import FasterCE
from fasterce.config import Config
from fasterce.io import progress as module
from fasterce.io.progress import Progress, in_words


@pytest.mark.parametrize("show", [True, False, None])
def test_every_item_comes_out_once_and_in_order(show: bool | None) -> None:
    assert list(Progress(show).track(range(5), "training")) == [0, 1, 2, 3, 4]


def test_without_a_terminal_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    list(Progress().track(range(3), "training"))
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", "")


def test_a_bar_goes_to_stderr_only(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    list(Progress(show=True).track(range(3), "training"))
    written = capsys.readouterr()
    assert written.out == ""
    assert "training" in written.err


def test_in_a_terminal_the_bar_shows_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert Progress().show
    assert not Progress(show=False).show


@pytest.mark.parametrize("show", [True, False])
def test_stopping_early_does_not_pull_more_items(show: bool) -> None:
    source = iter(range(10))
    tracked = Progress(show).track(source, "training")
    assert next(tracked) == 0
    tracked.close()  # type: ignore[attr-defined]
    assert next(source) == 1


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts a notebook shows one after another in place of each other, by the interface of IPython."""
    shown: list[str] = []

    def display(content: dict[str, str], **more: Any) -> SimpleNamespace:
        assert more == {"raw": True, "display_id": True}
        return SimpleNamespace(update=lambda content, raw: shown.append(content["text/plain"]))

    shell, displays = ModuleType("IPython"), ModuleType("IPython.display")
    shell.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    displays.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    monkeypatch.setattr(module, "NOTEBOOK_PERIOD", 0.0)
    return shown


def test_a_notebook_shows_a_line_of_text_with_the_time_left(notebook: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert list(Progress().track(range(3), "training")) == [0, 1, 2]
    assert notebook == ["training …", *(f"training: {done} of 3, 0 s left" for done in (1, 2, 3)), ""]
    assert capsys.readouterr() == ("", "")
    notebook.clear()
    list(Progress(show=False).track(range(3), "training"))
    assert notebook == []


def test_fit_shows_training_and_model_rows(notebook: list[str]) -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": rng.normal(size=200).round(2), "b": rng.normal(size=200).round(2)})
    explainer = FasterCE(lambda frame: np.where(frame["a"] > frame["b"], "x", "y"), max_fit_rows=1_500, config=Config.fast())
    explainer.fit(data)
    assert any(text.startswith("training the autoencoder: ") for text in notebook)
    rows = [text for text in notebook if text.startswith("Evaluating the model: ")]
    assert len(rows) >= 8
    assert rows[-1] == "Evaluating the model: 1,500 of 1,500, 0 s left"
    assert notebook[-1] == ""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("rows", 400.0, 100.0, 30.0), "rows: 100 of 400, 1 min 30 s left"),
        (("rows", 400.0, 0.0, 30.0), "rows: 0 of 400"),
        (("rows", 400.0, 500.0, 30.0), "rows: 500 of 400, 0 s left"),
        (("rows", None, 12_345.0, 30.0), "rows: 12,345"),
    ],
)
def test_time_left_in_words(given: tuple[str, float | None, float, float], words: str) -> None:
    assert in_words(*given) == words


def test_what_is_printed_while_a_bar_shows_stays_on_stdout(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    for item in Progress(show=True).track(range(2), "training"):
        print("item", item)
    written = capsys.readouterr()
    assert written.out == "item 0\nitem 1\n"
    assert "training" in written.err
