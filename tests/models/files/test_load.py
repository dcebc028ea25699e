"""Real models, asked through DataFrames: every answer found flips the model itself, with scores and with labels alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from fasterce import FasterCE, Schema
from fasterce.config import Config
from fasterce.errors import InputError

IDENTITY = (lambda matrix: matrix, lambda latent: latent)
METHODS = ("closest", "sparse", "realistic")
LAND = ["north", "south", "east"]


def table(rows: int = 400, seed: int = 0, words: str = "str") -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "debt": rng.gamma(2.0, 10.0, rows).round(1),
            "land": rng.choice(LAND, rows),
            "owner": rng.random(rows) < 0.4,
            "years": rng.normal(10, 4, rows).astype(np.float32),
        }
    )
    return frame.assign(land=pd.Categorical(frame["land"], LAND)) if words == "category" else frame


def truth(frame: pd.DataFrame) -> np.ndarray:
    return (
        0.05 * frame["age"].to_numpy()
        - 0.08 * frame["debt"].to_numpy()
        + 0.9 * (frame["land"] == "south").to_numpy()
        + 0.8 * frame["owner"].to_numpy()
        + 0.1 * frame["years"].to_numpy()
        - 2.0
    )


def labels(frame: pd.DataFrame, names: Any = (0, 1)) -> np.ndarray:
    noise = np.random.default_rng(9).normal(0, 0.3, len(frame))
    return np.array(names)[(truth(frame) + noise > 0).astype(int)]


def three(frame: pd.DataFrame, names: Any = ("bad", "fair", "good")) -> np.ndarray:
    return np.array(names)[np.digitize(truth(frame), [-0.7, 0.7])]


def columns() -> Any:
    return make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="error"), make_column_selector(dtype_exclude="number")),
    )


@dataclass(frozen=True)
class Case:
    """A fitted model, how to ask it for labels, and the sort of table it takes."""

    model: Any
    ask: Callable[[pd.DataFrame], np.ndarray]
    words: str = "str"


def pipeline(last: Any, names: Any = (0, 1)) -> Case:
    frame = table()
    model = make_pipeline(columns(), last).fit(frame, labels(frame, names))
    return Case(model, model.predict)


def boosted() -> Case:
    frame = table(words="category")
    frame_model = HistGradientBoostingClassifier(max_iter=30, categorical_features="from_dtype", random_state=0)
    frame_model.fit(frame, labels(frame, ("refuse", "grant")))
    return Case(frame_model, frame_model.predict, "category")


def xgboosted() -> Case:
    from xgboost import XGBClassifier

    frame = table(words="category")
    model = XGBClassifier(n_estimators=20, max_depth=4, enable_categorical=True, tree_method="hist", n_jobs=1, random_state=0)
    model.fit(frame, labels(frame))
    return Case(model, model.predict, "category")


def numbers(frame: pd.DataFrame) -> np.ndarray:
    land = np.stack([(frame["land"] == name).to_numpy() for name in LAND], axis=1)
    rest = frame[["age", "debt", "owner", "years"]].to_numpy(dtype=np.float32)
    return np.hstack([(rest - [49, 20, 0.4, 10]) / [18, 14, 0.5, 4], land]).astype(np.float32)


def torch_module() -> Case:
    import torch

    frame = table()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Linear(7, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
        optimiser = torch.optim.Adam(network.parameters(), lr=0.03)
        inputs, wanted = torch.as_tensor(numbers(frame)), torch.as_tensor(labels(frame))
        for _ in range(60):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(network(inputs), wanted).backward()
            optimiser.step()

    def ask(rows: pd.DataFrame) -> np.ndarray:
        with torch.no_grad():
            return network(torch.as_tensor(numbers(rows))).argmax(dim=1).numpy()

    return Case(ask, ask)


def onnx_session() -> Case:
    import onnxruntime
    from skl2onnx import to_onnx

    frame = table()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers(frame), labels(frame, ("no", "yes")))
    exported = to_onnx(model, numbers(frame)[:1], options={"zipmap": False}).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(exported, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def ask(rows: pd.DataFrame) -> np.ndarray:
        return session.run(None, {name: numbers(rows)})[0]

    return Case(ask, ask)


CASES: dict[str, Callable[[], Case]] = {
    "mlp": lambda: pipeline(MLPClassifier((16, 8), max_iter=150, random_state=0, early_stopping=True), (False, True)),
    "forest": lambda: pipeline(RandomForestClassifier(20, max_depth=6, random_state=0)),
    "logistic with words": lambda: pipeline(LogisticRegression(), ("refused", "granted")),
    "svc with decision_function": lambda: pipeline(SVC(C=3.0)),
    "tree": lambda: pipeline(DecisionTreeClassifier(max_depth=5, random_state=0), (-1, 1)),
    "hist boosting on categories": boosted,
    "xgboost on categories": xgboosted,
    "torch behind a function": torch_module,
    "onnx behind a function": onnx_session,
}
HAS_SCORES = {name: "behind a function" not in name for name in CASES}


@pytest.fixture(scope="module", params=list(CASES))
def case(request: pytest.FixtureRequest) -> tuple[str, Case]:
    return request.param, CASES[request.param]()


@pytest.fixture(scope="module", params=["auto", "never"])
def explainer(request: pytest.FixtureRequest, case: tuple[str, Case]) -> FasterCE:
    name, given = case
    learned = FasterCE(given.model, scores=request.param, autoencoder=IDENTITY, progress=False, config=Config.fast())
    learned.fit(table(words=given.words))
    assert learned.state_.use_scores == (HAS_SCORES[name] and request.param == "auto")
    return learned


@pytest.mark.parametrize("method", METHODS)
def test_every_counterfactual_flips_the_real_model(case: tuple[str, Case], explainer: FasterCE, method: Any) -> None:
    _, given = case
    rows = table(12, seed=4, words=given.words)
    result = explainer.explain(rows, method)
    assert set(result.status) <= {"found", "none_found"}
    found = (result.status == "found").to_numpy()
    assert found.sum() >= (7 if method == "sparse" else 12)
    before, after = given.ask(rows), given.ask(result.counterfactuals[found].astype(rows.dtypes.to_dict()))
    assert (after != before[found]).all()
    assert (np.asarray(result.target)[found] == after).all()
    assert (np.asarray(result.prediction) == before).all()
    assert set(explainer.classes_) == set(np.unique(before).tolist())
    assert result.usage.calls <= 12
    if method == "sparse":
        alone = one_is_enough(given, rows)
        assert ((result.to_frame()["n_changed"] == 1) == alone[found]).all()
        assert (result.reason.str.contains("No single feature").to_numpy()[found] == ~alone[found]).all()


def one_is_enough(given: Case, rows: pd.DataFrame) -> np.ndarray:
    """For every row whether some value of some column, of those people have, flips the model alone."""
    people, flips = table(words=given.words), np.zeros(len(rows), dtype=bool)
    for name in rows.columns:
        values = people[name].drop_duplicates().reset_index(drop=True)
        every = rows.loc[np.repeat(rows.index, len(values))].reset_index(drop=True)
        every[name] = pd.concat([values] * len(rows), ignore_index=True).astype(rows[name].dtype)
        changed = given.ask(every).reshape(len(rows), len(values)) != given.ask(rows)[:, None]
        flips |= changed.any(axis=1)
    return flips


def test_scores_do_as_well_as_labels_alone_or_better() -> None:
    given, rows = CASES["mlp"](), table(40, seed=5)
    cost = {}
    for scores in ("auto", "never"):
        learned = FasterCE(given.model, scores=scores, autoencoder=IDENTITY, progress=False, config=Config.fast()).fit(
            table()
        )
        cost[scores] = learned.explain(rows).to_frame()["distance"].mean()
    assert cost["auto"] <= 1.05 * cost["never"]


@pytest.mark.parametrize(
    "last",
    [LogisticRegression(), RandomForestClassifier(15, max_depth=6, random_state=0), SVC()],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("names", [("bad", "fair", "good"), (3, 1, 2)], ids=["words", "numbers"])
def test_several_classes_with_a_target(last: Any, names: tuple[Any, ...]) -> None:
    frame = table()
    model = make_pipeline(columns(), last).fit(frame, three(frame, names))
    learned = FasterCE(model, autoencoder=IDENTITY, progress=False, config=Config.fast()).fit(frame)
    assert learned.state_.use_scores
    rows = table(15, seed=6)
    with pytest.raises(InputError, match=r"target must name the wanted class, .* has 3 classes\.$"):
        learned.explain(rows)
    for target in names:
        result = learned.explain(rows, "all", target=target)
        before = model.predict(rows)
        assert ((result.status == "already_target") == (before == target)).all()
        assert not (result.status == "none_found").any()
        assert (model.predict(result.to_frame()[list(rows.columns)]) == target).all()


@pytest.mark.parametrize(
    ("names", "spelt"),
    [((0, 1), [1, 1.0, np.int64(1), True]), ((False, True), [True, np.True_, 1]), (("n", "y"), ["y", np.str_("y")])],
    ids=["int", "bool", "str"],
)
def test_a_target_may_be_spelt_in_any_scalar_type(names: tuple[Any, Any], spelt: list[Any]) -> None:
    frame = table()
    model = make_pipeline(columns(), LogisticRegression()).fit(frame, labels(frame, names))
    learned = FasterCE(model, autoencoder=IDENTITY, progress=False, config=Config.fast()).fit(frame)
    rows = table(10, seed=7)
    already = model.predict(rows) == names[1]
    for target in spelt:
        result = learned.explain(rows, target=target)
        assert ((result.status == "already_target") == already).all()
        assert (model.predict(result.to_frame()[list(rows.columns)]) == names[1]).all()
    assert type(learned.classes_[0]) is type(names[0])


def test_a_model_trained_autoencoder_and_a_schema_together() -> None:
    """The way of the README: a pipeline, a schema with rules, the trained autoencoder, all three methods."""
    frame = table()
    given = pipeline(MLPClassifier((16, 8), max_iter=150, random_state=0, early_stopping=True), ("refused", "granted"))
    schema = Schema.infer(frame, immutable=["land"], increasing=["age"], ranges={"debt": (0, 150)})
    learned = FasterCE(given.model, schema, random_state=1, progress=False, config=Config.fast()).fit(frame)
    rows = table(40, seed=8)
    rows = rows[given.ask(rows) == "refused"].head(10)
    result = learned.explain(rows, "all", target="granted")
    long = result.to_frame()
    assert set(long["method"]) == set(METHODS)
    assert (result.status == "found").all()
    assert (given.ask(long[list(rows.columns)]) == "granted").all()
    assert (long["land"].to_numpy() == rows["land"].loc[long["query"]].to_numpy()).all()
    assert (long["age"].to_numpy() >= rows["age"].loc[long["query"]].to_numpy()).all()
    assert long["debt"].between(0, 150).all()


@pytest.mark.parametrize(
    "shape",
    [
        list,
        lambda answer: pd.Series(answer, index=np.arange(len(answer))[::-1]),
        pd.Categorical,
        lambda answer: answer.reshape(-1, 1),
        lambda answer: pd.DataFrame({"label": answer}),
        lambda answer: answer.astype(object),
        lambda answer: pd.array(answer, dtype="string"),
    ],
)
def test_labels_may_come_in_any_container(shape: Callable[[np.ndarray], Any]) -> None:
    def plain(frame: pd.DataFrame) -> np.ndarray:
        return np.where(truth(frame) > 0, "yes", "no")

    frame, rows = table(200), table(6, seed=3)
    learned = FasterCE(lambda queries: shape(plain(queries)), autoencoder=IDENTITY, progress=False, config=Config.fast()).fit(
        frame
    )
    result = learned.explain(rows)
    assert (result.status == "found").all()
    assert (plain(result.counterfactuals) != plain(rows)).all()


def test_the_model_sees_the_types_it_was_trained_on() -> None:
    frame = table(200, words="category").astype({"age": "int16", "owner": "boolean"})
    seen: list[pd.Series] = []

    def model(queries: pd.DataFrame) -> np.ndarray:
        seen.append(queries.dtypes)
        return (truth(queries.astype({"owner": bool})) > 0).astype(int)

    learned = FasterCE(model, autoencoder=IDENTITY, progress=False, config=Config.fast()).fit(frame)
    as_others = frame.head(5).astype({"age": float, "owner": bool, "land": object, "years": float})
    result = learned.explain(as_others[as_others.columns[::-1]], "all")
    assert (result.status == "found").all()
    assert len(seen) > 5
    assert all(dtypes.equals(frame.dtypes) for dtypes in seen)


def test_scores_at_odds_with_the_labels_are_not_used() -> None:
    class Threshold:
        """Grants from 80 % only: the largest score is not the label."""

        classes_ = np.array([0, 1])

        def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
            chance = 1 / (1 + np.exp(-truth(frame)))
            return np.stack([1 - chance, chance], axis=1)

        def predict(self, frame: pd.DataFrame) -> np.ndarray:
            return (self.predict_proba(frame)[:, 1] > 0.8).astype(int)

    model, rows = Threshold(), table(20, seed=2)
    learned = FasterCE(model, autoencoder=IDENTITY, progress=False, config=Config.fast()).fit(table())
    assert not learned.state_.use_scores
    assert not learned.report_.scores
    result = learned.explain(rows)
    assert (result.status == "found").all()
    assert (model.predict(result.counterfactuals) != model.predict(rows)).all()
