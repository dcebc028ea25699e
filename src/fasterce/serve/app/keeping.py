"""Records before answers: what cannot be kept is not answered."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from time import perf_counter

from fasterce.serve.app import logs
from fasterce.serve.app.house import House
from fasterce.serve.app.problems import RETRY_SOON, Problem, retry_after
from fasterce.serve.question import Kept
from fasterce.serve.settings import Settings
from fasterce.serve.store import StoreError, UnstorableError


async def keep(house: House, records: Sequence[Kept]) -> None:
    assert house.store is not None
    started = perf_counter()
    try:
        await house.store.put(records)
    except UnstorableError as error:
        raise Problem(422, "unstorable", str(error)) from None
    except StoreError as error:
        house.metrics.unkept.inc()
        raise unkept(error) from None
    house.metrics.stored.observe(perf_counter() - started)


def unkept(error: StoreError) -> Problem:
    """The log has where the records are and what is the matter; a client has no use for it."""
    logs.say("records failed", level=logging.ERROR, reason=str(error))
    return Problem(503, "records", "Records cannot be kept or read now.", headers=retry_after(RETRY_SOON))


def retain_until(settings: Settings, now: datetime | None = None) -> str | None:
    """The date written in the record, after which it is deleted."""
    if settings.retention_days is None:
        return None
    return ((now or datetime.now(UTC)) + timedelta(days=settings.retention_days)).date().isoformat()
