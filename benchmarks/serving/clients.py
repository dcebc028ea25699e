"""Clients in a process of their own: prepared requests over persistent connections, every response timed.

Reads a plan as JSON from standard input and writes the outcome of every request to standard output. Imports nothing heavy.
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
    """The load: `clients`, `rate` or `anonymous`.

    clients     clients that send the next request when the last one is answered
    rate        requests per second at fixed times, whatever the responses
    anonymous   connections without a key that announce a body, send one byte of it, and reconnect when they are closed
    no_response_seconds  after which a request counts as lost
    tokens      keys, one per client
    """

    port: int
    bodies: Sequence[str]
    seconds: float
    clients: int = 0
    rate: float = 0.0
    anonymous: int = 0
    warm_up: float = 0.0
    path: str = "/v1/explain"
    no_response_seconds: float = 30.0
    tokens: Sequence[str] = ()


@dataclass
class Log:
    """One line per request: seconds since `start` when it was due and when answered, status, whether with Retry-After.

    `start` is of perf_counter, which is the same clock for all processes of the machine.
    """

    start: float = field(default_factory=perf_counter)
    lines: list[tuple[float, float, int, bool]] = field(default_factory=list)
    health: list[tuple[float, float, int]] = field(default_factory=list)


class Connection:
    """A persistent HTTP/1.1 connection, opened again after it was lost."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def send(self, request: bytes) -> tuple[int, bool]:
        """Return the status, and whether the response has a Retry-After header."""
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


async def drive(plan: Plan) -> Log:
    requests = [request(plan.path, body) for body in plan.bodies]
    log = Log()
    start = log.start
    probing = asyncio.create_task(probe(plan, log, start))
    if plan.clients:
        per_client = [[request(plan.path, body, token) for body in plan.bodies] for token in plan.tokens] or [requests]
        await asyncio.gather(*(run_client(plan, per_client[k % len(per_client)], k, log, start) for k in range(plan.clients)))
    elif plan.anonymous:
        await asyncio.gather(*(send_partial_bodies(plan, log, start) for _ in range(plan.anonymous)))
    else:
        await run_rate(plan, requests, log, start)
    probing.cancel()
    return log


async def run_client(plan: Plan, requests: Sequence[bytes], first: int, log: Log, start: float) -> None:
    """Send one request after the other, each when the last one is answered."""
    connection, position = Connection(plan.port), first * 7
    while (due := perf_counter() - start) < plan.warm_up + plan.seconds:
        status, retry_after = await send(connection, requests[position % len(requests)], plan)
        log.lines.append((due, perf_counter() - start, status, retry_after))
        position += plan.clients
        if status == LOST:
            await asyncio.sleep(0.05)
    connection.close()


async def send_partial_bodies(plan: Plan, log: Log, start: float) -> None:
    """Open one connection after the other, each until the server closes it."""
    head = f"POST {plan.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100000"
    end = start + plan.warm_up + plan.seconds
    while (due := perf_counter()) < end:
        status = LOST
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", plan.port)
        except OSError:
            log.lines.append((due - start, perf_counter() - start, status, False))
            await asyncio.sleep(0)
            continue
        try:
            writer.write(f"{head}\r\n\r\n{{".encode())
            async with asyncio.timeout(end - due):
                status = int((await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1])
                await reader.read()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            await asyncio.sleep(0)
        log.lines.append((due - start, perf_counter() - start, status, False))
        writer.close()


async def run_rate(plan: Plan, requests: Sequence[bytes], log: Log, start: float) -> None:
    """Send requests at their times over as many connections as needed; waiting for one counts."""
    idle: deque[Connection] = deque()
    under_way: set[asyncio.Task[None]] = set()

    async def one(due: float, sent: bytes) -> None:
        connection = idle.pop() if idle else Connection(plan.port)
        status, retry_after = await send(connection, sent, plan)
        log.lines.append((due, perf_counter() - start, status, retry_after))
        idle.append(connection)

    for position in range(round((plan.warm_up + plan.seconds) * plan.rate)):
        due = position / plan.rate
        await asyncio.sleep(max(due - (perf_counter() - start), 0))
        if len(under_way) < MOST_CONNECTIONS:
            task = asyncio.create_task(one(due, requests[position % len(requests)]))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)
    for connection in idle:
        connection.close()


async def send(connection: Connection, sent: bytes, plan: Plan) -> tuple[int, bool]:
    try:
        async with asyncio.timeout(plan.no_response_seconds):
            return await connection.send(sent)
    except TimeoutError:
        return LOST, False


async def probe(plan: Plan, log: Log, start: float) -> None:
    """Call the readiness route again and again, on a connection of its own."""
    connection, sent = Connection(plan.port), request("/v2/health/ready")
    try:
        while True:
            due = perf_counter() - start
            status, _ = await send(connection, sent, plan)
            log.health.append((due, perf_counter() - start, status))
            await asyncio.sleep(PROBE_EVERY)
    finally:
        connection.close()


def main() -> None:
    plan = Plan(**json.load(sys.stdin))
    log = asyncio.run(drive(plan))
    used = resource.getrusage(resource.RUSAGE_SELF)
    result: dict[str, Any] = {**vars(log), "cpu": used.ru_utime + used.ru_stime}
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
