"""Models are fitted on one thread: on a busy machine several only wait for each other."""

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits

from tests.models.compiled.models import without_scorer


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


@pytest.fixture
def no_scorer() -> Iterator[None]:
    """As if the structure of no model could be read."""
    with without_scorer():
        yield
