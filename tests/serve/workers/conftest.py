"""Artifacts fitted once for all tests of engines."""

from pathlib import Path

import pytest

from serve.models import Limit, saved


@pytest.fixture(scope="session")
def limit_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("engines") / "limit.fasterce"
    saved(where, Limit(), task="regression")
    return where
