"""The tables in the newest version of the database, as `migrations/versions` makes them of older ones, and how rows are
written: all rows of a put or none."""

import re
from collections.abc import Mapping, Sequence
from secrets import token_hex
from uuid import uuid4

from sqlalchemy import Column, Connection, Index, MetaData, PrimaryKeyConstraint, String, Table, Text, delete, insert, select
from sqlalchemy.exc import DataError, IntegrityError

from fasterce.serve.store.database import RepeatedKeyError, UnstorableError

VERSION = "0004"
VERSION_TABLE = "fasterce_version"

Row = Mapping[str, str | None]
Rows = Sequence[Row]

# Characters of an indexed field: an index entry of PostgreSQL has at most 2,704 bytes.
LONGEST = 500
DAY = re.compile(r"\d{4}-\d\d-\d\d")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
ID_TAKEN = "serve.record_id_taken"


def text_type() -> String:
    """Return a text type that is compared byte by byte, so that times and dates in ISO form are in order."""
    return String().with_variant(String(collation="C"), "postgresql")


records = Table(
    "fasterce_records",
    MetaData(),
    Column("id", text_type(), primary_key=True),
    Column("request", text_type(), nullable=False),
    Column("decision", text_type()),
    Column("subject", text_type()),
    Column("artifact", text_type(), nullable=False),
    Column("status", text_type(), nullable=False),
    Column("time", text_type(), nullable=False),
    Column("retain_until", text_type()),
    Column("body", Text(), nullable=False),
    Column("key", text_type()),
)
# What was answered to requests with an idempotency key: the ids of the records and the rest of the response, both as JSON.
replies = Table(
    "fasterce_replies",
    records.metadata,
    Column("id", text_type(), primary_key=True),
    Column("fingerprint", text_type(), nullable=False),
    Column("head", Text(), nullable=False),
    Column("records", Text(), nullable=False),
    Column("time", text_type(), nullable=False),
)
# Letters written about records: positions of the alternatives they contain, as JSON, and the digest of their text. The text
# is not stored: it has the address of the recipient.
letters = Table(
    "fasterce_letters",
    records.metadata,
    Column("id", text_type(), primary_key=True),
    Column("record", text_type(), nullable=False),
    Column("time", text_type(), nullable=False),
    Column("alternatives", Text(), nullable=False),
    Column("digest", text_type(), nullable=False),
    Column("key", text_type()),
)
for of, by, columns in (
    *((records, name, (name, "time")) for name in ("request", "decision", "subject")),
    (records, "retention", ("retain_until", "time")),
    (records, "time", ("time",)),
    (replies, "time", ("time",)),
    (letters, "record", ("record",)),
):
    Index(f"{of.name}_by_{by}", *(of.c[column] for column in columns))
# As Alembic makes it.
versions = Table(VERSION_TABLE, records.metadata, Column("version_num", String(32), nullable=False))
versions.append_constraint(PrimaryKeyConstraint(versions.c.version_num, name=f"{VERSION_TABLE}_pkc"))

# Size in bytes of the row written to test whether records can be stored.
CHECKED_BYTES = 64 << 10
SUMMARY = tuple(column for column in records.c if column.name != "body")


def create(connection: Connection) -> None:
    """Create all tables and indexes in a database without any."""
    records.metadata.create_all(connection, checkfirst=False)
    connection.execute(insert(versions).values(version_num=VERSION))


def write_rows(connection: Connection, rows: Rows) -> None:
    """Insert rows of which some may be present: the same row is fine, another one with the same id is not."""
    ids = [row["id"] for row in rows]
    present = {found.id: dict(found._mapping) for found in connection.execute(select(records).where(records.c.id.in_(ids)))}
    if any(present[row["id"]] != row for row in rows if row["id"] in present):
        raise UnstorableError(ID_TAKEN)
    new = [row for row in rows if row["id"] not in present]
    try:
        if new:
            connection.execute(insert(records), new)
    except IntegrityError as error:
        raise UnstorableError(ID_TAKEN) from error
    except DataError as error:
        raise UnstorableError("serve.record_not_accepted") from error


def write_reply(connection: Connection, rows: Rows, reply: Row) -> None:
    """Insert a reply and its records; RepeatedKeyError if another reply has its id."""
    if connection.execute(select(replies.c.id).where(replies.c.id == reply["id"])).first() is not None:
        raise RepeatedKeyError("serve.key_repeated")
    try:
        connection.execute(insert(replies), [reply])
    except IntegrityError as error:
        raise RepeatedKeyError("serve.key_repeated") from error
    write_rows(connection, rows)


def write_letter(connection: Connection, letter: Row) -> bool:
    """Insert a letter, unless it is there; return whether its record is, without which nothing is stored."""
    there = select(records.c.id).where(records.c.id == letter["record"]).with_for_update(read=True)
    if connection.execute(there).first() is None:
        return False
    if connection.execute(select(letters.c.id).where(letters.c.id == letter["id"])).first() is None:
        connection.execute(insert(letters), [letter])
    return True


def try_to_write(connection: Connection) -> None:
    """Write a row, as large as a few records, and delete it again, to find out whether rows can be written: on a disk that
    is almost full a small one still can."""
    content = {"id": f"check {uuid4()}", "records": token_hex(CHECKED_BYTES // 2)}
    row = dict.fromkeys(("fingerprint", "head", "time"), "") | content
    connection.execute(insert(replies), [row])
    connection.execute(delete(replies).where(replies.c.id == row["id"]))


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
