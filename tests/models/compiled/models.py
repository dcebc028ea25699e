"""Small mixed tables and fitted models that the tests of the twin share."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fasterce import Schema
from fasterce.data.table import Table
from fasterce.models.compiled.model import NotCompiledError
from fasterce.models.predictor import Predictor
from fasterce.typing import Floats

LAND = ["north", "south", "east", "west"]


def people(rows: int = 500, seed: int = 0, words: str = "str") -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "land": rng.choice(LAND, rows),
            "debt": rng.gamma(2.0, 10.0, rows).round(1),
            "owner": rng.random(rows) < 0.4,
            "years": rng.normal(10, 4, rows).astype(np.float32),
        }
    )
    return frame.assign(land=pd.Categorical(frame["land"], LAND)) if words == "category" else frame


def numbers(rows: int = 500, seed: int = 0) -> pd.DataFrame:
    return people(rows, seed)[["age", "debt", "years"]]


def shuffled(frame: pd.DataFrame, rows: int = 300) -> pd.DataFrame:
    """New rows of the same values, drawn column by column."""
    drawn = {name: frame[name].sample(rows, replace=True, random_state=k) for k, name in enumerate(frame.columns)}
    return pd.DataFrame({name: column.reset_index(drop=True) for name, column in drawn.items()})


def outcome(frame: pd.DataFrame, names: tuple[Any, ...] = (0, 1)) -> np.ndarray:
    worth = 0.05 * frame["age"] - 0.08 * frame["debt"] + 0.1 * frame["years"] - 2.0
    if "land" in frame:
        worth = worth + 0.9 * (frame["land"] == "south") + 0.8 * frame["owner"]
    noisy = worth.to_numpy() + np.random.default_rng(9).normal(0, 0.3, len(frame))
    return np.array(names)[np.digitize(noisy, [0.0] if len(names) == 2 else [-0.7, 0.7])]


def columns(number: Any = None, word: Any = None, **options: Any) -> Any:
    return make_column_transformer(
        (number or StandardScaler(), make_column_selector(dtype_include="number")),
        (word or OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        **options,
    )


def coded(frame: pd.DataFrame, schema: Schema | None = None) -> tuple[Table, Floats]:
    table = Table.like(frame, schema or Schema.infer(frame))
    return table, table.read(frame).codes


def prepared(model: Any, frame: pd.DataFrame, use_scores: bool = True) -> tuple[Predictor, Table, Floats]:
    table, codes = coded(frame)
    return Predictor(model, table, tuple(model.classes_), use_scores), table, codes


@contextmanager
def without_scorer() -> Iterator[None]:
    """As if the structure of no model could be read."""

    def refuse(*_: Any) -> None:
        raise NotCompiledError("models.compile_structure", received="none")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["fasterce.models.compiled.build"], "read_scorer", refuse)
        yield
