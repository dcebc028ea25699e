"""A whole file as a DataFrame, for `inspect` and `fit`."""

import io
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fasterce import FasterCE, Schema
from fasterce.errors import InputError
from fasterce.io import DATE_FORMATS, read_table


def written(folder: Path, text: str) -> Path:
    path = folder / "data.csv"
    path.write_text(text)
    return path


def test_columns_are_what_all_their_cells_are(tmp_path: Path) -> None:
    lines = ["whole;number;gappy;text;truth;zip;big;maybe", "1;1.5;;a;True;007;12345678901234567890;true"]
    found = read_table(written(tmp_path, "\n".join([*lines, "-2;1e3;3;NA;false;12;2;NA", ""])))
    assert found["whole"].tolist() == [1, -2]
    assert found["whole"].dtype == np.int64
    assert found["number"].tolist() == [1.5, 1000.0]
    assert np.isnan(found["gappy"][0])
    assert found["gappy"].dtype == np.float64
    assert found["text"][0] == "a"
    assert pd.isna(found["text"][1])
    assert found["truth"].dtype == bool
    assert found["truth"].tolist() == [True, False]
    assert found["zip"].tolist() == ["007", "12"]
    assert found["big"].tolist() == ["12345678901234567890", "2"]
    assert found["maybe"][0] is True
    assert pd.isna(found["maybe"][1])


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_training_data_comes_back_as_pandas_would_read_it(people: pd.DataFrame, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"data.{kind}"
    rows = people.drop(columns="zip")
    rows.to_parquet(path) if kind == "parquet" else rows.to_csv(path, index=False)
    again = pd.read_parquet(path) if kind == "parquet" else pd.read_csv(path)
    pd.testing.assert_frame_equal(read_table(path), again)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_schema_says_what_the_columns_are(people: pd.DataFrame, explainer: FasterCE, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"data.{kind}"
    rows = people.assign(label="yes")
    rows.to_parquet(path) if kind == "parquet" else rows.to_csv(path, index=False)
    pd.testing.assert_frame_equal(read_table(path, schema=explainer.state_.table), people)
    found = read_table(path, schema=Schema.infer(people, categorical=["code"]))
    assert list(found.columns) == list(people.columns)
    assert found["zip"].tolist() == people["zip"].tolist()
    assert found["age"].dtype == np.int64
    assert Schema.infer(found, categorical=["code"])["code"].categories == (1, 2, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n", "must have 2 cells in every line; got line 3 with 1 cells where the header has 2"),
        ("a,a\n1,2\n", "must name every column once; got 'a' more than once"),
        ("", "got an empty file"),
        ('a,b\n"1,2\n', "a cell that starts in line 2 and does not end"),
    ],
)
def test_an_unreadable_table_is_rejected(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read_table(written(tmp_path, text))
    assert message in str(error.value)


def test_a_cell_that_contradicts_the_schema_is_reported_with_its_row(
    people: pd.DataFrame, explainer: FasterCE, tmp_path: Path
) -> None:
    rows = people.astype({"age": object})
    rows.loc[7, "age"] = "abc"
    rows.to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(InputError, match=r"data.csv, row 8: Column 'age' must be a finite number; got 'abc'\."):
        read_table(tmp_path / "data.csv", schema=explainer.state_.table)


def test_decimals_are_numbers(tmp_path: Path) -> None:
    pd.DataFrame({"x": [Decimal("1.25"), None]}).to_parquet(tmp_path / "data.parquet")
    found = read_table(tmp_path / "data.parquet")
    assert found["x"].dtype == np.float64
    assert found["x"][0] == 1.25


def test_standard_input_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfa|b\r\n1|x\r\n2|y\r\n")))
    assert read_table("-").to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}


def test_a_header_alone_is_a_table_without_rows(tmp_path: Path) -> None:
    found = read_table(written(tmp_path, "a,b\n"))
    assert found.shape == (0, 2)


def test_dates_of_a_german_file_are_read_by_their_format(tmp_path: Path) -> None:
    path = written(tmp_path, "opened;amount\n03.02.2020;1,5\n13.02.2020;2,5\n")
    found = read_table(path, dates=["opened"], decimal=",")
    assert found["opened"].tolist() == [pd.Timestamp("2020-02-03"), pd.Timestamp("2020-02-13")]
    assert found.attrs[DATE_FORMATS] == {"opened": "%d.%m.%Y"}
    schema = Schema.infer(found).declare({"opened": {"format": "%d.%m.%Y"}})
    assert read_table(path, decimal=",", schema=schema)["opened"].tolist() == found["opened"].tolist()
    with pytest.raises(InputError, match="must hold dates of one format"):
        read_table(path, dates=["amount"])
