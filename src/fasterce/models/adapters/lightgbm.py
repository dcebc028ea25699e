"""LightGBM: native boosters, and estimators given tables whose categories are text."""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fasterce.errors import InputError
from fasterce.models.adapters import base
from fasterce.typing import Floats, Objects

if TYPE_CHECKING:
    from lightgbm import Booster

LIBRARY = "LightGBM"
MULTICLASS = ("multiclass", "multiclassova", "softmax", "ova")
UNNAMED = "Column_"


class LightGBMModel(base.Adapter):
    """A native `Booster`, or a fitted LightGBM estimator.

    Its objective says whether it predicts classes or numbers. Columns are matched by name, and text columns are cast to the
    categories stored with the model.

    Parameters
    ----------
    booster : lightgbm.Booster or a fitted estimator
    classes : sequence, optional
        Labels in the order of the model's outputs; 0, 1, ... by default.
    """

    def __init__(self, booster: object, *, classes: base.Labels | None = None) -> None:
        self.booster: Booster = getattr(booster, "booster_", booster)
        header = read_header(self.booster)
        self.objective = header.get("objective", "custom").split(" ")[0]
        self.prepare = LightGBMPreparation(self.booster)
        self.by_name = not self.prepare.by_place
        count = 2 if self.objective == "binary" else None
        super().__init__(base.as_classes(classes, int(header["num_class"]) if self.objective in MULTICLASS else count))

    def evaluate(self, frame: pd.DataFrame) -> Floats:
        return self.predict_prepared(self.prepare(frame))

    def predict_prepared(self, prepared: pd.DataFrame | Objects) -> Floats:
        """Predict for a prepared frame, or for a matrix of its numbers and the positions of its categories."""
        output = np.asarray(self.booster.predict(prepared))
        if self.predicts_numbers or output.ndim > 1:
            # The probabilities of one-against-all models do not sum to 1 by themselves.
            return output / output.sum(axis=1, keepdims=True) if self.objective == "multiclassova" else output
        return base.two_columns(output)


class LightGBMPreparation:
    """Prepares a frame for a booster: columns by name, categories as in training."""

    def __init__(self, booster: "Booster") -> None:
        self.booster = booster
        self.names = booster.feature_name()
        self.by_place = all(name.startswith(UNNAMED) for name in self.names)
        self.categories: list[base.Labels] = booster.pandas_categorical or []

    @cached_property
    def _categorical(self) -> set[int]:
        infos = read_header(self.booster).get("feature_infos", "").split(" ")
        return {place for place, info in enumerate(infos) if ":" in info and not info.startswith("[")}

    def __call__(self, frame: pd.DataFrame) -> pd.DataFrame:
        ordered = self._ordered(frame)
        text = [j for j in range(ordered.shape[1]) if base.is_text(ordered.iloc[:, j])]
        places = text if len(text) == len(self.categories) else sorted(self._categorical.union(text))
        if not self.categories and not text:
            return ordered
        if len(places) != len(self.categories):
            received = [ordered.columns[j] for j in places]
            raise InputError("models.category_columns", expected=len(self.categories), received=received, count=len(places))
        # LightGBM treats an unknown category as a missing value, and so does this.
        casts = {
            ordered.columns[j]: base.to_categories(ordered.iloc[:, j], known)
            for j, known in zip(places, self.categories, strict=True)
        }
        return base.with_columns(ordered, casts)

    def _ordered(self, frame: pd.DataFrame) -> pd.DataFrame:
        if self.by_place and len(self.names) == frame.shape[1]:
            return frame
        # LightGBM writes an underscore for a space.
        spaced = frame.rename(columns={name: str(name).replace(" ", "_") for name in frame.columns})
        return base.ordered_columns(spaced, self.names, LIBRARY)


def read_header(booster: "Booster") -> dict[str, str]:
    """Return the entries at the top of the model's text; at most one tree is written."""
    head = booster.model_to_string(num_iteration=1).split("\nTree=")[0]
    return dict(line.split("=", 1) for line in head.splitlines() if "=" in line)
