"""Application state shared by all routes, and the check of API keys."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from fasterce.serve.api.applicants import Applicants
from fasterce.serve.api.metrics import Metrics
from fasterce.serve.api.schemas import ArtifactInfo
from fasterce.serve.keys import Keys
from fasterce.serve.messages import Description
from fasterce.serve.settings import Settings
from fasterce.serve.store import Store
from fasterce.serve.workers.dispatcher import Dispatcher

EXPLAIN, RECORDS, METRICS, ADMIN = "explain", "records", "metrics", "admin"


@dataclass
class AppState:
    settings: Settings
    dispatcher: Dispatcher
    store: Store | None
    keys: Keys | None
    applicants: Mapping[str, Applicants] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=Metrics)
    closing: bool = False

    def info(self, description: Description) -> ArtifactInfo:
        found = ArtifactInfo.model_validate(description, from_attributes=True)
        return found.model_copy(update={"default": description.name == self.dispatcher.names()[0]})


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
    """Return the name of the key in the header; raises KeyRejected if it is not one for this scope."""
    kind, _, token = authorization.partition(" ")
    return keys.check(token.strip() if kind.lower() == "bearer" else "", scope)
