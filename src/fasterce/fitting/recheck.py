"""Evaluate counterfactuals issued earlier again: which still hold, and a repaired one for those that do not.

A repair is the row nearest to the issued counterfactual that reaches the target and satisfies the constraints of the original
row. Only if there is none is the original row explained again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from fasterce.constraints.compile import CompiledConstraints
from fasterce.data.dtypes import plain, with_missing_rows
from fasterce.data.frames import as_pandas
from fasterce.errors import InputError
from fasterce.explanation import FOUND, INVALID_INPUT, MODEL_ERROR, Explanation
from fasterce.models.predictions import FAILED
from fasterce.models.predictor import ModelUsage, Predictor
from fasterce.options import defaults
from fasterce.search.plan import SearchPlan
from fasterce.search.target import AnyOther, Target, standing
from fasterce.typing import Floats, Indices, Mask, Objects
from fasterce.viz.grid import Displayable, Sheet

HOLDS = "holds"
REPAIRED = "repaired"
REPLACED = "replaced"
LOST = "lost"
NOT_NEEDED = "no_longer_needed"
METHODS = ("closest", "sparse", "realistic")
# A repair is one nearest counterfactual by each counterfactual's own method.
REPAIR_OPTIONS = tuple(defaults().keys() - {"method", "target", "n", "diversity", "diagnose"})


@dataclass(frozen=True)
class Rechecked(Displayable):
    """The result of `FasterCE.recheck`: one line per issued counterfactual, in order.

    Attributes
    ----------
    frame : DataFrame
        `query` (the index label of the row), `rank`, `method`, `status`, `holds` (whether the model still predicts the
        target for the issued counterfactual), `differs` (the features in which a repaired counterfactual differs from the
        issued one) and `reason`. `status` is "holds", "repaired" (near the issued one), "replaced" (explained again),
        "lost" (nothing found), "no_longer_needed" (the model predicts the target for the row itself), "invalid_input" or
        "model_error".
    counterfactuals : DataFrame
        The issued counterfactual if it holds, otherwise the repaired one; missing values if there is none.
    usage : ModelUsage
        Model calls and model rows, including those of repairs.
    seconds : float
        Time of `recheck`.
    """

    frame: pd.DataFrame
    counterfactuals: pd.DataFrame
    usage: ModelUsage
    seconds: float

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def holds(self) -> pd.Series:
        """Whether each counterfactual as issued still holds."""
        return self.frame["holds"]

    @property
    def status(self) -> pd.Series:
        """The status of each counterfactual."""
        return self.frame["status"]

    @property
    def counts(self) -> dict[str, int]:
        """The number of counterfactuals per status, the most frequent first."""
        return {str(word): int(count) for word, count in self.status.value_counts().items()}

    @property
    def _counted(self) -> str:
        return ", ".join(f"{count} {word}" for word, count in self.counts.items())

    def __repr__(self) -> str:
        cost = f"{self.usage.calls} calls, {self.usage.rows} model rows"
        return f"Rechecked({len(self)} counterfactuals: {self._counted or 'none'}; {cost})"

    def _sheet(self) -> Sheet:
        still = f"{int(self.holds.sum())} of {len(self)} counterfactuals still hold"
        cost = f"{self.usage.calls} calls of the model, {self.usage.rows} model rows, {self.seconds:.2f} s"
        shown = self.frame.set_index("query")
        shown = shown if shown["reason"].any() else shown.drop(columns="reason")
        return Sheet.from_frame(f"{still}: {self._counted}." if len(self) else f"{still}.", shown, (cost,))


@dataclass(frozen=True)
class Issued:
    """Counterfactuals as they were issued, one entry each.

    query    the position of the row in `rows`
    frame    the counterfactuals, with the columns of `rows`
    target   of each; `predicted` is the model's prediction for its row then (None where that is not known)
    options  those of `explain`
    """

    rows: pd.DataFrame
    query: Indices
    rank: Objects
    method: Objects
    frame: pd.DataFrame
    target: list[object]
    predicted: list[object]
    options: Mapping[str, Any]

    @classmethod
    def read(cls, result: object, rows: object, target: object, options: Mapping[str, Any]) -> "Issued":
        """Read the result of `explain`, or a table like its `to_frame()` with the rows and the target it was made for."""
        if isinstance(result, Explanation):
            if rows is not None or target is not None:
                raise InputError("fitting.rows_of_explanation")
            result = result.in_pandas()
            lines, frame, query = result.to_frame(), result.rows, np.asarray(result.arrays.query)
            targets, predicted = ([series.iloc[k] for k in query] for series in (result.target, result.prediction))
            options = {**result.options, **options}
        else:
            lines = as_pandas(result, "result")
            if rows is None or target is None:
                raise InputError("fitting.table_without_rows")
            frame = as_pandas(rows, "rows")
            query = _positions(lines, frame)
            targets, predicted = [target] * len(lines), [None] * len(lines)
            options = {"target": target, **options}
        rank, method = (_column(lines, frame, name).to_numpy(dtype=object) for name in ("rank", "method"))
        missing = [name for name in frame.columns if name not in lines.columns]
        if missing:
            raise InputError("fitting.table_columns", column=missing[0])
        return cls(frame, query, rank, method, lines[list(frame.columns)], targets, predicted, options)


def _column(lines: pd.DataFrame, rows: pd.DataFrame, name: str) -> pd.Series:
    ours = f"{name}_" if name in rows.columns else name
    if ours not in lines.columns:
        raise InputError("fitting.result_columns", column=ours)
    return lines[ours]


def _positions(lines: pd.DataFrame, rows: pd.DataFrame) -> Indices:
    if rows.index.has_duplicates:
        raise InputError("fitting.repeated_index", option="rows")
    labels = _column(lines, rows, "query")
    found = np.asarray(rows.index.get_indexer(pd.Index(labels)), dtype=np.intp)
    if (found < 0).any():
        raise InputError("fitting.unknown_query", received=plain(labels.iloc[int((found < 0).argmax())]))
    return found


def _positions_of(labels: list[object], predictor: Predictor) -> Indices:
    """Return the position of each label among the classes, -1 for other labels."""
    known = {label: place for place, label in enumerate(predictor.classes)}
    numbers = predictor.numbers is not None
    return np.array([-1 if numbers or label is None else known.get(label, -1) for label in labels], dtype=np.intp)


class Verdicts:
    """What is known so far about each counterfactual issued."""

    def __init__(self, issued: Issued, predictor: Predictor, target: Target) -> None:
        table = predictor.table
        own, given = table.read(issued.rows), table.read(issued.frame)
        count = len(issued.query)
        self.issued, self.predictor = issued, predictor
        self.before, self.after = own.codes[issued.query], given.codes
        if isinstance(target, AnyOther) and None in issued.predicted:
            raise InputError("fitting.prediction_needed")
        self.target = target
        self.wanted = _positions_of(issued.target, predictor)
        self.goal = standing(target, np.maximum(self.wanted, 0), _positions_of(issued.predicted, predictor))
        self.now = self.after.copy()
        self.status, self.reason = np.full((2, count), "", dtype=object)
        self.holds = np.zeros(count, dtype=bool)
        for k in range(count):
            problem = given.problems.get(k) or own.problems.get(int(issued.query[k]))
            if problem is not None:
                self.status[k], self.reason[k] = INVALID_INPUT, problem.text()

    @property
    def open(self) -> Indices:
        return np.flatnonzero(self.status == "")

    def confirmed(self, lines: Indices, codes: Floats) -> tuple[Mask, Mask]:
        """Return whether `codes`, as they would be returned for the rows of these lines, reach the target, and whether the
        model returned a prediction."""
        frame = self.predictor.table.as_returned(self.issued.rows, self.issued.query[lines], self.before[lines], codes)
        predictions = self.predictor.verify(frame, self.target.raw)
        return self.target.confirmed(self.goal, predictions, lines), predictions.classes != FAILED

    def evaluate_again(self) -> None:
        """Evaluate rows and counterfactuals in one call."""
        lines = self.open
        _, first, of_line = np.unique(self.issued.query[lines], return_index=True, return_inverse=True)
        evaluated = np.concatenate([lines[first], lines])
        right, known = self.confirmed(evaluated, np.concatenate([self.before[lines[first]], self.after[lines]]))
        own, given = right[: len(first)][of_line], right[len(first) :]
        self.holds[lines] = given
        self.status[lines[given]] = HOLDS
        failed = ~known[: len(first)][of_line] | ~known[len(first) :]
        self.status[lines[failed]], self.reason[lines[failed]] = MODEL_ERROR, str(self.predictor.error())
        self.status[lines[own & ~failed]] = NOT_NEEDED

    def accept(self, lines: Indices, codes: Floats, word: str, constraints: CompiledConstraints) -> None:
        """Keep repairs that the constraints of the original rows allow and the model confirms."""
        domain, blocked = constraints.domain(self.before[lines])
        legal = domain.contains(codes[:, None])[:, 0]
        legal[list(blocked)] = False
        lines, codes = lines[legal], codes[legal]
        if len(lines):
            confirmed, _ = self.confirmed(lines, codes)
            self.now[lines[confirmed]] = codes[confirmed]
            self.status[lines[confirmed]], self.reason[lines[confirmed]] = word, ""


def recheck(issued: Issued, predictor: Predictor, plan: SearchPlan, explain: Callable[..., Explanation]) -> Rechecked:
    """Evaluate issued counterfactuals and repair those that fail; `plan` are the options they were issued with."""
    started = perf_counter()
    verdicts = Verdicts(issued, predictor, plan.target)
    options = {name: value for name, value in issued.options.items() if name in REPAIR_OPTIONS}
    spent = ModelUsage()
    if verdicts.open.size:
        verdicts.evaluate_again()
    for word, start_from in ((REPAIRED, issued.frame), (REPLACED, issued.rows.iloc[issued.query])):
        for lines, method in _groups(verdicts, word):
            place = verdicts.wanted[lines[0]]
            target = predictor.classes[place] if place >= 0 else issued.options["target"]
            found = explain(start_from.iloc[lines].reset_index(drop=True), method, target=target, **options)
            spent += found.usage
            best = np.flatnonzero(found.arrays.rank == 0)
            verdicts.reason[lines] = found.reason.where(found.status != FOUND, "").to_numpy()
            verdicts.accept(lines[found.arrays.query[best]], found.arrays.codes[best], word, plan.constraints)
    verdicts.status[verdicts.open] = LOST
    return _result(verdicts, predictor.usage + spent, perf_counter() - started)


def _groups(verdicts: Verdicts, word: str) -> list[tuple[Indices, str]]:
    """Return open lines by target class and method; a repair of a realistic counterfactual is the closest one."""
    method = np.array([str(name) if name in METHODS else "closest" for name in verdicts.issued.method], dtype=object)
    if word == REPAIRED:
        method[method == "realistic"] = "closest"
    groups = []
    for target in np.unique(verdicts.wanted[verdicts.open]):
        for name in METHODS:
            lines = verdicts.open[(verdicts.wanted[verdicts.open] == target) & (method[verdicts.open] == name)]
            groups += [(lines, name)] if len(lines) else []
    return groups


def _result(verdicts: Verdicts, usage: ModelUsage, seconds: float) -> Rechecked:
    issued, table = verdicts.issued, verdicts.predictor.table
    names = np.array(table.schema.names, dtype=object)
    usable = np.flatnonzero(verdicts.holds | np.isin(verdicts.status, [REPAIRED, REPLACED]))
    rows = issued.rows.iloc[issued.query[usable]]
    typed = table.rewrite(rows, verdicts.before[usable], verdicts.now[usable]).reset_index(drop=True)
    frame = pd.DataFrame(
        {
            "query": issued.rows.index.take(issued.query),
            "rank": issued.rank,
            "method": issued.method,
            "status": verdicts.status,
            "holds": verdicts.holds,
            "differs": [list(names[was != now]) for was, now in zip(verdicts.after, verdicts.now, strict=True)],
            "reason": verdicts.reason,
        }
    )
    return Rechecked(frame, with_missing_rows(typed, usable, frame.index), usage, seconds)
