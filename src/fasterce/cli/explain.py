"""`fasterce explain`: rows in, one record a row out."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape

from fasterce import records, streams
from fasterce.cli import options
from fasterce.cli.console import be_quiet, in_terminal, say, show
from fasterce.cli.exits import guarded
from fasterce.cli.loading import Opened, Trust, open_explainer, wanted
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
    id_column: Annotated[str | None, options.file_option("--id", help="A column that names the rows.")] = None,
    keep: Annotated[list[str] | None, options.file_option("--keep", help="A column to hand on to the output (repeat).")] = None,
    limit: Annotated[int | None, options.file_option("--limit", min=1, help="Only the first rows.")] = None,
    chunk: Annotated[int, options.file_option("--chunk", min=1, help="Rows explained at a time.")] = 5000,
    fresh: Annotated[bool, options.file_option("--fresh", help="Do not go on with a run that was stopped: begin anew.")] = False,
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
            raise InputError(f"--out must end in one of {shorten(SUFFIXES)}, or --format must say what to write; got {out!r}.")
        return SUFFIXES[suffix]
    chosen = given or ("table" if in_terminal() else "csv")
    if chosen == "parquet" and out == STDOUT:
        raise InputError("Parquet cannot be written to stdout; expected --out with the name of a file.")
    return chosen
