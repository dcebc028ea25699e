"""The engine of one machine: worker processes, each with its own copy of the model; one that dies is replaced."""

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

from fasterce.batch.events import Done, Engine, Event, Failed, Underway
from fasterce.batch.job import Job
from fasterce.batch.shard import ONE_THREAD, Worker
from fasterce.batch.shards import Shard
from fasterce.batch.worker import described
from fasterce.errors import FasterCEError, ModelError

MOST_FALSE_STARTS = 3
PATIENCE = 0.5
LONGEST_PATIENCE = 30.0
DIED = "WorkerDied"


@dataclass
class Hand:
    """A worker process, the pipe to it, and the shard it is at."""

    process: "subprocess.Popen[bytes]"
    pipe: Connection
    ready: bool = False
    shard: Shard | None = None


@dataclass
class Waiting:
    """Shards still to do, with how often each was tried, and not before when it is tried again."""

    shards: deque[Shard]
    tries: dict[int, int] = field(default_factory=dict)
    later: dict[int, float] = field(default_factory=dict)

    def take(self) -> Shard | None:
        now = time.monotonic()
        for _ in range(len(self.shards)):
            shard = self.shards.popleft()
            if self.later.get(shard.number, 0.0) <= now:
                return shard
            self.shards.append(shard)
        return None

    def fail(self, shard: Shard, retries: int) -> bool:
        """Put a shard back; False where it was tried often enough."""
        tries = self.tries[shard.number] = self.tries.get(shard.number, 0) + 1
        if tries > retries:
            return False
        self.later[shard.number] = time.monotonic() + min(PATIENCE * 2**tries, LONGEST_PATIENCE)
        self.shards.append(shard)
        return True


def run(job: Job, shards: Sequence[Shard], *, workers: int, retries: int) -> Generator[Event, None, None]:
    """Every shard by some worker; what each does does not depend on the others."""
    crew = Crew(job, min(workers, max(len(shards), 1)), Waiting(deque(shards)), retries)
    try:
        while crew.busy:
            yield from crew.turn()
    finally:
        crew.end()


def here(worker: Worker) -> Engine:
    """The same without other processes: shard after shard in this one, which a model can hang or end."""

    def run(job: Job, shards: Sequence[Shard], *, workers: int, retries: int) -> Generator[Event, None, None]:
        at_work = Worker(job, worker.opened)
        for shard in shards:
            for attempt in range(retries + 1):
                event = _tried(at_work, shard, final=attempt == retries)
                yield event
                if isinstance(event, Done):
                    break
                time.sleep(PATIENCE)

    return run


def _tried(worker: Worker, shard: Shard, final: bool) -> Event:
    try:
        return Done(shard.number, worker.do(shard))
    except Exception as error:
        return Failed(shard.number, *described(error), final)


class Crew:
    """The workers of a run."""

    def __init__(self, job: Job, size: int, waiting: Waiting, retries: int) -> None:
        self.job, self.size, self.waiting, self.retries = job, size, waiting, retries
        self.hands: list[Hand] = []
        self.false_starts = 0

    @property
    def busy(self) -> bool:
        return bool(self.waiting.shards) or any(hand.shard for hand in self.hands)

    def turn(self) -> Iterator[Event]:
        """Fill the crew, give out shards, and hear what there is."""
        while len(self.hands) < min(self.size, len(self.waiting.shards) + sum(hand.shard is not None for hand in self.hands)):
            self.hands.append(_hire(self.job))
        for hand in self.hands:
            if hand.ready and hand.shard is None:
                self._give(hand)
        ready = wait([hand.pipe for hand in self.hands], timeout=PATIENCE)
        for hand in [hand for hand in self.hands if hand.pipe in ready]:
            yield from self._hear(hand)

    def _give(self, hand: Hand) -> None:
        hand.shard = self.waiting.take()
        if hand.shard is not None:
            try:
                hand.pipe.send(hand.shard)
            except (BrokenPipeError, ConnectionResetError):
                # That it died is heard next.
                return

    def _hear(self, hand: Hand) -> Iterator[Event]:
        try:
            word, said = hand.pipe.recv()
        except (EOFError, ConnectionResetError):
            yield from self._bury(hand)
            return
        if word == "ready":
            hand.ready, self.false_starts = True, 0
        elif word == "unusable":
            raise ModelError(f"A worker could not start: {said[1]}")
        elif hand.shard is not None:
            yield from self._heard(hand, hand.shard, word, said)

    def _heard(self, hand: Hand, shard: Shard, word: str, said: Any) -> Iterator[Event]:
        if word == "rows":
            yield Underway(shard.number, said)
            return
        hand.shard = None
        if word == "done":
            yield Done(shard.number, said)
        else:
            kind, sentence = said
            yield Failed(shard.number, kind, sentence, not self.waiting.fail(shard, self.retries))

    def _bury(self, hand: Hand) -> Iterator[Event]:
        """A worker that is gone makes room for another; its shard is done again."""
        self.hands.remove(hand)
        hand.pipe.close()
        code = hand.process.wait()
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        if not hand.ready:
            self.false_starts += 1
            if self.false_starts >= MOST_FALSE_STARTS:
                raise FasterCEError(
                    f"Workers must start; {self.false_starts} in a row ended before they had, the last {how}."
                )
        if hand.shard is not None:
            final = not self.waiting.fail(hand.shard, self.retries)
            yield Failed(hand.shard.number, DIED, f"The worker at work on it ended {how}.", final)

    def end(self) -> None:
        for hand in self.hands:
            hand.pipe.close()
            hand.process.kill()
        for hand in self.hands:
            hand.process.wait()
        self.hands = []


def _hire(job: Job) -> Hand:
    ours, theirs = Pipe()
    command = [sys.executable, "-m", "fasterce.batch.worker", str(theirs.fileno()), str(os.getpid())]
    environment = {**os.environ, **dict.fromkeys(ONE_THREAD, "1"), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        command, pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    theirs.close()
    try:
        ours.send(sys.path)
        ours.send(job)
    except (BrokenPipeError, ConnectionResetError):
        pass
    return Hand(process, ours)
