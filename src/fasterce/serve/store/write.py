"""What is written in one transaction: all rows of a put or none, and a put that fails takes no other with it."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from fasterce.serve.store.errors import UnstorableError
from fasterce.serve.store.tables import records

Row = Mapping[str, Any]
Rows = Sequence[Row]
Begin = Callable[[], AbstractContextManager[Connection]]

# PostgreSQL's indexes take 2,704 bytes.
LONGEST = 500
DAY = re.compile(r"\d{4}-\d\d-\d\d")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
SAME_ID = "A record's id must be its own; got one that another record has."


def twice(begin: Begin, work: Callable[[Connection], Any], wanted: Callable[[], bool]) -> Any:
    """A connection that was lost meanwhile is made again, once. Writing is safe to repeat: the same record is kept once."""
    try:
        with begin() as connection:
            return work(connection)
    except DBAPIError as error:
        if not error.connection_invalidated or not wanted():
            raise
    with begin() as connection:
        return work(connection)


def write_new(connection: Connection, rows: Rows) -> None:
    """Rows nobody has seen; UnstorableError if one of them is there already, or too much for this database."""
    if not rows:
        return
    try:
        connection.execute(insert(records), list(rows))
    except IntegrityError as error:
        raise UnstorableError(SAME_ID) from error
    except DataError as error:
        raise UnstorableError("A record must be one this database takes; got one it does not.") from error


def write_or_find(connection: Connection, rows: Rows) -> None:
    """Rows of which some may be there already: the same is fine, another of the same id is not."""
    ids = [row["id"] for row in rows]
    there = {found.id: dict(found._mapping) for found in connection.execute(select(records).where(records.c.id.in_(ids)))}
    if any(there[row["id"]] != row for row in rows if row["id"] in there):
        raise UnstorableError(SAME_ID)
    write_new(connection, [row for row in rows if row["id"] not in there])


def storable(rows: Rows) -> list[Row]:
    """Each id once, in order, if these are rows every database takes."""
    found: dict[str, Row] = {}
    for row in rows:
        _check(row)
        if found.setdefault(row["id"], row) != row:
            raise UnstorableError(SAME_ID)
    return list(found.values())


def _check(row: Row) -> None:
    for name, value in row.items():
        if value is None:
            if not records.c[name].nullable:
                raise UnstorableError(f"A record must have {name!r}; got none.")
        elif not isinstance(value, str):
            raise UnstorableError(f"A record's {name!r} must be text; got {type(value).__name__}.")
        elif not is_text(value):
            raise UnstorableError(f"A record's {name!r} must be text any database takes; got NUL or half a character.")
        elif name != "body" and len(value) > LONGEST:
            raise UnstorableError(f"A record's {name!r} must have at most {LONGEST} characters; got {len(value)}.")
    # Retention compares these as text.
    for name, form, example in (("time", TIME, "2026-01-31T12:00:00.000000Z"), ("retain_until", DAY, "2030-01-31")):
        if row[name] is not None and not form.fullmatch(row[name]):
            raise UnstorableError(f"A record's {name!r} must be as in {example}; got another form.")


def is_text(value: str) -> bool:
    """Whether every database takes it: PostgreSQL has no NUL, and UTF-8 no half of a pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
