"""Rows of files as the explainer saw them in training, and one sentence for every file that cannot be read."""

import csv
import gzip
import io
import os
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce import FasterCE, Schema
from fasterce.data.table import Table
from fasterce.errors import InputError
from fasterce.io import frame_of, open_rows
from fasterce.io.delimited import BLOCK, LONGEST_LINE

HEADER = "age,pay,weight,zip,own,code,grade\n"
SOUND = "30,50.5,70.1,01,True,1,low\n"


def frames(source: Any, table: Table, **how: Any) -> pd.DataFrame:
    with open_rows(source, table=table, **how) as rows:
        return pd.concat([chunk.frame for chunk in rows], ignore_index=True)


def problem_of(explainer: FasterCE, folder: Path, line: str) -> str:
    """Return the problem of one line between two sound ones, which must not suffer by it."""
    path = folder / "one.csv"
    path.write_text(HEADER + SOUND + line + SOUND, encoding="utf-8", newline="")
    found = frames(path, explainer.state_.table)
    reading = explainer.state_.table.read(found)
    assert len(found) == 3
    assert set(reading.problems) <= {1}
    assert (reading.codes[0] == reading.codes[2]).all()
    return str(reading.problems.get(1, ""))


@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "semicolon", "parquet", "bom", "crlf", "quoted"])
def test_rows_come_back_in_the_types_of_fit(
    explainer: FasterCE, people: pd.DataFrame, tmp_path: Path, kind: str, chunk_rows: int
) -> None:
    path = tmp_path / f"rows.{kind}"
    how: dict[str, dict[str, Any]] = {
        "tsv": {"sep": "\t"},
        "semicolon": {"sep": ";"},
        "csv.gz": {"compression": "gzip"},
        "bom": {"encoding": "utf-8-sig"},
        "crlf": {"lineterminator": "\r\n"},
        "quoted": {"quoting": csv.QUOTE_ALL},
    }
    shuffled = people[[*reversed(people.columns)]].assign(more="x")
    shuffled.to_parquet(path, row_group_size=11) if kind == "parquet" else shuffled.to_csv(
        path, index=False, **how.get(kind, {})
    )
    pd.testing.assert_frame_equal(frames(path, explainer.state_.table, chunk_rows=chunk_rows), people)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ['"', "a,b", "a;b", "\n", "\r\n", " 01", "01", "1", "NA", "", "True", "é", "\ufeffx", "'", "\t", "x\x00"]
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=64).filter(lambda value: abs(value) < 1e300)


@given(
    texts=st.lists(TEXTS, min_size=2, max_size=6, unique=True),
    numbers=st.lists(FLOATS | st.none(), min_size=2, max_size=6),
    separator=st.sampled_from([",", ";", "\t", "|"]),
    whole=st.lists(st.integers(-(2**53), 2**53), min_size=6, max_size=6),
    singles=st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=6, max_size=6),
    codes=st.lists(st.integers() | st.booleans() | FLOATS, min_size=2, max_size=6, unique=True),
)
def test_whatever_pandas_writes_is_read_as_it_was(
    texts: list[str], numbers: Any, separator: str, whole: Any, singles: Any, codes: Any
) -> None:
    size = min(len(texts), len(numbers), len(codes))
    frame = pd.DataFrame(
        {
            "text": pd.Series(texts[:size], dtype=object),
            "number": np.array([np.nan if value is None else value for value in numbers[:size]]),
            "whole": np.array(whole[:size], dtype=np.int64),
            "single": np.array(singles[:size], dtype=np.float32),
            "code": pd.Series(codes[:size], dtype=object),
        }
    )
    if frame["number"].isna().all():
        frame.loc[0, "number"] = 1.0
    table = Table.like(frame, Schema.infer(frame))
    text = io.StringIO(newline="")
    frame.to_csv(text, index=False, sep=separator, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.getvalue().encode())))
        found = frames("-", table)
    pd.testing.assert_frame_equal(found, frame)
    assert [type(value) for value in found["code"]] == [type(value) for value in frame["code"]]


