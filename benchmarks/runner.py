"""Asks a system in its own process and watches it: a hang is killed and written down, and a fresh process goes on with the
next row.

Nothing here raises because of what a system does. It may not be installable, die at import, crash, hang or answer
nonsense: every row has a record that says so.
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
ANSWERED, NOTHING, ERROR, TIMEOUT, DIED, NOT_TRIED = "answered", "no answer", "error", "timeout", "died", "not tried"
LAST_WORDS = 200
GLANCE = 0.02


@dataclass(frozen=True)
class Limits:
    """Seconds: to get ready, for one row, and (of processor time) after which no further row is begun. `slow`: the same for
    systems slower than 50 ms per row, which are then asked fewer rows. `processes`: how many a system may use up by hanging
    or dying."""

    setup: float = 600.0
    row: float = 60.0
    method: float = 60.0
    slow: float = 60.0
    processes: int = 3


@dataclass
class Told:
    """What a system did: a record a row, and what getting ready and a batch cost."""

    records: list[dict[str, Any]] = field(default_factory=list)
    setup: float | None = None
    setup_asked: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    batches: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failure: str = ""


class Silent(Exception):
    """Nothing was heard for the time allowed."""


class Ended(Exception):
    """The process is over and said no more than this."""


def ask_all(
    entry: Entry, folder: Path, rows: int, limits: Limits, batch: int = 0, tell: Callable[[int], None] = lambda done: None
) -> Told:
    """The first `rows` rows of the problem in `folder`, and a batch if the system has one. `tell` hears of every row."""
    interview = Interview(entry, folder, rows, limits, batch, tell)
    try:
        interview.run(venvs.python_of(entry.module))
    except venvs.CannotInstall as error:
        interview.give_up(f"cannot be installed: {error}")
    return interview.told


class Interview:
    def __init__(
        self, entry: Entry, folder: Path, rows: int, limits: Limits, batch: int, tell: Callable[[int], None]
    ) -> None:
        self.entry, self.folder, self.rows, self.limits, self.batch, self.tell = entry, folder, rows, limits, batch, tell
        self.told = Told()
        self.spent = 0.0

    @property
    def next_row(self) -> int:
        return len(self.told.records)

    def run(self, python: str) -> None:
        """Processes one after the other until every row has its record."""
        for _ in range(self.limits.processes):
            if self.spent >= self.limits.method:
                break
            self._one_process(python)
            if self.next_row >= self.rows or self.told.failure:
                return
        out_of_time = self.spent >= self.limits.method
        why = f"out of {self.limits.method:g} s" if out_of_time else f"given up after {self.limits.processes} processes"
        self.give_up(why, "" if out_of_time else why)

    def give_up(self, why: str, failure: str | None = None) -> None:
        self.told.failure = why if failure is None else failure
        while self.next_row < self.rows:
            self._note(NOT_TRIED, why)

    def _note(self, status: str, why: str, answers: list[dict[str, Any]] | None = None, **cost: float) -> None:
        record = {"position": self.next_row, "status": status, "reason": why, "answers": answers, **cost}
        self.told.records.append(record)
        self.tell(self.next_row)

    def _one_process(self, python: str) -> None:
        """Until it is done, or something is the matter with one row: then that row is written down and it is ended."""
        ready, started = False, monotonic()
        with running(self._command(python), self._out) as watched:
            try:
                for word in watched.words(self._patience):
                    ready = ready or word["event"] == "ready"
                    started = monotonic() if word["event"] in ("ready", "warm") else started
                    self._hear(word)
            except (Silent, Ended) as error:
                self._gone(error, ready)
        self.spent += monotonic() - started if ready else 0.0

    @property
    def _out(self) -> Path:
        return self.folder / self.entry.name.replace(".", "_")

    def _command(self, python: str) -> list[str]:
        which = [self.entry.module, self.entry.variant, str(self.folder), str(self._out)]
        seconds = self.limits.method - self.spent
        options = ["--rows", self.rows, "--first", self.next_row, "--seconds", seconds, "--batch", self.batch]
        options += ["--slow", self.limits.slow]
        return [python, "-m", "benchmarks.rivals.run", *which, *map(str, options)]

    def _patience(self, event: str) -> float:
        """How long the word after this one may take."""
        if event in ("", "start"):
            return self.limits.setup
        return self.limits.row if event in ("ready", "begin") else max(self.limits.method, self.limits.row)

    def _hear(self, word: dict[str, Any]) -> None:
        if word["event"] == "ready":
            self.told.setup = self.told.setup if self.told.setup is not None else word["fit"]
            self.told.setup_asked = self.told.setup_asked or word["asked"]
            self.told.versions = word["versions"]
        elif word["event"] == "row":
            self._row(word)
        elif word["event"] == "failed" and self.next_row >= self.rows:
            self.told.notes = [f"no batch: {word['failure']}"]
        elif word["event"] == "failed":
            self.give_up(word["failure"])
        elif word["event"] == "done":
            self.told.batches, self.told.notes = word["batches"], word["notes"]
            self.rows = self.next_row if word.get("cut") else self.rows
            while self.next_row < self.rows:
                self._note(NOT_TRIED, f"out of {self.limits.method:g} s")

    def _row(self, word: dict[str, Any]) -> None:
        answers, failure, asked = word["answer"] or None, word["error"], word["asked"]
        status = ERROR if failure else ANSWERED if answers else NOTHING
        cost = {name: asked[name] for name in ("calls", "rows", "model")}
        cost |= {"proven": float(word["proven"])} if word.get("proven") is not None else {}
        self._note(status, failure or ("" if answers else NOTHING), answers, seconds=word["seconds"], **cost)

    def _gone(self, error: Exception, ready: bool) -> None:
        if self.next_row >= self.rows:
            self.told.notes = [*self.told.notes, "no batch in time"]
        elif not ready:
            why = f"not ready within {self.limits.setup:g} s" if isinstance(error, Silent) else f"died: {error}"
            self.give_up(why)
        elif isinstance(error, Silent):
            self._note(TIMEOUT, f"no answer within {self.limits.row:g} s", seconds=self.limits.row)
        else:
            self._note(DIED, f"died: {error}")


@dataclass(frozen=True)
class Watched:
    process: "subprocess.Popen[bytes]"
    log: Path
    lines: Path

    def words(self, patience: Callable[[str], float]) -> Iterator[dict[str, Any]]:
        """Lines of JSON as they are appended to its file; `patience` says how long the word after an event may take."""
        event = ""
        with self.lines.open(encoding="utf-8") as lines:
            while event not in ("done", "failed"):
                word = self._next(lines, monotonic() + patience(event))
                event = word["event"]
                yield word

    def _next(self, lines: Any, until: float) -> dict[str, Any]:
        line = ""
        while True:
            over = self.process.poll() is not None
            line += lines.readline()
            if line.endswith("\n"):
                return json.loads(line)
            if over:
                raise Ended(self._last_words())
            if monotonic() > until:
                raise Silent
            sleep(GLANCE)

    def _last_words(self) -> str:
        said = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return f"code {self.process.returncode}, {said[-1] if said else 'without a word'}"[:LAST_WORDS]


@contextmanager
def running(command: list[str], out: Path) -> Iterator[Watched]:
    """A process in a group of its own, killed with all it started at the end."""
    log, lines = out.with_suffix(".log"), out.with_suffix(".lines")
    lines.write_text("")
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        )
    try:
        yield Watched(process, log, lines)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def environment() -> dict[str, str]:
    """Ours, with every library that brings its own threads held to the same number."""
    return {**dict.fromkeys(THREADS, "1"), **os.environ}
