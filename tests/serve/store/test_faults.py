"""What goes wrong with a database: one sentence in time, nothing half-written, and it works again when the database does."""

import asyncio
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Awaitable
from pathlib import Path

import pytest
from sqlalchemy import event

from fasterce.errors import MissingExtraError
from fasterce.serve.store import StoreError, open_store, sqlite
from tests.serve.store.making import ids, in_a_child, opened, record, run
from tests.serve.store.servers import Postgres


async def refused(work: Awaitable[object], within: float = 2.6) -> str:
    began = time.monotonic()
    with pytest.raises(StoreError) as caught:
        await work
    assert time.monotonic() - began < within
    return str(caught.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://someone:secret@host/name", "must be stored in SQLite or PostgreSQL"),
        ("no address", "an address that can be read"),
        ("sqlite://", "must be in a file"),
        ("sqlite:///:memory:", "must be in a file"),
        ("sqlite:///a.db?mode=ro", "must be in a file"),
        ("sqlite://host/a.db", "must be in a file"),
    ],
)
def test_addresses_that_are_none(url: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=said) as caught:
        open_store(url)
    assert "secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [{"retention_days": 0}, {"timeout": 0}, {"timeout": float("nan")}])
def test_options_that_are_none(options: dict[str, float], file: Path) -> None:
    with pytest.raises(StoreError, match="; got "):
        open_store(f"sqlite:///{file}", **options)  # type: ignore[arg-type]
    assert not file.exists()


def test_files_that_are_no_database(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Sir or Madam, " * 100)
    for name, said in {"letter.txt": "not a database", "no/folder.db": "No such file", ".": "cannot be opened"}.items():
        with pytest.raises(StoreError, match=said) as caught:
            open_store(f"sqlite:///{tmp_path / name}")
        assert str(tmp_path) in str(caught.value)
    assert (tmp_path / "letter.txt").read_text() == "Dear Sir or Madam, " * 100


def test_a_relative_address_is_a_file_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def work() -> None:
        async with opened("sqlite:///here 100%?.db".replace("?", "")) as store:
            os.chdir("/")
            await store.put([record("a")])

    run(work())
    assert (tmp_path / "here 100%.db").is_file()


def test_a_locked_database_is_told_and_used_again(file: Path) -> None:
    async def work() -> None:
        async with opened(f"sqlite:///{file}", timeout=2) as store:
            await store.put([record("before")])
            other = sqlite3.connect(file, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            assert "another program holds it locked" in await refused(store.put([record("a")]))
            assert await store.get("before") is not None
            assert await store.check() is not None
            other.execute("ROLLBACK")
            other.close()
            await store.put([record("b")])
            assert sorted(await ids(store)) == ["b", "before"]

    run(work())


def test_a_new_database_that_is_locked_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "LOCK_SECONDS", 0.2)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match="another program holds it locked"):
        open_store(f"sqlite:///{file}")
    other.close()


def test_a_full_disk_is_told_and_used_again(file: Path) -> None:
    async def work() -> None:
        async with opened(f"sqlite:///{file}") as store:
            await store.put([record("a")])
            driver = store._database.writer.raw_connection()
            pages = driver.driver_connection.execute("PRAGMA page_count").fetchone()[0]  # type: ignore[union-attr]
            driver.driver_connection.execute(f"PRAGMA max_page_count={pages + 2}")  # type: ignore[union-attr]
            driver.close()
            assert "the disk is full" in await refused(store.put([record("b"), record("c", body="x" * 50_000)]))
            # A small row still fits, and yet the store is not ready.
            await store.put([record("d")])
            assert "the disk is full" in str(await store.check())
            assert sorted(await ids(store)) == ["a", "d"]

    run(work())


def test_a_file_that_was_deleted_is_told_and_one_put_back_is_used(file: Path) -> None:
    async def work() -> None:
        async with opened(f"sqlite:///{file}") as store:
            await store.put([record("a")])
        async with opened(f"sqlite:///{file}") as store:
            away = file.with_name("away.db")
            file.rename(away)
            assert "no longer there" in await refused(store.put([record("b")]))
            assert await store.check() is not None
            away.rename(file)
            await store.put([record("c")])
        async with opened(f"sqlite:///{file}") as store:
            assert sorted(await ids(store)) == ["a", "c"]

    run(work())


READ_ONLY = """
    import asyncio, os, sys
    from fasterce.errors import catalogue
    from fasterce.serve.store import StoreError, open_store
    from tests.serve.store.making import record
    catalogue()  # another user may not be able to read the files of the package
    if os.geteuid() == 0:
        os.setgid(65534), os.setuid(65534)
    try:
        store = open_store(sys.argv[1])
        print(asyncio.run(store.check()) is None)
        asyncio.run(store.put([record("b")]))
    except StoreError as error:
        print(error)
"""


@pytest.mark.parametrize("there", [True, False])
def test_a_place_that_may_only_be_read_is_told(there: bool) -> None:
    import tempfile

    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        if there:
            run(open_store(f"sqlite:///{folder / 'r.db'}").close())
            (folder / "r.db").chmod(0o444)
        folder.chmod(0o555)
        said, _ = in_a_child(READ_ONLY, f"sqlite:///{folder / 'r.db'}").communicate(timeout=60)
        folder.chmod(0o755)
    assert said.splitlines()[-1].startswith(f"Records could not be stored in {folder / 'r.db'}: "), said
    assert "may only be read" in said or "cannot be opened" in said or "Permission denied" in said, said


