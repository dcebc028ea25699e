"""Clients that take their time, or say more than they need to, before they have asked anything."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

import pytest
import uvicorn

from fasterce.serve.api import connections

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.sleep(0.5 if scope["path"] == "/slow" else 0)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def meet() -> Callable[[Callable[[Streams], Awaitable[None]]], None]:
    """Let a client meet a server that is patient for 0.2 s."""

    class Quick(connections.Connection):
        head_seconds = 0.2

    async def both(client: Callable[[Streams], Awaitable[None]]) -> None:
        config = uvicorn.Config(app, http=Quick, lifespan="off", log_config=None, port=0)
        server = uvicorn.Server(config)
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup()
        try:
            streams = await asyncio.open_connection(*server.servers[0].sockets[0].getsockname())
            async with asyncio.timeout(10):
                await client(streams)
            streams[1].close()
        finally:
            server.force_exit = True
            await server.shutdown()

    return lambda client: asyncio.run(both(client))


def test_silence_is_ended(meet: Any) -> None:
    async def client(streams: Streams) -> None:
        began = monotonic()
        assert await streams[0].read() == b""
        assert 0.15 < monotonic() - began < 5

    meet(client)


def test_a_head_letter_by_letter_is_ended(meet: Any) -> None:
    async def client(streams: Streams) -> None:
        reader, writer = streams
        with contextlib.suppress(ConnectionError):
            for letter in ASK[:-4] + b"a" * 1000:
                writer.write(bytes([letter]))
                await writer.drain()
                await asyncio.sleep(0.02)
                if reader.at_eof():
                    return
        raise AssertionError("it was listened to for ever")

    meet(client)


def test_a_head_without_end_is_refused(meet: Any) -> None:
    async def client(streams: Streams) -> None:
        reader, writer = streams
        writer.write(b"GET / HTTP/1.1\r\n")
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 8 << 20 and not reader.at_eof():
                writer.write(b"x-%d: %s\r\n" % (sent, b"a" * 10_000))
                await writer.drain()
                await asyncio.sleep(0)
                sent += 10_000
        assert sent < 4 << 20

    meet(client)


def test_whoever_asks_is_answered_again_and_again_and_slowly(meet: Any) -> None:
    async def client(streams: Streams) -> None:
        reader, writer = streams
        for head in (ASK, ASK.replace(b"/ ", b"/slow ", 1), ASK):
            for part in (head[:10], head[10:]):
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0.02)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            await asyncio.sleep(0.3)

    meet(client)


def test_a_large_body_is_not_a_large_head(meet: Any) -> None:
    async def client(streams: Streams) -> None:
        reader, writer = streams
        for _ in range(2):
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"a" * 1_000_000)
            await writer.drain()
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")

    meet(client)
