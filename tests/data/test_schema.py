"""What is read off a table, what a user may declare, and the sentence for everything that contradicts itself."""

import datetime
import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce import constraints as c
from fasterce.data.schema import Feature, Schema
from fasterce.errors import InputError, SchemaError


def infer(column: Any, **constraints: Any) -> Feature:
    return Schema.infer(pd.DataFrame({"x": column}), **constraints)["x"]


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [25, 40, 61],
            "income": [1.5, 2.25, 3.0],
            "job": ["clerk", "nurse", "clerk"],
            "owner": [True, False, True],
            "grade": pd.Categorical(["low", "high", "low"], ["low", "mid", "high"], ordered=True),
        }
    )


# --- kinds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "integer"),
    [
        ([1, 2, 5], True),
        (np.array([1, 2, 5], dtype=np.int8), True),
        (np.array([1, 2, 5], dtype=np.uint16), True),
        ([1.0, 2.0, 5.0], True),
        ([1.0, 2.5, 5.0], False),
        (np.array([1.0, 2.5, 5.0], dtype=np.float32), False),
        (pd.array([1, None, 5], dtype="Int64"), True),
        (pd.array([1.5, None, 5.0], dtype="Float64"), False),
        ([1.0, np.nan, 5.0], True),
        ([1.0, np.inf, 5.0], True),
    ],
)
def test_numbers_are_numeric_and_span_what_was_seen(column: Any, integer: bool) -> None:
    feature = infer(column)
    assert feature.kind == "numeric"
    assert feature.integer is integer
    assert (feature.lower, feature.upper) == (pd.Series(column).dropna().min(), 5.0)
    assert not feature.declared


@pytest.mark.parametrize(
    ("column", "categories"),
    [
        (["b", "a", "b"], ("a", "b")),
        (pd.Series(["b", "a", "b"], dtype=object), ("a", "b")),
        (pd.Series(["b", "a", "b"], dtype="str"), ("a", "b")),
        (pd.array(["b", None, "a"], dtype="string"), ("a", "b")),
        (["b", None, "a"], ("a", "b")),
        ([True, True, True], (False, True)),
        (pd.array([True, None, True], dtype="boolean"), (False, True)),
        (pd.Categorical(["b", "a", "b"], ["z", "b", "a"]), ("z", "b", "a")),
        (pd.Categorical([3, 1, 3], [3, 1, 2]), (3, 1, 2)),
        (pd.Series([2, "a", 1], dtype=object), (1, 2, "a")),
    ],
)
def test_text_booleans_and_categoricals_are_categories(column: Any, categories: tuple[Any, ...]) -> None:
    feature = infer(column)
    assert feature.kind == "categorical"
    assert feature.categories == categories
    assert not feature.ordered
    assert all(type(value) in (str, int, bool) for value in feature.categories)


def test_an_ordered_categorical_keeps_its_order_and_its_unseen_categories() -> None:
    feature = Schema.infer(people())["grade"]
    assert feature.ordered
    assert feature.categories == ("low", "mid", "high")


@pytest.mark.parametrize("dtype", ["int64", "int8", "Int64"])
def test_numbers_named_categorical_become_plain_categories(dtype: str) -> None:
    feature = infer(pd.Series([3, 1, 3], dtype=dtype), categorical=["x"])
    assert feature.kind == "categorical"
    assert feature.categories == (1, 3)
    assert all(type(value) is int for value in feature.categories)


def test_columns_keep_their_order_and_may_have_numbers_as_names() -> None:
    schema = Schema.infer(pd.DataFrame({7: [1, 2], "a": [1, 2], 3: ["x", "y"]}), immutable=[3])
    assert schema.names == (7, "a", 3)
    assert not schema[3].mutable
    assert schema.positions([3, 7]) == [2, 0]
    assert len(schema) == 3


