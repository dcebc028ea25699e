"""Check the input of `fit`: training rows, a custom autoencoder, a model that must accept missing values."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from fasterce.data.codec import Codec
from fasterce.data.frames import as_pandas, kind_of
from fasterce.data.schema import MISSING, Schema, check_table, infer
from fasterce.data.table import Table
from fasterce.errors import InputError, ModelError
from fasterce.latent.runtime import Callables
from fasterce.models.predictor import Predictor
from fasterce.typing import Floats

MIN_ROWS = 10
# Below the code of a missing number.
LARGEST_NUMBER = 1e30


def read_training_rows(X: object, schema: Schema | None) -> tuple[Table, pd.DataFrame, Floats]:
    """Return the table of `X`, its rows in pandas, and their codes."""
    if isinstance(X, pd.Series) or (isinstance(X, np.ndarray) and X.ndim == 1):
        raise InputError("fitting.one_row", option="X", type=type(X).__name__)
    frame = as_pandas(X, names=schema.names if isinstance(schema, Schema) else None)
    check_table(frame, "X")
    if schema is not None and not isinstance(schema, Schema):
        raise InputError("fitting.not_a_schema", option="schema", type=type(schema).__name__)
    _check_count(len(frame), "X", MIN_ROWS)
    table = replace(Table.like(frame, schema or infer(frame)), kind=kind_of(X))
    return table, frame, read_rows(table, frame, "X", "fitting.unusable_rows", MIN_ROWS)


def read_rows(table: Table, rows: object, option: str, unusable: str, least: int) -> Floats:
    """Return the codes of rows that must all be usable; `unusable` is the code of the problem if some are not.

    Numbers as large as the code of a missing value are rejected, too.
    """
    reading = table.read(rows)
    _check_count(len(reading.codes), option, least)
    if reading.problems:
        raise InputError(unusable, option=option, count=len(reading.problems), first=reading.first_problem)
    too_large = (np.abs(reading.codes) * (reading.codes != MISSING)).max(axis=0) > LARGEST_NUMBER
    if too_large.any():
        column = table.schema.names[int(too_large.argmax())]
        raise InputError("fitting.number_too_large", column=column, expected=LARGEST_NUMBER)
    return reading.codes


def _check_count(count: int, option: str, least: int) -> None:
    if count < least:
        raise InputError("fitting.too_few_rows", option=option, expected=least, received=count)


def check_missing_accepted(predictor: Predictor, codec: Codec, codes: Floats) -> None:
    """Reject a model that fails on missing values the schema allows, but not on the same row without them."""
    features = codec.schema.features
    nullable = [j for j, feature in enumerate(features) if feature.nullable]
    if not nullable:
        return
    complete = codes[:1].copy()
    complete[0, nullable] = [codec.profile.median[j] if features[j].numeric else 0.0 for j in nullable]
    with_missing = np.repeat(complete, len(nullable), axis=0)
    with_missing[np.arange(len(nullable)), nullable] = [features[j].missing_code for j in nullable]
    if predictor.accepts(with_missing):
        return
    failure = predictor.error().problem
    if predictor.accepts(complete):
        raise ModelError("fitting.missing_refused", columns=[features[j].name for j in nullable], failure=failure)


def custom_autoencoder(coders: Sequence[object], matrix: Floats) -> Callables:
    """Return the caller's own (encode, decode) once they work on a few encoded rows."""
    if not isinstance(coders, (tuple, list)) or len(coders) != 2 or not all(callable(coder) for coder in coders):
        raise InputError("fitting.not_coders", option="autoencoder", received=coders)
    own = Callables(*coders)
    latent = own.encode(matrix)
    if latent.ndim != 2 or len(latent) != len(matrix) or latent.shape[1] == 0:
        raise InputError("fitting.encoded_shape", received=str(latent.shape), rows=len(matrix))
    decoded = own.decode(latent)
    if decoded.shape != matrix.shape:
        raise InputError("fitting.decoded_shape", expected=str(matrix.shape), received=str(decoded.shape))
    for name, values in (("encode", latent), ("decode", decoded)):
        if not np.isfinite(values).all():
            raise InputError("fitting.not_finite", function=name)
    return own
