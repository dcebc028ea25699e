"""The front with a dispatcher that answers from a script: what HTTP makes of answers and of their want."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient

from fasterce.errors import Problem, make_problem
from fasterce.serve.api import create_app
from fasterce.serve.api.applicants import Applicants
from fasterce.serve.api.state import AppState
from fasterce.serve.messages import (
    BatchUsage,
    Description,
    NoResponse,
    PoolLoad,
    ReloadError,
    StoredRecord,
    UnknownArtifact,
    WorkerRequest,
    WorkerResponse,
)
from fasterce.serve.settings import ServedArtifact, Settings
from fasterce.serve.store import open_store

NUMBER = {"kind": "numeric", "categories": None, "ordered": False, "change": "any"}
FEATURES = [
    NUMBER
    | {"name": "duration", "label": "duration", "whole": True, "decimals": 0, "low": 4, "high": 72}
    | {"promised": True, "missing": False, "typical": 24},
    NUMBER
    | {"name": "amount", "label": "amount", "whole": False, "decimals": 2, "low": 0, "high": 9e4}
    | {"promised": False, "missing": True, "typical": 3000.0},
    {
        "name": "housing",
        "label": "housing",
        "kind": "categorical",
        "whole": False,
        "decimals": None,
        "low": None,
        "high": None,
    }
    | {"promised": False, "categories": ["own", "rent"], "ordered": False, "change": "never", "missing": False}
    | {"typical": "own"},
]
SCHEMA = {
    "artifact": "credit",
    "title": "Credit",
    "features": FEATURES,
    "constraints": [],
    "target": {"kind": "classes", "classes": ["bad", "good"]},
    "scores": True,
}
ROW = {"duration": 24, "amount": 3500.5, "housing": "own"}


class ScriptedDispatcher:
    """Says of every row what `status` is, or raises what `fails` is."""

    most_waiting = Settings.most_waiting

    def __init__(self) -> None:
        self.ready = True
        self.usage: list[WorkerRequest] = []
        self.fails: Exception | None = None
        self.status = "found"
        self.rows_inside = 0
        self.model_problems: dict[str, Problem] = {}
        self.digest = "sha256:" + "a" * 64
        self.schema: dict[str, Any] = SCHEMA

    def names(self) -> list[str]:
        return ["credit"]

    def describe(self, name: str | None) -> Description:
        if name not in (None, "credit"):
            raise UnknownArtifact("serve.unknown_artifact", received=name)
        return Description("credit", "Credit", self.digest, None, "onnx", self.schema, "2026-11-16T00:00:00Z")

    async def explain(self, question: WorkerRequest) -> WorkerResponse:
        await asyncio.sleep(0)
        self.usage.append(question)
        if self.fails is not None:
            raise self.fails
        if question.action == "predict":
            usage, predictions = BatchUsage(1, 1, 1), ("bad",) * len(question.rows)
            return WorkerResponse((), self.describe(None), usage, predictions=predictions)
        records = tuple(self.record(question) for _ in question.rows)
        invalid = self.status == "invalid_input" and len(records) == 1
        problem = make_problem("data.missing_value", column="duration", received="SECRET") if invalid else None
        return WorkerResponse(records, self.describe(None), BatchUsage(8, 30, len(records)), problem)

    def record(self, question: WorkerRequest) -> StoredRecord:
        identity = str(uuid4())
        body = json.dumps(
            {"ids": {"record": identity}, "status": self.status, "reason": "Because.", "counterfactuals": [{"values": ROW}]}
        )
        return StoredRecord(
            identity,
            question.request_id,
            None,
            None,
            "credit",
            self.status,
            "2026-11-16T00:00:00Z",
            None,
            body,
            key=question.key,
        )

    @property
    def is_full(self) -> bool:
        return self.rows_inside >= self.most_waiting

    def permits(self, client: str, queue: str) -> bool:
        return self.rows_inside < self.most_waiting

    def load(self) -> PoolLoad:
        return PoolLoad(self.rows_inside, 0, 1, 0, True, 0, 1)

    async def reload(self) -> list[Description]:
        if isinstance(self.fails, ReloadError):
            raise self.fails
        return [self.describe(None)]


@pytest.fixture
def dispatcher() -> ScriptedDispatcher:
    return ScriptedDispatcher()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        (ServedArtifact("credit", tmp_path),), records=f"sqlite:///{tmp_path}/records.db", most_rows=5, most_body=20_000
    )


@pytest.fixture
def make_client(dispatcher: ScriptedDispatcher, settings: Settings) -> Iterator[Callable[..., TestClient]]:
    """A client of a front made with these changes."""
    stores = []

    def make(keys: Any = None, people: Any = None, **changed: Any) -> TestClient:
        chosen = replace(settings, **changed)
        store = open_store(chosen.records, retention_days=chosen.retention_days) if chosen.records else None
        stores.append(store)
        known = {"credit": Applicants(people, None, FEATURES)} if people else {}
        app = create_app(AppState(chosen, cast(Any, dispatcher), store, keys, known))
        return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)

    yield make
    for store in stores:
        if store is not None:
            asyncio.run(store.close())


@pytest.fixture
def client(make_client: Callable[..., TestClient]) -> TestClient:
    return make_client()


def error_of(answer: object) -> dict:
    return answer.json()["error"]  # type: ignore[attr-defined]


__all__ = ["FEATURES", "ROW", "NoResponse", "ScriptedDispatcher", "error_of"]
