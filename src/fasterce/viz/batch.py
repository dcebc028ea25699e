"""A batch of explanations as one self-contained page: figures, plots, a table of all rows, and the first rows in detail."""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.util import find_spec

import numpy as np
import pandas as pd
from markupsafe import Markup

from fasterce.explanation import ALREADY_TARGET, FOUND, Explanation
from fasterce.viz import html, plots, templates
from fasterce.viz.formatting import measure, number, percent, text
from fasterce.viz.views import table_lines

MOST_REASONS = 12
NOTICE = (
    "Each counterfactual says what would have changed the model's decision and was verified with the model itself. It is not "
    "by itself a reason for the decision: restricted to what a person can change, it may leave out what weighed most."
)


DISTANCES = {
    "percentile": "The distance of a change is the share of training rows between the two values, and 1 for a changed "
    "category; the changes of a counterfactual add up.",
    "gower": "The distance of a change is its share of the feature's range, and 1 for a changed category; the changes of a "
    "counterfactual add up.",
    "mad": "The distance is that of the paper: the Euclidean norm of the changes of numbers in median absolute deviations, "
    "and the share of categories changed, each weighted by the share of such features.",
    "euclidean": "The distance is the Euclidean norm of the changes, numbers in standard deviations and 1 for a changed "
    "category.",
}
HEADER = ("Row", "Prediction", "New prediction", "Changes", "Features", "Distance", "Method", "Status")


def page(
    explanation: Explanation,
    *,
    title: str = "What would have had to be different?",
    about: Mapping[str, str] | None = None,
    fit_report: str = "",
    most: int = 20,
) -> str:
    """Return the page of a batch.

    Parameters
    ----------
    explanation : Explanation
        The batch.
    title : str
        The heading of the page.
    about : mapping, optional
        What the page is based on: files, digests, options.
    fit_report : str, default=""
        The quality report of the fitted explainer.
    most : int, default=20
        Upper limit of the rows shown in detail; the table has all of them.

    Returns
    -------
    str
        A complete HTML document.
    """
    explanation = explanation.in_pandas()
    sections = [("At a glance", _figures(explanation) + templates.part("plain_paragraph", NOTICE))]
    if len(explanation):
        sections.append(("All rows", _table(explanation)))
    sections += _drawn(explanation)
    needing = np.flatnonzero((explanation.status != ALREADY_TARGET).to_numpy())
    if len(needing) and most:
        heading = "Row by row" if len(needing) <= most else f"The first {most} rows of {number(len(needing), 0)}, one by one"
        sections.append((heading, html.rows(explanation, map(int, needing[:most]))))
    lacking = ~explanation.status.isin([FOUND, ALREADY_TARGET])
    if lacking.any():
        sections.append(("Rows without a counterfactual", _reasons(explanation, lacking)))
    sections.append(("How to read it", _explained(explanation)))
    if about:
        sections.append(("What it is based on", templates.part("definitions", [(k, text(v)) for k, v in about.items()])))
    if fit_report:
        sections.append(("How good the fitted models are", templates.part("preformatted", fit_report)))
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return html.page(title, sections, " · ".join(filter(None, [explanation.model, made])))


def _table(explanation: Explanation) -> Markup:
    statuses = sorted({text(status) for status in explanation.status})
    return templates.render("rows.html.j2", lines=table_lines(explanation), statuses=statuses, header=HEADER)


def _drawn(explanation: Explanation) -> list[tuple[str, Markup]]:
    """Return the plots, none where matplotlib is not installed or there is nothing to draw."""
    if not len(explanation.arrays) or find_spec("matplotlib") is None:
        return []
    first = int(explanation.arrays.query[0])
    return [
        ("What changes most", html.figure(plots.summary(explanation), alt="How often each feature changes")),
        ("How much has to change", html.figure(plots.effort(explanation), alt="Features changed and distance")),
        ("The first counterfactual", html.figure(plots.dumbbell(explanation, first), alt="Changes from and to")),
    ]


def _explained(explanation: Explanation) -> Markup:
    """Return what the distance means, and which constraints were in force."""
    distance = explanation.options.get("distance", "percentile")
    known = DISTANCES.get(distance) if isinstance(distance, str) else None
    shown = known or f"{DISTANCES['percentile']} Some columns have a factor: {text(distance)}."
    score = "The number in brackets is the probability of the new prediction."
    parts = [templates.part("plain_paragraph", f"{shown} {score}")]
    held = [text(one) for one in explanation.constraints] or ["none: every feature may change, within the range of the data"]
    parts.append(templates.part("bullets", "Constraints in force", held))
    return Markup("").join(parts)


def _figures(explanation: Explanation) -> Markup:
    summary = explanation.summary()
    needing = len(explanation) - int((explanation.status == ALREADY_TARGET).sum())
    found = int((explanation.status == FOUND).sum())
    figures = [
        (number(len(explanation), 0), "rows"),
        (percent(found / needing) if needing else "–", "with a counterfactual, of the rows that need one"),
        (measure(summary["features_changed"]), "features changed on average"),
        (measure(summary["distance"]), "mean distance"),
        (number(summary["model_rows_each"], 1), "model rows per query"),
        (f"{measure(summary['ms_each'])} ms", "per row"),
    ]
    return templates.part("cards", figures)


def _reasons(explanation: Explanation, lacking: pd.Series) -> Markup:
    """Statuses and reasons of rows without a counterfactual, the most frequent first."""
    reasons = pd.DataFrame({"status": explanation.status[lacking], "reason": explanation.reason[lacking]})
    counts = reasons.value_counts().head(MOST_REASONS)
    rows = [(count, text(status), text(reason)) for (status, reason), count in counts.items()]
    table = templates.part("list_table", ("rows", "status", "reason"), rows)
    left = len(reasons) - int(counts.sum())
    return table + templates.part("plain_paragraph", f"… and {number(left, 0)} more.") if left else table
