"""Store records before the response is sent: without a stored record there is no response."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from time import perf_counter

from fasterce.serve.api import logs
from fasterce.serve.api.problems import RETRY_SOON, HTTPProblem, retry_after
from fasterce.serve.api.state import AppState
from fasterce.serve.messages import StoredRecord
from fasterce.serve.settings import Settings
from fasterce.serve.store import StoreError, UnstorableError


async def store_records(state: AppState, records: Sequence[StoredRecord]) -> None:
    assert state.store is not None
    started = perf_counter()
    try:
        await state.store.put(records)
    except UnstorableError as error:
        raise HTTPProblem(422, "unstorable", error.problem) from None
    except StoreError as error:
        state.metrics.store_failures.inc()
        raise store_problem(error) from None
    state.metrics.store_seconds.observe(perf_counter() - started)


def store_problem(error: StoreError) -> HTTPProblem:
    """Return the error response; where the records are and what is wrong is for the log only."""
    logs.log_event("records failed", level=logging.ERROR, reason=str(error))
    return HTTPProblem(503, "records", "serve.store_unavailable", headers=retry_after(RETRY_SOON))


def retain_until(settings: Settings, now: datetime | None = None) -> str | None:
    """Return the date written in the record, after which it is deleted."""
    if settings.retention_days is None:
        return None
    return ((now or datetime.now(UTC)) + timedelta(days=settings.retention_days)).date().isoformat()
