"""Quality against `max_fit_rows`: the table of docs/performance.md, printed as Markdown by `make show-fit-budget`.

Two black boxes per dataset, without a compiled model: a pipeline of scaler, one-hot and MLP with its probabilities, and a
random forest of which only labels are used. Rows with the unwanted outcome are explained after `fit` with the full plan and
with each reduced plan. `farther` compares the mean distance of the counterfactuals with that of the full plan, over rows for
which both found one.
"""

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from fasterce import FasterCE
from fasterce.cli.adult_demo import balanced, preprocessing
from fasterce.config import FitConfig
from show import machine, markdown, refused, trained

METHODS = ("closest", "sparse", "realistic")
COLUMNS = {
    "model rows of fit": "{:,.0f}",
    "surrogate agrees %": "{:.1f}",
    "found %": "{:.1f}",
    **{f"{method} farther %": "{:+.1f}" for method in METHODS},
    "model rows per explanation": "{:.0f}",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["german_credit", "adult", "lending_club"])
    parser.add_argument("--rows", nargs="+", type=int, default=list(FitConfig().reduced_plans), help="values of max_fit_rows")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    lines = pd.DataFrame([line for name in arguments.datasets for line in measure(name, arguments.rows, arguments.seed)])
    print(markdown(lines, ("data and model", "max_fit_rows"), COLUMNS))
    print(f"\n{summary(lines)}")
    means = lines.groupby("max_fit_rows", sort=False)["closest farther %"].mean()
    print("\nClosest, mean over data and models:", ", ".join(f"{limit} {mean:+.1f} %" for limit, mean in means.items()))
    print(f"\nseed {arguments.seed}; {machine()}")


def summary(lines: pd.DataFrame) -> str:
    """Return the distances alone, one line per model."""
    limits = list(lines["max_fit_rows"].unique())[1:]
    rows = [["data and model", "full plan", *(f"{method}, {limit}" for method in METHODS for limit in limits)]]
    rows.append(["---"] * len(rows[0]))
    for name, group in lines.groupby("data and model", sort=False):
        by_limit = group.set_index("max_fit_rows")
        farther = [by_limit.loc[limit, f"{method} farther %"] for method in METHODS for limit in limits]
        full = by_limit["model rows of fit"].iloc[0]
        rows.append([str(name), f"{full:,.0f} rows", *(f"{value:+.0f} %" for value in farther)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def measure(name: str, limits: list[int], seed: int) -> Iterator[dict[str, Any]]:
    data, X_train, X_test, network = trained(name, seed)
    forest = make_pipeline(preprocessing(), RandomForestClassifier(100, min_samples_leaf=3, random_state=seed))
    forest.fit(*balanced(X_train, data.y.loc[X_train.index]))
    for kind, model, scores in (("MLP, scores", network, "auto"), ("random forest, labels", forest, "never")):
        rows = refused(model, data.wanted, X_test, X_train)
        full: dict[str, pd.Series] = {}
        for limit in (None, *limits):
            explainer = FasterCE(
                model,
                data.schema.unconstrained(),
                random_state=seed,
                compile="never",
                scores=scores,
                max_fit_rows=10**7 if limit is None else limit,
            ).fit(X_train)
            yield {
                "data and model": f"{name}, {kind}",
                "max_fit_rows": "full plan" if limit is None else f"{limit:,}",
                "model rows of fit": explainer.report_.model_rows,
                "surrogate agrees %": 100 * (explainer.report_.surrogate_agreement or np.nan),
                **explained(explainer, rows, full),
            }


def explained(explainer: FasterCE, rows: pd.DataFrame, full: dict[str, pd.Series]) -> dict[str, float]:
    """Measure the counterfactuals of each method; the first call fills `full`, which later ones are compared with."""
    line: dict[str, float] = {}
    for method in METHODS:
        result = explainer.explain(rows, method)
        best = result.to_frame().query("rank == 0").set_index("query")["distance"]
        before = full.setdefault(method, best)
        both = best.index.intersection(before.index)
        line[f"{method} farther %"] = 100 * (best[both].mean() / before[both].mean() - 1)
        if method == "closest":
            line["found %"] = 100 * len(best) / len(rows)
            line["model rows per explanation"] = result.usage.rows / len(rows)
    return line


if __name__ == "__main__":
    main()
