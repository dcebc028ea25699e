"""Requests that wait for a worker, which of them share a batch (those for one artifact with the same options), whose turn it
is, and how long a batch takes."""

import asyncio
import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
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
# Seconds the HTTP process takes to send a response and read the next request (0.6 ms measured with 64 clients). While it does
# so for a batch, the worker is idle: where that takes more than the share of the time the last batch took, half of the rows
# that are likely to come are enough for a batch, and the other half comes meanwhile. Up to so few rows, one call costs less.
TURNAROUND_SECONDS, MAX_IDLE_SHARE, FEW_ROWS = 0.0006, 0.3, 6
# Share of the time left of a request for which it may be held back.
HOLD_SHARE_OF_TIME_LEFT = 0.1
# Weight of a call relative to the next one.
DECAY = 0.95
# Initial estimate in seconds: the fixed part of a call, and the time per row.
FIXED_SECONDS, ROW_SECONDS = 0.03, 0.002
# Weight of the initial estimate, relative to a call.
PRIOR = 1e-6
# Square of the relative variation of the number of rows below which their time is doubted, and the shares of the time then
# taken to grow with the rows: for batches that gather requests and save by it, and for pieces, which keep others waiting.
DOUBT, HOPEFUL, CAUTIOUS = 0.02, 0.1, 1.0
# How many times as many rows as the last call a piece may have: one wrong estimate must not keep everybody waiting.
MOST_GROWTH = 2
# Seconds that rows take at least, relative to the fixed part of a call: of a batch, which saves the fixed part of all but one
# of its requests, and of a piece, which adds one.
GATHERED_SHARE, PIECE_FIXED_SHARE = 2.0, 0.5
# Requests that must be cut are cut into pieces of this share of the time of a batch, since others wait for each of them.
PIECE_SHARE = 0.5
# A request of a larger cost waits a moment for others whose queues come before.
LARGE_COST = 8.0
# Seconds for which a queue counts as used, and the factor on the length of batches while only one is.
SHARED_SECONDS, ALONE_FACTOR = 5.0, 4.0
# Smallest number of seconds per row.
LEAST_SLOPE = 1e-6
# Queues remembered beyond twice those with requests.
MOST_GONE = 100
# Options for which a model of the latency is kept.
MOST_MODELS = 100


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
    charge : float
        Seconds its queue was charged when it was taken.
    """

    pending: PendingRequest
    start: int
    stop: int
    alone: bool = False
    attempts: int = 0
    since: float = field(default_factory=monotonic)
    run: int = 0
    charge: float = 0.0

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
    """Requests in queues that take turns: the one that was given the least time is next. A batch is its first request, or a
    piece of it, and those of all queues that can share with it.

    Parameters
    ----------
    most_batch : int
        Rows of one batch.
    gather_seconds : float
        How long a request may be held back for others.
    clock : callable
        Returns the time in seconds.
    """

    def __init__(self, most_batch: int, gather_seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self.most_batch = most_batch
        self.gather_seconds = gather_seconds
        self.clock = clock
        self._pieces: dict[str, deque[Piece]] = {}
        # Queued rows by options.
        self._rows: Counter[str] = Counter()
        # Seconds given to each queue so far, and to the one whose turn was last, before it: a new one starts there.
        self._given: dict[str, float] = {}
        self._level = 0.0
        # Queues of the last batch, and when the last batch of each queue was taken.
        self._last: set[str] = set()
        self._used: dict[str, float] = {}
        self._concurrent_rows = 0
        self._measured_at = self._free_at = 0.0
        self._batch_seconds = 0.0

    def __len__(self) -> int:
        return sum(map(len, self._pieces.values()))

    def __iter__(self) -> Iterator[Piece]:
        return (piece for pieces in self._pieces.values() for piece in pieces)

    @property
    def rows(self) -> int:
        return self._rows.total()

    def rows_with(self, pending: PendingRequest) -> dict[str, float]:
        """Return all queued rows, by options, and those of a request: no more are explained before it is done."""
        return {**self._rows, pending.options: self._rows[pending.options] + float(pending.rows)}

    def rows_before(self, pending: PendingRequest) -> dict[str, float]:
        """Return the rows, by options, that are explained before a request would be, and its own. Another queue is given at
        most as much as this one meanwhile."""
        queue = pending.request.queue
        own = pending.cost + sum(piece.cost for piece in self._pieces.get(queue, ()))
        found = {pending.options: float(pending.rows)}
        for other, pieces in self._pieces.items():
            part = 1.0 if other == queue else min(own / sum(piece.cost for piece in pieces), 1.0)
            for piece in pieces:
                found[piece.pending.options] = found.get(piece.pending.options, 0.0) + part * piece.rows
        return found

    def add(self, pending: PendingRequest) -> None:
        self._of(pending.request.queue).append(Piece(pending, 0, pending.rows, since=self.clock(), run=pending.run))
        self._rows[pending.options] += pending.rows

    def add_again(self, piece: Piece) -> None:
        """Queue a piece again, before all others of its queue, which is given back the time."""
        queue = piece.pending.request.queue
        self._of(queue).appendleft(piece)
        self._rows[piece.pending.options] += piece.rows
        self._given[queue] -= piece.charge

    def _of(self, queue: str) -> deque[Piece]:
        if queue not in self._pieces:
            if len(self._given) > MOST_GONE + 2 * len(self._pieces):
                self._given = {one: time for one, time in self._given.items() if one in self._pieces or time > self._level}
            self._given[queue] = max(self._given.get(queue, 0.0), self._level)
            self._pieces[queue] = deque()
        return self._pieces[queue]

    def _keep(self, queue: str, pieces: deque[Piece]) -> None:
        if pieces:
            self._pieces[queue] = pieces
        else:
            self._pieces.pop(queue, None)

    def drop(self, pending: PendingRequest) -> None:
        """Remove what is still queued of a request."""
        queue = pending.request.queue
        pieces = self._pieces.get(queue, ())
        left = deque(one for one in pieces if one.pending is not pending)
        if len(left) < len(pieces):
            self._leave(one for one in pieces if one.pending is pending)
            self._keep(queue, left)

    def _leave(self, pieces: Iterable[Piece]) -> None:
        """Count pieces that are no longer queued."""
        for piece in pieces:
            self._rows[piece.pending.options] -= piece.rows
            if not self._rows[piece.pending.options]:
                del self._rows[piece.pending.options]

    def note_load(self, rows: int) -> None:
        """Note how many rows are queued or running: as many may come again once these are done."""
        now = self.clock()
        if rows >= self._concurrent_rows or now - self._measured_at > LOAD_SECONDS:
            self._concurrent_rows, self._measured_at = rows, now

    def note_done(self, rows: int, seconds: float) -> None:
        """Note that a batch was done in `seconds`, while `rows` rows, its own included, were queued or running."""
        self._concurrent_rows, self._measured_at = rows, self.clock()
        self._free_at, self._batch_seconds = self._measured_at, seconds

    def hold_seconds(self, workers: int) -> float:
        """Return how long the first request should wait for others that are likely to come; 0 to run it now."""
        now = self.clock()
        if not self._pieces or not self.gather_seconds or now - self._measured_at > LOAD_SECONDS:
            return 0.0
        next_queue = self._next()
        first = self._pieces[next_queue][0]
        hold = max(self.gather_seconds, min(HOLD_SHARE * self._batch_seconds, MAX_HOLD))
        if first.pending.cost > LARGE_COST and any(
            self._given.get(queue, self._level) < self._given[next_queue] for queue in self._last - self._pieces.keys()
        ):
            # Clients that just got a response may send the next request at once, which would come before this one.
            return max(self._free_at + hold - now, 0.0)
        if first.alone or self.rows >= min(self._worth_waiting_for() / workers, self.most_batch):
            return 0.0
        hold = min(hold, HOLD_SHARE_OF_TIME_LEFT * max(first.until - now, 0.0))
        return max(max(first.since, self._free_at) + hold - now, 0.0)

    def _worth_waiting_for(self) -> float:
        """Return how many of the rows that are likely to come a batch should wait for."""
        idle = self._concurrent_rows * TURNAROUND_SECONDS
        in_turns = self._concurrent_rows > FEW_ROWS and idle > MAX_IDLE_SHARE * self._batch_seconds
        return self._concurrent_rows / 2 if in_turns else self._concurrent_rows

    def _next(self) -> str:
        """Return the queue that was given the least."""
        return min(self._pieces, key=self._given.__getitem__)

    def take(
        self, most_rows: Callable[[PendingRequest], int], seconds: Callable[[PendingRequest, int], float]
    ) -> list[Piece]:
        """Remove and return the next batch, whose queues are charged their parts of its time.

        Parameters
        ----------
        most_rows : callable
            Returns how many rows with the options of a request a batch may have.
        seconds : callable
            Returns how long a batch of some rows with the options of a request is expected to take.
        """
        now = self.clock()
        queue = self._next()
        self._level = self._given[queue]
        most = min(most_rows(self._pieces[queue][0].pending), self.most_batch)
        batch = [self._cut(queue, most)]
        rows = batch[0].rows
        for other in sorted(self._pieces, key=self._given.__getitem__):
            left: deque[Piece] = deque()
            for piece in self._pieces[other]:
                if rows + piece.rows <= most and batch[0].can_share(piece, now):
                    batch.append(piece)
                    rows += piece.rows
                else:
                    left.append(piece)
            self._keep(other, left)
        self._leave(batch)
        self._last = {piece.pending.request.queue for piece in batch}
        self._used |= dict.fromkeys(self._last, now)
        each = seconds(batch[0].pending, rows) / rows
        for piece in batch:
            piece.charge = each * piece.rows
            self._given[piece.pending.request.queue] += piece.charge
        return batch

    @property
    def is_shared(self) -> bool:
        """Whether several queues have been used lately."""
        since = self.clock() - SHARED_SECONDS
        self._used = {queue: used for queue, used in self._used.items() if used > since}
        return len(self._used.keys() | self._pieces.keys()) > 1

    def _cut(self, queue: str, most_rows: int) -> Piece:
        """Remove and return the first piece of a queue, as much of it as fits; the rest goes behind the queue's others."""
        pieces = self._pieces[queue]
        first = pieces.popleft()
        if first.rows > most_rows:
            middle = first.start + most_rows
            pieces.append(replace(first, start=middle))
            first = replace(first, stop=middle)
        self._keep(queue, pieces)
        return first

    def clear(self) -> list[Piece]:
        """Remove and return all that is queued."""
        left, self._pieces, self._rows = list(self), {}, Counter()
        return left


