"""Audit records: one a row explained, as JSON with a published schema, that can be made again to the last bit; see
docs/records.md."""

from fasterce.records.files import read, schema, to_json, validate, write
from fasterce.records.identity import file_digest, pseudonym
from fasterce.records.making import NOTICE, make
from fasterce.records.replaying import Replay, replay
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
