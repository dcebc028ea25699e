"""Where results are written: stdout or a file, and in which format."""

import sys
from pathlib import Path
from typing import Literal

from fasterce.cli.console import in_terminal, say
from fasterce.errors import InputError
from fasterce.io.atomic import replace_file

Format = Literal["table", "csv", "json", "parquet", "html"]
SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".html": "html",
    ".txt": "table",
}
STDOUT = "-"


def choose_format(given: Format | None, out: str) -> Format:
    """Return the format given, else that of the file name, else what suits a terminal or a pipe."""
    if given is None and out != STDOUT:
        suffix = Path(out).suffix.lower()
        if suffix not in SUFFIXES:
            raise InputError("cli.unknown_suffix", option="out", expected=list(SUFFIXES), received=out)
        return SUFFIXES[suffix]
    chosen = given or ("table" if in_terminal() else "csv")
    if chosen == "parquet" and out == STDOUT:
        raise InputError("cli.parquet_to_stdout", option="out")
    return chosen


def resolve_output(out: str) -> str:
    """Return the file to write; a link is followed, and only files are ever replaced."""
    if out == STDOUT:
        if sys.stdout is None:
            raise InputError("cli.no_stdout", option="out")
        return out
    target = Path(out)
    target = target.resolve() if target.is_symlink() else target
    if target.exists() and not target.is_file():
        raise InputError("cli.not_a_file", option="out", received=out)
    if not target.parent.is_dir():
        raise InputError("cli.no_folder", option="out", received=out, folder=str(target.parent))
    return str(target)


def write_text(out: str, text: str) -> None:
    """Write a whole file or nothing, or to stdout."""
    if out == STDOUT:
        sys.stdout.write(text)
        return
    replace_file(Path(out), lambda file: file.write(text.encode()))
    say(f"Written to {out}.")
