"""UCI Adult: does a person earn more than 50,000 dollars a year?"""

import pandas as pd

from fasterce.data.schema import Schema
from fasterce.datasets.bundle import Dataset, Ranges, read_raw

TARGET = "income"
RAW_COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    TARGET,
]

IMMUTABLE = ["fnlwgt", "marital_status", "relationship", "race", "sex", "native_country"]
INCREASING = ["age", "education_num"]
RANGES: Ranges = {
    "age": (17, 90),
    "education_num": (1, 16),
    "capital_gain": (0, 99_999),
    "capital_loss": (0, 5_000),
    "hours_per_week": (1, 99),
}

DESCRIPTION = """\
UCI Adult ("Census Income"), 48,842 people from the 1994 US census: 14 features, income '<=50K' or '>50K' (23.93 %).

Source: Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository. doi:10.24432/C5XW20.
Licence: CC BY 4.0.

What was done: adult.data (the first 32,561 rows) and adult.test (the other 16,281) joined in that order; blanks and the
test labels' trailing dots removed; columns renamed to snake_case. In X the '?' of workclass, occupation and
native_country is a category of its own, 'Unknown'; `raw` keeps the '?'. No row was dropped, duplicates included.

What may change, by default: age and education_num only go up. Frozen are race, sex, native_country and fnlwgt (a census
weight that says nothing about the person). marital_status and relationship are frozen too: people do marry and part,
but that is no advice on income, and 'Husband' or 'Wife' gives the sex away.
education and education_num say the same thing twice (16 levels, one to one); the schema does not tie them together.
"""


def load() -> Dataset:
    raw = read_raw("adult")
    X = name_the_unknown(raw.drop(columns=TARGET))
    schema = Schema.infer(X, immutable=IMMUTABLE, increasing=INCREASING, ranges=RANGES)
    return Dataset("adult", X, raw[TARGET].copy(), schema, DESCRIPTION, raw, wanted=">50K")


def name_the_unknown(X: pd.DataFrame) -> pd.DataFrame:
    text = X.select_dtypes(exclude="number").columns
    return X.assign(**{column: X[column].replace("?", "Unknown") for column in text})
