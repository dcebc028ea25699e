"""The service's answers without its processes: the same JSON, explained in this process, with faults on order."""

import json
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles

import fasterce.serve
from fasterce import FasterCE, constraints, records
from fasterce.constraints import Frozen
from fasterce.errors import FasterCEError
from fasterce.schema import Feature
from fasterce.serve.letter import letter

PAGE = Path(fasterce.serve.__file__).parent / "page"
POLICY = "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
PASSED_ON = ("method", "n", "target", "target_score", "robust", "distance", "realism", "diversity", "budget", "why_not")


@dataclass
class Served:
    explainer: FasterCE
    title: str
    people: pd.DataFrame
    numbers: tuple[float, float] | None = None
    wanted: Any = None


@dataclass
class Stub:
    """What is served, and what goes wrong next: each fault is (status, code, fields, headers), used up by one question."""

    served: Mapping[str, Served]
    key: str | None = None
    faults: list[tuple[int, str, list[dict[str, str]], dict[str, str]]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    delay: float = 0.0


def described(feature: Feature, typical: Any) -> dict[str, Any]:
    numeric = feature.numeric
    return {
        "name": feature.name,
        "label": str(feature.name),
        "kind": feature.kind,
        "whole": feature.integer,
        "decimals": feature.decimals,
        "low": feature.lower if numeric else None,
        "high": feature.upper if numeric else None,
        "promised": feature.declared,
        "categories": list(feature.categories),
        "ordered": feature.ordered,
        "change": "never" if not feature.mutable else feature.direction,
        "missing": feature.gappy,
        "typical": typical,
    }


def described_all(name: str, one: Served) -> dict[str, Any]:
    people = one.people
    typical = {c: people[c].median() if pd.api.types.is_numeric_dtype(people[c]) else people[c].mode()[0] for c in people}
    if one.numbers is None:
        target: dict[str, Any] = {"kind": "classes", "classes": [plain(c) for c in one.explainer.classes_]}
    else:
        target = {"kind": "number", "low": one.numbers[0], "high": one.numbers[1]}
    return {
        "artifact": name,
        "title": one.title,
        "features": [described(f, plain(typical[f.name])) for f in one.explainer.schema_.features],
        "rules": [],
        "target": target | ({} if one.wanted is None else {"wanted": one.wanted}),
        "scores": True,
        "limits": {"rows": 256, "n": 10, "deadline_ms": 60_000},
        "digests": {},
    }


def plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def explained(one: Served, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = pd.DataFrame(body["rows"]).astype(one.people.dtypes.to_dict(), errors="ignore")
    options = {name: body[name] for name in PASSED_ON if name in body}
    if isinstance(options.get("target"), list):
        options["target"] = tuple(options["target"])
    frozen = body.get("freeze") or []
    rules = [*(Frozen(name) for name in frozen), *constraints.from_dict(body.get("rules") or [])]
    ranges = {name: tuple(ends) if is_range(ends) else ends for name, ends in (body.get("ranges") or {}).items()}
    result = one.explainer.explain(rows, rules=rules, permitted_range=ranges or None, **options)
    return records.make(one.explainer, result, ids=[secrets.token_hex(4)] * len(rows))


def is_range(ends: list[Any]) -> bool:
    return len(ends) == 2 and all(not isinstance(end, (str, bool)) for end in ends)


def refused(status: int, code: str, message: str, fields: Any = (), headers: Mapping[str, str] | None = None) -> JSONResponse:
    error = {"code": code, "message": message, "fields": list(fields)}
    return JSONResponse({"error": error, "request_id": "stub"}, status, dict(headers or {}))


def app_of(stub: Stub) -> FastAPI:
    app, one_at_a_time = FastAPI(), threading.Lock()
    first = next(iter(stub.served))

    @app.middleware("http")
    async def guarded(request: Request, follow: Any) -> Response:
        open_to_all = request.url.path == "/" or request.url.path.startswith("/page/")
        if stub.key and not open_to_all and request.headers.get("authorization") != f"Bearer {stub.key}":
            response: Response = refused(401, "no_key", "This needs an API key.")
        else:
            response = await follow(request)
        response.headers["Content-Security-Policy"] = POLICY
        return response

    @app.get("/")
    def page() -> Response:
        return FileResponse(PAGE / "index.html")

    @app.get("/v1/artifacts")
    def artifacts() -> Any:
        listed = [{"name": name, "title": one.title} for name, one in stub.served.items()]
        return {"artifacts": listed, "default": first}

    @app.get("/v1/schema")
    def schema(artifact: str = first) -> Any:
        return described_all(artifact, stub.served[artifact])

    @app.get("/v1/applicants")
    def applicants(query: str = "", first: int = 0, count: int = 20, artifact: str = first) -> Any:
        people = stub.served[artifact].people
        found = [place for place, label in enumerate(people.index) if query.lower() in str(label).lower()]
        rows = json.loads(people.iloc[found[first : first + count]].to_json(orient="records"))
        named = [str(people.index[place]) for place in found[first : first + count]]
        listed = [{"id": name, "row": row} for name, row in zip(named, rows, strict=True)]
        return {"total": len(found), "first": first, "applicants": listed}

    @app.post("/v1/explain")
    def explain(body: dict[str, Any]) -> Any:
        started = perf_counter()
        stub.asked.append(body)
        if stub.delay:
            threading.Event().wait(stub.delay)
        if stub.faults:
            status, code, fields, headers = stub.faults.pop(0)
            return refused(status, code, f"The service says {code}.", fields, headers)
        name = body.get("artifact") or first
        try:
            with one_at_a_time:
                found = explained(stub.served[name], body)
        except FasterCEError as error:
            return refused(422, "invalid", str(error))
        if body.get("keep", True):
            stub.kept.update({record["ids"]["record"]: record for record in found})
        return {
            "request_id": "stub",
            "artifact": {"name": name, "artifact_digest": found[0]["digests"]["artifact"], "model_digest": None},
            "kept": body.get("keep", True),
            "records": found,
            "asked": {"calls": 1, "rows": 1, "batch_rows": 1},
            "ms": 1000 * (perf_counter() - started),
        }

    @app.get("/v1/records/{identity}")
    def record(identity: str) -> Any:
        return stub.kept.get(identity) or refused(404, "no_record", "There is no such record.")

    @app.get("/v1/records/{identity}/letter")
    def printed(identity: str) -> Any:
        found = stub.kept.get(identity)
        return refused(404, "no_record", "There is no such record.") if found is None else HTMLResponse(letter(found))

    app.mount("/page", StaticFiles(directory=PAGE))
    return app
