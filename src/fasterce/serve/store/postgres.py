"""Records in PostgreSQL, by psycopg 3."""

import math
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import URL, Connection, Engine, ExceptionContext, create_engine, event

from fasterce.errors import MissingExtraError
from fasterce.serve.store.database import Database, DriverConnection

# The advisory lock of migrations: any number, the same for all servers.
MIGRATION_LOCK = 0xFA57E2CE
LOCK_SECONDS = 30.0
READ_ONLY = "25006"


class PostgreSQL(Database):
    """A database of a server; nothing is sent to the server until it is used."""

    def __init__(self, url: URL, timeout: float) -> None:
        try:
            import psycopg  # noqa: F401, PLC0415 - an extra
        except ImportError as error:
            raise MissingExtraError("psycopg", "postgres", "Storing records in PostgreSQL") from error
        # Of several servers, or after a failover, records go to the one that accepts writes.
        writer = _engine(url, timeout, target_session_attrs="read-write")
        event.listen(writer, "handle_error", _disconnect_read_only)
        super().__init__(url.set(query={}).render_as_string(hide_password=True), writer, _engine(url, timeout))

    @contextmanager
    def exclusive(self) -> Iterator[Connection]:
        with self.writer.begin() as connection:
            connection.exec_driver_sql(f"SET LOCAL statement_timeout = {round(LOCK_SECONDS * 1000)}")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
            yield connection

    def abort(self, connection: DriverConnection) -> None:
        """Close the socket under the thread that waits for a server that does not respond."""
        with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)


def _engine(url: URL, timeout: float, **options: str) -> Engine:
    arguments: dict[str, str | int] = {
        **options,
        "connect_timeout": max(2, math.ceil(timeout)),
        "tcp_user_timeout": round(timeout * 1000),
        "keepalives_idle": max(2, math.ceil(timeout)),
        "application_name": "fasterce",
    }
    address = url.set(drivername="postgresql+psycopg")
    engine = create_engine(address, pool_size=1, max_overflow=1, hide_parameters=True, connect_args=arguments)
    event.listen(engine, "connect", lambda connection, _: _set_up(connection, timeout))
    return engine


def _disconnect_read_only(context: ExceptionContext) -> None:
    if getattr(context.original_exception, "sqlstate", None) == READ_ONLY:
        context.is_disconnect = True


def _set_up(connection: DriverConnection, timeout: float) -> None:
    """Make a confirmed commit durable, whatever the server's default, and end statements nobody waits for."""
    with connection.cursor() as cursor:
        milliseconds = max(1, round(timeout * 1000))
        cursor.execute(f"SET statement_timeout = {milliseconds}")
        cursor.execute(f"SET idle_in_transaction_session_timeout = {10 * milliseconds}")
        cursor.execute("SELECT current_setting('synchronous_commit')")
        if cursor.fetchone()[0] == "off":
            cursor.execute("SET synchronous_commit = on")
    connection.commit()
