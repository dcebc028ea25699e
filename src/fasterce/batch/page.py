"""A batch as one page to send to someone: totals, what changes most, cost by group, who has no recourse, and why."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from fasterce.batch.report import BatchReport
from fasterce.batch.tally import Cost
from fasterce.display import html
from fasterce.display.batch import NOTICE, cards, definitions
from fasterce.display.wording import cut, measure, number, percent, text

MOST_LINES = 30
GROUP_CAUTION = (
    "Read with care: a gap says that the people of one group would have to change more, or get an answer less often, among "
    "these rows. It is not by itself discrimination, and no gap does not prove fairness. Distances are of rows with an "
    "answer alone."
)
ATTENTION = "The batch is not complete: what follows is about the shards that are finished, and a rerun does the others."


def page(report: BatchReport, title: str = "What would have had to be different?") -> str:
    """The whole page; nothing in it is read from elsewhere."""
    tally = report.tally
    sections = [("At a glance", _glance(report))]
    sections += [("Shards that failed", _failed(report))] if report.failed else []
    sections += [("What became of the rows", _statuses(report))]
    if tally.cost.found:
        sections += [
            ("What changes most", _changes(report)),
            (
                "How many features change",
                _bars(("features", "rows"), sorted(tally.sizes.items(), key=lambda one: int(one[0]))),
            ),
        ]
    sections += [(f"Cost by {text(report.group)}", _groups(tally.groups))] if tally.groups else []
    sections += [("Rules that stand in the way", _bars(("rule", "rows"), tally.blocking.items()))] if tally.blocking else []
    sections += [("Time and questions", _table(("", ""), _work(report)))]
    return html.page(title, [*sections, ("What it rests on", definitions(report.about))])


def _glance(report: BatchReport) -> str:
    cost = report.tally.cost
    shown = [
        (number(report.rows, 0), "rows in the input"),
        (number(report.tally.filtered, 0), "filtered out"),
        (percent(cost.found / cost.wanting) if cost.wanting else "–", "answered, of those that wanted one"),
        (percent(cost.without) if cost.wanting else "–", "without recourse"),
        (measure(cost.features) if cost.found else "–", "features changed on average"),
        (measure(cost.mean) if cost.found else "–", "mean distance"),
    ]
    warned = f"<p><strong>{escape(ATTENTION)}</strong></p>" if report.failed else ""
    return f"{warned}{cards(shown)}<p>{escape(NOTICE)}</p>"


def _failed(report: BatchReport) -> str:
    lines = [
        (str(one.number), f"{cut(one.source)}, rows {one.first:,} to {one.first + one.rows - 1:,}", text(one.said))
        for one in report.failed
    ]
    return _table(("shard", "rows", "why"), lines)


def _statuses(report: BatchReport) -> str:
    counts = list(report.tally.summary.statuses.items())
    counts += [("filtered out", report.tally.filtered)] if report.tally.filtered else []
    lost = sum(one.rows for one in report.failed)
    return _bars(("status", "rows"), [*counts, *([("in shards that failed", lost)] if lost else [])])


def _changes(report: BatchReport) -> str:
    found, moved = report.tally.cost.found, report.tally.moved
    lines = []
    for name, count in report.tally.summary.changed.items():
        ways = ", ".join(f"{number(many, 0)} {_way(way)}" for way, many in moved.get(name, {}).items())
        lines.append((cut(name), _bar(count / found), number(count, 0), percent(count / found), ways))
    return _table(("feature", "", "answers", "of all", "which way"), lines)


def _way(way: str) -> str:
    return {"up": "up", "down": "down"}.get(way, "to another value")


def _groups(groups: Mapping[str, Cost]) -> str:
    lines = [
        (
            cut(name),
            number(cost.wanting, 0),
            percent(cost.without) if cost.wanting else "–",
            f"{measure(cost.mean)} ± {measure(cost.spread)}" if cost.found > 1 else "–",
            measure(cost.features) if cost.found else "–",
        )
        for name, cost in groups.items()
    ]
    head = ("group", "rows that wanted an answer", "without recourse", "mean distance (95 %)", "features changed")
    return _table(head, lines) + f"<p>{escape(GROUP_CAUTION)}</p>"


def _work(report: BatchReport) -> list[tuple[str, str]]:
    summary = report.tally.summary
    speed = summary.rows / report.seconds if report.seconds and not report.resumed else 0.0
    return [
        ("engine and workers", f"{report.engine}, {report.workers}"),
        (
            "this run took",
            f"{number(report.seconds, 1)} s" + (f", {number(speed, 0)} rows explained a second" if speed else ""),
        ),
        ("time spent explaining, all workers", f"{number(summary.seconds, 1)} s"),
        ("shards", f"{number(report.shards, 0)}, {number(report.resumed, 0)} of them there from an earlier run"),
        ("tried again", number(report.retried, 0)),
        ("calls of the model", number(summary.calls, 0)),
        ("rows asked of the model", number(summary.rows_asked, 0)),
    ]


def _bars(head: Sequence[str], counts: Iterable[tuple[str, int]]) -> str:
    shown = list(counts)
    most = max((count for _, count in shown), default=0)
    lines = [(cut(name), _bar(count / most if most else 0), number(count, 0)) for name, count in shown[:MOST_LINES]]
    return _table((head[0], "", head[1]), lines)


def _bar(share: float) -> "_Html":
    width = max(1, round(160 * share))
    return _Html(f'<span style="display:inline-block;height:.8em;width:{width}px;background:#3b6ea5"></span>')


class _Html(str):
    """Not to be escaped."""

    __slots__ = ()


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    return f'<table class="fce-list"><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>'


def _cell(cell: str) -> str:
    return str(cell) if isinstance(cell, _Html) else escape(cell)
