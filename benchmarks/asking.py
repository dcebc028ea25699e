"""Asks a system in its own process row by row, with a watchdog: a hang is killed and written down, and the next row gets
a fresh process.

Nothing here raises because of what a system does: it cannot be installed, dies at import, crashes, hangs or prints
nonsense, and every row still has a record that says so.
"""

import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import venvs
from benchmarks.measuring import THREADS
from benchmarks.rivals.catalogue import Entry

ROOT = Path(__file__).parent.parent
ANSWERED, NOTHING, ERROR, TIMEOUT, DIED, NOT_TRIED = "answered", "no answer", "error", "timeout", "died", "not tried"
LAST_WORDS = 200


@dataclass(frozen=True)
class Limits:
    """Seconds: to get ready, for one row, and after which no further row is begun. `restarts`: of a process that hung or
    died."""

    setup: float = 300.0
    row: float = 20.0
    method: float = 60.0
    restarts: int = 2


@dataclass(frozen=True)
class Told:
    """What a system did with its rows: a record each, and what getting ready and a batch cost."""

    records: list[dict[str, Any]]
    ready: dict[str, Any]
    batch: dict[str, Any]
    notes: tuple[str, ...] = ()


class Silent(Exception):
    """No word within the time given."""


class Gone(Exception):
    """The process ended; the last line of its log."""


class Process:
    """A worker and the thread that listens to it, so that waiting for a word can have an end."""

    def __init__(self, python: str, entry: Entry, folder: Path) -> None:
        self.log = (folder / f"{entry.name}.log").open("w+")
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", entry.module, entry.variant, str(folder), entry.package],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            start_new_session=True,
        )
        self.words: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in self.process.stdout:
            self.words.put(line)
        self.words.put(None)

    def ask(self, question: str, seconds: float) -> dict[str, Any]:
        try:
            self.process.stdin.write(question + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise Gone(self.last_words()) from error
        return self.hear(seconds)

    def hear(self, seconds: float) -> dict[str, Any]:
        try:
            word = self.words.get(timeout=seconds)
        except queue.Empty as error:
            raise Silent from error
        if word is None:
            raise Gone(self.last_words())
        try:
            return json.loads(word)
        except json.JSONDecodeError as error:
            raise Gone(f"not a word of ours: {word.strip()[:80]}") from error

    def last_words(self) -> str:
        self.process.wait()
        self.log.seek(0)
        lines = [line.strip() for line in self.log if line.strip()]
        return (lines[-1] if lines else f"without a word, code {self.process.returncode}")[:LAST_WORDS]

    def end(self) -> None:
        """Kill the process and all it started; closing its input alone would leave a hanging one behind."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.log.close()


def environment() -> dict[str, str]:
    """Ours, with every library that brings its own threads held to the same number."""
    return {**{name: "1" for name in THREADS}, **os.environ}


def ask_all(
    entry: Entry, folder: Path, rows: int, limits: Limits, batch: int = 0, tell: Callable[[int], None] = lambda done: None
) -> Told:
    """The first `rows` rows of the problem in `folder`, and a batch if the system has one. `tell` hears of every row."""
    try:
        python = venvs.python_of(entry.module)
    except venvs.CannotInstall as error:
        return refused(rows, f"cannot be installed: {error}")
    return Interview(entry, folder, python, rows, limits, tell).run(batch)


def refused(rows: int, why: str) -> Told:
    return Told([record(position, NOT_TRIED, why) for position in range(rows)], {"failure": why}, {})


def record(position: int, status: str, why: str = "", **more: Any) -> dict[str, Any]:
    return {"position": position, "status": status, "reason": why, "answers": None, **more}


class Interview:
    def __init__(
        self, entry: Entry, folder: Path, python: str, rows: int, limits: Limits, tell: Callable[[int], None]
    ) -> None:
        self.entry, self.folder, self.python = entry, folder, python
        self.rows, self.limits, self.tell = rows, limits, tell
        self.records: list[dict[str, Any]] = []
        self.notes: tuple[str, ...] = ()
        self.ready: dict[str, Any] = {}
        self.batch: dict[str, Any] = {}
        self.process: Process | None = None
        self.starts = 0

    def run(self, batch: int) -> Told:
        try:
            self._run(batch)
        finally:
            self._stop()
        return Told(self.records, self.ready, self.batch, self.notes)

    def _run(self, batch: int) -> None:
        spent, why = 0.0, ""
        while len(self.records) < self.rows:
            why = why or self._start() or (f"out of {self.limits.method:.0f} s" if spent > self.limits.method else "")
            position = len(self.records)
            if why:
                self._note(record(position, NOT_TRIED, why))
                continue
            started = perf_counter()
            self._note(self._ask(position))
            spent += perf_counter() - started
        if batch and self.process is not None:
            self.batch = self._ask_batch(batch)

    def _note(self, found: dict[str, Any]) -> None:
        self.records.append(found)
        self.tell(len(self.records))

    def _start(self) -> str:
        """A process that is ready and has answered one row to warm up, or why there is none."""
        if self.process is not None:
            return ""
        if self.starts > self.limits.restarts:
            return f"given up after {self.starts} processes"
        self.starts += 1
        self.process = Process(self.python, self.entry, self.folder)
        try:
            ready = self.process.hear(self.limits.setup)
            self.ready = self.ready or ready
        except Silent:
            ready = {"failure": f"not ready within {self.limits.setup:.0f} s"}
        except Gone as error:
            ready = {"failure": f"died: {error}"}
        if "failure" in ready:
            self._stop()
            self.ready = {**self.ready, **ready}
            return ready["failure"]
        return self._warm_up()

    def _warm_up(self) -> str:
        """On a row nobody is asked about, where there is one. What goes wrong here will be seen in the rows."""
        try:
            self.process.ask(f"row {self.rows}", self.limits.row)
        except (Silent, Gone):
            self._stop()
            self.process = Process(self.python, self.entry, self.folder)
            try:
                self.process.hear(self.limits.setup)
            except (Silent, Gone) as error:
                self._stop()
                return f"died: {error}"
        return ""

    def _ask(self, position: int) -> dict[str, Any]:
        started = perf_counter()
        try:
            told = self.process.ask(f"row {position}", self.limits.row)
        except Silent:
            self._stop()
            return record(position, TIMEOUT, f"no answer within {self.limits.row:g} s", seconds=perf_counter() - started)
        except Gone as error:
            self._stop()
            return record(position, DIED, f"died: {error}", seconds=perf_counter() - started)
        self.notes = tuple(told.pop("notes", ()))
        failure = told.pop("failure")
        status = ERROR if failure else ANSWERED if told["answers"] else NOTHING
        return {"status": status, "reason": failure or ("" if told["answers"] else "no answer"), **told}

    def _ask_batch(self, batch: int) -> dict[str, Any]:
        try:
            return self.process.ask(f"batch {batch}", max(self.limits.method, self.limits.row))
        except (Silent, Gone):
            return {"batch": None, "failure": f"no batch within {self.limits.method:.0f} s"}

    def _stop(self) -> None:
        if self.process is not None:
            self.process.end()
            self.process = None
