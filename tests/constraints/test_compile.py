"""What a row may become: the rules of the schema and of one call, held exactly for any rows and any candidates."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasterce import constraints as c
from fasterce.constraints.compile import CompiledConstraints
from fasterce.constraints.compile.domain import Domain
from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import MISSING, Schema
from fasterce.data.table import Table
from fasterce.errors import InputError, Problem


def compiled(X: pd.DataFrame, vary: Any = None, permitted: Any = None, **schema: Any) -> CompiledConstraints:
    table = Table.like(X, Schema.infer(X, **schema))
    codec = Codec(table.schema, Profile.measure(table.read(X).codes, table.schema))
    return CompiledConstraints.compile(table, codec, vary, permitted)


def restricted(constraints: CompiledConstraints, rows: pd.DataFrame) -> tuple[Domain, dict[int, Problem]]:
    reading = constraints.table.read(rows)
    assert reading.problems == {}
    return constraints.domain(reading.codes)


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [20, 40, 60],
            "income": [1.5, 2.25, 3.0],
            "job": ["clerk", "nurse", "smith"],
            "grade": pd.Categorical(["low", "mid", "top"], ["low", "mid", "high", "top"], ordered=True),
        }
    )


def reach(domain: Domain, j: int, values: list[float]) -> np.ndarray:
    """What each row's feature `j` becomes when it is told to become each of these values: (rows, values)."""
    points = np.repeat(domain.base[:, None, :], len(values), axis=1)
    points[..., j] = values
    return domain.project(points)[..., j]


# --- the schema's rules ----------------------------------------------------------------------------------------------


def test_without_constraints_every_feature_moves_over_what_was_seen() -> None:
    domain, blocked = restricted(compiled(people()), people())
    assert blocked == {}
    assert np.array_equal(domain.base, domain.row)
    assert domain.free.all()
    assert reach(domain, 0, [-5, 33.4, 99]).tolist() == [[20, 33, 60]] * 3
    assert reach(domain, 1, [-5, 1.987, 99]).tolist() == [[1.5, 1.99, 3.0]] * 3
    assert reach(domain, 2, [0, 1, 2]).tolist() == [[0, 1, 2]] * 3


def test_an_immutable_column_stays_to_the_last_bit() -> None:
    rows = people().assign(income=[1 / 3, math.pi, 1e-7])
    domain, _ = restricted(compiled(people(), immutable=["income", "job"]), rows)
    assert reach(domain, 1, [2.0, 2.5]).tolist() == [[value] * 2 for value in rows["income"]]
    assert reach(domain, 2, [0, 1, 2]).tolist() == [[0] * 3, [1] * 3, [2] * 3]


def test_one_way_numbers_start_from_the_rows_own_value() -> None:
    domain, _ = restricted(compiled(people(), increasing=["age"], decreasing=["income"]), people())
    assert reach(domain, 0, [0, 50, 99]).tolist() == [[20, 50, 60], [40, 50, 60], [60, 60, 60]]
    assert reach(domain, 1, [0, 2.0, 99]).tolist() == [[1.5, 1.5, 1.5], [1.5, 2.0, 2.25], [1.5, 2.0, 3.0]]


def test_ordered_categories_go_up_only() -> None:
    domain, _ = restricted(compiled(people(), increasing=["grade"]), people())
    assert reach(domain, 3, [0, 1, 2, 3]).tolist() == [[0, 1, 2, 3], [1, 1, 2, 3], [3, 3, 3, 3]]


def test_ordered_categories_go_down_only() -> None:
    domain, _ = restricted(compiled(people(), decreasing=["grade"]), people())
    assert reach(domain, 3, [0, 1, 2, 3]).tolist() == [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 3]]


def test_a_range_merely_seen_bends_for_a_row_outside_it() -> None:
    rows = people().assign(age=[10, 40, 75])
    domain, blocked = restricted(compiled(people()), rows)
    assert blocked == {}
    assert domain.base[:, 0].tolist() == [10, 40, 75]
    assert reach(domain, 0, [0, 99]).tolist() == [[10, 60], [20, 60], [20, 75]]


def test_a_declared_range_holds_for_everyone() -> None:
    domain, _ = restricted(compiled(people(), ranges={"age": (18.5, 70.9)}), people())
    assert reach(domain, 0, [0, 99]).tolist() == [[19, 70]] * 3


# --- features_to_vary ------------------------------------------------------------------------------------------------


def test_only_named_features_vary() -> None:
    constraints = compiled(people(), vary=["income", "job"])
    assert constraints.named == (1, 2)
    domain, _ = restricted(constraints, people())
    assert domain.free.tolist() == [[False, True, True, False]] * 3
    assert reach(domain, 0, [50]).tolist() == [[20], [40], [60]]


