"""Application state shared by all routes."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Annotated

from fastapi import Depends, Request

from fasterce.errors import Problem, make_problem
from fasterce.serve.api.applicants import Applicants
from fasterce.serve.api.connections import ConnectionLimits
from fasterce.serve.api.metrics import Metrics
from fasterce.serve.api.schemas import ArtifactInfo
from fasterce.serve.keys import Keys
from fasterce.serve.limits import FairShare
from fasterce.serve.messages import Description
from fasterce.serve.settings import Settings
from fasterce.serve.store import Store, StoreError
from fasterce.serve.workers.dispatcher import Dispatcher

EXPLAIN, APPLICANTS, RECORDS, METRICS, ADMIN = "explain", "applicants", "records", "metrics", "admin"
# Seconds for which a check of the store is cached: anybody may request the readiness route.
CHECKED_SECONDS = 0.5


@dataclass
class AppState:
    settings: Settings
    dispatcher: Dispatcher
    store: Store | None
    keys: Keys | None
    applicants: Mapping[str, Applicants] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=Metrics)
    closing: bool = False
    open_requests: FairShare = field(init=False)
    connections: ConnectionLimits = field(init=False)

    def __post_init__(self) -> None:
        settings = self.settings
        self.open_requests = FairShare(settings.most_waiting + settings.extra_requests)
        self.connections = ConnectionLimits(
            settings.most_connections, settings.most_connections_per_address, settings.proxies
        )
        self._store_check: asyncio.Lock = asyncio.Lock()
        self._store_checked = 0.0
        self._store_error: StoreError | None = None

    async def not_ready(self, artifact: str | None = None) -> Problem | None:
        """Return why requests (for an artifact) cannot be served now; None if they can."""
        if self.closing or not self.dispatcher.ready:
            return make_problem("serve.closing" if self.closing else "serve.not_started")
        down = self.dispatcher.model_problems
        if artifact in down or (artifact is None and down):
            return make_problem("serve.model_down", artifact=artifact or next(iter(down)))
        error = await self._check_store()
        if error is None:
            return None
        reason = error.problem.details.get("reason")
        known = reason if isinstance(reason, Problem) else make_problem("serve.store_silent")
        return make_problem("serve.store_down", cause=known)

    async def _check_store(self) -> StoreError | None:
        if self.store is None:
            return None
        async with self._store_check:
            if monotonic() - self._store_checked > CHECKED_SECONDS:
                self._store_error = await self.store.check()
                self._store_checked = monotonic()
        return self._store_error

    def info(self, description: Description) -> ArtifactInfo:
        found = ArtifactInfo.model_validate(description, from_attributes=True)
        return found.model_copy(update={"default": description.name == self.dispatcher.names()[0]})


async def app_state(request: Request) -> AppState:
    return request.app.state.service  # type: ignore[no-any-return]


State = Annotated[AppState, Depends(app_state)]
