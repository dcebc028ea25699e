"""Clients in a process of their own: prebuilt requests over kept connections, every answer timed. Imports nothing heavy.

Reads a plan as JSON from standard input and writes what became of every request to standard output.
"""

import asyncio
import json
import resource
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

LOST = 0
PROBE_EVERY = 0.1
MOST_CONNECTIONS = 2000


@dataclass
class Plan:
    """`clients` that each ask as soon as they are answered, `rate` requests a second whatever happens, or `strangers`:
    connections without a key that announce a body, send one byte of it, and come again when they are closed.

    unanswered : seconds after which a request counts as lost.
    tokens : keys, one per client.
    """

    port: int
    bodies: Sequence[str]
    seconds: float
    clients: int = 0
    rate: float = 0.0
    strangers: int = 0
    warm_up: float = 0.0
    path: str = "/v1/explain"
    unanswered: float = 30.0
    tokens: Sequence[str] = ()


@dataclass
class Told:
    """One line a request: seconds since the start when it was due and when it was answered, status, whether Retry-After.

    `start` is on the machine's own clock (perf_counter), the same for all its processes.
    """

    start: float = field(default_factory=perf_counter)
    lines: list[tuple[float, float, int, bool]] = field(default_factory=list)
    health: list[tuple[float, float, int]] = field(default_factory=list)


class Connection:
    """HTTP/1.1, kept open; made again after it was lost."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def ask(self, request: bytes) -> tuple[int, bool]:
        """Status, and whether the answer says when to come again."""
        try:
            if self.writer is None:
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
            assert self.reader is not None
            self.writer.write(request)
            head = await self.reader.readuntil(b"\r\n\r\n")
            lower = head.lower()
            await self.reader.readexactly(int(lower.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0]))
            if b"connection: close" in lower:
                self.close()
            return int(head.split(b" ", 2)[1]), b"\r\nretry-after:" in lower
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            return LOST, False
        except asyncio.CancelledError:
            self.close()
            raise

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


def request(path: str, body: str | None = None, token: str | None = None) -> bytes:
    if body is None:
        return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    sent = body.encode()
    key = f"Authorization: Bearer {token}\r\n" if token else ""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(sent)}\r\n"
    return f"{head}{key}\r\n".encode() + sent


async def drive(plan: Plan) -> Told:
    requests = [request(plan.path, body) for body in plan.bodies]
    told = Told()
    start = told.start
    probing = asyncio.create_task(probe(plan, told, start))
    if plan.clients:
        own = [[request(plan.path, body, token) for body in plan.bodies] for token in plan.tokens] or [requests]
        await asyncio.gather(*(closed(plan, own[k % len(own)], k, told, start) for k in range(plan.clients)))
    elif plan.strangers:
        await asyncio.gather(*(stranger(plan, told, start) for _ in range(plan.strangers)))
    else:
        await opened(plan, requests, told, start)
    probing.cancel()
    return told


async def closed(plan: Plan, requests: Sequence[bytes], first: int, told: Told, start: float) -> None:
    """One client: the next request as soon as the last one is answered."""
    connection, place = Connection(plan.port), first * 7
    while (due := perf_counter() - start) < plan.warm_up + plan.seconds:
        status, again = await asked(connection, requests[place % len(requests)], plan)
        told.lines.append((due, perf_counter() - start, status, again))
        place += plan.clients
        if status == LOST:
            await asyncio.sleep(0.05)
    connection.close()


async def stranger(plan: Plan, told: Told, start: float) -> None:
    """One connection after the other that is held for as long as the server lets it."""
    head = f"POST {plan.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100000"
    end = start + plan.warm_up + plan.seconds
    while (due := perf_counter()) < end:
        status = LOST
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", plan.port)
            writer.write(f"{head}\r\n\r\n{{".encode())
            async with asyncio.timeout(end - due):
                status = int((await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1])
                await reader.read()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            await asyncio.sleep(0)
        told.lines.append((due - start, perf_counter() - start, status, False))
        writer.close()


async def opened(plan: Plan, requests: Sequence[bytes], told: Told, start: float) -> None:
    """Requests at their times, over as many connections as it takes; the wait for one counts."""
    idle: deque[Connection] = deque()
    under_way: set[asyncio.Task[None]] = set()

    async def one(due: float, sent: bytes) -> None:
        connection = idle.pop() if idle else Connection(plan.port)
        status, again = await asked(connection, sent, plan)
        told.lines.append((due, perf_counter() - start, status, again))
        idle.append(connection)

    for place in range(round((plan.warm_up + plan.seconds) * plan.rate)):
        due = place / plan.rate
        await asyncio.sleep(max(due - (perf_counter() - start), 0))
        if len(under_way) < MOST_CONNECTIONS:
            task = asyncio.create_task(one(due, requests[place % len(requests)]))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)
    for connection in idle:
        connection.close()


async def asked(connection: Connection, sent: bytes, plan: Plan) -> tuple[int, bool]:
    try:
        async with asyncio.timeout(plan.unanswered):
            return await connection.ask(sent)
    except TimeoutError:
        return LOST, False


async def probe(plan: Plan, told: Told, start: float) -> None:
    """Is it ready, all the time, on a connection of its own."""
    connection, sent = Connection(plan.port), request("/v2/health/ready")
    try:
        while True:
            due = perf_counter() - start
            status, _ = await asked(connection, sent, plan)
            told.health.append((due, perf_counter() - start, status))
            await asyncio.sleep(PROBE_EVERY)
    finally:
        connection.close()


def main() -> None:
    plan = Plan(**json.load(sys.stdin))
    told = asyncio.run(drive(plan))
    used = resource.getrusage(resource.RUSAGE_SELF)
    result: dict[str, Any] = {**vars(told), "cpu": used.ru_utime + used.ru_stime}
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
