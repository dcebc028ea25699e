"""Every limit and default of the service, in one place."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from fasterce.options import LARGEST_N

# Fields of a request that a service may require where records are kept.
REQUIRABLE = ("row_ids", "decision_ids", "subjects", "constraints_by")
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class ServedArtifact:
    """An artifact to serve.

    Parameters
    ----------
    name : str
    folder : Path
    model : str, optional
        A file, import path or address; None for the model in the folder.
    trusted : tuple of str
        Types a skops model may hold.
    classes : str, optional
        Names of the classes, separated by commas.
    title : str, optional
        What the page calls it.
    applicants : Path, optional
        A file of applicants to choose from on the page.
    applicants_id : str, optional
        The column of that file that names them.
    """

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
    """Settings of the service.

    Parameters
    ----------
    artifacts : tuple of ServedArtifact
        The first one is the default.
    host, port : str, int
        Where it listens; port 0 takes a free one.
    workers : int
        Worker processes; one more waits as a spare, so that a worker that is lost is replaced without delay.
    gather_ms : float
        Milliseconds a request may be held back so that others can share its call, while requests come in faster than
        workers get free. About the time a client needs to send the next request.
    most_batch : int
        Rows of one call of `explain`. More rows make a call slower without making each row cheaper.
    piece_ms : float
        Milliseconds one call of `explain` should take at most. Larger requests are cut into pieces of half of it, between
        which the requests of other clients are explained.
    most_waiting : int
        Rows with the default options (or fewer that cost more) waiting or running. Beyond it a client that holds its equal
        part gets 429, which is better than a response after the deadline. A client is a key; without keys an address, whose
        connections divide its part.
    hang_seconds : float
        Seconds a worker may go on after the first deadline of its batch while other requests of it still wait.
    load_seconds : float
        Seconds a worker may take to load all artifacts; then it is killed. The first start on a machine compiles kernels.
    most_memory_mb : int or None
        Megabytes of data of a worker (Linux); a model that needs more gets a MemoryError. None for no limit.
    deadline_ms, most_deadline_ms : int
        Milliseconds for a request that names no deadline, and the longest deadline a request may name.
    most_rows, most_body : int
        Rows and bytes of one request: a body is parsed by the HTTP process, which serves nobody else meanwhile.
    most_n : int
        Counterfactuals per row.
    most_cost : int
        Estimated cost of one request, in rows with the default options (`limits.row_cost`).
    most_connections, most_connections_per_address : int
        Open connections, in all and of one address. Beyond them the oldest is closed that has never sent an accepted request.
    proxies : tuple of str
        Addresses of proxies whose `X-Forwarded-For` is believed; their connections are not limited by address.
    model_check_seconds : float
        Seconds between two checks whether a remote model responds.
    body_seconds : float
        Seconds to send the body of a request: a slow client must not hold memory for long.
    extra_requests : int
        Requests being read beyond those whose rows may wait: each may hold a body in memory.
    records : str or None
        The database of records; None stores none.
    retention_days : int or None
        Days after which records are deleted; None keeps them.
    keys : Path or None
        File of API keys; None serves everybody.
    origins : tuple of str
        Other sites whose pages may send requests.
    wording : Path or None
        File of the texts of records (`records.Wording`).
    letter : Path or None
        TOML file of the words of letters, in place of those of `letter.toml`.
    required : tuple of str
        Fields without which no record is kept, of `REQUIRABLE`.
    page : bool
        Whether the page is served.
    grace : float
        Seconds for accepted work after SIGTERM; process managers kill after 10.
    log_level : str
    log_address : {"truncated", "full", "none"}
        How log lines show the address of a client; truncated to a /24 (IPv4) or /48 (IPv6) network it names no person.
    environment : dict
        Environment variables of the workers.
    """

    artifacts: tuple[ServedArtifact, ...]
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    gather_ms: float = 3.0
    most_batch: int = 64
    piece_ms: float = 60.0
    most_waiting: int = 128
    hang_seconds: float = 2.0
    load_seconds: float = 300.0
    most_memory_mb: int | None = 4096
    deadline_ms: int = 2000
    most_deadline_ms: int = 60_000
    most_rows: int = 256
    most_body: int = 1 << 20
    most_n: int = LARGEST_N
    most_cost: int = 8192
    most_connections: int = 768
    most_connections_per_address: int = 512
    proxies: tuple[str, ...] = ()
    model_check_seconds: float = 5.0
    body_seconds: float = 10.0
    extra_requests: int = 32
    records: str | None = "sqlite:///fasterce-records.db"
    retention_days: int | None = None
    keys: Path | None = None
    origins: tuple[str, ...] = ()
    wording: Path | None = None
    letter: Path | None = None
    required: tuple[str, ...] = ()
    page: bool = True
    grace: float = 8.0
    log_level: str = "info"
    log_address: Literal["truncated", "full", "none"] = "truncated"
    environment: dict[str, str] = field(default_factory=dict)
