"""The service on several machines with Ray Serve: every replica is a front with a dispatcher and workers of its own.

    FASTERCE_ARTIFACTS=german=/shared/german.fasterce FASTERCE_RECORDS=postgresql://… serve run deploy.ray_serve:explainer

The folder must be at the same place on all machines, and records in a database all of them reach. See docs/deploy.md.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from ray import serve

from fasterce.serve.api import create_app
from fasterce.serve.api.state import AppState
from fasterce.serve.run import opened
from fasterce.serve.settings import ServedArtifact, Settings

REPLICAS = int(os.environ.get("FASTERCE_REPLICAS", "2"))
# Rows a replica takes before it says 429 itself; Ray sends it no more than so many, and keeps as many waiting (then 503).
MOST_WAITING = 128


def settings_of(environment: Mapping[str, str]) -> Settings:
    named = [one.partition("=") for one in environment["FASTERCE_ARTIFACTS"].split(",")]
    keys = environment.get("FASTERCE_KEYS")
    return Settings(
        artifacts=tuple(ServedArtifact(name, Path(folder)) for name, _, folder in named),
        records=environment.get("FASTERCE_RECORDS"),
        keys=Path(keys) if keys else None,
        most_waiting=MOST_WAITING,
        page=environment.get("FASTERCE_PAGE", "1") == "1",
    )


class Front:
    """The same application as `fasterce serve` has, opened and closed with its replica (ASGI's lifespan)."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.state: AppState | None = None
        self.app: FastAPI | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.live(receive, send)
        elif self.app is not None:
            await self.app(scope, receive, send)

    async def live(self, receive: Any, send: Any) -> None:
        await receive()
        try:
            self.state = await opened(self.settings)
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        self.app = create_app(self.state)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.state.closing = True
        await self.state.dispatcher.close(self.settings.grace)
        if self.state.store is not None:
            await self.state.store.close()
        await send({"type": "lifespan.shutdown.complete"})


def made() -> Front:
    """Called in the replica, not where it is deployed from: nothing of it can be pickled."""
    return Front(settings_of(os.environ))


@serve.deployment(
    num_replicas=REPLICAS,
    max_ongoing_requests=MOST_WAITING,
    max_queued_requests=MOST_WAITING,
    ray_actor_options={"num_cpus": 1},
    health_check_period_s=5,
    graceful_shutdown_wait_loop_s=1,
    graceful_shutdown_timeout_s=15,
)
@serve.ingress(made)
class Explainer:
    """Ray replaces a replica whose process is gone; workers that hang or die are the dispatcher's to replace."""


explainer = Explainer.bind()
