"""The queue of the service on a clock of its own: clients, one worker and their times, without processes or waiting."""

import asyncio
import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from fasterce.serve.messages import WorkerRequest
from fasterce.serve.workers.queue import LatencyModels, PendingRequest, Piece, RequestQueue

# Seconds a client takes to receive a response and send its next request.
TURNAROUND = 0.004


@dataclass
class Client:
    """Sends a request of `rows` rows as soon as the last one was answered, from `start` on.

    Parameters
    ----------
    name : str
    rows : int
    fixed, per_row : float
        Seconds of a call with its options.
    options : dict
    start : float
        Seconds.
    """

    name: str
    rows: int
    fixed: float
    per_row: float
    options: Mapping[str, Any] = field(default_factory=dict)
    start: float = 0.0
    latencies: list[float] = field(default_factory=list)


class Simulation:
    """One worker, and requests that wait for it as the dispatcher lets them.

    Parameters
    ----------
    clients : sequence of Client
    piece_ms : float
    seed : int
        Of the noise of all times: a call takes up to 30 % longer or shorter than usual.
    turnaround_each : float
        Seconds by which each response of a batch is sent later than the one before it.
    """

    def __init__(
        self,
        clients: list[Client],
        piece_ms: float,
        most_batch: int = 64,
        gather_ms: float = 3.0,
        seed: int = 0,
        turnaround_each: float = 0.0,
    ):
        self.turnaround_each = turnaround_each
        self.clients = {client.name: client for client in clients}
        self.random, self.now = Random(seed), 0.0
        self.queue = RequestQueue(most_batch, gather_ms / 1e3, clock=lambda: self.now)
        self.latency = LatencyModels(most_batch, piece_ms / 1e3)
        self.events: list[tuple[float, int, str, Any]] = []
        self.order, self.loop = count(), asyncio.new_event_loop()
        self.running: list[Piece] = []
        self.sent: dict[PendingRequest, float] = {}
        self.left: dict[PendingRequest, int] = {}
        self.pieces: list[tuple[str, int, float]] = []
        for client in clients:
            self._at(client.start, "send", client)

    def run(self, seconds: float) -> dict[str, list[float]]:
        """Return the latencies of each client's requests."""
        while self.events and self.events[0][0] < seconds:
            self.now, _, what, value = heapq.heappop(self.events)
            getattr(self, f"_{what}")(value)
        self.loop.close()
        return {name: client.latencies for name, client in self.clients.items()}

    def _at(self, time: float, what: str, value: Any = None) -> None:
        heapq.heappush(self.events, (time, next(self.order), what, value))

    def _rows(self) -> int:
        return self.queue.rows + sum(piece.rows for piece in self.running)

    def _send(self, client: Client) -> None:
        request = WorkerRequest("a", ({},) * client.rows, client.options, self.now + 1e6, client.name, queue=client.name)
        pending = PendingRequest(request, self.loop.create_future())
        self.sent[pending], self.left[pending] = self.now, client.rows
        self.queue.add(pending)
        self.queue.note_load(self._rows())
        self._dispatch()

    def _dispatch(self, _: None = None) -> None:
        if self.running or not self.queue:
            return
        pause = self.queue.hold_seconds(1)
        if pause > 0:
            self._at(self.now + pause, "dispatch")
            return
        self.running = self.queue.take(self._most_rows, self.latency.predict)
        client = self.clients[self.running[0].pending.request.queue]
        rows = sum(piece.rows for piece in self.running)
        seconds = (client.fixed + client.per_row * rows) * self.random.uniform(0.7, 1.3)
        self.pieces.append((client.name, rows, seconds))
        self._at(self.now + seconds, "done", seconds)

    def _most_rows(self, pending: PendingRequest) -> int:
        return self.latency.most_rows(pending, self.queue.is_shared)

    def _done(self, seconds: float) -> None:
        batch, rows = self.running, self._rows()
        self.latency.of(batch[0].pending).observe(sum(piece.rows for piece in batch), seconds)
        self.running = []
        for place, piece in enumerate(batch):
            pending = piece.pending
            self.left[pending] -= piece.rows
            if not self.left[pending]:
                client, answered = self.clients[pending.request.queue], self.now + place * self.turnaround_each
                client.latencies.append(answered - self.sent[pending])
                self._at(answered + TURNAROUND * self.random.uniform(0.5, 2.0), "send", client)
        self.queue.note_done(rows, seconds)
        self._dispatch()
