"""`fasterce explain`: rows in, one record per row out."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated

from rich.markup import escape

from fasterce import io, records
from fasterce.artifact import OpenedExplainer
from fasterce.cli import options
from fasterce.cli.console import be_quiet, say, show
from fasterce.cli.exits import guarded
from fasterce.cli.loading import ModelOptions, open_explainer, read_rows, subject_of
from fasterce.cli.output import STDOUT, Format, choose_format, resolve_output, write_text
from fasterce.cli.progress import rows_bar
from fasterce.errors import InputError
from fasterce.explanation import Explanation
from fasterce.viz import html
from fasterce.viz.formatting import counted

STREAMED = ("csv", "json", "parquet")
MOST_SHOWN = 10_000


@guarded
@options.with_options
def explain(
    artifact: options.Artifact,
    rows: options.Rows,
    model: options.Model = None,
    out: Annotated[str, options.file_option("--out", "-o", help="File to write; - is stdout.")] = STDOUT,
    format: Annotated[
        Format | None,
        options.file_option("--format", "-f", help="By the name of --out, else a table in a terminal and csv in a pipe."),
    ] = None,
    id_column: options.IdColumn = None,
    keep: options.Keep = None,
    limit: options.Limit = None,
    chunk: Annotated[int, options.file_option("--chunk", min=1, help="Rows explained at a time.")] = 5000,
    fresh: Annotated[
        bool, options.file_option("--fresh", help="Start again instead of resuming a run that was stopped.")
    ] = False,
    trust_pickle: options.TrustPickle = False,
    trusted: options.Trusted = None,
    classes: options.Classes = None,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    quiet: options.Quiet = False,
    **texts: object,
) -> None:
    """Explain rows: what would have to be different for the model to predict something else?

    A file of any size is read, explained and written chunk by chunk; a run that was killed is resumed.
    """
    be_quiet(quiet)
    out = resolve_output(out)
    chosen = choose_format(format, out)
    opened = open_explainer(artifact, model, ModelOptions(trust_pickle, trusted, classes))
    arguments = subject_of(opened.explainer).arguments(texts)
    if chosen not in STREAMED:
        few = explain_few(opened, rows, arguments, id_column, limit, separator, encoding)
        _show(few, out, chosen)
        return
    maker = partial(records.make, model_digest=opened.model_digest) if chosen == "json" else None
    with rows_bar("Explaining") as advance:
        summary = io.run(
            opened.explainer,
            rows,
            out,
            options=arguments,
            format="jsonl" if chosen == "json" else chosen,
            chunk_rows=chunk,
            id_column=id_column,
            keep=keep or [],
            separator=separator,
            encoding=encoding,
            limit=limit,
            resume=not fresh,
            progress=advance,
            record_maker=maker,
            model_digest=opened.model_digest,
        )
    if summary.resumed:
        say(f"Resumed a run that had been stopped: {counted(summary.resumed, 'chunk')} of {summary.chunks} were finished.")
    say(escape(str(summary)))
    if out != STDOUT:
        say(f"Written to {out}.")


def _show(found: Explanation, out: str, format: Format) -> None:
    """Show a table or a page of all rows at once."""
    if format == "table" and out == STDOUT:
        show(found)
    elif format == "table":
        write_text(out, f"{found}\n")
    else:
        title = "What would have to be different?"
        write_text(out, html.page(title, [("", html.fragment(found, len(found)))]))


def explain_few(
    opened: OpenedExplainer,
    source: str,
    arguments: Mapping[str, object],
    id_column: str | None,
    limit: int | None,
    separator: str | None,
    encoding: str | None,
) -> Explanation:
    """Explain the rows of a table or page at once, as many as a person can look at."""
    most = limit or MOST_SHOWN + 1
    table = opened.explainer.state_.table
    rows = read_rows(source, table, separator=separator, encoding=encoding, ids=id_column, limit=most)
    if len(rows) > MOST_SHOWN:
        raise InputError("cli.too_many_rows", expected=MOST_SHOWN)
    return opened.explainer.explain(rows, **arguments)  # type: ignore[arg-type]
