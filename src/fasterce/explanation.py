"""The result of `FasterCE.explain`: one record per row, in order, and the verified counterfactuals."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial, reduce
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.data.dtypes import with_missing_rows
from fasterce.data.frames import as_kind, as_series
from fasterce.data.table import Table
from fasterce.data.value_types import as_text
from fasterce.errors import InputError, Problem, make_problem
from fasterce.models.predictions import FAILED
from fasterce.models.predictor import ModelUsage
from fasterce.typing import Floats, Indices, Objects, TableKind

FOUND = "found"
ALREADY_TARGET = "already_target"
NONE_FOUND = "none_found"
INVALID_INPUT = "invalid_input"
MODEL_ERROR = "model_error"
STOPPED = "stopped"
SERIES = ("status", "reason", "prediction", "target", "score")
SCORED = ("score", "chance")
MEASURED = ("nn_ratio", "robust", "ensemble_agreement")
# Decimals of a probability: more would depend on how many rows a model evaluates at once.
CHANCE_DECIMALS = 4
MOST_PLACES = 15


@dataclass(frozen=True)
class CompiledUsage:
    """Use of a compiled model.

    Parameters
    ----------
    kind : str
        How it was compiled.
    agreement : float
        Share of rows for which it predicts the same class as the model.
    calls, rows : int
        Calls of it, and rows it evaluated.
    """

    kind: str
    agreement: float
    calls: int
    rows: int


@dataclass(frozen=True)
class Change:
    """A change of one feature.

    Attributes
    ----------
    feature : hashable
        The column.
    before, after : object
        The value in the row and in the counterfactual; None if it is missing.
    against : bool
        Whether the change is against the person's interest (`Feature.preferred`).
    decimals : int or None
        Decimals of numbers in the text; more are shown if both numbers would look the same.
    """

    feature: Any
    before: Any
    after: Any
    against: bool = False
    decimals: int | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        places = self.decimals
        numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (self.before, self.after))
        if places is None or not numbers:
            before, after = (_or_missing(value) for value in (self.before, self.after))
            return f"{self.feature} {before} -> {after}"
        while round(self.before, places) == round(self.after, places) and places < MOST_PLACES:
            places += 1
        return f"{self.feature} {round(self.before, places):.15g} -> {round(self.after, places):.15g}"

    def to_dict(self, convert: Callable[[Any], Any] = lambda value: value) -> dict[str, Any]:
        """Return {"feature": …, "from": …, "to": …}, with "against": true where it is; `convert` is for both values."""
        found = {"feature": self.feature, "from": convert(self.before), "to": convert(self.after)}
        return found | {"against": True} if self.against else found

    @classmethod
    def of(cls, table: Table, j: int, before: float, after: float) -> "Change":
        """Return the change of the feature at position `j` between two codes.

        Parameters
        ----------
        table : Table
            Converts codes to values.
        j : int
            Position of the feature.
        before, after : float
            Codes.

        Returns
        -------
        Change
        """
        feature = table.schema.features[j]
        against = feature.is_against(before, after)
        return cls(feature.name, table.value(j, before), table.value(j, after), against, feature.decimals)


@dataclass(frozen=True)
class BlockingConstraint:
    """A constraint that prevents a counterfactual.

    Parameters
    ----------
    text : str
        The constraint as a sentence, with its origin in parentheses.
    origin : str
        Where it was stated: the schema or an option of `explain`.
    columns : tuple
        The columns it is about.
    """

    text: str
    origin: str
    columns: tuple[Hashable, ...]


@dataclass(frozen=True)
class Infeasibility:
    """Why a query has no counterfactual.

    Parameters
    ----------
    blocking : tuple of BlockingConstraint
        One if lifting it is enough, several if only all together.
    unlocked : tuple of Change
        A counterfactual without these constraints, verified by the model.
    constrained : bool
        Whether there were any constraints to lift.
    progress : float, optional
        How far the best attempt within the constraints came, from 0 to 1 (the decision boundary); None without scores.
    proven : bool, default False
        Whether there is none: all combinations of the values the query may take were evaluated.
    edits : int, default 0
        Number of single changes scored during the search, if it was made with an exact scorer.
    """

    blocking: tuple[BlockingConstraint, ...]
    unlocked: tuple[Change, ...]
    constrained: bool
    progress: float | None
    proven: bool = False
    edits: int = 0

    @property
    def searched(self) -> str:
        """What was tried, as text."""
        if self.proven:
            return make_problem("search.proven").text()
        if self.edits:
            return make_problem("search.searched_edits", count=self.edits).text()
        return make_problem("search.searched_samples").text()

    @property
    def problems(self) -> list[Problem]:
        """The same as problems, which render as text."""
        changes = ", ".join(str(change) for change in self.unlocked)
        blocking = " and ".join(f"'{constraint.text}'" for constraint in self.blocking)
        found = [make_problem("search.proven")] if self.proven else []
        if not self.unlocked:
            found += [make_problem("search.nothing_without_constraints")] if self.constrained else []
        elif not self.blocking:
            found.append(make_problem("search.found_by_wider_search", changes=changes))
        else:
            code = "search.blocked_by_one" if len(self.blocking) == 1 else "search.blocked_by_several"
            found.append(make_problem(code, blocking=blocking, changes=changes))
        if self.progress is not None:
            percent = round(100 * min(max(self.progress, 0.0), 0.99))
            found.append(make_problem("search.best_attempt", progress=percent))
        return found


def _or_missing(value: object) -> str:
    return "missing" if value is None else as_text(value)


@dataclass(frozen=True)
class CounterfactualArrays:
    """Verified counterfactuals as parallel arrays, one entry each, sorted by query and rank.

    Values that were not measured are NaN.

    Parameters
    ----------
    query : ndarray of int
        Position of the explained row.
    rank : ndarray of int
        Position among the counterfactuals of the row, 0 for the best.
    method : ndarray of str
        The method that found it.
    before, codes : ndarray of float, shape (counterfactuals, features)
        The row and the counterfactual, as codes of the table.
    distance : ndarray of float
        Distance between them.
    score : ndarray of float
        Probability or number the model predicts for it, where the target is an interval.
    chance : ndarray of float
        Probability of the class the model predicts for it, as verified or by the compiled model, to four decimals.
    nn_ratio : ndarray of float
        Distance to the nearest known row of the target, relative to the usual distance between such rows.
    robust, ensemble_agreement : ndarray of float
        Shares of noisy copies and of refitted models for which the target is still predicted.
    predicted : ndarray of int
        Position of the class the model predicts for it.
    probabilities : ndarray of float, shape (counterfactuals, classes)
        Probabilities the model predicts for it; no columns if unknown.
    origin : ndarray of str
        Where the search started that found it: "latent" (a walk in the latent space), "edits" (changes of single features
        and sets of them) or "examples" (known rows); one also reached from edits counts as "edits".
    """

    query: NDArray[np.intp]
    rank: NDArray[np.intp]
    method: Objects
    before: Floats
    codes: Floats
    distance: Floats
    score: Floats = field(default_factory=lambda: np.zeros(0))
    chance: Floats = field(default_factory=lambda: np.zeros(0))
    nn_ratio: Floats = field(default_factory=lambda: np.zeros(0))
    robust: Floats = field(default_factory=lambda: np.zeros(0))
    ensemble_agreement: Floats = field(default_factory=lambda: np.zeros(0))
    predicted: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    probabilities: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    origin: Objects = field(default_factory=lambda: np.zeros(0, dtype=object))

    def __post_init__(self) -> None:
        count = len(self.query)
        for name in (*SCORED, *MEASURED):
            self._fill(name, np.nan, count)
        self._fill("predicted", FAILED, count)
        self._fill("origin", "edits", count)
        if len(self.probabilities) != count:
            object.__setattr__(self, "probabilities", np.zeros((count, 0)))

    def _fill(self, name: str, value: object, count: int) -> None:
        values = getattr(self, name)
        if len(values) != count:
            object.__setattr__(self, name, np.full(count, value, dtype=values.dtype))

    def __len__(self) -> int:
        return len(self.query)

    def without(self, rows: NDArray[np.intp]) -> "CounterfactualArrays":
        """Return the counterfactuals of all rows but the given ones."""
        return self.where(~np.isin(self.query, rows)) if rows.size else self

    def first(self, n: int) -> "CounterfactualArrays":
        """Return the first n counterfactuals per row and method."""
        names, method = np.unique(self.method.astype(str), return_inverse=True)
        key = self.query * max(len(names), 1) + method
        order = np.argsort(key, kind="stable")
        turn = np.empty(len(key), dtype=np.intp)
        turn[order] = np.arange(len(key)) - np.searchsorted(key[order], key[order])
        return self.where(turn < n)

    def with_share(self, name: Literal["robust", "ensemble_agreement"], share: Floats) -> "CounterfactualArrays":
        """Return the same with the measured share of a robustness check."""
        return replace(self, robust=share) if name == "robust" else replace(self, ensemble_agreement=share)

    def with_predictions(self, predicted: Indices, probabilities: Floats | None) -> "CounterfactualArrays":
        """Return the same with the class positions, and the probabilities if known, that the model predicts."""
        known = np.zeros((0, 0)) if probabilities is None else probabilities
        return replace(self, predicted=predicted, probabilities=known)

    def with_chances(self, probabilities: Floats) -> "CounterfactualArrays":
        """Return the same with the probability of each predicted class, given those of all classes."""
        known = self.predicted != FAILED
        own = probabilities[np.arange(len(self)), np.where(known, self.predicted, 0)]
        return replace(self, chance=np.where(known, np.round(own, CHANCE_DECIMALS), np.nan))

    def where(self, kept: NDArray[np.bool_]) -> "CounterfactualArrays":
        """Return some of the counterfactuals, with new ranks."""
        return CounterfactualArrays._ranked({name: values[kept] for name, values in self.__dict__.items()})

    @classmethod
    def _ranked(cls, arrays: dict[str, NDArray[Any]]) -> "CounterfactualArrays":
        """Number the counterfactuals of each query, which are sorted by query."""
        query = arrays["query"]
        return cls(**arrays | {"rank": np.arange(len(query)) - np.searchsorted(query, query)})

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Which features each counterfactual changes, shape (counterfactuals, features)."""
        return np.asarray(self.before != self.codes)

    @classmethod
    def merge(
        cls, parts: Sequence["CounterfactualArrays"], methods: Sequence[Objects] | None = None
    ) -> "CounterfactualArrays":
        """Join parts, sorted by query, then in the order of the parts; `methods` replaces the methods of each part."""
        if len(parts) == 1 and methods is None:
            return parts[0]
        names = parts[0].__dict__.keys() - {"probabilities"}
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        widths = {part.probabilities.shape[1] for part in parts if len(part)}
        alike = [part.probabilities for part in parts if len(part)] if len(widths) == 1 else []
        joined["probabilities"] = np.concatenate(alike) if alike else np.zeros((len(joined["query"]), 0))
        if methods is not None:
            joined["method"] = np.concatenate(methods)
        order = np.argsort(joined["query"], kind="stable")
        return cls._ranked({name: values[order] for name, values in joined.items()})