@pytest.mark.parametrize("vary", [None, "all", ["age", "income", "job", "grade"]])
def test_naming_nothing_or_everything_varies_everything(vary: Any) -> None:
    constraints = compiled(people(), vary=vary)
    assert constraints.vary.all()
    assert constraints.named == ()


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        (["incme"], r"^Unknown column 'incme'; .*Did you mean 'income'\?$"),
        ("income", "^features_to_vary must be a list of column names; got 'income'.$"),
        ([], "^features_to_vary must name at least one column; got an empty list.$"),
        (["age", "job"], r"^features_to_vary must name columns that may change; 'job' cannot \(schema: immutable\).$"),
        (3, "^features_to_vary must be a list of column names; got "),
    ],
)
def test_features_that_cannot_vary_are_refused(vary: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compiled(people(), vary=vary, immutable=["job"])


# --- permitted_range -------------------------------------------------------------------------------------------------


def test_a_permitted_range_may_be_narrower_or_wider_than_what_was_seen() -> None:
    domain, _ = restricted(compiled(people(), permitted={"age": (30, 50), "income": (0, 9)}), people())
    assert reach(domain, 0, [0, 99]).tolist() == [[30, 50]] * 3
    assert reach(domain, 1, [-1, 99]).tolist() == [[0, 9]] * 3


def test_a_permitted_range_stays_inside_a_declared_one() -> None:
    constraints = compiled(people(), permitted={"age": (0, 50)}, ranges={"age": (18, 70)})
    assert reach(restricted(constraints, people())[0], 0, [0, 99]).tolist() == [[18, 50]] * 3


def test_permitted_categories_are_the_only_ones() -> None:
    constraints = compiled(people(), permitted={"job": ["smith", "nurse"]})
    domain, blocked = restricted(constraints, people())
    assert blocked == {}
    assert set(domain.base[:, 2]) <= {1.0, 2.0}
    assert domain.base[1:, 2].tolist() == [1, 2]
    assert set(reach(domain, 2, [0, 1, 2]).ravel()) == {1.0, 2.0}


def test_a_row_outside_a_permitted_range_is_moved_to_its_edge() -> None:
    domain, blocked = restricted(compiled(people(), permitted={"age": (30.5, 50.5), "income": (2, 2.5)}), people())
    assert blocked == {}
    assert domain.base[:, 0].tolist() == [31, 40, 50]
    assert domain.base[:, 1].tolist() == [2, 2.25, 2.5]
    assert domain.row[:, 0].tolist() == [20, 40, 60]


def test_a_row_that_may_not_move_into_a_permitted_range_is_reported() -> None:
    constraints = compiled(people(), permitted={"age": (30, 50)}, increasing=["age"])
    domain, blocked = restricted(constraints, people())
    assert blocked == {2: Problem("constraints.outside_permitted_range", column="age", received=60)}
    assert domain.base[:2, 0].tolist() == [30, 40]


def test_a_row_that_is_stuck_does_not_change_what_others_may_become() -> None:
    constraints = compiled(people(), permitted={"age": (30.5, 50.5)}, increasing=["age"])
    together, blocked = restricted(constraints, people())
    alone, _ = restricted(constraints, people().iloc[:1])
    assert list(blocked) == [2]
    assert alone.base[0, 0] == 31
    assert together.base[0, 0] == 31


def test_an_immutable_column_outside_its_permitted_range_is_reported() -> None:
    constraints = compiled(people(), permitted={"age": (30, 50), "job": ["nurse"]}, immutable=["age", "job"])
    _, blocked = restricted(constraints, people())
    assert sorted(blocked) == [0, 2]
    assert blocked[0] == Problem("constraints.outside_permitted_range", column="age", received=20)


def test_a_column_not_named_to_vary_but_outside_its_permitted_range_is_reported() -> None:
    _, blocked = restricted(compiled(people(), vary=["age"], permitted={"job": ["nurse", "smith"]}), people())
    assert blocked == {0: Problem("constraints.outside_permitted_range", column="job", received="clerk")}


def test_ordered_categories_move_into_their_permitted_ones_in_their_direction() -> None:
    constraints = compiled(people(), permitted={"grade": ["low", "high"]}, increasing=["grade"])
    domain, blocked = restricted(constraints, people())
    assert domain.base[:2, 3].tolist() == [0, 2]
    assert blocked == {2: Problem("constraints.outside_permitted_range", column="grade", received="top")}
    assert blocked[2].text() == "Column 'grade' is 'top', outside its permitted range, and may not change into it."


@pytest.mark.parametrize(
    ("permitted", "message"),
    [
        ({"aeg": (0, 1)}, r"^Unknown column 'aeg'; .*Did you mean 'age'\?$"),
        ({"age": (50, 30)}, r"^permitted_range of 'age' must hold a whole number; got 50, 30.$"),
        ({"age": (30.2, 30.8)}, r"^permitted_range of 'age' must hold a whole number; got 30.2, 30.8.$"),
        ({"income": (3, 2)}, r"^permitted_range of 'income' must hold at least one value inside .*; got 3, 2.$"),
        ({"income": (50, 60)}, r"must hold at least one value inside the schema's \[0, 9\]; got 50, 60.$"),
        ({"income": (math.nan, 2)}, "^permitted_range of 'income' must hold at least one value"),
        ({"income": 3}, r"^permitted_range of 'income' must be \(low, high\); got 3.$"),
        ({"income": ("a", "b")}, r"^permitted_range of 'income' must be \(low, high\); got 'a', 'b'.$"),
        ({"income": (1, 2, 3)}, r"^permitted_range of 'income' must be \(low, high\); got 1, 2, 3.$"),
        ({"job": "clerk"}, "^permitted_range of 'job' must be a list of categories; got 'clerk'.$"),
        ({"job": []}, r"^permitted_range of 'job' must be a list of categories; got"),
        ({"job": 3}, "^permitted_range of 'job' must be a list of categories; got 3.$"),
        ({"job": ["clerk", "baker"]}, "must name known categories, of 'clerk', 'nurse', 'smith'; got 'baker'.$"),
    ],
)
def test_a_permitted_range_that_makes_no_sense_is_refused(permitted: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compiled(people(), permitted=permitted, ranges={"income": (0, 9)})


# --- precision -------------------------------------------------------------------------------------------------------


def test_off_grid_ranges_use_the_grid_inside_and_the_bounds_where_there_is_none() -> None:
    X = pd.DataFrame({"x": [0.25, 0.5, 0.75]})
    domain, _ = restricted(compiled(X, permitted={"x": (0.123, 0.456)}), X)
    assert reach(domain, 0, [0, 0.3333, 1]).tolist() == [[0.13, 0.33, 0.45]] * 3
    domain, _ = restricted(compiled(X, permitted={"x": (0.123, 0.1234)}), X)
    assert reach(domain, 0, [0, 1]).tolist() == [[0.123, 0.1234]] * 3


def test_a_bound_a_hair_off_the_grid_is_not_crossed() -> None:
    X = pd.DataFrame({"x": [0.1, 0.5, 0.9]})
    domain, _ = restricted(compiled(X, permitted={"x": (0.1 + 0.2, 0.7)}), X)
    assert reach(domain, 0, [0.0]).tolist() == [[0.1 + 0.2]] * 3


def test_whole_numbers_stay_whole_at_a_bound_a_hair_above_one() -> None:
    domain, _ = restricted(compiled(people(), permitted={"age": (30 + 1e-10, 50 - 1e-10)}), people())
    assert reach(domain, 0, [0, 99]).tolist() == [[31, 49]] * 3


def test_32_bit_columns_hold_exactly_the_value_that_was_promised() -> None:
    X = pd.DataFrame({"x": np.array([0.25, 0.5, 0.75], dtype=np.float32)})
    constraints = compiled(X, permitted={"x": (0.1, 0.3)})
    domain, _ = restricted(constraints, X)
    for codes in (domain.base, domain.project(np.full((3, 1, 1), 0.9))[:, 0], domain.project(np.zeros((3, 1, 1)))[:, 0]):
        assert np.array_equal(constraints.table.read(constraints.table.frame(codes)).codes, codes)


def test_a_32_bit_value_at_the_end_of_a_permitted_range_is_inside_it() -> None:
    X = pd.DataFrame({"x": np.array([0.1, 0.2, 0.3], dtype=np.float32)})
    domain, blocked = restricted(compiled(X, permitted={"x": (0.1, 0.3)}), X)
    assert blocked == {}
    assert np.array_equal(domain.base, domain.row)


def test_candidates_that_break_a_constraint_are_found() -> None:
    constraints = compiled(people(), permitted={"job": ["clerk", "nurse"]}, immutable=["income"], increasing=["age"])
    domain, _ = restricted(constraints, people().iloc[[0]])
    own = domain.base[0]

    def legal(j: int, value: float) -> bool:
        candidate = own.copy()
        candidate[j] = value
        return bool(domain.contains(candidate[None, None, :])[0, 0])

    assert domain.contains(own[None, None, :]).all()
    assert legal(0, 30)
    assert not legal(0, 30.5)
    assert not legal(0, 19)
    assert not legal(0, 61)
    assert not legal(1, 2.0)
    assert legal(2, 1)
    assert not legal(2, 2)


def test_taking_rows_keeps_their_own_constraints() -> None:
    domain, _ = restricted(compiled(people(), increasing=["age"]), people())
    part = domain.take(np.array([2, 0]))
    assert reach(part, 0, [0]).tolist() == [[60], [20]]


# --- properties ------------------------------------------------------------------------------------------------------


@st.composite
def limited_columns(draw: st.DrawFn) -> tuple[pd.DataFrame, dict[str, Any], dict[str, Any]]:
    """A table of one number column of some type, one category column, and random rules for both."""
    dtype = draw(st.sampled_from(["int64", "float64", "float32", "whole", "Float64", "Int64"]))
    places = draw(st.integers(0, 4))
    cells = st.lists(st.integers(-2000, 2000), min_size=4, max_size=4)
    ints = np.array(draw(cells))
    numbers = pd.Series(ints if dtype in ("int64", "whole", "Int64") else ints / 10.0**places)
    numbers = numbers.astype("float64" if dtype == "whole" else dtype)
    letters = draw(st.lists(st.sampled_from("abcd"), min_size=4, max_size=4))
    X = pd.DataFrame({"x": numbers, "c": pd.Categorical(letters, list("abcd"), ordered=True)})
    ways = {"x": draw(st.sampled_from(["any", "up", "down"])), "c": draw(st.sampled_from(["any", "up", "down"]))}
    schema: dict[str, Any] = {
        "increasing": [name for name, way in ways.items() if way == "up"],
        "decreasing": [name for name, way in ways.items() if way == "down"],
        "immutable": draw(st.sampled_from([[], [], [], ["x"], ["c"]])),
    }
    permitted: dict[str, Any] = {}
    if draw(st.integers(0, 3)):
        low = draw(st.integers(-3000, 3000)) / draw(st.sampled_from([1, 10, 1000])) + draw(
            st.sampled_from([0.0, 1e-10, 1 / 3])
        )
        permitted["x"] = (low, low + draw(st.sampled_from([0.0, 1e-10, 0.0004, 0.3, 1.0, 7.25, 500.0])))
    if draw(st.booleans()):
        permitted["c"] = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True))
    return X, schema, permitted


