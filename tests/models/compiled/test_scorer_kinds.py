"""Exact scorers of the other kinds of models: numbers as predictions, missing values, categories as they are, curves."""

from collections.abc import Callable
from typing import Any

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from lightgbm import LGBMRegressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    ElasticNet,
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, QuantileTransformer, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBRegressor

from fasterce.data.schema import MISSING, Feature, Schema
from fasterce.models.adapters import RenamedModel, adapt
from fasterce.models.compiled.model import NotCompiledError
from fasterce.models.compiled.scorer import ReadScorer, read_scorer
from fasterce.models.predictor import Predictor
from tests.models.compiled.models import LAND, coded, columns, numbers, outcome, people
from tests.models.compiled.oracle import oracle
from tests.models.compiled.test_scorer import CONFIG, THREE, TWO, at_edges, boosted, check_equal, drawn, light, read


def cat(**options: Any) -> Any:
    return catboost.CatBoostClassifier(
        iterations=20, depth=4, thread_count=1, random_seed=0, verbose=0, allow_writing_files=False, **options
    )


SINGLE = 1e-4
DOUBLE = 1e-9
# Sums of hundreds of kernels whose columns were scaled in single precision.
MACHINE = 1e-7


def check(model: Any, frame: pd.DataFrame, error: float) -> ReadScorer:
    found, predictor, _ = read(model, frame)
    return check_read(found, predictor, frame, error)


def check_read(found: ReadScorer, predictor: Predictor, frame: pd.DataFrame, error: float) -> ReadScorer:
    assert found.scorer.exact
    codes = drawn(frame, predictor)
    check_equal(found, predictor, codes, error)
    if len(found.scorer.trees.edges):
        check_equal(found, predictor, at_edges(found, predictor, codes), error)
    return found


# -- predictions that are numbers ------------------------------------------------------------------------------------------


def worth(frame: pd.DataFrame) -> np.ndarray:
    return 300 + 20 * frame["age"].to_numpy() - 3 * frame["debt"].to_numpy() ** 1.5 + 50 * (frame["years"].to_numpy() > 10)


REGRESSORS: dict[str, tuple[Callable[[], Any], float]] = {
    "tree": (lambda: DecisionTreeRegressor(max_depth=6, random_state=0), DOUBLE),
    "forest": (lambda: RandomForestRegressor(10, random_state=0), DOUBLE),
    "bagging": (lambda: BaggingRegressor(n_estimators=5, max_samples=0.8, random_state=0), DOUBLE),
    "vote": (
        lambda: VotingRegressor([("tree", DecisionTreeRegressor(max_depth=4)), ("forest", RandomForestRegressor(4))]),
        DOUBLE,
    ),
    "extra trees": (lambda: ExtraTreesRegressor(10, max_depth=6, random_state=0), DOUBLE),
    "boosting": (lambda: GradientBoostingRegressor(n_estimators=20), DOUBLE),
    "histogram boosting": (lambda: HistGradientBoostingRegressor(max_iter=20), DOUBLE),
    "xgboost": (lambda: XGBRegressor(n_estimators=20, n_jobs=1), SINGLE),
    "lightgbm": (lambda: LGBMRegressor(n_estimators=20, n_jobs=1, verbose=-1), DOUBLE),
    "lightgbm forest": (
        lambda: LGBMRegressor(
            n_estimators=20, n_jobs=1, verbose=-1, boosting_type="rf", bagging_freq=1, bagging_fraction=0.5, random_state=0
        ),
        DOUBLE,
    ),
    "linear": (LinearRegression, DOUBLE),
    "ridge": (Ridge, DOUBLE),
    "elastic net": (ElasticNet, DOUBLE),
    "huber": (lambda: HuberRegressor(max_iter=500), DOUBLE),
    "descent": (lambda: SGDRegressor(random_state=0), DOUBLE),
    "network": (lambda: MLPRegressor(hidden_layer_sizes=(8,), activation="tanh", max_iter=50, random_state=0), DOUBLE),
    "catboost": (
        lambda: catboost.CatBoostRegressor(iterations=20, depth=4, thread_count=1, verbose=0, allow_writing_files=False),
        DOUBLE,
    ),
    "vector machine": (SVR, MACHINE),
    "kernel ridge": (lambda: KernelRidge(kernel="rbf"), MACHINE),
}


