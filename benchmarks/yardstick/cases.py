"""One dataset with one model: rows as codes, the values they may take, and predictions.

Written without the library's own conversions and distances, so that it can check them. A row of codes has one number per
feature: a number is itself, a category is its position in the schema.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR
from xgboost import XGBClassifier, XGBRegressor

from benchmarks.yardstick import tables
from fasterce import Schema

# Relative, for comparisons with the ends of a range that floating point may have moved.
SLACK = 1e-9
# Training an SVM takes time quadratic in its rows.
MOST_ROWS_OF_SVC = 2000

# For each name the classifier and the regressor.
MODELS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "xgboost": (
        lambda: XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1, random_state=0),
        lambda: XGBRegressor(n_estimators=100, max_depth=6, n_jobs=1, random_state=0),
    ),
    "lightgbm": (
        lambda: LGBMClassifier(n_jobs=1, verbose=-1, random_state=0),
        lambda: LGBMRegressor(n_jobs=1, verbose=-1, random_state=0),
    ),
    "random_forest": (
        lambda: RandomForestClassifier(100, random_state=0),
        lambda: RandomForestRegressor(100, random_state=0),
    ),
    "gradient_boosting": (
        lambda: GradientBoostingClassifier(random_state=0),
        lambda: GradientBoostingRegressor(random_state=0),
    ),
    "hist_gradient_boosting": (
        lambda: HistGradientBoostingClassifier(random_state=0),
        lambda: HistGradientBoostingRegressor(random_state=0),
    ),
    "logistic": (lambda: LogisticRegression(max_iter=2000), Ridge),
    "mlp5": (
        lambda: MLPClassifier(hidden_layer_sizes=(5,), max_iter=2000, random_state=0),
        lambda: MLPRegressor(hidden_layer_sizes=(5,), max_iter=2000, random_state=0),
    ),
    "mlp": (
        lambda: MLPClassifier(hidden_layer_sizes=(32, 16), max_iter=500, random_state=0),
        lambda: MLPRegressor(hidden_layer_sizes=(32, 16), max_iter=500, random_state=0),
    ),
    "svc": (SVC, SVR),
    "knn": (KNeighborsClassifier, KNeighborsRegressor),
}


@dataclass
class Case:
    """A dataset with a fitted model.

    Parameters
    ----------
    data, model_name : str
    schema : Schema
        Of the whole table, without constraints.
    model : Pipeline
        Scaler and one-hot encoder, then the estimator.
    X_train : DataFrame
        What the model and the explainer are fitted on.
    rows : DataFrame
        Rows to explain, not among those, with positions as index.
    low : float, optional
        For regression, the least prediction wanted; the rows are those with less. For classes any other class is wanted.
    """

    data: str
    model_name: str
    schema: Schema
    model: Any
    X_train: pd.DataFrame
    rows: pd.DataFrame
    low: float | None = None
    _dtypes: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self._dtypes = self.X_train.dtypes.to_dict()

    @property
    def target(self) -> Any:
        """The option `target` of `explain`: None is the other of two classes."""
        return None if self.low is None else (self.low, None)

    @cached_property
    def numeric(self) -> np.ndarray:
        return np.array([feature.numeric for feature in self.schema.features])

    @cached_property
    def training(self) -> np.ndarray:
        """The training rows as codes."""
        return self.codes(self.X_train)

    @cached_property
    def queries(self) -> np.ndarray:
        """The rows to explain as codes."""
        return self.codes(self.rows)

    @cached_property
    def span(self) -> np.ndarray:
        """The range of each number in the training rows, 1 for a constant or a category."""
        span = np.where(self.numeric, np.ptp(self.training, axis=0), 1.0)
        return np.where(span > 0, span, 1.0)

    @cached_property
    def scale(self) -> np.ndarray:
        """Allowed values of a number are multiples of 1 / scale."""
        return np.array([10.0**feature.decimals if feature.numeric else 1.0 for feature in self.schema.features])

    @cached_property
    def grid(self) -> tuple[np.ndarray, np.ndarray]:
        """First and last allowed multiple of each number; of a category, the first and last position."""
        ends = [(f.lower, f.upper) if f.numeric else (0, len(f.categories) - 1) for f in self.schema.features]
        low, high = np.array(ends, dtype=float).T
        first, last = low * self.scale, high * self.scale
        return np.ceil(first - SLACK * np.maximum(1, np.abs(first))), np.floor(last + SLACK * np.maximum(1, np.abs(last)))

    def codes(self, frame: pd.DataFrame) -> np.ndarray:
        columns = [
            frame[f.name].to_numpy(dtype=float) if f.numeric else pd.Index(f.categories).get_indexer(frame[f.name])
            for f in self.schema.features
        ]
        return np.column_stack(columns).astype(float)

    def frame(self, codes: np.ndarray) -> pd.DataFrame:
        """Return codes as a table with the dtypes of the training rows."""
        columns = {}
        for j, feature in enumerate(self.schema.features):
            values = codes[:, j] if feature.numeric else pd.Index(feature.categories).take(codes[:, j].astype(int))
            columns[feature.name] = pd.Series(values).astype(self._dtypes[feature.name])
        return pd.DataFrame(columns)

    def predict(self, codes: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict(self.frame(codes))) if len(codes) else np.zeros(0)

    @cached_property
    def predictions(self) -> np.ndarray:
        """What the model predicts for `rows`."""
        return np.asarray(self.model.predict(self.rows))

    def reached(self, codes: np.ndarray, query: np.ndarray) -> np.ndarray:
        """Return whether candidates reach the target of their query, given as positions in `rows`."""
        predicted = self.predict(codes)
        return predicted >= self.low if self.low is not None else predicted != self.predictions[query]

    def gower(self, codes: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Return gower_l1: the sum of |change| / range, and 1 per changed category."""
        change = np.abs(codes - own)
        return np.where(self.numeric, change / self.span, change > 0).sum(axis=-1)

    def allowed(self, codes: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Return whether every changed value is one the schema allows."""
        multiple = codes * self.scale
        on_grid = np.abs(multiple - np.round(multiple)) <= 1e-6 * np.maximum(1.0, np.abs(multiple))
        low, high = self.grid
        inside = (np.round(multiple) >= low) & (np.round(multiple) <= high)
        return np.all((codes == own) | (on_grid & inside), axis=-1)


def make(data: str, model_name: str, train_rows: int = 4000, seed: int = 0) -> Case:
    """Fit a model on 80 % of a dataset, at most `train_rows` of them; the other rows are explained."""
    source = tables.load(data)
    most = MOST_ROWS_OF_SVC if model_name == "svc" else train_rows
    size = min(most, int(0.8 * len(source.X))) if most else int(0.8 * len(source.X))
    stratify = None if source.regression else source.y
    X_train, X_rest, y_train, _ = train_test_split(source.X, source.y, train_size=size, random_state=seed, stratify=stratify)
    model = make_pipeline(encoder(source.schema), MODELS[model_name][source.regression]())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X_train, y_train)
    rows = X_rest.drop_duplicates()
    low = None
    if source.regression:
        low = float(np.round(np.quantile(y_train, 0.6), 2))
        rows = rows[model.predict(rows) < low]
    X_train, rows = X_train.reset_index(drop=True), rows.reset_index(drop=True)
    return Case(data, model_name, source.schema, model, X_train, rows, low)


def encoder(schema: Schema) -> Any:
    """Return a scaler of the numbers and a one-hot encoder of the categories, in the schema's order."""
    numbers = [feature.name for feature in schema.features if feature.numeric]
    categorical = [feature for feature in schema.features if not feature.numeric]
    known = [list(feature.categories) for feature in categorical]
    one_hot = OneHotEncoder(categories=known, handle_unknown="ignore", sparse_output=False)
    parts = [(StandardScaler(), numbers), (one_hot, [feature.name for feature in categorical])]
    return make_column_transformer(*(part for part in parts if part[1]))
