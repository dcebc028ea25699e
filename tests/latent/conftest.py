"""Small tables turned into codecs and matrices."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.typing import Floats
from tests.search.conftest import toys  # noqa: F401 - a fixture

Encoded = tuple[Codec, Floats, Floats]


def encode_table(frame: pd.DataFrame, **constraints: Any) -> Encoded:
    """The codec of a table, its codes and its matrix."""
    schema = Schema.infer(frame, **constraints)
    codes = Table.like(frame, schema).read(frame).codes
    codec = Codec(schema, Profile.measure(codes, schema))
    return codec, codes, codec.encode(codes)


@pytest.fixture(scope="session")
def encoded() -> Callable[..., Encoded]:
    return encode_table


@pytest.fixture(scope="session")
def correlated() -> pd.DataFrame:
    """Five columns driven by two hidden causes, and a job that follows one of them."""
    rng = np.random.default_rng(3)
    one, two = rng.normal(size=(2, 400))
    noise = rng.normal(size=(5, 400)) * 0.1
    return pd.DataFrame(
        {
            "a": (one + noise[0]).round(3),
            "b": (two + noise[1]).round(3),
            "job": np.where(one > 0.6, "smith", np.where(one < -0.6, "clerk", "nurse")),
            "c": (one - two + noise[2]).round(3),
            "d": (one + two + noise[3]).round(3),
            "e": (2 * two + noise[4]).round(3),
        }
    )
