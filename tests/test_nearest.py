"""With an exact scorer: no other counterfactual is nearer than `closest`, and every change is needed.

All of it is checked from outside, with the model's own predictions of the returned rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from xgboost import XGBClassifier

from fasterce import FasterCE, Schema
from fasterce.config import Config
from fasterce.explanation import Explanation

QUERIES = 12
# Distances are rounded to nine decimals.
EQUAL = 1e-8
# A tie of votes, which the model decides for the first class, does not count as reaching the target.
TIE = 1e-6


def wine(classes: int = 2) -> tuple[pd.DataFrame, np.ndarray]:
    data = load_wine(as_frame=True)
    return data.data, data.target.to_numpy() if classes == 3 else (data.target == 0).to_numpy().astype(int)


def cancer() -> tuple[pd.DataFrame, np.ndarray]:
    data = load_breast_cancer(as_frame=True)
    return data.data.iloc[:, :12], data.target.to_numpy()


def mixed() -> tuple[pd.DataFrame, np.ndarray]:
    """Whole numbers, decimals, words and a switch."""
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 400),
            "pay": rng.normal(50, 15, 400).round(1),
            "rate": rng.gamma(2.0, 0.02, 400).round(3),
            "job": rng.choice(["clerk", "nurse", "smith", "cook"], 400),
            "own": rng.random(400) < 0.5,
        }
    )
    score = frame["pay"] / 15 - frame["rate"] * 30 + (frame["job"] == "nurse") + frame["own"] + (frame["age"] > 40)
    return frame, (score + rng.normal(size=400) / 2 > score.median()).to_numpy().astype(int)


def one_hot(last: Any) -> Any:
    words = make_column_transformer((OneHotEncoder(), ["job", "own"]), remainder=StandardScaler())
    return make_pipeline(words, last)


MODELS: dict[str, tuple[Callable[[], tuple[pd.DataFrame, np.ndarray]], Callable[[], Any]]] = {
    "wine, network": (wine, lambda: make_pipeline(StandardScaler(), MLPClassifier((5,), max_iter=3000, random_state=0))),
    "wine, three classes, XGBoost": (
        lambda: wine(3),
        lambda: XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1, random_state=1),
    ),
    "cancer, forest": (cancer, lambda: RandomForestClassifier(20, max_depth=6, random_state=0)),
    "cancer, logistic": (cancer, lambda: make_pipeline(StandardScaler(), LogisticRegression())),
    "mixed, LightGBM": (mixed, lambda: one_hot(LGBMClassifier(n_estimators=25, n_jobs=1, random_state=0, verbose=-1))),
    "mixed, histogram boosting": (mixed, lambda: one_hot(HistGradientBoostingClassifier(max_iter=25, random_state=0))),
    "mixed, logistic": (mixed, lambda: one_hot(LogisticRegression())),
}


@dataclass(frozen=True)
class World:
    model: Any
    schema: Schema
    rows: pd.DataFrame
    explainer: FasterCE

    def explain(self, method: Any = "closest", **options: Any) -> Explanation:
        target = "any other" if len(self.model.classes_) > 2 else None
        return self.explainer.explain(self.rows, method, target=target, **options)


@pytest.fixture(scope="session", params=MODELS)
def world(request: pytest.FixtureRequest) -> World:
    table, make = MODELS[request.param]
    frame, truth = table()
    rows = frame.sample(QUERIES, random_state=3)
    rest = frame.drop(rows.index)
    model = make().fit(rest, truth[rest.index])
    schema = Schema.infer(rest)
    explainer = FasterCE(model, schema, config=Config.fast(), progress=False, random_state=0).fit(rest)
    compiled = explainer.state_.compiled
    assert compiled is not None
    assert compiled.scorer is not None
    assert compiled.scorer.exact
    return World(model, schema, rows, explainer)


def costs(result: Explanation, first: bool = False) -> pd.Series:
    """The least distance of each query's counterfactuals, or that of the first."""
    by_query = result.to_frame().groupby("query")["distance"]
    return by_query.first() if first else by_query.min()


