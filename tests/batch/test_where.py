"""Filters: which rows they select, and that anything else is rejected."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce.batch import where
from fasterce.batch.where import unwanted_groups
from fasterce.constraints.filter import parse_filter, split, with_classes
from fasterce.errors import InputError

TABLE = pa.table(
    {
        "age": pa.array([20, 30, None, 40], pa.int64()),
        "pay": [1.5, float("nan"), 2.5, -1.0],
        "text": ["10", "x", None, " 9 "],
        "city name": pa.array(["Köln", "it's", "Köln", None]).dictionary_encode(),
        "own": [True, False, None, True],
    }
)


def rows(text: str, table: pa.Table = TABLE) -> list[int]:
    node = parse_filter(text)
    where.check_types(node, {field.name: field.type for field in table.schema}, "the table")
    found = where.evaluate(node, lambda name: table.column(name.text).combine_chunks())
    return [k for k, wanted in enumerate(found.to_pylist()) if wanted]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("age >= 30", [1, 3]),
        ("age = 20 or age == 40", [0, 3]),
        ("not age > 25", [0]),
        ("age <> 20", [1, 3]),
        ("age in (20, 30)", [0, 1]),
        ("age not in (20)", [1, 3]),
        ("age is null", [2]),
        ("age is not null and age < 35", [0, 1]),
        ("pay < 100", [0, 2, 3]),
        ("pay != 1.5", [2, 3]),
        ("pay >= -1e0 AND pay <= 1.5", [0, 3]),
        ("text < 11", [0, 3]),
        ("text = 'x'", [1]),
        ("`city name` = 'Köln'", [0, 2]),
        ("`city name` = 'it''s'", [1]),
        ('`city name` = "it\'s"', [1]),
        ("own = true", [0, 3]),
        ("own != true", [1]),
        ("(age = 20 or age = 30) and own = false", [1]),
        ("age = 20 or age = 30 and own = true", [0]),
        ("25 < age", [1, 3]),
        ("20 < age <= 30", [1]),
        ("age / 2 > 12", [1, 3]),
        ("age + 10 * pay >= 30 and pay > 0", [0]),
        ("text * 2 >= 19", [0]),
        ("abs(pay) == 1", [3]),
        ("max(pay, 2) > 2 or age - 10 == 10", [0, 2]),
        ("age IS NULL", [2]),
        ("age in (20,)", [0]),
    ],
)
def test_a_filter_selects_rows(text: str, wanted: list[int]) -> None:
    assert rows(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "age",
        "age =",
        "age = 1 2",
        "age = 1 and",
        "(age = 1",
        "__import__('os').system('true')",
        "age.__class__ == 1",
        "[age for age in (1, 2)] == 1",
        "(lambda: 1)() == age",
        "age; drop",
        "1 = 1",
        "1e999 = age",
        "age in ()",
        "age in (1, pay)",
        "age is 1",
        "pay + 'x' = 2",
        "(" * 500 + "age = 1",
        "(" * 150 + "age = 1" + ")" * 150 + " and",
    ],
)
def test_anything_else_is_rejected(text: str) -> None:
    with pytest.raises(InputError) as caught:
        rows(text)
    assert caught.value.problem.code == (
        "constraints.not_a_filter" if "__class__" not in text else "batch.where_unknown_column"
    )
    assert caught.value.problem.option == "where"


@pytest.mark.parametrize(
    ("text", "code", "received"),
    [
        ("ages = 1", "batch.where_unknown_column", "ages"),
        ("age = bad", "batch.where_unknown_column", "bad"),
        ("age = 'x'", "batch.where_number_column", "x"),
        ("own = 1", "batch.where_boolean_column", 1),
        ("own * 2 = 1", "batch.where_not_numbers", "bool"),
        ("not " * 150 + "age = 1", "constraints.filter_too_deep", None),
        ("age = 1" + " " * 20_000, "constraints.filter_too_long", None),
    ],
)
def test_filters_that_do_not_fit_the_table_are_rejected(text: str, code: str, received: object) -> None:
    with pytest.raises(InputError) as caught:
        rows(text)
    assert (caught.value.problem.code, caught.value.problem.received) == (code, received)


def test_the_nearest_column_is_suggested() -> None:
    with pytest.raises(InputError, match="Did you mean 'age'"):
        rows("ages = 1")


def test_parts_that_need_the_model_are_split_off() -> None:
    by_input, by_model = split(parse_filter("age > 3 and prediction = 'bad' and (own = true or score < 0.4)"))
    assert by_input == parse_filter("age > 3")
    assert by_model == parse_filter("prediction = 'bad' and (own = true or score < 0.4)")
    assert split(parse_filter("`prediction` = 1"))[1] is None


def test_classes_are_recognised_by_their_text() -> None:
    made = with_classes(parse_filter("prediction = 0 or not prediction != '1'"), (0, 1))
    assert made == with_classes(parse_filter("prediction = '0' or not prediction != 1"), (0, 1))
    with pytest.raises(InputError, match=r"unknown class 'bda'.*Did you mean 'bad'"):
        with_classes(parse_filter("prediction = 'bda'"), ("good", "bad"))
    with pytest.raises(InputError, match=r"by == or != only.*; got '<'"):
        with_classes(parse_filter("prediction < 1"), (0, 1))


NUMBERS = st.integers(-3, 3)
SIMPLE = st.builds(
    lambda name, sign, value: f"{name} {sign} {value}",
    st.sampled_from("ab"),
    st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    NUMBERS,
)
TREES = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("not {}".format, inner),
    ),
    max_leaves=6,
)


@given(TREES, st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20))
def test_filters_select_the_same_rows_as_python(text: str, values: list[tuple[int, int]]) -> None:
    table = pa.table({"a": [a for a, _ in values], "b": [b for _, b in values]})
    python = text.replace(" = ", " == ")
    assert rows(text, table) == [k for k, (a, b) in enumerate(values) if eval(python, {"a": a, "b": b})]


@given(TREES, st.integers(1, 5))
def test_no_selected_row_is_in_a_skipped_row_group(text: str, size: int) -> None:
    rng = np.random.default_rng(size)
    frame = pd.DataFrame({"a": np.sort(rng.integers(-3, 4, 20)), "b": rng.integers(-3, 4, 20)})
    table = pa.Table.from_pandas(frame)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=size)
    unwanted = unwanted_groups(pq.ParquetFile(pa.BufferReader(sink.getvalue())).metadata, parse_filter(text))
    assert not {row // size for row in rows(text, table)} & unwanted


def test_row_groups_are_skipped_by_their_statistics() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": list(range(10)), "t": list("aabbccddee")}), sink, row_group_size=2)
    metadata = pq.ParquetFile(pa.BufferReader(sink.getvalue())).metadata
    assert unwanted_groups(metadata, parse_filter("a >= 6")) == {0, 1, 2}
    assert unwanted_groups(metadata, parse_filter("t = 'b' or a = 9")) == {0, 2, 3}
    assert unwanted_groups(metadata, parse_filter("t = 3 and b = 1")) == set()
