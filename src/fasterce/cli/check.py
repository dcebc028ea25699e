"""`fasterce check` and `fasterce replay`: compare an artifact with a model, with recent data and with records."""

from pathlib import Path
from typing import Annotated

import typer

from fasterce import records
from fasterce.cli import options
from fasterce.cli.console import say, show
from fasterce.cli.exits import Exit, guarded
from fasterce.cli.loading import open_explainer, read_rows


@guarded
@options.with_options
def check(
    artifact: options.Artifact,
    rows: options.Rows,
    model: options.ModelOptions,
    csv: options.CsvOptions,
) -> None:
    """Compare the artifact with this model and these rows; exit code 6 if they differ."""
    explainer = open_explainer(artifact, model).explainer
    agreement = explainer.agreement()
    drift = explainer.drift(read_rows(rows, explainer.state_.table, csv))
    show(drift)
    say(f"The model predicts the same as when the explainer was fitted for {agreement:.1%} of the stored examples.")
    if drift.drifted or agreement < 1:
        raise typer.Exit(Exit.DISAGREES)


@guarded
@options.with_options
def replay(
    file: Annotated[Path, options.file_option("--records", help="JSON lines written by `fasterce explain --format jsonl`.")],
    artifact: options.Artifact,
    model: options.ModelOptions,
) -> None:
    """Explain the recorded rows again and compare; exit code 6 if anything differs."""
    opened = open_explainer(artifact, model)
    result = records.replay(records.read(file), opened.explainer, model_digest=opened.model_digest)
    show(result)
    if not result.same:
        raise typer.Exit(Exit.DISAGREES)