class LatencyModel:
    """Weighted least squares of seconds on rows, with recent calls weighted more; slope and intercept are at least 0.

    Parameters
    ----------
    row_cost : float
        Cost of a row relative to one with the default options: what is believed before the first call.
    """

    def __init__(self, row_cost: float = 1.0) -> None:
        few, many = (FIXED_SECONDS + rows * ROW_SECONDS * row_cost for rows in (1, 32))
        self.weight, self.rows, self.seconds = 2.0 * PRIOR, 33.0 * PRIOR, PRIOR * (few + many)
        self.squares, self.products = PRIOR * (1.0 + 32.0**2), PRIOR * (few + 32.0 * many)
        self.last_rows = 1

    def observe(self, rows: int, seconds: float) -> None:
        """Add a call with `rows` rows that took `seconds`."""
        self.weight = DECAY * self.weight + 1.0
        self.rows = DECAY * self.rows + rows
        self.seconds = DECAY * self.seconds + seconds
        self.squares = DECAY * self.squares + rows * rows
        self.products = DECAY * self.products + rows * seconds
        self.last_rows = rows

    def line(self, prior_share: float = HOPEFUL) -> tuple[float, float]:
        """Return the fixed seconds of a call, and the seconds per row.

        Parameters
        ----------
        prior_share : float
            Share of the time that is taken to grow with the rows as long as calls have all been of about one size.
        """
        mean_rows, mean_seconds = self.rows / self.weight, self.seconds / self.weight
        per_row, doubt = mean_seconds / mean_rows, DOUBT * mean_rows**2
        variance = max(self.squares / self.weight - mean_rows**2, 0.0)
        covariance = self.products / self.weight - mean_rows * mean_seconds
        slope = min(max((covariance + doubt * prior_share * per_row) / (variance + doubt), 0.0), per_row)
        return max(mean_seconds - slope * mean_rows, 0.0), slope

    def predict(self, rows: float) -> float:
        """Return the expected seconds of a call with `rows` rows."""
        fixed, slope = self.line()
        return fixed + slope * rows

    def most_rows(self, seconds: float) -> int:
        """Return the rows of a call of about this length, or of a longer one that is mostly spent on rows."""
        fixed, slope = self.line()
        return _whole(max(seconds - fixed, GATHERED_SHARE * fixed), slope)

    def piece_rows(self, seconds: float) -> int:
        """Return the rows of a piece of a request that takes about this long, or as short as makes sense; at most twice as
        many as the last call had."""
        fixed, slope = self.line(CAUTIOUS)
        return min(_whole(max(seconds - fixed, PIECE_FIXED_SHARE * fixed), slope), MOST_GROWTH * self.last_rows)


