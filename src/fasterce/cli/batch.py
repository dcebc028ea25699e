"""`fasterce batch`: many files, many workers, a folder of answers."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape

from fasterce import batch as batches
from fasterce.batch.report import BatchReport
from fasterce.cli import options
from fasterce.cli.console import be_quiet, say
from fasterce.cli.exits import Exit, guarded
from fasterce.cli.loading import Trust, open_explainer, wanted
from fasterce.cli.progress import batch_bar
from fasterce.cli.values import class_names
from fasterce.display.wording import counted

WORK = "Work"
MOST_TOLD = 5
ENDS = {"ModelError": Exit.MODEL, "ArtifactError": Exit.ARTIFACT, "InputError": Exit.INPUT, "SchemaError": Exit.INPUT}


def _work(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=WORK, **more)


@guarded
def batch(
    artifact: Annotated[Path, typer.Argument(help="Folder written by `fasterce fit`.")],
    input: Annotated[
        list[str],
        options.file_option(
            "--input", "-i", help="Files, folders, 'patterns/*.parquet' or addresses such as s3://… (repeat)."
        ),
    ],
    output: Annotated[
        str, options.file_option("--output", "-o", help="Folder to write; one of an earlier run is gone on with.")
    ],
    model: options.Model = None,
    engine: Annotated[
        Literal["local", "ray"], _work("--engine", help="Processes of this machine, or actors on Ray.")
    ] = "local",
    address: Annotated[
        str | None, _work("--address", help="Of a running Ray cluster; without it one is started here.")
    ] = None,
    workers: Annotated[
        int | None, _work("--workers", "-w", min=0, help="How many work at once; all cores if left out.")
    ] = None,
    retries: Annotated[int, _work("--retries", min=0, help="How often a shard that failed is tried again.")] = 2,
    shard_rows: Annotated[int, _work("--shard-rows", min=1, help="The most rows of a shard, which is done or not.")] = 50_000,
    batch_rows: Annotated[int, _work("--batch-rows", min=1, help="Rows explained at a time.")] = 5_000,
    where: Annotated[
        str | None, options.wanted("--where", help='Which rows: "prediction = \'bad\' and age >= 30", "score < 0.4".')
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
    partition_by: Annotated[
        list[str] | None,
        options.file_option("--partition-by", help="A column of the output that makes folders, column=value (repeat)."),
    ] = None,
    group: Annotated[
        str | None, options.file_option("--group", help="A column by whose values the report sums up cost.")
    ] = None,
    records: Annotated[
        bool, options.file_option("--records", help="Write an audit record a row too, into _records/.")
    ] = False,
    limit: Annotated[int | None, options.file_option("--limit", min=1, help="Only the first rows.")] = None,
    fresh: Annotated[bool, options.file_option("--fresh", help="Do not go on with what is there: begin anew.")] = False,
    trust_pickle: options.TrustPickle = False,
    trusted: options.Trusted = None,
    classes: options.Classes = None,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    quiet: options.Quiet = False,
) -> None:
    """Explain every row of many files, on all cores or a Ray cluster: a hundred million rows overnight.

    The input is cut into shards; each is explained, written whole or not at all, and skipped by a later run. What cannot be
    done is tried again, then told: the command ends with an error and there is no _SUCCESS in the folder.
    """
    be_quiet(quiet)
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
    with batch_bar("Explaining") as advance:
        report = batches.explain(
            artifact,
            input,
            output,
            model=model,
            engine=engine,
            workers=workers,
            address=address,
            options=asked,
            where=where,
            id_column=id_column,
            keep=keep or (),
            partition_by=_several(partition_by),
            group=group,
            shard_rows=shard_rows,
            batch_rows=batch_rows,
            records=records,
            retries=retries,
            limit=limit,
            resume=not fresh,
            separator=separator,
            encoding=encoding,
            trust_pickle=trust_pickle,
            trusted=trusted or (),
            classes=class_names(classes),
            progress=advance,
        )
    _tell(report)


def _several(given: list[str] | None) -> list[str]:
    return [name.strip() for text in given or [] for name in text.split(",")]


def _tell(report: BatchReport) -> None:
    say(escape(str(report)))
    say(escape(f"Written to {report.output} (_report.html sums it up)."))
    if report.complete:
        return
    for failure in report.failed[:MOST_TOLD]:
        rows = f"rows {failure.first:,} to {failure.first + failure.rows - 1:,}"
        say(escape(f"Shard {failure.number} ({failure.source}, {rows}): {failure.said}"), always=True)
    left = len(report.failed) - MOST_TOLD
    say(
        f"[bold red]Error:[/bold red] {counted(len(report.failed), 'shard')} could not be done"
        f"{f' (the first {MOST_TOLD} are told)' if left > 0 else ''}; the same command tries them again.",
        always=True,
    )
    raise typer.Exit(ENDS.get(report.failed[0].kind, Exit.BUG))
