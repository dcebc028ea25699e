"""Requests that wait for a worker, which of them share a batch (those for one artifact with the same options), whose turn it
is, and how long a batch takes."""

import asyncio
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from time import monotonic

from fasterce.serve.limits import row_cost
from fasterce.serve.messages import NO_USAGE, BatchUsage, Json, WorkerRequest, WorkerResponse

# Seconds: a request with less time left shares a batch only with requests that have about as little.
SHORT_SECONDS = 0.5
# Seconds for which the number of concurrent rows is remembered.
LOAD_SECONDS = 0.1
# A request may be held back for this share of the time the last batch took, up to the second number of seconds.
HOLD_SHARE, MAX_HOLD = 0.2, 0.02
# Share of the time left of a request for which it may be held back.
HOLD_SHARE_OF_TIME_LEFT = 0.1
# Weight of a call relative to the next one.
DECAY = 0.95
# Before the first call, in seconds: the fixed part of a call, and what each row adds.
FIXED_SECONDS, ROW_SECONDS = 0.03, 0.002
# With less variance of the cost of calls, the slope is not estimated but this share of the mean time per unit of cost.
LEAST_VARIANCE, DEFAULT_SLOPE = 0.25, 0.1


@dataclass(eq=False)
class PendingRequest:
    """A request with the future of its response, which is made of the responses to its pieces.

    Parameters
    ----------
    request : WorkerRequest
    future : asyncio.Future
    """

    request: WorkerRequest
    future: asyncio.Future[WorkerResponse]
    options: str = field(init=False)
    row_cost: float = field(init=False)
    usage: BatchUsage = NO_USAGE
    parts: dict[int, tuple[Json, ...]] = field(default_factory=dict)
    versions: set[int] = field(default_factory=set)
    run: int = 0

    def __post_init__(self) -> None:
        request = self.request
        self.options = f"{request.action} {request.artifact}\n{json.dumps(request.options, sort_keys=True)}"
        self.row_cost = row_cost(request)

    @property
    def rows(self) -> int:
        return max(len(self.request.rows), 1)

    @property
    def cost(self) -> float:
        return self.rows * self.row_cost

    @property
    def open(self) -> bool:
        """Whether the response is still waited for."""
        return not self.future.done()

    def add(self, piece: "Piece", found: tuple[Json, ...], usage: BatchUsage, version: int) -> tuple[Json, ...] | None:
        """Add what was found for a piece by a version of the artifacts; return all of it, in order, if nothing is missing."""
        self.parts[piece.start] = found
        self.versions.add(version)
        self.usage += usage
        if sum(map(len, self.parts.values())) < self.rows:
            return None
        return tuple(one for start in sorted(self.parts) for one in self.parts[start])

    def restart(self) -> None:
        """Forget what was found; pieces that are under way do not count any more."""
        self.run += 1
        self.parts, self.versions = {}, set()


@dataclass(eq=False)
class Piece:
    """Rows `start` to `stop` of a request.

    Parameters
    ----------
    pending : PendingRequest
    start, stop : int
    alone : bool
        Whether it must not share a batch.
    attempts : int
        How many workers were lost over it.
    since : float
        When it was queued, on the monotonic clock.
    run : int
        How often the request had been started again when the piece was made.
    """

    pending: PendingRequest
    start: int
    stop: int
    alone: bool = False
    attempts: int = 0
    since: float = field(default_factory=monotonic)
    run: int = 0

    @property
    def rows(self) -> int:
        return self.stop - self.start

    @property
    def cost(self) -> float:
        return self.rows * self.pending.row_cost

    @property
    def open(self) -> bool:
        return self.pending.open

    @property
    def until(self) -> float:
        return self.pending.request.until

    @property
    def is_part(self) -> bool:
        """Whether other pieces of the request are explained in other batches."""
        return self.rows < self.pending.rows

    def request(self) -> WorkerRequest:
        """Return the rows as a request of their own. A part gets its part of the time left, so that the others get theirs."""
        if not self.is_part:
            return self.pending.request
        missing = self.pending.rows - sum(map(len, self.pending.parts.values()))
        now = monotonic()
        part = self.pending.request.part(self.start, self.stop)
        return replace(part, until=now + (self.until - now) * min(self.rows / max(missing, 1), 1.0))

    def can_share(self, other: "Piece", now: float) -> bool:
        """Whether both fit into one batch without the deadline of one cutting the other short."""
        if self.alone or other.alone or self.is_part or other.is_part or self.pending.options != other.pending.options:
            return False
        left, left_other = self.until - now, other.until - now
        return min(left, left_other) >= SHORT_SECONDS or max(left, left_other) <= 2 * min(left, left_other)


