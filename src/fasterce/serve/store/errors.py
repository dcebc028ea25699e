"""What keeping records can fail with: one sentence each, without a password and without anything of a record."""

import sqlite3

from sqlalchemy.exc import SQLAlchemyError

from fasterce.errors import FasterCEError

FAULTS = {
    "SQLITE_BUSY": "another program holds it locked",
    "SQLITE_CANTOPEN": "the file cannot be opened",
    "SQLITE_CORRUPT": "the file is damaged",
    "SQLITE_FULL": "the disk is full",
    "SQLITE_IOERR": "the disk reports an error",
    "SQLITE_LOCKED": "another program holds it locked",
    "SQLITE_NOTADB": "the file is not a database",
    "SQLITE_READONLY": "it may only be read",
}


class StoreError(FasterCEError):
    """Records cannot be kept, found or deleted now; the sentence says why."""


class UnstorableError(StoreError):
    """These records can never be kept as they are: another has the id, or a field holds what no database takes."""


def told(place: str, doing: str, error: Exception) -> StoreError:
    """A driver's error as a sentence."""
    return StoreError(f"Records could not be {doing} in {place}: {_fault(error)}.")


def _fault(error: Exception) -> str:
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, sqlite3.Error):
        name = getattr(cause, "sqlite_errorname", None) or ""
        known = next((said for prefix, said in FAULTS.items() if name.startswith(prefix)), None)
        return known or str(cause)
    if isinstance(cause, SQLAlchemyError):
        return type(cause).__name__
    if isinstance(cause, OSError):
        return cause.strerror or type(cause).__name__
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return lines[0].rstrip(".")