def test_numbers_are_read_as_anyone_writes_them(explainer: FasterCE, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(HEADER + " 31 ,1e1,+7.5,01,true,1.0,low\n3.2e1,.5,7.,02,FALSE,2, mid\n33,,1E-3,1,1,3,high\n")
    found = frames(path, explainer.state_.table)
    assert found["age"].tolist() == [31, 32, 33]
    assert found["age"].dtype == np.int64
    assert found["pay"].tolist()[:2] == [10.0, 0.5]
    assert np.isnan(found["pay"][2])
    assert found["weight"].dtype == np.float32
    assert found["own"].tolist() == [True, False, True]
    assert found["code"].tolist() == [1, 2, 3]
    assert found["zip"].tolist() == ["01", "02", "1"]
    assert found["grade"].tolist() == ["low", "mid", "high"]


@pytest.mark.parametrize("word", ["", "  ", "NA", "NaN", "null", "None"])
def test_a_missing_value_is_empty_or_says_so(explainer: FasterCE, tmp_path: Path, word: str) -> None:
    assert problem_of(explainer, tmp_path, f"30,{word},70,01,True,1,low\n") == ""
    assert problem_of(explainer, tmp_path, f"{word},50,70,01,True,1,low\n").startswith("Column 'age' must not be missing")
    assert problem_of(explainer, tmp_path, f"30,50,70,{word},True,1,low\n").startswith("Column 'zip' must not be missing")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("abc,50,70,01,True,1,low", "Column 'age' must be a finite number; got 'abc'"),
        ("30,'x',70,01,True,1,low", "Column 'pay' must be a finite number; got \"'x'\""),
        ('30,"1,5",70,01,True,1,low', "got '1,5' (a decimal comma, which --decimal , reads)"),
        ('30,"1.234,5",70,01,True,1,low', "got '1.234,5' (a decimal comma, which --decimal , --thousands . reads)"),
        ('30,"1,234",70,01,True,1,low', "got '1,234' (a comma, which --thousands , reads, or --decimal , if it is"),
        ("30,1 234,70,01,True,1,low", "got '1 234' (a thousands separator, which --thousands \" \" reads)"),
        ("30,1_000,70,01,True,1,low", "Column 'pay' must be a finite number; got '1_000'"),
        ("30,٣,70,01,True,1,low", "Column 'pay' must be a finite number; got '٣'"),
        ("30,inf,70,01,True,1,low", "Column 'pay' must be a finite number; got 'inf'"),
        ("30,1e999,70,01,True,1,low", "got '1e999' (larger than a float can hold)"),
        ("30,50,1e39,01,True,1,low", "Column 'weight' must be a finite number"),
        ("30.5,50,70,01,True,1,low", "Column 'age' must be a whole number; got 30.5"),
        ("9007199254740993,50,70,01,True,1,low", "got '9007199254740993' (not held exactly: beyond 2**53)"),
        ("30,50,70,001,True,1,low", "Column 'zip' must be one of '01', '02', '1'; got '001'"),
        ("30,50,70,01,yes,1,low", "Column 'own' must be one of False, True; got 'yes'"),
        ("30,50,70,01,True,4,low", "Column 'code' must be one of 1, 2, 3; got '4'"),
        ("30,50,70,01,True,1,Low", "Column 'grade' must be one of 'low', 'mid', 'high'; got 'Low'"),
        ("30,50,70,01,True", "got line 3 with 5 cells where the header has 7"),
        ("30,50,70,01,True,1,low,more", "got line 3 with 8 cells where the header has 7"),
        ("30,50,70,01,True,1,l\row", "got line 3 with a bare CR in a cell without quotes"),
        ('30,50,70,"01"x,True,1,low', "got line 3 with text that goes on after a closing quote"),
    ],
)
def test_a_bad_cell_is_a_problem_of_its_row(explainer: FasterCE, tmp_path: Path, line: str, message: str) -> None:
    assert message in problem_of(explainer, tmp_path, line + "\n")


