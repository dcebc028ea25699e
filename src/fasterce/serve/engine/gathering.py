"""Questions that wait, and which of them are asked together: those of one artifact with the same options."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
from time import monotonic

from fasterce.serve.engine import wire
from fasterce.serve.question import Answer, Question

# Seconds: with less than this left a question is asked only in the company of those with about as much.
SHORT = 0.5
# How long a crowd is remembered, in seconds.
REMEMBERED = 0.1
# A batch that took long is worth waiting for longer: this share of it, and never more seconds than that.
WORTH, MOST_HELD = 0.2, 0.02


@dataclass(eq=False)
class Waiting:
    """A question on its way, `written` for an engine; `key` is what those asked together have in common. `alone` if it must
    not have company, `tries` how often an engine was lost over it."""

    question: Question
    future: asyncio.Future[Answer]
    written: str = ""
    key: str = ""
    alone: bool = False
    tries: int = 0
    since: float = field(default_factory=monotonic)

    def __post_init__(self) -> None:
        self.written = wire.question_out(self.question)
        self.key = f"{self.question.artifact}\n{json.dumps(self.question.options, sort_keys=True)}"

    @property
    def rows(self) -> int:
        return max(len(self.question.rows), 1)

    @property
    def open(self) -> bool:
        """Whether somebody still waits for it."""
        return not self.future.done()

    def suits(self, other: "Waiting", now: float) -> bool:
        """Whether both can be asked in one call without one of them cutting the other short."""
        if self.alone or other.alone or self.key != other.key:
            return False
        mine, others = self.question.until - now, other.question.until - now
        return min(mine, others) >= SHORT or max(mine, others) <= 2 * min(mine, others)


class Queue:
    """In the order they came; whoever is first takes those along that suit it."""

    def __init__(self, most_batch: int, gather_seconds: float) -> None:
        self.most_batch = most_batch
        self.gather_seconds = gather_seconds
        self.rows = 0
        self._waiting: deque[Waiting] = deque()
        self._crowd = 0
        self._crowd_at = self._free_at = 0.0
        self._batch_seconds = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)
        self.rows += waiting.rows

    def add_again(self, waiting: Waiting) -> None:
        """One that was asked before and has to be asked once more goes first."""
        self._waiting.appendleft(waiting)
        self.rows += waiting.rows

    def drop(self, waiting: Waiting) -> None:
        """It need not be asked any more, if it was not yet."""
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            self.rows -= waiting.rows

    def note_crowd(self, rows: int) -> None:
        """How many rows are on their way at once: so many may come again when these have been answered."""
        now = monotonic()
        if rows >= self._crowd or now - self._crowd_at > REMEMBERED:
            self._crowd, self._crowd_at = rows, now

    def note_done(self, rows: int, seconds: float) -> None:
        """A batch was answered, when so many rows were on their way, its own among them; it took so many seconds."""
        self._crowd, self._crowd_at = rows, monotonic()
        self._free_at, self._batch_seconds = self._crowd_at, seconds

    def patience(self, engines: int) -> float:
        """Seconds the first may still wait for company that is likely to come; 0 if it should be asked now."""
        now = monotonic()
        if not self._waiting or not self.gather_seconds or now - self._crowd_at > REMEMBERED:
            return 0.0
        first = self._waiting[0]
        if first.alone or self.rows >= min(self._crowd / engines, self.most_batch):
            return 0.0
        held = max(self.gather_seconds, min(WORTH * self._batch_seconds, MOST_HELD))
        held = min(held, 0.1 * max(first.question.until - now, 0.0))
        return max(max(first.since, self._free_at) + held - now, 0.0)

    def take(self) -> list[Waiting]:
        """The first and all that suit it, as many rows as one call may have."""
        now = monotonic()
        first = self._waiting[0]
        batch, rows = [first], first.rows
        for other in list(self._waiting)[1:]:
            if rows >= self.most_batch:
                break
            if rows + other.rows <= self.most_batch and first.suits(other, now):
                batch.append(other)
                rows += other.rows
        taken = set(map(id, batch))
        self._waiting = deque(one for one in self._waiting if id(one) not in taken)
        self.rows -= rows
        return batch

    def empty(self) -> list[Waiting]:
        left, self._waiting, self.rows = list(self._waiting), deque(), 0
        return left
