"""The service as a process: listen, load, answer, and end in order."""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import uvicorn

from fasterce.serve.app import create_app, logs
from fasterce.serve.app.connections import Connection
from fasterce.serve.app.house import House
from fasterce.serve.app.people import People
from fasterce.serve.engine.desk import Desk
from fasterce.serve.engine.nursery import Begun
from fasterce.serve.keys import Keys
from fasterce.serve.question import StartFailed, Unanswered
from fasterce.serve.settings import Settings
from fasterce.serve.store import Store, StoreError, open_store

PURGE_EVERY = 3600.0
KEEP_ALIVE = 30
# Seconds after the grace for answers that are on their way.
LAST_WORDS = 1.0


def run(
    settings: Settings,
    tell: Callable[[str], None] = lambda sentence: print(sentence, file=sys.stderr, flush=True),
    begun: Begun | None = None,
) -> None:
    """Serve until told to end; `tell` hears where it listens. Raises StartFailed. `begun` is what `nursery.begin` gave."""
    logs.set_up(settings.log_level)
    with listening(settings.host, settings.port) as listener:
        asyncio.run(serve(settings, listener, tell, begun))


async def serve(settings: Settings, listener: socket.socket, tell: Callable[[str], None], begun: Begun | None = None) -> None:
    house = await opened(settings, begun)
    purges = asyncio.create_task(purging(house))
    server = Server(house, lambda: tell(f"Listening on {url_of(listener)}"))
    try:
        await server.serve(sockets=[listener])
    finally:
        house.closing = True
        purges.cancel()
        await house.desk.close(0)
        if house.store is not None:
            await house.store.close()
        logs.say("closed")


async def opened(settings: Settings, begun: Begun | None = None) -> House:
    """Keys, records, engines: whatever is wrong is said before anybody is answered."""
    keys = Keys.load(settings.keys) if settings.keys is not None else None
    desk = Desk(settings, begun)
    store = None
    try:
        starting = asyncio.create_task(desk.start())
        try:
            store = await asyncio.to_thread(kept_at, settings) if settings.records else None
        except StoreError as error:
            raise StartFailed(f"Records cannot be kept: {error}") from None
        finally:
            await starting
        people = {
            one.name: People.read(one.applicants, one.applicants_id, desk.describe(one.name).schema["features"])
            for one in settings.artifacts
            if one.applicants is not None
        }
    except BaseException:
        await desk.close(0)
        if store is not None:
            await store.close()
        raise
    return House(settings, desk, store, keys, people)


def kept_at(settings: Settings) -> Store:
    assert settings.records is not None
    return open_store(settings.records, retention_days=settings.retention_days)


class Server(uvicorn.Server):
    """uvicorn, but for its signals: SIGTERM and Ctrl-C end with exit code 0 once accepted work is done, SIGHUP reloads.

    `listening` is called when whoever comes is heard.
    """

    def __init__(self, house: House, listening: Callable[[], None] = lambda: None) -> None:
        self.house, self.listening = house, listening
        self.tasks: set[asyncio.Task[None]] = set()
        super().__init__(
            uvicorn.Config(
                create_app(house),
                http=Connection,
                access_log=False,
                log_config=None,
                server_header=False,
                lifespan="off",
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=round(house.settings.grace + LAST_WORDS),
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        loop.add_signal_handler(signal.SIGHUP, self.reload)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening()
        house = self.house
        logs.say("ready", artifacts=house.desk.names(), keys=house.keys is not None, records=house.store is not None)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """From now on nobody is let in; who is in is answered within the grace, and after it told that it is over. A
        second Ctrl-C ends the grace."""
        self.house.closing = True
        super().handle_exit(sig, frame)
        self.start(self.house.desk.close(0 if self.force_exit else self.house.settings.grace))

    def reload(self) -> None:
        self.start(reloaded(self.house))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


async def reloaded(house: House) -> None:
    try:
        found = await house.desk.reload()
    except Unanswered as error:
        logs.say("reload failed", level=logging.ERROR, reason=str(error))
    else:
        logs.say("reloaded", artifacts={one.name: one.artifact_digest for one in found})


async def purging(house: House) -> None:
    """Records whose time is over, now and every hour."""
    while house.store is not None:
        try:
            gone = await house.store.purge(datetime.now(UTC))
            if gone:
                logs.say("purged", records=gone)
        except StoreError as error:
            logs.say("purge failed", level=logging.WARNING, reason=str(error))
        await asyncio.sleep(PURGE_EVERY)


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket taken before anything is loaded, so that a port that is in use is told at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it. Without it the body of an answer waits 40 ms for the client to acknowledge its head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise StartFailed(f"Cannot listen on {host} port {port}: {os.strerror(error.errno or 0)}.") from None
        listener.set_inheritable(False)
        yield listener


def url_of(listener: socket.socket) -> str:
    host, port, *_ = listener.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
