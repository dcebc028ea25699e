"""Run a system in a process of its own, one query at a time, with a watchdog.

Nothing a system does raises here. If it cannot be installed, fails at import, crashes, hangs or returns something unreadable,
every query still gets a record that says so; after a hang or a crash a new process continues with the next query.
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from benchmarks import venvs
from benchmarks.measuring import THREADS
from benchmarks.rivals.catalogue import Entry

ROOT = Path(__file__).parent.parent
FOUND, NONE_FOUND, ERROR, TIMEOUT, CRASHED, NOT_TRIED = "found", "none_found", "error", "timeout", "crashed", "not_tried"
MAX_REASON_LENGTH = 200
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Limits:
    """Time limits of a system, in seconds.

    setup      wall time of set-up
    row        wall time of one query
    method     processor time after which no further query is started
    slow       the same for systems slower than 50 ms per query, which then explain fewer queries
    processes  (not seconds) how many processes a system may use up by hanging or crashing
    """

    setup: float = 600.0
    row: float = 60.0
    method: float = 60.0
    slow: float = 60.0
    processes: int = 3


@dataclass
class SystemResult:
    """One record per query, and the cost of set-up and of a batch."""

    records: list[dict[str, Any]] = field(default_factory=list)
    setup: float | None = None
    setup_usage: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    batches: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failure: str = ""


class NoOutput(Exception):
    """The process wrote no event within its time limit."""


class ProcessEnded(Exception):
    """The process ended before its last event; the message is the exit code and the last line of its log."""


def run_system(
    entry: Entry,
    folder: Path,
    rows: int,
    limits: Limits,
    batch: int = 0,
    progress: Callable[[int], None] = lambda done: None,
) -> SystemResult:
    """Explain the first `rows` rows of the problem in `folder`, and a batch if the system supports batches.

    `progress` is called with the number of finished rows.
    """
    run = SystemRun(entry, folder, rows, limits, batch, progress)
    try:
        run.run(venvs.python_of(entry.module))
    except venvs.CannotInstall as error:
        run.give_up(f"cannot be installed: {error}")
    return run.result


class SystemRun:
    def __init__(
        self, entry: Entry, folder: Path, rows: int, limits: Limits, batch: int, progress: Callable[[int], None]
    ) -> None:
        self.entry, self.folder, self.rows, self.limits, self.batch = entry, folder, rows, limits, batch
        self.progress = progress
        self.result = SystemResult()
        self.spent = 0.0

    @property
    def next_row(self) -> int:
        return len(self.result.records)

    def run(self, python: str) -> None:
        """Start one process after the other until every row has a record."""
        for _ in range(self.limits.processes):
            if self.spent >= self.limits.method:
                break
            self._run_process(python)
            if self.next_row >= self.rows or self.result.failure:
                return
        out_of_time = self.spent >= self.limits.method
        reason = f"out of {self.limits.method:g} s" if out_of_time else f"given up after {self.limits.processes} processes"
        self.give_up(reason, "" if out_of_time else reason)

    def give_up(self, reason: str, failure: str | None = None) -> None:
        self.result.failure = reason if failure is None else failure
        self._skip_rest(reason)

    def _skip_rest(self, reason: str) -> None:
        while self.next_row < self.rows:
            self._record(NOT_TRIED, reason)

    def _record(self, status: str, reason: str, counterfactuals: list[dict[str, Any]] | None = None, **cost: float) -> None:
        record = {"position": self.next_row, "status": status, "reason": reason, "counterfactuals": counterfactuals, **cost}
        self.result.records.append(record)
        self.progress(self.next_row)

    def _run_process(self, python: str) -> None:
        """Run one process until all is done, or until one row fails: that row is recorded, and the process killed."""
        ready, started = False, monotonic()
        with running(self._command(python), self._out) as stream:
            try:
                for event in stream.events(self._timeout):
                    ready = ready or event["event"] == "ready"
                    started = monotonic() if event["event"] in ("ready", "warm") else started
                    self._handle(event)
            except (NoOutput, ProcessEnded) as error:
                self._handle_end(error, ready)
        self.spent += monotonic() - started if ready else 0.0

    @property
    def _out(self) -> Path:
        return self.folder / self.entry.name.replace(".", "_")

    def _command(self, python: str) -> list[str]:
        arguments = [self.entry.module, self.entry.variant, str(self.folder), str(self._out)]
        seconds = self.limits.method - self.spent
        options = ["--rows", self.rows, "--first", self.next_row, "--seconds", seconds, "--batch", self.batch]
        options += ["--slow", self.limits.slow]
        return [python, "-m", "benchmarks.rivals.run", *arguments, *map(str, options)]

    def _timeout(self, event: str) -> float:
        """Return the seconds that the event after this one may take."""
        if event in ("", "start"):
            return self.limits.setup
        return self.limits.row if event in ("ready", "begin") else max(self.limits.method, self.limits.row)

    def _handle(self, event: dict[str, Any]) -> None:
        if event["event"] == "ready":
            self.result.setup = self.result.setup if self.result.setup is not None else event["fit"]
            self.result.setup_usage = self.result.setup_usage or event["usage"]
            self.result.versions = event["versions"]
        elif event["event"] == "row":
            self._handle_row(event)
        elif event["event"] == "failed" and self.next_row >= self.rows:
            self.result.notes = [f"no batch: {event['failure']}"]
        elif event["event"] == "failed":
            self.give_up(event["failure"])
        elif event["event"] == "done":
            self.result.batches, self.result.notes = event["batches"], event["notes"]
            self.rows = self.next_row if event.get("cut") else self.rows
            self._skip_rest(f"out of {self.limits.method:g} s")

    def _handle_row(self, event: dict[str, Any]) -> None:
        found, error, usage = event["counterfactuals"] or None, event["error"], event["usage"]
        status = ERROR if error else FOUND if found else NONE_FOUND
        cost = {name: usage[name] for name in ("calls", "rows", "model_seconds")}
        cost |= {"proven": float(event["proven"])} if event.get("proven") is not None else {}
        reason = error or ("" if found else "no counterfactual")
        self._record(status, reason, found, seconds=event["seconds"], **cost)

    def _handle_end(self, error: Exception, ready: bool) -> None:
        if self.next_row >= self.rows:
            self.result.notes = [*self.result.notes, "no batch in time"]
        elif not ready:
            timed_out = isinstance(error, NoOutput)
            self.give_up(f"not ready within {self.limits.setup:g} s" if timed_out else f"crashed: {error}")
        elif isinstance(error, NoOutput):
            self._record(TIMEOUT, f"no result within {self.limits.row:g} s", seconds=self.limits.row)
        else:
            self._record(CRASHED, f"crashed: {error}")


@dataclass(frozen=True)
class EventStream:
    """The events of a process, which appends them to a file as lines of JSON."""

    process: "subprocess.Popen[bytes]"
    log: Path
    path: Path

    def events(self, timeout: Callable[[str], float]) -> Iterator[dict[str, Any]]:
        """Yield events until the last one; `timeout` returns the seconds to wait for the event after a given one."""
        last = ""
        with self.path.open(encoding="utf-8") as lines:
            while last not in ("done", "failed"):
                event = self._next(lines, monotonic() + timeout(last))
                last = event["event"]
                yield event

    def _next(self, lines: Any, deadline: float) -> dict[str, Any]:
        line = ""
        while True:
            # Before reading: what a process writes before it ends is not missed.
            ended = self.process.poll() is not None
            line += lines.readline()
            if line.endswith("\n"):
                return json.loads(line)
            if ended:
                raise ProcessEnded(self._exit_message())
            if monotonic() > deadline:
                raise NoOutput
            sleep(POLL_SECONDS)

    def _exit_message(self) -> str:
        logged = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return f"code {self.process.returncode}, {logged[-1] if logged else 'without output'}"[:MAX_REASON_LENGTH]


@contextmanager
def running(command: list[str], out: Path) -> Iterator[EventStream]:
    """Start a process in a group of its own; at the end it is killed with all processes it started."""
    log, path = out.with_suffix(".log"), out.with_suffix(".lines")
    path.write_text("")
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield EventStream(process, log, path)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def environment() -> dict[str, str]:
    """Return our environment, with one thread for every numerical library unless set otherwise."""
    return {**dict.fromkeys(THREADS, "1"), **os.environ}
