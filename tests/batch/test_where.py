"""Conditions as people type them: what they mean, and that nothing else is understood."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce.batch import where
from fasterce.batch.pruning import unwanted_groups
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
    node = where.parse(text)
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
    ],
)
def test_what_is_wanted(text: str, wanted: list[int]) -> None:
    assert rows(text) == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "got nothing more"),
        ("age", "got nothing more"),
        ("age =", "got nothing more"),
        ("age = bad", "Text is written in quotes: 'bad'"),
        ("age = 1 2", "got '2' at character 8"),
        ("age = 1 and", "got nothing more"),
        ("(age = 1", "got nothing more"),
        ("__import__('os').system('true')", r"got '\('"),
        ("age; drop", "got ';"),
        ("1 = age", "got '1'"),
        ("ages = 1", "Unknown column 'ages'.*Did you mean 'age'"),
        ("age = 'x'", "column 'age' must be compared with a number; got 'x'"),
        ("own = 1", "column 'own' must be compared with true or false; got 1"),
        ("(" * 500 + "age = 1", "at most 100 levels deep"),
        ("age = 1" + " " * 20_000, "at most 10000 characters"),
    ],
)
def test_anything_else_is_told(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        rows(text)


def test_what_the_input_says_is_told_apart_from_what_the_model_says() -> None:
    given, asked = where.split(where.parse("age > 3 and prediction = 'bad' and (own = true or score < 0.4)"))
    assert given == where.parse("age > 3")
    assert asked == where.parse("prediction = 'bad' and (own = true or score < 0.4)")
    assert where.split(where.parse("`prediction` = 1"))[1] is None


def test_classes_are_known_by_how_they_are_written() -> None:
    made = where.check_classes(where.parse("prediction = 0 or not prediction != '1'"), (0, 1))
    assert made == where.check_classes(where.parse("prediction = '0' or not prediction != 1"), (0, 1))
    with pytest.raises(InputError, match=r"Unknown class 'bda'.*Did you mean 'bad'"):
        where.check_classes(where.parse("prediction = 'bda'"), ("good", "bad"))
    with pytest.raises(InputError, match="can be = or != one; got '<'"):
        where.check_classes(where.parse("prediction < 1"), (0, 1))


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
def test_conditions_mean_what_they_mean_in_python(text: str, values: list[tuple[int, int]]) -> None:
    table = pa.table({"a": [a for a, _ in values], "b": [b for _, b in values]})
    python = text.replace(" = ", " == ")
    assert rows(text, table) == [k for k, (a, b) in enumerate(values) if eval(python, {"a": a, "b": b})]


@given(TREES, st.integers(1, 5))
def test_no_wanted_row_is_in_a_row_group_that_is_passed_over(text: str, size: int) -> None:
    rng = np.random.default_rng(size)
    frame = pd.DataFrame({"a": np.sort(rng.integers(-3, 4, 20)), "b": rng.integers(-3, 4, 20)})
    table = pa.Table.from_pandas(frame)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=size)
    unwanted = unwanted_groups(pq.ParquetFile(pa.BufferReader(sink.getvalue())).metadata, where.parse(text))
    assert not {row // size for row in rows(text, table)} & unwanted


def test_row_groups_are_passed_over_where_statistics_tell() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": list(range(10)), "t": list("aabbccddee")}), sink, row_group_size=2)
    metadata = pq.ParquetFile(pa.BufferReader(sink.getvalue())).metadata
    assert unwanted_groups(metadata, where.parse("a >= 6")) == {0, 1, 2}
    assert unwanted_groups(metadata, where.parse("t = 'b' or a = 9")) == {0, 2, 3}
    assert unwanted_groups(metadata, where.parse("t = 3 and b = 1")) == set()
