"""A batch as one self-contained page: totals, what changes most, cost by group, rows without recourse and why."""

from fasterce.batch.report import BatchReport
from fasterce.viz import html, templates
from fasterce.viz.batch import NOTICE
from fasterce.viz.formatting import cut, measure, number, percent, text


def page(report: BatchReport, title: str = "What would have had to be different?") -> str:
    """Return the page of a batch."""
    formatting = {"cut": cut, "measure": measure, "number": number, "percent": percent, "text": text}
    part = templates.macros("batch.html.j2", **formatting)
    counts, lost = report.counts, sum(one.rows for one in report.failed)
    others = {"filtered out": counts.filtered, "in shards that failed": lost}
    statuses = [*counts.summary.statuses.items(), *((name, count) for name, count in others.items() if count)]
    sections = [("At a glance", part.glance(report, NOTICE))]
    if report.failed:
        sections.append(("Shards that failed", part.failed(report)))
    sections.append(("What became of the rows", part.bars("status", statuses)))
    if counts.cost.found:
        sizes = sorted(counts.sizes.items(), key=lambda one: int(one[0]))
        sections += [("What changes most", part.changes(report)), ("How many features change", part.bars("features", sizes))]
    if counts.groups:
        sections.append((f"Cost by {text(report.group)}", part.groups(report)))
    if counts.blocking:
        sections.append(("Constraints that block", part.bars("constraint", list(counts.blocking.items()))))
    about = [(name, text(value)) for name, value in report.about.items()]
    sections += [("Time and model calls", part.work(report)), ("What it is based on", templates.part("definitions", about))]
    return html.page(title, sections)
