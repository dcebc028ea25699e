"""What an engine says while it works through shards."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fasterce.batch.job import Job
from fasterce.batch.shards import Shard
from fasterce.batch.tally import Tally


@dataclass(frozen=True)
class Underway:
    """How far a shard is."""

    number: int
    tally: Tally


@dataclass(frozen=True)
class Done:
    """A shard is in its place."""

    number: int
    about: Mapping[str, Any]


@dataclass(frozen=True)
class Failed:
    """A shard was tried in vain: `final` once it is not tried again."""

    number: int
    kind: str
    said: str
    final: bool


Event = Underway | Done | Failed


class Engine(Protocol):
    """Does every shard, each at most `1 + retries` times, and says what becomes of it."""

    def __call__(self, job: Job, shards: Sequence[Shard], *, workers: int, retries: int) -> Generator[Event, None, None]: ...
