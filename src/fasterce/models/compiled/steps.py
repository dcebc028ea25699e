"""The steps of a model: what a search over parameters selected, the steps of a pipeline, the order of classes."""

from collections.abc import Hashable
from typing import Any

from fasterce.data.dtypes import plain
from fasterce.models.adapters import RenamedModel
from fasterce.models.adapters.base import type_names
from fasterce.models.compiled.model import NotCompiledError
from fasterce.models.compiled.preprocessing import Transform


def unwrapped(model: object) -> object:
    """Return the model that has other names for its classes."""
    return model.model if isinstance(model, RenamedModel) else model


def best_estimator(model: object) -> Any:
    """Return the estimator a search over parameters selected, which it predicts with."""
    found = getattr(model, "best_estimator_", None)
    return model if found is None else best_estimator(found)


def split_steps(model: Any) -> tuple[Transform, Any]:
    """Return all steps but the last as one function, and the last."""
    if ("sklearn", "Pipeline") not in type_names(model):
        return lambda frame: frame, model
    transform, last = split_steps(best_estimator(model.steps[-1][1]))
    if len(model.steps) == 1:
        return transform, last
    before = model[:-1]
    return lambda frame: transform(before.transform(frame)), last


def class_order(model: object, classes: tuple[Hashable, ...]) -> tuple[int, ...]:
    """Return for every class its position among the model's own."""
    known = [plain(label) for label in getattr(model, "classes_", ())]
    if set(known) != set(classes):
        raise NotCompiledError("models.compile_classes", received=known, expected=classes)
    return tuple(known.index(label) for label in classes)


def package(model: object) -> str:
    """Return the name of the package a model's type is from."""
    return type(model).__module__.split(".")[0]
