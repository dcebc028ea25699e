"""Spawn and kill worker processes from an event loop, by a fork server."""

import asyncio
import socket
from collections.abc import Callable

from fasterce.io.processes import ForkServer
from fasterce.serve.settings import Settings
from fasterce.serve.workers.preload import needed_modules

TARGET = "fasterce.serve.workers.process:run_worker"
# Seconds the fork server has to end before it is killed.
END_SECONDS = 2.0


def start_fork_server(settings: Settings) -> ForkServer:
    """Start the fork server now. Called before the HTTP process imports what it needs, both import at the same time: pass
    the result to `Dispatcher`."""
    return ForkServer(TARGET, needed_modules(settings.artifacts), settings.environment)


class WorkerSpawner:
    """Spawns workers and kills them. A fork server that has died is started again when the next worker is needed.

    Parameters
    ----------
    settings : Settings
    on_event : callable
        Called with (what, worker number, process id or exit code) when a worker has started or exited.
    on_lost : callable
        Called when the fork server itself is gone, and all workers with it.
    server : ForkServer, optional
        One that was started before.
    """

    def __init__(
        self,
        settings: Settings,
        on_event: Callable[[bytes, int, int], None],
        on_lost: Callable[[], None],
        server: ForkServer | None = None,
    ) -> None:
        self.settings = settings
        self.on_event, self.on_lost = on_event, on_lost
        self.server = server
        self._watched = False

    @property
    def pid(self) -> int | None:
        return None if self.server is None else self.server.process.pid

    def start(self) -> ForkServer:
        """Start the fork server if there is none, and watch it; raises OSError."""
        if self.server is None:
            self.server = start_fork_server(self.settings)
        if not self._watched:
            self._watched = True
            asyncio.get_running_loop().add_reader(self.server.control.fileno(), self._read_events)
        return self.server

    def spawn(self, number: int) -> socket.socket:
        """Return this process's end of the socket to a new worker; raises OSError."""
        return self.start().spawn(number)

    def kill(self, number: int) -> None:
        if self.server is not None:
            self.server.kill(number)

    def _read_events(self) -> None:
        assert self.server is not None
        events = self.server.events()
        if events is None:
            server = self._close()
            if server is not None:
                server.process.kill()
                server.process.wait()
            self.on_lost()
            return
        for what, number, value in events:
            self.on_event(what, number, value)

    def _close(self) -> ForkServer | None:
        """Close the socket, which ends the fork server and all workers."""
        server, self.server = self.server, None
        if server is not None:
            if self._watched:
                asyncio.get_running_loop().remove_reader(server.control.fileno())
            server.close()
        self._watched = False
        return server

    async def stop(self) -> None:
        """End the fork server and its workers."""
        server = self._close()
        loop = asyncio.get_running_loop()
        until = loop.time() + END_SECONDS
        while server is not None and server.process.poll() is None:
            if loop.time() > until:
                server.process.kill()
            await asyncio.sleep(0.005)
