"""Application state shared by all routes, and the check of API keys."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from fasterce.serve.api.applicants import Applicants
from fasterce.serve.api.metrics import Metrics
from fasterce.serve.api.problems import HTTPProblem, http_problem
from fasterce.serve.api.rows import RowValidator
from fasterce.serve.api.schemas import ArtifactInfo
from fasterce.serve.keys import ExpiredKey, KeyRejected, Keys, MissingScope
from fasterce.serve.messages import Description, NoResponse
from fasterce.serve.settings import Settings
from fasterce.serve.store import Store
from fasterce.serve.workers.dispatcher import Dispatcher

EXPLAIN, RECORDS, METRICS, ADMIN = "explain", "records", "metrics", "admin"
BEARER = {"WWW-Authenticate": "Bearer"}


@dataclass
class AppState:
    settings: Settings
    dispatcher: Dispatcher
    store: Store | None
    keys: Keys | None
    applicants: Mapping[str, Applicants] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=Metrics)
    closing: bool = False
    validators: dict[tuple[str, str], RowValidator] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        return not self.closing and self.dispatcher.ready

    def describe(self, name: str | None) -> Description:
        """Return the description of an artifact, or the first; 404 or 503 if there is none."""
        try:
            return self.dispatcher.describe(name)
        except NoResponse as error:
            raise http_problem(error) from None

    def validator(self, description: Description) -> RowValidator:
        """Return the validator of an artifact's rows, made once per version."""
        key = (description.name, description.artifact_digest)
        if key not in self.validators:
            self.validators = {known: one for known, one in self.validators.items() if known[0] != description.name}
            self.validators[key] = RowValidator(description)
        return self.validators[key]

    def info(self, description: Description) -> ArtifactInfo:
        return ArtifactInfo(
            name=description.name,
            title=description.title,
            artifact_digest=description.artifact_digest,
            model_digest=description.model_digest,
            model_kind=description.model_kind,
            loaded=description.loaded,
            default=description.name == self.dispatcher.names()[0],
        )


async def app_state(request: Request) -> AppState:
    return request.app.state.service  # type: ignore[no-any-return]


State = Annotated[AppState, Depends(app_state)]


def requires(scope: str) -> Callable[[Request], Awaitable[None]]:
    """Return a dependency: the request needs a key with this scope, if the server has keys at all."""

    async def check(request: Request) -> None:
        keys = (await app_state(request)).keys
        # The middleware has checked the key of a request for an explanation before it read the body.
        if keys is not None and getattr(request.state, "key_scope", None) != scope:
            request.state.key = key_name(keys, request.headers.get("authorization", ""), scope)

    return check


def key_name(keys: Keys, authorization: str, scope: str) -> str:
    """Return the name of the key in the header; 401 or 403 if it is not one for this scope."""
    kind, _, token = authorization.partition(" ")
    try:
        return keys.check(token.strip() if kind.lower() == "bearer" else "", scope)
    except MissingScope as error:
        raise HTTPProblem(403, "missing_scope", error.problem) from None
    except ExpiredKey as error:
        raise HTTPProblem(401, "expired_key", error.problem, headers=BEARER) from None
    except KeyRejected as error:
        raise HTTPProblem(401, "wrong_key", error.problem, headers=BEARER) from None