# --- precision -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "decimals"),
    [
        ([1, 2, 30], 0),
        ([1.0, 2.0], 0),
        ([1.5, 2.0], 1),
        ([1.25, 2.5], 2),
        ([0.1 + 0.2, 0.7], 1),
        ([0.000125, 2.0], 6),
        ([1000.25, 250000.5], 2),
    ],
)
def test_precision_is_the_one_the_data_is_written_with(column: list[float], decimals: int) -> None:
    assert infer(column).decimals == decimals


@pytest.mark.parametrize(("decimals", "top"), [(1, 10), (2, 100), (2, 1), (3, 50)])
def test_precision_does_not_depend_on_how_wide_a_float_is(decimals: int, top: float) -> None:
    values = np.random.default_rng(0).uniform(0, top, 200).round(decimals)
    assert infer(values).decimals == decimals
    assert infer(values.astype(np.float32)).decimals == decimals


@pytest.mark.parametrize(("scale", "decimals"), [(1.0, 4), (1000.0, 1), (1e7, 0), (1e-3, 7)])
def test_measured_floats_get_four_digits_of_their_range(scale: float, decimals: int) -> None:
    values = np.random.default_rng(1).uniform(0.05, 0.95, 50) * scale
    assert infer(values).decimals == decimals


# --- what the user declares ------------------------------------------------------------------------------------------


def test_declared_constraints_reach_their_columns_and_no_other() -> None:
    schema = Schema.infer(
        people(), immutable=["job"], increasing=["age", "grade"], decreasing=["income"], ranges={"income": (0, 99.5)}
    )
    assert [f.mutable for f in schema.features] == [True, True, False, True, True]
    assert [f.direction for f in schema.features] == ["up", "down", "any", "any", "up"]
    assert [f.declared for f in schema.features] == [False, True, False, False, False]
    assert (schema["income"].lower, schema["income"].upper) == (0.0, 99.5)
    assert (schema["age"].lower, schema["age"].upper) == (25.0, 61.0)


def test_a_declared_range_may_be_open() -> None:
    feature = infer([1, 2], ranges={"x": (0, math.inf)})
    assert (feature.lower, feature.upper) == (0.0, math.inf)


def test_freed_lifts_what_forbids_change_and_keeps_the_rest() -> None:
    schema = Schema.infer(people(), immutable=["job"], increasing=["age"], ranges={"income": (0, 9)})
    freed = schema.unconstrained()
    assert all(f.mutable and f.direction == "any" for f in freed.features)
    assert freed["income"] == schema["income"]
    assert freed["job"].categories == schema["job"].categories
    assert not schema["job"].mutable


@pytest.mark.parametrize("constraint", ["categorical", "immutable", "increasing", "decreasing"])
def test_a_misspelt_column_gets_the_nearest_name(constraint: str) -> None:
    misspelt: dict[str, Any] = {constraint: ["incom"]}
    with pytest.raises(SchemaError, match=r"^Unknown column 'incom'; expected one of .*Did you mean 'income'\?$"):
        Schema.infer(people(), **misspelt)


def test_a_misspelt_column_in_ranges_gets_the_nearest_name() -> None:
    with pytest.raises(SchemaError, match="Did you mean 'age'"):
        Schema.infer(people(), ranges={"aeg": (0, 1)})


def test_a_column_that_is_passed_through_is_not_called_unknown() -> None:
    schema = Schema((Feature("age", "numeric"),), passthrough=["id"])
    with pytest.raises(SchemaError, match=r"^Column 'id' is passed through to the model and does not change; .*feature\.$"):
        schema.position("id")


def test_the_error_for_an_unknown_column_names_the_nearest_one() -> None:
    with pytest.raises(SchemaError, match="Did you mean 'owner'"):
        Schema.infer(people())["ownr"]


def refused(code: str, X: Any, *, column: Any = None, received: Any = None, **options: Any) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.infer(X, **options)
    problem = caught.value.problem
    assert (problem.code, problem.column, problem.received) == (code, column, received)
    assert str(caught.value).endswith(".")
    assert isinstance(caught.value, InputError)


