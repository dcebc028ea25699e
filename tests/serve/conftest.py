"""What tests of workers and of the whole service have in common: an artifact fitted once, and a server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.models import Moody, saved
from tests.serve.service import Service, serving


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("workers") / "moody.fasterce"
    saved(where, Moody(calm=True))
    return where


@pytest.fixture(scope="module")
def service(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server with its defaults; a test that does it harm starts one of its own."""
    with serving(tmp_path_factory.mktemp("service"), f"moody={folder}") as started:
        yield started
