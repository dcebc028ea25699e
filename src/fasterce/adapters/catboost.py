"""CatBoost: native models and its estimators."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fasterce.adapters.base import Adapter, as_classes, in_order, label_array
from fasterce.errors import InputError
from fasterce.profile import Floats

WHAT = "The CatBoost model"


class CatBoostModel(Adapter):
    """A `CatBoost` model of any kind: with classes it answers these, else numbers. Columns are taken by name."""

    def __init__(self, model: Any, *, classes: Sequence[Any] | None = None) -> None:
        self.model = model
        own = list(model.classes_)
        if classes is not None and not own:
            raise InputError(f"classes must be None for a model that answers numbers; got {list(classes)!r:.100}.")
        named = as_classes(classes, len(own), WHAT.lower()) if classes is not None else label_array(own)
        super().__init__(named if own else None)

    @property
    def by_name(self) -> bool:
        return not all(name == str(place) for place, name in enumerate(self.model.feature_names_))

    def respond(self, frame: pd.DataFrame) -> Floats:
        ordered = in_order(frame, self.model.feature_names_, WHAT) if self.by_name else frame
        kind = "RawFormulaVal" if self.answers_numbers else "Probability"
        return np.asarray(self.model.predict(ordered, prediction_type=kind))
