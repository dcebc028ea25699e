"""The pool of workers: spawned, kept at their number, replaced when lost, and exchanged for a new generation on reload."""

import asyncio
import json
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

from fasterce.errors import Problem
from fasterce.io.processes import EXITED, LENGTHS, STARTED, ForkServer, Header, lengths, packed
from fasterce.serve.messages import Description, ReloadError, StartError
from fasterce.serve.settings import Settings
from fasterce.serve.workers import wire
from fasterce.serve.workers.spawner import start_fork_server

# Seconds before a worker is spawned again after one could not load; doubled each time, up to the second number.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
# Bytes a worker may send before they are read.
READ_LIMIT = 1 << 22
# Seconds the fork server has to end before it is killed.
END_SECONDS = 2.0


class WorkerGoneError(Exception):
    """The worker is gone; `began` if it had started on the batch, which may then be the cause."""

    def __init__(self, began: bool = False) -> None:
        super().__init__()
        self.began = began


@dataclass
class Generation:
    """Workers that loaded the same artifacts."""

    number: int
    descriptions: dict[str, Description] = field(default_factory=dict)


class WorkerConnection:
    """The HTTP process's end of one worker."""

    def __init__(self, number: int, generation: Generation) -> None:
        self.number = number
        self.generation = generation
        self.pid = 0
        self.ready = self.busy = self.gone = False
        self.checking = False
        self.retired = False
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def connect(self, own_end: socket.socket) -> None:
        self._reader, self._writer = await asyncio.open_unix_connection(sock=own_end, limit=READ_LIMIT)

    async def request(self, message: Header) -> tuple[Header, bytes]:
        """Send a message and wait for the reply, header and body; WorkerGoneError if the worker ends before."""
        assert self._writer is not None
        began = False
        try:
            self._writer.write(packed(message))
            await self._writer.drain()
            while "taken" in (reply := await self._receive())[0]:
                began = True
            return reply
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            raise WorkerGoneError(began) from error

    async def _receive(self) -> tuple[Header, bytes]:
        assert self._reader is not None
        header, body = lengths(await self._reader.readexactly(LENGTHS.size))
        return json.loads(await self._reader.readexactly(header)), await self._reader.readexactly(body)

    def close(self) -> None:
        self.gone, self.ready = True, False
        if self._writer is not None:
            self._writer.transport.abort()


