"""Worker processes: a fork server that has imported what workers need, and the messages between a worker and its owner.

The service (`fasterce.serve.workers`) and batch runs (`fasterce.batch.local`) use it. docs/decisions/0005-worker-processes.md
says what it guarantees, and why it is not the fork server of `multiprocessing`.
"""

import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

# A command: what, and the number of the worker. An event: what, the number, and a process id or an exit code.
COMMAND, EVENT = struct.Struct(">cI"), struct.Struct(">cIi")
SPAWN, KILL = b"s", b"k"
STARTED, EXITED = b"s", b"e"
# Lengths of a message's header and body, and the largest that are accepted.
LENGTHS = struct.Struct(">IQ")
MAX_HEADER, MAX_BODY = 1 << 30, 1 << 32
SINGLE_THREADED = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
# ONNX Runtime sends telemetry and writes to the user's folder unless this is set before the import.
NO_TELEMETRY = ("ORT_DISABLE_TELEMETRY", "1")
BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); from fasterce.io.processes import run_fork_server; "
    "run_fork_server(int(sys.argv[1]), sys.argv[3], json.loads(sys.argv[4]))"
)
PR_SET_PDEATHSIG = 1
FIRST_TO_BE_KILLED = "1000"
UNEXPECTED_EXIT = 70

Header = dict[str, Any]
Event = tuple[bytes, int, int]


class ForkServer:
    """The owner's end of a fork server. Closing it ends the server and every worker.

    Workers have numbers, so that the owner never uses a process id that may belong to another process by now.

    Parameters
    ----------
    target : str
        "module:function", called in each worker with its socket.
    modules : sequence of str
        Modules imported once, before the first worker is forked. Those that are not installed are left out.
    environment : mapping
        Variables added to those of this process; numeric libraries are limited to one thread.
    """

    def __init__(self, target: str, modules: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> None:
        self.control, other = socket.socketpair()
        path = sys.path if "" in sys.path else ["", *sys.path]
        arguments = [str(other.fileno()), json.dumps(path), target, json.dumps([target.partition(":")[0], *modules])]
        with other:
            try:
                # In its own session: signals of the terminal or of a process manager are for the owner to act on.
                self.process = subprocess.Popen(
                    [sys.executable, "-c", BOOTSTRAP, *arguments],
                    env={**dict([NO_TELEMETRY]), **os.environ, **SINGLE_THREADED, **(environment or {})},
                    pass_fds=(other.fileno(),),
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError:
                self.control.close()
                raise
        self.control.setblocking(False)
        self._unread = b""

    def spawn(self, number: int) -> socket.socket:
        """Fork a worker and return the owner's end of its socket; raises OSError."""
        own, other = socket.socketpair()
        try:
            with other:
                socket.send_fds(self.control, [COMMAND.pack(SPAWN, number)], [other.fileno()])
        except OSError:
            own.close()
            raise
        return own

    def kill(self, number: int) -> None:
        """Kill a worker and the processes it started."""
        with suppress(OSError):
            self.control.send(COMMAND.pack(KILL, number))

    def events(self) -> list[Event] | None:
        """Return what happened to workers since the last call; None once the server is gone. Does not block."""
        try:
            received = self.control.recv(EVENT.size * 64)
        except BlockingIOError:
            return []
        except OSError:
            received = b""
        if not received:
            return None
        self._unread += received
        complete = len(self._unread) - len(self._unread) % EVENT.size
        events, self._unread = self._unread[:complete], self._unread[complete:]
        return list(EVENT.iter_unpack(events))

    def close(self) -> None:
        """Close the socket, which ends the server and its workers; `process` can be waited for."""
        self.control.close()


def packed(header: Mapping[str, Any], body: bytes = b"") -> bytes:
    """Return a message: lengths, a header in JSON, and a body of bytes."""
    written = json.dumps(header, separators=(",", ":")).encode()
    return LENGTHS.pack(len(written), len(body)) + written + body


def lengths(prefix: bytes) -> tuple[int, int]:
    """Return the lengths of header and body of a message that starts with these bytes."""
    header, body = LENGTHS.unpack(prefix)
    if header > MAX_HEADER or body > MAX_BODY:
        raise ConnectionError("The lengths of a worker's message are out of range.")
    return header, body


def receive(connection: socket.socket) -> tuple[Header, bytes]:
    """Wait for the next message; EOFError once the other side is gone."""
    header, body = lengths(_receive_exactly(connection, LENGTHS.size))
    return json.loads(_receive_exactly(connection, header)), _receive_exactly(connection, body)


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(min(size - len(received), 1 << 20))
        if not part:
            raise EOFError
        received += part
    return bytes(received)


def limit_memory(megabytes: int | None) -> None:
    """Limit the data of this process (Linux): what needs more gets a MemoryError."""
    if megabytes is not None and sys.platform == "linux":
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 20, megabytes << 20))


