"""Limit time and size of the head of a request; a connection that exceeds them is closed."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with limits: seconds to send the head of a request, and its size in bytes."""

    head_seconds = 10.0
    max_head = 64 << 10

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_bytes: int | None = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_head()

    def data_received(self, data: bytes) -> None:
        if self._head_bytes is not None:
            if self._head_bytes > self.max_head:
                self.send_400_response("The head of the request is too large.")
                return
            self._head_bytes += len(data)
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._start_head(self._head_bytes or 0)

    def on_headers_complete(self) -> None:
        self._stop_timer()
        self._head_bytes = None
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _start_head(self, received: int = 0) -> None:
        self._stop_timer()
        self._head_bytes = received
        self._head_timer = self.loop.call_later(self.head_seconds, self.timeout_keep_alive_handler)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
