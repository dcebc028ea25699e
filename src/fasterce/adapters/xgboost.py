"""XGBoost: native boosters, and estimators asked about tables whose categories are text."""

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from fasterce.adapters.base import (
    Adapter,
    as_categories,
    as_classes,
    in_order,
    is_text,
    matrix,
    sigmoid,
    softmax,
    two_columns,
    with_columns,
)
from fasterce.errors import InputError
from fasterce.profile import Floats

WHAT = "The XGBoost model"
CATEGORICAL = "c"


class XGBoostModel(Adapter):
    """A native `Booster` (or a fitted XGBoost estimator): its objective says whether it answers classes or numbers.

    Columns are taken by name. Text columns are cast to the categories stored with the model (XGBoost 3.1 and newer). Where
    training stopped early, the best iteration is the last one used, as the scikit-learn estimators do.
    """

    def __init__(self, booster: Any, *, classes: Sequence[Any] | None = None) -> None:
        self.booster = booster.get_booster() if hasattr(booster, "get_booster") else booster
        learner = json.loads(self.booster.save_config())["learner"]
        self.objective = str(learner["learner_train_param"]["objective"])
        self._linear = learner["gradient_booster"]["name"] == "gblinear"
        self._rounds = _rounds(self.booster)
        self.ready = Preparation(self.booster)
        super().__init__(_classes(self.objective, int(learner["learner_model_param"]["num_class"]), classes))

    @property
    def by_name(self) -> bool:
        return self.ready.names is not None

    def respond(self, frame: pd.DataFrame) -> Floats:
        return self.respond_to(self.ready(frame))

    def respond_to(self, ready: Any) -> Floats:
        """The same of a frame made ready, or of a matrix of its numbers and the places of its categories."""
        # Multi-class margins make chances whether the objective was to give labels or chances.
        margin = self.objective in ("multi:softmax", "binary:logitraw")
        answer = np.asarray(self._ask(ready, margin))
        if self.answers_numbers:
            return answer
        if self.objective == "binary:logitraw":
            return two_columns(sigmoid(answer))
        return softmax(answer) if margin else answer if answer.ndim > 1 else two_columns(answer)

    def _ask(self, ready: Any, margin: bool) -> Any:
        if self._linear:
            known = {"feature_names": self.booster.feature_names, "feature_types": self.booster.feature_types}
            held = import_module("xgboost").DMatrix(ready, **known, enable_categorical=True)
            return self.booster.predict(held, output_margin=margin, iteration_range=self._rounds)
        kind = "margin" if margin else "value"
        return self.booster.inplace_predict(ready, predict_type=kind, iteration_range=self._rounds)


class HingeModel(XGBoostModel):
    """A booster trained with `binary:hinge`: labels and margins, no chances."""

    @property
    def predict_proba(self) -> Any:
        raise AttributeError("predict_proba: binary:hinge gives none")

    def decision_function(self, frame: pd.DataFrame) -> Floats:
        return np.asarray(self._ask(self.ready(frame), True))


class Preparation:
    """A frame as a booster wants it: columns by name, categories as it was trained with."""

    def __init__(self, booster: Any) -> None:
        self.names: list[str] | None = booster.feature_names
        types = booster.feature_types or []
        self.categorical = [place for place, kind in enumerate(types) if kind == CATEGORICAL]
        self._known = _categories(booster) if self.categorical else {}

    def __call__(self, frame: pd.DataFrame) -> Any:
        if self.names is None:
            return matrix(frame, WHAT)
        ordered = in_order(frame, self.names, WHAT)
        casts = {}
        for place, name in enumerate(ordered.columns):
            column = ordered[name]
            cast = self._column(place, column)
            if cast is not column:
                casts[name] = cast
        return with_columns(ordered, casts)

    def _column(self, place: int, column: pd.Series) -> pd.Series:
        if place in self._known:
            return as_categories(column, self._known[place], WHAT)
        if place in self.categorical:
            if isinstance(column.dtype, pd.CategoricalDtype) or not is_text(column):
                return column
            raise InputError(
                f"{WHAT} does not hold the categories of column {column.name!r} (XGBoost 3.1 and newer store them, but "
                f"garble names that are not plain ASCII); expected a category dtype with those of the training, in their "
                f"order; got {column.dtype}."
            )
        if is_text(column):
            return pd.Series(matrix(column.to_frame(), WHAT)[:, 0], index=column.index, name=column.name)
        return column


def _categories(booster: Any) -> Mapping[int, list[Any]]:
    """For every categorical column its categories in their order, where the model holds them."""
    if not hasattr(booster, "get_categories"):
        return {}
    try:
        exported = booster.get_categories(export_to_arrow=True).to_arrow()
        found = {place: held.to_pylist() for place, (_, held) in enumerate(exported) if held is not None}
    except ImportError:
        found = dict(_categories_of_file(json.loads(bytes(booster.save_raw("json")))))
    except UnicodeDecodeError:
        return {}
    # Offsets count letters where the names are stored as bytes: what comes back is cut in the wrong places.
    garbled = any(isinstance(name, str) and not name.isascii() for held in found.values() for name in held)
    return {} if garbled else found


def _categories_of_file(content: Any) -> Mapping[int, list[Any]]:
    """The same read off the model's JSON, for where there is no pyarrow."""
    stored = content["learner"]["gradient_booster"]
    stored = stored.get("gbtree", stored)  # DART keeps its trees one level deeper.
    cats = stored.get("model", {}).get("cats", {})
    return {place: _decoded(held) for place, held in enumerate(cats.get("enc", [])) if _decoded(held)}


def _decoded(held: Mapping[str, Any]) -> list[Any]:
    if "offsets" not in held:
        return list(held.get("values", []))
    text = bytes(value % 256 for value in held["values"])
    return [text[a:b].decode() for a, b in zip(held["offsets"][:-1], held["offsets"][1:], strict=True)]


def _classes(objective: str, count: int, names: Sequence[Any] | None) -> Any:
    if objective.startswith("binary:"):
        return as_classes(names, 2, WHAT.lower())
    if objective.startswith("multi:"):
        return as_classes(names, count, WHAT.lower())
    if names is not None:
        raise InputError(f"classes must be None for a model that answers numbers ({objective}); got {list(names)!r:.100}.")
    return None


def _rounds(booster: Any) -> tuple[int, int]:
    best = booster.attr("best_iteration")
    return (0, 0) if best is None else (0, int(best) + 1)


def xgboost_model(booster: Any, classes: Sequence[Any] | None = None) -> XGBoostModel:
    """The adapter for a booster's objective."""
    found = XGBoostModel(booster, classes=classes)
    return HingeModel(booster, classes=classes) if found.objective == "binary:hinge" else found
