"""`check_adapter` must tell every broken rule, in one sentence, and leave good models alone."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce.adapters import FunctionModel
from fasterce.errors import InputError
from fasterce.testing import check_adapter
from samples import people

X = people(60)


def good(frame: pd.DataFrame) -> np.ndarray:
    return np.where(frame["pay"] > 50, "yes", "no")


def chances(frame: pd.DataFrame) -> np.ndarray:
    second = 1 / (1 + np.exp(-(frame["pay"].to_numpy() - 50) / 10))
    return np.stack([1 - second, second], axis=1)


class Good:
    classes_ = np.array(["no", "yes"])

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return good(frame)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        return chances(frame)


def test_good_models_pass() -> None:
    check_adapter(good, X)
    check_adapter(Good(), X)
    check_adapter(FunctionModel(predict_proba=chances, classes=["no", "yes"]), X)


def counting() -> Callable[[pd.DataFrame], np.ndarray]:
    calls = []

    def ask(frame: pd.DataFrame) -> np.ndarray:
        calls.append(1)
        return np.where(frame["pay"] > 50 + len(calls) % 2 * 10, "yes", "no")

    return ask


def changing(frame: pd.DataFrame) -> np.ndarray:
    answer = good(frame)
    frame["pay"] = 0.0
    return answer


def by_mean(frame: pd.DataFrame) -> np.ndarray:
    return np.where(frame["pay"] > frame["pay"].mean(), "yes", "no")


def by_place(frame: pd.DataFrame) -> np.ndarray:
    return np.where(np.arange(len(frame)) % 2 == 1, "yes", "no")


def by_index(frame: pd.DataFrame) -> np.ndarray:
    return np.array(["yes" if str(name).startswith("row") else "no" for name in frame.index])


def fails_alone(frame: pd.DataFrame) -> np.ndarray:
    if len(frame) == 1:
        raise ValueError("cannot squeeze")
    return good(frame)


def answers_nothing(frame: pd.DataFrame) -> np.ndarray:
    return good(frame) if len(frame) else np.array(["no"])


def fails_silently(frame: pd.DataFrame) -> np.ndarray:
    if len(frame) == 0:
        raise RuntimeError
    return good(frame)


BROKEN: dict[str, tuple[Any, str]] = {
    "raises": (lambda frame: frame["salary"], "must answer the 60 rows of X; it raised KeyError"),
    "one value": (lambda frame: "no", "must answer once for every row; got one value"),
    "too few": (lambda frame: good(frame)[:3], "must answer once for every row; got 3 answers for 60 rows"),
    "two a row": (chances, "one label a row; got an array of shape"),
    "missing": (lambda frame: np.where(frame["pay"] > 50, 1.0, np.nan), "must give a label for every row; got none for"),
    "not the same again": (counting(), "same answers when asked again"),
    "changes the frame": (changing, "must leave the frame it is given as it is"),
    "by company": (by_mean, "answer one row as it answers it among others"),
    "by place": (by_place, "answer a row the same wherever it stands"),
    "by index": (by_index, "not look at the index"),
    "fails alone": (fails_alone, "among others; it raised ValueError: cannot squeeze"),
    "answers nothing": (answers_nothing, r"no rows with no labels, or say what is wrong; got an array of shape \(1,\)"),
    "fails silently": (fails_silently, "no rows with no labels, or say what is wrong; it raised RuntimeError"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_function_is_told(name: str) -> None:
    model, sentence = BROKEN[name]
    with pytest.raises(AssertionError, match=sentence) as caught:
        check_adapter(model, X)
    assert all(line.endswith(".") for line in str(caught.value).splitlines())


def spoiled(**parts: Any) -> Any:
    held = {name: staticmethod(part) if callable(part) else part for name, part in parts.items()}
    return type("Spoiled", (Good,), held)()


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (spoiled(classes_=["no", "yes"]), "classes_ must be a one-dimensional array; got list"),
        (spoiled(classes_=np.array(["no", "maybe"])), "classes_ must contain every label predict gives; got 'yes'"),
        (spoiled(classes_=np.array(["no", "yes", "no"])), "classes_ must name every class once"),
        (spoiled(classes_=None), "classes_ must say of which classes"),
        (spoiled(predict_proba=lambda frame: chances(frame)[:, 1]), r"must have the shape \(60, 2\); got \(60,\)"),
        (spoiled(predict_proba=lambda frame: chances(frame) * 2), "must sum to 1 in every row; got 2 in row 0"),
        (spoiled(predict_proba=lambda frame: chances(frame) * 3 - 1), "chances between 0 and 1"),
        (spoiled(predict_proba=lambda frame: chances(frame) * np.nan), "must give finite numbers"),
        (spoiled(predict_proba=lambda frame: chances(frame)[:, ::-1]), "largest chance.*in the order of classes_"),
        (spoiled(predict_proba=lambda frame: frame["salary"]), "predict_proba must answer every row predict answers"),
        (spoiled(by_name=True, predict=lambda frame: good(frame.set_axis(list(X.columns), axis=1))), "by name, in any order"),
        (spoiled(answers_numbers=True), "must give finite numbers, since the model says"),
    ],
)
def test_a_broken_object_is_told(model: Any, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_adapter(model, X)


def test_a_threshold_other_than_a_half_is_no_fault() -> None:
    check_adapter(spoiled(predict=lambda frame: np.where(frame["pay"] > 60, "yes", "no")), X)


def test_two_threads_at_once_are_noticed() -> None:
    class Shared(Good):
        """Keeps the rows in itself between two steps."""

        def __init__(self) -> None:
            self.both = threading.Barrier(2, timeout=0.5)

        def predict(self, frame: pd.DataFrame) -> np.ndarray:
            self.held = frame["pay"]
            threshold = 50.0
            if threading.current_thread() is not threading.main_thread():
                threshold = 55.0 if self.held is not frame["pay"] or self._met() else 50.0
            return np.where(frame["pay"] > threshold, "yes", "no")

        def _met(self) -> bool:
            try:
                self.both.wait()
            except threading.BrokenBarrierError:
                return False
            return True

    with pytest.raises(AssertionError, match="two threads at once"):
        check_adapter(Shared(), X)


def test_all_broken_rules_are_told_at_once() -> None:
    with pytest.raises(AssertionError) as caught:
        check_adapter(spoiled(predict_proba=lambda frame: chances(frame) * 2, classes_=np.array(["no", "maybe"])), X)
    assert len(str(caught.value).splitlines()) >= 2


def test_rounding_is_forgiven_where_it_is_said() -> None:
    def rounding(frame: pd.DataFrame) -> np.ndarray:
        return chances(frame) + np.array([1e-4, -1e-4]) * (len(frame) == 1)

    model = spoiled(predict_proba=rounding)
    with pytest.raises(AssertionError, match="predict_proba must answer one row"):
        check_adapter(model, X)
    check_adapter(model, X, exact=False)


def test_it_takes_rows_to_ask_about() -> None:
    with pytest.raises(InputError, match="at least two rows"):
        check_adapter(good, X.head(1))
    with pytest.raises(InputError, match="must be a DataFrame"):
        check_adapter(good, X.to_numpy())  # type: ignore[arg-type]