class _OnFirstRead:
    """An attribute that may be set to a `partial`, which is called when the attribute is first read."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: object, kind: type | None = None) -> Any:
        if owner is None:
            return self
        value = owner.__dict__[self.name]
        if isinstance(value, partial):
            value = owner.__dict__[self.name] = value()
        return value

    def __set__(self, owner: object, value: object) -> None:
        owner.__dict__[self.name] = value


def _made_on_first_read(kind: type[Any]) -> type[Any]:
    """Let the columns of an explanation be given as partials: most callers read a few of them only."""
    for name in SERIES:
        setattr(kind, name, _OnFirstRead(name))
    return kind


@_made_on_first_read
@dataclass(frozen=True)
class Explanation:
    """The result of `FasterCE.explain`: one record per row, in order.

    Parameters
    ----------
    rows : DataFrame
        The explained rows.
    status : Series of str
        "found", "already_target", "none_found", "stopped" (by the budget or deadline), "invalid_input" or "model_error".
    reason : Series of str
        Why a row has no counterfactual, or a note on those it has; else empty.
    prediction : Series
        What the model predicts for each row; missing if the model failed.
    target : Series
        The class or interval wanted for each row.
    arrays : CounterfactualArrays
        The counterfactuals as arrays; see `to_frame` and `counterfactuals` for tables.
    table : Table
        Converts the codes of `arrays` to values.
    usage : ModelUsage
        Calls of the model and rows it evaluated.
    seconds : float
        Time of the call.
    notes : tuple of str
        Remarks on the whole result.
    compiled : CompiledUsage, optional
        Use of the compiled model, if there is one.
    score : Series, optional
        The probability or number predicted for each row, where the target is an interval; else missing.
    infeasible : dict of Infeasibility
        For rows without a counterfactual, by position: the blocking constraints, and a counterfactual without them.
    options : mapping
        The options of the call.
    cut_short : bool
        Whether the deadline had an effect: without it there might be other counterfactuals.
    problems : sequence of sequences of Problem
        The content of `reason` per row as problems.
    probabilities : ndarray, optional
        Probabilities predicted for each row, shape (rows, classes), if known.
    classes : tuple
        The classes of the model, empty for a model that predicts numbers.
    model : str
        The type of the model.
    constraints : tuple of str
        The constraints in force, as text.
    """

    rows: pd.DataFrame
    status: pd.Series
    reason: pd.Series
    prediction: pd.Series
    target: pd.Series
    arrays: CounterfactualArrays
    table: Table
    usage: ModelUsage
    seconds: float
    notes: tuple[str, ...] = field(default=())
    compiled: CompiledUsage | None = None
    score: pd.Series | None = None
    infeasible: dict[int, Infeasibility] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    cut_short: bool = False
    problems: Sequence[Sequence[Problem]] = ()
    probabilities: Floats | None = None
    classes: tuple[Hashable, ...] = ()
    model: str = ""
    constraints: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def in_pandas(self) -> "Explanation":
        """Return the same result with pandas tables.

        Returns
        -------
        Explanation
        """
        return self

    @cached_property
    def counterfactuals(self) -> pd.DataFrame:
        """The best counterfactual per row, with the columns, dtypes and index of `rows`; missing values where there is none.

        If some rows have none, integers and booleans become the nullable types `Int64` and `boolean`.
        """
        best = np.flatnonzero(self.arrays.rank == 0)
        return with_missing_rows(self._typed(best), self.arrays.query[best], self.rows.index)

    def to_frame(self) -> pd.DataFrame:
        """Return all counterfactuals as a table, one line each.

        Returns
        -------
        DataFrame
            `query` (index label of the row), `rank`, `method`, `origin` (where the search started that found it: latent,
            edits or examples; one also reached from edits counts as edits), `n_changed`, `changed`, `against` (the
            columns changed against the person's interest, if the schema has preferred directions), `distance`,
            `new_prediction` (what the model predicts for the counterfactual), those of `new_score` (its probability, or
            the number predicted),
            `nn_ratio`, `robust` and `ensemble_agreement` that were measured, then the columns of the counterfactual. If a
            column of the data has one of these names, an underscore is appended to ours.
        """
        every = np.arange(len(self.arrays))
        changes = self.all_changes()
        against = {"against": [[change.feature for change in one if change.against] for one in changes]}
        typed = self._typed(every).reset_index(drop=True)
        about = pd.DataFrame(
            {
                "query": self.rows.index.take(self.arrays.query),
                "rank": self.arrays.rank,
                "method": self.arrays.method,
                "origin": self.arrays.origin,
                "n_changed": self.arrays.changed.sum(axis=1),
                "changed": [[change.feature for change in one] for one in changes],
                **(against if self.table.schema.has_preferences else {}),
                "distance": self.arrays.distance,
                "new_prediction": pd.Series(self.new_prediction, dtype=object).infer_objects(),
                **self._measured(),
            }
        )
        about.columns = [f"{name}_" if name in typed.columns else name for name in about.columns]
        return pd.concat([about, typed], axis=1)

    def _measured(self) -> dict[str, Floats]:
        every = {"new_score": self.new_score} | {name: getattr(self.arrays, name) for name in MEASURED}
        scored = self.score is not None and bool(self.score.notna().any())
        return {
            name: values for name, values in every.items() if np.isfinite(values).any() or (name == "new_score" and scored)
        }

    @property
    def new_prediction(self) -> list[Any]:
        """What the model predicts for each counterfactual: a class, or a number; None if unknown."""
        if not self.classes:
            return [None if np.isnan(number) else number for number in self.arrays.score.tolist()]
        return [self.classes[place] if place >= 0 else None for place in self.arrays.predicted.tolist()]

    @property
    def new_score(self) -> Floats:
        """The score of each counterfactual: what the target is about (a probability or a number), else the probability of
        the class predicted; NaN if unknown."""
        return np.where(np.isfinite(self.arrays.score), self.arrays.score, self.arrays.chance)

    def changes(self, position: int) -> list[Change]:
        """Return the changes of one counterfactual, given its position in `to_frame`.

        Parameters
        ----------
        position : int
            Its position in `to_frame`.

        Returns
        -------
        list of Change
        """
        before, after = self.arrays.before[position], self.arrays.codes[position]
        return [Change.of(self.table, j, before[j], after[j]) for j in map(int, np.flatnonzero(before != after))]

    def all_changes(self) -> list[list[Change]]:
        """Return the changes of every counterfactual.

        Returns
        -------
        list of list of Change
            One list per line of `to_frame`, in its order.
        """
        arrays = self.arrays
        found: list[list[Change]] = [[] for _ in range(len(arrays))]
        line, feature = np.nonzero(arrays.changed)
        cells = (line, feature, arrays.before[line, feature], arrays.codes[line, feature])
        for k, j, before, after in zip(*(part.tolist() for part in cells), strict=True):
            found[k].append(Change.of(self.table, j, before, after))
        return found

    @classmethod
    def concatenate(cls, rows: pd.DataFrame, parts: Sequence["Explanation"], positions: Sequence[Indices]) -> "Explanation":
        """Join explanations of parts of the rows; `positions` are those of each part's rows.

        Parameters
        ----------
        rows : table
            All rows.
        parts : sequence of Explanation
        positions : sequence of array

        Returns
        -------
        Explanation
        """
        order = np.argsort(np.concatenate(positions), kind="stable")
        arrays = [replace(part.arrays, query=place[part.arrays.query]) for part, place in zip(parts, positions, strict=True)]
        series = {name: pd.concat([getattr(part, name) for part in parts]).iloc[order] for name in SERIES}
        problems = [problem for part in parts for problem in part.problems]
        known = [part.probabilities for part in parts if part.probabilities is not None]
        return replace(
            parts[0],
            rows=rows.copy(),
            **series,
            arrays=CounterfactualArrays.merge(arrays),
            usage=reduce(ModelUsage.__add__, (part.usage for part in parts)),
            seconds=sum(part.seconds for part in parts),
            infeasible={
                int(p[row]): one for part, p in zip(parts, positions, strict=True) for row, one in part.infeasible.items()
            },
            cut_short=any(part.cut_short for part in parts),
            problems=[problems[place] for place in order],
            probabilities=np.concatenate(known)[order] if len(known) == len(parts) else None,
        )

    def take(self, first: int, end: int) -> "Explanation":
        """Return the explanation of the rows from `first` up to `end`; its reasons name no row positions.

        Parameters
        ----------
        first, end : int
            Positions.

        Returns
        -------
        Explanation
        """
        some = slice(first, end)
        arrays = self.arrays.where((self.arrays.query >= first) & (self.arrays.query < end))
        problems = [[problem.without_row() for problem in one] for one in self.problems[some]]
        reason = [" ".join(problem.text() for problem in one) for one in problems] or self.reason.iloc[some]
        return replace(
            self,
            rows=self.rows.iloc[some],
            status=self.status.iloc[some],
            reason=pd.Series(reason, self.reason.index[some], dtype=object, name="reason"),
            prediction=self.prediction.iloc[some],
            target=self.target.iloc[some],
            score=None if self.score is None else self.score.iloc[some],
            arrays=replace(arrays, query=arrays.query - first),
            infeasible={row - first: one for row, one in self.infeasible.items() if first <= row < end},
            problems=problems,
            probabilities=None if self.probabilities is None else self.probabilities[some],
        )

    def of_row(self, position: int) -> list[int]:
        """Return the positions in `to_frame` of the counterfactuals of one row, best first.

        Parameters
        ----------
        position : int
            Position of the row.

        Returns
        -------
        list of int
        """
        return [int(k) for k in np.flatnonzero(self.arrays.query == position)]

    def beside(self, *others: "Explanation", labels: Sequence[str] | None = None) -> "Explanation":
        """Join explanations of the same rows into one.

        Parameters
        ----------
        *others : Explanation
            Explanations of the same rows.
        labels : sequence of str, optional
            Names for the column `method`, one per explanation, this one first.

        Returns
        -------
        Explanation
            The counterfactuals of all of them, in the order given.

        Raises
        ------
        InputError
            The explained rows differ.
        """
        every = (self, *others)
        named = None
        if labels:
            named = [np.full(len(one.arrays), label, dtype=object) for one, label in zip(every, labels, strict=True)]
        merged = CounterfactualArrays.merge([one.arrays for one in every], named)
        if any(not self.rows.equals(one.rows) for one in others):
            raise InputError("search.different_rows")
        found = np.any([one.status == FOUND for one in every], axis=0)
        return replace(
            self,
            status=self.status.mask(found, FOUND),
            reason=self.reason.mask(found, ""),
            arrays=merged,
            usage=reduce(ModelUsage.__add__, (one.usage for one in every)),
            seconds=sum(one.seconds for one in every),
            notes=_shortfalls(every, labels),
            options=_in_common([one.options for one in every]),
        )

    def _typed(self, positions: NDArray[np.intp]) -> pd.DataFrame:
        query = self.arrays.query[positions]
        part = self.rows if np.array_equal(query, np.arange(len(self.rows))) else self.rows.iloc[query]
        return self.table.rewrite(part, self.arrays.before[positions], self.arrays.codes[positions])

    def summary(self) -> dict[str, Any]:
        """Return counts and means: rows, rows per status, features changed, distance, calls, model rows and ms per row.

        Returns
        -------
        dict
        """
        best = self.arrays.rank == 0
        rows = len(self)
        return {
            "rows": rows,
            **self._counts,
            "features_changed": float(self.arrays.changed[best].sum(axis=1).mean()) if best.any() else float("nan"),
            "distance": float(self.arrays.distance[best].mean()) if best.any() else float("nan"),
            "calls": self.usage.calls,
            "model_rows_each": self.usage.rows / rows if rows else 0.0,
            "ms_each": 1000 * self.seconds / rows if rows else 0.0,
        }

    @property
    def _counts(self) -> dict[str, int]:
        return {str(word): int(count) for word, count in self.in_pandas().status.value_counts().items()}

    def to_json(self, path: str | PathLike[str] | None = None, *, indent: int | None = 2) -> str:
        """Return the result as JSON: one object per row, each with its counterfactuals and what they change.

        Parameters
        ----------
        path : path, optional
            A file to write it to as well.
        indent : int, optional
            Spaces of indentation; None for one line.

        Returns
        -------
        str
            JSON.
        """
        from fasterce.viz.json import to_json  # noqa: PLC0415 - only needed to write

        content = to_json(self, indent)
        if path is not None:
            Path(path).write_text(f"{content}\n", encoding="utf-8")
        return content

    def to_html(self, path: str | PathLike[str] | None = None, *, title: str | None = None, most: int = 20) -> str:
        """Return the result as one page: figures, a table of all rows to sort and filter, and the first rows in detail.

        Parameters
        ----------
        path : path, optional
            A file to write it to as well.
        title : str, optional
            The heading of the page.
        most : int, default=20
            Upper limit of the rows shown in detail.

        Returns
        -------
        str
            HTML.
        """
        from fasterce.viz.batch import page  # noqa: PLC0415

        content = page(self, most=most) if title is None else page(self, title=title, most=most)
        if path is not None:
            Path(path).write_text(content, encoding="utf-8")
        return content

    def plot(self, row: int | None = None) -> Any:
        """Draw the changes of one row, or for several rows how often each feature changes.

        Parameters
        ----------
        row : int, optional
            The position of a row; by default all rows, or the only one.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from fasterce.viz import plots  # noqa: PLC0415

        return plots.summary(self) if row is None and len(self) > 1 else plots.dumbbell(self, row or 0)

    @property
    def style(self) -> Any:
        """The table of `to_frame` as a pandas `Styler`: changed cells marked, numbers to the precision of their feature."""
        from fasterce.viz.styler import styled  # noqa: PLC0415

        return styled(self)

    def __str__(self) -> str:
        from fasterce.viz.terminal import render  # noqa: PLC0415 - only needed to display

        return render(self)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {word}" for word, count in self._counts.items())
        return f"Explanation({len(self)} rows: {counts or 'none'}; {self.usage.calls} calls, {self.usage.rows} model rows)"

    def __rich__(self) -> object:
        from fasterce.viz.terminal import tables  # noqa: PLC0415

        return tables(self)

    def _repr_html_(self) -> str:
        from fasterce.viz.html import fragment  # noqa: PLC0415

        return fragment(self)


def _in_common(options: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return the options that have the same value in all calls."""
    first, *others = options
    return {name: value for name, value in first.items() if all(repr(value) == repr(one.get(name, ...)) for one in others)}


def _shortfalls(explanations: Sequence[Explanation], labels: Sequence[str] | None) -> tuple[str, ...]:
    """Return a note per explanation that has rows without a counterfactual."""
    names = labels or [f"Explanation {k}" for k in range(1, len(explanations) + 1)]
    without = [int((one.status != FOUND).sum()) for one in explanations]
    return tuple(
        f"{name}: no counterfactual for {count} of {len(one)} rows"
        for name, count, one in zip(names, without, explanations, strict=True)
        if count
    )


@dataclass(frozen=True, repr=False)
class NativeExplanation(Explanation):
    """An explanation of rows in a table of another library than pandas.

    `rows`, `counterfactuals` and `to_frame()` are tables of the same kind as the explained rows; `status`, `reason`,
    `prediction`, `target` and `score` are columns of that kind. `in_pandas()` returns the same in pandas.

    Attributes
    ----------
    kind : str
        The kind of table: "polars" or "pyarrow".
    original : Explanation
        The same with pandas tables.
    """

    kind: TableKind = "pandas"
    original: Explanation | None = None

    def in_pandas(self) -> Explanation:
        """Return the same result with pandas tables.

        Returns
        -------
        Explanation
        """
        assert self.original is not None
        return self.original

    @cached_property
    def counterfactuals(self) -> Any:
        """The best counterfactual per row, null where there is none."""
        return as_kind(self.in_pandas().counterfactuals, self.kind)

    def to_frame(self) -> Any:
        """Return all counterfactuals as a table, one line each.

        Returns
        -------
        table
            As `Explanation.to_frame`, except that `query` is the position of the row.
        """
        return as_kind(self.in_pandas().to_frame(), self.kind)

    def beside(self, *others: Explanation, labels: Sequence[str] | None = None) -> Explanation:
        """Join explanations of the same rows into one, as `Explanation.beside` does.

        Parameters
        ----------
        *others : Explanation
            Explanations of the same rows.
        labels : sequence of str, optional
            Names for the column `method`, one per explanation, this one first.

        Returns
        -------
        Explanation
        """
        return as_given(self.in_pandas().beside(*(one.in_pandas() for one in others), labels=labels), self.kind)


def as_given(found: Explanation, kind: TableKind) -> Explanation:
    """Return an explanation with tables of the given kind."""
    if kind == "pandas":
        return found
    content = {field.name: getattr(found, field.name) for field in fields(Explanation)}
    content |= {name: as_series(content[name], kind) for name in SERIES if content[name] is not None}
    return NativeExplanation(**content | {"rows": as_kind(found.rows, kind)}, kind=kind, original=found)
