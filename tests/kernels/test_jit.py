"""Where compiled kernels are kept: images have them in files that nobody may write."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

from fasterce.kernels.jit import compiled, find_cache

SOURCE = Path(__file__).parents[2] / "src"
# Compiles one kernel, or reads it, and prints how often each happened.
PROGRAM = """
import numpy as np
from fasterce.kernels import jit
from tests.kernels.compiled_twice import doubled
assert doubled(2.0) == 4.0
stats = doubled.entry.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def hits_and_misses(cache: Path) -> tuple[int, int]:
    path = os.pathsep.join([str(SOURCE), str(SOURCE.parent)])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", PROGRAM]
    if os.geteuid() == 0:  # root may write anywhere but on read-only file systems
        command = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override", *command]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    hits, misses = map(int, done.stdout.split())
    return hits, misses


def read_only(folder: Path, mode: int = 0o555) -> None:
    for one in [folder, *folder.rglob("*")]:
        one.chmod(mode if one.is_dir() else 0o444)


def test_a_read_only_cache_that_was_filled_is_read(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    assert hits_and_misses(cache) == (0, 1)
    read_only(cache)
    try:
        assert hits_and_misses(cache) == (1, 0)
    finally:
        read_only(cache, 0o755)


def test_without_any_place_kernels_are_compiled_in_each_process(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    read_only(cache)
    try:
        assert hits_and_misses(cache) == (0, 1)
    finally:
        cache.chmod(0o755)
    assert not list(cache.iterdir())


@pytest.mark.parametrize("filled", [0, 1])
def test_the_place_that_is_filled_or_can_be_comes_first(tmp_path: Path, filled: int) -> None:
    places = [tmp_path / "package", tmp_path / "user"]
    places[0].write_text("a file is no folder")
    chosen = find_cache(places)
    assert chosen is not None
    assert chosen.parent == places[1]
    if filled:
        places[0].unlink()
        chosen = find_cache(places)
        assert chosen is not None
        assert chosen.parent == places[0]


def test_versions_of_numba_have_folders_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = find_cache([tmp_path])
    assert find_cache([tmp_path]) == first
    monkeypatch.setattr(numba, "__version__", "0.0.1")
    assert find_cache([tmp_path]) != first


@compiled
def _quadrupled(value: float) -> float:
    return _scaled(2.0 * value, 1) + _scaled(value, 0)


@compiled
def _scaled(value: float, turn: int) -> float:
    if value < 0.0:
        raise ValueError("negative")
    return value if turn > 0 else 2.0 * value


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_a_kernel_that_only_kernels_call_is_compiled_once_and_within_its_callers() -> None:
    assert _quadrupled(3.0) == 12.0
    called: Any = _scaled
    assert len(called.signatures) == 1, "numbers in the source are no types of their own"
    assert not called.entry.signatures
    assert _scaled(3.0, 1) == 3.0, "Python can call it all the same"
    assert len(called.entry.signatures) == 1


def test_an_error_in_a_kernel_reaches_python() -> None:
    with pytest.raises(ValueError, match="negative"):
        _quadrupled(-1.0)
