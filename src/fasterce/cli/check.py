"""`fasterce check`: compare an artifact with a model and with recent data."""

from typing import Annotated

import typer

from fasterce.cli import options
from fasterce.cli.console import be_quiet, say, show
from fasterce.cli.exits import Exit, guarded
from fasterce.cli.loading import ModelOptions, open_explainer, read_rows


@guarded
def check(
    artifact: options.Artifact,
    data: Annotated[str, options.file_option("--data", "-d", help="CSV or Parquet file of recent rows.")],
    model: options.Model = None,
    trust_pickle: options.TrustPickle = False,
    trusted: options.Trusted = None,
    classes: options.Classes = None,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    quiet: options.Quiet = False,
) -> None:
    """Compare the artifact with this model and these rows; exit code 6 if they differ."""
    be_quiet(quiet)
    opened = open_explainer(artifact, model, ModelOptions(trust_pickle, trusted, classes))
    agreement = opened.explainer.agreement()
    rows = read_rows(data, opened.explainer.state_.table, separator=separator, encoding=encoding)
    drift = opened.explainer.drift(rows)
    show(drift)
    say(f"The model predicts the same as when the explainer was fitted for {agreement:.1%} of the stored examples.")
    if drift.drifted or agreement < 1:
        raise typer.Exit(Exit.DISAGREES)
