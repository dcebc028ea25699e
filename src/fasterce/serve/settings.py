"""Every limit and default of the service, in one place."""

from dataclasses import dataclass, field
from pathlib import Path

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class Served:
    """An artifact to serve: the folder, the model if the folder does not bring it, types a skops model may hold, and a file
    of people to pick on the page."""

    name: str
    folder: Path
    model: str | None = None
    trusted: tuple[str, ...] = ()
    classes: str | None = None
    title: str | None = None
    applicants: Path | None = None
    applicants_id: str | None = None


@dataclass(frozen=True)
class Settings:
    """
    workers : engines that answer; one more waits as a spare.
    gather_ms : how long a question may wait for company while no engine is free for it alone.
    most_batch, most_waiting : rows of one call of `explain`, and rows waiting or being explained before 429.
    load_seconds : how long an engine may take to load all artifacts before it is given up.
    most_memory_mb : of data an engine may take (Linux); a model that wants more gets a MemoryError. None: no limit.
    hang_seconds : how long an engine may go on after the first question of its batch is late while others still wait.
    deadline_ms, most_deadline_ms : if the request names none, and the most it may name.
    most_rows, most_body : of one request; bytes.
    retention_days : after which records are deleted; None keeps them.
    wording : a file of the sentences of records (`records.Wording`).
    grace : seconds for accepted work after SIGTERM.
    """

    artifacts: tuple[Served, ...]
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    gather_ms: float = 3.0
    most_batch: int = 64
    most_waiting: int = 128
    hang_seconds: float = 2.0
    load_seconds: float = 60.0
    most_memory_mb: int | None = 4096
    deadline_ms: int = 2000
    most_deadline_ms: int = 60_000
    most_rows: int = 256
    most_body: int = 1 << 20
    records: str | None = "sqlite:///fasterce-records.db"
    retention_days: int | None = None
    keys: Path | None = None
    origins: tuple[str, ...] = ()
    wording: Path | None = None
    page: bool = True
    grace: float = 8.0
    log_level: str = "info"
    environment: dict[str, str] = field(default_factory=dict)
