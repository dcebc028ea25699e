"""The promises, on tables, rules and models nobody chose: answers are true, in bounds, typed, repeatable and cheap.

Everything here is checked from outside: the model is asked again about the frame that came back, and the rules are read off
the drawn world, not off the library.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from fasterce import FasterCE, Schema
from fasterce.config import Config, SurrogateConfig
from fasterce.errors import ModelError
from fasterce.explanation import Explanation
from fasterce.latent.runtime import product

ROWS = 120
MOST_CALLS = 12
MOST_CALLS_FOR_SEVERAL = 16
GRADES = ["low", "mid", "high", "top"]
NUMBERS = ("int", "int8", "float", "float32", "nullable")
NAMES = ("word", "category", "ordered", "code", "bool")
METHODS: tuple[Literal["closest", "sparse", "realistic"], ...] = ("closest", "sparse", "realistic")
# Promises do not rest on the surrogate: little training is quicker, and finds more ways to err.
CONFIG = replace(
    Config.fast(),
    surrogate=SurrogateConfig(edited_rows_per_feature=300, min_edited_rows=1_500, steps_per_feature=10, min_steps=60),
)


def quick(examples: int) -> Callable[[Any], Any]:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


# -- worlds ----------------------------------------------------------------------------------------------------------------


def column(kind: str, rng: np.random.Generator, rows: int) -> Any:
    words = ["ash", "elm", "fir", "oak"]
    makers: dict[str, Callable[[], Any]] = {
        "int": lambda: rng.integers(-20, 80, rows),
        "int8": lambda: rng.integers(0, 100, rows).astype(np.int8),
        "float": lambda: rng.normal(3, 2, rows).round(2),
        "float32": lambda: rng.normal(0, 1, rows).astype(np.float32),
        "nullable": lambda: pd.array(rng.integers(0, 30, rows), dtype="Int64"),
        "word": lambda: rng.choice(words, rows),
        "category": lambda: pd.Categorical(rng.choice(words, rows), words),
        "ordered": lambda: pd.Categorical(rng.choice(GRADES, rows), GRADES, ordered=True),
        "code": lambda: rng.integers(1, 5, rows),
        "bool": lambda: rng.random(rows) < 0.5,
    }
    return makers[kind]()


@dataclass
class Model:
    """A random black box over any of the columns; `usage` lists the sizes of the frames it was given."""

    kind: str
    weights: dict[str, Any]
    scale: dict[str, tuple[float, float]]
    threshold: float = 0.0
    names: tuple[Any, Any] = ("no", "yes")
    usage: list[int] = field(default_factory=list)

    def terms(self, frame: pd.DataFrame) -> np.ndarray:
        columns = []
        for name, weight in self.weights.items():
            if isinstance(weight, dict):
                columns.append(frame[name].astype(object).map(weight).to_numpy(dtype=float))
            else:
                middle, spread = self.scale[name]
                columns.append(weight * (frame[name].to_numpy(dtype=float) - middle) / spread)
        return np.stack(columns, axis=1)

    def score(self, frame: pd.DataFrame) -> np.ndarray:
        terms = self.terms(frame)
        if self.kind == "tree":
            left, right = terms[:, 0], terms[:, -1]
            return np.where(left > 0, np.where(right > 0.3, 1.0, -1.0), np.where(right > -0.8, -1.0, 1.0))
        total = np.zeros(len(frame))
        for term in terms.T:
            total = total + term
        if self.kind == "noise":
            return np.sin(total * 1e4) - 0.2
        return total - self.threshold

    def label(self, frame: pd.DataFrame) -> np.ndarray:
        return np.array(self.names, dtype=object)[(self.score(frame) > 0).astype(int)]

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        self.usage.append(len(frame))
        return self.label(frame)


class Scored:
    """The same black box with probabilities."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.classes_ = np.array(model.names, dtype=object)
        self.usage = model.usage
        self.label = model.label

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.model(frame)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        self.usage.append(len(frame))
        chance = 1 / (1 + np.exp(-self.model.score(frame)))
        return np.stack([1 - chance, chance], axis=1)


class FittedPipeline(Pipeline):
    """A real estimator, of which a compiled twin can be made; learnt from a random black box."""

    def label(self, frame: pd.DataFrame) -> np.ndarray:
        return super().predict(frame)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        self.usage.append(len(frame))
        return super().predict(frame)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        self.usage.append(len(frame))
        return super().predict_proba(frame)