class WorkerPool:
    """`settings.workers` workers that may be busy, and a spare; a worker that is lost is replaced.

    Parameters
    ----------
    settings : Settings
    on_change : callable
        Called when workers have become free or new ones are ready.
    server : ForkServer, optional
        A fork server that was started before.
    """

    def __init__(self, settings: Settings, on_change: Callable[[], None], server: ForkServer | None = None) -> None:
        self.settings = settings
        self.on_change = on_change
        self.server = server
        self.generation = Generation(0)
        self.workers: dict[int, WorkerConnection] = {}
        self.restarts = 0
        self.closing = False
        self._spawned = 0
        self._failures = 0
        self._retry: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._reloading = asyncio.Lock()
        self._watched = False

    async def start(self) -> None:
        """Return when the first worker is ready; the others follow."""
        first = Generation(1)
        try:
            await self._load(self._new(first))
        except StartError:
            await self.close()
            raise
        self.generation = first
        self._fill()

    @property
    def ready(self) -> list[WorkerConnection]:
        return [one for one in self.workers.values() if one.ready and one.generation is self.generation]

    @property
    def can_take(self) -> bool:
        ready = [one for one in self.ready if not one.checking]
        return sum(one.busy for one in ready) < min(self.settings.workers, len(ready))

    def take(self) -> WorkerConnection:
        """Return the free worker that was spawned first, now busy; only if `can_take`."""
        free = next(one for one in self.ready if not one.busy and not one.checking)
        free.busy = True
        return free

    def give_back(self, worker: WorkerConnection) -> None:
        worker.busy = False
        if worker.retired:
            self.kill(worker)

    async def request(self, worker: WorkerConnection, message: Header, seconds: float) -> tuple[Header, bytes]:
        """Return the worker's reply; a worker that takes longer than `seconds` is killed."""
        try:
            async with asyncio.timeout(seconds):
                return await worker.request(message)
        except TimeoutError as error:
            self.kill(worker)
            raise WorkerGoneError(began=True) from error
        except (WorkerGoneError, asyncio.CancelledError):
            self.kill(worker)
            raise

    async def check_models(self) -> dict[str, Problem] | None:
        """Return why remote models do not respond, by artifact; None if no worker could find out."""
        worker = next((one for one in reversed(self.ready) if not one.busy and not one.checking), None)
        if worker is None:
            return None
        worker.checking = True
        try:
            reply, _ = await worker.request({wire.CHECK: True})
            return {name: Problem.from_dict(problem) for name, problem in reply[wire.CHECK].items()}
        except WorkerGoneError:
            return None
        except asyncio.CancelledError:
            self.kill(worker)
            raise
        finally:
            worker.checking = False
            self.give_back(worker)
            self.on_change()

    async def reload(self) -> list[Description]:
        """Load a new generation beside the current one, then replace it; all or nothing."""
        async with self._reloading:
            if self.closing:
                raise ReloadError("serve.closing")
            after = Generation(self.generation.number + 1)
            try:
                await self._load(self._new(after))
                others = [self._load(self._new(after)) for _ in range(self.settings.workers - 1)]
                failed = [one for one in await asyncio.gather(*others, return_exceptions=True) if one is not None]
                if failed:
                    raise failed[0] if isinstance(failed[0], StartError) else StartError("serve.worker_not_ready")
            except BaseException as error:
                self._retire(after)
                if isinstance(error, StartError):
                    raise ReloadError(error.problem) from error
                raise
            before, self.generation = self.generation, after
            self._failures = 0
            self._retire(before)
            self._fill()
            self.on_change()
            return list(after.descriptions.values())

    def _retire(self, generation: Generation) -> None:
        """End the workers of a generation; those at work finish it first."""
        for worker in list(self.workers.values()):
            if worker.generation is generation:
                worker.retired = True
                if not worker.busy and not worker.checking:
                    self.kill(worker)

    async def close(self) -> None:
        """End everything that was started."""
        self.closing = True
        if self._retry is not None:
            self._retry.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in list(self.workers.values()):
            self._remove(worker)
        server, until = self._close_server(), monotonic() + END_SECONDS
        while server is not None and server.process.poll() is None:
            if monotonic() > until:
                server.process.kill()
            await asyncio.sleep(0.005)

    def _fill(self) -> None:
        """Spawn workers up to their number and one spare."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self.closing:
            return
        present = sum(one.generation is self.generation for one in self.workers.values())
        for _ in range(self.settings.workers + 1 - present):
            self._start_task(self._load_or_retry(self._new(self.generation)))

    def _start_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _load_or_retry(self, worker: WorkerConnection) -> None:
        try:
            await self._load(worker)
        except StartError:
            self._retry_later()
        else:
            self._failures = 0
            self.on_change()

    def _retry_later(self) -> None:
        if self._retry is None and not self.closing:
            pause = min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE)
            self._failures += 1
            self._retry = asyncio.get_running_loop().call_later(pause, self._fill)

    def _new(self, generation: Generation) -> WorkerConnection:
        self._spawned += 1
        worker = self.workers[self._spawned] = WorkerConnection(self._spawned, generation)
        return worker

    async def _load(self, worker: WorkerConnection) -> None:
        """Spawn a worker and wait until it has loaded the artifacts."""
        try:
            await worker.connect(self._start_server().spawn(worker.number))
            async with asyncio.timeout(self.settings.load_seconds):
                is_first = not worker.generation.descriptions
                reply, _ = await worker.request(wire.pack_settings(self.settings, is_first))
        except BaseException as error:
            self.kill(worker)
            # TimeoutError is an OSError.
            if isinstance(error, TimeoutError):
                raise StartError("serve.load_timeout", expected=self.settings.load_seconds) from error
            if isinstance(error, WorkerGoneError):
                raise StartError("serve.worker_died_loading") from error
            if isinstance(error, OSError):
                raise StartError("serve.worker_not_spawned", reason=str(error)) from error
            raise
        if "ready" not in reply:
            self.kill(worker)
            raise StartError(Problem.from_dict(reply["failed"]), str(reply["kind"]))
        self._admit(worker, [Description(**one) for one in reply["ready"]])

    def _admit(self, worker: WorkerConnection, loaded: Sequence[Description]) -> None:
        """Accept a loaded worker. All of a generation are alike: if the files have changed, the generation is replaced."""
        generation = worker.generation
        if not generation.descriptions:
            generation.descriptions = {one.name: one for one in loaded}
        elif [one.version for one in generation.descriptions.values()] != [one.version for one in loaded]:
            self.kill(worker)
            if generation is self.generation and not self._reloading.locked():
                self._start_task(self._reload_changed())
            raise StartError("serve.artifacts_changed")
        if worker.gone or worker.retired:
            self.kill(worker)
            raise StartError("serve.worker_died_loaded")
        worker.ready = True

    async def _reload_changed(self) -> None:
        with suppress(ReloadError):
            await self.reload()

    def kill(self, worker: WorkerConnection) -> None:
        """Kill a worker; a request it works on fails with WorkerGoneError."""
        if self.server is not None:
            self.server.kill(worker.number)
        self._remove(worker)

    def _remove(self, worker: WorkerConnection) -> None:
        """Forget a worker; if it was ready, another takes its place."""
        was_ready = worker.ready
        worker.close()
        if self.workers.pop(worker.number, None) is None:
            return
        if was_ready and worker.generation is self.generation and not worker.retired and not self.closing:
            self.restarts += 1
            self._fill()
            self.on_change()

    def _start_server(self) -> ForkServer:
        """Return the fork server, started if there is none; raises OSError."""
        if self.server is None:
            self.server = start_fork_server(self.settings)
        if not self._watched:
            self._watched = True
            asyncio.get_running_loop().add_reader(self.server.control.fileno(), self._read_events)
        return self.server

    def _close_server(self) -> ForkServer | None:
        """Close the socket of the fork server, which ends it and all workers, and return it."""
        server, self.server = self.server, None
        if server is not None:
            if self._watched:
                asyncio.get_running_loop().remove_reader(server.control.fileno())
            server.close()
        self._watched = False
        return server

    def _read_events(self) -> None:
        """Note workers that have started or exited, or that the fork server is gone, and all workers with it."""
        assert self.server is not None
        events = self.server.events()
        for what, number, value in events or ():
            worker = self.workers.get(number)
            if worker is not None and what == STARTED:
                worker.pid = value
            elif worker is not None and what == EXITED:
                self._remove(worker)
        if events is None:
            server = self._close_server()
            if server is not None:
                server.process.kill()
                server.process.wait()
            for worker in list(self.workers.values()):
                self._remove(worker)
            if not self.closing:
                self._retry_later()
