"""Audit records: one per explained row, as JSON with a published schema, reproducible bit for bit; see docs/records.md."""

from fasterce.records.create import NOTICE, make
from fasterce.records.files import read, schema, to_json, validate, write
from fasterce.records.identity import file_digest, pseudonym
from fasterce.records.replay import Replay, replay
from fasterce.records.wording import Wording, text, texts

SCHEMA = schema()

__all__ = [
    "NOTICE",
    "SCHEMA",
    "Replay",
    "Wording",
    "file_digest",
    "make",
    "pseudonym",
    "read",
    "replay",
    "schema",
    "text",
    "texts",
    "to_json",
    "validate",
    "write",
]
