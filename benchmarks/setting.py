"""What is explained: a dataset, a model trained on it, and the rows it refuses, the same for every system."""

import json
import shutil
import warnings
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.utils.class_weight import compute_sample_weight
from xgboost import XGBClassifier, XGBRegressor

from benchmarks.threshold import ThresholdClassifier
from benchmarks.yardstick import tables
from benchmarks.yardstick.cases import encoder
from fasterce import Schema, datasets
from fasterce.cli.adult_demo import balanced

BUNDLED = ("adult", "german_credit", "lending_club")
FROM_PACKAGES = (
    *("default", "orange_juice", "caravan", "carseats", "bikeshare"),
    *("titanic", "staff", "apartments", "penguins"),
)
DATASETS = BUNDLED + FROM_PACKAGES
MODELS = ("mlp", "xgboost", "random_forest", "logistic")
TARGET = 1
MOST_ROUNDS = 20
# For a regression, the quantile of the training values that a counterfactual has to reach.
HIGH = 0.6
# Share of the rows below which a class is rare.
RARE = 0.1
# Few loans went bad: only a strongly regularised network learns from them (the grid of `benchmarks.paper`, by validation).
PERCEPTRON = {"lending_club": {"alpha": 10.0, "max_iter": 10}}
SHARED = ("numpy", "pandas", "scikit-learn", "xgboost-cpu")


@dataclass(frozen=True)
class Task:
    """What is wanted for a row: whether the dataset's immutable columns are frozen, and the number of counterfactuals."""

    name: str
    frozen: bool = False
    count: int = 1


FREE, FROZEN, SEVERAL = Task("free"), Task("frozen", frozen=True), Task("several", count=4)
TASKS = {task.name: task for task in (FREE, FROZEN, SEVERAL)}


