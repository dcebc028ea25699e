"""Audit records: one per explained row, as JSON with a published schema, reproducible bit for bit; see docs/records.md."""

from fasterce.pseudonyms import pseudonym
from fasterce.records.create import NOTICE, make
from fasterce.records.files import file_digest, read, to_json, write
from fasterce.records.replay import Replay, replay
from fasterce.records.structure import SCHEMA, schema, validate
from fasterce.records.wording import Wording, text, texts

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
