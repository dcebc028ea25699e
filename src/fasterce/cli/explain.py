"""`fasterce explain`: rows in, one record a row out."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import uuid4

from rich.markup import escape

from fasterce import records, streams
from fasterce.cli import options
from fasterce.cli.console import be_quiet, in_terminal, say, show
from fasterce.cli.exits import guarded
from fasterce.cli.loading import Opened, Trust, open_explainer, read_rows, wanted
from fasterce.cli.progress import rows_bar
from fasterce.display import html
from fasterce.display.wording import counted
from fasterce.errors import InputError, shorten
from fasterce.explanation import Explanation

Format = Literal["table", "csv", "json", "parquet", "html"]
STREAMED = ("csv", "json", "parquet")
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
MOST_LOOKED_AT = 10_000


@guarded
def explain(
    artifact: options.Artifact,
    rows: options.Rows,
    model: options.Model = None,
    out: Annotated[str, options.file_option("--out", "-o", help="File to write; - is stdout.")] = STDOUT,
    format: Annotated[
        Format | None,
        options.file_option("--format", "-f", help="By the name of --out, else a table in a terminal and csv in a pipe."),
    ] = None,
    method: options.Method = "closest",
    n: options.Count = 1,
    target: options.Target = None,
    target_score: options.TargetScore = None,
    freeze: options.Freeze = None,
    vary: options.Vary = None,
    range_: options.Range = None,
    rules: options.RulesFile = None,
    robust: options.Robust = None,
    distance: options.Distance = "percentile",
    realism: options.Realism = 0.5,
    budget: options.Budget = None,
    why_not: options.WhyNot = True,
    id_column: options.IdColumn = None,
    keep: Annotated[
        list[str] | None, options.file_option("--keep", help="A column to hand on to the output (repeat).")
    ] = None,
    limit: Annotated[int | None, options.file_option("--limit", min=1, help="Only the first rows.")] = None,
    chunk: Annotated[int, options.file_option("--chunk", min=1, help="Rows explained at a time.")] = 5000,
    fresh: Annotated[
        bool, options.file_option("--fresh", help="Do not go on with a run that was stopped: begin anew.")
    ] = False,
    trust_pickle: options.TrustPickle = False,
    trusted: options.Trusted = None,
    classes: options.Classes = None,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    quiet: options.Quiet = False,
) -> None:
    """Explain rows: what would have had to be different for the model to say something else?

    A file of any size is read, explained and written chunk by chunk; a run that was killed goes on where it was.
    """
    be_quiet(quiet)
    out = real_target(out)
    chosen = choose_format(format, out)
    opened = open_explainer(artifact, model, Trust(trust_pickle, trusted, classes))
    asked = wanted(
        opened.explainer,
        target=target,
        target_score=target_score,
        freeze=freeze,
        vary=vary,
        range_=range_,
        rules=rules,
        **{"method": method, "n": n, "robust": robust, "distance": distance},
        **{"realism": realism, "budget": budget, "why_not": why_not},
    )
    reading = {"separator": separator, "encoding": encoding, "limit": limit}
    if chosen in STREAMED:
        _stream(opened, rows, out, chosen, asked, id_column, keep or [], chunk, fresh, reading)
    else:
        _look(opened, rows, out, chosen, asked, id_column, reading)


def choose_format(given: Format | None, out: str) -> Format:
    """What was said, else what the name of the file says, else what suits a terminal or a pipe."""
    if given is None and out != STDOUT:
        suffix = Path(out).suffix.lower()
        if suffix not in SUFFIXES:
            raise InputError(
                f"--out must end in one of {shorten(SUFFIXES)}, or --format must say what to write; got {out!r}."
            )
        return SUFFIXES[suffix]
    chosen = given or ("table" if in_terminal() else "csv")
    if chosen == "parquet" and out == STDOUT:
        raise InputError("Parquet cannot be written to stdout; expected --out with the name of a file.")
    return chosen


def _stream(
    opened: Opened,
    source: str,
    out: str,
    format: Format,
    asked: dict[str, Any],
    id_column: str | None,
    keep: list[str],
    chunk: int,
    fresh: bool,
    reading: dict[str, Any],
) -> None:
    """Chunk by chunk, in flat memory; `json` is the audit records."""
    maker = partial(records.make, model_digest=opened.model_digest) if format == "json" else None
    with rows_bar("Explaining") as advance:
        summary = streams.run(
            opened.explainer,
            source,
            out,
            options=asked,
            format="jsonl" if format == "json" else format,
            chunk_rows=chunk,
            id_column=id_column,
            keep=keep,
            resume=not fresh,
            progress=advance,
            record_maker=maker,
            model_digest=opened.model_digest,
            **reading,
        )
    if summary.resumed:
        say(f"Went on with a run that had been stopped: {counted(summary.resumed, 'chunk')} of {summary.chunks} were there.")
    say(escape(str(summary)))
    if out != STDOUT:
        say(f"Written to {out}.")


def _look(
    opened: Opened,
    source: str,
    out: str,
    format: Format,
    asked: dict[str, Any],
    id_column: str | None,
    reading: dict[str, Any],
) -> None:
    """A table or a page: all rows at once, as they fit on a screen."""
    found = explain_few(opened, source, asked, id_column, reading)
    if format == "table" and out == STDOUT:
        show(found)
        return
    text = (
        str(found) + "\n"
        if format == "table"
        else html.page("What would have had to be different?", [("", html.fragment(found, len(found)))])
    )
    write_whole(out, text)


def explain_few(
    opened: Opened, source: str, asked: dict[str, Any], id_column: str | None, reading: dict[str, Any]
) -> Explanation:
    """As many rows as a person can look at, explained at once."""
    limit = reading.pop("limit") or MOST_LOOKED_AT + 1
    rows = read_rows(source, opened.explainer.table_, limit, ids=id_column, **reading)
    if len(rows) > MOST_LOOKED_AT:
        most = f"A table or page is for at most {MOST_LOOKED_AT:,} rows"
        raise InputError(f"{most}; expected --format csv, json or parquet for more, or --limit.")
    return opened.explainer.explain(rows, **asked)


def real_target(out: str) -> str:
    """Where to write: a link is followed, and only a file is ever replaced."""
    if out == STDOUT:
        if sys.stdout is None:
            raise InputError("There is no standard output to write to; expected --out with the name of a file.")
        return out
    target = Path(out)
    target = target.resolve() if target.is_symlink() else target
    if target.exists() and not target.is_file():
        raise InputError(f"--out must be a file, or - for standard output; got {out}, which is something else.")
    if not target.parent.is_dir():
        raise InputError(f"--out must be in a folder that is there; got {out}, and there is no folder {target.parent}.")
    return str(target)


def write_whole(out: str, text: str) -> None:
    """All or nothing, or to stdout."""
    if out == STDOUT:
        sys.stdout.write(text)
        return
    target = Path(out)
    staged = target.with_name(f".{uuid4().hex}.part")
    try:
        with staged.open("x", encoding="utf-8") as file:
            file.write(text)
        staged.replace(target)
    finally:
        staged.unlink(missing_ok=True)
    say(f"Written to {out}.")
