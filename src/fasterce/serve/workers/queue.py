"""Requests that wait for a worker, which of them share a batch (those for one artifact with the same options), and how long
a batch takes."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
from time import monotonic

from fasterce.serve.messages import WorkerRequest, WorkerResponse

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
FIXED_SECONDS, ROW_SECONDS = 0.05, 0.005
# With less variance of the number of rows, the slope is not estimated but this share of the mean time per row.
LEAST_VARIANCE, DEFAULT_SLOPE = 0.25, 0.1


@dataclass(eq=False)
class PendingRequest:
    """A request with the future of its response.

    Parameters
    ----------
    request : WorkerRequest
    future : asyncio.Future
    alone : bool
        Whether it must not share a batch.
    attempts : int
        How many workers were lost over it.
    since : float
        When it was queued, on the monotonic clock.
    """

    request: WorkerRequest
    future: asyncio.Future[WorkerResponse]
    alone: bool = False
    attempts: int = 0
    since: float = field(default_factory=monotonic)
    key: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = f"{self.request.artifact}\n{json.dumps(self.request.options, sort_keys=True)}"

    @property
    def rows(self) -> int:
        return max(len(self.request.rows), 1)

    @property
    def open(self) -> bool:
        """Whether the response is still waited for."""
        return not self.future.done()

    def can_share(self, other: "PendingRequest", now: float) -> bool:
        """Whether both fit into one batch without the deadline of one cutting the other short."""
        if self.alone or other.alone or self.key != other.key:
            return False
        left, left_other = self.request.until - now, other.request.until - now
        return min(left, left_other) >= SHORT_SECONDS or max(left, left_other) <= 2 * min(left, left_other)


class RequestQueue:
    """Requests in the order of arrival; a batch is the first one and those that can share with it."""

    def __init__(self, most_batch: int, gather_seconds: float) -> None:
        self.most_batch = most_batch
        self.gather_seconds = gather_seconds
        self.rows = 0
        self._pending: deque[PendingRequest] = deque()
        self._concurrent_rows = 0
        self._measured_at = self._free_at = 0.0
        self._batch_seconds = 0.0

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, pending: PendingRequest) -> None:
        self._pending.append(pending)
        self.rows += pending.rows

    def add_first(self, pending: PendingRequest) -> None:
        """Queue a request again, before all others."""
        self._pending.appendleft(pending)
        self.rows += pending.rows

    def drop(self, pending: PendingRequest) -> None:
        """Remove a request if it is still queued."""
        if pending in self._pending:
            self._pending.remove(pending)
            self.rows -= pending.rows

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
        if not self._pending or not self.gather_seconds or now - self._measured_at > LOAD_SECONDS:
            return 0.0
        first = self._pending[0]
        if first.alone or self.rows >= min(self._concurrent_rows / workers, self.most_batch):
            return 0.0
        hold = max(self.gather_seconds, min(HOLD_SHARE * self._batch_seconds, MAX_HOLD))
        hold = min(hold, HOLD_SHARE_OF_TIME_LEFT * max(first.request.until - now, 0.0))
        return max(max(first.since, self._free_at) + hold - now, 0.0)

    def take(self) -> list[PendingRequest]:
        """Remove and return the next batch."""
        now = monotonic()
        first = self._pending[0]
        batch, rows = [first], first.rows
        for other in list(self._pending)[1:]:
            if rows >= self.most_batch:
                break
            if rows + other.rows <= self.most_batch and first.can_share(other, now):
                batch.append(other)
                rows += other.rows
        taken = set(map(id, batch))
        self._pending = deque(one for one in self._pending if id(one) not in taken)
        self.rows -= rows
        return batch

    def clear(self) -> list[PendingRequest]:
        """Remove and return all requests."""
        left, self._pending, self.rows = list(self._pending), deque(), 0
        return left


class LatencyModel:
    """Weighted least squares of seconds on rows, with recent calls weighted more; slope and intercept are at least 0."""

    def __init__(self) -> None:
        self.weight, self.rows, self.seconds = 2.0, 33.0, 2 * FIXED_SECONDS + 33.0 * ROW_SECONDS
        self.squares = 1.0 + 32.0**2
        self.products = (FIXED_SECONDS + ROW_SECONDS) + 32.0 * (FIXED_SECONDS + 32.0 * ROW_SECONDS)

    def observe(self, rows: int, seconds: float) -> None:
        """Add a call with `rows` rows that took `seconds`."""
        self.weight = DECAY * self.weight + 1.0
        self.rows = DECAY * self.rows + rows
        self.seconds = DECAY * self.seconds + seconds
        self.squares = DECAY * self.squares + rows * rows
        self.products = DECAY * self.products + rows * seconds

    def predict(self, rows: float) -> float:
        """Return the expected seconds of a call with `rows` rows."""
        mean_rows, mean_seconds = self.rows / self.weight, self.seconds / self.weight
        variance = self.squares / self.weight - mean_rows**2
        per_row = mean_seconds / mean_rows
        if variance > LEAST_VARIANCE:
            slope = (self.products / self.weight - mean_rows * mean_seconds) / variance
        else:  # calls of one size say nothing about the slope
            slope = DEFAULT_SLOPE * per_row
        slope = min(max(slope, 0.0), per_row)
        return max(mean_seconds + slope * (rows - mean_rows), slope * rows)