@settings(max_examples=150, deadline=None)
@given(given_rules=limited_columns(), data=st.data())
def test_projecting_always_gives_rows_that_satisfy_every_constraint(given_rules: Any, data: st.DataObject) -> None:
    X, schema, permitted = given_rules
    try:
        constraints = compiled(X, permitted=permitted, **schema)
    except InputError:
        return
    every, blocked = restricted(constraints, X)
    open_rows = np.array([row for row in range(len(X)) if row not in blocked], dtype=np.intp)
    domain = every.take(open_rows)
    wanted = data.draw(st.lists(st.floats(-1e4, 1e4), min_size=6, max_size=6))
    letters = data.draw(st.lists(st.integers(0, 3), min_size=6, max_size=6))
    points = np.repeat(np.column_stack([wanted, letters])[None], len(open_rows), axis=0)
    projected = domain.project(points)

    assert domain.contains(projected).all()
    frozen = ~domain.free[:, None, :] & np.ones_like(projected, dtype=bool)
    assert (projected == domain.base[:, None, :])[frozen].all()
    inside = (projected >= domain.lower[:, None, :]) & (projected <= domain.upper[:, None, :])
    assert inside[~frozen].all()

    row = domain.row[:, None, :]
    for j, name in enumerate(["x", "c"]):
        value = projected[..., j]
        if name in schema["immutable"]:
            assert (value == row[..., j]).all()
        if name in schema["increasing"]:
            assert (value >= row[..., j]).all()
        if name in schema["decreasing"]:
            assert (value <= row[..., j]).all()
    if "c" in permitted:
        assert {"abcd"[int(code)] for code in projected[..., 1].ravel()} <= set(permitted["c"])
    flat = projected.reshape(-1, 2)
    seen = constraints.table.frame(flat)
    if "x" in permitted:
        assert seen["x"].between(*permitted["x"]).all()
    if constraints.table.schema["x"].integer:
        assert (flat[:, 0] == np.round(flat[:, 0])).all()
    assert np.array_equal(constraints.table.read(seen).codes, flat)


