"""Functions of the user's own."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce.errors import InputError, ModelError
from fasterce.models.adapters import FunctionModel, Model, adapt
from fasterce.testing import check_adapter
from tests.models.adapters.tables import applicants, check_explained, explainer, strength, two

X = applicants(250)


def labels(frame: pd.DataFrame) -> np.ndarray:
    return two(frame, ("no", "yes"))


def chances(frame: pd.DataFrame) -> np.ndarray:
    second = 1 / (1 + np.exp(-(strength(frame) - 38) / 8))
    return np.stack([1 - second, second], axis=1)


def test_a_bare_function_returns_labels() -> None:
    adapted: Any = adapt(labels)
    assert adapted is labels
    check_adapter(labels, X)
    check_explained(labels, X, labels)


def test_chances_alone_give_labels() -> None:
    model = FunctionModel(predict_proba=chances, classes=["no", "yes"])
    assert isinstance(model, Model)
    assert (model.predict(X) == labels(X)).all()
    check_adapter(model, X)
    surer = explainer(model, X).explain(X.head(5), target="yes", target_score=(0.7, 1))
    found = surer.counterfactuals[surer.status == "found"]
    assert len(found) >= 2
    assert (chances(found)[:, 1] >= 0.7).all()


def test_with_both_the_label_has_the_last_word() -> None:
    def strict(frame: pd.DataFrame) -> Any:
        return np.where(chances(frame)[:, 1] > 0.7, "yes", "no")

    model = FunctionModel(strict, predict_proba=chances, classes=["no", "yes"])
    check_adapter(model, X)
    check_explained(model, X, strict)


def test_bad_arguments() -> None:
    with pytest.raises(InputError, match="must name the labels"):
        FunctionModel(predict_proba=chances)
    with pytest.raises(InputError, match="must be given a function"):
        FunctionModel("labels")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="name the 2 classes"):
        FunctionModel(predict_proba=chances, classes=["a", "b", "c"]).predict(X)
    with pytest.raises(ModelError, match=r"array \(N, C\)"):
        FunctionModel(predict_proba=lambda frame: chances(frame)[:, 1], classes=["a", "b"]).predict(X)
    assert not hasattr(FunctionModel(labels), "predict_proba")
    assert not hasattr(FunctionModel(labels), "classes_")


@pytest.mark.parametrize("classes", ["ab", ["a"], ["a", "a"]])
def test_classes_are_a_list_of_different_labels(classes: Any) -> None:
    with pytest.raises(InputError, match="at least two different labels"):
        FunctionModel(predict_proba=lambda frame: np.full((len(frame), 2), 0.5), classes=classes)
