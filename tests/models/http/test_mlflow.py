"""MLflow's scoring protocol: what is sent, what answers may look like, and explaining a model that is far away."""

import copy
import io
import json
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fasterce import FasterCE, load
from fasterce.config import Config
from fasterce.errors import ModelError
from fasterce.models.files.load import load_model
from fasterce.models.http import MLflowModel
from fasterce.testing import check_adapter
from tests.models.http.server import Received, RecordingServer, Reply, serving, table
from tests.samples import people

IDENTITY = (np.asarray, np.asarray)
THREE = pd.DataFrame({"x": [1, 2, 3]})


def model_returning(predictions: Any, **settings: Any) -> MLflowModel:
    """A model that was asked once and got these predictions."""
    with serving(lambda _: {"predictions": predictions}) as far:
        model = MLflowModel(far.url, retries=0, **settings)
        model.predict(THREE)
        return model


def predictions_of(predictions: Any, **settings: Any) -> tuple[Any, Any]:
    with serving(lambda _: {"predictions": predictions}) as far:
        model = MLflowModel(far.url, retries=0, **settings)
        labels = model.predict(THREE)
        return labels.tolist(), model.predict_proba(THREE).tolist() if hasattr(model, "predict_proba") else None


class TestSent:
    def sent(self, frame: pd.DataFrame, **settings: Any) -> Any:
        with serving(lambda request: {"predictions": [0] * len(request.body["dataframe_split"]["data"])}) as far:
            MLflowModel(far.url, **settings).predict(frame)
            assert far.usage[0].headers["content-type"] == "application/json"
            return far.usage[0].body

    def test_values_keep_their_kind_and_gaps_are_null(self) -> None:
        frame = pd.DataFrame(
            {
                "whole": [1, 2],
                "float": [0.1, np.nan],
                "single": np.array([0.1, 2.5], dtype=np.float32),
                "flag": [True, False],
                "text": ["ä", None],
                "kind": pd.Categorical(["b", "a"]),
                "level": pd.Categorical([3, 1], [1, 3], ordered=True),
                "nullable": pd.array([7, None], dtype="Int64"),
                "maybe": pd.array([None, True], dtype="boolean"),
            },
            index=["p", "q"],
        )
        split = self.sent(frame)["dataframe_split"]
        assert split["columns"] == list(frame.columns)
        assert split["data"] == [
            [1, 0.1, float(np.float32(0.1)), True, "ä", "b", 3, 7, None],
            [2, None, 2.5, False, None, "a", 1, None, True],
        ]
        assert [type(value) for value in split["data"][0][:4]] == [int, float, float, bool]

    def test_floats_arrive_to_the_last_bit(self) -> None:
        values = np.random.default_rng(0).normal(size=200) * 10.0 ** np.arange(-100, 100)
        sent = self.sent(pd.DataFrame({"x": values}))["dataframe_split"]["data"]
        assert (np.array(sent)[:, 0] == values).all()

    def test_mlflow_itself_reads_it(self) -> None:
        server = pytest.importorskip("mlflow.pyfunc.scoring_server")
        frame = people(20).reset_index(drop=True)
        body = json.dumps(self.sent(frame, params={"k": 1}))
        data, params = server._split_data_and_params(body)
        pd.testing.assert_frame_equal(server.infer_and_parse_data(data), frame, check_dtype=False)
        assert params == {"k": 1}

    def test_what_json_cannot_hold_is_reported(self) -> None:
        with pytest.raises(ValueError, match="text, booleans and finite numbers"):
            MLflowModel("http://127.0.0.1:1").predict(pd.DataFrame({"x": [np.inf]}))


@pytest.mark.parametrize("url", ["", "/", "/invocations", "/invocations/"])
def test_the_address_may_end_in_invocations(url: str) -> None:
    with serving(lambda _: {"predictions": [1, 2, 3]}) as far:
        MLflowModel(far.url + url).predict(THREE)
        assert far.usage[0].path == "/invocations"


