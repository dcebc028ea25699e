"""What comes back: one record for every row that went in, in order, and the counterfactuals that were verified."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.errors import InputError
from fasterce.predictor import Asked
from fasterce.profile import Floats
from fasterce.table import Table, with_gaps

FOUND = "found"
ALREADY_TARGET = "already_target"
NONE_FOUND = "none_found"
INVALID_INPUT = "invalid_input"
MODEL_ERROR = "model_error"
STOPPED = "stopped"
MEASURED = ("score", "nn_ratio", "robust", "survived")


@dataclass(frozen=True)
class TwinUse:
    """How a compiled twin of the model was used: calls and rows asked of it, and how often it agrees with the model."""

    kind: str
    agreement: float
    calls: int
    rows: int


@dataclass(frozen=True)
class Change:
    """One feature of one counterfactual, as plain values."""

    feature: Any
    before: Any
    after: Any


def _or_missing(value: Any) -> Any:
    return "missing" if value is None else value


@dataclass(frozen=True)
class Refusal:
    """Why a row has no answer.

    blocking   the rules that stand in the way: one if lifting it is enough, several if only all together
    unlocked   what would have to change then, confirmed by the model
    ruled      whether there were any rules to lift
    progress   how far the best try within the rules came, from 0 (nowhere) to 1 (the boundary); None without scores
    """

    blocking: tuple[str, ...]
    unlocked: tuple[Change, ...]
    ruled: bool
    progress: float | None

    @property
    def sentences(self) -> list[str]:
        """The same for a person to read."""
        changes = ", ".join(f"{c.feature} {_or_missing(c.before)} -> {_or_missing(c.after)}" for c in self.unlocked)
        rules = " and ".join(f"'{rule}'" for rule in self.blocking)
        said = []
        if not self.unlocked:
            said += ["Nothing was found even without the rules."] if self.ruled else []
        elif not self.blocking:
            said.append(f"A search without the rules found one that breaks none of them: {changes}.")
        elif len(self.blocking) == 1:
            said.append(f"The rule {rules} stands in the way: without it, {changes} would do.")
        else:
            said.append(f"The rules {rules} stand in the way together: without them, {changes} would do.")
        if self.progress is not None:
            said.append(f"The best try came {min(max(self.progress, 0.0), 0.99):.0%} of the way.")
        return said


@dataclass(frozen=True)
class Answers:
    """Verified counterfactuals, best first within a row: parallel arrays, one entry a counterfactual.

    `query` is the position of the row explained, `codes` its counterfactual, `before` the row itself in codes. What was
    not measured is NaN: `score`, the chance or number the model gives it; `nn_ratio`, how far it is from the nearest known
    row with the wanted answer, relative to how far such rows are from each other; `robust`, the share of small shakes and
    `survived` the share of refitted models under which it holds.
    """

    query: NDArray[np.intp]
    rank: NDArray[np.intp]
    method: NDArray[Any]
    before: Floats
    codes: Floats
    distance: Floats
    score: Floats = field(default_factory=lambda: np.zeros(0))
    nn_ratio: Floats = field(default_factory=lambda: np.zeros(0))
    robust: Floats = field(default_factory=lambda: np.zeros(0))
    survived: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        for name in MEASURED:
            if len(getattr(self, name)) != len(self.query):
                object.__setattr__(self, name, np.full(len(self.query), np.nan))

    def __len__(self) -> int:
        return len(self.query)

    def without(self, rows: NDArray[np.intp]) -> "Answers":
        """The same, some rows left out."""
        return self.where(~np.isin(self.query, rows))

    def first(self, n: int) -> "Answers":
        """At most n of every method for every row."""
        names, method = np.unique(self.method.astype(str), return_inverse=True)
        key = self.query * max(len(names), 1) + method
        order = np.argsort(key, kind="stable")
        turn = np.empty(len(key), dtype=np.intp)
        turn[order] = np.arange(len(key)) - np.searchsorted(key[order], key[order])
        return self.where(turn < n)

    def with_share(self, name: Literal["robust", "survived"], share: Floats) -> "Answers":
        return replace(self, robust=share) if name == "robust" else replace(self, survived=share)

    def where(self, kept: NDArray[np.bool_]) -> "Answers":
        """Some of the answers, ranked anew."""
        some = {name: values[kept] for name, values in self.__dict__.items()}
        return Answers(**some | {"rank": np.arange(int(kept.sum())) - np.searchsorted(some["query"], some["query"])})

    @property
    def changed(self) -> NDArray[np.bool_]:
        return np.asarray(self.before != self.codes)

    @classmethod
    def merge(cls, parts: Sequence["Answers"], methods: Sequence[NDArray[Any]] | None = None) -> "Answers":
        """Row by row, in the order of the parts."""
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in parts[0].__dict__}
        if methods is not None:
            joined["method"] = np.concatenate(methods)
        order = np.argsort(joined["query"], kind="stable")
        sorted_ = {name: values[order] for name, values in joined.items()}
        return cls(**sorted_ | {"rank": np.arange(len(order)) - np.searchsorted(sorted_["query"], sorted_["query"])})


@dataclass(frozen=True)
class Explanation:
    """The result of `FasterCE.explain`.

    rows         the table that was explained
    status       one word a row: found, already_target, none_found, stopped (by a budget or deadline), invalid_input,
                 model_error
    reason       one sentence a row where nothing was found, or what is to be said about an answer; else empty
    prediction   what the model says of each row (missing where it could not be asked)
    target       the class wanted for each row
    asked        calls and rows asked of the model
    seconds      wall-clock time of the whole call
    score        what the model says of each row where a number was wanted: its chance or its prediction, else missing
    refusals     for rows without an answer, by their position: which rule stands in the way and what would do without it
    twin         how a compiled twin was asked instead, None where there is none
    options      the rules and prices it was asked with, as `explain` takes them
    cut_short    whether a deadline changed anything: without one there might be other answers
    """

    rows: pd.DataFrame
    status: pd.Series
    reason: pd.Series
    prediction: pd.Series
    target: pd.Series
    answers: Answers
    table: Table
    asked: Asked
    seconds: float
    notes: tuple[str, ...] = field(default=())
    twin: TwinUse | None = None
    score: pd.Series | None = None
    refusals: dict[int, Refusal] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    cut_short: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def in_pandas(self) -> "Explanation":
        """The same with pandas tables, whatever kind was explained."""
        return self

    @cached_property
    def counterfactuals(self) -> pd.DataFrame:
        """The best counterfactual of every row: columns, dtypes and index of `rows`, missing values where there is none.

        If some rows have none, whole numbers and booleans become pandas' nullable `Int64` and `boolean`.
        """
        best = np.flatnonzero(self.answers.rank == 0)
        return with_gaps(self._typed(best), self.answers.query[best], self.rows.index)

    def to_frame(self) -> pd.DataFrame:
        """Long form: one line a counterfactual with query (the row's index label), rank, method, n_changed, changed,
        distance, what else was measured (score, nn_ratio, robust, survived), then the counterfactual's columns. Where a
        table has a column of the same name, ours gets an underscore."""
        every = np.arange(len(self.answers))
        typed = self._typed(every).reset_index(drop=True)
        about = pd.DataFrame(
            {
                "query": self.rows.index.take(self.answers.query),
                "rank": self.answers.rank,
                "method": self.answers.method,
                "n_changed": self.answers.changed.sum(axis=1),
                "changed": [[change.feature for change in self.changes(int(k))] for k in every],
                "distance": self.answers.distance,
                **self._measured(),
            }
        )
        about.columns = [f"{name}_" if name in typed.columns else name for name in about.columns]
        return pd.concat([about, typed], axis=1)

    def _measured(self) -> dict[str, Floats]:
        every = {name: getattr(self.answers, name) for name in MEASURED}
        scored = self.score is not None and bool(self.score.notna().any())
        return {name: values for name, values in every.items() if np.isfinite(values).any() or (name == "score" and scored)}

    def changes(self, answer: int) -> list[Change]:
        """What one counterfactual (a line of `to_frame`) changes, from -> to."""
        before, after = self.answers.before[answer], self.answers.codes[answer]
        names = self.table.schema.names
        return [
            Change(names[j], self.table.value(j, before[j]), self.table.value(j, after[j]))
            for j in map(int, np.flatnonzero(before != after))
        ]

    def of_row(self, position: int) -> list[int]:
        """The lines of `to_frame` that belong to one row, best first."""
        return [int(k) for k in np.flatnonzero(self.answers.query == position)]

    def beside(self, *others: "Explanation", labels: Sequence[str] | None = None) -> "Explanation":
        """Explanations of the same rows as one: their answers side by side, in the order given.

        `labels` names each one in the method column, for instance by the feature it was allowed to change.
        """
        every = (self, *others)
        answers = [one.answers for one in every]
        names = (
            [np.full(len(part), label, dtype=object) for part, label in zip(answers, labels, strict=True)] if labels else None
        )
        merged = Answers.merge(answers, names)
        if any(not self.rows.equals(one.rows) for one in others):
            raise InputError("Explanations shown side by side must be of the same rows; got different ones.")
        found = np.any([one.status == FOUND for one in every], axis=0)
        return replace(
            self,
            status=self.status.mask(found, FOUND),
            reason=self.reason.mask(found, ""),
            answers=merged,
            asked=reduce(Asked.__add__, (one.asked for one in every)),
            seconds=sum(one.seconds for one in every),
            notes=_without_answer(every, labels),
            options=_in_common([one.options for one in every]),
        )

    def _typed(self, answers: NDArray[np.intp]) -> pd.DataFrame:
        part = self.rows.iloc[self.answers.query[answers]]
        return self.table.rewrite(part, self.answers.before[answers], self.answers.codes[answers])

    def summary(self) -> dict[str, Any]:
        """Counts and means worth a line: rows, found, features changed, distance, calls, rows asked, ms a row."""
        best = self.answers.rank == 0
        rows = len(self)
        return {
            "rows": rows,
            **{str(word): int(count) for word, count in self.status.value_counts().items()},
            "features_changed": float(self.answers.changed[best].sum(axis=1).mean()) if best.any() else float("nan"),
            "distance": float(self.answers.distance[best].mean()) if best.any() else float("nan"),
            "calls": self.asked.calls,
            "rows_asked_each": self.asked.rows / rows if rows else 0.0,
            "ms_each": 1000 * self.seconds / rows if rows else 0.0,
        }

    def __str__(self) -> str:
        from fasterce.display.terminal import render  # noqa: PLC0415 - looking is not needed for explaining

        return render(self)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {word}" for word, count in self.status.value_counts().items())
        return f"Explanation({len(self)} rows: {counts or 'none'}; {self.asked.calls} calls, {self.asked.rows} rows asked)"

    def __rich__(self) -> Any:
        from fasterce.display.terminal import tables  # noqa: PLC0415

        return tables(self)

    def _repr_html_(self) -> str:
        from fasterce.display.html import fragment  # noqa: PLC0415

        return fragment(self)


def _in_common(options: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What several calls were asked alike; what they were asked differently holds for none of their answers together."""
    first, *others = options
    return {name: value for name, value in first.items() if all(repr(value) == repr(one.get(name, ...)) for one in others)}


def _without_answer(explanations: Sequence[Explanation], labels: Sequence[str] | None) -> tuple[str, ...]:
    """A line for each explanation that left rows without an answer."""
    notes = []
    for k, one in enumerate(explanations):
        missing = int((one.status != FOUND).sum())
        if missing:
            name = labels[k] if labels else f"Explanation {k + 1}"
            notes.append(f"{name}: no answer for {missing} of {len(one)} rows")
    return tuple(notes)
