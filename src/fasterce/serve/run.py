"""The service as a process: listen, load, serve, and end in order."""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from types import FrameType

import uvicorn

from fasterce.io.processes import ForkServer, settle_memory
from fasterce.serve.api import create_app, logs
from fasterce.serve.api.applicants import Applicants, columns
from fasterce.serve.api.connections import Connection
from fasterce.serve.api.state import AppState
from fasterce.serve.keys import Keys
from fasterce.serve.letter import load_words
from fasterce.serve.messages import NoResponse, StartError
from fasterce.serve.settings import Settings
from fasterce.serve.store import StoreError, open_store
from fasterce.serve.workers.dispatcher import Dispatcher

# Seconds: between deletions of expired records, of an idle connection, and after the grace for responses on their way.
PURGE_SECONDS = 3600.0
KEEP_ALIVE = 30
LAST_RESPONSES = 1.0


def run(
    settings: Settings,
    report: Callable[[str], None] = lambda sentence: print(sentence, file=sys.stderr, flush=True),
    server: ForkServer | None = None,
) -> None:
    """Serve until a signal ends it.

    Parameters
    ----------
    settings : Settings
    report : callable
        Called with a sentence that says where the service listens.
    server : ForkServer, optional
        What `spawner.start_fork_server` returned.

    Raises
    ------
    StartError
    """
    logs.set_up(settings.log_level)
    with listening(settings.host, settings.port) as listener, asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(settings, listener, report, server))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the event loop: uvloop's, which costs less processor time, where there is one."""
    try:
        import uvloop  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    return uvloop.new_event_loop


async def serve(
    settings: Settings, listener: socket.socket, report: Callable[[str], None], fork_server: ForkServer | None
) -> None:
    async with opened_state(settings, fork_server) as state:
        background = [asyncio.create_task(purge_records(state)), asyncio.create_task(watch_models(state))]
        server = Server(state, lambda: report(f"Listening on {url_of(listener)}"))
        try:
            await server.serve(sockets=[listener])
        finally:
            state.closing = True
            for task in background:
                task.cancel()
    logs.log_event("closed")


@asynccontextmanager
async def opened_state(settings: Settings, server: ForkServer | None) -> AsyncIterator[AppState]:
    """Open keys, records and workers; what is wrong with them is reported before the first request."""
    keys = Keys(settings.keys) if settings.keys is not None else None
    load_words(settings.letter)
    dispatcher = Dispatcher(settings, server)
    store = None
    try:
        starting = asyncio.create_task(dispatcher.start())
        try:
            if settings.records:
                store = await asyncio.to_thread(open_store, settings.records, retention_days=settings.retention_days)
        except StoreError as error:
            raise StartError("serve.store_not_opened", cause=error.problem) from None
        finally:
            await starting
        applicants = {
            one.name: Applicants.read(one.applicants, one.applicants_id, columns(dispatcher.describe(one.name)))
            for one in settings.artifacts
            if one.applicants is not None
        }
        yield AppState(settings, dispatcher, store, keys, applicants)
    finally:
        await dispatcher.close(0)
        if store is not None:
            await store.close()


class Server(uvicorn.Server):
    """uvicorn with other signals: SIGTERM and Ctrl-C end it with exit code 0 once accepted work is done, SIGHUP reloads.

    Parameters
    ----------
    state : AppState
    on_listening : callable
        Called when connections are accepted.
    """

    def __init__(self, state: AppState, on_listening: Callable[[], None]) -> None:
        self.state, self.on_listening = state, on_listening
        self.tasks: set[asyncio.Task[None]] = set()
        super().__init__(
            uvicorn.Config(
                create_app(state),
                http=partial(Connection, limits=state.connections),  # type: ignore[arg-type]
                proxy_headers=bool(state.settings.proxies),
                forwarded_allow_ips=list(state.settings.proxies),
                access_log=False,
                log_config=None,
                server_header=False,
                lifespan="off",
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=round(state.settings.grace + LAST_RESPONSES),
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        loop.add_signal_handler(signal.SIGHUP, lambda: self.start(reload(self.state)))
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # Collections of garbage that look at all that was imported would delay requests.
        settle_memory()
        self.on_listening()
        state = self.state
        names = state.dispatcher.names()
        logs.log_event("ready", artifacts=names, keys=state.keys is not None, records=state.store is not None)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Accept no more requests, and give those accepted the grace period. A second Ctrl-C ends it."""
        self.state.closing = True
        super().handle_exit(sig, frame)
        self.start(self.state.dispatcher.close(0 if self.force_exit else self.state.settings.grace))

    def start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


async def reload(state: AppState) -> None:
    try:
        found = await state.dispatcher.reload()
    except NoResponse as error:
        logs.log_event("reload failed", level=logging.ERROR, reason=str(error))
    else:
        logs.log_event("reloaded", artifacts={one.name: one.artifact_digest for one in found})


async def purge_records(state: AppState) -> None:
    """Delete expired records, now and every hour."""
    while state.store is not None:
        try:
            deleted = await state.store.purge(datetime.now(UTC))
            if deleted:
                logs.log_event("purged", records=deleted)
        except StoreError as error:
            logs.log_event("purge failed", level=logging.WARNING, reason=str(error))
        await asyncio.sleep(PURGE_SECONDS)


async def watch_models(state: AppState) -> None:
    """Check from time to time whether remote models respond; the log has why they do not."""
    down: dict[str, str] = {}
    while True:
        found = {name: str(problem) for name, problem in (await state.dispatcher.check_models()).items()}
        for name in found.keys() - down.keys():
            logs.log_event("model down", level=logging.ERROR, artifact=name, reason=found[name])
        for name in down.keys() - found.keys():
            logs.log_event("model up", artifact=name)
        down = found
        await asyncio.sleep(state.settings.model_check_seconds)


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Bind a socket before anything is loaded, so that a port in use is reported at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it. Without it the body of a response waits 40 ms for the client to acknowledge its head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise StartError("serve.cannot_listen", host=host, port=port, reason=reason) from None
        listener.set_inheritable(False)
        yield listener


def url_of(listener: socket.socket) -> str:
    host, port, *_ = listener.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
