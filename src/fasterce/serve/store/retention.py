"""Records whose time has come, deleted in steps too small to keep anyone waiting."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, select
from sqlalchemy.sql import ColumnElement

from fasterce.serve.store.tables import records

STEP = 50


def due(now: datetime, retention_days: int | None) -> list[ColumnElement[bool]]:
    """A record is kept through the day it names; one that names none, for `retention_days` days."""
    now = now.astimezone(UTC)
    passed = [records.c.retain_until < now.date().isoformat()]
    if retention_days is not None:
        before = (now - timedelta(days=retention_days)).isoformat(timespec="microseconds")
        passed.append(records.c.retain_until.is_(None) & (records.c.time < before))
    return passed


def delete_some(connection: Connection, which: ColumnElement[bool]) -> int:
    """At most STEP of them; those another server is deleting at this moment are left to it."""
    some: Any = select(records.c.id).where(which).limit(STEP).with_for_update(skip_locked=True)
    return int(connection.execute(delete(records).where(records.c.id.in_(some))).rowcount)
