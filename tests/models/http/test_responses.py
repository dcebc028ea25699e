"""Whatever JSON a far side sends: labels and chances of the right shape, or one sentence."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fasterce.models.http.client import RemoteModelError
from fasterce.models.http.inference import _outputs
from fasterce.models.http.mlflow import _columns
from fasterce.models.http.responses import ResponseReader

ROWS = 3
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["label", "probability", "a", "0"]), inner),
    max_leaves=12,
)
ENTRY = SCALARS | st.lists(st.floats(0, 1), min_size=1, max_size=3) | st.dictionaries(st.sampled_from("ab"), st.floats(0, 1))
READERS = st.builds(
    ResponseReader,
    st.none() | st.just(("a", "b")) | st.just((0, 1, 2)),
    st.sampled_from(["auto", "labels", "chances"]),
    st.none() | st.just("label"),
    st.none() | st.just("probability") | st.just(["a", "0"]),
)


def check(read: Any) -> None:
    said = None
    try:
        told = read()
    except RemoteModelError as error:
        said = str(error)
    if said is not None:
        assert said.endswith(".")
        assert "\n" not in said
        return
    assert told.labels is not None or told.chances is not None
    if told.labels is not None:
        assert told.labels.shape == (ROWS,)
        assert not any(value is None for value in told.labels)
    if told.chances is not None:
        assert told.chances.shape[0] == ROWS
        assert told.chances.shape[1] >= 2
        assert np.isfinite(told.chances).all()


@settings(max_examples=300)
@given(JSON | st.lists(ENTRY, min_size=ROWS, max_size=ROWS).map(lambda some: {"predictions": some}), READERS)
def test_responses_of_mlflow(answer: Any, reader: ResponseReader) -> None:
    check(lambda: reader.read(_columns(answer), ROWS))


@settings(max_examples=300)
@given(
    st.lists(
        JSON | st.fixed_dictionaries({"name": st.sampled_from(["label", "probability"]), "data": JSON | st.lists(ENTRY)}),
        max_size=3,
    ),
    READERS,
)
def test_responses_of_v2(outputs: Any, reader: ResponseReader) -> None:
    check(lambda: reader.read(_outputs(outputs, ROWS), ROWS))