def test_one_name_instead_of_a_list_is_refused() -> None:
    refused("data.names_not_a_list", people(), received="age", immutable="age")


def test_up_and_down_at_once_is_refused() -> None:
    refused("data.both_directions", people(), received={"age"}, increasing=["age"], decreasing=["age", "income"])


@pytest.mark.parametrize("column", ["job", "owner"])
def test_a_direction_without_an_order_is_refused(column: str) -> None:
    with pytest.raises(SchemaError, match=f"^Column '{column}' cannot go down because its categories have no order; "):
        Schema.infer(people(), decreasing=[column])


def test_a_range_on_categories_is_refused() -> None:
    refused("data.range_of_categories", people(), column="job", received=(0, 1), ranges={"job": (0, 1)})


def test_a_range_upside_down_is_refused() -> None:
    refused("data.range_reversed", people(), column="age", received=(5.0, 1.0), ranges={"age": (5, 1)})


@pytest.mark.parametrize("limits", [5, (1,), (1, 2, 3), ("a", "b"), (None, 3), (math.nan, 3)])
def test_a_range_that_is_no_pair_of_numbers_is_refused(limits: Any) -> None:
    with pytest.raises(SchemaError, match=r"^Column 'age' must have a range \(low, high\)"):
        Schema.infer(people(), ranges={"age": limits})


# --- tables that cannot be described ---------------------------------------------------------------------------------


def test_something_that_is_no_table_is_refused() -> None:
    refused("data.not_a_table", np.zeros((3, 2, 2)), received="ndarray")


def test_repeated_columns_are_refused() -> None:
    refused("data.repeated_columns", pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]), received=["a"])


def test_a_table_without_columns_is_refused() -> None:
    refused("data.no_columns", pd.DataFrame(index=[0, 1]))


def test_a_table_without_rows_is_refused() -> None:
    refused("data.no_rows", people().iloc[:0], column="age")


@pytest.mark.parametrize("column", [[np.nan, np.nan], pd.array([None, None], dtype="Int64"), [np.inf, -np.inf]])
def test_a_number_column_without_numbers_is_refused(column: Any) -> None:
    refused("data.no_finite_number", pd.DataFrame({"x": column}), column="x")


@pytest.mark.parametrize("dtype", [object, "str", "string", "category"])
def test_a_text_column_without_values_is_refused(dtype: Any) -> None:
    empty = pd.DataFrame({"x": pd.Series([None, None], dtype=dtype)})
    refused("data.all_missing", empty, column="x")


@pytest.mark.parametrize(
    ("values", "value_type", "lower", "upper"),
    [
        (pd.to_datetime(["1970-01-02", "1970-01-11"]), "date", 1, 10),
        (pd.to_datetime(["1970-01-01 00:01", "1970-01-01 01:00"]), "datetime", 60, 3600),
        (pd.to_datetime(["1970-01-02", "1970-01-03"], utc=True), "datetime[UTC]", 86400, 172800),
        ([datetime.date(1970, 1, 3), datetime.date(1970, 1, 4)], "date", 2, 3),
        (pd.to_timedelta([1, 2], unit="D"), "timedelta[D]", 1, 2),
        (pd.to_timedelta([90, 30], unit="s"), "timedelta[s]", 30, 90),
        (pd.PeriodIndex(["1970-03", "1971-01"], freq="M"), "period[M]", 2, 12),
        ([Decimal("1.50"), Decimal("2.25")], "decimal", 1.5, 2.25),
    ],
)
def test_dates_durations_periods_and_decimals_are_numeric(values: Any, value_type: str, lower: float, upper: float) -> None:
    feature = Schema.infer(pd.DataFrame({"x": values}))["x"]
    assert (feature.kind, feature.value_type, feature.lower, feature.upper) == ("numeric", value_type, lower, upper)
    assert feature.integer == (value_type != "decimal")
    assert [feature.number(feature.value(end)) for end in (lower, upper)] == [lower, upper]


