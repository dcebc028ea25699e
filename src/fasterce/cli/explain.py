"""`fasterce explain`: rows in, one record per row out. `fasterce report`: a page with pictures about many rows."""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from fasterce import io, records
from fasterce.artifact import OpenedExplainer
from fasterce.batch.report import provenance
from fasterce.cli import options
from fasterce.cli.console import say, show
from fasterce.cli.exits import guarded
from fasterce.cli.loading import Subject, open_explainer, read_rows
from fasterce.cli.progress import rows_bar
from fasterce.errors import InputError
from fasterce.explanation import INVALID_INPUT, Explanation
from fasterce.io import formats
from fasterce.io.atomic import replace_file
from fasterce.viz import batch
from fasterce.viz.formatting import counted

Format = Literal["table", "csv", "json", "jsonl", "parquet", "html"]
# The format of `io.run` for those that are written chunk by chunk.
STREAMED: dict[Format, str] = {name: name for name in ("csv", "json", "jsonl", "parquet")}
SUFFIXES: dict[str, Format] = {
    **{suffix: format for suffix, name in formats.SUFFIXES.items() for format in STREAMED if STREAMED[format] == name},
    ".html": "html",
    ".txt": "table",
}
STDOUT = "-"
TITLE = "What would have to be different?"
MOST_SHOWN = 10_000


@guarded
@options.with_options
def explain(
    artifact: options.Artifact,
    rows: options.Rows,
    model: options.ModelOptions,
    reading: options.RowOptions,
    out: Annotated[str, options.file_option("--out", "-o", help="File to write; - is stdout.")] = STDOUT,
    format: Annotated[
        Format | None,
        options.file_option("--format", "-f", help="By the name of --out, else a table in a terminal and csv in a pipe."),
    ] = None,
    keep: options.Keep = None,
    chunk: Annotated[int, options.file_option("--chunk", min=1, help="Rows explained at a time.")] = 5000,
    fresh: Annotated[
        bool, options.file_option("--fresh", help="Start again instead of resuming a run that was stopped.")
    ] = False,
    **texts: object,
) -> None:
    """Explain rows: what would have to be different for the model to predict something else?

    A file of any size is read, explained and written chunk by chunk; a run that was killed is resumed.
    """
    out = resolve_output(out)
    chosen = choose_format(format, out)
    opened = open_explainer(artifact, model)
    arguments = Subject.of(opened.explainer).arguments(texts)
    if chosen not in STREAMED:
        _show(explain_few(opened, rows, arguments, reading), out, chosen)
        return
    with rows_bar("Explaining") as advance:
        summary = io.run(
            opened.explainer,
            rows,
            out,
            options=arguments,
            format=STREAMED[chosen],
            chunk_rows=chunk,
            keep=keep or [],
            resume=not fresh,
            progress=advance,
            record_maker=partial(records.make, model_digest=opened.model_digest) if chosen in formats.RECORDS else None,
            model_digest=opened.model_digest,
            **vars(reading),
        )
    if summary.resumed:
        say(f"Resumed a run that had been stopped: {counted(summary.resumed, 'chunk')} of {summary.chunks} were finished.")
    say(escape(str(summary)))
    if out != STDOUT:
        say(f"Written to {out}.")
        if summary.statuses.get(INVALID_INPUT):
            say("Its column reason says what is wrong with the invalid rows.")


@guarded
@options.with_options
def report(
    artifact: options.Artifact,
    rows: options.Rows,
    model: options.ModelOptions,
    reading: options.RowOptions,
    out: Annotated[str, options.file_option("--out", "-o", help="The page to write; - is stdout.")] = "report.html",
    title: Annotated[str, typer.Option(help="Heading of the page.")] = TITLE,
    shown: Annotated[int, typer.Option("--shown", min=0, help="Number of rows shown one by one.")] = 20,
    **texts: object,
) -> None:
    """Explain up to 10,000 rows and write a page: what changes most, how much, and every row."""
    out = resolve_output(out)
    opened = open_explainer(artifact, model)
    arguments = Subject.of(opened.explainer).arguments(texts)
    found = explain_few(opened, rows, arguments, reading)
    about = {"rows": rows, **provenance(opened, opened.model_source, arguments)}
    write_text(out, batch.page(found, title=title, about=about, fit_report=str(opened.explainer.report_), most=shown))


def explain_few(
    opened: OpenedExplainer, source: str, arguments: Mapping[str, object], reading: options.RowOptions
) -> Explanation:
    """Explain the rows of a table or page at once; their number is limited."""
    limit = reading.limit or MOST_SHOWN + 1
    rows = read_rows(source, opened.explainer.state_.table, reading, id_column=reading.id_column, limit=limit)
    if len(rows) > MOST_SHOWN:
        raise InputError("cli.too_many_rows", expected=MOST_SHOWN)
    return opened.explainer.explain(rows, **arguments)  # type: ignore[arg-type]


def _show(found: Explanation, out: str, format: Format) -> None:
    """Show a table or a page of all rows at once."""
    if format == "html":
        write_text(out, batch.page(found, title=TITLE))
    elif out == STDOUT:
        show(found)
    else:
        write_text(out, f"{found}\n")


def choose_format(given: Format | None, out: str) -> Format:
    """Return the format given, else that of the file name, else what suits a terminal or a pipe."""
    if given is None and out != STDOUT:
        suffix = Path(out).suffix.lower()
        if suffix not in SUFFIXES:
            raise InputError("cli.unknown_suffix", option="out", expected=list(SUFFIXES), received=out)
        return SUFFIXES[suffix]
    chosen = given or ("table" if sys.stdout.isatty() else "csv")
    if chosen == "parquet" and out == STDOUT:
        raise InputError("cli.parquet_to_stdout", option="out")
    return chosen


def resolve_output(out: str) -> str:
    """Return the file to write; a link is followed, and only regular files are replaced."""
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
