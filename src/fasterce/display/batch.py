"""A batch of explanations as one page to send to someone: figures, pictures, the first rows, and what it rests on."""

from collections.abc import Iterable, Mapping
from html import escape

import numpy as np
import pandas as pd

from fasterce.display import html, plots
from fasterce.display.wording import measure, number, percent, text
from fasterce.explanation import ALREADY_TARGET, FOUND, Explanation

MOST_REASONS = 12
NOTICE = (
    "Each answer says what would have changed the model's decision and was confirmed by the model itself. It is not by "
    "itself a reason for the decision: restricted to what a person can change, it may leave out what weighed most."
)


def page(
    explanation: Explanation,
    *,
    title: str = "What would have had to be different?",
    about: Mapping[str, str] | None = None,
    learned: str = "",
    most: int = 20,
) -> str:
    """The whole page; `about` says what it rests on (files, digests, options), `learned` how good the explainer is, and
    `most` is how many rows are shown one by one."""
    sections = [("At a glance", _cards(explanation) + f"<p>{escape(NOTICE)}</p>")]
    if len(explanation.answers):
        sections += [
            ("What changes most", html.figure(plots.summary(explanation), alt="How often each feature changes")),
            ("How much has to change", html.figure(plots.effort(explanation), alt="Features changed and distance")),
            ("The first answer", html.figure(plots.dumbbell(explanation, _first(explanation)), alt="Changes from and to")),
        ]
    sections += _one_by_one(explanation, most)
    without = _without_answer(explanation)
    sections += [("Rows without an answer", without)] if without else []
    sections += [("What it rests on", definitions(about))] if about else []
    sections += [("How good the learned pieces are", f"<pre>{escape(learned)}</pre>")] if learned else []
    return html.page(title, sections)


def _one_by_one(explanation: Explanation, most: int) -> list[tuple[str, str]]:
    wanting = np.flatnonzero((explanation.status != ALREADY_TARGET).to_numpy())
    if not len(wanting):
        return []
    heading = "Row by row" if len(wanting) <= most else f"The first {most} rows of {number(len(wanting), 0)}, one by one"
    return [(heading, html.rows(explanation, map(int, wanting[:most])))]


def _first(explanation: Explanation) -> int:
    return int(explanation.answers.query[0])


def _cards(explanation: Explanation) -> str:
    summary = explanation.summary()
    wanting = len(explanation) - int((explanation.status == ALREADY_TARGET).sum())
    found = int((explanation.status == FOUND).sum())
    shown = [
        (number(len(explanation), 0), "rows"),
        (percent(found / wanting) if wanting else "–", "answered, of those that wanted one"),
        (measure(summary["features_changed"]), "features changed on average"),
        (measure(summary["distance"]), "mean distance"),
        (number(summary["rows_asked_each"], 1), "rows asked of the model a row"),
        (f"{measure(summary['ms_each'])} ms", "a row"),
    ]
    return cards(shown)


def cards(shown: Iterable[tuple[str, str]]) -> str:
    """Figures side by side, each with what it is."""
    each = "".join(f"<div><dt>{escape(said)}</dt><dd>{escape(figure)}</dd></div>" for figure, said in shown)
    return f'<dl class="fce-cards">{each}</dl>'


def _without_answer(explanation: Explanation) -> str:
    """Statuses and reasons of rows without an answer, the commonest first."""
    lacking = ~explanation.status.isin([FOUND, ALREADY_TARGET])
    if not lacking.any():
        return ""
    reasons = pd.DataFrame({"status": explanation.status[lacking], "reason": explanation.reason[lacking]})
    counts = reasons.value_counts().head(MOST_REASONS)
    body = "".join(
        f"<tr><td>{count}</td><td>{escape(text(status))}</td><td>{escape(text(reason))}</td></tr>"
        for (status, reason), count in counts.items()
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("rows", "status", "why"))
    left = len(reasons) - int(counts.sum())
    more = f"<p>… and {number(left, 0)} more.</p>" if left else ""
    return f'<table class="fce-list"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}'


def definitions(about: Mapping[str, str]) -> str:
    """Names and what is said of each."""
    lines = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text(said))}</td></tr>' for name, said in about.items()
    )
    return f'<table class="fce-list"><tbody>{lines}</tbody></table>'
