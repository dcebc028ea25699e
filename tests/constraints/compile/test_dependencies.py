"""Rules between features: what follows from what, on codes alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fasterce.constraints.compile.dependencies import (
    Clause,
    Dependencies,
    Dependency,
    derived_feature,
    direction_follower,
    formula_comparison,
    implication,
    proportional_follower,
)
from fasterce.constraints.compile.domain import Domain
from fasterce.constraints.compile.program import postfix
from fasterce.constraints.formula import parse_formula

A, JOB, B, K = range(4)
ROW = [4.0, 1.0, 5.25, 7.0]


@pytest.fixture
def make(toys: Any) -> Any:
    codec, _ = toys.codec(toys.frame())

    def domain(*links: Dependency, rows: Any = ROW, **constraints: Any) -> Domain:
        plain = toys.domain(codec, rows, **constraints)
        compiled = Dependencies.of(links)
        free = plain.free.copy()
        free[:, list(compiled.driven)] = False
        return replace(plain, dependencies=compiled, movable=plain.free, free=free)

    return domain


def completed(domain: Domain, *points: list[float]) -> list[list[float]]:
    codes = domain.complete(np.array([points]))
    np.testing.assert_array_equal(domain.complete(codes), codes)
    return codes[0].tolist()


def accepts(domain: Domain, *points: list[float]) -> list[bool]:
    return domain.contains(np.array([points]))[0].tolist()


def test_a_derived_feature_is_computed_where_an_input_changed(make: Any) -> None:
    domain = make(derived_feature(B, (A,), lambda codes: codes[:, A] / 3))
    assert completed(domain, ROW, [5.0, 1, 9, 7]) == [ROW, [5.0, 1, 1.67, 7]]
    assert accepts(domain, ROW, [5.0, 1, 1.67, 7], [5.0, 1, 1.66, 7], [4.0, 1, 1.33, 7]) == [True, True, False, False]


def test_what_cannot_be_computed_is_never_legal(make: Any) -> None:
    domain = make(derived_feature(B, (A,), lambda codes: np.full(len(codes), np.nan)))
    assert completed(domain, [5.0, 1, 9, 7]) == [[5.0, 1, 5.25, 7]]
    assert accepts(domain, ROW, [5.0, 1, 5.25, 7]) == [True, False]


def test_a_derived_value_outside_its_bounds_is_refused(make: Any) -> None:
    domain = make(derived_feature(B, (A,), lambda codes: codes[:, A] * 2), upper={B: 9.0})
    assert accepts(domain, [4.5, 1, 9.0, 7], [4.6, 1, 9.2, 7]) == [True, False]


def test_a_derived_feature_that_may_not_change_holds_its_inputs(make: Any) -> None:
    domain = make(derived_feature(B, (A,), lambda codes: codes[:, A] * 2), frozen=[B])
    assert completed(domain, [4.5, 1, 5.25, 7]) == [[4.5, 1, 5.25, 7]]
    assert accepts(domain, [4.5, 1, 5.25, 7], ROW) == [False, True]


def test_an_equality_is_solved_for_one_feature(make: Any) -> None:
    total = postfix(parse_formula("a + k"), {"a": A, "k": K})
    link = formula_comparison((A, K), (postfix(parse_formula("b"), {"b": B}), "==", total), 0.005, B, total)
    domain = make(link)
    assert not domain.free[0, B]
    assert domain.may_move[0, B]
    assert completed(domain, [2.5, 1, 0, 3]) == [[2.5, 1, 5.5, 3]]
    assert accepts(domain, [2.5, 1, 5.5, 3], [2.5, 1, 5.4, 3]) == [True, False]


def test_a_follower_moves_in_proportion(make: Any) -> None:
    domain = make(proportional_follower(A, B, 0.5, None))
    assert completed(domain, [4.0, 1, 9, 7], [6.0, 1, 5.25, 7], [3.51, 2, 0, 7]) == [
        ROW,
        [6.0, 1, 6.25, 7],
        [3.51, 2, 5.0, 7],
    ]
    assert accepts(domain, ROW, [6.0, 1, 6.25, 7], [6.0, 1, 5.25, 7]) == [True, True, False]


def test_categories_lead_by_their_level(make: Any) -> None:
    domain = make(proportional_follower(JOB, K, 3.0, np.array([2.0, 0.0, 1.0, np.nan])))
    assert completed(domain, [4.0, 2, 5.25, 7], [4.0, 0, 5.25, 7]) == [[4.0, 2, 5.25, 10], [4.0, 0, 5.25, 13]]
    assert accepts(domain, *completed(domain, [4.0, 3, 5.25, 7])) == [False], "a category without a place leads nowhere"


@pytest.mark.parametrize(("sign", "up"), [(1.0, 8.0), (-1.0, 6.0)])
def test_a_direction_is_followed_by_the_smallest_amount(make: Any, sign: float, up: float) -> None:
    domain = make(direction_follower(A, K, sign, None, None))
    assert domain.free.all()
    assert completed(domain, [5.0, 1, 5.25, 7]) == [[5.0, 1, 5.25, up]]
    far = 7 + 5 * (up - 7)
    assert completed(domain, [5.0, 1, 5.25, far]) == [[5.0, 1, 5.25, far]], "what goes the right way stays"
    assert accepts(domain, [5.0, 1, 5.25, up], [5.0, 1, 5.25, 7], [5.0, 1, 5.25, 14 - up]) == [True, False, False]
    assert completed(domain, [4.0, 1, 5.25, 9]) == [[4.0, 1, 5.25, 9]], "a leader that stays leads nobody"


def test_a_direction_with_no_room_left_is_refused(make: Any) -> None:
    domain = make(direction_follower(A, K, 1.0, None, None), upper={K: 7.0})
    assert accepts(domain, *completed(domain, [5.0, 1, 5.25, 7])) == [False]


def test_a_category_follows_to_the_next_open_level(make: Any) -> None:
    domain = make(direction_follower(A, JOB, 1.0, None, np.array([3.0, 0.0, 1.0, 2.0])), allowed={JOB: [0, 1, 3]})
    assert completed(domain, [5.0, 1, 5.25, 7]) == [[5.0, 3, 5.25, 7]]


def test_a_consequence_moves_only_what_is_wrong(make: Any) -> None:
    domain = make(implication((Clause(JOB, values=(2.0,)),), Clause(K, 10.0, 12.5)))
    assert completed(domain, ROW, [4.0, 2, 5.25, 7], [4.0, 2, 5.25, 15], [4.0, 2, 5.25, 11]) == [
        ROW,
        [4.0, 2, 5.25, 10],
        [4.0, 2, 5.25, 12],
        [4.0, 2, 5.25, 11],
    ]
    assert accepts(domain, [4.0, 2, 5.25, 7], [4.0, 2, 5.25, 10], ROW) == [False, True, True]


def test_a_consequence_prefers_the_rows_own_category_then_the_first_open(make: Any) -> None:
    when = (Clause(A, 6.0),)
    own = make(implication(when, Clause(JOB, values=(3.0, 1.0))))
    assert completed(own, [7.0, 2, 5.25, 7]) == [[7.0, 1, 5.25, 7]]
    other = make(implication(when, Clause(JOB, values=(3.0, 0.0))))
    assert completed(other, [7.0, 2, 5.25, 7]) == [[7.0, 3, 5.25, 7]]
    closed = make(implication(when, Clause(JOB, values=(3.0, 0.0))), allowed={JOB: [0, 1, 2]})
    assert completed(closed, [7.0, 2, 5.25, 7]) == [[7.0, 0, 5.25, 7]]
    nothing = make(implication(when, Clause(JOB, values=(3.0,))), allowed={JOB: [0, 1, 2]})
    assert accepts(nothing, *completed(nothing, [7.0, 2, 5.25, 7])) == [False]


def test_links_work_in_the_order_they_need(make: Any) -> None:
    """b follows k, k follows a: whatever the order they are given in."""
    links: list[Dependency] = [
        derived_feature(B, (K,), lambda codes: codes[:, K] / 2),
        proportional_follower(A, K, 2.0, None),
    ]
    for order in (links, links[::-1]):
        domain = make(*order)
        assert domain.dependencies.settles
        assert completed(domain, [5.0, 1, 5.25, 7]) == [[5.0, 1, 4.5, 9]]


def test_constraints_that_chase_each_other_end_at_the_base(make: Any) -> None:
    up = implication((Clause(A, 0.0, 5.0),), Clause(K, 10.0))
    down = implication((Clause(K, 9.0),), Clause(A, 6.0))
    back = implication((Clause(A, 5.5),), Clause(K, -np.inf, 3.0))
    again = implication((Clause(K, -np.inf, 3.0),), Clause(A, 0.0, 5.0))
    domain = make(down, again, up, back)
    assert not domain.dependencies.settles
    assert completed(domain, [3.0, 1, 5.25, 7.0]) == [ROW]
    assert accepts(domain, ROW) == [False]


def test_without_links_nothing_is_done(toys: Any) -> None:
    codec, _ = toys.codec(toys.frame())
    domain = toys.domain(codec, ROW)
    codes = np.array([[[9.0, 2.0, 3.0, 4.0]]])
    assert not domain.linked
    assert domain.complete(codes) is codes
    assert domain.complete_own(np.array([0]), codes[0]) is not None
