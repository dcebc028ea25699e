"""Exit codes and results of the command line do not depend on the language of its messages."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.language import other_language

ROWS = ("--artifact", "shop.fasterce", "--rows", "rows.csv")


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "train.csv", "--drop", "outcom"),
        ("explain", "-a", "nothing.fasterce", "-r", "rows.csv"),
        ("explain", *ROWS, "--range", "pay"),
        ("explain", *ROWS, "--target", "grantd"),
        ("explain", *ROWS, "--n", "0"),
        ("explain", *ROWS, "-o", "out.xlsx"),
        ("explain", *ROWS, "--model", "model.pkl"),
        ("fit", "--data", "train.csv", "--model", "model.skops", "--classes", "a", "--out", "new.fasterce"),
        ("serve", "shop.fasterce", "--host", "0.0.0.0"),
    ],
    ids=" ".join,
)
def test_errors_end_with_the_same_exit_code(words: tuple[str, ...], shop: Path, run: Callable[..., Any]) -> None:
    here = run(*words)
    with other_language(shop):
        there = run(*words)
    assert (here.exit_code, here.stdout) == (there.exit_code, there.stdout)
    assert here.exit_code != 0
    for done in (here, there):
        assert done.stderr.startswith("Error: ")
    assert "⟦" in there.stderr


def test_results_are_the_same(shop: Path, run: Callable[..., Any]) -> None:
    words = ("explain", *ROWS, "--target", "granted", "-f", "csv", "-q")
    here = run(*words)
    with other_language(shop):
        there = run(*words)
    assert here.exit_code == there.exit_code == 0
    assert here.stdout == there.stdout