def fit_pipeline(kind: str, training: pd.DataFrame, kinds: dict[str, str], labels: np.ndarray) -> FittedPipeline:
    numbers = [name for name in kinds if kinds[name] in NUMBERS]
    columns = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), [name for name in kinds if name not in numbers])
    )
    last = LogisticRegression(C=10) if kind == "logistic" else DecisionTreeClassifier(max_depth=4, random_state=0)
    made = FittedPipeline([("columns", columns), ("last", last)])
    made.usage = []
    return made.fit(training, labels.astype(str))


@dataclass
class World:
    kinds: dict[str, str]
    constraints: dict[str, str]
    ranges: dict[Any, tuple[float, float]]
    training: pd.DataFrame
    queries: pd.DataFrame
    model: Any
    seed: int
    compiled: str = "never"
    scores: str = "auto"

    def schema(self) -> Schema:
        def columns_with(word: str) -> list[str]:
            return [name for name, constraint in self.constraints.items() if constraint == word]

        return Schema.infer(
            self.training,
            categorical=[name for name, kind in self.kinds.items() if kind == "code"],
            immutable=columns_with("immutable"),
            increasing=columns_with("increasing"),
            decreasing=columns_with("decreasing"),
            ranges=self.ranges,
        )

    def fit(self) -> FasterCE:
        options: dict[str, Any] = {
            "compile": self.compiled,
            "scores": self.scores,
            "random_state": self.seed % 1000,
            "progress": False,
        }
        return FasterCE(self.model, self.schema(), autoencoder=turned_by(self.seed), config=CONFIG, **options).fit(
            self.training
        )


def turned_by(seed: int) -> tuple[Any, Any]:
    """A lossless autoencoder: a random rotation of the codec's matrix (a row's product does not depend on its company)."""

    def rotation(width: int) -> np.ndarray:
        return np.linalg.qr(np.random.default_rng(seed).normal(size=(width, width)))[0]

    return (
        lambda matrix: product(matrix, rotation(matrix.shape[1])),
        lambda latent: product(latent, np.ascontiguousarray(rotation(latent.shape[1]).T)),
    )


def random_model(kind: str, training: pd.DataFrame, kinds: dict[str, str], rng: np.random.Generator) -> Any:
    weights: dict[str, Any] = {}
    scale = {}
    used = rng.permutation(list(kinds))[: rng.integers(2, len(kinds) + 1)]
    for name in map(str, used):
        if kinds[name] in NUMBERS:
            values = training[name].to_numpy(dtype=float)
            weights[name], scale[name] = float(rng.normal()), (float(values.mean()), float(values.std()))
        else:
            values = GRADES if kinds[name] == "ordered" else training[name].astype(object).unique()
            weights[name] = {value: float(rng.normal()) for value in sorted(values)} | dict.fromkeys(
                set(_categories(training[name])) - set(values), 0.0
            )
    names = [("no", "yes"), (0, 1), (False, True)][rng.integers(3)]
    real = kind in ("logistic", "grown")
    model = Model("linear" if kind in ("scored", "rare") or real else kind, weights, scale, names=names)
    quantile = 0.95 if kind == "rare" else rng.uniform(0.3, 0.7)
    model.threshold = float(np.quantile(model.score(training), quantile)) if model.kind == "linear" else 0.0
    if real and len(set(model.label(training))) > 1:
        return fit_pipeline(kind, training, kinds, model.label(training))
    return Scored(model) if kind == "scored" else model


def _categories(column: pd.Series) -> list[Any]:
    return list(column.cat.categories) if isinstance(column.dtype, pd.CategoricalDtype) else []


