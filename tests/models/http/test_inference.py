"""Open Inference V2: metadata say what is wanted, one input a column or one matrix, outputs flat or nested."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from fasterce import FasterCE
from fasterce.config import Config
from fasterce.errors import InputError, ModelError
from fasterce.models.http import InferenceModel
from tests.models.http.server import Received, Reply, serving
from tests.samples import people

FRAME = pd.DataFrame({"age": [30, 40], "pay": [0.1, np.nan], "job": ["clerk", "smith"], "own": [True, False]})
NUMBERS = pd.DataFrame({"a": [1, 2, 3], "b": [0.1, 0.2, 0.3]})


def v2(outputs: Any, inputs: Any = (), **more: Any) -> Any:
    """A server of one model with these metadata and this answer."""

    def behave(request: Received) -> Any:
        if request.method == "GET":
            return {"name": "m", "platform": "test", "inputs": list(inputs), "outputs": []}
        return {"model_name": "m", "id": request.body["id"], "outputs": outputs, **more}

    return behave


def output(name: str, data: Any, shape: Any, datatype: str = "FP64") -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape, "data": data}


def tensor(name: str, datatype: str, *shape: int) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": list(shape)}


LABELS = [output("label", [1, 0], [2], "INT64")]


def sent(frame: pd.DataFrame, declared: Any = (), **settings: Any) -> Any:
    with serving(v2([output("label", [0] * len(frame), [len(frame)], "INT64")], declared)) as far:
        InferenceModel(far.url, name="m", **settings).predict(frame)
        assert [one.path for one in far.usage] == ["/v2/models/m", "/v2/models/m/infer"]
        return far.usage[1].body


def test_without_declared_inputs_a_column_is_sent_as_what_it_is() -> None:
    body = sent(FRAME.assign(single=np.array([0.1, 0.2], dtype=np.float32)))
    assert body["parameters"] == {"content_type": "pd"}
    assert [(one["name"], one["datatype"], one["shape"], one["data"]) for one in body["inputs"]] == [
        ("age", "INT64", [2, 1], [30, 40]),
        ("pay", "FP64", [2, 1], [0.1, None]),
        ("job", "BYTES", [2, 1], ["clerk", "smith"]),
        ("own", "BOOL", [2, 1], [True, False]),
        ("single", "FP32", [2, 1], [float(np.float32(0.1)), float(np.float32(0.2))]),
    ]


def test_whole_numbers_and_flags_with_gaps_are_sent_as_floats() -> None:
    frame = pd.DataFrame({"n": pd.array([1, None], dtype="Int64"), "f": pd.array([True, None], dtype="boolean")})
    body = sent(frame)
    assert [(one["datatype"], one["data"]) for one in body["inputs"]] == [("FP64", [1.0, None]), ("FP64", [1.0, None])]


def test_declared_inputs_are_kept_to() -> None:
    declared = [
        tensor("own", "BOOL", -1),
        tensor("job", "BYTES", -1, 1),
        tensor("pay", "FP32", -1, 1),
        tensor("age", "FP64", -1),
    ]
    body = sent(FRAME, declared)
    assert "parameters" not in body
    assert [(one["name"], one["datatype"], one["shape"], one["data"]) for one in body["inputs"]] == [
        ("own", "BOOL", [2], [True, False]),
        ("job", "BYTES", [2, 1], ["clerk", "smith"]),
        ("pay", "FP32", [2, 1], [float(np.float32(0.1)), None]),
        ("age", "FP64", [2], [30.0, 40.0]),
    ]


@pytest.mark.parametrize(("declared", "settings"), [([tensor("x", "FP32", -1, 2)], {}), ([], {"inputs": "matrix"})])
def test_one_matrix_for_all_columns(declared: Any, settings: Any) -> None:
    body = sent(NUMBERS, declared, **settings)
    (one,) = body["inputs"]
    assert "parameters" not in body
    assert one["shape"] == [3, 2]
    as_sent = NUMBERS.to_numpy(dtype=np.float32 if declared else np.float64)
    assert one["data"] == as_sent.astype(float).ravel().tolist()
    assert (one["name"], one["datatype"]) == (("x", "FP32") if declared else ("input-0", "FP64"))


@pytest.mark.parametrize(
    ("frame", "declared", "settings", "sentence"),
    [
        (FRAME, [tensor("x", "FP32", -1, 4)], {}, "A matrix must be made of numbers; got other values in 'job'"),
        (NUMBERS, [tensor("x", "FP32", -1, 3)], {}, "takes 3 numbers per row; got a table of 2 columns"),
        (
            NUMBERS,
            [tensor("a", "FP32", -1), tensor("c", "FP32", -1)],
            {},
            "takes the inputs 'a', 'c'; got the columns 'a', 'b'",
        ),
    ],
)
def test_tables_the_server_does_not_take_are_reported(frame: Any, declared: Any, settings: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        sent(frame, declared, **settings)


CHANCES = [[0.9, 0.1], [0.2, 0.8]]


@pytest.mark.parametrize(
    ("outputs", "settings", "labels", "chances"),
    [
        (LABELS, {}, [1, 0], None),
        ([output("label", [[1], [0]], [2, 1], "INT64")], {}, [1, 0], None),
        ([output("predict", ["b", "a"], [2], "BYTES")], {}, ["b", "a"], None),
        ([output("p", [0.9, 0.1, 0.2, 0.8], [2, 2])], {}, [0, 1], CHANCES),
        ([output("p", CHANCES, [2, 2])], {"classes": ["a", "b"]}, ["a", "b"], CHANCES),
        ([*LABELS, output("probabilities", CHANCES, [2, 2])], {"classes": ["a", "b"]}, ["b", "a"], CHANCES),
        ([output("y", [0.1, 0.8], [2, 1])], {"gives": "chances"}, [0, 1], [[0.9, 0.1], [1 - 0.8, 0.8]]),
    ],
)
def test_labels_and_chances_are_read(outputs: Any, settings: Any, labels: Any, chances: Any) -> None:
    with serving(v2(outputs)) as far:
        model = InferenceModel(far.url, name="m", **settings)
        assert model.predict(FRAME).tolist() == labels
        assert (model.predict_proba(FRAME).tolist() if hasattr(model, "predict_proba") else None) == chances


def test_named_outputs_are_the_only_ones_requested() -> None:
    assert sent(FRAME, label="label")["outputs"] == [{"name": "label"}]
    assert "outputs" not in sent(FRAME)


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        ({"error": "no such model"}, "'outputs'; got an error"),
        ([1, 2], "'outputs'; got something else"),
        ({"outputs": [1]}, "a name and data"),
        (
            {"outputs": [{"name": "x", "shape": [2], "datatype": "FP32", "parameters": {"binary_data_size": 8}}]},
            "a name and data",
        ),
        ({"outputs": [output("label", [1, 0, 1], [3])]}, "one entry per row; got 3 values for 2 rows"),
        ({"outputs": [output("label", [1, 0, 1, 1], [4, 1])]}, "one entry per row"),
        ({"outputs": [output("p", [[0.1, 0.2, 0.3], [0.4]], [2, 2])]}, "one entry per row"),
        ({"outputs": [output("p", [], [2, 0])]}, "one entry per row; got 0 values"),
        ({"outputs": []}, "label or the probabilities"),
        ({"outputs": LABELS, "id": "somebody else's"}, "the id of the request; got another"),
    ],
)
def test_nonsense_is_one_sentence(reply: Any, sentence: str) -> None:
    def behave(request: Received) -> Any:
        return {"name": "m"} if request.method == "GET" else reply

    with serving(behave) as far, pytest.raises(ModelError, match=sentence):
        InferenceModel(far.url, name="m").predict(FRAME)


@pytest.mark.parametrize("metadata", [[], {"inputs": "x"}, {"inputs": [{"name": "a"}]}, {"inputs": [tensor("a", "FP7", 1)]}])
def test_nonsense_metadata_is_one_sentence(metadata: Any) -> None:
    with serving(lambda _: metadata) as far, pytest.raises(ModelError, match="must list inputs"):
        InferenceModel(far.url, name="m").predict(FRAME)


def test_an_unknown_model_is_one_sentence() -> None:
    with serving(lambda _: Reply(404, b'{"error": "Model m not found"}')) as far:
        with pytest.raises(ModelError, match=r"/v2/models/m must accept the request; got 404: .*not found"):
            InferenceModel(far.url, name="m").predict(FRAME)
        assert far.requests == 1


def test_addresses() -> None:
    for url, name in [
        ("http://h/v2/models/m", None),
        ("http://h/v2/models/m/infer", None),
        ("http://h/", "m"),
        ("http://h/v2", "m"),
    ]:
        assert InferenceModel(url, name=name)._model == "http://h/v2/models/m"
    assert InferenceModel("http://h/v2/models/m/versions/2")._model == "http://h/v2/models/m/versions/2"
    with pytest.raises(InputError, match="must be named"):
        InferenceModel("http://h")
    with pytest.raises(InputError, match="named once"):
        InferenceModel("http://h/v2/models/m", name="m")
    with pytest.raises(InputError, match="inputs must be"):
        InferenceModel("http://h", name="m", inputs="rows")  # type: ignore[arg-type]


def test_metadata_are_requested_once_and_kept_in_pickles() -> None:
    with serving(v2(LABELS)) as far:
        model = InferenceModel(far.url, name="m")
        for _ in range(3):
            model.predict(FRAME)
        pickle.loads(pickle.dumps(model)).predict(FRAME)
        assert [one.method for one in far.usage].count("GET") == 1
        assert len({one.body["id"] for one in far.usage[1:4]}) == 3


# The whole way.

IDENTITY = (np.asarray, np.asarray)


def frame_of(request: Received) -> pd.DataFrame:
    return pd.DataFrame({one["name"]: np.ravel(np.array(one["data"])) for one in request.body["inputs"]})


@pytest.mark.parametrize("way", ["columns", "matrix"])
def test_explaining_from_far_away_is_explaining_here(way: Any) -> None:
    data = people(150).reset_index(drop=True)[["age", "pay", "debt"]]
    wealth = data["pay"] - data["debt"] + 0.3 * data["age"]
    model = LogisticRegression(max_iter=1000).fit(data.to_numpy(), (wealth > wealth.median()).to_numpy().astype(int))

    def behave(request: Received) -> Any:
        if request.method == "GET":
            return {"name": "m", "inputs": [] if way == "columns" else [tensor("x", "FP64", -1, 3)]}
        matrix = frame_of(request).to_numpy() if way == "columns" else np.reshape(request.body["inputs"][0]["data"], (-1, 3))
        chances = model.predict_proba(matrix)
        return {"id": request.body["id"], "outputs": [output("probabilities", chances.ravel().tolist(), list(chances.shape))]}

    class Here:
        classes_ = model.classes_

        def predict(self, frame: pd.DataFrame) -> Any:
            return model.predict(frame.to_numpy(dtype=float))

        def predict_proba(self, frame: pd.DataFrame) -> Any:
            return model.predict_proba(frame.to_numpy(dtype=float))

    with serving(behave) as far, InferenceModel(far.url, name="m", batch_rows=128) as there:
        settings = {"autoencoder": IDENTITY, "progress": False, "compile": "never", "config": Config.fast()}
        ours, theirs = (FasterCE(one, **settings).fit(data).explain(data.head(30)) for one in (Here(), there))  # type: ignore[arg-type]
    pd.testing.assert_frame_equal(ours.to_frame(), theirs.to_frame())
    assert (ours.status == "found").all()


def test_text_columns_reach_a_tree_that_knows_only_labels() -> None:
    data = people(200).reset_index(drop=True)[["age", "job"]]
    coded = data.assign(job=(data["job"] == "smith").astype(int))
    tree = DecisionTreeClassifier(max_depth=3).fit(coded.to_numpy(), (data["age"] > 40) | (data["job"] == "smith"))

    def behave(request: Received) -> Any:
        if request.method == "GET":
            return {"name": "m", "inputs": [tensor("age", "INT64", -1, 1), tensor("job", "BYTES", -1, 1)]}
        frame = frame_of(request)
        predicted = tree.predict(frame.assign(job=(frame["job"] == "smith").astype(int)).to_numpy(dtype=float))
        return {"id": request.body["id"], "outputs": [output("label", predicted.tolist(), [len(frame)], "BOOL")]}

    with serving(behave) as far, InferenceModel(far.url, name="m") as there:
        explainer = FasterCE(there, autoencoder=IDENTITY, progress=False, config=Config.fast()).fit(data)
        rows = data[(data["age"] < 30) & (data["job"] != "smith")].head(5)
        result = explainer.explain(rows, target=True)
        assert (result.status == "found").all()
        assert explainer.classes_ == (False, True)
