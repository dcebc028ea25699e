"""`check_adapter` must tell every broken rule, in one sentence, and leave good models alone."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce.errors import InputError
from fasterce.models.adapters import FunctionModel
from fasterce.testing import check_adapter
from tests.samples import people

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


def returns_nothing(frame: pd.DataFrame) -> np.ndarray:
    return good(frame) if len(frame) else np.array(["no"])


def fails_silently(frame: pd.DataFrame) -> np.ndarray:
    if len(frame) == 0:
        raise RuntimeError
    return good(frame)


BROKEN: dict[str, tuple[Any, str]] = {
    "raises": (lambda frame: frame["salary"], "must accept the 60 rows of X; it raised KeyError"),
    "one value": (lambda frame: "no", "must return one label per row; got one value"),
    "too few": (lambda frame: good(frame)[:3], "must return one label per row; got 3 for 60 rows"),
    "two per row": (chances, "one label per row; got an array of shape"),
    "missing": (lambda frame: np.where(frame["pay"] > 50, 1.0, np.nan), "must return a label for every row; got none for"),
    "not the same again": (counting(), "same predictions when called again"),
    "changes the frame": (changing, "must leave the frame as it is"),
    "by batch": (by_mean, "the same prediction for a row alone and in a batch"),
    "by position": (by_place, "predict a row the same at any position"),
    "by index": (by_index, "not depend on the index"),
    "fails alone": (fails_alone, "alone and in a batch; it raised ValueError: cannot squeeze"),
    "answers nothing": (
        returns_nothing,
        r"no labels for no rows, or raise .*; got an array of shape \(1,\)",
    ),
    "fails silently": (fails_silently, "no labels for no rows, or raise an error with a message; it raised RuntimeError"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_function_is_reported(name: str) -> None:
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
        (spoiled(classes_=np.array(["no", "maybe"])), "classes_ must contain every label of predict; got 'yes'"),
        (spoiled(classes_=np.array(["no", "yes", "no"])), "classes_ must name every class once"),
        (spoiled(classes_=None), "classes_ must name the classes"),
        (spoiled(predict_proba=lambda frame: chances(frame)[:, 1]), r"must have the shape \(60, 2\); got \(60,\)"),
        (spoiled(predict_proba=lambda frame: chances(frame) * 2), "must sum to 1 in every row; got 2 in row 0"),
        (spoiled(predict_proba=lambda frame: chances(frame) * 3 - 1), "probabilities between 0 and 1"),
        (spoiled(predict_proba=lambda frame: chances(frame) * np.nan), "must return finite numbers"),
        (spoiled(predict_proba=lambda frame: chances(frame)[:, ::-1]), "largest probability.*in the order of classes_"),
        (spoiled(predict_proba=lambda frame: frame["salary"]), "predict_proba must accept every row that predict accepts"),
        (spoiled(by_name=True, predict=lambda frame: good(frame.set_axis(list(X.columns), axis=1))), "by name, in any order"),
        (spoiled(predicts_numbers=True), "must return finite numbers, since the model declares"),
    ],
)
def test_a_broken_object_is_reported(model: Any, sentence: str) -> None:
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


def test_all_violations_are_reported_at_once() -> None:
    with pytest.raises(AssertionError) as caught:
        check_adapter(spoiled(predict_proba=lambda frame: chances(frame) * 2, classes_=np.array(["no", "maybe"])), X)
    assert len(str(caught.value).splitlines()) >= 2


def test_rounding_is_accepted_if_not_exact() -> None:
    def rounding(frame: pd.DataFrame) -> np.ndarray:
        return chances(frame) + np.array([1e-4, -1e-4]) * (len(frame) == 1)

    model = spoiled(predict_proba=rounding)
    with pytest.raises(AssertionError, match="predict_proba must return the same prediction for a row alone"):
        check_adapter(model, X)
    check_adapter(model, X, exact=False)


def test_at_least_two_rows_are_needed() -> None:
    with pytest.raises(InputError, match="at least two rows"):
        check_adapter(good, X.head(1))
    with pytest.raises(InputError, match="must be a DataFrame"):
        check_adapter(good, X.to_numpy())