def test_a_range_of_dates_is_given_in_dates() -> None:
    dates = pd.DataFrame({"start": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    feature = Schema.infer(dates, ranges={"start": ("2020-01-01", datetime.date(2020, 1, 31))})["start"]
    assert (feature.text(feature.lower), feature.text(feature.upper), feature.declared) == ("2020-01-01", "2020-01-31", True)
    soon = ("2020-01-01", "soon")
    refused("data.not_a_range", dates, column="start", received=soon, ranges={"start": soon})


def test_complex_numbers_are_refused() -> None:
    refused("data.unsupported_dtype", pd.DataFrame({"x": [1j, 2j]}), column="x", received="complex128")


@pytest.mark.parametrize("value", [pd.Timestamp("2020-01-01"), (1, 2), b"raw"])
def test_values_that_are_no_category_are_refused(value: Any) -> None:
    with pytest.raises(SchemaError, match=r"^Column 'x' must hold text, numbers or booleans; got a "):
        Schema.infer(pd.DataFrame({"x": pd.Series([value, "a"], dtype=object)}))


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}])
def test_lists_in_cells_are_refused_with_a_sentence(value: Any) -> None:
    with pytest.raises(SchemaError, match=r"^Column 'x' must hold text, numbers or booleans; got a "):
        Schema.infer(pd.DataFrame({"x": pd.Series([value, "a"], dtype=object)}))


