"""Typed tables and their codes: nothing is lost on the way there and back, and a bad cell costs its own row only."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal, assert_index_equal

from fasterce.data.dtypes import with_missing_rows
from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.errors import InputError, Problem


def table_like(X: pd.DataFrame, **constraints: Any) -> Table:
    return Table.like(X, Schema.infer(X, **constraints))


def texts(problems: Mapping[int, Problem]) -> dict[int, str]:
    return {row: problem.text() for row, problem in problems.items()}


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [25, 40, 61],
            "income": [1.5, 2.25, 3.0],
            "job": ["clerk", "nurse", "smith"],
            "owner": [True, False, True],
            "grade": pd.Categorical(["low", "high", "low"], ["low", "mid", "high"], ordered=True),
        }
    )


# --- there and back --------------------------------------------------------------------------------------------------

WORDS = st.text(max_size=4)
WHOLE = st.integers(-(2**53), 2**53)
DOUBLE = st.floats(allow_nan=False, allow_infinity=False)
SINGLE = st.floats(allow_nan=False, allow_infinity=False, width=32)


def cells(values: st.SearchStrategy[Any], dtype: Any) -> Any:
    return lambda rows: st.lists(values, min_size=rows, max_size=rows).map(lambda items: pd.Series(items, dtype=dtype))


def categorical(values: st.SearchStrategy[Any], ordered: bool) -> Any:
    def column(rows: int) -> st.SearchStrategy[pd.Series]:
        known = st.lists(values, min_size=1, max_size=5, unique=True)
        return known.flatmap(
            lambda items: st.lists(st.sampled_from(items), min_size=rows, max_size=rows).map(
                lambda chosen: pd.Series(pd.Categorical(chosen, items, ordered=ordered))
            )
        )

    return column


COLUMNS = {
    "int64": cells(WHOLE, "int64"),
    "int8": cells(st.integers(-128, 127), "int8"),
    "uint32": cells(st.integers(0, 2**32 - 1), "uint32"),
    "Int64": cells(WHOLE, "Int64"),
    "UInt8": cells(st.integers(0, 255), "UInt8"),
    "float64": cells(DOUBLE, "float64"),
    "float32": cells(SINGLE, "float32"),
    "Float64": cells(DOUBLE, "Float64"),
    "Float32": cells(SINGLE, "Float32"),
    "bool": cells(st.booleans(), "bool"),
    "boolean": cells(st.booleans(), "boolean"),
    "str": cells(WORDS, "str"),
    "string": cells(WORDS, "string"),
    "object": cells(WORDS, object),
    "mixed": cells(WORDS | st.integers(2, 9), object),
    "category": categorical(WORDS, ordered=False),
    "ordered": categorical(WORDS, ordered=True),
    "numbers": categorical(st.integers(-5, 5), ordered=True),
    "flags": categorical(st.booleans(), ordered=False),
    "named": cells(st.integers(-5, 5), "int16"),
}


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    rows = draw(st.integers(1, 6))
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=5, unique=True))
    return pd.DataFrame({name: draw(COLUMNS[name](rows)) for name in names})


@settings(max_examples=100, deadline=None)
@given(X=frames(), shuffle=st.randoms(use_true_random=False))
def test_any_table_comes_back_from_its_codes_as_it_was(X: pd.DataFrame, shuffle: Any) -> None:
    table = table_like(X, categorical=[name for name in X.columns if name == "named"])
    order = shuffle.sample(list(X.columns), X.shape[1])
    reading = table.read(X[order])
    assert reading.problems == {}
    assert np.isfinite(reading.codes).all()
    assert_frame_equal(table.frame(reading.codes), X, check_exact=True)
    assert_frame_equal(table.rewrite(X[order], reading.codes, reading.codes), X[order], check_exact=True)
    restored = Table.from_dict(table.schema, json.loads(json.dumps(table.to_dict())))
    assert restored == table
    assert_frame_equal(restored.frame(reading.codes), X, check_exact=True)


def test_codes_are_values_and_positions_of_categories() -> None:
    table = table_like(people())
    assert table.read(people()).codes.tolist() == [[25, 1.5, 0, 1, 0], [40, 2.25, 1, 0, 2], [61, 3.0, 2, 1, 0]]


def test_columns_with_numbers_as_names() -> None:
    X = pd.DataFrame({1: [1, 2], 0: ["x", "y"]})
    table = table_like(X)
    codes = table.read(X[[0, 1]]).codes
    assert codes.tolist() == [[1, 0], [2, 1]]
    assert_frame_equal(table.frame(codes), X)


def test_other_types_of_the_same_values_are_read_alike() -> None:
    table = table_like(people())
    codes = table.read(people()).codes
    other = people().astype({"age": "float32", "income": object, "job": "category", "owner": "int64", "grade": "str"})
    reading = table.read(other)
    assert reading.problems == {}
    assert np.array_equal(reading.codes, codes)
    assert_frame_equal(table.frame(reading.codes), people())


def test_a_category_is_found_by_value_not_by_its_place_in_another_dtype() -> None:
    table = table_like(people())
    other = people().assign(grade=pd.Categorical(["low", "high", "low"], ["high", "low"]))
    assert table.read(other).codes[:, 4].tolist() == [0, 2, 0]


def test_no_rows_give_no_codes_and_a_typed_empty_frame() -> None:
    table = table_like(people())
    reading = table.read(people().iloc[:0])
    assert reading.codes.shape == (0, 5)
    assert_frame_equal(table.frame(reading.codes), people().iloc[:0], check_index_type=False)


def test_single_values_are_plain_python_for_people_to_read() -> None:
    table = table_like(people().assign(code=np.array([3, 1, 3], dtype=np.int8)), categorical=["code"])
    shown = [table.value(j, code) for j, code in enumerate([40.0, 2.25, 1.0, 0.0, 2.0, 1.0])]
    assert shown == [40, 2.25, "nurse", False, "high", 3]
    assert [type(value) for value in shown] == [int, float, str, bool, str, int]
    assert table.value(0, 40.5) == 40.5


# --- bad cells -------------------------------------------------------------------------------------------------------


def with_cell(name: str, row: int, value: Any, **constraints: Any) -> tuple[Table, pd.DataFrame]:
    table = table_like(people(), **constraints)
    rows = people().astype({name: object})
    rows.loc[row, name] = value
    return table, rows


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("age", None, "Column 'age' must not be missing (row 1)."),
        ("age", np.nan, "Column 'age' must not be missing (row 1)."),
        ("age", pd.NA, "Column 'age' must not be missing (row 1)."),
        ("job", None, "Column 'job' must not be missing (row 1)."),
        ("owner", pd.NA, "Column 'owner' must not be missing (row 1)."),
        ("grade", np.nan, "Column 'grade' must not be missing (row 1)."),
        ("job", "baker", "Column 'job' must be one of 'clerk', 'nurse', 'smith'; got 'baker' (row 1)."),
        ("job", 3, "Column 'job' must be one of 'clerk', 'nurse', 'smith'; got 3 (row 1)."),
        ("owner", "yes", "Column 'owner' must be one of False, True; got 'yes' (row 1)."),
        ("income", "2.5", "Column 'income' must be a finite number; got '2.5' (row 1)."),
        ("income", "much", "Column 'income' must be a finite number; got 'much' (row 1)."),
        ("income", b"2", "Column 'income' must be a finite number; got b'2' (row 1)."),
        ("income", np.inf, "Column 'income' must be a finite number; got inf (row 1)."),
        ("income", -np.inf, "Column 'income' must be a finite number; got -inf (row 1)."),
        ("income", 9.5, "Column 'income' must be within [0, 9]; got 9.5 (row 1)."),
        ("income", np.float64(-1), "Column 'income' must be within [0, 9]; got -1 (row 1)."),
        ("age", 40.5, "Column 'age' must be a whole number; got 40.5 (row 1)."),
        ("age", 1e300, "Column 'age' must be a whole number below 2**53; got 1e+300 (row 1)."),
    ],
)
def test_a_bad_cell_is_reported_in_a_sentence_and_leaves_the_other_rows_alone(name: str, value: Any, sentence: str) -> None:
    table, rows = with_cell(name, 1, value, ranges={"income": (0, 9)})
    reading = table.read(rows)
    assert {row: problem.text() for row, problem in reading.problems.items()} == {1: sentence}
    problem = reading.problems[1]
    assert (problem.column, problem.row) == (name, 1)
    assert problem.received is None if pd.isna(value) else problem.received == value
    assert reading.codes[1].tolist() == [0.0] * 5
    assert np.array_equal(reading.codes[[0, 2]], table.read(people()).codes[[0, 2]])


@pytest.mark.parametrize(
    "value",
    [[1, 2], {"a": 1}, (1, 2), 10**400, 1 + 2j, pd.Timestamp("2020-01-01")],
    ids=["list", "dict", "tuple", "huge", "complex", "date"],
)
@pytest.mark.parametrize("name", ["income", "job"])
def test_a_cell_that_is_no_value_at_all_is_a_bad_cell_like_others(name: str, value: Any) -> None:
    table = table_like(people())
    cells = people()[name].astype(object).tolist()
    cells[1] = value
    reading = table.read(people().assign(**{name: pd.Series(cells, dtype=object)}))
    assert list(reading.problems) == [1]
    assert reading.problems[1].text().startswith(f"Column '{name}' must be ")
    assert np.array_equal(reading.codes[[0, 2]], table.read(people()).codes[[0, 2]])


@pytest.mark.parametrize("dtype", ["float64", "Int64", "Float64"])
def test_missing_numbers_of_every_dtype_are_noticed(dtype: str) -> None:
    rows = people().assign(age=pd.Series([25, None, 61], dtype=dtype))
    assert list(table_like(people()).read(rows).problems) == [1]


@pytest.mark.parametrize("dtype", ["str", "string", "category", object])
def test_missing_categories_of_every_dtype_are_noticed(dtype: Any) -> None:
    rows = people().assign(job=pd.Series(["clerk", None, "smith"], dtype=dtype))
    reading = table_like(people()).read(rows)
    assert dict(reading.problems) == {1: Problem("data.missing_value", "job", 1)}
    assert reading.codes[2, 2] == 2


def test_the_row_is_named_by_its_position_and_the_first_bad_column_is_reported() -> None:
    rows = people().set_axis(["a", "b", "c"])
    rows["income"] = [np.nan, 1.0, np.inf]
    rows["job"] = ["clerk", "nurse", "baker"]
    problems = table_like(people()).read(rows).problems
    assert texts(problems) == {
        0: "Column 'income' must not be missing (row 0).",
        2: "Column 'income' must be a finite number; got inf (row 2).",
    }


def test_a_value_outside_what_was_merely_seen_is_fine() -> None:
    table = table_like(people())
    reading = table.read(people().assign(age=[1, 40, 99]))
    assert reading.problems == {}
    assert reading.codes[:, 0].tolist() == [1, 40, 99]


def test_the_ends_of_a_declared_range_belong_to_it() -> None:
    table = table_like(people(), ranges={"income": (1.5, 3.0)})
    assert table.read(people()).problems == {}


def test_the_ends_of_a_declared_range_belong_to_it_in_32_bits_too() -> None:
    X = pd.DataFrame({"x": np.array([0.1, 0.2, 0.3], dtype=np.float32)})
    assert table_like(X, ranges={"x": (0.1, 0.3)}).read(X).problems == {}


def test_a_sentence_about_a_range_does_not_contradict_itself() -> None:
    table = table_like(pd.DataFrame({"x": [0.5, 100000.25]}), ranges={"x": (0, 123456.7)})
    assert "[0, 123456.7]" in table.read(pd.DataFrame({"x": [123456.75]})).problems[0].text()


def test_a_whole_number_column_stored_as_floats_takes_fractions() -> None:
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    assert table_like(X).read(pd.DataFrame({"x": [1.5]})).problems == {}


def test_a_small_integer_type_is_not_overflowed() -> None:
    X = pd.DataFrame({"x": np.array([1, 2], dtype=np.int8), "y": pd.array([1, 2], dtype="UInt8")})
    table = table_like(X)
    problems = table.read(pd.DataFrame({"x": [127, 128, 1], "y": [255, 1, -1]})).problems
    assert texts(problems) == {
        1: "Column 'x' must fit the type int8 seen in fit; got 128 (row 1).",
        2: "Column 'y' must fit the type UInt8 seen in fit; got -1 (row 2).",
    }


# --- wrong columns ---------------------------------------------------------------------------------------------------


def test_a_missing_column_is_named() -> None:
    with pytest.raises(InputError, match=r"^rows must have the columns of the schema; missing 'job'.$"):
        table_like(people()).read(people().drop(columns="job"))


def test_a_renamed_column_is_named_both_ways() -> None:
    with pytest.raises(InputError, match=r"missing 'job' \(and has the unexpected 'Job'\).$"):
        table_like(people()).read(people().rename(columns={"job": "Job"}))


def test_a_column_too_many_is_named() -> None:
    with pytest.raises(InputError, match=r"^rows must have only the columns of the schema. Unknown column 'label'"):
        table_like(people()).read(people().assign(label=1))


def test_training_rows_without_a_schema_column_are_refused() -> None:
    with pytest.raises(InputError, match=r"^X must have the columns of the schema; missing 'age'.$"):
        Table.like(people().drop(columns="age"), Schema.infer(people()))


@pytest.mark.parametrize("rows", [[[1, 2]], np.zeros((1, 5, 2)), "people.csv"])
def test_rows_that_are_no_table_are_refused(rows: Any) -> None:
    with pytest.raises(InputError, match=r"^rows must be a pandas, Polars or PyArrow table, a Series, "):
        table_like(people()).read(rows)


def test_repeated_columns_are_refused() -> None:
    with pytest.raises(InputError, match=r"^rows must have unique column names; got 'age' more than once.$"):
        table_like(people()).read(pd.concat([people(), people()[["age"]]], axis=1))


# --- rewriting -------------------------------------------------------------------------------------------------------


def rewritten(X: pd.DataFrame, rows: pd.DataFrame, changes: dict[tuple[int, Any], float], **constraints: Any) -> pd.DataFrame:
    table = table_like(X, **constraints)
    before = table.read(rows).codes
    after = before.copy()
    for (row, name), code in changes.items():
        after[row, table.schema.position(name)] = code
    return table.rewrite(rows, before, after)


def test_rewriting_changes_the_changed_cells_and_nothing_else() -> None:
    rows = people()[["grade", "age", "owner", "job", "income"]].set_axis(["a", "b", "a"])
    changes = {(0, "age"): 30, (1, "income"): 2.5, (2, "job"): 0, (0, "owner"): 0, (1, "grade"): 1}
    expected = rows.copy()
    expected["age"] = [30, 40, 61]
    expected["income"] = [1.5, 2.5, 3.0]
    expected["job"] = ["clerk", "nurse", "clerk"]
    expected["owner"] = [False, False, True]
    expected["grade"] = pd.Categorical(["low", "mid", "low"], ["low", "mid", "high"], ordered=True)
    assert_frame_equal(rewritten(people(), rows, changes), expected, check_exact=True)


@pytest.mark.parametrize(
    ("dtypes", "changes"),
    [
        ({"age": "Int64"}, {(0, "age"): 30}),
        ({"age": "float64"}, {(0, "age"): 30}),
        ({"age": "int8"}, {(0, "age"): 30}),
        ({"income": "float32"}, {(0, "income"): 2.5}),
        ({"income": "Float64"}, {(0, "income"): 2.5}),
        ({"income": object}, {(0, "income"): 2.5}),
        ({"job": "category"}, {(0, "job"): 1}),
        ({"job": "string"}, {(0, "job"): 1}),
        ({"job": object}, {(0, "job"): 1}),
        ({"owner": "boolean"}, {(0, "owner"): 0}),
        ({"owner": "int64"}, {(0, "owner"): 0}),
        ({"grade": object}, {(0, "grade"): 1}),
    ],
)
def test_the_querys_own_dtype_is_kept_where_the_value_fits(dtypes: dict[str, Any], changes: dict[Any, float]) -> None:
    rows = people().astype(dtypes)
    result = rewritten(people(), rows, changes)
    assert result.dtypes.tolist() == rows.dtypes.tolist()
    (row, name), code = next(iter(changes.items()))
    table = table_like(people())
    assert result.loc[row, name] == table.value(table.schema.position(name), code)
    assert result[name].tolist()[1:] == rows[name].tolist()[1:]


@pytest.mark.parametrize("dtype", [object, "str", "string", "category"])
def test_text_stays_the_kind_of_text_it_was_in_training_and_query(dtype: Any) -> None:
    X = people().astype({"job": dtype})
    result = rewritten(X, X, {(0, "job"): 1})
    assert result["job"].dtype == X["job"].dtype
    assert result["job"].tolist() == ["nurse", "nurse", "smith"]
    table = table_like(X)
    assert table.frame(table.read(X).codes)["job"].dtype == X["job"].dtype


@pytest.mark.parametrize(
    ("column", "name", "code", "values"),
    [
        (pd.Series([1, 2, 3]), "income", 2.25, [2.25, 2, 3]),
        (pd.Series([25, 40, 61], dtype="int8"), "age", 300, [300, 40, 61]),
        (pd.Series([1.5, 2.25, 3.0], dtype="float32"), "income", 0.1, [0.1, 2.25, 3.0]),
        (pd.Series(["clerk", "nurse", "nurse"], dtype="category"), "job", 2, ["smith", "nurse", "nurse"]),
    ],
)
def test_a_value_the_querys_dtype_cannot_hold_is_never_bent(column: Any, name: str, code: float, values: list[Any]) -> None:
    result = rewritten(people(), people().assign(**{name: column}), {(0, name): code})
    assert result[name].tolist() == values
    assert result[name].dtype == people()[name].dtype


def test_unchanged_cells_keep_values_no_code_could_hold() -> None:
    X = pd.DataFrame({"id": [2**60 + 1, 2**60 + 3], "x": [0.5, 1.5]})
    result = rewritten(X, X, {(0, "x"): 1.0})
    assert result["id"].tolist() == [2**60 + 1, 2**60 + 3]


def test_rewriting_repeated_rows_and_columns_with_numbers_as_names() -> None:
    X = pd.DataFrame({1: [1, 2], 0: ["x", "y"]}, index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]))
    rows = X.iloc[[1, 1, 0]]
    result = rewritten(X, rows, {(0, 1): 7, (1, 0): 0})
    assert_index_equal(result.index, rows.index)
    assert result[1].tolist() == [7, 2, 1]
    assert result[0].tolist() == ["y", "x", "x"]


# --- gaps ------------------------------------------------------------------------------------------------------------


def test_gaps_are_missing_values_and_whole_numbers_stay_whole() -> None:
    found = people().astype({"age": "int32"}).iloc[[0, 2]]
    spread = with_missing_rows(found, np.array([1, 3]), pd.Index(["a", "b", "a", "c"]))
    assert spread.index.tolist() == ["a", "b", "a", "c"]
    assert [str(dtype) for dtype in spread.dtypes] == ["Int64", "float64", str(people()["job"].dtype), "boolean", "category"]
    assert spread.isna().all(axis=1).tolist() == [True, False, True, False]
    assert spread.iloc[1].tolist() == [25, 1.5, "clerk", True, "low"]
    assert spread.iloc[3].tolist() == [61, 3.0, "smith", True, "low"]
    assert spread["grade"].dtype == people()["grade"].dtype


def test_without_gaps_dtypes_stay() -> None:
    spread = with_missing_rows(people(), np.arange(3), pd.Index(["a", "b", "c"]))
    assert_frame_equal(spread, people().set_axis(["a", "b", "c"]))


def test_nothing_found_is_all_gaps() -> None:
    spread = with_missing_rows(people().iloc[:0], np.zeros(0, dtype=np.intp), pd.RangeIndex(2))
    assert spread.shape == (2, 5)
    assert spread.isna().all(axis=None)
    assert str(spread["age"].dtype) == "Int64"


# --- dtypes in JSON --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype",
    [
        "int8",
        "float32",
        "Int64",
        "boolean",
        "str",
        "string",
        "object",
        pd.StringDtype("python"),
        pd.CategoricalDtype(["a", "b", "c"]),
        pd.CategoricalDtype(["a", "b"], ordered=True),
        pd.CategoricalDtype(pd.Index([1, 0, 2], dtype="int8"), ordered=True),
        pd.CategoricalDtype([0.5, 1.5]),
        pd.CategoricalDtype([True, False]),
    ],
)
def test_dtypes_are_the_same_after_json(dtype: Any) -> None:
    dtype = pd.api.types.pandas_dtype(dtype)
    table = Table(Schema.infer(pd.DataFrame({"x": [1]})), (dtype,))
    restored = Table.from_dict(table.schema, json.loads(json.dumps(table.to_dict())))
    assert restored.dtypes == (dtype,)
    if isinstance(dtype, pd.CategoricalDtype):
        assert restored.dtypes[0].categories.tolist() == dtype.categories.tolist()
        assert restored.dtypes[0].categories.dtype == dtype.categories.dtype


# --- missing values as states ----------------------------------------------------------------------------------------

GAPPY: dict[str, pd.Series] = {
    "float64": pd.Series([1.5, np.nan, 3.0]),
    "float32": pd.Series([1.5, np.nan, 3.0], dtype="float32"),
    "Float64": pd.Series([1.5, None, 3.0], dtype="Float64"),
    "Int64": pd.Series([1, None, 3], dtype="Int64"),
    "UInt8": pd.Series([1, None, 3], dtype="UInt8"),
    "None": pd.Series(["x", None, "y"], dtype=object),
    "NaN": pd.Series(["x", np.nan, "y"], dtype=object),
    "str": pd.Series(["x", None, "y"], dtype="str"),
    "string": pd.Series(["x", pd.NA, "y"], dtype="string"),
    "category": pd.Series(pd.Categorical(["x", None, "y"], ["y", "x"], ordered=True)),
    "boolean": pd.Series([True, None, False], dtype="boolean"),
}


@pytest.mark.parametrize("kind", GAPPY)
@pytest.mark.parametrize("rows", [1, 10], ids=["few rows", "many rows"])
def test_missing_values_go_there_and_back_in_every_dtype(kind: str, rows: int) -> None:
    frame = pd.DataFrame({"a": pd.concat([GAPPY[kind]] * rows, ignore_index=True)})
    table = table_like(frame)
    reading = table.read(frame)
    assert reading.problems == {}
    assert np.isfinite(reading.codes).all()
    assert (reading.codes[:, 0] == table.schema["a"].missing_code).tolist() == frame["a"].isna().tolist()
    assert_frame_equal(table.frame(reading.codes), frame)
    assert [table.value(0, code) is None for code in reading.codes[:3, 0]] == [False, True, False]
    again = Table.from_dict(table.schema, json.loads(json.dumps(table.to_dict())))
    assert_frame_equal(again.frame(reading.codes), frame)


def test_a_model_sees_none_where_training_had_none() -> None:
    for blank in (None, np.nan):
        frame = pd.DataFrame({"a": pd.Series(["x", blank, "y"], dtype=object)})
        table = table_like(frame)
        seen = Table.from_dict(table.schema, table.to_dict()).frame(np.array([[2.0]]))["a"].iloc[0]
        assert (seen is None) == (blank is None)


@pytest.mark.parametrize("kind", GAPPY)
def test_filling_and_emptying_rewrites_just_those_cells(kind: str) -> None:
    frame = pd.DataFrame({"a": GAPPY[kind]}, index=[7, 8, 9])
    frame["a"] = GAPPY[kind].to_numpy() if kind in ("float64", "float32") else GAPPY[kind].array
    table = table_like(frame)
    before = table.read(frame).codes
    after = before[[1, 0, 2]]
    found = table.rewrite(frame, before, after)
    assert found["a"].dtype == frame["a"].dtype
    assert found["a"].isna().tolist() == [True, False, False]
    assert found["a"].iloc[1:].tolist() == frame["a"].iloc[[0, 2]].tolist()
    assert_frame_equal(table.rewrite(frame, before, before), frame)


def test_a_query_of_another_dtype_goes_missing_as_training_would_hold_it() -> None:
    table = table_like(pd.DataFrame({"a": [1.0, np.nan, 3.0]}))
    query = pd.DataFrame({"a": [1, 3]})
    before = table.read(query).codes
    after = np.array([[1.0], [table.schema["a"].missing_code]])
    found = table.rewrite(query, before, after)["a"]
    assert found.dtype == np.float64
    assert found.iloc[0] == 1.0
    assert np.isnan(found.iloc[1])


def test_what_is_returned_keeps_gaps_beside_finer_numbers() -> None:
    table = table_like(pd.DataFrame({"a": pd.Series([0.1, np.nan, 3.0], dtype="float32")}))
    query = pd.DataFrame({"a": [0.1, np.nan, 3.0]})
    codes = table.read(query).codes
    seen = table.as_returned(query, np.arange(len(query)), codes, codes)["a"]
    assert seen.iloc[0] == 0.1, "the query holds it more precisely"
    assert np.isnan(seen.iloc[1])


def test_a_gap_elsewhere_infinity_and_the_code_itself_stay_bad_input() -> None:
    table = table_like(pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [1.0, 2.0, 3.0]}))
    query = pd.DataFrame({"a": [np.nan, np.inf, 1.0, -(2.0**100)], "b": [1.0, 1.0, np.nan, 1.0]})
    assert texts(table.read(query).problems) == {
        1: "Column 'a' must be a finite number; got inf (row 1).",
        2: "Column 'b' must not be missing (row 2).",
        3: "Column 'a' must not be the code of a missing value; got -1.26765060022823e+30 (row 3).",
    }


@pytest.mark.parametrize(("values", "able"), [([1, 2, 3], "'float64', 'Int64'"), ([True, False, True], "'boolean'")])
def test_a_column_that_cannot_hold_a_gap_is_refused(values: list[Any], able: str) -> None:
    frame = pd.DataFrame({"a": values})
    with pytest.raises(InputError, match=rf"^Column 'a' must be of a type that can hold missing values, such as {able}, "):
        table_like(frame, may_go_missing=["a"])


def test_a_number_too_large_for_its_column_is_a_problem_of_its_row() -> None:
    data = pd.DataFrame({"debt": np.array([1.5, 2.5], dtype=np.float32)})
    reading = Table.like(data, Schema.infer(data)).read(pd.DataFrame({"debt": [1e300, 2.5]}))
    assert list(reading.problems) == [0]
    assert "must fit the type float32 seen in fit" in reading.problems[0].text()
    assert reading.codes[1, 0] == 2.5


def test_a_table_that_a_model_changes_leaves_later_tables_as_they_were() -> None:
    """Columns of few rows are kept; what a model does to its table must not be seen by the next call."""
    table, codes = table_like(people()), np.array([[25.0, 1.5, 0.0, 1.0, 0.0], [40.0, 2.25, 1.0, 0.0, 2.0]])
    first, before = table.frame(codes), table.frame(codes)
    first.loc[:, "job"] = first["job"].to_numpy()[::-1]
    first.loc[0, "grade"] = "mid"
    first.columns.name = "features"
    assert_frame_equal(table.frame(codes), before)


def test_kept_columns_are_found_by_feature_and_category() -> None:
    X = pd.DataFrame({"a": ["x", "y", "z"], "b": ["y", "x", "y"], "n": [1, 2, 3]})
    table = table_like(X)
    codes = table.read(X).codes
    for rows in ([0, 1], [1, 0], [2], [0, 0], [0, 1]):
        assert_frame_equal(table.frame(codes[rows]), X.iloc[rows].reset_index(drop=True))


def test_rewriting_numbers_of_one_dtype_keeps_index_names_and_the_rows_themselves() -> None:
    X = pd.DataFrame({"a": [1.5, np.nan, 3.0], "b": [4.0, 5.25, 6.0]}, index=["p", "p", "q"])
    X.columns.name, X.attrs = "features", {"source": "a file"}
    table, given = table_like(X), X.copy()
    before = table.read(X).codes
    after = before.copy()
    after[0, 0], after[1, 0], after[2, 1] = before[1, 0], 7.5, 8.0
    expected = pd.DataFrame({"a": [np.nan, 7.5, 3.0], "b": [4.0, 5.25, 8.0]}, index=["p", "p", "q"])
    expected.columns.name = "features"
    rewritten = table.rewrite(X, before, after)
    assert_frame_equal(rewritten, expected)
    assert rewritten.attrs == X.attrs
    rewritten.iloc[:, :] = 0.0
    assert_frame_equal(X, given)
