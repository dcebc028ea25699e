"""Write rows in one transaction: all rows of a put or none, and a put that fails does not affect others."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from fasterce.serve.store.errors import UnstorableError
from fasterce.serve.store.tables import records

Row = Mapping[str, str | None]
Result = TypeVar("Result")
Rows = Sequence[Row]
Begin = Callable[[], AbstractContextManager[Connection]]

# Characters of an indexed field: an index entry of PostgreSQL has at most 2,704 bytes.
LONGEST = 500
DAY = re.compile(r"\d{4}-\d\d-\d\d")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
ID_TAKEN = "serve.record_id_taken"


def run_twice(begin: Begin, work: Callable[[Connection], Result], wanted: Callable[[], bool]) -> Result:
    """Run the work again, once, if the connection was lost. Writing can be repeated: the same record is stored once."""
    try:
        with begin() as connection:
            return work(connection)
    except DBAPIError as error:
        if not error.connection_invalidated or not wanted():
            raise
    with begin() as connection:
        return work(connection)


def write_new(connection: Connection, rows: Rows) -> None:
    """Insert new rows; UnstorableError if one of them is present already, or too large for this database."""
    if not rows:
        return
    try:
        connection.execute(insert(records), list(rows))
    except IntegrityError as error:
        raise UnstorableError(ID_TAKEN) from error
    except DataError as error:
        raise UnstorableError("serve.record_not_accepted") from error


def write_or_find(connection: Connection, rows: Rows) -> None:
    """Insert rows of which some may be present: the same row is fine, another one with the same id is not."""
    ids = [row["id"] for row in rows]
    present = {found.id: dict(found._mapping) for found in connection.execute(select(records).where(records.c.id.in_(ids)))}
    if any(present[row["id"]] != row for row in rows if row["id"] in present):
        raise UnstorableError(ID_TAKEN)
    write_new(connection, [row for row in rows if row["id"] not in present])


def check_rows(rows: Rows) -> list[Row]:
    """Return the rows, each id once, in order; raises UnstorableError for rows not every database accepts."""
    found: dict[str | None, Row] = {}
    for row in rows:
        _check(row)
        if found.setdefault(row["id"], row) != row:
            raise UnstorableError(ID_TAKEN)
    return list(found.values())


def _check(row: Row) -> None:
    for name, value in row.items():
        if value is None:
            if not records.c[name].nullable:
                raise UnstorableError("serve.record_field_missing", field=name)
        elif not isinstance(value, str):
            raise UnstorableError("serve.record_field_not_text", field=name, received=type(value).__name__)
        elif not is_text(value):
            raise UnstorableError("serve.record_field_not_storable", field=name)
        elif name != "body" and len(value) > LONGEST:
            raise UnstorableError("serve.record_field_too_long", field=name, expected=LONGEST, received=len(value))
    # Retention compares these as text.
    for name, form, example in (("time", TIME, "2026-01-31T12:00:00.000000Z"), ("retain_until", DAY, "2030-01-31")):
        value = row[name]
        if value is not None and not form.fullmatch(value):
            raise UnstorableError("serve.record_field_form", field=name, expected=example)


def is_text(value: str) -> bool:
    """Whether every database accepts it: PostgreSQL has no NUL, and UTF-8 no lone surrogate."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