def _whole(seconds: float, slope: float) -> int:
    """Return how many rows of `slope` seconds fit into a time, at least one."""
    return max(int(seconds / max(slope, LEAST_SLOPE)), 1)


class LatencyModels:
    """A model of the latency for each artifact and options, for as many as were used lately.

    Parameters
    ----------
    most_batch : int
        Rows of one batch.
    seconds : float
        How long a batch should take.
    """

    def __init__(self, most_batch: int, seconds: float) -> None:
        self.most_batch, self.seconds = most_batch, seconds
        self._models: dict[str, LatencyModel] = {}

    def of(self, pending: PendingRequest) -> LatencyModel:
        model = self._models.pop(pending.options, None) or LatencyModel(pending.row_cost)
        self._models[pending.options] = model
        while len(self._models) > MOST_MODELS:
            del self._models[next(iter(self._models))]
        return model

    def most_rows(self, pending: PendingRequest, is_shared: bool) -> int:
        """Return how many rows with the options of a request a batch may have: fewer if it is a piece of the request that
        others may have to wait for."""
        model, seconds = self.of(pending), self.seconds
        if pending.rows == 1:
            rows = model.most_rows(seconds if is_shared else ALONE_FACTOR * seconds)
        elif not is_shared:
            rows = model.piece_rows(ALONE_FACTOR * seconds)
        elif pending.rows > (rows := model.piece_rows(seconds)):
            rows = model.piece_rows(PIECE_SHARE * seconds)
        return min(rows, self.most_batch)

    def predict(self, pending: PendingRequest, rows: int) -> float:
        """Return the expected seconds of a call with rows with the options of a request."""
        return self.of(pending).predict(rows)

    def total(self, rows: Mapping[str, float]) -> float:
        """Return the seconds of batches with these rows, by options."""
        seconds = 0.0
        for options, count in rows.items():
            model = self._models.get(options) or LatencyModel()
            calls, rest = divmod(count, min(model.most_rows(self.seconds), self.most_batch))
            fixed, slope = model.line()
            seconds += (calls + (rest > 0)) * fixed + slope * count
        return seconds
