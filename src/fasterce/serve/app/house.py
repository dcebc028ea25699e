"""What every route has at hand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from fastapi import Request

from fasterce.serve.app.bodies import ArtifactSaid
from fasterce.serve.app.metrics import Metrics
from fasterce.serve.app.people import People
from fasterce.serve.app.problems import Problem
from fasterce.serve.app.rows import Rows
from fasterce.serve.engine.desk import Desk
from fasterce.serve.keys import ExpiredKey, KeyError_, Keys, MissingScope
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

    @property
    def ready(self) -> bool:
        return not self.closing and self.desk.ready

    def rows_of(self, description: Description) -> Rows:
        return checked_rows(description.artifact_digest, description.name, _Held(description))

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


@dataclass(frozen=True)
class _Held:
    """A description that the cache takes for any other: the digest and the name tell them apart."""

    description: Description = field(compare=False)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=64)
def checked_rows(digest: str, name: str, held: _Held) -> Rows:
    return Rows(held.description)


def house_of(request: Request) -> House:
    return request.app.state.house  # type: ignore[no-any-return]


def needs(scope: str) -> Callable[[Request], None]:
    """A dependency: the request must come with a key that has this scope, if the server has keys at all."""

    def check(request: Request) -> None:
        keys = house_of(request).keys
        if keys is None:
            return
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            request.state.key = keys.check(token.strip() if kind.lower() == "bearer" else "", scope)
        except MissingScope as error:
            raise Problem(403, "missing_scope", str(error)) from None
        except ExpiredKey as error:
            raise Problem(401, "expired_key", str(error), headers=BEARER) from None
        except KeyError_ as error:
            raise Problem(401, "wrong_key", str(error), headers=BEARER) from None

    return check
