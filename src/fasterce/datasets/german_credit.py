"""German Credit (Statlog): is a person a good or a bad credit risk?"""

import pandas as pd

from fasterce.data.schema import Schema
from fasterce.datasets.bundle import Dataset, Ranges, read_raw

TARGET = "credit_risk"
RAW_COLUMNS = [
    "checking_status",
    "duration",
    "credit_history",
    "purpose",
    "credit_amount",
    "savings",
    "employment_since",
    "installment_rate",
    "personal_status_sex",
    "other_debtors",
    "residence_since",
    "property",
    "age",
    "other_installment_plans",
    "housing",
    "existing_credits",
    "job",
    "dependents",
    "telephone",
    "foreign_worker",
    TARGET,
]

CODES = {
    "checking_status": {
        "below 0 DM": "A11",
        "0 to 200 DM": "A12",
        "200 DM or more": "A13",
        "no account": "A14",
    },
    "credit_history": {
        "none or all paid back": "A30",
        "all paid back at this bank": "A31",
        "paid back duly so far": "A32",
        "delays in the past": "A33",
        "critical or credits elsewhere": "A34",
    },
    "purpose": {
        "new car": "A40",
        "used car": "A41",
        "furniture": "A42",
        "radio or TV": "A43",
        "appliances": "A44",
        "repairs": "A45",
        "education": "A46",
        "vacation": "A47",
        "retraining": "A48",
        "business": "A49",
        "other": "A410",
    },
    "savings": {
        "below 100 DM": "A61",
        "100 to 500 DM": "A62",
        "500 to 1000 DM": "A63",
        "1000 DM or more": "A64",
        "unknown or none": "A65",
    },
    "employment_since": {
        "unemployed": "A71",
        "below 1 year": "A72",
        "1 to 4 years": "A73",
        "4 to 7 years": "A74",
        "7 years or more": "A75",
    },
    "personal_status_sex": {
        "male, divorced or separated": "A91",
        "female, not single": "A92",
        "male, single": "A93",
        "male, married or widowed": "A94",
        "female, single": "A95",
    },
    "other_debtors": {
        "none": "A101",
        "co-applicant": "A102",
        "guarantor": "A103",
    },
    "property": {
        "real estate": "A121",
        "savings plan or life insurance": "A122",
        "car or other": "A123",
        "unknown or none": "A124",
    },
    "other_installment_plans": {
        "bank": "A141",
        "stores": "A142",
        "none": "A143",
    },
    "housing": {
        "rent": "A151",
        "own": "A152",
        "for free": "A153",
    },
    "job": {
        "unskilled, not resident": "A171",
        "unskilled, resident": "A172",
        "skilled": "A173",
        "highly skilled or management": "A174",
    },
    "telephone": {
        "no": "A191",
        "yes": "A192",
    },
    "foreign_worker": {
        "yes": "A201",
        "no": "A202",
    },
}
RISKS = {1: "good", 2: "bad"}

IMMUTABLE = ["purpose", "personal_status_sex", "dependents", "foreign_worker"]
INCREASING = ["age", "residence_since"]
RANGES: Ranges = {
    "duration": (1, 72),
    "credit_amount": (250, 20_000),
    "installment_rate": (1, 4),
    "residence_since": (1, 4),
    "age": (18, 100),
    "existing_credits": (1, 4),
    "dependents": (1, 2),
}

DESCRIPTION = """\
German Credit (Statlog), 1,000 credits of a German bank in the 1970s: 20 features, 700 'good' and 300 'bad' risks.

Source: Hofmann, H. (1994). Statlog (German Credit Data). UCI Machine Learning Repository. doi:10.24432/C5NC77.
Licence: CC BY 4.0.

What was done: german.data with columns named in snake_case. X has short readable categories in place of the published
codes; `codes` maps them back ({column: {readable: code}}, with the two codes that never occur, A47 and A95), and
load("german_credit", codes=True) keeps the codes. `raw` is as published: codes, and risk 1 (good) or 2 (bad).
duration is in months, credit_amount in Deutsche Mark; installment_rate is a share of the disposable income and,
like residence_since, was published in steps from 1 to 4.

Beware: personal_status_sex mixes sex and marital status in one attribute, so neither can be studied or held alone.
The names follow the code book published with the data; its accuracy is in doubt for several attributes, foreign_worker
and personal_status_sex among them (Groemping, U. (2019). South German Credit Data: Correcting a Widely Used Data Set).

What may change, by default: age and residence_since only go up. Frozen are personal_status_sex, foreign_worker,
dependents, and purpose (another purpose is another application). credit_history may change, arguably: the past
does not, but debts can be paid back, and the FASTER-CE paper changes it too.
"""


def load(codes: bool = False) -> Dataset:
    raw = read_raw("german_credit")
    features = raw.drop(columns=TARGET)
    X = features if codes else with_readable_categories(features)
    y = raw[TARGET].map(RISKS)
    schema = Schema.infer(X, immutable=IMMUTABLE, increasing=INCREASING, ranges=RANGES)
    own_codes = {column: dict(mapping) for column, mapping in CODES.items()}
    return Dataset("german_credit", X, y, schema, DESCRIPTION, raw, wanted="good", codes=own_codes)


def with_readable_categories(X: pd.DataFrame) -> pd.DataFrame:
    return X.assign(
        **{column: X[column].map({code: readable for readable, code in mapping.items()}) for column, mapping in CODES.items()}
    )
