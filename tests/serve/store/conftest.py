from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.store.servers import Postgres, find_program


@pytest.fixture(scope="session")
def running_postgres() -> Iterator[Postgres]:
    if find_program("initdb") is None:
        pytest.skip("PostgreSQL is not installed: make postgres")
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def postgres(running_postgres: Postgres) -> Iterator[Postgres]:
    yield running_postgres
    if running_postgres._server is None:
        running_postgres.start()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'records.db'}"
    return str(request.getfixturevalue("postgres").new_database())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "records.db"
