"""How fast records are kept, found and deleted: the table of docs/serve-records.md.

    python scripts/measure_store.py sqlite:////tmp/measured.db --records 100000

The database must be one made for this: it is filled, and not emptied.
"""

import argparse
import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from uuid import UUID

from fasterce.serve.messages import StoredRecord
from fasterce.serve.store import Store, open_store

SECONDS = 4.0
BYTES = 3100
SUBJECTS = 1000

numbers = random.Random(0)
# About as long as real records; they compress better.
BODIES = [json.dumps({f"feature_{k}": round(numbers.gauss(0, 1000), 3) for k in range(BYTES // 23)}) for _ in range(200)]


def record(place: int, retain_until: str | None = None) -> StoredRecord:
    id = str(UUID(int=numbers.getrandbits(128)))
    when = datetime.fromtimestamp(1.7e9 + 60 * place, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    subject = f"subject-{place % SUBJECTS}"
    return StoredRecord(
        id, f"request-{id}", f"decision-{id}", subject, "german", "found", when, retain_until, numbers.choice(BODIES)
    )


async def timed(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


def spread(seconds: list[float]) -> str:
    ordered = sorted(1000 * one for one in seconds)
    return (
        f"p50 {ordered[len(ordered) // 2]:.1f} ms, p99 {ordered[len(ordered) * 99 // 100]:.1f} ms, worst {ordered[-1]:.1f} ms"
    )


async def putting(store: Store, clients: int) -> None:
    took: list[float] = []
    until = time.perf_counter() + SECONDS

    async def client() -> None:
        while time.perf_counter() < until:
            took.append(await timed(store.put([record(0)])))

    seconds = await timed(asyncio.gather(*(client() for _ in range(clients))))
    print(f"{clients:4d} at a time: {len(took) / seconds:6.0f} puts/s, {spread(took)}")


async def filling(store: Store, count: int) -> None:
    """One in ten is due to be deleted."""
    began = time.perf_counter()
    for start in range(0, count, 1000):
        places = range(start, min(start + 1000, count))
        await store.put([record(place, "2020-01-01" if place % 10 == 0 else None) for place in places])
    print(f"{count} records put in thousands: {time.perf_counter() - began:.0f} s")


async def reading(store: Store) -> None:
    known = [one["id"] for subject in range(1, 9) for one in await store.find(subject=f"subject-{subject}", count=100)]
    print("get:", spread([await timed(store.get(id)) for id in known]))
    print("find by subject:", spread([await timed(store.find(subject=f"subject-{k}")) for k in range(100, 200)]))


async def deleting(store: Store) -> None:
    took: list[float] = []
    began = time.perf_counter()
    purge = asyncio.create_task(store.purge(datetime.now(UTC)))
    while not purge.done():
        took.append(await timed(store.put([record(0)])))
        await asyncio.sleep(0.02)
    print(f"purge of {await purge}: {time.perf_counter() - began:.1f} s; puts meanwhile: {spread(took)}")
    began = time.perf_counter()
    print(f"forget {await store.forget('subject-3')}: {1000 * (time.perf_counter() - began):.0f} ms")


async def measure(url: str, count: int) -> None:
    store = open_store(url, timeout=60)
    steps: list[Callable[[], Awaitable[None]]] = [
        lambda: putting(store, 1),
        lambda: putting(store, 8),
        lambda: putting(store, 64),
    ]
    for step in (*steps, lambda: filling(store, count), lambda: reading(store), lambda: deleting(store)):
        await step()
    await store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="sqlite:///FILE or postgresql://…")
    parser.add_argument("--records", type=int, default=100_000)
    given = parser.parse_args()
    asyncio.run(measure(given.url, given.records))
