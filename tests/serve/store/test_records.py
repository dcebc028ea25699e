"""What is put is there, as it was, until it is forgotten."""

import asyncio
import contextlib
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from fasterce.serve.store import Store, StoreError, UnstorableError, open_store
from fasterce.serve.store import records as stored_records
from tests.serve.store.making import ids, opened, record, run
from tests.serve.store.servers import Postgres

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)


def test_a_record_is_found_again_as_it_was(url: str) -> None:
    kept = record("a", decision="d", subject="s", retain_until="2030-01-01", body='{"text": "Größe → \\u0000 🙂"}')

    async def work() -> None:
        async with opened(url) as store:
            await store.put([kept])
        async with opened(url) as store:
            assert await store.get("a") == kept.body
            assert await store.get("b") is None
            assert await store.find() == [{name: value for name, value in asdict(kept).items() if name != "body"}]

    run(work())


def test_records_are_found_by_subject_decision_and_request_newest_first(url: str) -> None:
    made = [
        record(
            k, subject=f"s{k % 2}", decision=f"d{k % 3}", request=f"q{k % 5}", time=f"2026-01-{k + 1:02d}T00:00:00.000000Z"
        )
        for k in range(20)
    ]

    async def work() -> None:
        async with opened(url) as store:
            await store.put(made)
            assert await ids(store) == [str(k) for k in range(19, -1, -1)]
            assert await ids(store, subject="s1", count=3) == ["19", "17", "15"]
            assert await ids(store, subject="s1", first=8) == ["3", "1"]
            assert await ids(store, decision="d0", request="q1") == ["6"]
            assert await ids(store, subject="no one") == []
            assert await ids(store, subject="half \ud800", decision="d0") == []
            assert await store.get("\0") is None
            bad: list[dict[str, Any]] = [{"first": -1}, {"count": 0}, {"count": 1001}]
            for wrong in bad:
                with pytest.raises(ValueError, match="count from 1 to 1000"):
                    await store.find(**wrong)

    run(work())


def test_the_same_record_again_is_kept_once_and_another_of_its_id_is_refused(url: str) -> None:
    async def work() -> None:
        async with opened(url) as store:
            await store.put([record("a"), record("b"), record("a")])
            await store.put([record("b"), record("c")])
            with pytest.raises(UnstorableError) as error:
                await store.put([record("d"), record("a", body="{}")])
            assert error.value.problem.code == "serve.record_id_taken"
            with pytest.raises(UnstorableError) as error:
                await store.put([record("e"), record("e", status="stopped")])
            assert error.value.problem.code == "serve.record_id_taken"
            assert sorted(await ids(store)) == ["a", "b", "c"]

    run(work())


def test_a_put_that_is_refused_takes_no_neighbour_with_it(url: str) -> None:
    async def work() -> None:
        async with opened(url) as store:
            await store.put([record("taken")])
            puts = [store.put([record(k), record(f"{k}+")]) for k in range(10)]
            puts.insert(5, store.put([record("new"), record("taken", body="other")]))
            puts.insert(8, store.put([record("taken")]))
            done = await asyncio.gather(*puts, return_exceptions=True)
            assert [type(one) for one in done] == [type(None)] * 5 + [UnstorableError] + [type(None)] * 6
            assert sorted(await ids(store)) == sorted([f"{k}" for k in range(10)] + [f"{k}+" for k in range(10)] + ["taken"])

    run(work())


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"subject": "a\0b"}, "not_storable"),
        ({"decision": "\ud800"}, "not_storable"),
        ({"body": "\0"}, "not_storable"),
        ({"request": "q" * 501}, "too_long"),
        ({"status": None}, "missing"),
        ({"time": 5}, "not_text"),
        ({"time": "2026-01-01T00:00:00+01:00"}, "form"),
        ({"retain_until": "for ever"}, "form"),
        ({"retain_until": ""}, "form"),
    ],
)
def test_what_no_database_takes_is_refused(file: Path, fields: dict[str, object], code: str) -> None:
    async def work() -> None:
        async with opened(f"sqlite:///{file}") as store:
            with pytest.raises(UnstorableError) as error:
                await store.put([record("a"), record("b", **fields)])
            assert error.value.problem.code == f"serve.record_field_{code}"
            assert error.value.problem.details["field"] in fields
            assert await ids(store) == []

    run(work())


