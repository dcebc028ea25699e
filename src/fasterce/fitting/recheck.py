"""Counterfactuals issued earlier, asked again: which still hold, and a repaired one for those that do not.

A repair keeps to what was promised: the nearest row to the issued counterfactual that flips and that the original row may
become. Only where there is none is the original row explained anew.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.display.sheet import Sheet, Shown
from fasterce.errors import InputError
from fasterce.explanation import FOUND, INVALID_INPUT, MODEL_ERROR, Explanation
from fasterce.frames import as_pandas
from fasterce.options import Wanted
from fasterce.predictor import FAILED, Asked, Predictor
from fasterce.profile import Floats
from fasterce.rules import Rules
from fasterce.table import with_gaps
from fasterce.targets import AnyOther, Target, standing

HOLDS = "holds"
REPAIRED = "repaired"
REPLACED = "replaced"
LOST = "lost"
NOT_NEEDED = "no_longer_needed"
METHODS = ("closest", "sparse", "realistic")
KEPT = (
    *("target_score", "features_to_vary", "permitted_range", "rules", "override", "reading", "step", "margin", "distance"),
    *("realism", "robust", "shake", "survive", "budget", "deadline"),
)

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Rechecked(Shown):
    """The result of `FasterCE.recheck`: one line a counterfactual issued, in order.

    frame            query (the row's index label), rank, method, status, holds, differs (the features in which a repaired
                     counterfactual is not the issued one), reason
    counterfactuals  what can be promised now: the issued one where it holds, the repaired one where not, missing values
                     where there is none
    asked, seconds   calls and rows asked of the model, repairs and all

    `status` is one of holds, repaired (near the issued one), replaced (explained anew), lost (nothing found),
    no_longer_needed (the row itself has the wanted answer now), invalid_input, model_error. `holds` says of every issued
    counterfactual whether the model still answers it with the wanted class.
    """

    frame: pd.DataFrame
    counterfactuals: pd.DataFrame
    asked: Asked
    seconds: float

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def holds(self) -> pd.Series:
        """Whether each answer as issued still holds."""
        return self.frame["holds"]

    @property
    def status(self) -> pd.Series:
        """One word an answer."""
        return self.frame["status"]

    @property
    def counts(self) -> dict[str, int]:
        """How many answers have each status, the commonest first."""
        return {str(word): int(count) for word, count in self.status.value_counts().items()}

    def __repr__(self) -> str:
        told = ", ".join(f"{count} {word}" for word, count in self.counts.items())
        return f"Rechecked({len(self)} answers: {told or 'none'}; {self.asked.calls} calls, {self.asked.rows} rows asked)"

    def _sheet(self) -> Sheet:
        still = f"{int(self.holds.sum())} of {len(self)} counterfactuals still hold"
        told = ", ".join(f"{count} {word}" for word, count in self.counts.items())
        cost = f"{self.asked.calls} calls of the model, {self.asked.rows} rows asked, {self.seconds:.2f} s"
        shown = self.frame.set_index("query")
        shown = shown if shown["reason"].any() else shown.drop(columns="reason")
        return Sheet(f"{still}: {told}." if told else f"{still}.", shown, (cost,))


@dataclass(frozen=True)
class Issued:
    """Counterfactuals as they were given out, one entry each.

    query    the position of the row in `rows`
    frame    the counterfactuals, with the columns of `rows`
    target   what was wanted of each, `said` what the model said of its row then (None where that is not known)
    options  those of `explain`
    """

    rows: pd.DataFrame
    query: Indices
    rank: NDArray[Any]
    method: NDArray[Any]
    frame: pd.DataFrame
    target: list[Any]
    said: list[Any]
    options: Mapping[str, Any]

    @classmethod
    def read(cls, result: Any, rows: Any, target: Any, options: Mapping[str, Any]) -> "Issued":
        result, rows = as_pandas(result), as_pandas(rows, "rows")
        if isinstance(result, Explanation):
            result = result.in_pandas()
            if rows is not None or target is not None:
                raise InputError("rows and target must be None for an Explanation, which holds them; got one of them.")
            lines = result.to_frame()
            wanted, said = ([series.iloc[k] for k in result.answers.query] for series in (result.target, result.prediction))
            query = np.asarray(result.answers.query)
            return cls._of(lines, result.rows, query, wanted, said, {**result.options, **options})
        if not isinstance(result, pd.DataFrame):
            raise InputError(f"result must be an Explanation or a table from its to_frame(); got {type(result).__name__}.")
        if not isinstance(rows, pd.DataFrame) or target is None:
            raise InputError("A table of counterfactuals must come with rows= (as explained) and target=; got one without.")
        unknown = [None] * len(result)
        query = _positions(result, rows)
        return cls._of(result, rows, query, [target] * len(result), unknown, {"target": target, **options})

    @classmethod
    def _of(
        cls, lines: pd.DataFrame, rows: pd.DataFrame, query: Indices, target: list[Any], said: list[Any], options: Any
    ) -> "Issued":
        about = {name: _column(lines, rows, name).to_numpy(dtype=object) for name in ("rank", "method")}
        missing = [name for name in rows.columns if name not in lines.columns]
        if missing:
            raise InputError(f"A table of counterfactuals must have the columns of rows; {missing[0]!r} is missing.")
        return cls(rows, query, about["rank"], about["method"], lines[list(rows.columns)], target, said, options)


def _column(lines: pd.DataFrame, rows: pd.DataFrame, name: str) -> pd.Series:
    ours = f"{name}_" if name in rows.columns else name
    if ours not in lines.columns:
        raise InputError(f"A table of counterfactuals must have the columns of Explanation.to_frame(); {ours!r} is missing.")
    return lines[ours]


def _positions(lines: pd.DataFrame, rows: pd.DataFrame) -> Indices:
    if rows.index.has_duplicates:
        raise InputError("rows must have a unique index to be found by a table's query column; got labels more than once.")
    labels = _column(lines, rows, "query")
    found = np.asarray(rows.index.get_indexer(pd.Index(labels)), dtype=np.intp)
    if (found < 0).any():
        raise InputError(
            f"query must name rows by their index; got {labels.iloc[int((found < 0).argmax())]!r}, which rows has not."
        )
    return found


def _positions_of(labels: list[Any], predictor: Predictor) -> Indices:
    """Where each label stands among the classes, -1 for what is none of them."""
    known = {label: place for place, label in enumerate(predictor.classes)}
    numbers = predictor.numbers is not None
    return np.array([-1 if numbers or label is None else known.get(label, -1) for label in labels], dtype=np.intp)


class Books:
    """One line an answer: what was found out about it so far."""

    def __init__(self, issued: Issued, predictor: Predictor, target: Target) -> None:
        table = predictor.table
        own, given = table.read(issued.rows), table.read(issued.frame)
        count = len(issued.query)
        self.issued, self.predictor = issued, predictor
        self.before, self.after = own.codes[issued.query], given.codes
        if isinstance(target, AnyOther) and None in issued.said:
            raise InputError(
                "Answers wanting any other class must come as the Explanation, which knows what was said before."
            )
        self.target = target
        self.wanted = _positions_of(issued.target, predictor)
        self.goal = standing(target, np.maximum(self.wanted, 0), _positions_of(issued.said, predictor))
        self.now = self.after.copy()
        self.status = np.full(count, "", dtype=object)
        self.reason = np.full(count, "", dtype=object)
        self.holds = np.zeros(count, dtype=bool)
        for k in range(count):
            sentence = given.problems.get(k) or own.problems.get(int(issued.query[k]))
            if sentence:
                self.status[k], self.reason[k] = INVALID_INPUT, sentence

    @property
    def open(self) -> Indices:
        return np.flatnonzero(self.status == "")

    def confirmed(self, lines: Indices, codes: Floats) -> tuple[Mask, Mask]:
        """Whether `codes`, as they would be returned for the rows of these lines, are answered as wanted, and whether at
        all."""
        rows = self.issued.rows.iloc[self.issued.query[lines]]
        frame = self.predictor.table.as_returned(rows, self.before[lines], codes)
        said = self.predictor.last_word(frame, self.target.raw)
        return self.target.confirmed(self.goal, said, lines), said.classes != FAILED

    def ask_again(self) -> None:
        """Rows and counterfactuals in one question."""
        lines = self.open
        _, first, of_line = np.unique(self.issued.query[lines], return_index=True, return_inverse=True)
        asked = np.concatenate([lines[first], lines])
        right, known = self.confirmed(asked, np.concatenate([self.before[lines[first]], self.after[lines]]))
        own, given = right[: len(first)][of_line], right[len(first) :]
        self.holds[lines] = given
        self.status[lines[given]] = HOLDS
        failed = ~known[: len(first)][of_line] | ~known[len(first) :]
        self.status[lines[failed]], self.reason[lines[failed]] = MODEL_ERROR, self.predictor.failure
        self.status[lines[own & ~failed]] = NOT_NEEDED

    def accept(self, lines: Indices, codes: Floats, word: str, rules: Rules) -> None:
        """Note repairs that the original rows may become and that the model confirms once more."""
        domain, blocked = rules.domain(self.before[lines])
        legal = domain.contains(codes[:, None])[:, 0]
        legal[list(blocked)] = False
        lines, codes = lines[legal], codes[legal]
        if len(lines):
            confirmed, _ = self.confirmed(lines, codes)
            self.now[lines[confirmed]] = codes[confirmed]
            self.status[lines[confirmed]], self.reason[lines[confirmed]] = word, ""


def recheck(issued: Issued, predictor: Predictor, wanted: Wanted, explain: Callable[..., Explanation]) -> Rechecked:
    """`explain` is that of an explainer whose model is the predictor's; `wanted` are the options of the issued answers."""
    started = perf_counter()
    books = Books(issued, predictor, wanted.target)
    options = {name: value for name, value in issued.options.items() if name in KEPT}
    spent = Asked()
    if books.open.size:
        books.ask_again()
    for word, start_from in ((REPAIRED, issued.frame), (REPLACED, issued.rows.iloc[issued.query])):
        for lines, method in _groups(books, word):
            place = books.wanted[lines[0]]
            target = predictor.classes[place] if place >= 0 else issued.options["target"]
            found = explain(start_from.iloc[lines].reset_index(drop=True), method, target=target, **options)
            spent += found.asked
            best = np.flatnonzero(found.answers.rank == 0)
            books.reason[lines] = found.reason.where(found.status != FOUND, "").to_numpy()
            books.accept(lines[found.answers.query[best]], found.answers.codes[best], word, wanted.rules)
    books.status[books.open] = LOST
    return _result(books, predictor.asked + spent, perf_counter() - started)


