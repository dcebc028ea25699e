"""What the page about records kept shows can be done as it stands."""

import asyncio
import re
import shlex
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fasterce.cli.app import app
from fasterce.serve.keys import SCOPES, read
from fasterce.serve.store import DEFAULT_URL, open_store
from fasterce.serve.store.records import DELETE_STEP
from tests.serve.store.making import opened, record

PAGE = (Path(__file__).parents[2] / "docs" / "serve-records.md").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"```(?:console|sql)\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_keys_of_the_page_are_made_listed_and_revoked() -> None:
    commands = [shlex.split(line)[1:] for line in LINES if line.startswith("fasterce keys")]
    assert [words[1] for words in commands] == ["new", "list", "revoke"]
    for words in commands:
        assert CliRunner().invoke(app, words).exit_code == 0, words
    assert read(Path("keys.json")) == []
    assert all(f"| `{scope}` |" in PAGE for scope in SCOPES)


def test_the_backup_of_the_page_is_whole_and_its_query_runs() -> None:
    [backup] = [shlex.split(line) for line in LINES if line.startswith("sqlite3")]
    [query] = [line for line in LINES if line.startswith("SELECT")]

    async def work() -> None:
        async with opened(DEFAULT_URL) as store:
            await store.put([record(k, status="found" if k else "stopped") for k in range(20)])
            other = sqlite3.connect(backup[1])
            other.execute(backup[2])
            assert dict(other.execute(query)) == {"found": 19, "stopped": 1}
            other.close()
        async with opened("sqlite:///backup.db") as store:
            assert len(await store.find()) == 20

    asyncio.run(work())


def test_the_page_says_the_defaults() -> None:
    assert f"`{DEFAULT_URL.removeprefix('sqlite:///')}`" in PAGE
    assert f"in steps of {DELETE_STEP}" in PAGE
    assert "within two seconds" in PAGE
    store = open_store("sqlite:///a.db")
    assert store._timeout == 2
    asyncio.run(store.close())
