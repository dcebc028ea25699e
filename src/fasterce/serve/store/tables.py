"""The table of records in the newest version of the database; `migrations/versions` creates it."""

from sqlalchemy import Column, MetaData, String, Table, Text

VERSION = "0002"
VERSION_TABLE = "fasterce_version"

metadata = MetaData()


def text_type() -> String:
    """Return a text type that is compared byte by byte, so that times and dates in ISO form are in order."""
    return String().with_variant(String(collation="C"), "postgresql")


records = Table(
    "fasterce_records",
    metadata,
    Column("id", text_type(), primary_key=True),
    Column("request", text_type(), nullable=False),
    Column("decision", text_type()),
    Column("subject", text_type()),
    Column("artifact", text_type(), nullable=False),
    Column("status", text_type(), nullable=False),
    Column("time", text_type(), nullable=False),
    Column("retain_until", text_type()),
    Column("body", Text(), nullable=False),
)

SUMMARY = tuple(column for column in records.c if column.name != "body")
