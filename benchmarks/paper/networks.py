"""The black boxes: multi-layer perceptrons, chosen from a small grid by the AUC on validation rows."""

import warnings
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline

from benchmarks.setting import TARGET, Setting, class_weights
from fasterce import datasets
from fasterce.cli.adult_demo import preprocessing

HELD_OUT = 0.3
# Both directions of the prediction: what the counterfactuals have to reach.
TARGETS = {"favourable": TARGET, "unfavourable": 1 - TARGET}


@dataclass(frozen=True)
class Network:
    """Hidden layers, L2 penalty and epochs of a perceptron; scaler and one-hot encoder come before it."""

    hidden: tuple[int, ...]
    alpha: float
    epochs: int

    def __str__(self) -> str:
        return f"{'-'.join(map(str, self.hidden))}, alpha {self.alpha:g}, {self.epochs} epochs"

    def fit(self, X: pd.DataFrame, y: pd.Series, seed: int) -> Pipeline:
        perceptron = MLPClassifier(self.hidden, alpha=self.alpha, max_iter=self.epochs, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return make_pipeline(preprocessing(), perceptron).fit(X, y, mlpclassifier__sample_weight=class_weights(y))


GRID = tuple(
    Network(hidden, alpha, epochs)
    for hidden in ((64, 32), (32,))
    for alpha, epochs in ((1e-4, 30), (0.1, 30), (1.0, 30), (1.0, 10), (10.0, 10))
)


@dataclass(frozen=True)
class Split:
    """Training, validation and test rows, 70, 15 and 15 %; labels are 1 for the favourable outcome and 0."""

    data: datasets.Dataset
    X: dict[str, pd.DataFrame]
    y: dict[str, pd.Series]

    @classmethod
    def of(cls, name: str, seed: int, train_rows: int | None = None) -> "Split":
        data = datasets.load(name)
        labels = (data.y == data.wanted).astype(int)
        X_train, X_rest, y_train, y_rest = train_test_split(
            data.X, labels, test_size=HELD_OUT, random_state=seed, stratify=labels
        )
        X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=seed, stratify=y_rest)
        X = {"training": X_train.iloc[:train_rows], "validation": X_val, "test": X_test}
        y = {"training": y_train.iloc[:train_rows], "validation": y_val, "test": y_test}
        return cls(data, *({part: rows.reset_index(drop=True) for part, rows in every.items()} for every in (X, y)))

    def quality(self, model: Any, part: str) -> dict[str, float]:
        """Return accuracy, balanced accuracy and AUC of a model."""
        X, y = self.X[part], self.y[part]
        labels = model.predict(X)
        return {
            "accuracy": accuracy_score(y, labels),
            "balanced_accuracy": balanced_accuracy_score(y, labels),
            "auc": roc_auc_score(y, model.predict_proba(X)[:, 1]),
        }

    def grid(self, seed: int) -> list[dict[str, float]]:
        """Return the quality of every network of the grid on validation rows."""
        train = self.X["training"], self.y["training"]
        return [self.quality(network.fit(*train, seed), "validation") for network in GRID]

    def setting(self, model: Any, target: int, seed: int, most: int) -> Setting:
        """Return what is explained: the test rows that the model does not give `target`, at most `most`."""
        X, schema = self.X["test"], self.data.schema
        rows = X[model.predict(X) != target].drop_duplicates().iloc[:most].reset_index(drop=True)
        return Setting(
            data=self.data.name,
            model_name="mlp",
            seed=seed,
            schema=schema.unconstrained(),
            model=model,
            X_train=self.X["training"],
            y_train=self.y["training"],
            rows=rows,
            decimals={f.name: f.decimals for f in schema.features if f.numeric},
            immutable=immutable(self.data),
            accuracy=self.quality(model, "test")["balanced_accuracy"],
            target=target,
        )


def immutable(data: datasets.Dataset) -> tuple[str, ...]:
    """Return the columns that CE3 freezes: immutable ones (gender, race ...) and the age."""
    return tuple(str(f.name) for f in data.schema.features if not f.mutable or f.name == "age")


def best(grids: list[list[dict[str, float]]]) -> Network:
    """Return the network with the highest AUC on validation rows, averaged over the runs given."""
    mean = [sum(run[k]["auc"] for run in grids) for k in range(len(GRID))]
    return GRID[mean.index(max(mean))]