@st.composite
def worlds(draw: st.DrawFn, queries: int = 8) -> World:
    seed = draw(st.integers(0, 2**31 - 1))
    rng = np.random.default_rng(seed)
    drawn = draw(st.lists(st.sampled_from(NUMBERS + NAMES), min_size=2, max_size=6))
    kinds = {f"{kind}_{k}": kind for k, kind in enumerate(drawn)}
    training = pd.DataFrame({name: column(kind, rng, ROWS) for name, kind in kinds.items()})
    fresh = pd.DataFrame({name: column(kind, rng, 3 * queries) for name, kind in kinds.items()})
    constraints, ranges = {}, {}
    for name, kind in kinds.items():
        one_way = ["increasing", "decreasing"] if kind in (*NUMBERS, "ordered") else []
        constraints[name] = draw(st.sampled_from(["free", "free", "free", "immutable", *one_way]))
        if kind in NUMBERS and draw(st.booleans()):
            both = np.concatenate([frame[name].to_numpy(dtype=float) for frame in (training, fresh)])
            low, high = float(both.min()), float(both.max())
            ranges[name] = (low - float(rng.choice([0, 0.31, 5])), high + float(rng.choice([0, 0.17, 7])))
    kind = draw(st.sampled_from(["linear", "scored", "tree", "noise", "rare", "logistic", "logistic", "grown"]))
    model = random_model(kind, training, kinds, rng)
    index = [f"row {k}" for k in range(queries)]
    compiled, scores = draw(st.sampled_from(["auto", "never"])), draw(st.sampled_from(["auto", "auto", "never"]))
    return World(kinds, constraints, ranges, training, fresh.head(queries).set_axis(index), model, seed, compiled, scores)


@dataclass(frozen=True)
class CallOptions:
    """The options of one call."""

    method: str
    n: int
    margin: float
    engine: str
    vary: list[str] | None
    permitted: dict[str, Any] | None
    distance: Any
    budget: int | None

    def options(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "n": self.n,
            "margin": self.margin,
            "engine": self.engine,
            "features_to_vary": self.vary,
            "permitted_range": self.permitted,
            "distance": self.distance,
            "budget": self.budget,
        }


@st.composite
def call_options(draw: st.DrawFn, world: World) -> CallOptions:
    mutable = [name for name, constraint in world.constraints.items() if constraint != "immutable"]
    vary = draw(st.none() | st.lists(st.sampled_from(mutable), min_size=1, unique=True)) if mutable else None
    permitted: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from(sorted(world.kinds)), max_size=2, unique=True)):
        kind, seen = world.kinds[name], world.training[name]
        if kind in NUMBERS:
            low, high = np.quantile(seen.to_numpy(dtype=float), draw(st.sampled_from([(0.1, 0.6), (0.4, 0.9), (0.0, 1.0)])))
            permitted[name] = (float(low) - 0.3, float(high) + 0.3)
        else:
            values = sorted(set(seen.astype(object)))
            permitted[name] = draw(st.lists(st.sampled_from(values), min_size=1, unique=True))
    return CallOptions(
        draw(st.sampled_from([*METHODS, *METHODS, "all"])),
        draw(st.integers(1, 3)),
        draw(st.sampled_from([0.0, 0.0, 0.4])),
        draw(st.sampled_from(["hybrid", "hybrid", "latent", "paper"])),
        vary,
        permitted or None,
        draw(st.sampled_from(["percentile", "gower", "gower", "mad", {sorted(world.kinds)[0]: 4.0}])),
        draw(st.sampled_from([None, None, 22, 40, 80])),
    )


def fitted(world: World) -> FasterCE | None:
    """None where the drawn model knows one class only on the training rows and around them, which `fit` refuses."""
    try:
        return world.fit()
    except ModelError:
        labels = world.model.label(world.training)
        if len(set(labels)) > 1:
            raise
        return None


# -- what must hold --------------------------------------------------------------------------------------------------------


def check_true(result: Explanation, world: World, long: pd.DataFrame) -> None:
    if not len(long):
        return
    before = pd.Series(world.model.label(world.queries), index=world.queries.index)
    after = world.model.label(long[list(world.kinds)])
    assert (after == result.target.loc[long["query"]].to_numpy()).all()
    assert (after != before.loc[long["query"]].to_numpy()).all()


def check_records(result: Explanation, world: World, long: pd.DataFrame, most: int) -> None:
    rows = world.queries
    assert list(result.status.index) == list(rows.index) == list(result.counterfactuals.index) == list(result.reason.index)
    assert set(result.status) <= {"found", "none_found", "stopped"}
    found = result.status.index[result.status == "found"]
    assert list(dict.fromkeys(long["query"])) == list(found)
    assert (result.reason[result.status != "found"] != "").all()
    remarks = result.reason[(result.status == "found") & (result.reason != "")]
    stopped, withheld = "Stopped at the budget .* may exist", r"Decoded rows .* constraints\)"
    ended = "All single changes .* were tried|All candidates .* may be more|A limit of the search .* may be more"
    short = rf"Only \d+ .* wanted|{ended}"
    texts = rf"((No single feature .* do|{stopped}|{short}|{withheld})\. ?)+"
    assert remarks.str.fullmatch(texts).all()
    assert (result.prediction == world.model.label(rows)).all()
    for name, ranks in long.groupby("query", sort=False)["rank"]:
        assert list(ranks) == list(range(len(ranks)))
        assert len(ranks) <= most, name
    best = long[long["rank"] == 0].set_index("query")[list(rows.columns)]
    wide = result.counterfactuals
    assert wide[~wide.index.isin(found)].isna().all(axis=None)
    assert wide.loc[found].astype(rows.dtypes.to_dict()).equals(best.rename_axis(None).astype(rows.dtypes.to_dict()))