def test_the_longest_fields_and_a_large_body_are_taken(url: str) -> None:
    long = dict.fromkeys(("request", "decision", "subject"), "🙂" * 500)

    async def work() -> None:
        async with opened(url) as store:
            await store.put([record("a", body="x" * 3_000_000, **long)])
            assert len(await store.get("a") or "") == 3_000_000
            assert await ids(store, **long) == ["a"]

    run(work())


def test_what_has_queued_up_is_one_transaction(url: str) -> None:
    async def work() -> None:
        async with opened(url) as store:
            await store.put([record("first")])
            commits: list[Any] = []
            event.listen(store._database.writer, "commit", commits.append)
            await asyncio.gather(*(store.put([record(k)]) for k in range(64)))
            assert len(commits) <= 4
            assert len(await store.find(count=100)) == 65

    run(work())


def test_whoever_has_given_up_is_not_written_for(file: Path) -> None:
    async def work() -> None:
        async with opened(f"sqlite:///{file}") as store:
            held = asyncio.get_running_loop().run_in_executor(None, _hold, store, 0.3)
            await asyncio.sleep(0.1)
            first = asyncio.create_task(store.put([record("first")]))
            await asyncio.sleep(0.05)
            second = asyncio.create_task(store.put([record("second")]))
            await asyncio.sleep(0.05)
            second.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await second
            await first
            await held
            assert await store.check() is None
            assert await ids(store) == ["first"]

    run(work())


