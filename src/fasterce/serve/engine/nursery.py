"""The front's end of the process that makes engines (`process.Nursery` is the other)."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from fasterce.serve.engine.modules import needed_modules
from fasterce.serve.engine.process import COMMAND, END, NEWS, RAISE
from fasterce.serve.settings import Settings

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
BEGIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); from fasterce.serve.engine.process import nurse; "
    "nurse(int(sys.argv[1]), json.loads(sys.argv[3]))"
)
ENDS_WITHIN = 2.0


class LoadError(Exception):
    """An engine could not be made; the sentence says why, and `kind` what sort of error of ours it was, if it was one."""

    def __init__(self, sentence: str, kind: str = "") -> None:
        super().__init__(sentence)
        self.kind = kind


@dataclass(frozen=True)
class Begun:
    """The process, which is importing what engines need, and the socket it obeys. It ends when the socket is closed."""

    control: socket.socket
    process: subprocess.Popen[bytes]


def begin(settings: Settings) -> Begun:
    """Start the process now. Done before the front imports what it needs itself, both import at the same time: hand what
    comes back to `Desk`."""
    own, other = socket.socketpair()
    path = sys.path if "" in sys.path else ["", *sys.path]
    modules = json.dumps(needed_modules(settings.artifacts))
    command = [sys.executable, "-c", BEGIN, str(other.fileno()), json.dumps(path), modules]
    with other:
        try:
            # A session of its own: what the terminal or a process manager sends the front is for the front to act on.
            process = subprocess.Popen(
                command,
                env={**os.environ, **dict.fromkeys(ONE_THREAD, "1"), **settings.environment},
                pass_fds=(other.fileno(),),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            own.close()
            raise
    own.setblocking(False)
    return Begun(own, process)


class Nursery:
    """Makes engines and ends them; `news(what, number, value)` is called when one is born or gone, `lost()` when the nursery
    itself is. It is begun again when it is needed again."""

    def __init__(
        self,
        settings: Settings,
        news: Callable[[bytes, int, int], None],
        lost: Callable[[], None],
        begun: Begun | None = None,
    ) -> None:
        self.settings = settings
        self.news, self.lost = news, lost
        self.begun = begun
        self._heeded: socket.socket | None = None
        self._read = b""

    @property
    def pid(self) -> int | None:
        return None if self.begun is None else self.begun.process.pid

    def start(self) -> Begun:
        """Begin if nobody has, and listen."""
        if self.begun is None:
            self.begun = begin(self.settings)
        if self._heeded is None:
            self._heeded = self.begun.control
            asyncio.get_running_loop().add_reader(self._heeded.fileno(), self._hear)
        return self.begun

    def engine(self, number: int) -> socket.socket:
        """A new engine; the front's end of its socket."""
        try:
            control = self.start().control
            own, other = socket.socketpair()
            with other:
                socket.send_fds(control, [COMMAND.pack(RAISE, number)], [other.fileno()])
        except OSError as error:
            raise LoadError(f"No process could be made for an engine: {error}.") from error
        return own

    def end(self, number: int) -> None:
        """End an engine, whatever it is doing."""
        if self.begun is not None:
            with suppress(OSError):
                self.begun.control.send(COMMAND.pack(END, number))

    def _hear(self) -> None:
        assert self._heeded is not None
        try:
            heard = self._heeded.recv(NEWS.size * 64)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        if not heard:
            self._bury()
            self.lost()
            return
        self._read += heard
        whole = len(self._read) - len(self._read) % NEWS.size
        news, self._read = self._read[:whole], self._read[whole:]
        for what, number, value in NEWS.iter_unpack(news):
            self.news(what, number, value)

    def _let_go(self) -> subprocess.Popen[bytes] | None:
        """Close the socket, which ends the process and all engines."""
        begun, self.begun, self._read = self.begun, None, b""
        if self._heeded is not None:
            asyncio.get_running_loop().remove_reader(self._heeded.fileno())
            self._heeded = None
        if begun is None:
            return None
        begun.control.close()
        return begun.process

    def _bury(self) -> None:
        """It has closed its end, so it is gone or is going; nothing is left of it after this."""
        process = self._let_go()
        if process is not None:
            process.kill()
            process.wait()

    async def stop(self) -> None:
        """Engines end with it."""
        process = self._let_go()
        loop = asyncio.get_running_loop()
        until = loop.time() + ENDS_WITHIN
        while process is not None and process.poll() is None:
            if loop.time() > until:
                process.kill()
            await asyncio.sleep(0.005)
