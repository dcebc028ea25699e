"""Delete expired records, in steps small enough not to delay other work."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, delete, select
from sqlalchemy.sql import ColumnElement

from fasterce.serve.store.tables import records

# Records deleted in one transaction.
STEP = 50


def due(now: datetime, retention_days: int | None) -> list[ColumnElement[bool]]:
    """Return conditions for expired records: past the day they name, or without one, older than `retention_days` days."""
    now = now.astimezone(UTC)
    passed = [records.c.retain_until < now.date().isoformat()]
    if retention_days is not None:
        before = (now - timedelta(days=retention_days)).isoformat(timespec="microseconds")
        passed.append(records.c.retain_until.is_(None) & (records.c.time < before))
    return passed


def delete_some(connection: Connection, which: ColumnElement[bool]) -> int:
    """Delete at most STEP of them, except those another server is deleting, and return how many."""
    some = select(records.c.id).where(which).limit(STEP).with_for_update(skip_locked=True)
    return int(connection.execute(delete(records).where(records.c.id.in_(some))).rowcount)
