"""Lending Club: is a loan being paid back?"""

import pandas as pd

from fasterce.data.schema import Schema
from fasterce.datasets.bundle import Dataset, Ranges, read_raw

TARGET = "loan_status"
GOOD_STATUSES = ["Current", "Fully Paid"]
KNOWN_ONLY_AFTERWARDS = ["balance", "paid_total", "paid_principal", "paid_interest", "paid_late_fees"]
FREE_TEXT = "emp_title"
TIME_SINCE = ["months_since_last_delinq", "months_since_90d_late", "months_since_last_credit_inquiry"]

CATEGORICAL = ["term"]
IMMUTABLE = [
    "state",
    "earliest_credit_line",
    "num_historical_failed_to_pay",
    "total_collection_amount_ever",
    "tax_liens",
    "public_record_bankrupt",
    "loan_purpose",
    "application_type",
    "annual_income_joint",
    "verification_income_joint",
    "debt_to_income_joint",
    "grade",
    "sub_grade",
    "issue_month",
    "initial_listing_status",
]
INCREASING = [
    "emp_length",
    *TIME_SINCE,
    "total_credit_lines",
    "num_total_cc_accounts",
    "account_never_delinq_percent",
]
DECREASING = [
    "delinq_2y",
    "inquiries_last_12m",
    "num_collections_last_12m",
    "current_accounts_delinq",
    "num_accounts_120d_past_due",
    "num_accounts_30d_past_due",
]
RANGES: Ranges = {
    "emp_length": (0, 10),
    "annual_income": (0, 2_500_000),
    "debt_to_income": (0, 500),
    "account_never_delinq_percent": (0, 100),
    "loan_amount": (1_000, 40_000),
    "interest_rate": (5, 31),
    "installment": (30, 1_600),
}

DESCRIPTION = """\
Lending Club, 10,000 loans made in the first quarter of 2018: 48 features, 9,822 'good' and 178 'bad' loans.

Source: the table loans_full_schema of OpenIntro (the R package openintro), from loans published by Lending Club.
Licence: CC BY-SA; what is derived from the table stays under it. See data/README.md.

What was done: `raw` is the whole table, 10,000 x 55. A loan is 'good' when its loan_status is Current or Fully Paid and
'bad' when it is In Grace Period, Late or Charged Off. Only 1.78 % are bad: weight the classes. These are loans made,
not applications. X leaves out the target, the free text emp_title, and what is known only after the loan was made:
balance, paid_total, paid_principal, paid_interest, paid_late_fees. Whole-number columns are int64.

What was filled in (X has no missing values):
- months_since_last_delinq (5,658), months_since_90d_late (7,715) and months_since_last_credit_inquiry (1,271): missing
  means never, filled with the longest time on record in the column (118, 128 and 24 months).
- debt_to_income (24): joint applicants with next to no income of their own, filled with their debt_to_income_joint.
- annual_income_joint and debt_to_income_joint (8,505 individual applications each): annual_income and debt_to_income.
- verification_income_joint: 'Not joint' for the 8,505 individual applications, 'Unknown' for 40 joint ones without it.
- emp_length (817): no employment was given, filled with 0 years.
- num_accounts_120d_past_due (318): filled with 0, the only value there is, so the column is constant.

What may change, by default:
- Frozen, the past: earliest_credit_line, num_historical_failed_to_pay, total_collection_amount_ever, tax_liens,
  public_record_bankrupt.
- Frozen, not the applicant's to set: issue_month, initial_listing_status, grade and sub_grade (the lender's verdict).
- Frozen, another application rather than a better one: loan_purpose, application_type and the three *_joint columns
  (they describe a second person). state is frozen too: nobody should be told to move.
- Only up, with time or new accounts: emp_length, months_since_*, total_credit_lines, num_total_cc_accounts,
  account_never_delinq_percent.
- Only down, by waiting or paying: delinq_2y, inquiries_last_12m, num_collections_last_12m, current_accounts_delinq,
  num_accounts_30d_past_due, num_accounts_120d_past_due.
- Everything else is free. interest_rate is, because another offer can be sought, though the grade largely sets it;
  installment follows from loan_amount, term and interest_rate, and the schema does not tie them together.
- term is categorical: 36 or 60 months, nothing between.
"""


def load() -> Dataset:
    raw = read_raw("lending_club")
    X = whole_numbers_as_int(fill_missing(raw.drop(columns=[TARGET, FREE_TEXT, *KNOWN_ONLY_AFTERWARDS])))
    y = raw[TARGET].isin(GOOD_STATUSES).map({True: "good", False: "bad"})
    schema = Schema.infer(
        X,
        categorical=CATEGORICAL,
        immutable=IMMUTABLE,
        increasing=INCREASING,
        decreasing=DECREASING,
        ranges=RANGES,
    )
    return Dataset("lending_club", X, y, schema, DESCRIPTION, raw, wanted="good")


def fill_missing(X: pd.DataFrame) -> pd.DataFrame:
    individual = X["application_type"] == "individual"
    debt_to_income = X["debt_to_income"].fillna(X["debt_to_income_joint"])
    verification = X["verification_income_joint"].mask(individual, "Not joint").fillna("Unknown")
    return X.assign(
        **{column: X[column].fillna(X[column].max()) for column in TIME_SINCE},
        debt_to_income=debt_to_income,
        annual_income_joint=X["annual_income_joint"].fillna(X["annual_income"]),
        debt_to_income_joint=X["debt_to_income_joint"].fillna(debt_to_income),
        verification_income_joint=verification,
        emp_length=X["emp_length"].fillna(0),
        num_accounts_120d_past_due=X["num_accounts_120d_past_due"].fillna(0),
    )


def whole_numbers_as_int(X: pd.DataFrame) -> pd.DataFrame:
    whole = [column for column in X.select_dtypes("float64") if (X[column] % 1 == 0).all()]
    return X.astype(dict.fromkeys(whole, "int64"))
