"""What a person can actually do, on three datasets: `make show-constraints`.

The models of `make show`, explained with constraints a case worker would set, and with the defaults of `FasterCE`.
Counterfactuals are checked by code that shares nothing with the library (`tests/constraints/checker.py`), and with fresh
noise on all numbers. Times are ratios to the same call without constraints, measured in turn. Prints Markdown.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from show import machine, markdown, refused, trained

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.constraints.checker import violations

from fasterce import FasterCE, metrics
from fasterce.cli.adult_demo import EDUCATION
from fasterce.constraints import (
    AtMost,
    Constraint,
    Frozen,
    If,
    Near,
    OnlyDown,
    OnlyUp,
    Order,
    Range,
    Require,
    Step,
    Together,
)

REPEATS = 3
DRAWS = 50
CONSTRAINTS: dict[str, list[Constraint]] = {
    "adult": [
        Frozen("race", "sex", "native_country", "marital_status", "relationship", "fnlwgt"),
        OnlyUp("age"),
        Near("age", up=5),
        Range("hours_per_week", None, 60),
        Order("education", EDUCATION),
        OnlyUp("education"),
        Together("education", "education_num", slope=1),
        Step("capital_gain", 100),
    ],
    "german_credit": [
        Frozen("personal_status_sex", "foreign_worker", "purpose", "dependents"),
        OnlyUp("age", "residence_since"),
        Near("age", up=3),
        Near("credit_amount", percent=50),
        Step("duration", 3),
        Range("duration", 6, 60),
        Require("credit_amount / duration <= 800"),
        If({"housing": "for free"}, then={"property": ["unknown or none", "real estate"]}),
        AtMost(4),
    ],
    "lending_club": [
        Frozen("state", "grade", "sub_grade", "issue_month", "loan_purpose", "application_type"),
        OnlyDown("delinq_2y", "inquiries_last_12m"),
        Near("annual_income", percent=25),
        Step("loan_amount", 500),
        Require("installment * 12 <= 0.4 * annual_income"),
        Require("num_open_cc_accounts <= num_total_cc_accounts"),
        Require("total_credit_utilized <= total_credit_limit"),
        AtMost(5),
    ],
}
CALLS: dict[str, dict[str, Any]] = {
    "closest": {},
    "sparse": {"method": "sparse"},
    "realistic": {"method": "realistic"},
    "closest, n = 5": {"n": 5},
    "closest, robust = 0.95": {"robust": 0.95},
    "closest, chance 0.7 – 1": {"target_score": (0.7, 1.0)},
}
FREE = {"no constraints": {}, "no constraints, n = 5": {"n": 5}, "no constraints, robust = 0.95": {"robust": 0.95}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=list(CONSTRAINTS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    lines = pd.DataFrame([line for name in arguments.datasets for seed in arguments.seeds for line in measure(name, seed)])
    print(markdown(lines, ("data", "call"), COLUMNS))
    totals = f"{int(lines['counterfactuals'].sum()):,} counterfactuals, {int(lines['violations'].sum())} violations"
    shares = ", ".join(f"{name} {lines[name].min():.0f}" for name in ("valid %", "pairwise different %", "diagnosed %"))
    print(f"\nSeeds {arguments.seeds}; {totals}; at least: {shares}; {machine()}")


def measure(name: str, seed: int) -> Iterator[dict[str, Any]]:
    data, X_train, X_test, model = trained(name, seed)
    rows = refused(model, data.wanted, X_test, X_train)
    explainer = FasterCE(model, data.schema.unconstrained(), random_state=seed, progress=False).fit(X_train)
    scale = metrics.Scale.of(X_train)
    calls = [(label, [], options) for label, options in FREE.items()]
    calls += [(label, CONSTRAINTS[name], options) for label, options in CALLS.items()]
    for label, constraints, options in calls:
        result, ratio = timed(explainer, rows, {"constraints": constraints, **options})
        found = (result.status == "found").to_numpy()
        after = result.counterfactuals[found].astype(rows.dtypes.to_dict())
        infeasible = [result.infeasible[k] for k in np.flatnonzero(~found) if k in result.infeasible]
        yield {
            "data": name,
            "call": label,
            "rows": len(rows),
            "found %": 100 * found.mean(),
            "diagnosed %": 100 * np.mean([bool(one.unlocked) for one in infeasible]) if infeasible else np.nan,
            "counterfactuals": len(result.arrays),
            "violations": broken(result, constraints, explainer),
            "valid %": 100 * np.mean(model.predict(rows[found]) != model.predict(after)),
            "options": len(result.arrays) / max(found.sum(), 1),
            "pairwise different %": 100 * np.mean(all_different(result)),
            "features": result.arrays.changed[result.arrays.rank == 0].sum(axis=1).mean(),
            "distance": result.arrays.distance[result.arrays.rank == 0].mean(),
            "proximity": metrics.proximity(scale, rows[found], after).mean(),
            "holds under noise %": 100 * share_held(model, X_train, after).mean(),
            "calls": result.usage.calls,
            "rows each": result.usage.rows / len(rows),
            "times as long": ratio,
        }


def timed(explainer: FasterCE, rows: pd.DataFrame, options: dict[str, Any]) -> tuple[Any, float]:
    """The result, and how many times as long it took as the same rows without constraints, one after the other."""
    explainer.explain(rows.iloc[:5], **options)
    plain, own = [], []
    for _ in range(REPEATS):
        plain.append(explainer.explain(rows).seconds)
        result = explainer.explain(rows, **options)
        own.append(result.seconds)
    return result, median(own) / median(plain)


def broken(result: Any, constraints: list[Constraint], explainer: FasterCE) -> int:
    """How many counterfactuals break a constraint, by the independent checker."""
    names = list(explainer.schema_.names)
    lines = result.to_frame()
    before = result.rows.to_dict("index")
    answers = lines[names].to_dict("records")
    return sum(
        bool(violations(before[query], answer, constraints, explainer.schema_))
        for query, answer in zip(lines["query"], answers, strict=True)
    )


def all_different(result: Any) -> list[bool]:
    """For every row with counterfactuals whether each changes another set of features."""
    answers = result.arrays
    sets: dict[int, list[bytes]] = {}
    for query, changed in zip(answers.query, answers.changed, strict=True):
        sets.setdefault(int(query), []).append(changed.tobytes())
    return [len(set(some)) == len(some) for some in sets.values()]


def share_held(model: Any, X_train: pd.DataFrame, answers: pd.DataFrame) -> np.ndarray:
    """Return the share of draws of noise on all numbers (5 % of their deviation) that do not change the prediction."""
    rng = np.random.default_rng(12345)
    predicted, held = model.predict(answers), np.zeros(len(answers))
    numbers = answers.select_dtypes("number").columns
    for _ in range(DRAWS):
        other = answers.copy()
        for name in numbers:
            noisy = answers[name] + rng.normal(0, 0.05 * X_train[name].std(), len(answers))
            low, high = min(X_train[name].min(), answers[name].min()), max(X_train[name].max(), answers[name].max())
            whole = answers[name].dtype.kind in "iu"
            other[name] = (noisy.round() if whole else noisy).clip(low, high).astype(answers[name].dtype)
        held += model.predict(other) == predicted
    return held / DRAWS


COLUMNS = {
    "rows": "{:.0f}",
    "found %": "{:.1f}",
    "options": "{:.2f}",
    "features": "{:.2f}",
    "distance": "{:.3f}",
    "proximity": "{:.3f}",
    "holds under noise %": "{:.1f}",
    "calls": "{:.0f}",
    "rows each": "{:.0f}",
    "times as long": "{:.1f}",
}


if __name__ == "__main__":
    main()
