"""The methods on three datasets, the table of docs/variants.md: `make show`.

A scikit-learn pipeline (scaler, one-hot, MLP 64-32) is the model; 200 rows with the unwanted outcome are explained with
every feature free, for several seeds (split, model and explainer), without a compiled model so that every candidate is
evaluated by the model itself. An exhaustive sweep of every feature counts the rows for which one change suffices. Prints
Markdown: median and, where they differ, lowest and highest.
"""

import argparse
import os
import platform
import warnings
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

from fasterce import FasterCE, datasets, metrics
from fasterce.cli.adult_demo import balanced, preprocessing

ROWS = 200
MOST_LEVELS = 150
LINES = (("closest", "gower"), ("closest", "mad"), ("closest", "percentile"), ("sparse", "gower"), ("realistic", "gower"))
COLUMNS = {
    "rows": "{:.0f}",
    "fit s": "{:.0f}",
    "found %": "{:.1f}",
    "valid %": "{:.0f}",
    "features": "{:.2f}",
    "gower_l1": "{:.3f}",
    "proximity": "{:.3f}",
    "nn_ratio": "{:.2f}",
    "calls": "{:.0f}",
    "rows each": "{:.1f}",
    "ms each": "{:.2f}",
    "missed": "{:.0f}",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["adult", "german_credit", "lending_club"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    lines = [line for name in arguments.datasets for seed in arguments.seeds for line in measure(name, seed)]
    print(markdown(pd.DataFrame(lines), ("data", "method"), COLUMNS))
    print(f"\n{len(arguments.seeds)} seeds; {machine()}")


def machine() -> str:
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
        f"Python {platform.python_version()}, NumPy {np.__version__}, pandas {pd.__version__}"
    )


def measure(name: str, seed: int) -> Iterator[dict[str, Any]]:
    data, X_train, X_test, model = trained(name, seed)
    rows = refused(model, data.wanted, X_test, X_train)
    started = perf_counter()
    explainer = FasterCE(model, data.schema.unconstrained(), random_state=seed, compile="never").fit(X_train)
    fitted = perf_counter() - started
    exists = one_feature_answer_exists(explainer, rows)
    scale = metrics.Scale.of(X_train)
    peers = metrics.Peers.of(model, scale, X_train, data.wanted)
    for method, distance in LINES:
        explainer.explain(rows.iloc[:5], method, distance=distance)
        result = explainer.explain(rows, method, distance=distance)
        found = (result.status == "found").to_numpy()
        before, after = rows[found], result.counterfactuals[found].astype(rows.dtypes.to_dict())
        yield {
            "data": name,
            "method": method if distance == "gower" else f"{method}, {distance}",
            "rows": len(rows),
            "fit s": fitted,
            "found %": 100 * found.mean(),
            "valid %": 100 * np.mean(model.predict(before) != model.predict(after)),
            "features": metrics.features_changed(scale, before, after).mean(),
            "gower_l1": metrics.gower_l1(scale, before, after).mean(),
            "proximity": metrics.proximity(scale, before, after).mean(),
            "nn_ratio": metrics.nn_ratio(peers, after),
            "calls": result.usage.calls,
            "rows each": result.usage.rows / len(rows),
            "ms each": 1000 * result.seconds / len(rows),
            "missed": (exists & (changed_of(result) != 1)).sum() if method == "sparse" else np.nan,
        }


def trained(name: str, seed: int) -> tuple[Any, pd.DataFrame, pd.DataFrame, Any]:
    """A dataset, its split and a black box."""
    data = datasets.load(name)
    X_train, X_test, y_train, _ = train_test_split(data.X, data.y, test_size=0.2, random_state=seed, stratify=data.y)
    model = make_pipeline(preprocessing(), MLPClassifier((64, 32), max_iter=80, random_state=seed))
    return data, X_train, X_test, model.fit(*balanced(X_train, y_train))


def changed_of(result: Any) -> np.ndarray:
    """How many features each row's best answer changes, 0 where there is none."""
    best = result.arrays.rank == 0
    changed = np.zeros(len(result), dtype=int)
    changed[result.arrays.query[best]] = result.arrays.changed[best].sum(axis=1)
    return changed


def refused(model: Any, wanted: object, *tables: pd.DataFrame) -> pd.DataFrame:
    """Rows with the unwanted outcome: of the test data, and where these are too few, of the training data."""
    return pd.concat([X[model.predict(X) != wanted] for X in tables]).iloc[:ROWS]


def one_feature_answer_exists(explainer: FasterCE, rows: pd.DataFrame) -> np.ndarray:
    """By brute force over the original model: every category, and up to 150 values of every number."""
    table, model = explainer.state_.table, explainer.model
    codes = table.read(rows).codes
    own = model.predict(rows)
    exists = np.zeros(len(rows), dtype=bool)
    for j, feature in enumerate(table.schema.features):
        if feature.numeric:
            values = np.round(np.linspace(feature.lower, feature.upper, MOST_LEVELS), feature.decimals)
            values = np.unique(np.concatenate([values, explainer.state_.search.codec.profile.levels[j]]))
        else:
            values = np.arange(len(feature.categories))
        swept = np.repeat(codes, len(values), axis=0)
        swept[:, j] = np.tile(values, len(codes))
        flips = model.predict(table.frame(swept)) != np.repeat(own, len(values))
        exists |= flips.reshape(len(codes), -1).any(axis=1)
    return exists


def markdown(lines: pd.DataFrame, keys: tuple[str, str], columns: dict[str, str]) -> str:
    """A line for every pair of keys: the median over seeds, and the lowest and highest where they differ."""
    rows = [[*keys, *columns], ["---"] * (len(keys) + len(columns))]
    for key, group in lines.groupby(list(keys), sort=False):
        rows.append([*map(str, key), *(spread(group[column], form) for column, form in columns.items())])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def spread(values: pd.Series, form: str) -> str:
    if values.isna().all():
        return ""
    middle, low, high = (form.format(value) for value in (values.median(), values.min(), values.max()))
    return middle if low == high else f"{middle} ({low} – {high})"


if __name__ == "__main__":
    main()
