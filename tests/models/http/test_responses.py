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
    problem = None
    try:
        response = read()
    except RemoteModelError as error:
        problem = str(error)
    if problem is not None:
        assert problem.endswith(".")
        assert "\n" not in problem
        return
    assert response.labels is not None or response.chances is not None
    if response.labels is not None:
        assert response.labels.shape == (ROWS,)
        assert not any(value is None for value in response.labels)
    if response.chances is not None:
        assert response.chances.shape[0] == ROWS
        assert response.chances.shape[1] >= 2
        assert np.isfinite(response.chances).all()


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
