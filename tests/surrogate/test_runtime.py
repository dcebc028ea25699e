"""The copy at run time, against plain interpolation and loops."""

from dataclasses import asdict

import numpy as np
import pytest

from fasterce.surrogate.runtime import Surrogate, lead_of

KNOTS = np.array([0.0, 1.0, 4.0, 10.0, 0.0, 1.0, 2.0, -5.0, 5.0])
START = np.array([0, 4, 7, 9])
NUMERIC = np.array([True, False, True])


def copy(classes: int = 2, hidden: int = 5, seed: int = 0) -> Surrogate:
    rng, outputs = np.random.default_rng(seed), 1 if classes == 2 else classes
    return Surrogate(
        knots=KNOTS,
        entries=rng.normal(size=(len(KNOTS), hidden)).astype(np.float32),
        start=START,
        numeric=NUMERIC,
        bias=rng.normal(size=hidden).astype(np.float32),
        weight=rng.normal(size=(hidden, outputs)).astype(np.float32),
        offset=rng.normal(size=outputs).astype(np.float32),
        error=0.25,
        agreement=0.9,
    )


def rows(count: int = 40) -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.column_stack([rng.uniform(-2, 12, count), rng.integers(3, size=count), rng.uniform(-8, 8, count)])


def by_hand(made: Surrogate, row: np.ndarray) -> np.ndarray:
    hidden = made.bias.astype(float).copy()
    for j, value in enumerate(row):
        table, knots = made.entries[START[j] : START[j + 1]], KNOTS[START[j] : START[j + 1]]
        hidden += [np.interp(value, knots, column) for column in table.T] if NUMERIC[j] else table[int(value)]
    return np.maximum(hidden, 0) @ made.weight + made.offset


def test_numbers_are_interpolated_between_knots_and_no_farther() -> None:
    made = copy()
    codes = np.array([[value, 2.0, 1.0] for value in (-3.0, 0.0, 0.5, 1.0, 2.5, 4.0, 10.0, 11.0)])
    found = made.outputs_of(codes[:, None])[:, 0]
    np.testing.assert_allclose(found, [by_hand(made, row) for row in codes], atol=1e-6)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[-1], found[-2])


@pytest.mark.parametrize("classes", [2, 3])
def test_margins_are_the_wanted_classs_lead(classes: int) -> None:
    made, codes = copy(classes), rows()
    target = np.arange(40) % classes
    found = lead_of(made.outputs_of(codes[:, None]), target)[:, 0]
    for i in range(40):
        scores = by_hand(made, codes[i])
        if classes == 2:
            expected = scores[0] if target[i] == 1 else -scores[0]
        else:
            expected = scores[target[i]] - np.delete(scores, target[i]).max()
        assert found[i] == pytest.approx(expected, abs=1e-4)


def test_candidates_of_a_row_do_not_depend_on_each_other() -> None:
    made, codes = copy(3), rows()
    together = lead_of(made.outputs_of(codes.reshape(8, 5, 3)), np.arange(8) % 3)
    alone = np.stack([lead_of(made.outputs_of(codes[5 * i : 5 * i + 5][None]), np.array([i % 3]))[0] for i in range(8)])
    np.testing.assert_array_equal(together, alone)


def test_a_feature_with_a_single_knot_is_constant() -> None:
    made = Surrogate(
        np.array([3.0]),
        np.ones((1, 2), dtype=np.float32),
        np.array([0, 1]),
        np.array([True]),
        np.zeros(2, dtype=np.float32),
        np.ones((2, 1), dtype=np.float32),
        np.zeros(1, dtype=np.float32),
        0.1,
        1.0,
    )
    lead = lead_of(made.outputs_of(np.array([[[1.0], [3.0], [9.0]]])), np.array([1]))
    np.testing.assert_array_equal(lead, [[2.0, 2.0, 2.0]])


def test_its_arrays_make_it_again() -> None:
    made = copy(3)
    again = Surrogate(**asdict(made))
    np.testing.assert_array_equal(again.outputs_of(rows()[:, None]), made.outputs_of(rows()[:, None]))
    assert (again.error, again.agreement) == (0.25, 0.9)