CHANCES = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("predictions", "settings", "labels", "chances"),
    [
        (["a", "b", "a"], {}, ["a", "b", "a"], None),
        ([1, 0, 1], {}, [1, 0, 1], None),
        ([True, False, True], {}, [True, False, True], None),
        ([[1], [0], [1]], {}, [1, 0, 1], None),
        ([1.5, 2, -3.25], {}, [1.5, 2.0, -3.25], None),
        ([1, 0, 1], {"classes": ["no", "yes"]}, ["yes", "no", "yes"], None),
        ([1.0, 0.0, 1.0], {"classes": ["no", "yes"]}, ["yes", "no", "yes"], None),
        (["yes", "no", "yes"], {"classes": ["no", "yes"]}, ["yes", "no", "yes"], None),
        ([2, 1, 2], {"classes": [1, 2]}, [2, 1, 2], None),
        (CHANCES, {}, [0, 1, 0], CHANCES),
        (CHANCES, {"classes": ["no", "yes"]}, ["no", "yes", "no"], CHANCES),
        ([0.25, 0.75, 0.5], {"gives": "chances"}, [0, 1, 0], [[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]]),
        ([[0.25], [0.75], [0.5]], {"gives": "chances"}, [0, 1, 0], [[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]]),
        ([{"prediction": k} for k in "aba"], {}, ["a", "b", "a"], None),
        (
            [{"no": a, "yes": b} for a, b in CHANCES],
            {"classes": ["no", "yes"]},
            ["no", "yes", "no"],
            CHANCES,
        ),
        (
            [{"label": k, "probability": list(p)} for k, p in zip("bab", CHANCES, strict=True)],
            {"classes": ["a", "b"]},
            ["b", "a", "b"],
            CHANCES,
        ),
        (
            [{"id": 1, "score": 2, "said": k, "p0": a, "p1": b} for k, (a, b) in zip("bab", CHANCES, strict=True)],
            {"label": "said", "chances": ["p0", "p1"], "classes": ["a", "b"]},
            ["b", "a", "b"],
            CHANCES,
        ),
        ([{"no": a, "yes": b} for a, b in CHANCES], {"chances": ["yes", "no"]}, [1, 0, 0], [[b, a] for a, b in CHANCES]),
        ({"label": ["b", "a", "b"], "probabilities": CHANCES}, {"classes": ["a", "b"]}, ["b", "a", "b"], CHANCES),
        (
            {"label": ["b", "a", "b"], "probabilities": [{"b": b, "a": a} for a, b in CHANCES]},
            {"classes": ["a", "b"]},
            ["b", "a", "b"],
            CHANCES,
        ),
        (CHANCES, {"gives": "chances"}, [0, 1, 0], CHANCES),
    ],
)
def test_every_kind_of_response_is_read(predictions: Any, settings: Any, labels: Any, chances: Any) -> None:
    found, found_chances = predictions_of(predictions, **settings)
    assert found == labels
    assert [type(value) for value in found] == [type(value) for value in labels]
    assert found_chances == chances


