"""LightGBM: native boosters, and estimators asked about tables whose categories are text."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fasterce.adapters.base import Adapter, as_classes, in_order, is_text, to_categories, two_columns, with_columns
from fasterce.errors import InputError, shorten
from fasterce.profile import Floats

WHAT = "The LightGBM model"
MANY = ("multiclass", "multiclassova", "softmax", "ova")
PLAIN = "Column_"


class LightGBMModel(Adapter):
    """A native `Booster` (or a fitted LightGBM estimator): its objective says whether it answers classes or numbers.

    Columns are taken by name, and text columns are cast to the categories stored with the model.
    """

    def __init__(self, booster: Any, *, classes: Sequence[Any] | None = None) -> None:
        self.booster = getattr(booster, "booster_", booster)
        header = read_header(self.booster)
        self.objective = header.get("objective", "custom").split(" ")[0]
        self.ready = Preparation(self.booster)
        super().__init__(_classes(self.objective, int(header["num_class"]), classes))

    @property
    def by_name(self) -> bool:
        return not self.ready.by_place

    def respond(self, frame: pd.DataFrame) -> Floats:
        return self.respond_to(self.ready(frame))

    def respond_to(self, ready: Any) -> Floats:
        """The same of a frame made ready, or of a matrix of its numbers and the places of its categories."""
        answer = np.asarray(self.booster.predict(ready))
        if self.answers_numbers or answer.ndim > 1:
            # One against all gives chances that do not sum to 1 by themselves.
            return answer / answer.sum(axis=1, keepdims=True) if self.objective == "multiclassova" else answer
        return two_columns(answer)


class Preparation:
    """A frame as a booster wants it: columns by name, categories as it was trained with."""

    def __init__(self, booster: Any) -> None:
        self.booster = booster
        self.names: list[str] = booster.feature_name()
        self.by_place = all(name.startswith(PLAIN) for name in self.names)
        self.categories: list[list[Any]] = booster.pandas_categorical or []

    @cached_property
    def _categorical(self) -> set[int]:
        infos = read_header(self.booster).get("feature_infos", "").split(" ")
        return {place for place, info in enumerate(infos) if ":" in info and not info.startswith("[")}

    def __call__(self, frame: pd.DataFrame) -> pd.DataFrame:
        ordered = self._ordered(frame)
        places = [j for j in range(ordered.shape[1]) if is_text(ordered.iloc[:, j])]
        if len(places) != len(self.categories):
            places = sorted(self._categorical.union(places))
        if not self.categories and not any(is_text(ordered.iloc[:, j]) for j in places):
            return ordered
        if len(places) != len(self.categories):
            raise InputError(
                f"{WHAT} was trained with {len(self.categories)} columns of categories; got {len(places)}: "
                f"{shorten([ordered.columns[j] for j in places])}."
            )
        # LightGBM takes a category it does not know for a missing value, and so does this.
        casts = {
            ordered.columns[j]: to_categories(ordered.iloc[:, j], held)
            for j, held in zip(places, self.categories, strict=True)
        }
        return with_columns(ordered, casts)

    def _ordered(self, frame: pd.DataFrame) -> pd.DataFrame:
        if self.by_place and len(self.names) == frame.shape[1]:
            return frame
        # LightGBM writes an underscore for a space.
        spaced = frame.rename(columns={name: str(name).replace(" ", "_") for name in frame.columns})
        return in_order(spaced, self.names, WHAT)


def read_header(booster: Any) -> dict[str, str]:
    """What the head of the model's text says; one tree is written at most."""
    head = booster.model_to_string(num_iteration=1).split("\nTree=")[0]
    return dict(line.split("=", 1) for line in head.splitlines() if "=" in line)


def _classes(objective: str, count: int, names: Sequence[Any] | None) -> Any:
    if objective == "binary":
        return as_classes(names, 2, WHAT.lower())
    if objective in MANY:
        return as_classes(names, count, WHAT.lower())
    if names is not None:
        raise InputError(f"classes must be None for a model that answers numbers ({objective}); got {list(names)!r:.100}.")
    return None
