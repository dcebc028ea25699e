"""A batch as one self-contained page: totals, what changes most, cost by group, rows without recourse and why."""

from collections.abc import Iterable, Mapping

from markupsafe import Markup

from fasterce.batch.counts import RecourseCost
from fasterce.batch.report import BatchReport
from fasterce.viz import html, templates
from fasterce.viz.batch import NOTICE
from fasterce.viz.formatting import cut, measure, number, percent, text

MOST_LINES = 30
BAR_PIXELS = 160
NONE = "–"
DIRECTIONS = {"up": "up", "down": "down", "other": "to another value"}
GROUP_CAUTION = (
    "Read with care: a gap says that the people of one group would have to change more, or have a counterfactual less often, "
    "among these rows. It is not by itself discrimination, and no gap does not prove fairness. Distances are those of rows "
    "with a counterfactual."
)
INCOMPLETE = (
    "The batch is not complete: this page covers the shards that are finished. Run the same batch again for the others."
)


def page(report: BatchReport, title: str = "What would have had to be different?") -> str:
    """Return the page of a batch."""
    counts, sections = report.counts, [("At a glance", _glance(report))]
    if report.failed:
        sections.append(("Shards that failed", _failed(report)))
    sections.append(("What became of the rows", _statuses(report)))
    if counts.cost.found:
        sizes = sorted(counts.sizes.items(), key=lambda one: int(one[0]))
        sections += [("What changes most", _changes(report)), ("How many features change", _bars("features", sizes))]
    if counts.groups:
        sections.append((f"Cost by {text(report.group)}", _groups(counts.groups)))
    if counts.blocking:
        sections.append(("Constraints that block", _bars("constraint", counts.blocking.items())))
    about = [(name, text(value)) for name, value in report.about.items()]
    sections += [
        ("Time and model calls", templates.part("list_table", ("", ""), _work(report))),
        ("What it is based on", templates.part("definitions", about)),
    ]
    return html.page(title, sections)


def _glance(report: BatchReport) -> Markup:
    cost = report.counts.cost
    figures = [
        (number(report.rows, 0), "rows in the input"),
        (number(report.counts.filtered, 0), "filtered out"),
        (percent(cost.found / cost.wanting) if cost.wanting else NONE, "with a counterfactual, of the rows that need one"),
        (percent(cost.without) if cost.wanting else NONE, "without recourse"),
        (measure(cost.features) if cost.found else NONE, "features changed on average"),
        (measure(cost.mean) if cost.found else NONE, "mean distance"),
    ]
    warning = templates.part("warning", INCOMPLETE) if report.failed else Markup()
    return warning + templates.part("cards", figures) + templates.part("plain_paragraph", NOTICE)


def _failed(report: BatchReport) -> Markup:
    lines = [
        (one.number, f"{cut(one.source)}, rows {one.first:,} to {one.first + one.rows - 1:,}", text(one.reason))
        for one in report.failed
    ]
    return templates.part("list_table", ("shard", "rows", "why"), lines)


def _statuses(report: BatchReport) -> Markup:
    lost = sum(one.rows for one in report.failed)
    others = {"filtered out": report.counts.filtered, "in shards that failed": lost}
    shown = [(name, count) for name, count in others.items() if count]
    return _bars("status", [*report.counts.summary.statuses.items(), *shown])


def _changes(report: BatchReport) -> Markup:
    found, moved = report.counts.cost.found, report.counts.moved
    lines = []
    for name, count in report.counts.summary.changed.items():
        ways = ", ".join(f"{number(many, 0)} {DIRECTIONS[way]}" for way, many in moved.get(name, {}).items())
        lines.append((cut(name), _bar(count / found), number(count, 0), percent(count / found), ways))
    return templates.part("list_table", ("feature", "", "counterfactuals", "of all", "direction"), lines)


def _groups(groups: Mapping[str, RecourseCost]) -> Markup:
    lines = [
        (
            cut(name),
            number(cost.wanting, 0),
            percent(cost.without) if cost.wanting else NONE,
            f"{measure(cost.mean)} ± {measure(cost.spread)}" if cost.found > 1 else NONE,
            measure(cost.features) if cost.found else NONE,
        )
        for name, cost in groups.items()
    ]
    head = ("group", "rows that need a counterfactual", "without recourse", "mean distance (95 %)", "features changed")
    return templates.part("list_table", head, lines) + templates.part("plain_paragraph", GROUP_CAUTION)


def _work(report: BatchReport) -> list[tuple[str, str]]:
    summary = report.counts.summary
    speed = summary.rows / report.seconds if report.seconds and not report.resumed else 0.0
    rate = f", {number(speed, 0)} rows explained per second" if speed else ""
    return [
        ("engine and workers", f"{report.engine}, {report.workers}"),
        ("this run took", f"{number(report.seconds, 1)} s{rate}"),
        ("time spent explaining, all workers", f"{number(summary.seconds, 1)} s"),
        ("shards", f"{number(report.shards, 0)}, {number(report.resumed, 0)} of them finished by an earlier run"),
        ("tried again", number(report.retried, 0)),
        ("model calls", number(summary.calls, 0)),
        ("model rows", number(summary.model_rows, 0)),
    ]


def _bars(name: str, counts: Iterable[tuple[str, int]]) -> Markup:
    shown = list(counts)
    most = max((count for _, count in shown), default=0)
    lines = [(cut(label), _bar(count / most if most else 0), number(count, 0)) for label, count in shown[:MOST_LINES]]
    return templates.part("list_table", (name, "", "rows"), lines)


def _bar(share: float) -> Markup:
    return templates.part("bar", max(1, round(BAR_PIXELS * share)))
