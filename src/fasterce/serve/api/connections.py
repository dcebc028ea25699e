"""Limit the number of connections, and time and size of the head of a request; a connection beyond the limits is closed."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class ConnectionLimits:
    """The open connections. If there are too many, in all or of one address, the oldest is closed that has never sent an
    accepted request; if there is none, one without a request; if there is none, the new one.

    Parameters
    ----------
    total, per_address : int
    proxies : sequence of str
        Addresses that are not limited: many clients come from them.
    """

    def __init__(self, total: int, per_address: int, proxies: Sequence[str] = ()) -> None:
        self.total, self.per_address, self.proxies = total, per_address, frozenset(proxies)
        self.open: dict[Connection, str] = {}
        # Those that have never sent an accepted request, the oldest first.
        self.strangers: dict[Connection, str] = {}
        self.by_address: Counter[str] = Counter()
        self.closed = 0

    def add(self, connection: "Connection") -> None:
        address = connection.client[0] if connection.client else ""
        too_many = self.by_address[address] >= self.per_address and address not in self.proxies
        if too_many or len(self.open) >= self.total:
            self.closed += 1
            self._oldest(address if too_many else None, connection).transport.abort()
        self.open[connection] = self.strangers[connection] = address
        self.by_address[address] += 1

    def _oldest(self, address: str | None, new: "Connection") -> "Connection":
        idle = (item for item in self.open.items() if item[0].is_idle)
        found = (one for one, where in chain(self.strangers.items(), idle) if address in (None, where))
        return next((one for one in found if not one.transport.is_closing()), new)

    def accept(self, connection: "Connection") -> None:
        """Note that a connection has sent an accepted request."""
        self.strangers.pop(connection, None)

    def remove(self, connection: "Connection") -> None:
        address = self.open.pop(connection, None)
        self.strangers.pop(connection, None)
        if address is not None:
            self.by_address[address] -= 1
            if not self.by_address[address]:
                del self.by_address[address]


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with limits.

    `head_seconds` and `max_head` are for the head of a request, in seconds and bytes; `rest_seconds` for the rest of a body
    whose request has been responded to.
    """

    head_seconds = 10.0
    rest_seconds = 2.0
    max_head = 64 << 10

    def __init__(self, *arguments: Any, limits: ConnectionLimits | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.limits = limits
        self._in_body = False
        self._head_bytes: int | None = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_head()
        if self.limits is not None:
            self.limits.add(self)

    @property
    def is_idle(self) -> bool:
        """Whether its last request is done and the next one has not begun."""
        done = self.cycle is not None and self.cycle.response_complete
        return done and self._head_bytes is None and not self._in_body

    def accept(self) -> None:
        """Note that a request of it was accepted: by its key, if there are keys."""
        if self.limits is not None:
            self.limits.accept(self)

    def data_received(self, data: bytes) -> None:
        if self._head_bytes is not None:
            if self._head_bytes > self.max_head:
                self.send_400_response("The head of the request is too large.")
                return
            self._head_bytes += len(data)
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"]["connection"] = self
        self._start_head(self._head_bytes or 0)

    def on_headers_complete(self) -> None:
        self._stop_timer()
        self._head_bytes = None
        self._in_body = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._stop_timer()
        self._in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._in_body and self.cycle.response_complete:
            self._stop_timer()
            self._timer = self.loop.call_later(self.rest_seconds, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self.limits is not None:
            self.limits.remove(self)
        super().connection_lost(exc)

    def _start_head(self, received: int = 0) -> None:
        self._stop_timer()
        self._head_bytes = received
        self._timer = self.loop.call_later(self.head_seconds, self.timeout_keep_alive_handler)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