# --- rules of the constraint language --------------------------------------------------------------------------------


def ruled(
    *constraints: Any, vary: Any = None, permitted: Any = None, override: bool = False, **schema: Any
) -> CompiledConstraints:
    X = people()
    table = Table.like(X, Schema.infer(X, **schema))
    codec = Codec(table.schema, Profile.measure(table.read(X).codes, table.schema))
    return CompiledConstraints.compile(table, codec, vary, permitted, constraints, override)


def test_constraints_of_the_schema_and_of_the_call_hold_together() -> None:
    constraints = ruled(
        c.Range("age", high=50), c.Near("income", by=0.5), constraints=[c.Range("age", low=30), c.Frozen("job")]
    )
    domain, _ = restricted(constraints, people())
    assert reach(domain, 0, [0, 99]).tolist() == [[30, 50]] * 3
    assert reach(domain, 1, [0, 9]).tolist() == [[1.5, 2.0], [1.75, 2.75], [2.5, 3.0]]
    assert reach(domain, 2, [0, 1]).tolist() == [[0, 0], [1, 1], [2, 2]]


def test_a_range_with_one_end_leaves_the_other_to_the_data() -> None:
    domain, _ = restricted(ruled(c.Range("age", low=0)), people())
    assert reach(domain, 0, [-5, 99]).tolist() == [[0, 60]] * 3


def test_near_is_relative_to_each_row() -> None:
    domain, _ = restricted(ruled(c.Near("age", percent=10), c.Near("income", up=0.25, down=0)), people())
    assert reach(domain, 0, [0, 99]).tolist() == [[20, 22], [36, 44], [54, 60]]
    assert reach(domain, 1, [0, 9]).tolist() == [[1.5, 1.75], [2.25, 2.5], [3.0, 3.0]]


def test_steps_count_from_zero_or_from_the_row() -> None:
    domain, _ = restricted(ruled(c.Step("age", 7), c.Step("income", 0.1, start="row")), people())
    assert reach(domain, 0, [0, 33, 99]).tolist() == [[21, 35, 56]] * 3
    assert reach(domain, 1, [1.74]).tolist() == [[1.7], [1.75], [1.7]]
    assert reach(domain, 0, [20.0])[0].tolist() == [20.0], "the row's own value stays legal"
    assert domain.contains(domain.row[:, None]).all()


def test_a_row_is_moved_onto_the_grid_inside_its_range() -> None:
    domain, blocked = restricted(ruled(c.Range("age", 23, 50), c.Step("age", 5)), people())
    assert blocked == {}
    assert domain.base[:, 0].tolist() == [25, 40, 50]


