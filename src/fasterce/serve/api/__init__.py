"""The front: what is asked over HTTP is checked here, put to the desk, kept and told."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from fasterce.serve.app import about, explaining, inference, recorded, validation
from fasterce.serve.app.gate import Gate, rendered
from fasterce.serve.app.house import EXPLAIN, House, needs
from fasterce.serve.app.problems import Problem

PAGE = Path(__file__).parent.parent / "page"
CODES = {400: "not_json", 404: "not_found", 405: "wrong_method"}
TITLE = "fasterce"
SUMMARY = "Counterfactual explanations: what would have had to be different?"


def create_app(house: House) -> FastAPI:
    app = FastAPI(title=TITLE, summary=SUMMARY, version=version("fasterce"), openapi_url=None, docs_url=None, redoc_url=None)
    app.state.house = house
    for part in (explaining, recorded, about, inference):
        app.include_router(part.router)
    if house.settings.page:
        app.mount("/page", StaticFiles(directory=PAGE), name="page")
        app.add_api_route("/", index, include_in_schema=False)
    app.exception_handler(Problem)(on_problem)
    app.exception_handler(RequestValidationError)(on_invalid)
    app.exception_handler(HTTPException)(on_http)
    app.openapi = lambda: described(app, house)  # type: ignore[method-assign]
    app.add_api_route("/openapi.json", interface, include_in_schema=False, dependencies=[Depends(needs(EXPLAIN))])
    app.add_middleware(Gate, house=house)
    if house.settings.origins:
        # Around the gate: a page of a named site must be able to read why it was sent away.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=house.settings.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "x-request-id"],
            expose_headers=["x-request-id", "retry-after"],
        )
    return app


async def index() -> FileResponse:
    return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})


async def interface(request: Request) -> JSONResponse:
    """The columns of an artifact are in it, so it wants the key that the schema wants."""
    return JSONResponse(request.app.openapi())


async def on_problem(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    body = rendered(problem, request.url.path, request.state.request_id)
    return Response(body, problem.status, problem.headers, "application/json")


async def on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return await on_problem(request, validation.problem(error.errors()))


async def on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, headers = CODES.get(error.status_code, "refused"), dict(error.headers or {})
    return await on_problem(request, Problem(error.status_code, code, f"{error.detail}.", headers=headers))


def described(app: FastAPI, house: House) -> dict[str, Any]:
    """The OpenAPI description, with a model of a row for every artifact served now."""
    found = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    models = [house.rows_of(house.desk.describe(name)).model for name in house.desk.names()]
    schemas = found["components"]["schemas"]
    schemas |= {model.__name__: model.model_json_schema(by_alias=True) for model in models}
    rows = [{"$ref": f"#/components/schemas/{model.__name__}"} for model in models]
    schemas["Asked"]["properties"]["rows"] |= {"items": {"anyOf": rows}, "maxItems": house.settings.most_rows}
    found["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    if house.keys is not None:
        found["security"] = [{"key": []}]
    return found
