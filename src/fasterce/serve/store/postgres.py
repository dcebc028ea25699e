"""Records in PostgreSQL, by psycopg 3."""

import math
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event

from fasterce.errors import MissingExtraError
from fasterce.serve.store.database import Database

# Any number will do, as long as all servers take the same.
MIGRATING = 0xFA57E2CE
LOCK_SECONDS = 30.0
READ_ONLY = "25006"


def open_postgres(url: URL, timeout: float) -> Database:
    """Nothing is asked of the server yet."""
    _need_psycopg()
    place = url.set(query={}).render_as_string(hide_password=True)
    address = url.set(drivername="postgresql+psycopg")
    # Of several servers, or after one has taken over, records go to the one that may be written to.
    writer = _engine(address, timeout, target_session_attrs="read-write")
    event.listen(writer, "handle_error", _leave_one_that_may_only_be_read)
    return Database(
        place,
        writer,
        _engine(address, timeout),
        alone=lambda: _alone(writer),
        look=lambda: None,
        abort=_hang_up,
        after_erasing=lambda: None,
    )


def _need_psycopg() -> None:
    try:
        import psycopg  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError("psycopg", "postgres", "Keeping records in PostgreSQL") from error


def _engine(address: URL, timeout: float, **options: Any) -> Engine:
    patience = options | {
        "connect_timeout": max(2, math.ceil(timeout)),
        "tcp_user_timeout": round(timeout * 1000),
        "keepalives_idle": max(2, math.ceil(timeout)),
        "application_name": "fasterce",
    }
    engine = create_engine(address, pool_size=1, max_overflow=1, hide_parameters=True, connect_args=patience)
    event.listen(engine, "connect", lambda connection, _: _set_up(connection, timeout))
    return engine


def _leave_one_that_may_only_be_read(context: Any) -> None:
    if getattr(context.original_exception, "sqlstate", None) == READ_ONLY:
        context.is_disconnect = True


def _set_up(connection: Any, timeout: float) -> None:
    """A commit that is confirmed is on the disk, whatever the server's default; no statement goes on after nobody waits."""
    with connection.cursor() as cursor:
        milliseconds = max(1, round(timeout * 1000))
        cursor.execute(f"SET statement_timeout = {milliseconds}")
        cursor.execute(f"SET idle_in_transaction_session_timeout = {10 * milliseconds}")
        cursor.execute("SELECT current_setting('synchronous_commit')")
        if cursor.fetchone()[0] == "off":
            cursor.execute("SET synchronous_commit = on")
    connection.commit()


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    with engine.begin() as connection:
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {round(LOCK_SECONDS * 1000)}")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATING})")
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        yield connection


def _hang_up(connection: Any) -> None:
    """A server that is there and says nothing is left by closing the line under the waiting thread."""
    with suppress(Exception):
        line = socket.socket(fileno=os.dup(connection.fileno()))
        with line:
            line.shutdown(socket.SHUT_RDWR)
