"""A few hundred requests made from the real server's own description; `make fuzz` sends ten thousand."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.serve.models import as_json, calm, people, saved

ROOT = Path(__file__).parents[2]
REQUESTS = 300


@pytest.fixture
def fuzzing(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return import_module("scripts.fuzz")


def test_no_request_ends_in_a_server_error_and_every_answer_is_as_described(fuzzing: Any, tmp_path: Path) -> None:
    saved(tmp_path / "moody.fasterce", calm)
    row = as_json(people(1))[0]
    found_at = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    options = ("--model", "tests.serve.models:calm")
    with fuzzing.Server(
        tmp_path / "moody.fasterce", tmp_path / "records.db", *options, environment=os.environ | found_at
    ) as server:
        found, as_described = fuzzing.fuzz(server, row, REQUESTS, 0, tmp_path)
    assert found.total() >= REQUESTS
    assert found["200", "/v1/explain"] > 0
    assert fuzzing.errors(found) == {}
    assert as_described
