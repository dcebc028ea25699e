"""Errors of the store, without a password and without anything of a record."""

import sqlite3

from sqlalchemy.exc import SQLAlchemyError

from fasterce.errors import FasterCEError, make_problem

# Names of SQLite's result codes, by their beginning, and the code of the text.
FAULTS = {
    "SQLITE_BUSY": "locked",
    "SQLITE_CANTOPEN": "not_opened",
    "SQLITE_CORRUPT": "damaged",
    "SQLITE_FULL": "disk_full",
    "SQLITE_IOERR": "disk_error",
    "SQLITE_LOCKED": "locked",
    "SQLITE_NOTADB": "not_a_database",
    "SQLITE_READONLY": "read_only",
}


class StoreError(FasterCEError):
    """Records cannot be stored, found or deleted now."""


class UnstorableError(StoreError):
    """These records can never be stored as they are: another has the id, or a field holds what no database accepts."""


def store_error(place: str, operation: str, error: Exception) -> StoreError:
    """Return the error of a driver as one of ours; `operation` is "stored" or "read"."""
    return StoreError(f"serve.not_{operation}", place=place, reason=_fault(error))


def _fault(error: Exception) -> object:
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, sqlite3.Error):
        name = getattr(cause, "sqlite_errorname", None) or ""
        known = next((code for prefix, code in FAULTS.items() if name.startswith(prefix)), None)
        return str(cause) if known is None else make_problem(f"serve.database_{known}")
    if isinstance(cause, SQLAlchemyError):
        return type(cause).__name__
    if isinstance(cause, OSError):
        return cause.strerror or type(cause).__name__
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return lines[0].rstrip(".")