@pytest.mark.parametrize(
    ("content", "how", "message"),
    [
        (b"", {}, "must start with a header line that names the columns; got an empty file"),
        (b"\n\n", {}, "must start with a header line"),
        (b"age,pay,weigth,zip,own,code,grade\n", {}, "missing 'weight'; got 'age', 'pay', 'weigth'"),
        (b"age,pay,weigth,zip,own,code,grade\n", {}, "Did you mean 'weight' by 'weigth'?"),
        (b"age,pay,age,weight,zip,own,code,grade\n", {}, "got 'age' more than once"),
        (HEADER.replace(",", ";").encode(), {"separator": ","}, "fits its header, ';'; got ','"),
        (HEADER.encode(), {"separator": "\t"}, "fits its header, ','; got '\\t'"),
        (HEADER.encode(), {"separator": "::"}, "separator must be one character"),
        (HEADER.encode(), {"encoding": "utf-99"}, "encoding must name a text encoding"),
        (HEADER.encode(), {"ids": "wh"}, "Unknown column 'wh'"),
        (HEADER.encode(), {"keep": ["agee"]}, "Did you mean 'age'?"),
        (HEADER.encode(), {"keep": "age"}, "keep must be a list"),
        (HEADER.encode(), {"chunk_rows": 0}, "chunk_rows must be a whole number of at least 1; got 0"),
        ((HEADER + "30,50,70,M\u00fcller").encode("cp1252"), {}, "got the byte 0xfc at position 44"),
        ((HEADER + "30,50,70,M\u00fcller").encode("cp1252"), {}, "use encoding='cp1252' if that is what it is"),
        (HEADER.encode("utf-16"), {}, "use encoding='utf-16' if that is what it is; got the byte 0xff at position 0"),
        ((HEADER + '30,50,70,"01,True,1,low\n' + SOUND * 3).encode(), {}, "a cell that starts in line 2 and does not end"),
        (HEADER.replace("\n", "\r").encode() + b"30\r", {}, "bare CR"),
        (gzip.compress((HEADER + SOUND * 99).encode(), mtime=0)[:-20], {}, "whole gzip file; got one that is damaged"),
        ((HEADER + '30,50,70,"' + "x" * 140_000).encode(), {}, "starts in line 2 and is longer than 131072 characters"),
        ((HEADER + "x" * (LONGEST_LINE + 2 * BLOCK)).encode(), {}, "must be lines of text; got one of more than"),
        (b"PAR1 and no more", {}, "must be a whole Parquet file"),
    ],
)  # fmt: skip
def test_an_unreadable_file_is_rejected(
    explainer: FasterCE, tmp_path: Path, content: bytes, how: dict[str, Any], message: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        frames(path, explainer.state_.table, **how)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_undecodable_byte_is_reported_with_its_position(explainer: FasterCE, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    before = HEADER.encode() + SOUND.encode() * (2 * BLOCK // len(SOUND))
    path.write_bytes(before + b"\xff\n")
    with pytest.raises(InputError, match=f"0xff at position {len(before)}"):
        frames(path, explainer.state_.table, chunk_rows=50_000)


@pytest.mark.parametrize("name", ["missing.csv", "missing.parquet"])
def test_a_missing_file_is_reported(explainer: FasterCE, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="no such file"):
        frames(tmp_path / name, explainer.state_.table)


def test_another_encoding_is_read(explainer: FasterCE, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes((HEADER.rstrip() + ",who\n" + SOUND.rstrip() + ",M\u00fcller\n").encode("utf-16"))
    with open_rows(path, table=explainer.state_.table, ids="who", encoding="utf-16") as rows:
        chunks: list[Any] = list(rows)
        assert [chunk.ids.to_pylist() for chunk in chunks] == [["M\u00fcller"]]


def test_ids_and_columns_kept_come_along_as_they_stand(explainer: FasterCE, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("who," + HEADER + "007," + SOUND + "\n" + "008,30\n" + "009," + SOUND)
    with open_rows(path, table=explainer.state_.table, ids="who", keep=["zip", "age"], chunk_rows=2) as rows:
        chunks: list[Any] = list(rows)
    assert [chunk.ids.to_pylist() for chunk in chunks] == [["007", "008"], ["009"]]
    assert chunks[0].passthrough.to_pydict() == {"zip": ["01", None], "age": ["30", "30"]}
    assert [(chunk.number, chunk.first) for chunk in chunks] == [(0, 0), (1, 2)]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("address", [False, True])
def test_rows_between_two_places(explainer: FasterCE, people: pd.DataFrame, tmp_path: Path, kind: str, address: bool) -> None:
    path = tmp_path / f"rows.{kind}"
    people.to_parquet(path, row_group_size=13) if kind == "parquet" else people.to_csv(path, index=False)
    source = path.as_uri() if address else path
    for first, most in ((0, 60), (7, 20), (55, 99), (3, 1), (3, 0), (60, 5)):
        with open_rows(source, table=explainer.state_.table, chunk_rows=12) as rows:
            chunks = list(rows.between(first, most))
            rows.check_unchanged()
        expected = people.iloc[first : first + most].reset_index(drop=True)
        assert sum(len(chunk.frame) for chunk in chunks) == len(expected)
        assert [(chunk.number, chunk.first) for chunk in chunks] == [(k, first + 12 * k) for k in range(len(chunks))]
        if chunks:
            found = pd.concat([chunk.frame for chunk in chunks], ignore_index=True)
            pd.testing.assert_frame_equal(found, expected)
    with open_rows(source, table=explainer.state_.table) as rows:
        assert rows.count() == 60


def test_an_address_that_leads_nowhere_is_reported(explainer: FasterCE, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Cannot read file:.*none\.parquet; expected a whole Parquet file; got no such"):
        open_rows((tmp_path / "none.parquet").as_uri(), table=explainer.state_.table)
    with pytest.raises(InputError, match=r"Cannot open nope://x/rows\.csv; expected an address Arrow can open"):
        open_rows("nope://x/rows.csv", table=explainer.state_.table)
    with pytest.raises(InputError, match="Cannot read file:"):
        open_rows((tmp_path / "none.csv").as_uri(), table=explainer.state_.table)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_source_can_be_taken_up_at_any_chunk(explainer: FasterCE, people: pd.DataFrame, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"rows.{kind}"
    people.to_parquet(path, row_group_size=13) if kind == "parquet" else people.to_csv(path, index=False)
    for start in (0, 1, 3, 5, 9):
        with open_rows(path, table=explainer.state_.table, chunk_rows=12) as rows:
            chunks = list(rows.chunks(start))
        assert [chunk.number for chunk in chunks] == list(range(start, 5))
        if chunks:
            pd.testing.assert_frame_equal(
                pd.concat([chunk.frame for chunk in chunks], ignore_index=True),
                people.iloc[12 * start :].reset_index(drop=True),
            )


def test_parquet_of_other_types_is_read_where_it_means_the_same(
    explainer: FasterCE, people: pd.DataFrame, tmp_path: Path
) -> None:
    table = pa.Table.from_pandas(people, preserve_index=False)
    ages = pa.array([Decimal(int(age)) for age in people["age"]], pa.decimal128(10, 2))
    for name, column in {
        "age": ages,
        "zip": table["zip"].combine_chunks().dictionary_encode(),
        "code": pa.array([float(code) for code in people["code"]]),
        "weight": pa.array([str(weight) for weight in people["weight"]]),
        "own": pa.array([int(own) for own in people["own"]], pa.int8()),
    }.items():
        table = table.set_column(table.column_names.index(name), name, column)
    pq.write_table(table, tmp_path / "rows.parquet")
    pd.testing.assert_frame_equal(frames(tmp_path / "rows.parquet", explainer.state_.table), people)


def test_bad_cells_of_parquet_are_their_rows_problems(explainer: FasterCE, people: pd.DataFrame, tmp_path: Path) -> None:
    ages = pa.array([None, 2**53 + 1, 30, *people["age"][3:]], pa.int64())
    table = pa.Table.from_pandas(people, preserve_index=False).set_column(0, "age", ages)
    pq.write_table(table, tmp_path / "rows.parquet")
    problems = explainer.state_.table.read(frames(tmp_path / "rows.parquet", explainer.state_.table)).problems
    assert set(problems) == {0, 1}
    assert "must not be missing" in problems[0].text()
    assert "'9007199254740993' (not held exactly" in problems[1].text()


def test_dates_in_place_of_numbers_are_refused(explainer: FasterCE, people: pd.DataFrame, tmp_path: Path) -> None:
    people.assign(age=pd.Timestamp("2020-01-01")).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"Column 'age' of .* must hold numbers, text or booleans; got timestamp"):
        frames(tmp_path / "rows.parquet", explainer.state_.table)


def test_a_parquet_file_cut_off_is_reported(explainer: FasterCE, people: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    people.to_parquet(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="whole Parquet file") as error:
        frames(path, explainer.state_.table)
    assert "\n" not in str(error.value)


def test_an_arrow_batch_is_read_like_a_file(explainer: FasterCE, people: pd.DataFrame) -> None:
    batch = pa.RecordBatch.from_pandas(people.assign(more=1), preserve_index=False)
    pd.testing.assert_frame_equal(frame_of(batch, explainer.state_.table), people)
    with pytest.raises(InputError, match="The batch must have the columns the explainer was fitted on; missing 'age'"):
        frame_of(batch.drop_columns(["age"]), explainer.state_.table)


def test_a_column_whose_name_starts_like_another_is_not_mistaken_for_it(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]})
    frame.assign(**{"a.c": "z"})[["a", "a.c", "b"]].to_parquet(tmp_path / "rows.parquet")
    table = Table.like(frame, Schema.infer(frame))
    pd.testing.assert_frame_equal(frames(tmp_path / "rows.parquet", table), frame)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_named_pipe_is_reported(explainer: FasterCE, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.csv")
    with pytest.raises(InputError, match="expected a regular file, or '-'"):
        frames(tmp_path / "rows.csv", explainer.state_.table)


def test_columns_whose_names_are_no_text_are_found_by_how_they_are_written(tmp_path: Path) -> None:
    frame = pd.DataFrame({0: [1.5, 2.5], 1: ["a", "b"]})
    table = Table.like(frame, Schema.infer(frame))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    pd.testing.assert_frame_equal(frames(tmp_path / "rows.csv", table), frame)


def test_spaces_around_names_in_the_header_do_not_matter(explainer: FasterCE, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(HEADER.replace(",", " , ") + SOUND)
    assert len(frames(path, explainer.state_.table)) == 1


@pytest.mark.parametrize(("limit", "sizes"), [(1, [1]), (7, [7]), (10, [7, 3]), (14, [7, 7]), (999, [7] * 8 + [4])])
def test_only_the_first_rows(limit: int, sizes: list[int], explainer: FasterCE, people: pd.DataFrame, tmp_path: Path) -> None:
    for name in ("rows.csv", "rows.parquet"):
        path = tmp_path / name
        people.to_csv(path, index=False) if name.endswith("csv") else people.to_parquet(path)
        with open_rows(path, table=explainer.state_.table, chunk_rows=7, ids="zip", keep=["code"], limit=limit) as rows:
            chunks: list[Any] = list(rows)
        assert [len(chunk.frame) for chunk in chunks] == sizes
        assert [len(chunk.ids) for chunk in chunks] == sizes
        assert [len(chunk.passthrough) for chunk in chunks] == sizes
        assert rows.total in (None, sum(sizes))
        with open_rows(path, table=explainer.state_.table, chunk_rows=7, limit=limit) as rows:
            assert sum(len(chunk.frame) for chunk in rows.chunks(1)) == sum(sizes[1:])


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "2"])
def test_a_limit_is_a_whole_number(limit: Any, explainer: FasterCE, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="limit must be a whole number"):
        open_rows(tmp_path / "rows.csv", table=explainer.state_.table, limit=limit)
