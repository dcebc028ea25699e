"""The report of a batch."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fasterce import artifact
from fasterce.artifact import OpenedExplainer
from fasterce.batch.counts import BatchCounts, RecourseCost
from fasterce.errors import Problem
from fasterce.explanation import ALREADY_TARGET, INVALID_INPUT
from fasterce.typing import JsonObject
from fasterce.viz import html, templates
from fasterce.viz.batch import NOTICE
from fasterce.viz.formatting import counted, cut, measure, number, percent, text


@dataclass(frozen=True)
class ShardFailure:
    """A shard that could not be explained: its rows, and why the last attempt failed."""

    number: int
    source: str
    first: int
    rows: int
    kind: str
    problem: Problem

    @property
    def reason(self) -> str:
        return self.problem.text()

    def to_dict(self) -> JsonObject:
        return {**vars(self), "problem": self.problem.to_dict(), "reason": self.reason}


@dataclass(frozen=True)
class BatchReport:
    """The result of `fasterce.batch.explain`.

    Attributes
    ----------
    output : str
        The folder written.
    counts : BatchCounts
        Counts over all finished shards; `counts.summary` is that of `fasterce.io`.
    rows : int
        Rows of the input, those of failed shards included.
    shards, resumed : int
        Shards, and how many of them an earlier run had finished.
    failed : tuple of ShardFailure
        Shards that could not be explained; empty if the output is complete.
    retried : int
        How often a shard was tried again.
    seconds, workers, backend
        Time of this run, the number of workers and what ran them.
    group : str or None
        The column by whose values cost is summed up.
    about : mapping
        What the report is based on: files, digests, options.
    """

    output: str
    counts: BatchCounts
    rows: int
    shards: int
    resumed: int
    failed: tuple[ShardFailure, ...]
    retried: int
    seconds: float
    workers: int
    backend: str
    group: str | None = None
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every row of the input is in the output."""
        return not self.failed

    @property
    def found(self) -> int:
        """Rows with at least one counterfactual."""
        return self.counts.summary.found

    def __str__(self) -> str:
        summary = self.counts.summary
        counts = ", ".join(f"{count:,} {word}" for word, count in summary.statuses.items()) or "none explained"
        text = f"{counted(self.rows, 'row')} in {counted(self.shards, 'shard')}, {self.seconds:,.1f} s: {counts}"
        text += f"; {self.counts.filtered:,} filtered out" if self.counts.filtered else ""
        text += f"; {self.resumed:,} shards were there already" if self.resumed else ""
        lost = sum(failure.rows for failure in self.failed)
        return text + (f"; {len(self.failed):,} shards with {lost:,} rows FAILED" if self.failed else "")

    def to_dict(self) -> JsonObject:
        """Return plain values for JSON.

        Returns
        -------
        dict
        """
        summary = self.counts.summary
        return {
            "complete": self.complete,
            "output": self.output,
            "rows": self.rows,
            "filtered": self.counts.filtered,
            "explained": summary.rows,
            "lines": summary.lines,
            "statuses": dict(summary.statuses),
            "without_recourse": _finite(self.counts.cost.without),
            "already_target": summary.statuses.get(ALREADY_TARGET, 0),
            "invalid_input": summary.statuses.get(INVALID_INPUT, 0),
            "cost": _costs(self.counts.cost),
            "group": self.group,
            "groups": {name: _costs(cost) for name, cost in self.counts.groups.items()},
            "changed": dict(summary.changed),
            "moved": self.counts.moved,
            "features_changed": dict(self.counts.sizes),
            "blocking": dict(self.counts.blocking),
            "calls": summary.calls,
            "model_rows": summary.model_rows,
            "backend": self.backend,
            "workers": self.workers,
            "seconds": round(self.seconds, 3),
            "worker_seconds": round(summary.seconds, 3),
            "shards": self.shards,
            "resumed": self.resumed,
            "retried": self.retried,
            "failed": [failure.to_dict() for failure in self.failed],
            "about": dict(self.about),
        }

    def to_json(self) -> str:
        """Return the report as JSON text.

        Returns
        -------
        str
        """
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"

    def to_html(self) -> str:
        """Return a self-contained page: totals, what changes most, cost by group, rows without recourse and why.

        Returns
        -------
        str
            HTML.
        """
        formatting = {"cut": cut, "measure": measure, "number": number, "percent": percent, "text": text}
        part = templates.macros("batch.html.j2", **formatting)
        counts, lost = self.counts, sum(one.rows for one in self.failed)
        others = {"filtered out": counts.filtered, "in shards that failed": lost}
        statuses = [*counts.summary.statuses.items(), *((name, count) for name, count in others.items() if count)]
        sections = [("At a glance", part.glance(self, NOTICE))]
        if self.failed:
            sections.append(("Shards that failed", part.failed(self)))
        sections.append(("What became of the rows", part.bars("status", statuses)))
        if counts.cost.found:
            sizes = sorted(counts.sizes.items(), key=lambda one: int(one[0]))
            sections += [
                ("What changes most", part.changes(self)),
                ("How many features change", part.bars("features", sizes)),
            ]
        if counts.groups:
            sections.append((f"Cost by {text(self.group)}", part.groups(self)))
        if counts.blocking:
            sections.append(("Constraints that block", part.bars("constraint", list(counts.blocking.items()))))
        about = [(name, text(value)) for name, value in self.about.items()]
        sections += [("Time and model calls", part.work(self)), ("What it is based on", templates.part("definitions", about))]
        return html.page("What would have had to be different?", sections)


def provenance(opened: OpenedExplainer, model: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Return what counterfactuals are based on, for people."""
    explainer = opened.explainer
    given = {name: value for name, value in options.items() if value not in (None, [], {}, ()) and name != "constraints"}
    constraints = [constraint.text for constraint in (*explainer.schema_.constraints, *options.get("constraints", ()))]
    about = {
        "model": f"{model} ({opened.model_digest or 'no digest'})",
        "artifact": artifact.digest(explainer),
        "seed": str(explainer.random_state),
        "options": ", ".join(f"{name} {value}" for name, value in given.items()),
        "constraints": "; ".join(constraints),
    }
    return {name: text for name, text in about.items() if text}


def _costs(cost: RecourseCost) -> JsonObject:
    return {
        "wanting": cost.wanting,
        "found": cost.found,
        "without_recourse": _finite(cost.without),
        "mean_distance": _finite(cost.mean),
        "plus_minus": _finite(cost.spread),
        "mean_features_changed": _finite(cost.features),
    }


def _finite(number: float) -> float | None:
    return float(f"{number:.9g}") if math.isfinite(number) else None