def test_an_order_lets_text_go_one_way() -> None:
    domain, _ = restricted(ruled(c.Order("job", ("smith", "clerk", "nurse")), c.OnlyUp("job")), people())
    assert reach(domain, 2, [0, 1, 2]).tolist() == [[0, 1, 0], [1, 1, 1], [0, 1, 2]]


def test_a_category_outside_the_order_is_an_island() -> None:
    domain, _ = restricted(ruled(c.Order("job", ("smith", "clerk")), c.OnlyUp("job")), people())
    assert reach(domain, 2, [0, 1, 2]).tolist() == [[0, 0, 0], [1, 1, 1], [0, 2, 2]]


def test_forbidden_transitions_depend_on_where_one_is() -> None:
    domain, _ = restricted(ruled(c.Forbidden("job", (("clerk", "nurse"), ("nurse", "clerk")))), people())
    assert reach(domain, 2, [0, 1, 2]).tolist() == [[0, 0, 2], [1, 1, 2], [0, 1, 2]]


def test_a_row_moves_into_allowed_categories_only_by_open_ways() -> None:
    constraints = ruled(c.Allowed("job", ("nurse", "smith")), c.Forbidden("job", (("clerk", "nurse"),)))
    domain, blocked = restricted(constraints, people())
    assert blocked == {}
    assert domain.base[:, 2].tolist() == [2, 1, 2]
    constraints = ruled(c.Allowed("job", ("nurse",)), c.Forbidden("job", (("clerk", "nurse"),)))
    assert sorted(restricted(constraints, people())[1]) == [0]


def test_up_and_down_together_freeze() -> None:
    domain, _ = restricted(ruled(c.OnlyUp("age"), c.OnlyDown("age")), people())
    assert reach(domain, 0, [0, 99]).tolist() == [[20, 20], [40, 40], [60, 60]]


def test_at_most_counts_what_differs_from_the_row_and_not_what_is_derived() -> None:
    constraints = ruled(c.AtMost(1), c.Derived("income", "age / 20"))
    domain, _ = restricted(constraints, people().iloc[[0]])
    one, two = domain.base.copy(), domain.base.copy()
    one[0, 0] = 50
    two[0, [0, 2]] = [50, 1]
    projected = domain.complete(np.stack([one, two], axis=1))
    assert projected[0, :, 1].tolist() == [2.5, 2.5]
    assert domain.contains(projected).tolist() == [[True, False]]
    assert domain.count_kept(projected).tolist() == [[True, False]]
    assert domain.contains(projected, counted=False).tolist() == [[True, True]]


def test_a_row_that_must_change_more_than_it_may_is_reported() -> None:
    constraints = ruled(c.AtMost(1), permitted={"age": (30, 50), "job": ["nurse"]})
    _, blocked = restricted(constraints, people())
    assert sorted(blocked) == [0, 2]
    assert blocked[0].text() == "Columns 'age', 'job' must all change to satisfy the constraints, and at most 1 may."


def test_a_row_that_breaks_a_constraint_on_frozen_columns_is_reported() -> None:
    _, blocked = restricted(
        ruled(c.Require("age <= 20 * income"), c.Frozen("age", "income")), people().assign(age=[20, 40, 61])
    )
    assert list(blocked) == [2]
    assert blocked[2].details == {"constraint": "age <= 20 * income", "columns": ["age", "income"]}
    assert blocked[2].text() == (
        "The query violates the constraint 'age <= 20 * income', and none of 'age', 'income' may change."
    )


def test_a_row_that_breaks_an_inequality_starts_from_where_it_holds() -> None:
    domain, blocked = restricted(ruled(c.Require("20 * income <= 50"), c.Require("age < 40")), people())
    assert blocked == {}
    assert domain.base[:, 1].tolist() == [1.5, 2.25, 2.5]
    assert domain.base[:, 0].tolist() == [20, 39, 39]
    assert domain.contains(domain.base[:, None]).all()


def test_a_derived_column_follows_whatever_features_to_vary_says() -> None:
    constraints = ruled(c.Derived("income", "age / 20"), vary=["age"])
    assert constraints.named == (0,)
    domain, _ = restricted(constraints, people())
    points = domain.base[:, None].copy()
    points[..., 0] = 50
    projected = domain.complete(domain.project(points))
    assert projected[:, 0, 1].tolist() == [2.5, 2.5, 2.5]
    assert domain.contains(projected).all()


def test_a_leader_whose_follower_may_not_vary_stays() -> None:
    for slope in (0.01, None):
        domain, _ = restricted(ruled(vary=["age"], constraints=[c.Together("age", "income", slope=slope)]), people())
        assert not domain.free.any()


# --- override --------------------------------------------------------------------------------------------------------


def test_a_call_can_only_tighten_unless_it_overrides() -> None:
    schema: Any = {
        "immutable": ["job"],
        "increasing": ["age"],
        "ranges": {"income": (1, 4)},
        "constraints": [c.Range("age", 25, 55)],
    }
    call = (c.Range("age", 0, 99), c.Range("income", 0, 9), c.Allowed("job", ("clerk", "nurse", "smith")))
    tight, _ = restricted(ruled(*call, **schema), people().iloc[[1]])
    assert reach(tight, 0, [0, 99]).tolist() == [[40, 55]]
    assert reach(tight, 1, [0, 99]).tolist() == [[1, 4]]
    assert reach(tight, 2, [0]).tolist() == [[1]]
    loose, _ = restricted(ruled(*call, override=True, **schema), people().iloc[[1]])
    assert reach(loose, 0, [0, 99]).tolist() == [[0, 99]]
    assert reach(loose, 1, [0, 99]).tolist() == [[0, 9]]
    assert reach(loose, 2, [0]).tolist() == [[0]]


