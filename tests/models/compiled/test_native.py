"""ONNX models as their own twins: the same bits as the model gives for a frame, or not compiled and a sentence."""

import copy
import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fasterce
from fasterce import FasterCE, Schema, records
from fasterce.config import Config
from fasterce.data.table import Table
from fasterce.models.adapters import OnnxModel
from fasterce.models.compiled import CompiledModel, build
from fasterce.models.compiled.native import direct_model
from fasterce.models.files.load import load_model
from fasterce.models.predictions import FAILED
from fasterce.models.predictor import Predictor
from tests.models.adapters.tables import IDENTITY, applicants, strength, three, two
from tests.models.compiled.models import coded, shuffled

pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper
from onnxruntime import InferenceSession
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType

from tests.models.adapters.test_onnx import graph, hand_made

X = applicants(300)
NUMBERS = X[["age", "pay", "debt"]]
WHOLE = NUMBERS.round().astype(int)
SPREAD = Schema.infer(NUMBERS)


@cache
def pipeline(kind: str = "logistic", names: Any = (0, 1)) -> Any:
    last = {
        "logistic": LogisticRegression(max_iter=500),
        "network": MLPClassifier((8,), max_iter=60, random_state=0),
        "forest": RandomForestClassifier(7, random_state=0),
    }[kind]
    preprocessor = make_column_transformer((OneHotEncoder(), ["job", "home"]), (StandardScaler(), ["age", "pay", "debt"]))
    return make_pipeline(preprocessor, last).fit(X, two(X, names) if len(names) == 2 else three(X, names))


def on_matrix(table: pd.DataFrame, kind: Any) -> bytes:
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table.to_numpy(), two(X))
    return graph(model, [("X", kind([None, 3]))])


def on_words() -> bytes:
    words = X[["job", "home"]]
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(words.to_numpy(), two(X, ("no", "yes")))
    return graph(model, [("words", StringTensorType([None, 2]))])


