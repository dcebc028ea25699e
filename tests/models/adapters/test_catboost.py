"""CatBoost: labels, classes, numbers, and explanations."""

from typing import Any, cast

import numpy as np
import pytest

from fasterce.errors import InputError
from fasterce.models.adapters import CatBoostModel, adapt
from fasterce.testing import check_adapter
from tests.models.adapters.tables import applicants, check_explained, strength, three, two

catboost = pytest.importorskip("catboost")

X = applicants(300)
QUIET: dict[str, Any] = {"iterations": 10, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
WORDS = ["job", "home"]


@pytest.mark.parametrize("y", [two(X), two(X, ("no", "yes")), two(X, (False, True)), three(X), three(X, ("a", "b", "c"))])
def test_labels_of_every_sort(y: np.ndarray) -> None:
    model = catboost.CatBoostClassifier(cat_features=WORDS, **QUIET).fit(X, y)
    assert (adapt(model).predict(X) == model.predict(X).reshape(len(X))).all()
    assert set(adapt(model).predict(X)) == set(y)
    check_adapter(model, X.head(60))


def test_a_bare_model_gives_labels_not_raw_values() -> None:
    model = catboost.CatBoostClassifier(cat_features=WORDS, **QUIET).fit(X, two(X, ("no", "yes")))
    bare = catboost.CatBoost()
    bare.load_model(blob=model._serialize_model())
    assert (adapt(bare).predict(X[X.columns[::-1]]) == model.predict(X)).all()
    assert set(CatBoostModel(bare, classes=["n", "y"]).predict(X)) == {"n", "y"}


def test_a_regressor_predicts_numbers() -> None:
    model = catboost.CatBoostRegressor(cat_features=WORDS, **QUIET).fit(X, strength(X))
    assert cast(Any, adapt(model)).predicts_numbers
    check_adapter(model, X.head(60))
    with pytest.raises(InputError, match="predicts numbers"):
        CatBoostModel(model, classes=["a", "b"])


def test_counterfactuals_are_verified_by_the_model() -> None:
    model = catboost.CatBoostClassifier(cat_features=WORDS, **QUIET).fit(X, two(X, ("no", "yes")))
    check_explained(model, X, model.predict)
