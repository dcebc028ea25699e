"""The bundled datasets, as a user meets them."""

import sys

import numpy as np
import pandas as pd
import pytest

from fasterce.constraints import Near
from fasterce.data.schema import Schema
from fasterce.datasets import Dataset, load, names

SHAPES = {"adult": (48_842, 14), "german_credit": (1_000, 20), "lending_club": (10_000, 48)}
RAW_SHAPES = {"adult": (48_842, 15), "german_credit": (1_000, 21), "lending_club": (10_000, 55)}


@pytest.fixture(scope="module", params=SHAPES)
def dataset(request: pytest.FixtureRequest) -> Dataset:
    return load(request.param)


@pytest.fixture(scope="module")
def adult() -> Dataset:
    return load("adult")


@pytest.fixture(scope="module")
def german() -> Dataset:
    return load("german_credit")


@pytest.fixture(scope="module")
def lending() -> Dataset:
    return load("lending_club")


def frozen(schema: Schema) -> set[object]:
    return {feature.name for feature in schema.features if not feature.mutable}


def going(schema: Schema, direction: str) -> set[object]:
    return {feature.name for feature in schema.features if feature.direction == direction}


def test_names_are_those_load_knows() -> None:
    assert set(names()) == set(SHAPES)


def test_shapes(dataset: Dataset) -> None:
    assert dataset.X.shape == SHAPES[dataset.name]
    assert dataset.raw.shape == RAW_SHAPES[dataset.name]
    assert dataset.y.index.equals(dataset.X.index)
    assert list(dataset.X.index) == list(range(len(dataset.X)))


def test_nothing_is_missing(dataset: Dataset) -> None:
    assert not dataset.X.isna().any().any()
    assert not dataset.y.isna().any()
    assert not (dataset.X == "?").any().any()


def test_columns_are_plain_numbers_or_plain_text(dataset: Dataset) -> None:
    text = pd.Series(["text"]).dtype
    assert {str(dtype) for dtype in dataset.X.dtypes} <= {"int64", "float64", str(text)}
    assert dataset.y.dtype == text
    assert all(isinstance(dtype, np.dtype) for dtype in dataset.X.select_dtypes("number").dtypes)


def test_column_names_are_snake_case(dataset: Dataset) -> None:
    assert all(name.isidentifier() and name == name.lower() for name in dataset.X.columns)


def test_wanted_label_occurs_and_there_are_two_labels(dataset: Dataset) -> None:
    assert dataset.wanted in set(dataset.y)
    assert dataset.y.nunique() == 2


def test_schema_covers_every_row(dataset: Dataset) -> None:
    assert list(dataset.schema.names) == list(dataset.X.columns)
    for feature in dataset.schema.features:
        column = dataset.X[feature.name]
        if feature.numeric:
            assert column.between(feature.lower, feature.upper).all(), feature.name
        else:
            assert set(column) <= set(feature.categories), feature.name


def test_only_numeric_columns_have_a_direction(dataset: Dataset) -> None:
    assert all(feature.numeric for feature in dataset.schema.features if feature.direction != "any")


def test_a_frozen_column_has_no_direction(dataset: Dataset) -> None:
    assert all(feature.mutable for feature in dataset.schema.features if feature.direction != "any")


def test_description_names_source_and_licence(dataset: Dataset) -> None:
    assert "Source:" in dataset.description
    assert "CC BY" in dataset.description


def test_repr_is_one_short_line(dataset: Dataset) -> None:
    assert dataset.name in repr(dataset)
    assert "\n" not in repr(dataset)
    assert len(repr(dataset)) < 120


def test_loading_twice_gives_equal_and_independent_tables(dataset: Dataset) -> None:
    spoilt = load(dataset.name)
    column, label = spoilt.X.columns[0], spoilt.y.iloc[0]
    spoilt.X[column] = spoilt.X[column].iloc[-1]
    spoilt.y.iloc[:] = label
    del spoilt.raw[spoilt.raw.columns[0]]
    fresh = load(dataset.name)
    pd.testing.assert_frame_equal(fresh.X, dataset.X)
    pd.testing.assert_series_equal(fresh.y, dataset.y)
    pd.testing.assert_frame_equal(fresh.raw, dataset.raw)
    assert fresh.schema == dataset.schema


def test_changing_x_leaves_raw_alone(dataset: Dataset) -> None:
    changed = load(dataset.name)
    for column in changed.X.select_dtypes("number"):
        changed.X.loc[0, column] = 1
    changed.y.iloc[0] = "changed"
    pd.testing.assert_frame_equal(changed.raw, dataset.raw)


def test_a_dataset_cannot_be_reassigned(dataset: Dataset) -> None:
    with pytest.raises(AttributeError):
        dataset.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(("alias", "name"), [("german", "german_credit"), ("lending", "lending_club")])
def test_short_names(alias: str, name: str) -> None:
    assert load(alias).name == name


def test_unknown_name_lists_the_known_and_suggests_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"'adult', 'german_credit', 'lending_club'.*Did you mean 'adult'"):
        load("adlut")


def test_codes_are_refused_where_there_are_none() -> None:
    with pytest.raises(ValueError, match="german_credit"):
        load("adult", codes=True)


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "fasterce\[data\]"'):
        load("adult")