def test_overriding_one_column_leaves_the_others_alone() -> None:
    constraints = ruled(c.OnlyDown("age"), override=True, increasing=["age"], immutable=["job"])
    assert [limit.text for limit in constraints.active] == ["job may not change (schema)", "age may only go down"]


def test_a_named_linked_constraint_replaces_its_namesake() -> None:
    schema: Any = {"constraints": [c.Require("age <= 50", name="cap"), c.Require("income <= 3"), c.AtMost(1)]}
    call = (c.Require("age <= 55", name="cap"), c.AtMost(3))
    texts = {limit.text for limit in ruled(*call, override=True, **schema).active}
    assert texts == {"income <= 3 (schema)", "cap: age <= 55", "at most 3 features may change"}
    assert len(ruled(*call, **schema).active) == 5


def test_an_overridden_frozen_column_may_be_named_to_vary() -> None:
    constraints = ruled(c.Range("age", 0, 99), override=True, vary=["age"], immutable=["age"])
    assert constraints.named == (0,)


# --- limits ----------------------------------------------------------------------------------------------------------


def test_limits_say_everything_that_could_be_lifted() -> None:
    constraints = ruled(
        c.Require("age >= income", name="sane"),
        c.Derived("income", "age / 20"),
        vary=["age"],
        permitted={"age": (0, 50)},
        immutable=["job"],
        increasing=["age"],
        ranges={"age": (18, 90)},
        constraints=[c.AtMost(2), c.Frozen("grade", name="no exams")],
    )
    assert {limit.text: limit.columns for limit in constraints.active} == {
        "job may not change (schema)": ("job",),
        "age may only go up (schema)": ("age",),
        "age within 18 to 90 (schema)": ("age",),
        "at most 2 features may change (schema)": (),
        "no exams: grade may not change (schema)": ("grade",),
        "age within 18 to 50 (permitted_range)": ("age",),
        "sane: age >= income": ("age", "income"),
        "only age may change (features_to_vary)": ("job", "grade"),
    }


def test_without_a_limit_the_rest_holds() -> None:
    constraints = ruled(vary=["age"], increasing=["age"], ranges={"age": (18, 90)}, immutable=["job"])
    parts = ("only go up", "within", "job may", "only age")
    up, declared, frozen, vary = (next(limit for limit in constraints.active if part in limit.text) for part in parts)
    assert reach(restricted(constraints.without(up), people())[0], 0, [0])[1].tolist() == [18]
    assert reach(restricted(constraints.without(declared), people())[0], 0, [99])[1].tolist() == [60], (
        "the data's range stays"
    )
    assert restricted(constraints.without(vary), people())[0].free[0].tolist() == [True, True, False, True]
    assert restricted(constraints.without(vary).without(frozen), people())[0].free.all()
    assert len(constraints.active) == 4
    with pytest.raises(InputError, match=r"^A constraint to lift must be one of these constraints; got "):
        constraints.without(up).without(up)


def test_broken_returns_which_rows_break_which_constraint() -> None:
    constraints = ruled(c.Near("income", by=0.5), c.Require("age <= 50"), vary=["age", "income"], increasing=["age"])
    row = constraints.table.read(people()).codes[[1, 1, 1, 1]]
    projected = row.copy()
    projected[[0, 1, 2], [0, 1, 2]] = [30, 2.9, 2]
    projected[3, 0] = 51.5
    broken = {limit.text: constraints.broken(limit, row, projected).tolist() for limit in constraints.active}
    assert broken == {
        "age may only go up (schema)": [True, False, False, False],
        "income may change by at most 0.5 either way": [False, True, False, False],
        "age <= 50": [False, False, False, True],
        "only age, income may change (features_to_vary)": [False, False, True, False],
    }


