"""What is explained: a dataset, a black box trained on it, and the rows it refuses. The same for every system."""

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

from benchmarks.at_least import AtLeast
from benchmarks.yardstick import tables
from benchmarks.yardstick.worlds import encoder
from fasterce import Schema, datasets
from fasterce.cli.adult_demo import balanced

BUNDLED = ("adult", "german_credit", "lending_club")
FROM_PACKAGES = (
    *("default", "orange_juice", "caravan", "carseats", "bikeshare"),
    *("titanic", "staff", "apartments", "penguins"),
)
DATASETS = BUNDLED + FROM_PACKAGES
BOXES = ("mlp", "xgboost", "random_forest", "logistic")
WANTED = 1
MOST_ROUNDS = 20
# Of the numbers a regression predicts, the quantile a counterfactual has to reach.
HIGH = 0.6
# Share of the rows below which a class is rare.
RARE = 0.1
# Few loans went bad: only a network held back learns from them (the grid of `benchmarks.paper`, by validation).
PERCEPTRON = {"lending_club": {"alpha": 10.0, "max_iter": 10}}
SHARED = ("numpy", "pandas", "scikit-learn", "xgboost-cpu")


@dataclass(frozen=True)
class Question:
    """What is asked about a row: with the dataset's immutable columns frozen or not, and how many answers."""

    name: str
    frozen: bool = False
    count: int = 1


FREE, FROZEN, SEVERAL = Question("free"), Question("frozen", frozen=True), Question("several", count=4)
QUESTIONS = {question.name: question for question in (FREE, FROZEN, SEVERAL)}


@dataclass(frozen=True)
class Setting:
    """`rows` are distinct rows that the model does not give `wanted`, test data first; labels are 1 for the favourable
    outcome and 0. Of a regression, the favourable outcome is a prediction of at least `low`."""

    data: str
    box: str
    seed: int
    schema: Schema
    model: Any
    X_train: pd.DataFrame
    y_train: pd.Series
    rows: pd.DataFrame
    decimals: dict[str, int]
    immutable: tuple[str, ...]
    accuracy: float
    wanted: int = WANTED

    def batch(self, size: int) -> pd.DataFrame:
        """The refused rows and, where these are too few, crossings of two of them that are refused as well.

        Never the same row twice: we ask about equal candidates only once, so a batch of repeated rows would flatter us.
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
        return mixed[self.model.predict(mixed) != self.wanted]

    def frozen(self, question: Question) -> tuple[str, ...]:
        """The columns that may not change; what the paper does with gender and race, for all that cannot be changed."""
        return self.immutable if question.frozen else ()

    def free(self, question: Question) -> list[str]:
        return [name for name in self.X_train.columns if name not in self.frozen(question)]

    def dump(self, folder: Path, question: Question = FREE, batch: int = 0) -> None:
        """All a rival's process needs, in a fresh folder of files without a class of ours: it need not have this package."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        joblib.dump(self.model, folder / "model.joblib")
        self.X_train.assign(**{"": self.y_train}).to_parquet(folder / "train.parquet")
        (self.batch(batch) if batch else self.rows).to_parquet(folder / "rows.parquet")
        (folder / "spec.json").write_text(json.dumps(self.spec(question)))

    def spec(self, question: Question = FREE) -> dict[str, Any]:
        numeric = {f.name: (f.lower, f.upper, self.decimals[f.name]) for f in self.schema.features if f.numeric}
        return {
            "seed": self.seed,
            "wanted": self.wanted,
            "numeric": numeric,
            "categories": {f.name: list(f.categories) for f in self.schema.features if not f.numeric},
            "immutable": list(self.frozen(question)),
            "ranges": {},
            "count": question.count,
            "versions": {name: version(name) for name in SHARED},
        }


def _at_most(train_rows: int | None, rows: int) -> int | None:
    """So many training rows, or as many as there are."""
    return None if train_rows is None else min(train_rows, rows * 4 // 5)


def prepare(name: str, box: str, seed: int, train_rows: int | None = None) -> Setting:
    source = tables.load(name)
    size, stratify = _at_most(train_rows, len(source.y)), None if source.regression else source.y
    X_train, X_test, y_train, y_test = train_test_split(
        source.X, source.y, test_size=0.2, train_size=size, random_state=seed, stratify=stratify
    )
    model: Any = make_pipeline(encoder(source.schema), (regressor if source.regression else classifier)(box, seed, name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if source.regression:
            model = AtLeast(
                model.fit(X_train, y_train), float(np.round(np.quantile(y_train, HIGH), 2)), float(np.std(y_train))
            )
            y_train, y_test = ((y >= model.low).astype(int) for y in (y_train, y_test))
        elif box == "mlp":
            model.fit(X_train, y_train, mlpclassifier__sample_weight=class_weights(y_train))
        else:
            model.fit(*balanced(X_train, y_train))
    refused = pd.concat([X[model.predict(X) != WANTED] for X in (X_test, X_train)]).drop_duplicates()
    declared = datasets.load(name).schema if name in BUNDLED else source.schema
    return Setting(
        data=name,
        box=box,
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
    """Return weights that make both classes count the same if one is rare: a network without them never predicts it."""
    return compute_sample_weight("balanced", y) if y.value_counts(normalize=True).min() < RARE else None


def classifier(box: str, seed: int, data: str = "") -> Any:
    if box == "mlp":
        return MLPClassifier((64, 32), random_state=seed, **PERCEPTRON.get(data, {"max_iter": 80}))
    if box == "xgboost":
        return XGBClassifier(n_estimators=100, max_depth=6, learning_rate=0.1, random_state=seed)
    if box == "random_forest":
        return RandomForestClassifier(100, min_samples_leaf=3, random_state=seed)
    return LogisticRegression(max_iter=1000)


def regressor(box: str, seed: int, data: str = "") -> Any:
    if box == "mlp":
        return MLPRegressor(hidden_layer_sizes=(64, 32), random_state=seed, **PERCEPTRON.get(data, {"max_iter": 200}))
    if box == "xgboost":
        return XGBRegressor(n_estimators=100, max_depth=6, learning_rate=0.1, random_state=seed)
    if box == "random_forest":
        return RandomForestRegressor(100, min_samples_leaf=3, random_state=seed)
    return Ridge()