@pytest.mark.parametrize("name", REGRESSORS)
def test_numbers_are_scores_around_their_median(name: str) -> None:
    make, error = REGRESSORS[name]
    frame = people()
    model = make_pipeline(columns(sparse_threshold=0), make()).fit(frame, worth(frame))
    table, codes = coded(frame)
    predictor = Predictor(model, table)
    predictor.learn_numbers(codes)
    found = read_scorer(model, predictor, codes, CONFIG)
    check_read(found, predictor, frame, error)
    assert found.scorer.outputs == 1


# -- missing values --------------------------------------------------------------------------------------------------------


def with_gaps(words: str = "str", seed: int = 4) -> pd.DataFrame:
    frame = people(600, words=words).drop(columns="owner").astype({"age": np.float64})
    rng = np.random.default_rng(seed)
    for name in ("age", "debt", "years", "land"):
        frame[name] = frame[name].mask(rng.random(len(frame)) < 0.2)
    return frame


def truth(frame: pd.DataFrame, classes: int = 2) -> np.ndarray:
    worth = frame["age"].fillna(90) * 0.05 - frame["debt"].fillna(5) * 0.08 + 0.9 * (frame["land"] == "south").astype(float)
    return np.digitize(worth, [1.4] if classes == 2 else [0.9, 1.9])


def imputed(**options: Any) -> Any:
    return make_column_transformer(
        (
            make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
            make_column_selector(dtype_include="number"),
        ),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        **options,
    )


def left_missing() -> Any:
    return make_column_transformer(
        ("passthrough", make_column_selector(dtype_include="number")),
        (OrdinalEncoder(encoded_missing_value=np.nan), make_column_selector(dtype_exclude="number")),
    )


WITH_GAPS: dict[str, tuple[Callable[[], Any], float]] = {
    "logistic, imputed": (lambda: make_pipeline(imputed(), LogisticRegression()), DOUBLE),
    "network, imputed": (lambda: make_pipeline(imputed(), MLPClassifier((8,), max_iter=30, random_state=0)), DOUBLE),
    "forest, imputed": (lambda: make_pipeline(imputed(), RandomForestClassifier(10, random_state=0)), DOUBLE),
    "xgboost, imputed and sparse": (lambda: make_pipeline(imputed(sparse_threshold=1.0), boosted()), SINGLE),
    "forest": (lambda: make_pipeline(left_missing(), RandomForestClassifier(10, random_state=0)), DOUBLE),
    "histogram boosting": (lambda: make_pipeline(left_missing(), HistGradientBoostingClassifier(max_iter=15)), DOUBLE),
    "xgboost": (lambda: make_pipeline(left_missing(), boosted()), SINGLE),
    "lightgbm": (lambda: make_pipeline(left_missing(), light()), DOUBLE),
    "lightgbm, zeros missing": (lambda: make_pipeline(left_missing(), light(zero_as_missing=True)), DOUBLE),
    "lightgbm, none missing": (lambda: make_pipeline(left_missing(), light(use_missing=False)), DOUBLE),
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", WITH_GAPS)
def test_missing_values_go_where_the_model_sends_them(name: str, classes: int) -> None:
    make, error = WITH_GAPS[name]
    frame = with_gaps()
    model = make().fit(frame, truth(frame, classes))
    found = check(model, frame, error)
    missing = drawn(frame, read(model, frame)[1])
    assert (missing == MISSING).any(axis=0).tolist() == [True, False, True, True]
    assert (missing[:, 1] == len(LAND)).any()
    assert found.agreement == 1.0


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "histogram boosting"])
def test_missing_categories_and_categories_as_they_are(name: str) -> None:
    frame = with_gaps(words="category")
    model = {
        "xgboost": lambda: boosted(enable_categorical=True, max_cat_to_onehot=2),
        "lightgbm": lambda: light(min_data_per_group=5),
        "histogram boosting": lambda: HistGradientBoostingClassifier(max_iter=15),
    }[name]()
    check(model.fit(frame, truth(frame)), frame, SINGLE if name == "xgboost" else DOUBLE)