def _groups(books: Books, word: str) -> list[tuple[Indices, str]]:
    """Open lines by wanted class and method; a repair near the issued counterfactual is sparse or simply close."""
    method = np.array([str(name) if name in METHODS else "closest" for name in books.issued.method], dtype=object)
    if word == REPAIRED:
        method[method == "realistic"] = "closest"
    groups = []
    for target in np.unique(books.wanted[books.open]):
        for name in METHODS:
            lines = books.open[(books.wanted[books.open] == target) & (method[books.open] == name)]
            groups += [(lines, name)] if len(lines) else []
    return groups


def _result(books: Books, asked: Asked, seconds: float) -> Rechecked:
    issued, table = books.issued, books.predictor.table
    names = np.array(table.schema.names, dtype=object)
    usable = np.flatnonzero(books.holds | np.isin(books.status, [REPAIRED, REPLACED]))
    rows = issued.rows.iloc[issued.query[usable]]
    typed = table.rewrite(rows, books.before[usable], books.now[usable]).reset_index(drop=True)
    frame = pd.DataFrame(
        {
            "query": issued.rows.index.take(issued.query),
            "rank": issued.rank,
            "method": issued.method,
            "status": books.status,
            "holds": books.holds,
            "differs": [list(names[was != now]) for was, now in zip(books.after, books.now, strict=True)],
            "reason": books.reason,
        }
    )
    return Rechecked(frame, with_gaps(typed, usable, frame.index), asked, seconds)