# --- features and schemas by hand ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"kind": "number"}, "unknown_kind", "must have a kind, one of 'numeric', 'categorical'; got 'number'."),
        (
            {"kind": "numeric", "direction": "sideways"},
            "unknown_direction",
            "must have a direction, one of 'any', 'up', 'down'; got 'sideways'.",
        ),
        (
            {"kind": "numeric", "lower": 2.0, "upper": 1.0},
            "range_reversed",
            "must have a range (low, high) with low <= high; ",
        ),
        ({"kind": "numeric", "lower": math.nan}, "range_reversed", "must have a range (low, high) with low <= high; "),
        ({"kind": "categorical"}, "no_categories", "must have at least one category."),
        (
            {"kind": "categorical", "categories": ("a", "a")},
            "repeated_categories",
            "must have distinct categories; got 'a', 'a'.",
        ),
        ({"kind": "categorical", "categories": ("a",), "direction": "up"}, "unordered", "cannot go up because its "),
    ],
)
def test_a_feature_that_contradicts_itself_is_rejected(fields: dict[str, Any], code: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Feature("x", **fields)
    assert (caught.value.problem.code, caught.value.problem.column) == (f"data.{code}", "x")
    assert str(caught.value).startswith(f"Column 'x' {message}")


def test_the_largest_floats_have_no_decimals() -> None:
    widest = pd.DataFrame({"x": [0.5, 1.7e308, -1.7e308]})
    assert Schema.infer(widest)["x"].decimals == 0


def test_a_schema_needs_columns_and_each_once() -> None:
    with pytest.raises(SchemaError, match=r"^A schema must have at least one column.$"):
        Schema(())
    with pytest.raises(SchemaError, match=r"^Column names must be unique; got 'x' more than once.$"):
        Schema((Feature("x", "numeric"), Feature("y", "numeric"), Feature("x", "numeric")))


def test_a_schema_is_the_same_after_json() -> None:
    data = people().assign(code=[3, 1, 3], rate=pd.array([0.5, 0.25, 1.0], dtype="Float64"))
    data[5] = pd.Categorical([True, False, True])
    schema = Schema.infer(
        data,
        categorical=["code"],
        immutable=["job"],
        increasing=["age", "grade"],
        decreasing=["rate"],
        ranges={"income": (0, math.inf), "rate": (0, 1)},
    )
    written = json.dumps(schema.to_dict(), allow_nan=False)
    restored = Schema.from_dict(json.loads(written))
    assert restored == schema
    for before, after in zip(schema.features, restored.features, strict=True):
        assert [type(value) for value in before.categories] == [type(value) for value in after.categories]
        assert type(before.name) is type(after.name)


def test_a_feature_with_a_foreign_field_is_refused() -> None:
    fields = Feature("x", "numeric").to_dict() | {"colour": "red"}
    with pytest.raises(SchemaError, match=r"^A feature must have the fields of fasterce.data.schema.Feature: .*colour"):
        Feature.from_dict(fields)


def test_constraints_stay_with_the_schema_and_are_the_same_after_json() -> None:
    constraints = [c.Range("age", 0, 99), c.If({"job": "clerk"}, then={"income": (0, None)}), c.AtMost(2, name="few")]
    schema = Schema.infer(people(), constraints=constraints)
    assert schema.constraints == tuple(constraints)
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert "constraints" not in Schema.infer(people()).to_dict()


def test_an_unconstrained_schema_has_no_constraints() -> None:
    assert Schema.infer(people(), constraints=[c.AtMost(2)]).unconstrained() == Schema.infer(people())


def test_a_constraint_about_no_column_is_refused_at_once() -> None:
    with pytest.raises(SchemaError, match=r"^The constraint 'aeg may only go up' must name known columns: .*'age'\?$"):
        Schema.infer(people(), constraints=[c.OnlyUp("aeg")])


# --- missing values --------------------------------------------------------------------------------------------------


def test_missing_values_seen_may_stay_and_appear_only_where_named() -> None:
    people = pd.DataFrame(
        {"age": [20.0, np.nan, 40.0], "income": [1.0, 2.5, 3.0], "job": ["clerk", None, "nurse"], "sex": list("fmf")}
    )
    schema = Schema.infer(people, may_go_missing=["income", "job"])
    assert {str(f.name): f.missing for f in schema.features} == {
        "age": "stay",
        "income": "may_appear",
        "job": "may_appear",
        "sex": "never",
    }
    assert schema["age"].integer, "a gap does not make whole numbers fractions"
    assert schema["job"].categories == ("clerk", "nurse")


def test_missing_is_kept_in_a_dictionary_and_never_where_it_is_left_out() -> None:
    schema = Schema.infer(pd.DataFrame({"a": [1.0, np.nan], "b": [1.0, 2.0]}))
    assert Schema.from_dict(schema.to_dict()) == schema
    to_json = schema.to_dict()["features"][0]
    del to_json["missing"]
    assert Feature.from_dict(to_json).missing == "never"


def test_a_wrong_word_for_missing_or_an_unknown_column_gets_a_sentence() -> None:
    with pytest.raises(SchemaError, match=r"missing values, one of 'never', 'stay', 'may_appear'; got 'yes'.$"):
        Feature("a", "numeric", missing="yes")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match=r"^Unknown column 'agee'; .*Did you mean 'age'\?$"):
        Schema.infer(pd.DataFrame({"age": [1, 2]}), may_go_missing=["agee"])
    with pytest.raises(SchemaError, match=r"^Column names must come as a list; got the text 'age'.$"):
        Schema.infer(pd.DataFrame({"age": [1, 2]}), may_go_missing="age")


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("mutable", "no", "mutable must be true or false"),
        ("integer", 1, "integer must be true or false"),
        ("decimals", "x", "decimals must be a whole number"),
        ("decimals", 10**9, "decimals must be a whole number"),
        ("lower", "0", "lower must be a number"),
    ],
)
def test_a_field_of_another_type_is_not_guessed_at(field: str, value: object, fault: str) -> None:
    described = Schema.infer(pd.DataFrame({"age": [1, 2]})).to_dict()
    described["features"][0][field] = value
    with pytest.raises(SchemaError, match=fault):
        Schema.from_dict(described)
