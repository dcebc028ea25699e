"""Artifacts fitted once for all tests of workers."""

from pathlib import Path

import pytest

from tests.serve.models import Limit, saved


@pytest.fixture(scope="session")
def limit_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("workers") / "limit.fasterce"
    saved(where, Limit(), task="regression")
    return where
