"""Old databases are brought up to date with all they hold, newer ones are left alone."""

from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, insert, inspect, text

from fasterce.serve.store import StoreError, migrate, open_store
from fasterce.serve.store.tables import VERSION, records
from tests.serve.store.making import ids, in_a_child, opened, record, run


def engine_of(url: str) -> Engine:
    return create_engine(url.replace("postgresql:", "postgresql+psycopg:"))


def old_database(url: str, count: int) -> None:
    """As the first version made it."""
    engine = engine_of(url)
    with engine.begin() as connection:
        migrate.upgrade(connection, "0001")
        made = [vars(record(k, subject=f"s{k % 2}", retain_until="2020-01-01" if k < 3 else None)) for k in range(count)]
        for one in made:
            connection.execute(insert(records).values({name: value for name, value in one.items() if name != "key"}))
    engine.dispose()


def test_an_old_database_is_brought_up_to_date_with_all_it_holds(url: str) -> None:
    old_database(url, 10)
    engine = engine_of(url)
    assert "fasterce_records_by_time" not in {index["name"] for index in inspect(engine).get_indexes("fasterce_records")}

    async def work() -> None:
        from datetime import UTC, datetime

        async with opened(url) as store:
            assert sorted(await ids(store)) == [str(k) for k in range(10)]
            assert await store.get("7") == record(7).body
            assert await store.purge(datetime(2026, 1, 1, tzinfo=UTC)) == 3
            await store.put([record("new")])

    run(work())
    assert "fasterce_records_by_time" in {index["name"] for index in inspect(engine).get_indexes("fasterce_records")}
    with engine.connect() as connection:
        assert migrate.version_of(connection) == VERSION
    engine.dispose()


def test_a_step_that_fails_leaves_the_database_as_it_was(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old_database(url, 2)
    engine = engine_of(url)
    with engine.begin() as connection:  # in the way of the second of the two new indexes
        connection.execute(text("CREATE TABLE fasterce_records_by_time (a integer)"))
    with pytest.raises(StoreError, match="could not be stored"):
        open_store(url)
    with engine.begin() as connection:
        assert migrate.version_of(connection) == "0001"
        assert len(inspect(connection).get_indexes("fasterce_records")) == 3
        connection.execute(text("DROP TABLE fasterce_records_by_time"))
    engine.dispose()
    run(open_store(url).close())


@pytest.mark.parametrize("version", ["0005", "1000", "abc"])
def test_a_database_from_the_future_is_refused_and_not_touched(url: str, version: str) -> None:
    run(open_store(url).close())
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE fasterce_version SET version_num = '{version}'"))
    with pytest.raises(StoreError, match=f"must be of version {VERSION} or older; got version {version}"):
        open_store(url)
    with engine.begin() as connection:
        assert migrate.version_of(connection) == version
    engine.dispose()


def test_the_steps_make_what_the_code_expects(url: str) -> None:
    run(open_store(url).close())
    assert ScriptDirectory(str(migrate.SCRIPTS)).get_current_head() == VERSION
    engine = engine_of(url)
    made = {column["name"]: column["nullable"] for column in inspect(engine).get_columns("fasterce_records")}
    assert made == {column.name: column.nullable for column in records.c}
    engine.dispose()


def structure(engine: Engine) -> dict[str, object]:
    """Columns, keys and indexes of our tables."""
    found, ours = inspect(engine), ("fasterce_records", "fasterce_replies", "fasterce_letters", "fasterce_version")
    return {
        table: (
            [(one["name"], str(one["type"]), one["nullable"]) for one in found.get_columns(table)],
            found.get_pk_constraint(table),
            sorted((one["name"], one["column_names"], one["unique"]) for one in found.get_indexes(table)),
        )
        for table in ours
    }


def test_a_new_database_is_as_the_steps_make_it(url: str) -> None:
    old_database(url, 0)
    run(open_store(url).close())
    engine = engine_of(url)
    by_steps = structure(engine)
    with engine.begin() as connection:
        records.metadata.drop_all(connection)
    run(open_store(url).close())
    assert structure(engine) == by_steps
    with engine.connect() as connection:
        assert migrate.version_of(connection) == VERSION
    engine.dispose()


def test_other_tables_in_the_same_database_are_left_alone(url: str) -> None:
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num text)"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('somebody else')"))
    run(open_store(url).close())
    with engine.begin() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "somebody else"
    engine.dispose()


LIGHT = """
    import asyncio, sys
    from fasterce.serve.store import open_store
    asyncio.run(open_store(sys.argv[1]).close())
    print([name for name in ("numpy", "pandas", "sklearn", "alembic", "psycopg") if name in sys.modules])
"""


def test_a_database_that_is_new_or_up_to_date_is_opened_without_alembic_and_numpy(file: Path) -> None:
    for _ in ("new", "there"):
        said, _ = in_a_child(LIGHT, f"sqlite:///{file}").communicate(timeout=60)
        assert said == "[]\n"