# --- rules that make no sense ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ([c.Range("aeg", 0, 1)], r"^The constraint 'aeg within 0 to 1' must name known columns.*Did you mean 'age'\?$"),
        ([c.Require("aeg <= 3")], r"^The constraint 'aeg <= 3' must name known columns: .*Did you mean 'age'\?$"),
        ([c.Range("job", 0, 1)], "must be about a numeric column; 'job' is categorical.$"),
        ([c.Near("grade", by=1)], "must be about a numeric column; 'grade' is categorical.$"),
        ([c.Step("age", 0.5)], "must have a whole step because 'age' holds whole numbers; got 0.5.$"),
        ([c.Allowed("job", ("baker",))], "must name known categories: unknown category 'baker'; expected one of "),
        ([c.Allowed("age", (20,))], "must be about a categorical column; 'age' is numeric.$"),
        ([c.Forbidden("job", (("clerk", "nurs"),))], r"Did you mean 'nurse'\?$"),
        (
            [c.OnlyUp("job")],
            r"^The constraint 'job may only go up' needs an order, and 'job' has none \(give",
        ),
        ([c.Order("job", ("clerk",)), c.Order("job", ("nurse",))], "orders 'job' in a second way; expected one Order"),
        ([c.Require("job <= 3")], "must be about numeric and boolean columns only; 'job' is categorical.$"),
        ([c.Derived("job", "age")], "must be about numeric and boolean columns only; 'job' is categorical.$"),
        ([c.If({"job": (0, 1)}, then={"age": 3})], "must list categories for 'job', which is categorical; got a range.$"),
        ([c.If({"age": "old"}, then={"job": "clerk"})], "must give numbers for 'age', which is numeric; got 'old'.$"),
        ([c.If({"job": "baker"}, then={"age": 3})], "must name known categories: unknown category 'baker'"),
        ([c.Together("job", "age")], "needs an order, and 'job' has none"),
        ([c.Together("age", "grade", slope=1)], "must have a numeric follower to have a slope; 'grade' is categorical.$"),
        ([c.Together("age", "income", 1), c.Frozen("income")], "must have a follower that may change; 'income' may not.$"),
        (
            [c.Together("age", "income", 1), c.Derived("income", "age")],
            "must not move 'income', which another",
        ),
        ([c.Together("age", "income", 1), c.Together("income", "age", 1)], "must not lead back to 'income' through other"),
        ([c.Derived("age", "income"), c.Derived("age", "2 * income")], "computes 'age' a second time; expected one Derived"),
        (
            [c.Derived("age", "income"), c.Derived("income", "age")],
            "must not lead back to 'age' itself through other derived",
        ),
        (
            [c.Range("age", 0, 30), c.Range("age", 40, 50)],
            "^The constraints on column 'age' must leave it at least one whole number; got 'age within 0 to 30', 'age within",
        ),
        ([c.Range("age", 30.2, 30.8)], "^The constraints on column 'age' must leave it at least one whole number; got "),
        (
            [c.Range("income", 200, 300)],
            r"at least one value; got 'income within 0 to 9 \(schema\)', 'income within 200 to 300'.$",
        ),
        (
            [c.Range("age", 31, 34), c.Step("age", 5)],
            "must leave it at least one whole number; got .*'age only in steps of 5'.$",
        ),
        ([c.Allowed("job", ("clerk",)), c.Allowed("job", ("nurse",))], "'job' must leave it at least one value; got "),
        ([c.Step("age", 2), c.Step("age", 3)], "^Two steps for column 'age' must fit each other, .*; got 2 and 3.$"),
        (
            [c.Require("age * 2 <= 10"), c.Range("age", 18, 90)],
            "'age \\* 2 <= 10' can never hold within the ranges of its columns.$",
        ),
        ([c.Require("income == 10")], "can never hold within the ranges of its columns.$"),
        (["age"], "^constraints must be a list of constraints from fasterce.constraints; got 'age'.$"),
    ],
)
def test_a_constraint_that_makes_no_sense_gets_one_sentence(constraints: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        ruled(*constraints, ranges={"income": (0, 9)})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("given", ["age", c.AtMost(1), 3])
def test_constraints_must_come_as_a_list(given: Any) -> None:
    with pytest.raises(InputError, match=r"^constraints must be a list of constraints from fasterce.constraints; got "):
        Schema.infer(people(), constraints=given)


def test_a_function_that_fails_is_named() -> None:
    constraints = ruled(c.Derived("income", lambda frame: frame["age"].sum(), of=("age",)))
    domain, _ = restricted(constraints, people())
    points = domain.base[:, None].copy()
    points[..., 0] = 50
    with pytest.raises(
        InputError, match=r"^The function of the constraint 'income is computed from age' must give one value per row; got "
    ):
        domain.complete(points)


def test_a_function_may_give_categories() -> None:
    def function(frame: pd.DataFrame) -> Any:
        return np.where(frame["age"] > 45, "smith", "clerk")

    constraints = ruled(c.Derived("job", function, of=("age",)))
    domain, _ = restricted(constraints, people())
    points = domain.base[:, None].copy()
    points[..., 0] = 50
    projected = domain.complete(points)
    assert projected[:, 0, 2].tolist() == [2, 2, 2]
    assert domain.contains(projected).all()
    assert not domain.contains(points)[0, 0]


def test_columns_that_are_no_text_can_be_named_in_formulas() -> None:
    X = pd.DataFrame({0: [1.0, 2.0, 3.0], "a b": [4.5, 5.0, 6.0]})
    table = Table.like(X, Schema.infer(X))
    codec = Codec(table.schema, Profile.measure(table.read(X).codes, table.schema))
    constraints = CompiledConstraints.compile(table, codec, None, None, [c.Require("`0` + 3 <= `a b`")])
    assert constraints.active[0].columns == (0, "a b")
    domain, _ = restricted(constraints, X)
    assert domain.contains(np.array([[[3.0, 5.0], [1.0, 5.0]]] * 3)).tolist() == [[False, True]] * 3


# --- missing values --------------------------------------------------------------------------------------------------


def gappy() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [20.0, np.nan, 60.0],
            "income": [1.5, 2.25, np.nan],
            "job": ["clerk", None, "smith"],
            "grade": pd.Categorical(["low", "top", None], ["low", "mid", "high", "top"], ordered=True),
        }
    )


