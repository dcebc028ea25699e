"""Records to keep."""

import asyncio
import os
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from fasterce.serve.messages import StoredRecord
from fasterce.serve.store import Store, open_store

Result = TypeVar("Result")

TESTS = Path(__file__).parents[2]


def record(id: object, **fields: Any) -> StoredRecord:
    return StoredRecord(
        **{
            "id": str(id),
            "request": "request-1",
            "decision": None,
            "subject": None,
            "artifact": "german",
            "status": "found",
            "time": "2026-01-01T00:00:00.000000Z",
            "retain_until": None,
            "body": f'{{"ids": {{"record": "{id}"}}}}',
        }
        | fields
    )


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[Store]:
    """With a timeout no busy disk comes near, unless the test is about timeouts."""
    store = open_store(url, **{"timeout": 20.0} | options)
    try:
        yield store
    finally:
        await store.close()


def run(work: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(work)


async def ids(store: Store, **wanted: Any) -> list[str]:
    return [found["id"] for found in await store.find(**wanted)]


def in_a_child(script: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    roots = os.pathsep.join([str(TESTS.parent), str(TESTS.parent / "src")])
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": roots})
