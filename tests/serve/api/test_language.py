"""Status, code and fields of HTTP errors do not depend on the language of their messages."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.language import other_language
from tests.serve.api.conftest import ROW


def without_words(value: Any) -> Any:
    if isinstance(value, dict):
        words = ("message", "request_id", "detail", "reason", "title")
        return {name: without_words(one) for name, one in value.items() if name not in words}
    return [without_words(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "body",
    [
        {"rows": [{**ROW, "duration": "24"}]},
        {"rows": [{**ROW, "duration": 400}]},
        {"rows": [{**ROW, "duration": None}]},
        {"rows": [{**ROW, "housing": "castle"}]},
        {"rows": [{**ROW, "duraton": 3}]},
        {"rows": [{"duration": 24, "amount": 1}]},
        {"rows": [ROW] * 6},
        {"rows": []},
        {"rows": [ROW], "n": 0},
        {"rows": [ROW], "method": "closets"},
        {"rows": [ROW], "metod": "closest"},
        {"rows": [ROW], "artifact": "other"},
        {},
    ],
)
def test_errors_have_the_same_status_code_and_fields(body: dict[str, Any], client: TestClient, tmp_path: Path) -> None:
    here = client.post("/v1/explain", json=body)
    with other_language(tmp_path):
        there = client.post("/v1/explain", json=body)
    assert here.status_code == there.status_code >= 400
    assert without_words(here.json()) == without_words(there.json())
