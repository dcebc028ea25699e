"""What every route has at hand."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from fastapi import Request

from fasterce.serve.app.bodies import ArtifactSaid
from fasterce.serve.app.metrics import Metrics
from fasterce.serve.app.people import People
from fasterce.serve.app.problems import Problem
from fasterce.serve.app.rows import Rows
from fasterce.serve.engine.desk import Desk
from fasterce.serve.keys import ExpiredKey, KeyRefused, Keys, MissingScope
from fasterce.serve.question import Description
from fasterce.serve.settings import Settings
from fasterce.serve.store import Store

EXPLAIN, RECORDS, METRICS, ADMIN = "explain", "records", "metrics", "admin"
BEARER = {"WWW-Authenticate": "Bearer"}


@dataclass
class House:
    settings: Settings
    desk: Desk
    store: Store | None
    keys: Keys | None
    people: Mapping[str, People] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=Metrics)
    closing: bool = False
    made: dict[tuple[str, str], Rows] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        return not self.closing and self.desk.ready

    def rows_of(self, description: Description) -> Rows:
        """Models of rows are made once a version."""
        key = (description.name, description.artifact_digest)
        if key not in self.made:
            self.made = {known: rows for known, rows in self.made.items() if known[0] != description.name}
            self.made[key] = Rows(description)
        return self.made[key]

    def said(self, description: Description) -> ArtifactSaid:
        return ArtifactSaid(
            name=description.name,
            title=description.title,
            artifact_digest=description.artifact_digest,
            model_digest=description.model_digest,
            model_kind=description.model_kind,
            loaded=description.loaded,
            default=description.name == self.desk.names()[0],
        )


async def house_of(request: Request) -> House:
    return request.app.state.house  # type: ignore[no-any-return]


def needs(scope: str) -> Callable[[Request], Awaitable[None]]:
    """A dependency: the request must come with a key that has this scope, if the server has keys at all."""

    async def check(request: Request) -> None:
        keys = (await house_of(request)).keys
        if keys is not None:
            request.state.key = whose(keys, request.headers.get("authorization", ""), scope)

    return check


def whose(keys: Keys, authorization: str, scope: str) -> str:
    """The name of the key in the header; 401 or 403 if it is not one for this scope."""
    kind, _, token = authorization.partition(" ")
    try:
        return keys.check(token.strip() if kind.lower() == "bearer" else "", scope)
    except MissingScope as error:
        raise Problem(403, "missing_scope", str(error)) from None
    except ExpiredKey as error:
        raise Problem(401, "expired_key", str(error), headers=BEARER) from None
    except KeyRefused as error:
        raise Problem(401, "wrong_key", str(error), headers=BEARER) from None
