"""ONNX models: one input a column or one matrix, text and numbers, labels and chances in every form."""

import copy
import pickle
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

from fasterce import FasterCE, Schema
from fasterce.errors import InputError, ModelError
from fasterce.models.adapters import OnnxModel, adapt
from fasterce.testing import check_adapter
from tests.models.adapters.tables import IDENTITY, applicants, check_explained, explainer, strength, three, two

skl2onnx = pytest.importorskip("skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402
from skl2onnx.common.data_types import (  # noqa: E402
    BooleanTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)

X = applicants(300)
NUMBERS = X[["age", "pay", "debt"]]
COLUMNS = [
    ("age", Int64TensorType([None, 1])),
    ("pay", FloatTensorType([None, 1])),
    ("debt", FloatTensorType([None, 1])),
    ("job", StringTensorType([None, 1])),
    ("home", StringTensorType([None, 1])),
    ("spouse", BooleanTensorType([None, 1])),
]


def pipeline(y: Any, last: Any = None) -> Any:
    front = make_column_transformer((OneHotEncoder(), ["job", "home"]), (StandardScaler(), ["age", "pay", "debt"]))
    return make_pipeline(front, LogisticRegression(max_iter=500) if last is None else last).fit(X, y)


def graph(model: Any, inputs: Any = COLUMNS, zipmap: Any = False) -> bytes:
    used = [held for held in inputs if held[0] != "spouse"]
    options = {id(model): {"zipmap": zipmap}} if hasattr(model, "classes_") else None
    return bytes(skl2onnx.convert_sklearn(model, initial_types=used, options=options, target_opset=17).SerializeToString())


def agreeing(adapted: Any, model: Any, frame: pd.DataFrame) -> float:
    return float(np.mean(adapted.predict(frame) == model.predict(frame)))


@pytest.mark.parametrize("zipmap", [False, True])
@pytest.mark.parametrize("names", [(0, 1), ("no", "yes"), (3, 7)])
def test_one_input_a_column(names: Any, zipmap: bool) -> None:
    model = pipeline(two(X, names))
    adapted = OnnxModel(graph(model, zipmap=zipmap))
    assert adapted.classes_.tolist() == list(names)
    assert agreeing(adapted, model, X) == 1
    np.testing.assert_allclose(adapted.predict_proba(X), model.predict_proba(X), atol=1e-5)
    check_adapter(adapted, X.head(60))


def test_counterfactuals_of_three_classes_are_verified() -> None:
    model = pipeline(three(X, ("bad", "fair", "good")))
    adapted = OnnxModel(graph(model))
    assert adapted.classes_.tolist() == ["bad", "fair", "good"]
    check_adapter(adapted, X.head(60))
    check_explained(adapted, X, adapted.predict, target="good")


@pytest.mark.parametrize(
    "last", [MLPClassifier((8,), max_iter=300, random_state=0), RandomForestClassifier(9, random_state=0)]
)
def test_the_classes_of_other_estimators_are_found(last: Any) -> None:
    model = pipeline(two(X, ("no", "yes")), last)
    adapted = OnnxModel(graph(model))
    assert adapted.classes_.tolist() == ["no", "yes"]
    # A forest exported in single precision may part from itself on values at a threshold.
    assert np.isclose(adapted.predict_proba(X), model.predict_proba(X), atol=1e-4).mean() > 0.95


def test_a_row_has_the_same_chances_to_the_bit_alone_and_among_others() -> None:
    adapted = OnnxModel(graph(pipeline(two(X), MLPClassifier((8,), max_iter=100, random_state=0))))
    together = adapted.predict_proba(X)
    np.testing.assert_array_equal(
        np.concatenate([adapted.predict_proba(X.iloc[[k]]) for k in range(0, 300, 29)]), together[::29]
    )


@pytest.mark.parametrize("kind", [FloatTensorType, Int64TensorType])
def test_one_matrix(kind: Any) -> None:
    table = NUMBERS if kind is FloatTensorType else NUMBERS.round().astype(int)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table.to_numpy(), two(X))
    adapted = OnnxModel(graph(model, [("X", kind([None, 3]))]))
    assert np.mean(adapted.predict(table) == model.predict(table.to_numpy())) == 1
    check_adapter(adapted, table.head(60))
    mixed = X.assign(age=table["age"], pay=table["pay"], debt=table["debt"])[["job", "age", "pay", "home", "debt"]]
    assert (adapted.predict(mixed) == adapted.predict(table)).all()
    with pytest.raises(InputError, match=r"takes 3 columns in its input 'X'; got 2"):
        adapted.predict(table[["age", "pay"]])


