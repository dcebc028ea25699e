"""Audit records: one per explained row, as JSON with a published schema, reproducible bit for bit; see docs/records.md.

The modules are imported on first use: the HTTP front uses `pseudonyms` and imports no NumPy.
"""

from typing import TYPE_CHECKING

import lazy_loader as lazy

if TYPE_CHECKING:
    from fasterce.records.create import NOTICE, make
    from fasterce.records.files import file_digest, read, to_json, write
    from fasterce.records.pseudonyms import pseudonym
    from fasterce.records.reproduce import Replay, replay
    from fasterce.records.structure import SCHEMA, schema, validate
    from fasterce.records.wording import Wording, text, texts
else:
    __getattr__, __dir__, _ = lazy.attach(
        __name__,
        submod_attrs={
            "create": ["NOTICE", "make"],
            "files": ["file_digest", "read", "to_json", "write"],
            "pseudonyms": ["pseudonym"],
            "reproduce": ["Replay", "replay"],
            "structure": ["SCHEMA", "schema", "validate"],
            "wording": ["Wording", "text", "texts"],
        },
    )

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
