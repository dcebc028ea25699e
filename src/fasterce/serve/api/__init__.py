"""The HTTP side: requests are checked, given to workers, their records stored, and the result returned."""

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from fasterce.serve.api import artifacts, explain, inference, records
from fasterce.serve.api.middleware import RequestMiddleware, rendered
from fasterce.serve.api.problems import FieldsProblem, HTTPProblem
from fasterce.serve.api.state import EXPLAIN, AppState, requires
from fasterce.serve.api.validation import fields_of
from fasterce.serve.messages import Json

PAGE = Path(__file__).parent.parent / "static"
CODES = {400: "not_json", 404: "not_found", 405: "wrong_method"}
TITLE = "fasterce"
SUMMARY = "Counterfactual explanations: what would have had to be different?"


def create_app(state: AppState) -> FastAPI:
    app = FastAPI(title=TITLE, summary=SUMMARY, version=version("fasterce"), openapi_url=None, docs_url=None, redoc_url=None)
    app.state.service = state
    for part in (explain, records, artifacts, inference):
        app.include_router(part.router)
    if state.settings.page:
        app.mount("/page", StaticFiles(directory=PAGE), name="page")
        app.add_api_route("/", index, include_in_schema=False)
    for kind, convert in HANDLERS.items():
        app.add_exception_handler(kind, handler(convert))
    app.openapi = lambda: openapi(app, state)  # type: ignore[method-assign]
    app.add_api_route("/openapi.json", interface, include_in_schema=False, dependencies=[Depends(requires(EXPLAIN))])
    app.add_middleware(RequestMiddleware, state=state)
    if state.settings.origins:
        # Outermost: a page of a permitted site must be able to read why its request was rejected.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=state.settings.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "x-request-id"],
            expose_headers=["x-request-id", "retry-after"],
        )
    return app


async def index() -> FileResponse:
    return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})


async def interface(request: Request) -> JSONResponse:
    """The description has the columns of the artifacts, so it needs the same key as the schema."""
    return JSONResponse(request.app.openapi())


def handler(convert: Callable[[Json], HTTPProblem]) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def respond(request: Request, error: Exception) -> Response:
        problem = convert(error)
        body = rendered(problem, request.url.path, request.state.request_id)
        return Response(body, problem.status, problem.headers, "application/json")

    return respond


def from_http_exception(error: HTTPException) -> HTTPProblem:
    code = CODES.get(error.status_code, "refused")
    detail = f"{error.detail.rstrip('.')}."
    return HTTPProblem(error.status_code, code, "serve.http_error", headers=error.headers, reason=detail)


HANDLERS: dict[type[Exception], Callable[[Json], HTTPProblem]] = {
    HTTPProblem: lambda problem: problem,
    RequestValidationError: lambda error: FieldsProblem("invalid_request", fields_of(error.errors())),
    HTTPException: from_http_exception,
}


def openapi(app: FastAPI, state: AppState) -> dict[str, Json]:
    """Return the OpenAPI description, with a model of a row for every artifact served now."""
    found = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    models = [state.validator(state.describe(name)).model for name in state.dispatcher.names()]
    schemas = found["components"]["schemas"]
    schemas |= {model.__name__: model.model_json_schema(by_alias=True) for model in models}
    rows = [{"$ref": f"#/components/schemas/{model.__name__}"} for model in models]
    schemas["ExplainRequest"]["properties"]["rows"] |= {"items": {"anyOf": rows}, "maxItems": state.settings.most_rows}
    found["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    if state.keys is not None:
        found["security"] = [{"key": []}]
    return found
