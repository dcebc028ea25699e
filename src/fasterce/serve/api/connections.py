"""Connections that say within a time, and in as many bytes as that takes, what they want: all others are closed."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0
MOST_HEAD = 64 << 10


class Connection(HttpToolsProtocol):
    """uvicorn's own, which waits for the head of a request for ever and takes one of any size."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head: int | None = 0
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_a_head()

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            if self._head > MOST_HEAD:
                self.send_400_response("The head of the request is too large.")
                return
            self._head += len(data)
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect_a_head(self._head or 0)

    def on_headers_complete(self) -> None:
        self._be_patient()
        self._head = None
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._be_patient()
        super().connection_lost(exc)

    def _expect_a_head(self, so_far: int = 0) -> None:
        self._be_patient()
        self._head = so_far
        self._patience = self.loop.call_later(HEAD_SECONDS, self.timeout_keep_alive_handler)

    def _be_patient(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
