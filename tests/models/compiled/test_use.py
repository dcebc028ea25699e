"""What is compiled in `fit` and on `load`, and what the user sees of it."""

from pathlib import Path

import pytest

from fasterce.kernels import jit
from fasterce.kernels.warm_up import warm_up
from fasterce.models.compiled.use import COMPILING, compile_search, is_cached


def test_compiling_is_announced_where_no_progress_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(jit, "CACHE_FOLDER", tmp_path)
    compile_search()
    assert caplog.messages == [f"{COMPILING}."]


@pytest.mark.skipif(jit.CACHE_FOLDER is None, reason="no place for compiled functions")
def test_reading_the_cache_is_not_announced(caplog: pytest.LogCaptureFixture) -> None:
    warm_up()
    assert is_cached()
    compile_search()
    assert not caplog.messages
