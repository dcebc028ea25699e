"""`fasterce replay`: reproduce recorded explanations."""

from pathlib import Path
from typing import Annotated

import typer

from fasterce import records
from fasterce.cli import options
from fasterce.cli.console import be_quiet, show
from fasterce.cli.exits import Exit, guarded
from fasterce.cli.loading import ModelOptions, open_explainer


@guarded
def replay(
    file: Annotated[Path, options.file_option("--records", help="JSON lines written by `fasterce explain --format json`.")],
    artifact: options.Artifact,
    model: options.Model = None,
    trust_pickle: options.TrustPickle = False,
    trusted: options.Trusted = None,
    classes: options.Classes = None,
    quiet: options.Quiet = False,
) -> None:
    """Explain the recorded rows again and compare; exit code 6 if anything differs."""
    be_quiet(quiet)
    opened = open_explainer(artifact, model, ModelOptions(trust_pickle, trusted, classes))
    result = records.replay(records.read(file), opened.explainer, model_digest=opened.model_digest)
    show(result)
    if not result.same:
        raise typer.Exit(Exit.DISAGREES)