def wide_inputs() -> bytes:
    """Money and years in inputs of two columns and of one, and whether there is a spouse in a vector of booleans."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=8).astype(np.float32) / 20
    nodes = [
        helper.make_node("Cast", ["spouse"], ["said"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["said", "one"], ["column"]),
        helper.make_node("Concat", ["money", "years", "column"], ["both"], axis=1),
        helper.make_node("MatMul", ["both", "W"], ["y"]),
    ]
    held = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("money", TensorProto.FLOAT, (None, 2)),
            helper.make_tensor_value_info("years", TensorProto.FLOAT, (None, 1)),
            helper.make_tensor_value_info("spouse", TensorProto.BOOL, (None,)),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (None, 2))],
        [
            helper.make_tensor("W", TensorProto.FLOAT, (4, 2), weights),
            helper.make_tensor("one", TensorProto.INT64, (1,), [1]),
        ],
    )
    made = helper.make_model(held, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    return bytes(made.SerializeToString())


# The user's own sessions do not give their graphs away.
UNREAD = {"rows fixed", "a session"}


def session(content: bytes) -> InferenceSession:
    return InferenceSession(content, providers=["CPUExecutionProvider"])


INPUTS = {"money": ["pay", "debt"], "years": ["age"], "spouse": ["spouse"]}
MODELS: dict[str, tuple[Callable[[], OnnxModel], pd.DataFrame]] = {
    "columns": (lambda: OnnxModel(graph(pipeline())), X),
    "dictionaries": (lambda: OnnxModel(graph(pipeline(), zipmap=True)), X),
    "dictionaries of words": (lambda: OnnxModel(graph(pipeline(names=("no", "yes")), zipmap=True)), X),
    "named": (lambda: OnnxModel(graph(pipeline()), classes=["refused", "granted"]), X),
    "three": (lambda: OnnxModel(graph(pipeline(names=("bad", "fair", "good")))), X),
    "network": (lambda: OnnxModel(graph(pipeline("network", ("no", "yes")))), X),
    "forest": (lambda: OnnxModel(graph(pipeline("forest"))), X),
    "categories": (lambda: OnnxModel(graph(pipeline())), X.astype({"job": "category", "home": object, "pay": np.float32})),
    "nullable": (lambda: OnnxModel(graph(pipeline())), X.astype({"age": "Int64", "job": "string", "spouse": "boolean"})),
    "matrix": (lambda: OnnxModel(on_matrix(NUMBERS, FloatTensorType)), NUMBERS),
    "whole matrix": (lambda: OnnxModel(on_matrix(WHOLE, Int64TensorType)), WHOLE),
    "matrix of text": (lambda: OnnxModel(on_words()), X[["job", "home"]]),
    "chances": (lambda: OnnxModel(hand_made(3, activation="Softmax"), classes=["a", "b", "c"]), NUMBERS),
    "one chance": (lambda: OnnxModel(hand_made(1, activation="Sigmoid"), classes=["no", "yes"]), NUMBERS),
    "logits": (lambda: OnnxModel(hand_made(3), activation="softmax"), NUMBERS),
    "one logit": (lambda: OnnxModel(hand_made(1), activation="sigmoid"), NUMBERS),
    "rows fixed": (lambda: OnnxModel(hand_made(3, (5, 3)), activation="softmax"), NUMBERS),
    "wide inputs": (lambda: OnnxModel(wide_inputs(), inputs=INPUTS, activation="softmax"), X),
    "a session": (lambda: OnnxModel(session(graph(pipeline())), classes=[0, 1]), X),
}


def found(model: Any, frame: pd.DataFrame, use_scores: bool, classes: Any = None) -> tuple[CompiledModel, Predictor]:
    table, codes = coded(frame)
    predictor = Predictor(model, table, classes or tuple(model.classes_), use_scores)
    compiled, why = build(model, table, predictor.classes, codes, use_scores)
    assert compiled is not None, why
    return compiled, predictor


def evaluated(predictor: Predictor, frame: pd.DataFrame) -> np.ndarray:
    """New rows, and numbers as no table has them."""
    codes = predictor.table.read(shuffled(frame)).codes
    for j, feature in enumerate(predictor.table.schema.features):
        if feature.numeric and not feature.integer:
            codes[::2, j] += 0.12345
    return codes


@pytest.mark.parametrize("name", MODELS)
def test_the_structure_of_a_graph_is_read(name: str) -> None:
    make, frame = MODELS[name]
    compiled, predictor = found(make(), frame, True)
    assert compiled.kind == ("onnx: the model itself" if name in UNREAD else "exact: ONNX")
    codes = evaluated(predictor, frame)
    predictions, wanted = compiled.evaluate(codes), predictor.evaluate(codes)
    assert predictions.scores is not None
    assert wanted.scores is not None
    np.testing.assert_allclose(np.exp(predictions.scores), np.exp(wanted.scores), atol=1e-5)


@pytest.mark.usefixtures("no_scorer")
@pytest.mark.parametrize("name", MODELS)
def test_the_same_scores_and_labels_to_the_bit(name: str) -> None:
    make, frame = MODELS[name]
    model = make()
    compiled, predictor = found(model, frame, True)
    assert (compiled.kind, compiled.agreement) == ("onnx: the model itself", 1.0)
    codes = evaluated(predictor, frame)
    predictions, wanted = compiled.evaluate(codes), predictor.evaluate(codes)
    np.testing.assert_array_equal(predictions.scores, wanted.scores)
    assert len(np.unique(wanted.classes)) > 1
    assert (predictions.classes == wanted.classes).all()
    by_label, labelled = found(model, frame, False)
    alone = by_label.evaluate(codes)
    assert alone.scores is None
    assert (alone.classes == labelled.evaluate(codes).classes).all()


@pytest.mark.parametrize("name", ["columns", "network", "dictionaries", "rows fixed"])
def test_a_row_alone_and_among_others(name: str) -> None:
    make, frame = MODELS[name]
    compiled, predictor = found(make(), frame, True)
    codes = evaluated(predictor, frame)
    many: Any = compiled.evaluate(np.tile(codes, (6, 1)))
    assert compiled.usage.rows == 6 * len(codes)
    for k in range(0, len(codes), 37):
        alone = compiled.evaluate(codes[[k]]).scores
        assert alone is not None
        np.testing.assert_array_equal(alone[0], many.scores[k])
        np.testing.assert_array_equal(
            compiled.evaluate(codes[k : k + 3]).scores, many.scores[len(codes) + k : len(codes) + k + 3]
        )


def test_a_session_without_class_names_is_compiled_by_labels() -> None:
    own = session(graph(pipeline(names=("no", "yes"))))
    compiled, predictor = found(own, X, False, classes=("no", "yes"))
    codes = evaluated(predictor, X)
    assert (compiled.evaluate(codes).classes == predictor.evaluate(codes).classes).all()


def test_a_matrix_in_a_mixed_table_warns_no_more_than_the_model() -> None:
    mixed = X[["job", "age", "pay", "home", "debt"]]
    model = OnnxModel(on_matrix(NUMBERS, FloatTensorType))
    with pytest.warns(UserWarning, match="text in 'job', 'home' is not used"):
        compiled, predictor = found(model, mixed, True)
    codes = evaluated(predictor, mixed)
    with pytest.warns(UserWarning, match="is not used"):
        wanted = predictor.evaluate(codes).scores
    scores = compiled.evaluate(codes).scores
    assert scores is not None
    assert wanted is not None
    np.testing.assert_allclose(np.exp(scores), np.exp(wanted), atol=1e-6)


class Moody:
    """A session that fails on runs with anybody over 75, and says so."""

    def __init__(self, content: bytes) -> None:
        self.inner = session(content)
        self.get_inputs, self.get_outputs = self.inner.get_inputs, self.inner.get_outputs

    def run(self, names: Any, fed: Any, *more: Any) -> Any:
        if (fed["x"][:, 0] > 75).any():
            raise RuntimeError("too old")
        return self.inner.run(names, fed, *more)


@pytest.mark.parametrize("use_scores", [True, False])
def test_rows_the_model_fails_on_spoil_no_others(use_scores: bool) -> None:
    model = OnnxModel(Moody(hand_made(3)), classes=["a", "b", "c"], activation="softmax")
    young = NUMBERS[NUMBERS["age"] <= 75]
    table, codes = coded(young, SPREAD)
    compiled, why = build(model, table, ("a", "b", "c"), codes, use_scores)
    assert compiled is not None, why
    everybody = table.read(NUMBERS).codes
    old = everybody[:, 0] > 75
    predictions = compiled.evaluate(everybody)
    assert old.any()
    assert ((predictions.classes == FAILED) == old).all()
    assert (predictions.classes[~old] == compiled.evaluate(everybody[~old]).classes).all()
    assert compiled.evaluate(everybody[old][:1]).classes.tolist() == [FAILED]


def refusing_encoder() -> OnnxModel:
    preprocessor = make_column_transformer((OneHotEncoder(handle_unknown="error"), ["job"]))
    few = X[X["job"] != "smith"]
    model = make_pipeline(preprocessor, LogisticRegression()).fit(few, np.where(few["job"] == "nurse", 1, 0))
    return OnnxModel(graph(model, [("job", StringTensorType([None, 1]))]))


def number_as_text() -> OnnxModel:
    frame = X.assign(age=X["age"].astype(str))
    model = make_pipeline(make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["age"])), LogisticRegression())
    return OnnxModel(graph(model.fit(frame, two(X)), [("age", StringTensorType([None, 1]))]))


@pytest.mark.usefixtures("no_scorer")
@pytest.mark.parametrize(
    ("make", "frame", "why"),
    [
        (lambda: OnnxModel(graph(pipeline())), X.assign(pay=X["pay"].mask(X["pay"] > 70)), "values may be missing in 'pay'"),
        (refusing_encoder, X[["job", "pay"]].head(40), "The ONNX model failed"),
        (number_as_text, X[["age", "pay"]], "its input 'age' is text and column 'age' has numbers"),
        (lambda: OnnxModel(graph(pipeline())), X.assign(age=X["age"] + 0.0), None),
        (lambda: OnnxModel(graph(pipeline())), X.assign(age=X["age"] + 0.5), "it returns no prediction itself"),
    ],
    ids=["gaps", "a category the graph refuses", "numbers as text", "whole numbers as floats", "fractions for whole numbers"],
)
def test_no_compiled_model_and_a_reason(make: Callable[[], OnnxModel], frame: pd.DataFrame, why: str | None) -> None:
    table, codes = coded(frame)
    compiled, problem = build(make(), table, (0, 1), codes, True)
    if why is None:
        assert compiled is not None, problem
        return
    assert compiled is None
    assert problem is not None
    assert problem.code == "models.not_compiled"
    assert why in problem.text()


def test_whole_numbers_are_not_made_of_fractions() -> None:
    """The known rows are whole, but the schema lets a search try others, which the model would refuse."""
    frame = X.assign(age=X["age"] + 0.0)
    fractions = Schema.infer(X.assign(age=X["age"] + 0.5))
    table, codes = coded(frame, fractions)
    compiled, problem = build(OnnxModel(graph(pipeline())), table, (0, 1), codes, True)
    assert compiled is None
    assert problem is not None
    assert problem.details["cause"].code == "models.compile_whole_input"


def test_other_classes_than_the_models_are_refused() -> None:
    table, codes = coded(X)
    _, problem = build(OnnxModel(graph(pipeline())), table, (0, 2), codes, True)
    assert problem is not None
    assert problem.details["cause"].code == "models.compile_classes"


def test_it_needs_no_converter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "fasterce.models.compiled.convert", raising=False)
    model = OnnxModel(graph(pipeline()))
    for package in ("skl2onnx", "onnxmltools"):
        monkeypatch.setitem(sys.modules, package, None)
    found(model, X, True)


def test_it_may_be_copied_and_pickled() -> None:
    compiled, predictor = found(OnnxModel(graph(pipeline("network"))), X, True)
    codes = predictor.table.read(X).codes
    for again in (pickle.loads(pickle.dumps(compiled)), copy.deepcopy(compiled)):
        np.testing.assert_array_equal(again.evaluate(codes).scores, compiled.evaluate(codes).scores)


# -- explained -------------------------------------------------------------------------------------------------------------

ROWS = applicants(12, seed=1)


def explained_by(model: Any, compiled: Any, frame: pd.DataFrame = X, **settings: Any) -> FasterCE:
    return FasterCE(
        model, Schema.infer(frame), autoencoder=IDENTITY, compile=compiled, progress=False, config=Config.fast(), **settings
    ).fit(frame)


@pytest.mark.parametrize("scores", ["auto", "never"])
def test_counterfactuals_are_as_near_as_without_and_verified_by_the_model(scores: Any) -> None:
    model = OnnxModel(graph(pipeline("network", ("no", "yes"))))
    compiled_of, without = (explained_by(model, compiled, X.head(150), scores=scores) for compiled in ("auto", "never"))
    assert compiled_of.report_.compiled == "exact: ONNX, agrees on 100.00%"
    assert without.report_.compiled == "none wanted"
    for method in ("sparse", "closest"):
        near, plain = compiled_of.explain(ROWS, method), without.explain(ROWS, method)
        assert near.to_frame()["distance"].mean() <= 1.001 * plain.to_frame()["distance"].mean()
        assert (near.status == "found").all()
        assert near.compiled is not None
        assert (near.usage.calls, near.compiled.kind) == (1, "exact: ONNX")
        assert near.compiled.rows > 0
        assert plain.compiled is None
    long = near.to_frame()
    assert (model.predict(long[list(X.columns)]) == near.target.loc[long["query"]].to_numpy()).all()
    for name in ROWS.index[:3]:
        alone = compiled_of.explain(ROWS.loc[[name]], "closest").to_frame()
        pd.testing.assert_frame_equal(alone.reset_index(drop=True), long[long["query"] == name].reset_index(drop=True))


def test_a_model_that_predicts_numbers_is_read_or_left_alone() -> None:
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(NUMBERS.to_numpy(), strength(X))
    content = graph(model, [("X", FloatTensorType([None, 3]))])
    made = explained_by(OnnxModel(content), "auto", NUMBERS.head(100))
    assert made.report_.compiled == "exact: ONNX, agrees on 100.00%"
    own = explained_by(session(content), "auto", NUMBERS.head(100))
    assert own.state_.compiled is None
    assert own.report_.compiled.startswith("The model cannot be compiled: its structure cannot be read (a session")


def test_a_loaded_explainer_searches_on_the_model_it_is_given(tmp_path: Any) -> None:
    first = tmp_path / "first.onnx"
    first.write_bytes(graph(pipeline("network", ("no", "yes"))))
    loaded = load_model(first)
    made: Any = FasterCE(loaded.model, progress=False, config=Config.fast()).fit(X.head(150))
    made.save(tmp_path / "explainer", model_file=loaded)
    again: Any = fasterce.load(tmp_path / "explainer")
    assert again.state_.compiled.kind == "exact: ONNX"
    pd.testing.assert_frame_equal(again.explain(ROWS).to_frame(), made.explain(ROWS).to_frame())
    other = OnnxModel(graph(pipeline("logistic", ("no", "yes"))))
    with pytest.warns(UserWarning, match="disagrees with"):
        turned: Any = fasterce.load(tmp_path / "explainer", other)
    assert len(made.state_.compiled.scorer.network.width) == 1
    assert len(turned.state_.compiled.scorer.network.width) == 0
    assert (turned.explain(ROWS).prediction == other.predict(ROWS)).all()


@pytest.mark.parametrize("name", MODELS)
def test_codes_give_the_labels_and_probabilities_of_the_frame_to_the_bit(name: str) -> None:
    make, frame = MODELS[name]
    model, (table, codes) = make(), coded(frame)
    direct = direct_model(model, table, codes)
    if name == "categories":
        # Numbers in single precision may be finer in the query than in its codes.
        assert direct is None
        return
    assert direct is not None
    rows = evaluated(Predictor(model, table, tuple(model.classes_), True), frame)
    for part in (rows, rows[:1], rows[3:6]):
        labels, probabilities = direct(part)
        np.testing.assert_array_equal(labels, model.predict(table.frame(part)))
        np.testing.assert_array_equal(probabilities, model.predict_proba(table.frame(part)))


def test_rows_that_are_more_than_their_codes_need_a_frame() -> None:
    model = OnnxModel(graph(pipeline()))
    table, codes = coded(X.assign(pay=X["pay"].where(X["age"] > 20)))
    assert direct_model(model, table, codes) is None
    passed = Table.like(X.assign(who="a"), replace(Schema.infer(X), passthrough=("who",)))
    assert direct_model(model, passed, codes) is None
    assert direct_model(pipeline(), coded(X)[0], coded(X)[1]) is None


def test_one_run_of_the_model_verifies_and_makes_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    model = OnnxModel(graph(pipeline("network", ("no", "yes"))))
    explainer = FasterCE(model, random_state=0, progress=False, config=Config.fast()).fit(X)
    rows = X[model.predict(X) == "no"].head(3)
    records.make(explainer, explainer.explain(rows))
    runs: list[list[str]] = []
    run = OnnxModel._run_block

    def counted(self: OnnxModel, fed: Any, outputs: list[str]) -> list[Any]:
        runs.append(outputs)
        return run(self, fed, outputs)

    monkeypatch.setattr(OnnxModel, "_run_block", counted)
    explanation = explainer.explain(rows)
    made = records.make(explainer, explanation)
    assert len(runs) == explanation.usage.calls == 1
    wanted = model.predict_proba(explanation.counterfactuals[rows.columns])
    assert [one["counterfactuals"][0]["score"]["values"] for one in made] == wanted.tolist()
    assert [one["outcome"]["score"]["values"] for one in made] == model.predict_proba(rows).tolist()