@dataclass(frozen=True)
class Setting:
    """A dataset with a trained model.

    `rows` are the distinct rows that the model does not give the class `target`, test rows first. Labels are 1 for the
    favourable outcome and 0 otherwise. For a regression, the favourable outcome is a prediction of at least `low`.
    """

    data: str
    model_name: str
    seed: int
    schema: Schema
    model: Any
    X_train: pd.DataFrame
    y_train: pd.Series
    rows: pd.DataFrame
    decimals: dict[str, int]
    immutable: tuple[str, ...]
    accuracy: float
    target: int = TARGET

    def batch(self, size: int) -> pd.DataFrame:
        """Return the refused rows and, where these are too few, crossings of two of them that are refused as well.

        All rows are distinct: fasterce evaluates equal candidates only once, so repeated rows would be an advantage for it.
        """
        generator = np.random.default_rng(self.seed)
        found = self.rows
        for _ in range(MOST_ROUNDS):
            if len(found) >= size:
                break
            found = pd.concat([found, self._crossed(generator, size)]).drop_duplicates()
        return found.iloc[:size].reset_index(drop=True)

    def _crossed(self, generator: np.random.Generator, size: int) -> pd.DataFrame:
        first, second = (
            self.rows.iloc[generator.integers(len(self.rows), size=size)].reset_index(drop=True) for _ in range(2)
        )
        mixed = first.where(generator.random(first.shape) < 0.5, second).astype(self.rows.dtypes.to_dict())
        return mixed[self.model.predict(mixed) != self.target]

    def frozen(self, task: Task) -> tuple[str, ...]:
        """Return the columns that must not change; the paper freezes gender and race, here all immutable columns are."""
        return self.immutable if task.frozen else ()

    def free(self, task: Task) -> list[str]:
        return [name for name in self.X_train.columns if name not in self.frozen(task)]

    def dump(self, folder: Path, task: Task = FREE, batch: int = 0) -> None:
        """Write all that the process of a rival needs to a new folder; reading it does not need the package fasterce."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        joblib.dump(self.model, folder / "model.joblib")
        self.X_train.assign(**{"": self.y_train}).to_parquet(folder / "train.parquet")
        (self.batch(batch) if batch else self.rows).to_parquet(folder / "rows.parquet")
        (folder / "spec.json").write_text(json.dumps(self.spec(task)))

    def spec(self, task: Task = FREE) -> dict[str, Any]:
        numeric = {f.name: (f.lower, f.upper, self.decimals[f.name]) for f in self.schema.features if f.numeric}
        return {
            "seed": self.seed,
            "target": self.target,
            "numeric": numeric,
            "categories": {f.name: list(f.categories) for f in self.schema.features if not f.numeric},
            "immutable": list(self.frozen(task)),
            "ranges": {},
            "count": task.count,
            "versions": {name: version(name) for name in SHARED},
        }


def _at_most(train_rows: int | None, rows: int) -> int | None:
    """Return the number of training rows: `train_rows`, or 80 % of the rows if these are fewer."""
    return None if train_rows is None else min(train_rows, rows * 4 // 5)


def prepare(name: str, model_name: str, seed: int, train_rows: int | None = None) -> Setting:
    source = tables.load(name)
    size, stratify = _at_most(train_rows, len(source.y)), None if source.regression else source.y
    X_train, X_test, y_train, y_test = train_test_split(
        source.X, source.y, test_size=0.2, train_size=size, random_state=seed, stratify=stratify
    )
    model: Any = make_pipeline(
        encoder(source.schema), (regressor if source.regression else classifier)(model_name, seed, name)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if source.regression:
            model = ThresholdClassifier(
                model.fit(X_train, y_train), float(np.round(np.quantile(y_train, HIGH), 2)), float(np.std(y_train))
            )
            y_train, y_test = ((y >= model.low).astype(int) for y in (y_train, y_test))
        elif model_name == "mlp":
            model.fit(X_train, y_train, mlpclassifier__sample_weight=class_weights(y_train))
        else:
            model.fit(*balanced(X_train, y_train))
    refused = pd.concat([X[model.predict(X) != TARGET] for X in (X_test, X_train)]).drop_duplicates()
    declared = datasets.load(name).schema if name in BUNDLED else source.schema
    return Setting(
        data=name,
        model_name=model_name,
        seed=seed,
        schema=source.schema,
        model=model,
        X_train=X_train.reset_index(drop=True),
        y_train=y_train.reset_index(drop=True),
        rows=refused.reset_index(drop=True),
        decimals={f.name: f.decimals for f in source.schema.features if f.numeric},
        immutable=tuple(f.name for f in declared.features if not f.mutable),
        accuracy=float(balanced_accuracy_score(y_test, model.predict(X_test))),
    )


def class_weights(y: pd.Series) -> np.ndarray | None:
    """Return balanced weights if a class is rare, which a network would otherwise never predict."""
    return compute_sample_weight("balanced", y) if y.value_counts(normalize=True).min() < RARE else None


def classifier(model_name: str, seed: int, data: str = "") -> Any:
    if model_name == "mlp":
        return MLPClassifier((64, 32), random_state=seed, **PERCEPTRON.get(data, {"max_iter": 80}))
    if model_name == "xgboost":
        return XGBClassifier(n_estimators=100, max_depth=6, learning_rate=0.1, random_state=seed)
    if model_name == "random_forest":
        return RandomForestClassifier(100, min_samples_leaf=3, random_state=seed)
    return LogisticRegression(max_iter=1000)


def regressor(model_name: str, seed: int, data: str = "") -> Any:
    if model_name == "mlp":
        return MLPRegressor(hidden_layer_sizes=(64, 32), random_state=seed, **PERCEPTRON.get(data, {"max_iter": 200}))
    if model_name == "xgboost":
        return XGBRegressor(n_estimators=100, max_depth=6, learning_rate=0.1, random_state=seed)
    if model_name == "random_forest":
        return RandomForestRegressor(100, min_samples_leaf=3, random_state=seed)
    return Ridge()
