"""`fasterce batch`: many files, many workers, a folder of counterfactuals."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from fasterce import batch as batches
from fasterce.batch.report import BatchReport
from fasterce.cli import options
from fasterce.cli.console import say
from fasterce.cli.exits import EXITS, Exit, guarded, show_error
from fasterce.cli.loading import Subject, load_arguments
from fasterce.cli.progress import batch_bar
from fasterce.viz.formatting import counted

MOST_FAILURES_SHOWN = 5

work_option: Any = options.in_panel("Work")


# Parameters of `fasterce.batch.explain` that are options of the same name.
WORK = {
    "backend": work_option("--backend", help="Processes on this machine, or actors on Ray."),
    "address": work_option("--address", help="Address of a running Ray cluster; by default one is started here."),
    "workers": work_option("--workers", "-w", min=0, help="Number of workers; all cores if left out."),
    "retries": work_option("--retries", min=0, help="How often a shard that failed is tried again."),
    "shard_rows": work_option("--shard-rows", min=1, help="Largest number of rows per shard, the unit of resuming."),
    "batch_rows": work_option("--batch-rows", min=1, help="Rows explained at a time."),
    "where": work_option("--where", help='Which rows: "prediction = \'bad\' and age >= 30", "score < 0.4".'),
    "group": options.file_option("--group", help="Column by which the report groups the cost of recourse."),
    "records": options.file_option("--records", help="Write one audit record per row too, into _records/."),
}


@guarded
@partial(options.with_options, more=options.parameters_of(batches.explain, WORK))
def batch(
    artifact: Annotated[Path, typer.Argument(help="Folder written by `fasterce fit`.")],
    source: Annotated[
        list[str],
        options.file_option(
            "--input",
            "-i",
            *options.TABLE_FLAGS,
            help="Files, folders, 'patterns/*.parquet' or addresses such as s3://… (repeat).",
        ),
    ],
    output: Annotated[str, options.file_option("--output", "-o", help="Folder to write; an existing run is resumed.")],
    model: options.ModelOptions,
    reading: options.RowOptions,
    keep: options.Keep = None,
    partition_by: Annotated[
        list[str] | None,
        options.file_option("--partition-by", help="A column of the output that makes folders, column=value (repeat)."),
    ] = None,
    fresh: Annotated[bool, options.file_option("--fresh", help="Start again instead of resuming.")] = False,
    **given: Any,
) -> None:
    """Explain every row of many files, on all cores or a Ray cluster.

    The input is cut into shards; each is explained, written whole or not at all, and skipped by a later run. A shard that
    fails is tried again, then reported: the command ends with an error and there is no _SUCCESS in the folder.
    """
    arguments = Subject.read(artifact).arguments(given)
    with batch_bar("Explaining") as advance:
        report = batches.explain(
            artifact,
            source,
            output,
            model=model.model,
            options=arguments,
            keep=keep or (),
            partition_by=[name.strip() for text in partition_by or [] for name in text.split(",")],
            resume=not fresh,
            progress=advance,
            **load_arguments(model),
            **vars(reading),
            **{name: given[name] for name in WORK},
        )
    _show(report)


def _show(report: BatchReport) -> None:
    say(escape(str(report)))
    say(escape(f"Written to {report.output} (_report.html is a summary)."))
    if report.complete:
        return
    for failure in report.failed[:MOST_FAILURES_SHOWN]:
        rows = f"rows {failure.first:,} to {failure.first + failure.rows - 1:,}"
        say(escape(f"Shard {failure.number} ({failure.source}, {rows}): {failure.reason}"), always=True)
    shown = f" (the first {MOST_FAILURES_SHOWN} are shown)" if len(report.failed) > MOST_FAILURES_SHOWN else ""
    show_error(f"{counted(len(report.failed), 'shard')} could not be explained{shown}; the same command tries them again.")
    raise typer.Exit(EXITS.get(report.failed[0].kind, Exit.BUG))
