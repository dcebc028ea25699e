"""One small run of the whole command, shared by the tests that read its results."""

from pathlib import Path

import pytest
from benchmarks.paper import __main__ as command

TINY = ["--quick", "--datasets", "lending_club", "--seeds", "0", "--rivals", "certifai-genetic"]
TINY += ["--rows", "3", "--train-rows", "600", "--rival-seconds", "1", "--no-progress"]


@pytest.fixture(scope="session")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper")
    assert command.main([*TINY, "--out", str(folder)]) == 0
    return folder