class RequestQueue:
    """Requests by client. The client that was given the least goes first; a batch is its first request, or a piece of it, and
    those of all clients that can share with it.

    Parameters
    ----------
    most_batch : int
        Rows of one batch.
    gather_seconds : float
        How long a request may be held back for others.
    """

    def __init__(self, most_batch: int, gather_seconds: float) -> None:
        self.most_batch = most_batch
        self.gather_seconds = gather_seconds
        self._pieces: dict[str, deque[Piece]] = {}
        # Cost given to each client so far, and to the one whose turn was last, before it: a client that comes starts there.
        self._given: dict[str, float] = {}
        self._level = 0.0
        self._concurrent_rows = 0
        self._measured_at = self._free_at = 0.0
        self._batch_seconds = 0.0

    def __len__(self) -> int:
        return sum(map(len, self._pieces.values()))

    def __iter__(self) -> Iterator[Piece]:
        return (piece for pieces in self._pieces.values() for piece in pieces)

    @property
    def rows(self) -> int:
        return sum(piece.rows for piece in self)

    def costs(self) -> dict[str, float]:
        """Return the cost of what waits, by client."""
        return {client: sum(piece.cost for piece in pieces) for client, pieces in self._pieces.items()}

    def add(self, pending: PendingRequest) -> None:
        self._of(pending.request.client).append(Piece(pending, 0, pending.rows, run=pending.run))

    def add_again(self, piece: Piece) -> None:
        """Queue a piece again, before all others of its client, which is given back what it cost."""
        client = piece.pending.request.client
        self._of(client).appendleft(piece)
        self._given[client] -= piece.cost

    def _of(self, client: str) -> deque[Piece]:
        if client not in self._pieces:
            self._given = {one: cost for one, cost in self._given.items() if one in self._pieces or cost > self._level}
            self._given[client] = max(self._given.get(client, 0.0), self._level)
            self._pieces[client] = deque()
        return self._pieces[client]

    def _keep(self, client: str, pieces: deque[Piece]) -> None:
        if pieces:
            self._pieces[client] = pieces
        else:
            self._pieces.pop(client, None)

    def drop(self, pending: PendingRequest) -> None:
        """Remove what is still queued of a request."""
        client = pending.request.client
        self._keep(client, deque(one for one in self._pieces.get(client, ()) if one.pending is not pending))

    def note_load(self, rows: int) -> None:
        """Note how many rows are queued or running: as many may come again once these are done."""
        now = monotonic()
        if rows >= self._concurrent_rows or now - self._measured_at > LOAD_SECONDS:
            self._concurrent_rows, self._measured_at = rows, now

    def note_done(self, rows: int, seconds: float) -> None:
        """Note that a batch was done in `seconds`, while `rows` rows, its own included, were queued or running."""
        self._concurrent_rows, self._measured_at = rows, monotonic()
        self._free_at, self._batch_seconds = self._measured_at, seconds

    def hold_seconds(self, workers: int) -> float:
        """Return how long the first request should wait for others that are likely to come; 0 to run it now."""
        now = monotonic()
        if not self._pieces or not self.gather_seconds or now - self._measured_at > LOAD_SECONDS:
            return 0.0
        first = self._pieces[self._next()][0]
        if first.alone or self.rows >= min(self._concurrent_rows / workers, self.most_batch):
            return 0.0
        hold = max(self.gather_seconds, min(HOLD_SHARE * self._batch_seconds, MAX_HOLD))
        hold = min(hold, HOLD_SHARE_OF_TIME_LEFT * max(first.until - now, 0.0))
        return max(max(first.since, self._free_at) + hold - now, 0.0)

    def _next(self) -> str:
        """Return the client that was given the least."""
        return min(self._pieces, key=self._given.__getitem__)

    def take(self, most_cost: float) -> list[Piece]:
        """Remove and return the next batch: of this cost at most, unless it is a single row."""
        now = monotonic()
        client = self._next()
        self._level = self._given[client]
        batch = [self._cut(client, most_cost)]
        rows, cost = batch[0].rows, batch[0].cost
        for other in sorted(self._pieces, key=self._given.__getitem__):
            left: deque[Piece] = deque()
            for piece in self._pieces[other]:
                fits = rows + piece.rows <= self.most_batch and cost + piece.cost <= max(most_cost, batch[0].cost)
                if fits and batch[0].can_share(piece, now):
                    batch.append(piece)
                    rows, cost = rows + piece.rows, cost + piece.cost
                else:
                    left.append(piece)
            self._keep(other, left)
        for piece in batch:
            self._given[piece.pending.request.client] += piece.cost
        return batch

    def _cut(self, client: str, most_cost: float) -> Piece:
        """Remove and return the first piece of a client, as much of it as fits; the rest goes behind the client's others."""
        pieces = self._pieces[client]
        first = pieces.popleft()
        fitting = max(min(int(most_cost / first.pending.row_cost), self.most_batch), 1)
        if first.rows > fitting:
            middle = first.start + fitting
            pieces.append(replace(first, start=middle))
            first = replace(first, stop=middle)
        self._keep(client, pieces)
        return first

    def clear(self) -> list[Piece]:
        """Remove and return all that is queued."""
        left, self._pieces = list(self), {}
        return left


