"""What the pages show must run as it stands and print what they say; one explainer serves them all."""

import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import page_examples

WORDS = re.compile(r"\d[\d,]*(?:\.\d+)?|[^\W\d_]\w*|[^\w\s]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def started(folder: Path) -> tuple[dict[str, Any], list[page_examples.Example]]:
    """The names the first page leaves behind, and its examples."""
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return names, list(page_examples.run(page_examples.FIRST, names))


def test_getting_started_gets_there(started: tuple[dict[str, Any], list[page_examples.Example]]) -> None:
    names, examples = started
    assert (names["result"].status == "found").all()
    assert (names["model"].predict(names["result"].counterfactuals) == "good").all()
    assert (names["ways"].to_frame()["duration"] >= names["second"]["duration"].item() - 12).all()
    _compare(examples)


@pytest.mark.parametrize("page", page_examples.FOLLOWING)
def test_the_pages_that_follow_run_and_print_what_they_show(
    page: str, started: tuple[dict[str, Any], list[page_examples.Example]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    _compare(list(page_examples.run(page, dict(started[0]))))


@pytest.mark.parametrize("page", page_examples.ALONE)
def test_pages_that_stand_alone_run_and_print_what_they_show(page: str) -> None:
    _compare(list(page_examples.run(page, {})))


def test_the_commands_run_and_print_what_their_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _compare(list(page_examples.run(page_examples.COMMANDS, {})))
    assert (tmp_path / "answers.parquet").is_file()
    assert "data:image/svg+xml" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_what_is_compared_can_differ() -> None:
    assert _same("duration 48 → 36, 0.151", "duration 48 → 35, 0.148")
    assert not _same("duration 48 → 36", "duration 48 → 12")
    assert not _same("duration 48 → 36", "age 48 → 36")
    assert not _same("one line", "one line more")


def _compare(examples: list[page_examples.Example]) -> None:
    """Words as shown, numbers nearly: another build of a library may round otherwise."""
    shown = [example for example in examples if example.shown is not None]
    assert shown, "a page shows what its examples print"
    for example in shown:
        assert _same(example.shown or "", example.printed), f"`make pictures` renews what is printed now:\n{example.printed}"


def _same(shown: str, printed: str) -> bool:
    one, two = ([word for word in WORDS.findall(text) if word != "─"] for text in (shown, printed))
    return len(one) == len(two) and all(map(_alike, one, two))


def _alike(one: str, two: str) -> bool:
    if one[0].isdigit() and two[0].isdigit():
        return math.isclose(*(float(word.replace(",", "")) for word in (one, two)), rel_tol=0.1, abs_tol=0.02)
    return one == two


def test_the_command_line_has_what_its_page_says() -> None:
    from typer.main import get_command

    from fasterce.cli.app import app
    from fasterce.cli.exits import Exit

    page = (page_examples.DOCS / "command-line.md").read_text(encoding="utf-8")
    commands = get_command(app).commands  # type: ignore[attr-defined]
    options = [option for command in commands.values() for option in command.params]
    known = {name for option in options for name in (*option.opts, *option.secondary_opts)}
    documented = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", page)) - {"--help", "--install-completion", "-c"}
    assert sorted(documented - known) == []
    named = [(*option.opts, *option.secondary_opts) for option in options if option.opts[0].startswith("--")]
    silent = [names[0] for names in named if not documented.intersection(names)]
    assert silent == []
    assert [name for name in commands if f"fasterce {name}" not in page] == []
    codes = re.findall(r"^\| (\d+) \|", page, re.MULTILINE)
    assert [int(code) for code in codes] == [code.value for code in Exit]