def test_what_the_writer_did_not_foresee_is_told_and_it_goes_on(file: Path) -> None:
    async def work() -> None:
        async with opened(f"sqlite:///{file}") as store:

            def fail(*_: object) -> None:
                raise RuntimeError("a bug")

            event.listen(store._database.writer, "before_cursor_execute", fail)
            assert "a bug" in await refused(store.put([record("a")]))
            event.remove(store._database.writer, "before_cursor_execute", fail)
            await store.put([record("b")])
            assert await ids(store) == ["b"]

    run(work())


def test_postgres_without_psycopg_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"fasterce\[postgres\]"):
        open_store("postgresql://host/name")


def test_no_server_is_told_without_the_password() -> None:
    with pytest.raises(StoreError, match="Records could not be stored in postgresql://someone:") as caught:
        open_store("postgresql://someone:hush-hush@127.0.0.1:1/name")
    assert "hush-hush" not in str(caught.value)
    assert str(caught.value).count("\n") == 0


def test_a_server_that_was_away_is_used_again(postgres: Postgres) -> None:
    async def work() -> None:
        async with opened(postgres.new_database()) as store:
            await store.put([record("a")])
            assert await store.get("a") is not None
            postgres.stop()
            assert "Records could not be stored in postgresql:" in await refused(store.put([record("b")]))
            assert "Records could not be read in" in await refused(store.get("a"))
            assert await store.check() is not None
            postgres.start()
            await store.put([record("c")])
            assert sorted(await ids(store)) == ["a", "c"]

    run(work())


def test_a_server_that_started_again_meanwhile_is_not_noticed(postgres: Postgres) -> None:
    async def work() -> None:
        async with opened(postgres.new_database()) as store:
            await store.put([record("a")])
            await store.get("a")
            postgres.stop()
            postgres.start()
            await store.put([record("b")])
            assert sorted(await ids(store)) == ["a", "b"]

    run(work())


def test_a_server_process_that_says_nothing_is_left(postgres: Postgres) -> None:
    """The connection stands and nothing comes: neither the client's nor the server's timeouts know of it."""

    async def work() -> None:
        async with opened(postgres.new_database(), timeout=0.5) as store:
            await store.put([record("a")])
            await store.get("a")
            stuck = postgres.workers()
            assert len(stuck) == 2
            try:
                for process in stuck:
                    os.kill(process, signal.SIGSTOP)
                told = await asyncio.gather(refused(store.put([record("b")]), 1), refused(store.get("a"), 1))
                assert all("within 0.5 s; there was no response" in one for one in told)
                await store.put([record("c")])
                assert sorted(await ids(store)) in (["a", "c"], ["a", "b", "c"])
            finally:
                for process in stuck:
                    os.kill(process, signal.SIGCONT)
            assert await store.check() is None

    run(work())


def test_a_slow_database_is_told_in_time(postgres: Postgres) -> None:
    async def work() -> None:
        url = postgres.new_database()
        async with opened(url, timeout=0.5) as store:
            name = store.place.rsplit("/", 1)[1]
            await store.put([record("a")])
            postgres.ask(
                name,
                "CREATE FUNCTION slow() RETURNS trigger AS 'BEGIN PERFORM pg_sleep(3); RETURN NEW; END' LANGUAGE plpgsql",
            )
            postgres.ask(name, "CREATE TRIGGER slow BEFORE INSERT ON fasterce_records FOR EACH ROW EXECUTE FUNCTION slow()")
            await refused(store.put([record("b")]), 1.2)
            postgres.ask(name, "DROP TRIGGER slow ON fasterce_records")
            await store.put([record("c")])
            assert sorted(await ids(store)) == ["a", "c"]

    run(work())


def test_a_server_that_may_only_be_read_is_left_for_one_that_may_be_written_to(postgres: Postgres) -> None:
    async def work() -> None:
        async with opened(postgres.new_database()) as store:
            name = store.place.rsplit("/", 1)[1]
            await store.put([record("a")])
            driver = store._database.writer.raw_connection()
            driver.driver_connection.execute("SET default_transaction_read_only = on")  # type: ignore[union-attr]
            driver.driver_connection.commit()  # type: ignore[union-attr]
            driver.close()
            await store.put([record("b")])
            postgres.ask("postgres", f"ALTER DATABASE {name} SET default_transaction_read_only = on")
            store._database.writer.dispose()
            assert "read-only" in await refused(store.put([record("c")]))
            assert await store.get("b") is not None
            postgres.ask("postgres", f"ALTER DATABASE {name} RESET ALL")
            await store.put([record("d")])
            assert sorted(await ids(store)) == ["a", "b", "d"]

    run(work())


def test_of_several_servers_the_one_that_is_there_is_taken(postgres: Postgres, tmp_path: Path) -> None:
    async def work() -> None:
        url = postgres.new_database()
        async with opened(url.replace("?host=", f"?host={tmp_path}&host=")) as store:
            await store.put([record("a")])
            assert await ids(store) == ["a"]

    run(work())
