"""XGBoost: native boosters, and estimators given tables whose categories are text."""

import json
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import expit, softmax

from fasterce.errors import InputError
from fasterce.models.adapters import base
from fasterce.typing import Floats, Objects

if TYPE_CHECKING:
    from xgboost import Booster

LIBRARY = "XGBoost"
CATEGORICAL = "c"
HINGE = "binary:hinge"
MARGINS = ("multi:softmax", "binary:logitraw")


class XGBoostModel(base.Adapter):
    """A native `Booster`, or a fitted XGBoost estimator.

    Its objective says whether it predicts classes or numbers. Columns are matched by name, and text columns are cast to the
    categories stored with the model (XGBoost 3.1 and newer). After early stopping, the best iteration is the last one used,
    as in XGBoost's estimators. A booster trained with `binary:hinge` has labels and margins, no probabilities.

    Parameters
    ----------
    booster : xgboost.Booster or a fitted estimator
    classes : sequence, optional
        Labels in the order of the model's outputs; 0, 1, ... by default.
    """

    def __init__(self, booster: Any, *, classes: base.Labels | None = None) -> None:
        self.booster: Booster = booster.get_booster() if hasattr(booster, "get_booster") else booster
        learner = json.loads(self.booster.save_config())["learner"]
        self.objective = str(learner["learner_train_param"]["objective"])
        self._linear = learner["gradient_booster"]["name"] == "gblinear"
        best = self.booster.attr("best_iteration")
        self._rounds = (0, 0) if best is None else (0, int(best) + 1)
        self.prepare = XGBoostPreparation(self.booster)
        self.by_name = self.prepare.names is not None
        count = 2 if self.objective.startswith("binary:") else None
        several = self.objective.startswith("multi:")
        super().__init__(base.as_classes(classes, int(learner["learner_model_param"]["num_class"]) if several else count))
        self.has_probabilities &= self.objective != HINGE

    @base.method_if(lambda self: self.objective == HINGE)
    def decision_function(self, frame: pd.DataFrame) -> Floats:
        return self._output(self.prepare(frame), True)

    def evaluate(self, frame: pd.DataFrame) -> Floats:
        return self.predict_prepared(self.prepare(frame))

    def predict_prepared(self, prepared: pd.DataFrame | Objects) -> Floats:
        """Predict for a prepared frame, or for a matrix of its numbers and the positions of its categories."""
        # Multi-class margins give probabilities whether the objective returns labels or probabilities.
        margin = self.objective in MARGINS
        output = self._output(prepared, margin)
        if self.predicts_numbers:
            return output
        if self.objective == "binary:logitraw":
            return base.two_columns(expit(output.astype(np.float64)))
        if margin:
            return np.asarray(softmax(output.astype(np.float64), axis=1))
        return output if output.ndim > 1 else base.two_columns(output)

    def _output(self, prepared: pd.DataFrame | Objects, margin: bool) -> Floats:
        if self._linear:
            known = {"feature_names": self.booster.feature_names, "feature_types": self.booster.feature_types}
            data = import_module("xgboost").DMatrix(prepared, **known, enable_categorical=True)
            return np.asarray(self.booster.predict(data, output_margin=margin, iteration_range=self._rounds))
        kind = "margin" if margin else "value"
        return np.asarray(self.booster.inplace_predict(prepared, predict_type=kind, iteration_range=self._rounds))


class XGBoostPreparation:
    """Prepares a frame for a booster: columns by name, categories as in training."""

    def __init__(self, booster: "Booster") -> None:
        self.names = booster.feature_names
        types = booster.feature_types or []
        self.categorical = [place for place, kind in enumerate(types) if kind == CATEGORICAL]
        self._known = _categories(booster) if self.categorical else {}

    def __call__(self, frame: pd.DataFrame) -> pd.DataFrame | Floats:
        if self.names is None:
            return base.matrix([frame[name] for name in frame.columns], LIBRARY)
        ordered = base.ordered_columns(frame, self.names, LIBRARY)
        columns = [ordered[name] for name in ordered.columns]
        casts = [self._column(place, column) for place, column in enumerate(columns)]
        return base.with_columns(
            ordered, {cast.name: cast for cast, column in zip(casts, columns, strict=True) if cast is not column}
        )

    def _column(self, place: int, column: pd.Series) -> pd.Series:
        if place in self._known:
            return base.as_categories(column, self._known[place], LIBRARY)
        if place in self.categorical:
            if isinstance(column.dtype, pd.CategoricalDtype) or not base.is_text(column):
                return column
            raise InputError("models.categories_not_stored", column=column.name, received=str(column.dtype))
        if base.is_text(column):
            return pd.Series(base.matrix([column], LIBRARY)[:, 0], index=column.index, name=column.name)
        return column


def _categories(booster: "Booster") -> Mapping[int, base.Labels]:
    """Return for every categorical column its categories in order, where the model stores them."""
    if not hasattr(booster, "get_categories"):
        return {}
    try:
        exported = booster.get_categories(export_to_arrow=True).to_arrow()
        found = {place: stored.to_pylist() for place, (_, stored) in enumerate(exported) if stored is not None}
    except ImportError:
        found = dict(_categories_of_file(json.loads(bytes(booster.save_raw("json")))))
    except UnicodeDecodeError:
        return {}
    # Offsets count characters where names are stored as bytes: names that are not ASCII are cut in the wrong places.
    garbled = any(isinstance(name, str) and not name.isascii() for names in found.values() for name in names)
    return {} if garbled else found


def _categories_of_file(content: Any) -> Mapping[int, base.Labels]:
    """Return the categories in the model's JSON, for where pyarrow is not installed."""
    stored = content["learner"]["gradient_booster"]
    stored = stored.get("gbtree", stored)  # DART keeps its trees one level deeper.
    cats = stored.get("model", {}).get("cats", {})
    return {place: _decoded(column) for place, column in enumerate(cats.get("enc", [])) if _decoded(column)}


def _decoded(stored: Mapping[str, list[int]]) -> base.Labels:
    if "offsets" not in stored:
        return list(stored.get("values", []))
    text = bytes(value % 256 for value in stored["values"])
    return [text[a:b].decode() for a, b in zip(stored["offsets"][:-1], stored["offsets"][1:], strict=True)]
