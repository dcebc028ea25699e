"""The HTTP side: requests are checked, given to workers, their records stored, and the result returned."""

import json
from functools import lru_cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles

from fasterce.serve.api import artifacts, explain, inference, kserve, records
from fasterce.serve.api.middleware import RequestMiddleware
from fasterce.serve.api.problems import HANDLED, respond
from fasterce.serve.api.route import ServiceRoute, needs
from fasterce.serve.api.rows import RowValidator
from fasterce.serve.api.schemas import RECORD
from fasterce.serve.api.state import EXPLAIN, AppState
from fasterce.serve.messages import Json

PAGE = Path(__file__).parent.parent / "static"
TITLE = "fasterce"
# Lists of records in responses: the model and its field.
RECORD_LISTS = (("ExplainResponse", "records"), ("Explanations", "explanations"))
SUMMARY = "Counterfactual explanations: what would have had to be different?"


def create_app(state: AppState) -> FastAPI:
    app = FastAPI(
        title=TITLE,
        summary=SUMMARY,
        version=version("fasterce"),
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        # A redirect would repeat the host name that a client claims.
        redirect_slashes=False,
        # It would see the values of requests. Versions without it ignore this.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.service = state
    app.router.route_class = ServiceRoute
    parts = (explain, records, artifacts, inference, kserve)
    for part in parts:
        app.include_router(part.router)
    app.state.known_routes = [route for part in parts for route in part.router.routes]
    if state.settings.page:
        app.mount("/page", StaticFiles(directory=PAGE), name="page")
        app.add_api_route("/", index, include_in_schema=False)
    for kind in HANDLED:
        app.add_exception_handler(kind, handle)
    # It takes long to make, and changes with the artifacts only.
    described = lru_cache(maxsize=1)(lambda versions: openapi(app, state))
    app.openapi = lambda: described(tuple(state.dispatcher.describe(name).version for name in state.dispatcher.names()))  # type: ignore[method-assign]
    app.add_api_route("/openapi.json", interface, include_in_schema=False, openapi_extra=needs(EXPLAIN))
    busy = {route.path: route for route in explain.router.routes if isinstance(route, ServiceRoute)}
    app.add_middleware(RequestMiddleware, state=state, busy=busy)
    if state.settings.origins:
        # Outermost: a page of a permitted site must be able to read why its request was rejected.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=state.settings.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "idempotency-key", "x-request-id"],
            expose_headers=["x-request-id", "retry-after"],
        )
    return app


async def index() -> FileResponse:
    return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})


async def interface(request: Request) -> JSONResponse:
    """The description has the columns of the artifacts, so it needs the same key as the schema."""
    return JSONResponse(request.app.openapi())


async def handle(request: Request, error: Exception) -> Response:
    return respond(request, error)


def record_schemas() -> dict[str, Json]:
    """Return the JSON Schema of records as components: `Record`, and its definitions as `Record_` and their names."""
    written = (resources.files("fasterce.records") / "record.schema.json").read_text(encoding="utf-8")
    found = json.loads(written.replace('"#/$defs/', f'"{RECORD["$ref"]}_'))
    definitions = {f"Record_{name}": one for name, one in found["$defs"].items()}
    return {"Record": {name: one for name, one in found.items() if not name.startswith("$")}} | definitions


def openapi(app: FastAPI, state: AppState) -> dict[str, Json]:
    """Return the OpenAPI description, with a model of a row for every artifact served now."""
    found = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    validators = [RowValidator(state.dispatcher.describe(name)) for name in state.dispatcher.names()]
    schemas = found["components"]["schemas"]
    schemas |= {validator.name: validator.json_schema() for validator in validators}
    rows = [{"$ref": f"#/components/schemas/{validator.name}"} for validator in validators]
    schemas["ExplainRequest"]["properties"]["rows"] |= {"items": {"anyOf": rows}, "maxItems": state.settings.most_rows}
    schemas |= record_schemas()
    for model, field in RECORD_LISTS:
        schemas[model]["properties"][field]["items"] = RECORD
    if state.keys is not None:
        found["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        return found
    for operation in (one for path in found["paths"].values() for one in path.values()):
        operation.pop("security", None)
    return found