def _hold(store: Store, seconds: float) -> None:
    """Keep others from writing, as another program might."""
    import sqlite3
    import time

    other = sqlite3.connect(store.place, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    time.sleep(seconds)
    other.execute("ROLLBACK")
    other.close()


def test_the_queue_has_an_end(file: Path) -> None:
    async def work() -> None:
        async with opened(f"sqlite:///{file}", max_waiting=10) as store:
            held = asyncio.get_running_loop().run_in_executor(None, _hold, store, 0.4)
            await asyncio.sleep(0.1)
            puts = [asyncio.create_task(store.put([record("0")]))]
            await asyncio.sleep(0.05)
            puts += [asyncio.create_task(store.put([record(f"{k}"), record(f"{k}+")])) for k in range(1, 8)]
            done: list[Any] = await asyncio.gather(*puts, return_exceptions=True)
            assert [one.problem.code for one in done if one] == ["serve.store_queue_full"] * 2
            assert len(await ids(store)) == 11
            await held

    run(work())


def test_closing_finishes_what_was_asked_for(url: str) -> None:
    async def work() -> None:
        store = open_store(url)
        puts = [asyncio.create_task(store.put([record(k)])) for k in range(30)]
        await asyncio.sleep(0)
        await store.close()
        await asyncio.gather(*puts)
        with pytest.raises(StoreError, match="closed"):
            await store.put([record("late")])
        async with opened(url) as again:
            assert len(await ids(again)) == 30

    run(work())


def test_a_subject_is_forgotten(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_records, "DELETE_STEP", 7)

    async def work() -> None:
        async with opened(url) as store:
            await store.put([record(k, subject="s" if k % 2 else "t") for k in range(40)])
            assert await store.forget("s") == 20
            assert await store.forget("s") == 0
            assert await store.forget("\0") == 0
            assert await ids(store, subject="s") == []
            assert len(await ids(store, subject="t")) == 20

    run(work())


def letter_about(record_id: str, id: str = "l1", alternatives: str = "[0, 2]") -> dict[str, str | None]:
    time = "2026-01-31T12:00:00.000000Z"
    return {"id": id, "record": record_id, "time": time, "alternatives": alternatives, "digest": "sha256:0", "key": None}


def test_letters_belong_to_their_record_and_go_with_it(url: str) -> None:
    async def work() -> None:
        async with opened(url) as store:
            await store.put([record(1, subject="s"), record(2, subject="t")])
            assert await store.put_letter(letter_about("1"))
            assert await store.put_letter(letter_about("1"))
            assert await store.put_letter(letter_about("2", "l2", "[]"))
            assert not await store.put_letter(letter_about("3", "l3")), "there is no such record"
            assert [one["alternatives"] for one in await store.get_letters("1")] == ["[0, 2]"]
            assert await store.forget("s") == 1
            assert await store.get_letters("1") == []
            assert [one["id"] for one in await store.get_letters("2")] == ["l2"]

    run(work())


def test_nothing_of_a_forgotten_subject_is_left_in_the_files(file: Path) -> None:
    async def work() -> None:
        async with opened(f"sqlite:///{file}") as store:
            for start in range(0, 60, 20):
                await store.put(
                    [record(k, subject=f"someone-{k % 3}", body=f"secret-{k % 3}" * 300) for k in range(start, start + 20)]
                )
            assert b"secret-1" in _bytes(file)
            assert await store.forget("someone-1") == 20
            assert b"secret-1" not in _bytes(file)
            assert b"someone-1" not in _bytes(file)
            assert b"secret-2" in _bytes(file)

    run(work())


def _bytes(file: Path) -> bytes:
    return b"".join(path.read_bytes() for path in file.parent.glob(f"{file.name}*"))


def test_only_the_owner_can_read_the_files(file: Path) -> None:
    async def work() -> None:
        async with opened(f"sqlite:///{file}") as store:
            await store.put([record("a")])
            modes = {path.name: path.stat().st_mode & 0o777 for path in file.parent.iterdir()}
            assert modes == {"records.db": 0o600, "records.db-wal": 0o600, "records.db-shm": 0o600}

    run(work())


def test_a_record_is_kept_through_its_last_day(url: str) -> None:
    async def work() -> None:
        async with opened(url, retention_days=30) as store:
            await store.put(
                [
                    record("yesterday", retain_until="2026-06-14"),
                    record("today", retain_until="2026-06-15"),
                    record("old, but to be kept", time="2020-01-01T00:00:00.000000Z", retain_until="2031-01-01"),
                    record("31 days", time="2026-05-15T12:00:00.000000Z"),
                    record("just not 30 days", time="2026-05-16T12:00:00.000001Z"),
                ]
            )
            assert await store.purge(NOW) == 2
            assert sorted(await ids(store)) == ["just not 30 days", "old, but to be kept", "today"]
        async with opened(url) as store:
            assert await store.purge(NOW + timedelta(days=365)) == 1
            assert sorted(await ids(store)) == ["just not 30 days", "old, but to be kept"]

    run(work())


days = st.integers(-40, 40)


@settings(max_examples=30)
@given(made=st.lists(st.tuples(days, st.none() | days), max_size=25), retention=st.none() | st.integers(1, 40))
def test_exactly_what_is_due_is_purged(
    made: list[tuple[int, int | None]], retention: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def due(age: int, until: int | None) -> bool:
        return until < 0 if until is not None else retention is not None and age > retention

    def kept(k: int, age: int, until: int | None) -> object:
        made_at = (NOW - timedelta(days=age)).isoformat(timespec="microseconds").replace("+00:00", "Z")
        day = None if until is None else (date(2026, 6, 15) + timedelta(days=until)).isoformat()
        return record(k, time=made_at, retain_until=day)

    async def work() -> None:
        async with opened(f"sqlite:///{tmp_path_factory.mktemp('p') / 'r.db'}", retention_days=retention) as store:
            await store.put([kept(k, *one) for k, one in enumerate(made)])  # type: ignore[misc]
            gone = [str(k) for k, one in enumerate(made) if due(*one)]
            assert await store.purge(NOW) == len(gone)
            assert set(await ids(store, count=100)) == {str(k) for k in range(len(made))} - set(gone)

    run(work())


def test_others_are_written_while_much_is_purged(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_records, "DELETE_STEP", 10)

    async def work() -> None:
        async with opened(url) as store:
            await store.put([record(k, retain_until="2020-01-01") for k in range(300)])
            purge = asyncio.create_task(store.purge(NOW))
            written = 0
            while not purge.done():
                await store.put([record(f"new {written}")])
                written += 1
            assert await purge == 300
            assert written >= 10
            assert len(await ids(store, count=1000)) == written

    run(work())


def test_a_commit_is_synced_to_the_disk(file: Path, postgres: Postgres) -> None:
    """What a killed process cannot show: only a power cut would."""
    store = open_store(f"sqlite:///{file}")
    with store._database.writer.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    run(store.close())
    url = postgres.new_database()
    postgres.ask("postgres", "ALTER ROLE tester SET synchronous_commit = off")
    store = open_store(url)
    with store._database.writer.connect() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    run(store.close())
    postgres.ask("postgres", "ALTER ROLE tester SET synchronous_commit = remote_apply")
    store = open_store(url)
    with store._database.writer.connect() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "remote_apply"
    run(store.close())
    postgres.ask("postgres", "ALTER ROLE tester RESET ALL")