def test_one_matrix_of_text() -> None:
    words = X[["job", "home"]]
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(words.to_numpy(), two(X, ("no", "yes")))
    adapted = OnnxModel(graph(model, [("words", StringTensorType([None, 2]))]))
    assert (adapted.predict(words) == model.predict(words.to_numpy())).all()
    check_adapter(adapted, words)


def test_a_session_of_the_users_own() -> None:
    model = pipeline(two(X))
    session = onnxruntime.InferenceSession(graph(model), providers=["CPUExecutionProvider"])
    assert agreeing(adapt(session), model, X) == 1
    check_adapter(session, X.head(40))
    check_explained(session, X, model.predict)


def test_a_session_with_classes_of_text_is_used_by_labels_unless_they_are_named() -> None:
    model = pipeline(two(X, ("no", "yes")))
    session = onnxruntime.InferenceSession(graph(model), providers=["CPUExecutionProvider"])
    assert not hasattr(OnnxModel(session), "predict_proba")
    assert agreeing(OnnxModel(session), model, X) == 1
    named = OnnxModel(session, classes=["no", "yes"])
    np.testing.assert_allclose(named.predict_proba(X), model.predict_proba(X), atol=1e-5)
    mapped = onnxruntime.InferenceSession(graph(model, zipmap=True), providers=["CPUExecutionProvider"])
    turned = OnnxModel(mapped, classes=["yes", "no"])
    np.testing.assert_allclose(turned.predict_proba(X)[:, ::-1], model.predict_proba(X), atol=1e-5)
    numbers = make_pipeline(StandardScaler(), LogisticRegression()).fit(NUMBERS.to_numpy(), two(X, ("no", "yes")))
    shown = onnxruntime.InferenceSession(
        graph(numbers, [("X", FloatTensorType([None, 3]))], zipmap=True), providers=["CPUExecutionProvider"]
    )
    assert OnnxModel(shown).classes_.tolist() == ["no", "yes"], "any row shows them"


def test_a_model_proto_is_known_by_its_type() -> None:
    model = pipeline(two(X))
    assert agreeing(adapt(onnx.load_model_from_string(graph(model))), model, X) == 1


def test_named_classes() -> None:
    adapted = OnnxModel(graph(pipeline(two(X))), classes=["refused", "granted"])
    assert set(adapted.predict(X)) == {"refused", "granted"}
    check_adapter(adapted, X.head(40))
    with pytest.raises(InputError, match="the 2 classes of the model"):
        OnnxModel(graph(pipeline(two(X))), classes=["a", "b", "c"])


def test_a_regression() -> None:
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(NUMBERS.to_numpy(), strength(X))
    adapted = OnnxModel(graph(model, [("X", FloatTensorType([None, 3]))]))
    assert adapted.predicts_numbers
    check_adapter(adapted, NUMBERS.head(60))
    result = explainer(adapted, NUMBERS).explain(NUMBERS.head(6), target=(45.0, None))
    counterfactuals = result.counterfactuals[result.status == "found"]
    assert len(counterfactuals) >= 2
    assert (model.predict(counterfactuals.to_numpy()) > 44.99).all()