def test_more_categories_than_bits_of_a_word() -> None:
    rng = np.random.default_rng(0)
    names = [f"c{k}" for k in range(150)]
    frame = pd.DataFrame({"kind": pd.Categorical(rng.choice(names, 3000), names), "size": rng.normal(size=3000).round(2)})
    truth = ((frame["kind"].cat.codes % 7 < 3) ^ (frame["size"] > 0)).astype(int)
    for model, error in (
        (boosted(enable_categorical=True, max_cat_to_onehot=2), SINGLE),
        (light(min_data_per_group=5), DOUBLE),
        (HistGradientBoostingClassifier(max_iter=15), DOUBLE),
    ):
        found = check(model.fit(frame, truth), frame, error)
        assert (found.scorer.trees.categories >= 0).any()


def test_zeros_that_a_sparse_matrix_leaves_out_are_missing() -> None:
    rng = np.random.default_rng(3)
    frame = people(600)
    for name in ("debt", "years"):
        frame[name] = (frame[name] - frame[name].mean()).round(0).where(rng.random(600) < 0.5, 0.0)
    steps = columns("passthrough", sparse_threshold=1.0)
    truth = ((frame["debt"] == 0) ^ (frame["years"] > 0) ^ (frame["age"] > 40)).astype(int)
    check(make_pipeline(steps, boosted()).fit(frame, truth), frame, SINGLE)


def test_a_number_that_is_missing_or_one_value() -> None:
    gone = np.random.default_rng(1).random(600) < 0.4
    frame = with_gaps().drop(columns="land").assign(one=np.where(gone, np.nan, 7.0))
    model = HistGradientBoostingClassifier(max_iter=15).fit(frame, gone ^ (frame["debt"] > 15).to_numpy())
    found = check(model, frame, DOUBLE)
    assert 3 in found.scorer.trees.feature


@pytest.mark.parametrize(
    "last", [LogisticRegression(), MLPClassifier((4,), max_iter=50, random_state=0)], ids=["linear", "network"]
)
def test_a_whole_number_that_is_the_same_in_all_rows(last: Any) -> None:
    frame = people(400).drop(columns="land").assign(one=0)
    model = make_pipeline(StandardScaler(), last).fit(frame, frame["debt"] > frame["debt"].median())
    features = [*Schema.infer(frame.drop(columns="one")).features, Feature("one", "numeric", integer=True, lower=0, upper=0)]
    table, codes = coded(frame, Schema(tuple(features)))
    assert "one" in table.schema.names
    found = read_scorer(model, Predictor(model, table, tuple(model.classes_), True), codes, CONFIG)
    assert found.scorer.exact


# -- boosters, linear models and networks ----------------------------------------------------------------------------------


def native(name: str, frame: pd.DataFrame, truth: np.ndarray) -> Any:
    classes = {} if name.startswith("binary") else {"num_class": 3}
    if ":" in name:
        data = xgboost.DMatrix(frame, label=truth, enable_categorical=True)
        return xgboost.train({"objective": name, "max_depth": 4, "nthread": 1, **classes}, data, 15)
    data = lightgbm.Dataset(frame, label=truth)
    return lightgbm.train({"objective": name, "verbose": -1, "num_threads": 1, "sigmoid": 0.7, **classes}, data, 15)


@pytest.mark.parametrize(
    "name",
    [
        "binary:logistic",
        "binary:logitraw",
        "binary:hinge",
        "multi:softprob",
        "multi:softmax",
        "binary",
        "multiclass",
        "multiclassova",
    ],
)
def test_native_boosters(name: str) -> None:
    frame = with_gaps(words="category")
    labels = truth(frame, 2 if name.startswith("binary") else 3)
    model = native(name, frame, labels)
    table, codes = coded(frame)
    predictor = Predictor(model, table, adapt(model).classes_, use_scores=True)  # type: ignore[attr-defined]
    check_read(read_scorer(model, predictor, codes, CONFIG), predictor, frame, SINGLE)


