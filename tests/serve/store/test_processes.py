"""Several processes, and processes that are killed."""

import signal
import time

import pytest

from tests.serve.store.making import ids, in_a_child, opened, record, run

PUTTING = """
    import asyncio, sys
    from fasterce.serve.store import open_store
    from tests.serve.store.making import record

    async def main(url, name, count):
        store = open_store(url, timeout=20)
        async def put(k):
            made = [record(f"{name}-{k}-{part}", body="x" * 3000) for part in range(3)]
            await store.put(made)
            print(*(one.id for one in made), flush=True)
        for start in range(0, count, 8):
            await asyncio.gather(*(put(start + k) for k in range(8)))
        await store.close()

    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


@pytest.mark.parametrize("lines", [1, 40, 200])
def test_what_was_confirmed_is_there_after_sigkill(url: str, lines: int) -> None:
    child = in_a_child(PUTTING, url, "a", "1000000")
    assert child.stdout is not None
    said = [child.stdout.readline() for _ in range(lines)]
    child.send_signal(signal.SIGKILL)
    said += child.stdout.read().splitlines()
    child.wait()
    confirmed = [id for line in said for id in line.split() if id.count("-") == 2]
    assert len(confirmed) >= 3 * lines

    async def work() -> None:
        async with opened(url) as store:
            there = {id for first in range(0, 20_000, 1000) for id in await ids(store, first=first, count=1000)}
            # The last line may have been cut off.
            assert set(confirmed[:-1]) <= there
            assert len(there) % 3 == 0, "all records of a put or none"
            await store.put([record("after")])

    run(work())


def test_two_processes_keep_in_one_database(url: str) -> None:
    children = [in_a_child(PUTTING, url, name, "200") for name in ("a", "b")]
    for child in children:
        said, _ = child.communicate(timeout=120)
        assert child.returncode == 0
        assert len(said.split()) == 600

    async def work() -> None:
        async with opened(url) as store:
            there = [id for first in (0, 1000) for id in await ids(store, first=first, count=1000)]
            assert len(there) == 1200

    run(work())


OPENING = """
    import asyncio, sys, time
    from fasterce.serve.store import open_store
    time.sleep(max(0, float(sys.argv[2]) - time.time()))
    asyncio.run(open_store(sys.argv[1]).close())
    print("opened")
"""


def test_servers_that_start_together_make_the_database_once(url: str) -> None:
    together = str(time.time() + 2)
    children = [in_a_child(OPENING, url, together) for _ in range(4)]
    assert [child.communicate(timeout=60)[0] for child in children] == ["opened\n"] * 4