def gaps(domain: Domain, j: int, code: float) -> list[bool]:
    """In which rows feature `j` may be missing, told so by `project` and `contains` alike."""
    found = reach(domain, j, [code])[:, 0] == code
    points = domain.base[:, None, :].copy()
    points[..., j] = code
    assert domain.contains(points)[:, 0].tolist() == found.tolist()
    return found.tolist()


def test_missing_stays_and_appears_only_where_allowed() -> None:
    domain, _ = restricted(compiled(gappy(), may_go_missing=["income", "grade"]), gappy())
    assert gaps(domain, 0, MISSING) == [False, True, False]
    assert gaps(domain, 1, MISSING) == [True, True, True]
    assert gaps(domain, 2, 2.0) == [False, True, False]
    assert gaps(domain, 3, 4.0) == [True, True, True]


def test_a_frozen_feature_stays_missing_and_stays_there() -> None:
    constraints = compiled(gappy(), vary=["job"], may_go_missing=["income"])
    domain, _ = restricted(constraints, gappy())
    assert gaps(domain, 1, MISSING) == [False, False, True]
    assert reach(domain, 1, [2.0])[:, 0].tolist() == [1.5, 2.25, MISSING]


def test_what_is_missing_is_filled_with_whole_numbers_and_anything_in_range() -> None:
    domain, blocked = restricted(compiled(gappy(), increasing=["age", "grade"]), gappy())
    assert blocked == {}
    assert reach(domain, 0, [-5, 33.4, 99]).tolist() == [[20, 33, 60], [20, 33, 60], [60, 60, 60]]
    assert reach(domain, 3, [0, 1, 3]).tolist() == [[0, 1, 3], [3, 3, 3], [0, 1, 3]], "from missing there is no way down"


def test_a_permitted_range_is_about_values_and_closes_the_way_to_missing() -> None:
    constraints = compiled(
        gappy(), permitted={"age": (30, 50), "job": ["smith"], "income": (2, 3)}, may_go_missing=["age", "job", "income"]
    )
    domain, blocked = restricted(constraints, gappy())
    assert blocked == {}
    assert domain.base[:, 0].tolist() == [30, MISSING, 50]
    assert domain.base[:, 2].tolist() == [1, 2, 1], "a missing category is not moved in"
    assert gaps(domain, 0, MISSING) == [False, True, False]
    assert gaps(domain, 1, MISSING) == [False, False, True]
    assert reach(domain, 0, [33.0])[:, 0].tolist() == [33] * 3


def test_without_missing_values_there_are_no_gaps() -> None:
    assert restricted(compiled(people()), people())[0].missing is None


@pytest.mark.parametrize("function", [lambda frame: frame["a"] * np.nan, lambda frame: np.full(len(frame), np.inf)])
def test_a_function_that_returns_nothing_usable_is_reported(function: Any) -> None:
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [2.0, 4.0, 6.0]})
    table = Table.like(X, Schema.infer(X))
    codec = Codec(table.schema, Profile.measure(table.read(X).codes, table.schema))
    with pytest.raises(InputError, match=r"must give a finite number; got none for \d+ rows\.$"):
        CompiledConstraints.compile(table, codec, None, None, [c.Derived("b", function, of=("a",))])


# --- boolean columns in formulas --------------------------------------------------------------------------------------


def flags(dtype: Any = bool) -> pd.DataFrame:
    colour = pd.Series(["red", "blue", "green", "red", "blue", "green"])
    return pd.get_dummies(pd.DataFrame({"colour": colour}), dtype=bool).astype(dtype).assign(size=[1.0, 2, 3, 4, 5, 6])


@pytest.mark.parametrize("dtype", [bool, int, float, "boolean"])
def test_dummies_stay_one_hot(dtype: Any) -> None:
    X = flags(dtype)
    domain, blocked = restricted(compiled(X, constraints=[c.Require("colour_blue + colour_green + colour_red == 1")]), X)
    assert blocked == {}
    every = np.array([[a, b, d, 1.0] for a in (0.0, 1.0) for b in (0.0, 1.0) for d in (0.0, 1.0)])
    candidates = np.repeat(every[None], len(X), axis=0)
    kept = domain.contains(domain.complete(candidates))
    assert (domain.complete(candidates)[kept][:, :3].sum(axis=1) == 1).all()
    reached = {tuple(row) for row in domain.complete(candidates)[kept][:, :3].tolist()}
    assert reached == {(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)}


def test_a_derived_boolean_has_no_value_beyond_true() -> None:
    X = pd.DataFrame({"a": [True, False, True, False], "b": [False, True, False, False]})
    X["either"] = X["a"] | X["b"]
    domain, _ = restricted(compiled(X, constraints=[c.Derived("either", "a + b")]), X)
    both, none = np.array([[[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]]] * 4).transpose(1, 0, 2)
    rows = np.arange(4)
    assert not domain.contains_own(rows, domain.complete_own(rows, both)).any()
    completed = domain.complete_own(rows, none)
    assert (completed[:, 2] == 0).all()
    assert domain.contains_own(rows, completed).all()


def test_a_formula_that_no_booleans_satisfy_is_refused() -> None:
    with pytest.raises(InputError, match="can never hold"):
        compiled(flags(), constraints=[c.Require("colour_blue + colour_green + colour_red == 4")])