LINEAR: dict[str, Callable[[], Any]] = {
    "vector machine": lambda: LinearSVC(dual=False),
    "ridge": RidgeClassifier,
    "descent": lambda: SGDClassifier(random_state=0),
    "descent with chances": lambda: SGDClassifier(loss="log_loss", alpha=0.01, random_state=0),
    "perceptron": lambda: Perceptron(random_state=0),
    "discriminant": LinearDiscriminantAnalysis,
    "logistic": lambda: LogisticRegression(C=10),
    "one against all": lambda: light(objective="multiclassova"),
    "exponential loss": lambda: GradientBoostingClassifier(n_estimators=10, loss="exponential"),
    "logistic units": lambda: MLPClassifier((8, 5), activation="logistic", max_iter=60, random_state=0),
    "no activation": lambda: MLPClassifier((8,), activation="identity", max_iter=30, random_state=0),
    "principal components": lambda: make_pipeline(PCA(4), StandardScaler(), LogisticRegression()),
    "network on components": lambda: make_pipeline(PCA(4), MLPClassifier((8,), max_iter=30, random_state=0)),
    "catboost": cat,
    "gaussian": GaussianNB,
    "quadratic discriminant": lambda: QuadraticDiscriminantAnalysis(reg_param=0.1),
    "search": lambda: GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=2),
}


