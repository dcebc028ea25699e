"""`fasterce report`: a page with pictures about the explanations of many rows."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from fasterce import artifact as artifacts
from fasterce.artifact import OpenedExplainer
from fasterce.cli import options
from fasterce.cli.console import be_quiet
from fasterce.cli.exits import guarded
from fasterce.cli.explain import explain_few
from fasterce.cli.loading import ModelOptions, open_explainer, subject_of
from fasterce.cli.output import resolve_output, write_text
from fasterce.constraints import Constraint
from fasterce.viz import batch


@guarded
@options.with_options
def report(
    artifact: options.Artifact,
    rows: options.Rows,
    out: Annotated[str, options.file_option("--out", "-o", help="The page to write; - is stdout.")] = "report.html",
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "What would have to be different?",
    shown: Annotated[int, typer.Option("--shown", min=0, help="Number of rows shown one by one.")] = 20,
    limit: options.Limit = None,
    model: options.Model = None,
    id_column: options.IdColumn = None,
    trust_pickle: options.TrustPickle = False,
    trusted: options.Trusted = None,
    classes: options.Classes = None,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    quiet: options.Quiet = False,
    **texts: object,
) -> None:
    """Explain up to 10,000 rows and write a page: what changes most, how much, and every row."""
    be_quiet(quiet)
    out = resolve_output(out)
    opened = open_explainer(artifact, model, ModelOptions(trust_pickle, trusted, classes))
    arguments = subject_of(opened.explainer).arguments(texts)
    found = explain_few(opened, rows, arguments, id_column, limit, separator, encoding)
    about = provenance(opened, rows, arguments)
    write_text(out, batch.page(found, title=title, about=about, fit_report=str(opened.explainer.report_), most=shown))


def provenance(opened: OpenedExplainer, rows: str, arguments: Mapping[str, object]) -> dict[str, str]:
    """Return what the counterfactuals were made from and with."""
    explainer = opened.explainer
    given = {name: value for name, value in arguments.items() if value not in (None, [], {}) and name != "constraints"}
    own: Sequence[Constraint] = arguments["constraints"]  # type: ignore[assignment]
    constraints = [constraint.text for constraint in (*explainer.schema_.constraints, *own)]
    return {
        "rows": rows,
        "model": f"{opened.model_source} ({opened.model_digest or 'no digest'})",
        "artifact": artifacts.digest(explainer),
        "seed": str(explainer.random_state),
        "options": ", ".join(f"{name} {value}" for name, value in given.items()),
        **({"constraints": "; ".join(constraints)} if constraints else {}),
    }