class LatencyModel:
    """Weighted least squares of seconds on cost, with recent calls weighted more; slope and intercept are at least 0."""

    def __init__(self) -> None:
        self.weight, self.cost, self.seconds = 2.0, 33.0, 2 * FIXED_SECONDS + 33.0 * ROW_SECONDS
        self.squares = 1.0 + 32.0**2
        self.products = (FIXED_SECONDS + ROW_SECONDS) + 32.0 * (FIXED_SECONDS + 32.0 * ROW_SECONDS)

    def observe(self, cost: float, seconds: float) -> None:
        """Add a call of this cost that took `seconds`."""
        self.weight = DECAY * self.weight + 1.0
        self.cost = DECAY * self.cost + cost
        self.seconds = DECAY * self.seconds + seconds
        self.squares = DECAY * self.squares + cost * cost
        self.products = DECAY * self.products + cost * seconds

    def line(self) -> tuple[float, float]:
        """Return the fixed seconds of a call, and the seconds per unit of cost."""
        mean_cost, mean_seconds = self.cost / self.weight, self.seconds / self.weight
        variance = self.squares / self.weight - mean_cost**2
        per_unit = mean_seconds / mean_cost
        if variance > LEAST_VARIANCE:
            slope = (self.products / self.weight - mean_cost * mean_seconds) / variance
        else:  # calls of one size say nothing about the slope
            slope = DEFAULT_SLOPE * per_unit
        slope = min(max(slope, 0.0), per_unit)
        return max(mean_seconds - slope * mean_cost, 0.0), slope

    def predict(self, cost: float) -> float:
        """Return the expected seconds of a call of this cost."""
        fixed, slope = self.line()
        return fixed + slope * cost

    def capacity(self, seconds: float) -> float:
        """Return the cost of a call of about this length, or twice the fixed part of a call if that is longer."""
        fixed, slope = self.line()
        return max(seconds - fixed, fixed) / max(slope, 1e-6)