@pytest.mark.parametrize("classes", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("name", LINEAR)
def test_more_classifiers(name: str, classes: tuple[str, ...]) -> None:
    if (name, len(classes)) in (("exponential loss", 3), ("one against all", 2)):
        pytest.skip("needs another number of classes")
    frame = people()
    model = make_pipeline(columns(sparse_threshold=0), LINEAR[name]()).fit(frame, outcome(frame, classes))
    check(model, frame, DOUBLE)


@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
def test_catboost_itself_with_missing_values(nan_mode: str) -> None:
    frame = with_gaps().drop(columns="land")
    model = cat(nan_mode=nan_mode).fit(frame, truth(with_gaps(), 2))
    table, codes = coded(frame[[*frame.columns[::-1]]])
    predictor = Predictor(model, table, adapt(model).classes_, use_scores=True)  # type: ignore[attr-defined]
    check_read(read_scorer(model, predictor, codes, CONFIG), predictor, frame[[*frame.columns[::-1]]], SINGLE)


TWO_CLASSES: dict[str, Callable[[], Any]] = {
    "radial": lambda: SVC(C=10),
    "radial, scores of a margin": lambda: NuSVC(nu=0.2),
    "quadratic": lambda: SVC(kernel="poly", degree=2, coef0=0.5),
    "cubic": lambda: SVC(kernel="poly"),
    "sigmoid": lambda: SVC(kernel="sigmoid"),
    "linear": lambda: SVC(kernel="linear"),
    "calibrated lines": lambda: CalibratedClassifierCV(LinearSVC(), cv=3),
    "calibrated machine": lambda: CalibratedClassifierCV(SVC(), cv=3, ensemble=False),
}


@pytest.mark.parametrize("name", TWO_CLASSES)
def test_kernel_machines_and_calibrated_models_of_two_classes(name: str) -> None:
    frame = people()
    model = make_pipeline(columns(sparse_threshold=0), TWO_CLASSES[name]()).fit(frame, outcome(frame, TWO))
    # The smaller of two probabilities is what the larger leaves.
    check(model, frame, SINGLE if name == "calibrated lines" else MACHINE)


@pytest.mark.filterwarnings("ignore:.*probability.* parameter:FutureWarning")
def test_labels_of_a_vector_machine_are_those_of_predict_where_probabilities_contradict_them() -> None:
    frame = numbers()
    noisy = np.where(np.random.default_rng(0).random(len(frame)) < 0.3, TWO[0], outcome(frame, TWO))
    model = make_pipeline(StandardScaler(), SVC(probability=True, random_state=0)).fit(frame, noisy)
    found, predictor, codes = read(model, frame)
    rows = drawn(frame, predictor)
    labels, expected = predictor.predict_labels(predictor.table.frame(rows)), predictor.evaluate(rows)
    assert (labels != expected.classes).any()
    predictions = found.reader.predictions(oracle(found.scorer, rows))
    assert (predictions.classes == labels).all()
    assert predictions.scores is not None
    assert expected.scores is not None
    assert np.abs(np.exp(predictions.scores) - np.exp(expected.scores)).max() < MACHINE
    turned = read_scorer(model, Predictor(model, predictor.table, predictor.classes[::-1]), codes, CONFIG)
    assert (turned.reader.predictions(oracle(turned.scorer, rows)).classes == 1 - labels).all()


def test_distances_far_from_all_support_vectors_are_exact() -> None:
    frame = numbers()
    model = SVC(gamma=50.0).fit(frame, outcome(frame))
    check(model, frame, MACHINE)


@pytest.mark.parametrize("make", [lambda: RandomForestClassifier(11, max_depth=6, random_state=0), LogisticRegression, light])
@pytest.mark.parametrize("classes", [TWO, THREE], ids=["two", "three"])
def test_classes_stand_in_the_order_of_the_predictor(make: Callable[[], Any], classes: tuple[str, ...]) -> None:
    frame = numbers()
    model = make().fit(frame, outcome(frame, classes))
    table, codes = coded(frame)
    for order in (classes, classes[::-1]):
        found = read_scorer(model, Predictor(model, table, order), codes, CONFIG)
        labels = np.array(order)[found.reader.predictions(oracle(found.scorer, codes)).classes]
        assert (labels == model.predict(frame)).mean() > 0.995


def found_outputs(found: ReadScorer, codes: np.ndarray) -> np.ndarray:
    from tests.models.compiled.oracle import oracle

    return oracle(found.scorer, codes)


def test_classes_with_other_names() -> None:
    frame = people()
    model = RenamedModel(make_pipeline(columns(sparse_threshold=0), boosted()).fit(frame, outcome(frame)), TWO)
    table, codes = coded(frame)
    predictor = Predictor(model, table, TWO, use_scores=True)
    check_read(read_scorer(model, predictor, codes, CONFIG), predictor, frame, SINGLE)


@pytest.mark.parametrize("bend", [FunctionTransformer(np.log1p), QuantileTransformer(n_quantiles=40)], ids=["log", "ranks"])
def test_trees_behind_a_curve_are_exact_and_networks_are_not(bend: Any) -> None:
    frame = numbers().clip(lower=0.0).astype({"age": int, "debt": float, "years": np.float32})
    for last, exact in ((boosted(), True), (RandomForestClassifier(10, random_state=0), True), (LogisticRegression(), False)):
        found, predictor, codes = read(make_pipeline(bend, last).fit(frame, outcome(frame)), frame)
        assert found.scorer.exact == exact
        if exact:
            check_equal(found, predictor, at_edges(found, predictor, codes), SINGLE)
        else:
            assert found.scorer.error < 1e-2


# -- what is refused -------------------------------------------------------------------------------------------------------


def test_what_has_no_structure_is_refused_with_a_reason() -> None:
    frame = numbers()
    for model, reason in (
        (KNeighborsClassifier(), "its structure cannot be read (KNeighborsClassifier)"),
        (BaggingClassifier(LogisticRegression(), n_estimators=3), "its structure cannot be read (BaggingClassifier)"),
        (VotingClassifier([("forest", RandomForestClassifier(3))]), "its structure cannot be read (VotingClassifier)"),
        (AdaBoostClassifier(LogisticRegression(), n_estimators=3), "its structure cannot be read (AdaBoostClassifier)"),
        (GradientBoostingClassifier(n_estimators=3, init=LogisticRegression()), "init"),
        (SGDClassifier(loss="modified_huber"), "modified_huber"),
        (make_pipeline(FunctionTransformer(np.cos), boosted()), "rises and falls"),
        (light(linear_tree=True), "linear_tree"),
        (cat(grow_policy="Lossguide"), "grow_policy"),
        (SVC(kernel="poly", degree=5), "poly"),
        (CalibratedClassifierCV(LinearSVC(), method="isotonic", cv=2), "CalibratedClassifierCV"),
    ):
        model.fit(frame, outcome(frame))
        with pytest.raises(NotCompiledError) as error:
            read(model, frame)
        assert reason in str(error.value)


@pytest.mark.parametrize(
    "model", [PoissonRegressor(), XGBRegressor(objective="count:poisson"), TransformedTargetRegressor(LinearRegression())]
)
def test_predictions_that_are_no_sum_are_refused(model: Any) -> None:
    frame = numbers()
    model.fit(frame, np.abs(worth(frame.assign(land="", owner=True))))
    table, codes = coded(frame)
    predictor = Predictor(model, table)
    predictor.learn_numbers(codes)
    with pytest.raises(NotCompiledError):
        read_scorer(model, predictor, codes, CONFIG)


def test_values_filled_in_from_other_columns_are_refused() -> None:
    frame = with_gaps().drop(columns="land")
    model = make_pipeline(KNNImputer(), LogisticRegression()).fit(frame, truth(with_gaps()))
    with pytest.raises(NotCompiledError, match=r"mix columns|separately"):
        read(model, frame)