def test_adult_facts(adult: Dataset) -> None:
    first = adult.X.iloc[0]
    assert (first["age"], first["workclass"], first["education"], first["capital_gain"]) == (
        39,
        "State-gov",
        "Bachelors",
        2174,
    )
    assert adult.X.iloc[32_561]["age"] == 25, "the first row of adult.test"
    assert set(adult.y) == {"<=50K", ">50K"}
    assert (adult.y == ">50K").mean() == pytest.approx(0.2393, abs=5e-5)
    assert adult.X["age"].mean() == pytest.approx(38.64, abs=5e-3)
    assert (adult.X["sex"] == "Female").sum() == 16_192
    assert (adult.X["native_country"] == "Unknown").sum() == 857
    assert (adult.raw["native_country"] == "?").sum() == 857
    assert not adult.codes


def test_adult_schema_knows_what_a_person_cannot_change(adult: Dataset) -> None:
    assert {"race", "sex", "native_country", "fnlwgt"} <= frozen(adult.schema)
    assert {"occupation", "education", "hours_per_week", "capital_gain"}.isdisjoint(frozen(adult.schema))
    assert going(adult.schema, "up") == {"age", "education_num"}
    hours = adult.schema["hours_per_week"]
    assert (hours.lower, hours.upper) == (1, 99)


def test_german_facts(german: Dataset) -> None:
    first = german.X.iloc[0]
    assert (first["checking_status"], first["duration"], first["credit_amount"], first["age"]) == (
        "below 0 DM",
        6,
        1169,
        67,
    )
    assert german.y.value_counts().to_dict() == {"good": 700, "bad": 300}
    assert german.y.iloc[:2].tolist() == ["good", "bad"]
    assert german.X["credit_amount"].sum() == 3_271_258
    assert (german.X["foreign_worker"] == "yes").sum() == 963


def test_german_schema_knows_what_a_person_cannot_change(german: Dataset) -> None:
    assert {"personal_status_sex", "foreign_worker", "credit_history", "employment_since"} <= frozen(german.schema)
    assert {"checking_status", "duration", "credit_amount"}.isdisjoint(frozen(german.schema))
    assert "age" in going(german.schema, "up")
    assert Near("age", up=2) in german.schema.constraints
    assert german.schema["credit_amount"].preferred == "lower"
    assert german.schema["job"].categories[0] == "unskilled, not resident"
    assert german.schema["job"].preferred == "higher"


def test_german_codes_round_trip(german: Dataset) -> None:
    coded = load("german_credit", codes=True)
    back = german.X.assign(**{column: german.X[column].map(german.codes[column]) for column in german.codes})
    pd.testing.assert_frame_equal(back, coded.X)
    pd.testing.assert_frame_equal(coded.X, coded.raw[list(coded.X.columns)])
    assert coded.schema["checking_status"].categories == ("A11", "A12", "A13", "A14")
    assert set(german.codes) == set(german.X.select_dtypes(exclude="number"))
    assert all(len(set(mapping.values())) == len(mapping) for mapping in german.codes.values())


def test_changing_the_codes_leaves_the_next_load_alone(german: Dataset) -> None:
    load("german_credit").codes["housing"].clear()  # type: ignore[attr-defined]
    assert load("german_credit").codes == german.codes


def test_lending_club_facts(lending: Dataset) -> None:
    first = lending.X.iloc[0]
    assert (first["state"], first["annual_income"], first["interest_rate"], first["sub_grade"]) == (
        "NJ",
        90_000,
        14.07,
        "C3",
    )
    assert lending.y.value_counts().to_dict() == {"good": 9_822, "bad": 178}
    assert lending.X["loan_amount"].mean() == pytest.approx(16_361.92, abs=5e-3)


def test_lending_club_leaves_out_what_gives_the_outcome_away(lending: Dataset) -> None:
    left_out = {name for name in lending.raw.columns if name not in lending.X.columns}
    afterwards = {"balance", "paid_total", "paid_principal", "paid_interest", "paid_late_fees"}
    assert left_out == afterwards | {"emp_title", "loan_status"}


def test_lending_club_never_is_as_long_ago_as_the_longest_on_record(lending: Dataset) -> None:
    never = lending.raw["months_since_90d_late"].isna()
    assert never.sum() == 7_715
    assert set(lending.X.loc[never, "months_since_90d_late"]) == {128}
    assert lending.X["months_since_90d_late"].dtype == "int64"


def test_lending_club_individual_applications_have_no_second_applicant(lending: Dataset) -> None:
    alone = lending.X[lending.X["application_type"] == "individual"]
    assert len(alone) == 8_505
    assert (alone["annual_income_joint"] == alone["annual_income"]).all()
    assert (alone["debt_to_income_joint"] == alone["debt_to_income"]).all()
    assert set(alone["verification_income_joint"]) == {"Not joint"}
    joint = lending.X.drop(index=alone.index)
    assert (joint["verification_income_joint"] == "Unknown").sum() == 40
    assert "Not joint" not in set(joint["verification_income_joint"])


def test_lending_club_keeps_every_value_that_was_there(lending: Dataset) -> None:
    for column in lending.X.columns:
        published = lending.raw[column].dropna()
        assert (lending.X.loc[published.index, column] == published).all(), column


def test_lending_club_schema_knows_what_a_person_cannot_change(lending: Dataset) -> None:
    assert {"issue_month", "earliest_credit_line", "public_record_bankrupt", "grade"} <= frozen(lending.schema)
    assert {"loan_amount", "term", "annual_income", "debt_to_income"}.isdisjoint(frozen(lending.schema))
    assert "emp_length" in going(lending.schema, "up")
    assert "delinq_2y" in going(lending.schema, "down")
    assert lending.schema["term"].categories == (36, 60)