@pytest.mark.parametrize(
    ("predictions", "settings", "sentence"),
    [
        ([5, 0, 1], {"classes": ["no", "yes"]}, "positions 0 to 1"),
        (CHANCES, {"classes": ["a", "b", "c"]}, "3 probabilities per row; got 2"),
        ([{"a": 1}] * 3, {"label": "b"}, "must have the part 'b'; got 'a'"),
        ([{"a": 1, "b": "x"}] * 3, {"gives": "chances"}, "with probabilities; got the parts 'a', 'b'"),
        (["a", "b", "a"], {"gives": "chances"}, "finite numbers"),
    ],
)
def test_responses_that_contradict_the_settings_are_reported(predictions: Any, settings: Any, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        predictions_of(predictions, **settings)


def test_responses_to_batches_must_be_alike() -> None:
    def behave(request: Received) -> Any:
        return {"predictions": [1] if table(request)["x"].iloc[0] < 3 else [[0.5, 0.5]]}

    with serving(behave) as far, pytest.raises(ModelError, match="every batch alike"):
        MLflowModel(far.url, batch_rows=1).predict(THREE)


def test_classes_are_known_once_chances_were_seen() -> None:
    assert not hasattr(MLflowModel("http://127.0.0.1:1"), "classes_")
    assert model_returning(CHANCES).classes_.tolist() == [0, 1]
    assert not hasattr(model_returning([1, 0, 1]), "classes_")
    assert not hasattr(model_returning([1, 0, 1]), "predict_proba")
    assert not hasattr(MLflowModel("http://127.0.0.1:1", gives="labels"), "predict_proba")
    again = pickle.loads(pickle.dumps(model_returning(CHANCES, classes=["a", "b"])))
    assert again.classes_.tolist() == ["a", "b"]
    assert copy.deepcopy(again).classes_.tolist() == ["a", "b"]


def test_an_empty_table_needs_no_request() -> None:
    assert len(MLflowModel("http://127.0.0.1:1").predict(THREE.head(0))) == 0
    assert model_returning(CHANCES).predict_proba(THREE.head(0)).shape == (0, 2)


# The whole way: a scikit-learn pipeline behind a server, explained as if it were here.


def columns() -> Any:
    return make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    return people(200).reset_index(drop=True)


@pytest.fixture(scope="module")
def pipeline(data: pd.DataFrame) -> Any:
    wealth = data["pay"] - data["debt"] + 10 * (data["job"] == "smith") + 0.3 * data["age"]
    return make_pipeline(columns(), LogisticRegression()).fit(data, np.where(wealth > 45, "granted", "refused"))


def served(model: Any, method: str) -> Any:
    """An MLflow server around a model: `method` is what its pyfunc calls."""
    server = pytest.importorskip("mlflow.pyfunc.scoring_server")

    def behave(request: Received) -> Reply:
        frame = server.infer_and_parse_data({"dataframe_split": request.body["dataframe_split"]})
        out = io.StringIO()
        server.predictions_to_json(getattr(model, method)(frame), out)
        return Reply(body=out.getvalue().encode())

    return behave


@pytest.fixture(scope="module")
def far_chances(pipeline: Any) -> Iterator[RecordingServer]:
    with serving(served(pipeline, "predict_proba")) as far:
        yield far


@pytest.fixture(scope="module")
def far_labels(pipeline: Any) -> Iterator[RecordingServer]:
    with serving(served(pipeline, "predict")) as far:
        yield far


def same(here: Any, there: Any) -> None:
    pd.testing.assert_frame_equal(here.to_frame(), there.to_frame())
    pd.testing.assert_frame_equal(here.counterfactuals, there.counterfactuals)
    for name in ("status", "reason", "prediction", "target"):
        pd.testing.assert_series_equal(getattr(here, name), getattr(there, name))


SETTINGS: dict[str, Any] = {"autoencoder": IDENTITY, "progress": False, "compile": "never", "config": Config.fast()}


@pytest.fixture(scope="module")
def there(data: pd.DataFrame, pipeline: Any, far_chances: RecordingServer) -> FasterCE:
    return FasterCE(MLflowModel(far_chances.url, classes=pipeline.classes_, batch_rows=150), **SETTINGS).fit(data)


@pytest.fixture(scope="module")
def here(data: pd.DataFrame, pipeline: Any) -> FasterCE:
    return FasterCE(pipeline, **SETTINGS).fit(data)


@pytest.mark.parametrize("method", ["closest", "sparse", "realistic"])
def test_probabilities_of_a_server_give_the_counterfactuals_of_the_model_itself(
    data: pd.DataFrame, here: FasterCE, there: FasterCE, method: Any
) -> None:
    assert there.report_.scores
    same(here.explain(data.head(40), method), there.explain(data.head(40), method))


def test_labels_of_a_server_give_the_counterfactuals_of_the_model_by_labels(
    data: pd.DataFrame, pipeline: Any, far_labels: RecordingServer
) -> None:
    here = FasterCE(pipeline, scores="never", **SETTINGS).fit(data)
    with MLflowModel(far_labels.url, classes=pipeline.classes_) as model:
        there = FasterCE(model, **SETTINGS).fit(data)
        assert not there.report_.scores
        before = far_labels.requests
        result = there.explain(data.head(20))
        same(here.explain(data.head(20)), result)
        assert far_labels.requests - before == result.usage.calls, "small questions are one request each"
        assert result.usage.calls < 40
        found = result.counterfactuals.loc[result.status == "found"]
        assert (pipeline.predict(found) == result.target[result.status == "found"]).all()


@pytest.mark.parametrize("kind", ["chances", "labels"])
def test_it_keeps_the_contract_of_adapters(
    data: pd.DataFrame, pipeline: Any, far_chances: RecordingServer, far_labels: RecordingServer, kind: str
) -> None:
    far = far_chances if kind == "chances" else far_labels
    with MLflowModel(far.url, classes=pipeline.classes_) as model:
        check_adapter(model, data.head(40))


def test_an_address_is_loaded_like_a_file(data: pd.DataFrame, pipeline: Any, far_chances: RecordingServer) -> None:
    loaded = load_model(f"{far_chances.url}/invocations", classes=list(pipeline.classes_))
    assert (loaded.model.predict(data.head(5)) == pipeline.predict(data.head(5))).all()
    loaded.model.close()


def test_a_saved_explainer_is_loaded_for_a_model_not_called_yet(
    data: pd.DataFrame, pipeline: Any, far_chances: RecordingServer, there: FasterCE, tmp_path: Any
) -> None:
    there.save(tmp_path / "saved")
    again = load(tmp_path / "saved", MLflowModel(far_chances.url, classes=pipeline.classes_), autoencoder=IDENTITY)
    same(there.explain(data.head(5)), again.explain(data.head(5)))


def test_numbers_from_far_away(data: pd.DataFrame) -> None:
    amount = make_pipeline(columns(), LinearRegression()).fit(data.drop(columns="pay"), data["pay"])
    with serving(served(amount, "predict")) as far, MLflowModel(far.url, gives="labels") as model:
        rows = data.drop(columns="pay")
        explainer = FasterCE(model, autoencoder=IDENTITY, progress=False, config=Config.fast(), task="regression").fit(rows)
        middle = float(np.median(amount.predict(rows)))
        result = explainer.explain(rows.head(5), target=(middle + 0.5, None))
        found = result.counterfactuals.loc[result.status == "found"]
        assert len(found)
        assert (amount.predict(found) >= middle + 0.5).all()


def test_a_far_side_that_dies_while_explaining_leaves_a_record_a_row(data: pd.DataFrame, pipeline: Any) -> None:
    dead: list[bool] = []
    alive = served(pipeline, "predict_proba")
    with (
        serving(lambda request: Reply(503, b"down") if dead else alive(request)) as far,
        MLflowModel(far.url, classes=pipeline.classes_, backoff=0.01) as model,
    ):
        explainer = FasterCE(model, autoencoder=IDENTITY, progress=False, config=Config.fast()).fit(data)
        dead.append(True)
        before = far.requests
        result = explainer.explain(data.head(30))
        assert set(result.status) == {"model_error"}
        assert far.requests - before == 4
        assert "503" in result.reason.iloc[0]
        dead.clear()


def test_fit_on_a_far_side_that_is_down_says_so(data: pd.DataFrame) -> None:
    with serving(lambda _: Reply(503, b"down")) as far, MLflowModel(far.url, backoff=0.01) as model:
        with pytest.raises(ModelError, match="answered 503: down"):
            FasterCE(model, autoencoder=IDENTITY, progress=False, config=Config.fast()).fit(data)
        assert far.requests == 4
