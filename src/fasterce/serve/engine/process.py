"""The other side of the pool: a nursery that has imported everything and forks engines, and an engine's loop.

The nursery loads no model and asks none, so it cannot hang; it ends, and ends all engines, as soon as the front is gone.
"""

import ctypes
import gc
import importlib
import os
import resource
import select
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from fasterce.serve.engine import wire
from fasterce.serve.question import Refused, Unanswered

COMMAND = struct.Struct(">cI")
NEWS = struct.Struct(">cIi")
RAISE, END = b"r", b"e"
BORN, GONE = b"b", b"g"
ANSWERING = "fasterce.serve.engine.answering"
PR_SET_PDEATHSIG = 1
FIRST_TO_GO = "1000"


class WithoutTorch:
    """Hides PyTorch from libraries that look whether it is there: explaining does not need it, and it is large."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "torch":
            raise ModuleNotFoundError("PyTorch is not imported in advance.", name=name)

    def __enter__(self) -> None:
        sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)


def nurse(descriptor: int, modules: Sequence[str]) -> NoReturn:
    """Import what engines need, then make and end them as told, until the front is gone. What is not installed is left to
    the engines, who can say what they need it for."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # A fifth of the time of importing goes into looking for garbage where there is none.
    gc.disable()
    with WithoutTorch():
        for name in (ANSWERING, *modules):
            with suppress(ImportError):
                importlib.import_module(name)
    gc.freeze()
    Nursery(socket.socket(fileno=descriptor)).run()
    os._exit(0)


class Nursery:
    """Engines by number; the front never sees a process id that might have been given to another process since."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.pids: dict[int, int] = {}
        self.woken, self.wakes = socket.socketpair()
        self.wakes.setblocking(False)
        self.woken.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wakes.fileno(), warn_on_full_buffer=False)

    def run(self) -> None:
        try:
            while True:
                ready, _, _ = select.select([self.control, self.woken], [], [])
                if self.woken in ready:
                    self._see_who_is_gone()
                if self.control in ready and not self._obey():
                    return
        except OSError:
            return
        finally:
            signal.set_wakeup_fd(-1)
            for number, pid in self.pids.items():
                self._end(number)
                os.waitpid(pid, 0)

    def _obey(self) -> bool:
        """One command; False if there is nobody left to command."""
        written, descriptors, _, _ = socket.recv_fds(self.control, COMMAND.size, 1)
        while written and len(written) < COMMAND.size:
            written += self.control.recv(COMMAND.size - len(written)) or b"\0" * COMMAND.size
        if len(written) != COMMAND.size:
            return False
        what, number = COMMAND.unpack(written)
        if what == RAISE and descriptors:
            self._raise(number, descriptors[0])
        elif what == END:
            self._end(number)
        return True

    def _raise(self, number: int, descriptor: int) -> None:
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(descriptor)
            self._tell(GONE, number, -(error.errno or 1))
            return
        if pid == 0:
            try:
                self._become_engine(parent, descriptor)
            finally:
                os._exit(70)
        os.close(descriptor)
        with suppress(OSError):
            os.setpgid(pid, pid)
        self.pids[number] = pid
        self._tell(BORN, number, pid)

    def _become_engine(self, parent: int, descriptor: int) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for held in (self.control, self.woken, self.wakes):
            held.close()
        settle(parent)
        with socket.socket(fileno=descriptor) as connection:
            work(connection)

    def _end(self, number: int) -> None:
        """The engine and whatever it has started; it is a zombie at worst until it is waited for."""
        if number in self.pids:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pids[number], signal.SIGKILL)

    def _see_who_is_gone(self) -> None:
        with suppress(BlockingIOError):
            while self.woken.recv(4096):
                pass
        for number, pid in list(self.pids.items()):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                # What it started goes too, while its id still belongs to it.
                self._end(number)
                _, status = os.waitpid(pid, 0)
                del self.pids[number]
                self._tell(GONE, number, os.waitstatus_to_exitcode(status))

    def _tell(self, what: bytes, number: int, value: int) -> None:
        self.control.sendall(NEWS.pack(what, number, value))


def settle(parent: int) -> None:
    """An engine ends with its nursery, is the first to go when memory is short, and writes nothing to the front's output."""
    with suppress(OSError):
        os.setpgid(0, 0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)
        with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(FIRST_TO_GO)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nowhere, number)
    os.close(nowhere)


def limit_memory(megabytes: int | None) -> None:
    if megabytes is not None and sys.platform == "linux":
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 20, megabytes << 20))


def work(connection: socket.socket) -> None:
    """Load, say so, and answer one batch after another until the front is gone."""
    from fasterce.serve.engine.answering import Answering, kind_of, sentence_of  # noqa: PLC0415 - the front reads this module too

    with suppress(EOFError, ConnectionError):
        header, _ = wire.receive(connection)
        settings = wire.settings_in(header)
        limit_memory(settings.most_memory_mb)
        try:
            answering = Answering(settings)
            answering.warm_up()
        except Exception as error:
            connection.sendall(wire.packed({"failed": sentence_of(error), "kind": kind_of(error)}))
            return
        gc.freeze()
        gc.enable()
        ready = [wire.description_out(one) for one in answering.descriptions]
        connection.sendall(wire.packed({"ready": ready}))
        while True:
            header, _ = wire.receive(connection)
            connection.sendall(wire.packed({"taken": len(header["questions"])}))
            connection.sendall(reply(answering, header))


def reply(answering: Any, header: wire.Header) -> bytes:
    """The answers to a batch, or that something went wrong that nobody foresaw."""
    try:
        answered = answering.answer(wire.questions_in(header))
    except Unanswered as error:
        return wire.packed({"broken": str(error)})
    except Exception as error:
        return wire.packed({"broken": type(error).__name__})
    outcomes: list[dict[str, Any]] = []
    texts: list[bytes] = []
    for outcome in answered.outcomes:
        if isinstance(outcome, Refused):
            outcomes.append({"refused": str(outcome), "field": outcome.field})
        else:
            named, bodies = wire.records_out(outcome)
            outcomes.append({"records": named})
            texts += bodies
    told = {name: getattr(answered, name) for name in ("calls", "rows_asked", "batch_rows", "seconds", "cut_short")}
    return wire.packed(told | {"outcomes": outcomes}, b"".join(texts))
