"""The bookkeeping between rows and records, by itself."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce import Schema
from fasterce.data.table import Table
from fasterce.errors import Problem
from fasterce.explanation import CounterfactualArrays
from fasterce.models.predictions import FAILED, Predictions
from fasterce.models.predictor import Predictor
from fasterce.search import results
from fasterce.search.target import Chance, TheClass, TheOther

FRAME = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "c": ["a", "b", "a", "b"]}, index=list("wxyz"))
TABLE = Table.like(FRAME, Schema.infer(FRAME))


def big(frame: pd.DataFrame) -> np.ndarray:
    return np.where((frame["x"] > 1.5).to_numpy(), "big", "small")


def picky(frame: pd.DataFrame) -> np.ndarray:
    if (frame["x"] == 2.0).any():
        raise ValueError("not two")
    return big(frame)


def predictor(model: Any = big, classes: tuple[Any, ...] = ("big", "small")) -> Predictor:
    return Predictor(model, TABLE, classes)


def ledger(frame: pd.DataFrame = FRAME, wanted: int | None = None) -> results.QueryLedger:
    return results.QueryLedger(TABLE.read(frame), TheOther() if wanted is None else TheClass(wanted))


def wants(book: results.QueryLedger) -> list[Any]:
    return book.target.shown(("big", "small"), book.predicted)


def asked(book: results.QueryLedger, model: Any = big) -> list[int]:
    """The model's labels on record, as a search that supposed just these would put them there."""
    rows, own = book.open, predictor(model)
    said = own.verify(TABLE.frame(book.codes[rows]), raw=False)
    return book.record(rows, said, said, book.target.for_queries(said), own.failure).tolist()


def answers(*query: int) -> CounterfactualArrays:
    many, width = len(query), 2
    return CounterfactualArrays(
        np.array(query, dtype=np.intp),
        np.zeros(many, dtype=np.intp),
        np.full(many, "closest", dtype=object),
        np.zeros((many, width)),
        np.ones((many, width)),
        np.ones(many),
    )


def test_a_new_ledger_is_open_but_for_bad_rows() -> None:
    assert ledger().open.tolist() == [0, 1, 2, 3]
    spoilt = ledger(FRAME.assign(c=["a", "q", "b", None]))
    assert spoilt.open.tolist() == [0, 2]
    assert spoilt.status.tolist() == ["", "invalid_input", "", "invalid_input"]
    assert "'q' (row 1)" in spoilt.reason[1]
    assert "missing" in spoilt.reason[3]


def test_without_a_wanted_class_every_row_wants_the_other() -> None:
    book = ledger()
    assert asked(book) == []
    assert book.predicted.tolist() == [1, 1, 0, 0]
    assert wants(book) == ["big", "big", "small", "small"]
    assert book.open.tolist() == [0, 1, 2, 3]


def test_with_a_wanted_class_rows_already_there_are_closed() -> None:
    book = ledger(wanted=0)
    asked(book)
    assert book.status.tolist() == ["", "", "already_target", "already_target"]
    assert book.reason == [""] * 4
    assert wants(book) == ["big"] * 4


def test_rows_the_model_fails_on_are_closed_with_its_words() -> None:
    book = ledger()
    asked(book, picky)
    assert book.status.tolist() == ["", "", "model_error", ""]
    assert book.reason[2] == "The model raised ValueError: not two."
    assert book.predicted.tolist() == [1, 1, FAILED, 0]
    assert wants(book) == ["big", "big", None, "small"]


def test_a_failing_row_is_no_model_success_even_with_a_target() -> None:
    book = ledger(wanted=1)
    asked(book, picky)
    assert book.status.tolist() == ["already_target", "already_target", "model_error", ""]


def test_a_row_whose_label_is_not_the_supposed_one_stays_open_and_is_named() -> None:
    """The search went by scores that say otherwise: neither its answers nor its silence count."""
    book = ledger(wanted=0)
    failure = Problem("models.no_prediction")
    own, supposed = Predictions(np.array([0, 1, 0, FAILED])), Predictions(np.array([0, 0, 1, 0]))
    doubtful = book.record(book.open, own, supposed, book.target.for_queries(supposed), failure)
    assert doubtful.tolist() == [1, 2, 3]
    assert book.status.tolist() == ["already_target", "", "", "model_error"]
    assert book.reason[3] == failure.text()


@pytest.mark.parametrize("method", ["closest", "sparse", "realistic", "all"])
def test_settling_leaves_no_row_open(method: str) -> None:
    book = ledger()
    book.close_found(answers(3, 3))
    book.close_rest(book.open, method, np.array([False, True, False]), {"budget": 9, "deadline": None})
    assert book.open.size == 0
    assert book.status.tolist() == ["none_found", "stopped", "none_found", "found"]
    nothing = results.NOTHING_FOUND[method]
    codes = [[problem.code for problem in problems] for problems in book.problems]
    assert codes == [[nothing], ["search.stopped_by_budget"], [nothing], []]
    assert book.reason[1] == "Stopped at the budget of 9 model rows before a counterfactual was found."


def test_remarks_stand_beside_counterfactuals_only() -> None:
    book = ledger()
    book.close_found(answers(0, 2))
    one, two = Problem("search.no_row"), Problem("search.best_attempt", details={"progress": 2})
    book.add(np.array([0, 1]), one)
    book.add(np.array([0, 2]), two)
    assert book.problems == [(one, two), (), (two,), ()]
    assert book.reason == [f"{one.text()} {two.text()}", "", two.text(), ""]


def test_sparse_says_how_many_features_it_took() -> None:
    book, found = ledger(), answers(0, 1)
    found.method[:] = "sparse"
    found.codes[1, 1] = 0.0
    book.close_found(found)
    book.note_several_changes(found)
    assert book.reason == ["No single feature was found that changes the prediction alone; these 2 together do.", "", "", ""]


def test_labels_are_the_models_own_and_none_where_there_is_none() -> None:
    series = results.labelled(("big", 7), np.array([1, FAILED, 0]), pd.Index([5, 6, 7]))
    assert series.tolist() == [7, None, "big"]
    assert series.index.tolist() == [5, 6, 7]
    assert series.dtype == object


def test_the_models_own_number_settles_a_row_the_search_saw_just_outside() -> None:
    book = results.QueryLedger(TABLE.read(FRAME), Chance(0, 0.7, 1.0))
    values = np.array([[0.7, 0.3], [0.5, 0.5], [0.7, 0.3], [0.9, 0.1]])
    outside, inside = np.log([[0.69, 0.31]]), np.log([[0.9, 0.1]])
    supposed = Predictions(np.zeros(4, dtype=np.intp), scores=np.concatenate([outside, outside, inside, inside]))
    own = Predictions(np.zeros(4, dtype=np.intp), np.log(values), values)
    doubtful = book.record(book.open, own, supposed, book.target.for_queries(supposed), None)
    assert book.status.tolist() == ["already_target", "", "already_target", "already_target"]
    assert doubtful.tolist() == [0], "what was found for it does not count"
    assert book.value.tolist() == [0.7, 0.5, 0.7, 0.9]