def check_types(result: Explanation, world: World, long: pd.DataFrame) -> None:
    dtypes = world.queries.dtypes
    assert long[list(world.kinds)].dtypes.equals(dtypes)
    wide = result.counterfactuals.dtypes
    if (result.status == "found").all():
        assert wide.equals(dtypes)
    for name, dtype in dtypes.items():
        gap = {"i": "Int64", "b": "boolean"}.get(getattr(dtype, "kind", "") if isinstance(dtype, np.dtype) else "", dtype)
        assert wide[name] in (dtype, gap)


def check_bounds(world: World, long: pd.DataFrame, call: CallOptions) -> None:
    for name, kind in world.kinds.items():
        before, after = world.queries[name].loc[long["query"]].reset_index(drop=True), long[name]
        moved = before.astype(object).to_numpy() != after.astype(object).to_numpy()
        constraint, allowed = world.constraints[name], (call.permitted or {}).get(name)
        if constraint == "immutable" or (call.vary is not None and name not in call.vary):
            assert not moved.any(), name
        if kind in NUMBERS:
            was, now = before.to_numpy(dtype=float), after.to_numpy(dtype=float)
            for low, high in filter(None, (allowed, world.ranges.get(name))):
                assert ((now >= held(low, kind)) & (now <= held(high, kind))).all(), name
            if allowed is None and name not in world.ranges:
                seen = world.training[name].to_numpy(dtype=float)
                assert ((now >= np.minimum(seen.min(), was)) & (now <= np.maximum(seen.max(), was))).all(), name
        else:
            was, now = (_places(values, kind) for values in (before, after))
            known = (
                allowed if allowed is not None else [*world.training[name].astype(object), *_categories(world.training[name])]
            )
            assert set(after.astype(object)) <= set(known), name
        assert constraint != "increasing" or (now >= was).all(), name
        assert constraint != "decreasing" or (now <= was).all(), name


def held(bound: float, kind: str) -> float:
    """A bound as the column's type can hold it: 0.1 is not a 32-bit float."""
    return float(np.float32(bound)) if kind == "float32" else bound


def _places(values: pd.Series, kind: str) -> np.ndarray:
    return values.cat.codes.to_numpy() if kind == "ordered" else np.zeros(len(values))


def check_description(world: World, long: pd.DataFrame, call: CallOptions) -> None:
    """n_changed, changed and distance say what the frames say."""
    total = np.zeros(len(long))
    changed: list[list[str]] = [[] for _ in range(len(long))]
    for name, kind in world.kinds.items():
        before, after = world.queries[name].loc[long["query"]], long[name]
        moved = before.astype(object).to_numpy() != after.astype(object).to_numpy()
        for k in np.flatnonzero(moved):
            changed[k].append(name)
        if kind in NUMBERS:
            seen = world.training[name].to_numpy(dtype=float)
            total += np.abs(after.to_numpy(dtype=float) - before.to_numpy(dtype=float)) / (np.ptp(seen) or 1.0)
        else:
            total += moved
    assert list(long["changed"]) == changed
    assert list(long["n_changed"]) == [len(names) for names in changed]
    assert (long["n_changed"] > 0).all()
    if call.distance == "gower":
        np.testing.assert_allclose(long["distance"], total, atol=1e-6)
    assert (long["distance"] >= 0).all()


def same(one: Explanation, two: Explanation) -> None:
    pd.testing.assert_series_equal(one.status, two.status)
    pd.testing.assert_series_equal(one.reason, two.reason)
    pd.testing.assert_series_equal(one.prediction, two.prediction)
    pd.testing.assert_frame_equal(one.counterfactuals, two.counterfactuals)
    pd.testing.assert_frame_equal(one.to_frame(), two.to_frame())


# -- tests -----------------------------------------------------------------------------------------------------------------


