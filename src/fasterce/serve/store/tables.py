"""The table of records as the newest version of the database has it; `migrations/versions` makes it."""

from sqlalchemy import Column, MetaData, String, Table, Text

VERSION = "0002"
VERSION_TABLE = "fasterce_version"

metadata = MetaData()


def word() -> String:
    """Text that is compared byte by byte, so that times and dates in ISO form are in order."""
    return String().with_variant(String(collation="C"), "postgresql")


records = Table(
    "fasterce_records",
    metadata,
    Column("id", word(), primary_key=True),
    Column("request", word(), nullable=False),
    Column("decision", word()),
    Column("subject", word()),
    Column("artifact", word(), nullable=False),
    Column("status", word(), nullable=False),
    Column("time", word(), nullable=False),
    Column("retain_until", word()),
    Column("body", Text(), nullable=False),
)

SUMMARY = tuple(column for column in records.c if column.name != "body")