@pytest.mark.parametrize("distance", ["percentile", "gower", "mad", "euclidean"])
def test_nothing_else_is_nearer_than_closest(world: World, distance: Any) -> None:
    closest = world.explain(distance=distance)
    several = world.explain(n=3, distance=distance)
    best = costs(closest)
    assert len(best) > 0
    for other in (world.explain("sparse", distance=distance), several):
        nearest = costs(other)
        assert list(nearest.index) == list(best.index)
        assert (nearest >= best - EQUAL).all(), (nearest - best).min()
    first = several.to_frame().groupby("query").head(1).reset_index(drop=True)
    columns = list(world.rows.columns)
    pd.testing.assert_frame_equal(first[columns], closest.to_frame()[columns])


@pytest.mark.parametrize("distance", ["gower", "mad"])
def test_realistic_is_not_nearer_than_closest(world: World, distance: Any) -> None:
    best, nearest = costs(world.explain(distance=distance)), costs(world.explain("all", distance=distance))
    assert (nearest >= best - EQUAL).all(), (nearest - best).min()


def nearer(world: World, row: pd.Series, after: pd.Series) -> list[pd.Series]:
    """A counterfactual with one change reverted, or one number one unit of its precision nearer to the query."""
    found = []
    for name, feature in zip(world.schema.names, world.schema.features, strict=True):
        if row[name] == after[name]:
            continue
        values = [row[name]]
        if feature.numeric:
            unit = 10.0**-feature.decimals
            step = np.round(after[name] + np.sign(row[name] - after[name]) * unit, feature.decimals)
            values += [step] if abs(step - row[name]) < abs(after[name] - row[name]) else []
        for value in values:
            found.append(after.copy())
            found[-1][name] = value
    return found


@pytest.mark.parametrize("method", ["closest", "sparse"])
@pytest.mark.parametrize("distance", ["percentile", "mad"])
def test_every_change_is_needed(world: World, method: Any, distance: Any) -> None:
    result = world.explain(method, distance=distance, n=2)
    long, columns = result.to_frame(), list(world.rows.columns)
    smaller, owner = [], []
    for k, after in long.iterrows():
        some = nearer(world, world.rows.loc[after["query"]], after[columns])
        smaller += some
        owner += [k] * len(some)
    table = pd.DataFrame(smaller, columns=columns).reset_index(drop=True).astype(world.rows.dtypes)
    label = world.model.predict(table)
    chances = np.sort(world.model.predict_proba(table), axis=1)
    tied = chances[:, -1] - chances[:, -2] < TIE
    unwanted = result.prediction.loc[long.loc[owner, "query"]].to_numpy()
    assert len(table) >= 2 * len(world.rows)
    still = (label != unwanted) & ~tied
    assert not still.any(), table[still].assign(query=long.loc[np.array(owner)[still], "query"].to_numpy())


def test_every_returned_number_has_the_precision_of_its_column() -> None:
    """Candidate values of networks are quantiles of the data, which may have more decimals than the schema proposes."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"pay": rng.gamma(2.0, 1000.0, 400), "debt": rng.gamma(2.0, 500.0, 400), "own": rng.choice(["yes", "no"], 400)}
    )
    y = (X["pay"] > 2.5 * X["debt"]).astype(int)
    scaled = make_column_transformer((StandardScaler(), ["pay", "debt"]), (OneHotEncoder(), ["own"]))
    model = make_pipeline(scaled, MLPClassifier((5,), max_iter=800, random_state=0)).fit(X, y)
    explainer = FasterCE(model, random_state=0, progress=False, config=Config.fast()).fit(X)
    found = explainer.explain(X.head(40), n=3, distance="gower").to_frame()
    assert len(found) > 60
    for name in ("pay", "debt"):
        decimals = explainer.schema_[name].decimals
        changed = found.loc[[name in names for names in found["changed"]], name]
        assert (changed == changed.round(decimals)).all()
