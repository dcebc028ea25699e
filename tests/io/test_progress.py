"""A progress bar is for people: it changes nothing that is iterated, and keeps quiet where nobody looks."""

import sys
from types import SimpleNamespace

import pytest

from fasterce.io.progress import Progress


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


@pytest.mark.parametrize(
    ("shell", "widgets", "shown"),
    [("ZMQInteractiveShell", True, True), ("ZMQInteractiveShell", False, False), ("TerminalInteractiveShell", True, False)],
)
def test_in_a_notebook_that_can_draw_the_bar_shows_by_itself(
    monkeypatch: pytest.MonkeyPatch, shell: str, widgets: bool, shown: bool
) -> None:
    ipython = SimpleNamespace(get_ipython=type(shell, (), {}))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr("fasterce.io.progress.find_spec", lambda name: widgets or None)
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    assert Progress().show is shown