def run_fork_server(descriptor: int, target: str, modules: Sequence[str]) -> NoReturn:
    """Import the modules, then fork and kill workers as commanded until the owner is gone. Runs in the server's process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Garbage collection takes a fifth of the import time and frees almost nothing.
    gc.disable()
    _postpone("scipy.stats")
    with _without_torch():
        for name in modules:
            with suppress(ImportError):
                importlib.import_module(name)
    gc.freeze()
    _Server(socket.socket(fileno=descriptor), target).run()
    os._exit(0)


def settle_memory() -> None:
    """Free memory left over from loading, and freeze the rest: garbage collection would write to shared memory."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)
    gc.freeze()


def _postpone(name: str) -> None:
    """Import a module when something of it is used first. scikit-learn imports scipy.stats whatever it is used for, which
    takes half a second and 30 MB.

    `importlib.util.LazyLoader` does not work: the second `import` statement loads the module.
    """
    stand_in = ModuleType(name)

    def load(attribute: str) -> object:
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
        return getattr(importlib.import_module(name), attribute)

    stand_in.__getattr__ = load  # type: ignore[method-assign]
    sys.modules[name] = stand_in


class _TorchHidden:
    """A finder that hides PyTorch from libraries that look for it: workers seldom need it, and it is large.

    None in `sys.modules` does not work: SciPy would use it as PyTorch.
    """

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == "torch":
            raise ModuleNotFoundError("PyTorch is not imported in advance.", name=name)
        return None


@contextmanager
def _without_torch() -> Iterator[None]:
    finder = _TorchHidden()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Server:
    """The fork server's loop. It runs no user code, so it cannot hang."""

    def __init__(self, control: socket.socket, target: str) -> None:
        self.control, self.target = control, target
        self.pids: dict[int, int] = {}
        self.wakeup, self.signalled = socket.socketpair()
        self.wakeup.setblocking(False)
        self.signalled.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.signalled.fileno(), warn_on_full_buffer=False)

    def run(self) -> None:
        try:
            while True:
                ready, _, _ = select.select([self.control, self.wakeup], [], [])
                if self.wakeup in ready:
                    self._reap()
                if self.control in ready and not self._obey():
                    return
        except OSError:
            return
        finally:
            signal.set_wakeup_fd(-1)
            for number, pid in self.pids.items():
                self._kill(number)
                os.waitpid(pid, 0)

    def _obey(self) -> bool:
        """Execute one command; False if the owner is gone."""
        command, descriptors, _, _ = socket.recv_fds(self.control, COMMAND.size, 1)
        while command and len(command) < COMMAND.size:
            command += self.control.recv(COMMAND.size - len(command)) or b"\0" * COMMAND.size
        if len(command) != COMMAND.size:
            return False
        what, number = COMMAND.unpack(command)
        if what == SPAWN and descriptors:
            self._spawn(number, descriptors[0])
        elif what == KILL:
            self._kill(number)
        return True

    def _spawn(self, number: int, descriptor: int) -> None:
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(descriptor)
            self._report(EXITED, number, -(error.errno or 1))
            return
        if pid == 0:
            try:
                self._run_worker(parent, descriptor)
            finally:
                os._exit(UNEXPECTED_EXIT)
        os.close(descriptor)
        with suppress(OSError):
            os.setpgid(pid, pid)
        self.pids[number] = pid
        self._report(STARTED, number, pid)

    def _run_worker(self, parent: int, descriptor: int) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for inherited in (self.control, self.wakeup, self.signalled):
            inherited.close()
        _isolate(parent)
        module, _, name = self.target.partition(":")
        with socket.socket(fileno=descriptor) as connection:
            getattr(importlib.import_module(module), name)(connection)

    def _kill(self, number: int) -> None:
        """Kill the worker's process group; the worker is a zombie at worst until it is waited for."""
        if number in self.pids:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pids[number], signal.SIGKILL)

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            while self.wakeup.recv(4096):
                pass
        for number, pid in list(self.pids.items()):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                # The processes it started end too, while its process id still belongs to it.
                self._kill(number)
                _, status = os.waitpid(pid, 0)
                del self.pids[number]
                self._report(EXITED, number, os.waitstatus_to_exitcode(status))

    def _report(self, what: bytes, number: int, value: int) -> None:
        self.control.sendall(EVENT.pack(what, number, value))


def _isolate(parent: int) -> None:
    """Make a worker end with the fork server, be killed first when memory is short, and write nothing to stdout."""
    with suppress(OSError):
        os.setpgid(0, 0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)
        with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(FIRST_TO_BE_KILLED)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nowhere, number)
    os.close(nowhere)
