"""The bookkeeping between rows and records, by itself."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce import Schema, outcome
from fasterce.errors import InputError
from fasterce.explanation import Answers
from fasterce.predictor import FAILED, Predictor
from fasterce.table import Table

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


def ledger(frame: pd.DataFrame = FRAME) -> outcome.Ledger:
    return outcome.Ledger(TABLE.read(frame))


def answers(*query: int) -> Answers:
    many, width = len(query), 2
    return Answers(
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
    book.predict(predictor(), None)
    assert book.predicted.tolist() == [1, 1, 0, 0]
    assert book.target.tolist() == [0, 0, 1, 1]
    assert book.open.tolist() == [0, 1, 2, 3]


def test_with_a_wanted_class_rows_already_there_are_closed() -> None:
    book = ledger()
    book.predict(predictor(), 0)
    assert book.status.tolist() == ["", "", "already_target", "already_target"]
    assert book.reason.tolist() == [""] * 4
    assert book.target.tolist() == [0] * 4


def test_rows_the_model_fails_on_are_closed_with_its_words() -> None:
    book = ledger()
    book.predict(predictor(picky), None)
    assert book.status.tolist() == ["", "", "model_error", ""]
    assert book.reason[2] == "The model raised ValueError: not two"
    assert book.predicted.tolist() == [1, 1, FAILED, 0]
    assert book.target.tolist() == [0, 0, FAILED, 1]
    assert book.first_line() == ""


def test_a_failing_row_is_no_model_success_even_with_a_target() -> None:
    book = ledger()
    book.predict(predictor(picky), 1)
    assert book.status.tolist() == ["already_target", "already_target", "model_error", ""]


@pytest.mark.parametrize("method", ["closest", "sparse", "realistic", "all"])
def test_settling_leaves_no_row_open(method: str) -> None:
    book = ledger(FRAME.assign(c=["a", "q", "b", "a"]))
    book.predict(predictor(), 0)
    book.settle(answers(0), method)
    assert book.status.tolist() == ["found", "invalid_input", "already_target", "already_target"]
    book = ledger()
    book.settle(answers(3, 3, 1), method)
    assert book.status.tolist() == ["none_found", "found", "none_found", "found"]
    assert book.reason.tolist() == [outcome.NOTHING[method], "", outcome.NOTHING[method], ""]


def test_the_first_line_names_status_and_reason() -> None:
    book = ledger(FRAME.assign(c="q"))
    assert book.first_line().startswith("invalid_input: Column 'c' must be one of 'a', 'b'; got 'q'")


def test_choosing_a_target() -> None:
    assert outcome.choose_target(predictor(), None) is None
    assert outcome.choose_target(predictor(), "small") == 1
    assert outcome.choose_target(predictor(classes=(0, 1, 2)), np.int64(2)) == 2
    assert outcome.choose_target(predictor(classes=(False, True)), False) == 0
    with pytest.raises(InputError, match=r"Did you mean 'small'\?"):
        outcome.choose_target(predictor(), "smal")
    with pytest.raises(InputError, match=r"one of 0, 1, 2, because the model has 3 classes; got None\.$"):
        outcome.choose_target(predictor(classes=(0, 1, 2)), None)


@pytest.mark.parametrize("target", [["big"], np.array(["big", "small"]), {"big"}, float("nan"), pd.NA])
def test_a_target_that_is_no_label_is_refused(target: Any) -> None:
    with pytest.raises(InputError, match=r"target"):
        outcome.choose_target(predictor(), target)


def test_choosing_variants() -> None:
    assert [name for name, _ in outcome.choose_variants("sparse", "movement")] == ["sparse"]
    assert [name for name, _ in outcome.choose_variants("all", "paper")] == ["closest", "sparse", "realistic"]
    movement, paper = (outcome.choose_variants("closest", reading)[0][1] for reading in ("movement", "paper"))
    assert movement is not paper
    with pytest.raises(InputError, match=r"Unknown method 'near'; expected one of 'closest', 'sparse', 'realistic', 'all'\."):
        outcome.choose_variants("near", "movement")
    with pytest.raises(InputError, match=r"Unknown reading 'fast'"):
        outcome.choose_variants("closest", "fast")


def test_options_in_range_pass() -> None:
    outcome.check_options(np.int64(3), 1, np.float32(0.5))


def test_labels_are_the_models_own_and_none_where_there_is_none() -> None:
    series = outcome.labelled(("big", 7), np.array([1, FAILED, 0]), pd.Index([5, 6, 7]))
    assert series.tolist() == [7, None, "big"]
    assert series.index.tolist() == [5, 6, 7]
    assert series.dtype == object