def hand_made(outputs: int, shape: Any = (None, 3), activation: str | None = None) -> bytes:
    """x W + b, as exported from a network."""
    rng = np.random.default_rng(0)
    weights = helper.make_tensor("W", TensorProto.FLOAT, (3, outputs), rng.normal(size=3 * outputs).astype(np.float32) / 20)
    nodes = [helper.make_node("MatMul", ["x", "W"], ["logits" if activation else "y"])]
    if activation:
        nodes.append(helper.make_node(activation, ["logits"], ["y"]))
    held = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (shape[0], outputs))],
        [weights],
    )
    model = helper.make_model(held, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return bytes(model.SerializeToString())


def test_only_chances() -> None:
    adapted = OnnxModel(hand_made(3, activation="Softmax"), classes=["a", "b", "c"])
    check_adapter(adapted, NUMBERS.head(60))
    assert OnnxModel(hand_made(3, activation="Softmax")).classes_.tolist() == [0, 1, 2]
    one = OnnxModel(hand_made(1, activation="Sigmoid"), classes=["no", "yes"])
    check_adapter(one, NUMBERS.head(60))


def test_only_logits() -> None:
    bare = OnnxModel(hand_made(3))
    with pytest.raises(ModelError, match="activation='softmax'"):
        bare.predict_proba(NUMBERS)
    with_softmax = OnnxModel(hand_made(3), activation="softmax")
    assert (with_softmax.predict(NUMBERS) == bare.predict(NUMBERS)).all()
    check_adapter(with_softmax, NUMBERS.head(60))
    check_adapter(OnnxModel(hand_made(1), activation="sigmoid"), NUMBERS.head(60))


def test_a_model_that_fixes_its_number_of_rows() -> None:
    one, any_number = OnnxModel(hand_made(3, (1, 3))), OnnxModel(hand_made(3))
    assert (one.predict(NUMBERS) == any_number.predict(NUMBERS)).all()


def test_several_wide_inputs_are_reported() -> None:
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Concat", ["money", "years"], ["both"], axis=1),
        helper.make_node("MatMul", ["both", "W"], ["y"]),
    ]
    held = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("money", TensorProto.FLOAT, (None, 2)),
            helper.make_tensor_value_info("years", TensorProto.FLOAT, (None, 1)),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (None, 2))],
        [helper.make_tensor("W", TensorProto.FLOAT, (3, 2), rng.normal(size=6).astype(np.float32) / 20)],
    )
    made = helper.make_model(held, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    content = made.SerializeToString()
    with pytest.raises(InputError, match=r"needs column 'money'|for input 'money'"):
        OnnxModel(content).predict(NUMBERS)
    adapted = OnnxModel(content, inputs={"money": ["pay", "debt"], "years": ["age"]}, activation="softmax")
    check_adapter(adapted, NUMBERS.head(60))
    with pytest.raises(InputError, match="Did you mean 'pay'"):
        OnnxModel(content, inputs={"money": ["payy", "debt"], "years": ["age"]}).predict(NUMBERS)


def test_missing_values() -> None:
    adapted = OnnxModel(graph(pipeline(two(X))))
    holes = X.head(4).astype({"age": "Int64"})
    holes.loc[0, "age"] = pd.NA
    with pytest.raises(InputError, match=r"'age' of the ONNX model takes no missing values"):
        adapted.predict(holes)
    with pytest.raises(InputError, match=r"must not be missing.*column 'job'.*missing_text="):
        adapted.predict(X.head(4).assign(job=[None, "nurse", "smith", "clerk"]))
    filled = OnnxModel(graph(pipeline(two(X))), missing_text="nurse")
    same = filled.predict_proba(X.head(4).assign(job=[None, "nurse", "smith", "clerk"]))
    np.testing.assert_array_equal(same, adapted.predict_proba(X.head(4).assign(job=["nurse", "nurse", "smith", "clerk"])))
    table = NUMBERS.assign(pay=NUMBERS["pay"].mask(NUMBERS["pay"] > 60))
    assert np.isnan(OnnxModel(hand_made(1)).predict(table)).sum() == (NUMBERS["pay"] > 60).sum()


def test_what_a_model_must_be_given() -> None:
    adapted = OnnxModel(graph(pipeline(two(X))))
    with pytest.raises(InputError, match=r"needs column 'debt'.*Did you mean 'debts'"):
        adapted.predict(X.rename(columns={"debt": "debts"}))
    with pytest.raises(InputError, match=r"'age' of the ONNX model takes whole numbers"):
        adapted.predict(X.assign(age=X["age"] + 0.5))
    with pytest.raises(InputError, match=r"numbers only; got text in column 'pay'"):
        adapted.predict(X.assign(pay="much"))
    with pytest.raises(InputError, match="a path, bytes or an InferenceSession; got int"):
        OnnxModel(3)
    with pytest.raises(ModelError, match="must be an ONNX model"):
        OnnxModel(b"no such thing")
    with pytest.raises(InputError, match="must be readable"):
        OnnxModel("/no/such/file.onnx")


def test_it_can_be_copied_and_pickled() -> None:
    adapted = OnnxModel(graph(pipeline(two(X))), classes=["refused", "granted"])
    assert copy.deepcopy(adapted) is adapted
    assert (pickle.loads(pickle.dumps(adapted)).predict(X) == adapted.predict(X)).all()
    session = onnxruntime.InferenceSession(graph(pipeline(two(X))), providers=["CPUExecutionProvider"])
    with pytest.raises(TypeError, match="make it from a path or bytes"):
        pickle.dumps(OnnxModel(session))


def test_columns_that_are_categories_and_unknown_text() -> None:
    adapted = OnnxModel(graph(pipeline(two(X))))
    assert (adapted.predict(X.astype({"job": "category"})) == adapted.predict(X)).all()
    X_named = X.astype({"job": "category", "home": object})
    explained = (
        FasterCE(adapted, Schema.infer(X_named), autoencoder=IDENTITY, compile="never").fit(X_named).explain(X_named.head(3))
    )
    assert (explained.status == "found").all()
