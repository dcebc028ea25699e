"""`fasterce report`: a batch of explanations as one page with pictures."""

from typing import Annotated

import typer

from fasterce import artifact as artifacts
from fasterce.cli import options
from fasterce.cli.console import be_quiet
from fasterce.cli.exits import guarded
from fasterce.cli.explain import explain_few, real_target, write_whole
from fasterce.cli.loading import Opened, Trust, open_explainer, wanted
from fasterce.display import batch


@guarded
def report(
    artifact: options.Artifact,
    rows: options.Rows,
    out: Annotated[str, options.file_option("--out", "-o", help="The page to write; - is stdout.")] = "report.html",
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "What would have had to be different?",
    shown: Annotated[int, typer.Option("--shown", min=0, help="How many rows are shown one by one.")] = 20,
    limit: Annotated[int | None, options.file_option("--limit", min=1, help="Only the first rows.")] = None,
    model: options.Model = None,
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
    id_column: options.IdColumn = None,
    trust_pickle: options.TrustPickle = False,
    trusted: options.Trusted = None,
    classes: options.Classes = None,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    quiet: options.Quiet = False,
) -> None:
    """Explain up to 10,000 rows and write a page: what changes most, how much, row by row, and what it rests on."""
    be_quiet(quiet)
    out = real_target(out)
    opened = open_explainer(artifact, model, Trust(trust_pickle, trusted, classes))
    asked = wanted(
        opened.explainer,
        target=target,
        target_score=target_score,
        freeze=freeze,
        vary=vary,
        range_=range_,
        rules=rules,
        **{"method": method, "n": n, "robust": robust, "distance": distance, "realism": realism},
    )
    reading = {"separator": separator, "encoding": encoding, "limit": limit}
    found = explain_few(opened, rows, asked, id_column, reading)
    learned = str(opened.explainer.report_)
    write_whole(out, batch.page(found, title=title, about=rests_on(opened, rows, asked), learned=learned, most=shown))


def rests_on(opened: Opened, rows: str, asked: dict[str, object]) -> dict[str, str]:
    """What the answers were made from and with."""
    explainer = opened.explainer
    said = {name: value for name, value in asked.items() if value not in (None, [], {})}
    rules = [rule.text for rule in (*explainer.schema_.rules, *asked["rules"])]  # type: ignore[misc]
    return {
        "rows": rows,
        "model": f"{opened.model_source} ({opened.model_digest or 'no digest'})",
        "artifact": artifacts.digest(explainer),
        "seed": str(explainer.random_state),
        "options": ", ".join(f"{name} {value}" for name, value in said.items() if name != "rules"),
        **({"rules": "; ".join(rules)} if rules else {}),
    }