@quick(40)
@given(data=st.data())
def test_every_counterfactual_is_true_in_bounds_and_typed(data: st.DataObject) -> None:
    world = data.draw(worlds())
    explainer = fitted(world)
    if explainer is None:
        return
    for _ in range(3):
        call = data.draw(call_options(world))
        untouched = world.queries.copy(deep=True)
        result = explainer.explain(world.queries, **call.options())
        pd.testing.assert_frame_equal(world.queries, untouched)
        long = result.to_frame()
        check_true(result, world, long)
        check_records(result, world, long, call.n * (3 if call.method == "all" else 1))
        check_types(result, world, long)
        check_bounds(world, long, call)
        check_description(world, long, call)
        assert call.budget is None or result.usage.rows <= call.budget * len(world.queries)


@quick(16)
@given(data=st.data())
def test_rows_one_by_one_together_and_permuted_get_the_same_counterfactuals(data: st.DataObject) -> None:
    world = data.draw(worlds(queries=6))
    explainer = fitted(world)
    if explainer is None:
        return
    order = data.draw(st.permutations(range(len(world.queries))))
    for _ in range(2):
        check_same_alone(explainer, world.queries, list(order), data.draw(call_options(world)).options())


def reasons(texts: pd.Series) -> list[str]:
    """Without the row's place in the table."""
    return list(texts.str.replace(r" \(row \d+\)", "", regex=True))


def check_same_alone(explainer: FasterCE, rows: pd.DataFrame, order: list[int], options: dict[str, Any]) -> None:
    """All rows together, in another order, and each alone: to the last bit the same."""
    together = explainer.explain(rows, **options)
    long = together.to_frame()
    others = [explainer.explain(rows.iloc[list(order)], **options)]
    others += [explainer.explain(rows.iloc[[k]], **options) for k in range(len(rows))]
    for one in others:
        names = list(one.rows.index)
        assert list(one.status) == list(together.status.loc[names])
        assert reasons(one.reason) == reasons(together.reason.loc[names])
        expected = pd.concat([long[long["query"] == name] for name in names], ignore_index=True)
        assert len(one.to_frame()) == len(expected)
        if len(expected):
            pd.testing.assert_frame_equal(one.to_frame(), expected, check_exact=True)


@quick(6)
@given(data=st.data())
def test_the_same_seed_gives_the_same_counterfactuals(data: st.DataObject) -> None:
    world = data.draw(worlds())
    explainer, again = fitted(world), fitted(world)
    if explainer is None or again is None:
        assert explainer is again
        return
    call = data.draw(call_options(world))
    first = explainer.explain(world.queries, **call.options())
    same(first, explainer.explain(world.queries, **call.options()))
    same(first, again.explain(world.queries, **call.options()))


@quick(12)
@given(data=st.data())
def test_calls_stay_few_whatever_the_model(data: st.DataObject) -> None:
    world = data.draw(worlds(queries=60))
    explainer = fitted(world)
    if explainer is None:
        return
    call = data.draw(call_options(world).filter(lambda call: call.method != "all"))
    confirming_alone = explainer.state_.compiled is not None
    for rows in (world.queries, world.queries.head(3)):
        world.model.usage.clear()
        result = explainer.explain(rows, **call.options(), diagnose=False)
        most = MOST_CALLS if call.n == 1 else MOST_CALLS_FOR_SEVERAL
        assert len(world.model.usage) == result.usage.calls <= most
        assert sum(world.model.usage) == result.usage.rows
        if confirming_alone and (result.status == "found").all():
            assert result.usage.calls <= 2, "the twin is asked instead"


@pytest.fixture(scope="module", params=["labels", "scores"])
def plain_world(request: pytest.FixtureRequest) -> tuple[World, FasterCE]:
    """Five columns of every sort, nothing frozen, a model that looks at all of them."""
    rng = np.random.default_rng(5)
    kinds = {name: name for name in ("int", "float", "word", "ordered", "bool")}
    training, queries = (pd.DataFrame({name: column(name, rng, rows) for name in kinds}) for rows in (300, 60))
    weights = {
        "int": 1.0,
        "float": 1.0,
        "word": {"ash": -0.5, "elm": 0.0, "fir": 0.3, "oak": 0.6},
        "ordered": {grade: 0.4 * k for k, grade in enumerate(GRADES)},
        "bool": {False: 0.0, True: 0.5},
    }
    model: Any = Model("linear", weights, {"int": (30, 28), "float": (3, 2)}, threshold=1.0)
    model = Scored(model) if request.param == "scores" else model
    world = World(kinds, dict.fromkeys(kinds, "free"), {}, training, queries, model, 11)
    return world, world.fit()


