"""The model has the last word."""

from typing import Any

import numpy as np
import pytest

from fasterce.models.predictions import Predictions
from fasterce.search.pool import Pool
from fasterce.search.query_targets import Named
from fasterce.search.verify import verify

ROW = [3.0, 1.0, 5.0, 7.0]


@pytest.fixture
def run(toys: Any) -> Any:
    codec, _ = toys.codec(toys.frame())

    def verified(lead: Any, codes: Any, group: Any = None, wanted: int = 1, valid: Any = None, **constraints: Any) -> Any:
        model = toys.Model(lead)
        asked: list[np.ndarray] = []

        def confirm(rows: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            asked.append(points)
            return model.label(points) == 1, points[:, 0]

        points = np.array(codes, dtype=float)
        domain = toys.domain(codec, constraints.pop("row", [ROW] * len(points)), **constraints)
        known = np.ones(points.shape[:2], dtype=bool) if valid is None else np.array(valid)
        pool = Pool(points, known, np.zeros(points.shape[:2]), np.zeros(points.shape[:2]))
        group = np.zeros(points.shape[1], dtype=np.intp) if group is None else np.array(group)
        kept, value = verify(pool, group, domain, confirm, wanted)
        np.testing.assert_array_equal(value[kept], points[kept][:, 0])
        return kept.tolist(), asked

    return verified


def above(limit: float) -> Any:
    return lambda codes: codes[:, 0] - limit


def with_a(*values: float) -> list[list[float]]:
    return [[value, *ROW[1:]] for value in values]


def test_the_first_is_confirmed_and_the_rest_not_evaluated(run: Any) -> None:
    kept, asked = run(above(5), [with_a(6.0, 7.0, 8.0)])
    assert kept == [[True, False, False]]
    np.testing.assert_array_equal(asked, [with_a(6.0)])


def test_what_the_model_refuses_is_replaced_once(run: Any) -> None:
    kept, asked = run(above(5), [with_a(4.0, 7.0, 8.0), with_a(6.0, 7.0, 8.0), with_a(4.0, 4.5, 8.0)])
    assert kept == [[False, True, False], [True, False, False], [False, False, False]]
    assert len(asked) == 2
    np.testing.assert_array_equal(asked[1][:, 0], [7.0, 4.5])


def test_as_many_as_wanted_of_every_group(run: Any) -> None:
    kept, _ = run(above(5), [with_a(6.0, 7.0, 8.0, 4.0, 6.5, 7.5)], group=[0, 0, 0, 1, 1, 1], wanted=2)
    assert kept == [[True, True, False, False, True, True]]


def test_unchanged_illegal_and_unproven_rows_are_never_returned(run: Any) -> None:
    codes = [
        [ROW, [6.0, 2.0, 5.0, 7.0], [6.0, 1.0, 6.0, 7.0], [11.0, 1.0, 5.0, 7.0], [6.0, 1.0, 5.0, 7.5], [6.0, 1.0, 5.0, 8.0]]
    ]
    kept, asked = run(lambda c: np.ones(len(c)), codes, wanted=6, frozen=[2], allowed={1: [1, 3]})
    assert kept == [[False, False, False, False, False, True]]
    assert len(asked[0]) == 1
    kept, asked = run(above(5), [with_a(6.0, 7.0)], valid=[[False, True]], wanted=2)
    assert kept == [[False, True]]
    np.testing.assert_array_equal(asked[0][:, 0], [7.0])


def test_a_row_moved_into_its_range_counts_as_changed(run: Any) -> None:
    kept, _ = run(above(5), [with_a(6.0)], row=[[3.0, 1.0, 5.0, 7.0]], base=[[6.0, 1.0, 5.0, 7.0]], lower={0: 6.0})
    assert kept == [[True]]
    kept, _ = run(above(5), [with_a(6.0)], row=[[6.0, 1.0, 5.0, 7.0]], base=[[7.0, 1.0, 5.0, 7.0]])
    assert kept == [[False]], "the row as it is, is no counterfactual"


def test_a_failed_prediction_confirms_nothing(toys: Any) -> None:
    codec, _ = toys.codec(toys.frame())
    points = np.array([with_a(6.0, 7.0)])
    pool = Pool(points, np.ones((1, 2), dtype=bool), np.zeros((1, 2)), np.zeros((1, 2)))
    targets, failed = Named(np.array([1])), lambda codes: Predictions(np.full(len(codes), -1, dtype=np.intp))
    kept, _ = verify(
        pool,
        np.zeros(2, dtype=np.intp),
        toys.domain(codec, ROW),
        lambda rows, codes: (targets.reached(failed(codes), rows), np.full(len(codes), np.nan)),
        1,
    )
    assert not kept.any()


def test_nothing_to_ask_asks_nothing(run: Any) -> None:
    kept, asked = run(above(5), [[ROW, ROW]])
    assert kept == [[False, False]]
    assert asked == []
