"""The examples of a page in docs/, Python and `fasterce` commands: run them in order, put what they print below them.

A block of code followed by a block of text shows what the code printed. Times differ from run to run and are left out.
"""

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

DOCS = Path(__file__).parents[1] / "docs"
FIRST = "getting-started.md"
FOLLOWING = (
    "choosing-a-variant.md",
    "closest.md",
    "sparse.md",
    "realistic.md",
    "how-it-works.md",
    "performance.md",
    "production.md",
)

ALONE = ("data.md",)
COMMANDS = "command-line.md"
WIDTH = "100"

EXAMPLE = re.compile(r"```(?P<kind>python|sh)\n(?P<code>.*?)```(?:\n\n```text\n(?P<shown>.*?)```)?", re.DOTALL)
TIMES = re.compile(r"[\d,.]+ ms\b")


class Example(NamedTuple):
    """What a block prints now, what the page says it prints (None where it says nothing), and where that stands."""

    printed: str
    shown: str | None
    place: slice


def run(page: str, names: dict[str, Any]) -> Iterator[Example]:
    """Run the examples of a page one by one with these names, which they may add to."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for found in EXAMPLE.finditer(text):
        output = _run_commands(found["code"]) if found["kind"] == "sh" else _run_python(found["code"], page, names)
        printed = "\n".join(line.rstrip() for line in TIMES.sub("… ms", output).strip("\n").splitlines())
        yield Example(f"{printed}\n" if printed else "", found["shown"], slice(*found.span("shown")))


def _run_python(code: str, page: str, names: dict[str, Any]) -> str:
    output = StringIO()
    with redirect_stdout(output), mock.patch.dict(os.environ, {"COLUMNS": WIDTH}):
        exec(compile(code, page, "exec"), names)
    return output.getvalue()


def _run_commands(code: str) -> str:
    from typer.testing import CliRunner  # noqa: PLC0415 - an extra

    from fasterce.cli.app import app  # noqa: PLC0415

    printed = ""
    for line in code.splitlines():
        result = CliRunner().invoke(app, shlex.split(line)[1:], env={"COLUMNS": WIDTH})
        if result.exit_code:
            raise RuntimeError(f"{line} ended with {result.exit_code}: {result.output}")
        printed += result.stdout
    return printed


def refresh(page: str, names: dict[str, Any]) -> None:
    """Run a page and write what its examples print now where it shows what they print."""
    examples = list(run(page, names))
    text = (DOCS / page).read_text(encoding="utf-8")
    for example in reversed(examples):
        if example.shown is not None:
            text = text[: example.place.start] + example.printed + text[example.place.stop :]
    (DOCS / page).write_text(text, encoding="utf-8")
