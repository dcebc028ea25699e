"""CatBoost: native models and its estimators."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fasterce.models.adapters.base import Adapter, Labels, as_classes, label_array, ordered_columns
from fasterce.typing import Floats

if TYPE_CHECKING:
    from catboost import CatBoost

LIBRARY = "CatBoost"


class CatBoostModel(Adapter):
    """A `CatBoost` model of any kind: it predicts its classes, or numbers if it has none. Columns are matched by name.

    Parameters
    ----------
    model : catboost.CatBoost
    classes : sequence, optional
        Labels instead of the model's own.
    """

    def __init__(self, model: "CatBoost", *, classes: Labels | None = None) -> None:
        self.model = model
        self.by_name = any(name != str(place) for place, name in enumerate(model.feature_names_))
        own = list(model.classes_)
        super().__init__(label_array(own) if own and classes is None else as_classes(classes, len(own) or None))

    @property
    def booster(self) -> "CatBoost":
        return self.model

    def prepare(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns in the order of the model's features."""
        return ordered_columns(frame, self.model.feature_names_, LIBRARY) if self.by_name else frame

    def evaluate(self, frame: pd.DataFrame) -> Floats:
        ordered = self.prepare(frame)
        kind = "RawFormulaVal" if self.predicts_numbers else "Probability"
        return np.asarray(self.model.predict(ordered, prediction_type=kind))
