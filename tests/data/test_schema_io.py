"""A schema written for people to edit comes back the same, and what was mistyped is told."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce import Feature, Schema, datasets
from fasterce.constraints import If, OnlyUp, Require
from fasterce.data.schema_io import as_text, describe, load_schema, restore, save_schema
from fasterce.errors import InputError, SchemaError

NAMES = st.text(min_size=1, max_size=12).filter(lambda name: name.strip() == name and name.isprintable())
CATEGORIES = st.lists(st.one_of(NAMES, st.integers(-9, 9)), min_size=1, max_size=5, unique_by=lambda v: (type(v).__name__, v))


def numbers(name: str) -> st.SearchStrategy[Feature]:
    ends = st.tuples(st.integers(-1000, 0), st.integers(1, 1000))
    return st.builds(
        lambda between, integer, declared, direction, missing: Feature(
            name,
            "numeric",
            lower=float(between[0]),
            upper=float(between[1]),
            integer=integer,
            decimals=0 if integer else 2,
            declared=declared,
            direction=direction,
            missing=missing,
        ),
        ends,
        st.booleans(),
        st.booleans(),
        st.sampled_from(["any", "up", "down"]),
        st.sampled_from(["never", "stay", "may_appear"]),
    )


def categories(name: str) -> st.SearchStrategy[Feature]:
    return st.builds(
        lambda values, mutable, ordered: Feature(name, "categorical", tuple(values), ordered, mutable=mutable),
        CATEGORIES,
        st.booleans(),
        st.booleans(),
    )


SCHEMAS = st.lists(NAMES, min_size=1, max_size=4, unique=True).flatmap(
    lambda names: st.tuples(*(st.one_of(numbers(name), categories(name)) for name in names)).map(Schema)
)


@given(schema=SCHEMAS)
def test_any_schema_comes_back_from_its_text(schema: Schema, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("schemas")
    for name in ("one.yaml", "one.json"):
        save_schema(schema, folder / name)
        assert load_schema(folder / name) == schema


@pytest.mark.parametrize("name", ["adult", "german_credit", "lending_club"])
def test_the_bundled_schemas_come_back(name: str, tmp_path: Path) -> None:
    schema = datasets.load(name).schema
    save_schema(schema, tmp_path / "schema.yml")
    assert load_schema(tmp_path / "schema.yml") == schema


def test_constraints_are_in_the_file(tmp_path: Path) -> None:
    people = pd.DataFrame({"age": [25, 40, 61], "housing": ["own", "rent", "own"], "income": [1.5, 2.25, 3.0]})
    constraints = [OnlyUp("age"), Require("income <= age"), If({"housing": "own"}, then={"income": (2, None)})]
    schema = Schema.infer(people, constraints=constraints)
    save_schema(schema, tmp_path / "schema.yaml")
    assert load_schema(tmp_path / "schema.yaml") == schema


def test_the_file_says_what_can_be_edited() -> None:
    people = pd.DataFrame({"age": [25, 40], "no": ["yes", "no"]})
    text = as_text(Schema.infer(people, immutable=["age"]), "Columns of people.csv.\nTwo rows.")
    assert text.startswith("# Columns of people.csv.\n# Two rows.\n")
    assert "observed: [25, 40]" in text
    assert "change: never" in text
    assert "'no'" in text  # YAML would read a bare no as false


def test_an_edited_range_is_a_promise() -> None:
    content = describe(Schema.infer(pd.DataFrame({"age": [25, 40]})))
    del content["columns"]["age"]["observed"]
    content["columns"]["age"]["range"] = [18, None]
    feature = restore(content)["age"]
    assert (feature.lower, feature.upper, feature.declared) == (18.0, float("inf"), True)


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"kind": "number"}, "must have a kind, one of 'numeric', 'categorical'; got 'number'"),
        ({"kind": "numeric", "observed": [1, 2], "chnage": "up"}, "Did you mean 'change'?"),
        ({"kind": "numeric", "observed": [1, 2], "change": "upward"}, "unknown change 'upward'"),
        ({"kind": "numeric", "observed": [1]}, r"observed must be \[low, high\]"),
        ({"kind": "numeric", "observed": ["a", 2]}, r"observed must be \[low, high\]"),
        ({"kind": "numeric"}, r"observed must be \[low, high\]"),
        ({"kind": "numeric", "observed": [2, 1]}, "low <= high"),
        ({"kind": "numeric", "observed": [1, 2], "whole": "yes"}, "whole must be true or false"),
        ({"kind": "numeric", "observed": [1, 2], "decimals": 10**9}, "decimals must be a whole number of places"),
        ({"kind": "numeric", "observed": [1, 2], "decimals": "2"}, "decimals must be a whole number of places"),
        ({"kind": "categorical", "categories": "own, rent"}, "categories must be a list"),
        ({"kind": "categorical", "categories": []}, "at least one category"),
        ({"kind": "categorical", "categories": ["a"], "change": "up"}, "no order"),
        ({"kind": "categorical", "categories": ["a"], "missing": "maybe"}, "must have missing values"),
        ("numeric", "must have entries for its kind"),
    ],
)
def test_what_is_mistyped_is_reported_with_its_column(about: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        restore({"columns": {"age": about}})
    assert "'age'" in str(caught.value)


@pytest.mark.parametrize("content", [[], "age", {"features": []}, {"columns": []}, None])
def test_something_else_is_reported(content: Any) -> None:
    with pytest.raises(SchemaError, match="must have a list of columns"):
        restore(content)


def test_files_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"that ends in .*got 'schema.txt'"):
        load_schema(tmp_path / "schema.txt")
    with pytest.raises(InputError, match="file that can be read"):
        load_schema(tmp_path / "schema.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_text("columns: [", encoding="utf-8")
    with pytest.raises(InputError, match=r"broken.yaml must be YAML"):
        load_schema(broken)
    hostile = tmp_path / "hostile.yaml"
    hostile.write_text("!!python/object/apply:os.system ['touch /tmp/never']", encoding="utf-8")
    with pytest.raises(InputError, match="must be YAML"):
        load_schema(hostile)
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("columns: {age: {kind: x}}", encoding="utf-8")
    with pytest.raises(SchemaError, match=r"wrong.yaml: Column 'age'"):
        load_schema(wrong)


def test_dates_and_passthrough_columns_are_the_same_after_a_file(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "start": pd.to_datetime(["2020-01-01", "2021-06-30"]),
            "left": pd.to_timedelta([1, 90], unit="D"),
            "month": pd.PeriodIndex(["2020-01", "2021-06"], freq="M"),
            "x": [1.5, 2.5],
            "code": ["a", "b"],
        }
    )
    schema = Schema.infer(frame, passthrough=["code"], ranges={"start": ("2019-01-01", "2022-12-31")})
    for name in ("schema.yaml", "schema.json"):
        save_schema(schema, tmp_path / name)
        assert load_schema(tmp_path / name) == schema
    text = (tmp_path / "schema.yaml").read_text()
    assert "range: ['2019-01-01', '2022-12-31']" in text
    assert "passthrough: [code]" in text
    (tmp_path / "schema.yaml").write_text(text.replace("'2022-12-31'", "soon"))
    with pytest.raises(SchemaError):
        load_schema(tmp_path / "schema.yaml")