@pytest.fixture(scope="module", params=["scores", "labels"])
def real_worlds(request: pytest.FixtureRequest) -> dict[str, tuple[World, FasterCE]]:
    """Five columns of every sort and a logistic regression, with and without its compiled twin."""
    rng = np.random.default_rng(6)
    kinds = {name: name for name in ("int", "float", "category", "ordered", "bool")}
    training, queries = (pd.DataFrame({name: column(name, rng, rows) for name in kinds}) for rows in (300, 8))
    queries = queries.set_axis([f"row {k}" for k in range(8)])
    truth = training["int"] / 28 + training["float"] / 2 + (training["category"] == "oak") + training["bool"] - 3.5
    model = fit_pipeline("logistic", training, kinds, (truth + rng.normal(size=300) / 3 > 0).to_numpy())
    scores = "auto" if request.param == "scores" else "never"
    given: tuple[dict[str, str], dict[str, str], dict[Any, Any], Any, Any, Any, int] = (
        kinds,
        dict.fromkeys(kinds, "free"),
        {},
        training,
        queries,
        model,
        3,
    )
    every = {compiled: World(*given, compiled, scores) for compiled in ("auto", "never")}
    return {compiled: (world, world.fit()) for compiled, world in every.items()}


@pytest.mark.parametrize("method", [*METHODS, "all"])
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("compiled", ["auto", "never"])
def test_other_rows_change_nothing_with_and_without_a_compiled_model(
    real_worlds: dict[str, tuple[World, FasterCE]], compiled: str, n: int, method: Any
) -> None:
    world, explainer = real_worlds[compiled]
    assert (explainer.state_.compiled is None) == (compiled == "never")
    order = list(np.random.default_rng(n).permutation(len(world.queries)))
    distance = "percentile" if n == 1 else "gower"
    check_same_alone(explainer, world.queries, order, {"method": method, "n": n, "distance": distance})


@pytest.mark.parametrize("method", [*METHODS, "all"])
def test_the_number_of_calls_does_not_grow_with_the_rows(plain_world: tuple[World, FasterCE], method: Any) -> None:
    world, explainer = plain_world
    calls = []
    for times in (1, 20):
        world.model.usage.clear()
        result = explainer.explain(pd.concat([world.queries.head(3)] * times), method)
        assert len(result) == 3 * times
        assert (result.status == "found").all()
        assert result.usage.calls == len(world.model.usage)
        calls.append(result.usage.calls)
    assert calls[0] == calls[1] <= MOST_CALLS


@pytest.mark.parametrize("answer", ["no", 0, True])
def test_a_constant_model_is_refused_in_fit(answer: Any) -> None:
    training = pd.DataFrame({"x": np.arange(40.0), "y": ["a", "b"] * 20})
    with pytest.raises(ModelError, match=r"two classes; got .* nothing to change it to\.$"):
        FasterCE(lambda frame: [answer] * len(frame), autoencoder=turned_by(0), progress=False).fit(training)


def test_a_model_that_is_noise_gets_true_counterfactuals_too(plain_world: tuple[World, FasterCE]) -> None:
    """A label that depends on the last digit of every cell: nothing learned helps, and nothing false comes back."""
    world, _ = plain_world
    noisy = World(**{**world.__dict__, "model": Model("noise", {"int": 1.0, "float": 1.7}, {"int": (0, 1), "float": (0, 1)})})
    explainer = noisy.fit()
    for method in METHODS:
        result = explainer.explain(noisy.queries, method)
        assert (result.status == "found").mean() > 0.5
        check_true(result, noisy, result.to_frame())
        check_records(result, noisy, result.to_frame(), 1)


@pytest.mark.parametrize("engine", ["hybrid", "latent", "paper"])
def test_no_freedom_means_no_counterfactual(plain_world: tuple[World, FasterCE], engine: Any) -> None:
    world, _ = plain_world
    frozen = World(**{**world.__dict__, "constraints": dict.fromkeys(world.kinds, "immutable")})
    result = frozen.fit().explain(frozen.queries, "all", engine=engine)
    assert set(result.status) == {"none_found"}
    assert (result.reason != "").all()
    assert result.counterfactuals.isna().all(axis=None)
    assert len(result.to_frame()) == 0
