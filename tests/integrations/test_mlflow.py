"""A fitted explainer as an MLflow model: saved, logged and loaded without a pickle, one line a row when served."""

import io
import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fasterce.integrations.mlflow as ours
from fasterce import FasterCE, load
from fasterce.config import Config
from fasterce.errors import ArtifactError, InputError, MissingExtraError, ModelError
from tests.samples import people

mlflow = pytest.importorskip("mlflow")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:mlflow", "ignore::FutureWarning:mlflow")


class Wealth:
    """Labels and chances from three columns."""

    classes_ = np.array(["no", "yes"])

    def predict(self, frame: pd.DataFrame) -> Any:
        return self.classes_[self.predict_proba(frame).argmax(axis=1)]

    def predict_proba(self, frame: pd.DataFrame) -> Any:
        wealth = frame["pay"] - frame["debt"] + 10 * (frame["job"] == "smith") - 30
        yes = 1 / (1 + np.exp(-wealth.to_numpy(dtype=float) / 10))
        return np.stack([1 - yes, yes], axis=1)


@pytest.fixture(scope="module", autouse=True)
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Everything MLflow writes goes to a folder of this test."""
    folder = tmp_path_factory.mktemp("store")
    before = os.environ.get("MLFLOW_ALLOW_FILE_STORE")
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    mlflow.set_tracking_uri(folder.as_uri())
    mlflow.set_experiment("credit")
    yield folder
    mlflow.set_tracking_uri(None)
    if before is None:
        del os.environ["MLFLOW_ALLOW_FILE_STORE"]


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    return people(150).reset_index(drop=True)


@pytest.fixture(scope="module")
def explainer(data: pd.DataFrame) -> FasterCE:
    return FasterCE(Wealth(), latent_dim=3, progress=False, config=Config.fast()).fit(data)


@pytest.fixture(scope="module")
def chances(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The model as somebody logged it with a flavour of MLflow's own: rows of chances."""

    PythonModel: Any = mlflow.pyfunc.PythonModel

    class Chances(PythonModel):
        def predict(self, context, model_input, params=None):
            wealth = model_input["pay"] - model_input["debt"] + 10 * (model_input["job"] == "smith") - 30
            yes = 1 / (1 + np.exp(-wealth.to_numpy(dtype=float) / 10))
            return np.stack([1 - yes, yes], axis=1)

    path = tmp_path_factory.mktemp("model") / "chances"
    mlflow.pyfunc.save_model(str(path), python_model=Chances(), pip_requirements=[])
    return str(path)


@pytest.fixture(autouse=True)
def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """References written here are known."""
    monkeypatch.setenv(ours.TRUST_REFERENCE, "1")


@pytest.fixture(scope="module")
def saved(explainer: FasterCE, chances: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "explainer"
    ours.save_model(explainer, path, model=chances)
    return path


def test_loaded_by_mlflow_it_returns_one_line_per_row(saved: Path, explainer: FasterCE, data: pd.DataFrame) -> None:
    served = mlflow.pyfunc.load_model(str(saved))
    rows = data.head(12)
    given = served.predict(rows)
    expected = explainer.explain(rows)
    assert list(given.columns) == ["status", "reason", "prediction", "target", "distance", "changes", *data.columns]
    assert given["status"].tolist() == expected.status.tolist()
    assert given["prediction"].tolist() == expected.prediction.tolist()
    pd.testing.assert_frame_equal(given[list(data.columns)], expected.counterfactuals, check_dtype=False)
    for k, line in given.iterrows():
        for change in json.loads(line["changes"]):
            assert change["from"] == data.loc[k, change["feature"]]
            assert change["to"] == line[change["feature"]]


def test_parameters_reach_explain(saved: Path, data: pd.DataFrame) -> None:
    served = mlflow.pyfunc.load_model(str(saved))
    options = {
        "target": "yes",
        "features_to_vary": ["pay"],
        "constraints": [{"constraint": "range", "feature": "pay", "low": 0, "high": 200}],
    }
    given = served.predict(data.head(12), params={"method": "sparse", "options": json.dumps(options)})
    assert set(given["status"]) == {"found", "already_target"}
    assert (given["target"] == "yes").all()
    moved = {change["feature"] for line in given["changes"] for change in json.loads(line)}
    assert moved == {"pay"}
    assert given.loc[given["status"] == "already_target", "age"].isna().all()
    with pytest.raises(InputError) as caught:
        served.predict(data.head(1), params={"options": "[1"})
    assert caught.value.problem.code == "integrations.not_json_options"
    for option in ("colour", "method"):
        with pytest.raises(InputError) as caught:
            served.predict(data.head(1), params={"options": json.dumps({option: 1})})
        assert (caught.value.problem.code, caught.value.problem.received) == ("options.unknown_option", option)
    with pytest.raises(InputError, match="from 1 to 100"):
        served.predict(data.head(1), params={"options": '{"n": 20000}'})


def test_a_reference_is_followed_only_by_word(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ours.TRUST_REFERENCE)
    for loading in (ours.load_model, lambda path: mlflow.pyfunc.load_model(str(path))):
        with pytest.raises(ModelError, match=r"refers to a model elsewhere.*so nothing was loaded"):
            loading(saved)


def test_what_it_returns_can_be_sent_as_json(saved: Path, data: pd.DataFrame) -> None:
    server = pytest.importorskip("mlflow.pyfunc.scoring_server")
    given = mlflow.pyfunc.load_model(str(saved)).predict(data.head(12), params={"options": '{"target": "yes"}'})
    page = io.StringIO()
    server.predictions_to_json(given, page)
    lines = json.loads(page.getvalue(), parse_constant=pytest.fail)["predictions"]
    assert len(lines) == 12
    assert next(line for line in lines if line["status"] == "already_target")["age"] is None
    assert isinstance(next(line for line in lines if line["status"] == "found")["own"], bool)


def test_signature_and_example_say_what_is_expected(saved: Path, data: pd.DataFrame) -> None:
    info = mlflow.models.get_model_info(str(saved))
    assert info.signature.inputs.input_names() == list(data.columns)
    assert info.signature.outputs.input_names()[:6] == ["status", "reason", "prediction", "target", "distance", "changes"]
    assert {param.name for param in info.signature.params} == {"method", "options"}
    example = mlflow.models.Model.load(str(saved)).load_input_example(str(saved))
    assert len(example) == 1
    assert not (data == example.iloc[0]).all(axis=1).any(), "nobody's row is shown"


def test_nothing_in_the_folder_is_a_pickle(saved: Path) -> None:
    inside = "data/fasterce"
    names = {path.relative_to(saved).as_posix() for path in saved.rglob("*") if path.is_file()}
    assert {f"{inside}/explainer/arrays.safetensors", f"{inside}/explainer/manifest.json", f"{inside}/model.json"} <= names
    assert not [name for name in names if name.endswith((".pkl", ".pickle", ".joblib"))]
    for name in names:
        with pytest.raises(Exception, match=r"."):
            pickle.loads((saved / name).read_bytes())


def test_logged_to_a_run_and_loaded_by_its_uri(explainer: FasterCE, chances: str, data: pd.DataFrame) -> None:
    with mlflow.start_run():
        info = ours.log_model(explainer, "credit", model=chances)
    rows = data.head(5)
    expected = explainer.explain(rows).to_frame()
    again = ours.load_model(info.model_uri, trust_reference=True)
    pd.testing.assert_frame_equal(again.explain(rows).to_frame(), expected)
    mine = ours.load_model(info.model_uri, Wealth())
    assert isinstance(mine.model, Wealth)
    pd.testing.assert_frame_equal(mine.explain(rows).to_frame(), expected)


def test_without_its_model_it_is_loaded_with_one(explainer: FasterCE, data: pd.DataFrame, tmp_path: Path) -> None:
    ours.save_model(explainer, tmp_path / "alone")
    assert len(ours.load_model(tmp_path / "alone", Wealth()).explain(data.head(2))) == 2
    for loading in (ours.load_model, lambda path: mlflow.pyfunc.load_model(str(path))):
        with pytest.raises(
            ModelError, match=r"saved without its model; expected fasterce.integrations.mlflow.load_model\(uri, model\)"
        ):
            loading(tmp_path / "alone")


def test_labels_alone_do_not_fit_an_explainer_fitted_with_scores(explainer: FasterCE, tmp_path: Path) -> None:
    PythonModel: Any = mlflow.pyfunc.PythonModel

    class Labels(PythonModel):
        def predict(self, context, model_input, params=None):
            return np.where(model_input["pay"] - model_input["debt"] + 10 * (model_input["job"] == "smith") > 30, "yes", "no")

    mlflow.pyfunc.save_model(str(tmp_path / "labels"), python_model=Labels(), pip_requirements=[])
    labels = ours.PyfuncModel(str(tmp_path / "labels"))
    assert set(labels.predict(people(20))) <= {"yes", "no"}
    assert not hasattr(labels, "predict_proba")
    with pytest.raises(ModelError, match="fitted for a model with scores"):
        ours.save_model(explainer, tmp_path / "new", model=str(tmp_path / "labels"))
    assert not (tmp_path / "new").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels"], "nothing half-written"


def test_a_file_is_copied_in_and_an_import_path_kept(
    explainer: FasterCE, data: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which files can be loaded, and how safely, is `fasterce.models.files.load`' affair."""
    from types import SimpleNamespace

    requests: list[Any] = []

    def load_model(source: str, **how: Any) -> Any:
        requests.append((source, how))
        return SimpleNamespace(model=Wealth())

    monkeypatch.setattr("fasterce.models.files.load.load_model", load_model)
    (tmp_path / "wealth.onnx").write_bytes(b"a model")
    ours.save_model(explainer, tmp_path / "one", model=tmp_path / "wealth.onnx")
    (tmp_path / "wealth.onnx").unlink()
    again = ours.load_model(tmp_path / "one", trusted=["a.B"])
    source, how = requests[-1]
    assert Path(source) == (tmp_path / "one" / "data" / "fasterce" / "model" / "wealth.onnx").resolve()
    assert how == {"classes": None, "trusted": ("a.B",), "trust_pickle": False}
    assert len(again.explain(data.head(2))) == 2
    ours.save_model(explainer, tmp_path / "two", model="my.models:wealth", classes=["no", "yes"])
    mlflow.pyfunc.load_model(str(tmp_path / "two"))
    assert requests[-1] == ("my.models:wealth", {"classes": ["no", "yes"], "trusted": (), "trust_pickle": False})
    ours.load_model(tmp_path / "two", trust_pickle=True, trust_reference=True)
    assert requests[-1][1]["trust_pickle"] is True


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (Wealth(), "model_object"),
        ("nothing.onnx", "not_a_reference"),
        ("http://me:pa55@host/invocations", "credentials_in_address"),
    ],
)
def test_models_that_cannot_be_referred_to(explainer: FasterCE, tmp_path: Path, model: Any, code: str) -> None:
    with pytest.raises(InputError) as caught:
        ours.save_model(explainer, tmp_path / "new", model=model)
    assert caught.value.problem.code == f"integrations.{code}"
    assert "pa55" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_folder_with_something_in_it_is_not_replaced(explainer: FasterCE, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ArtifactError) as caught:
        ours.save_model(explainer, tmp_path)
    assert caught.value.problem.code == "integrations.folder_not_empty"
    (tmp_path / "empty").mkdir()
    ours.save_model(explainer, tmp_path / "empty")
    assert (tmp_path / "empty" / "MLmodel").is_file()


def test_own_coders_cannot_be_stored(data: pd.DataFrame, tmp_path: Path) -> None:
    mine = FasterCE(Wealth(), autoencoder=(np.asarray, np.asarray), progress=False, config=Config.fast()).fit(data)
    with pytest.raises(ArtifactError) as caught:
        ours.save_model(mine, tmp_path / "new")
    assert caught.value.problem.code == "integrations.own_autoencoder"


@pytest.mark.parametrize(
    "content",
    [
        '{"model": {"kind": "file", "source": "../../../etc/passwd"}}',
        '{"model": {"kind": "file", "source": ".."}}',
        '{"model": {"kind": "eval", "source": "x"}}',
        '{"model": {"kind": "uri"}}',
        '{"model": 5}',
        "[" * 100_000,
        "{}",
        "",
    ],
)
def test_hostile_references_are_refused(saved: Path, tmp_path: Path, content: str) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(saved, copy)
    (copy / "data" / "fasterce" / "model.json").write_text(content)
    with pytest.raises(ArtifactError) as caught:
        ours.load_model(copy)
    assert caught.value.problem.code == "integrations.unusable_reference"


def test_a_data_path_that_leaves_the_folder_is_refused(saved: Path, chances: str, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(saved, copy)
    about = (copy / "MLmodel").read_text()
    (copy / "MLmodel").write_text(about.replace("data: data/", "data: ../../data/"))
    with pytest.raises(ArtifactError) as caught:
        ours.load_model(copy)
    assert caught.value.problem.code == "integrations.path_leaves_folder"
    with pytest.raises(ArtifactError) as caught:
        ours.load_model(chances)
    assert caught.value.problem.code == "integrations.other_model"


def test_columns_named_like_ours(data: pd.DataFrame) -> None:
    odd = data.rename(columns={"debt": "status"})
    model = FasterCE(
        lambda frame: (frame["pay"] > 50).to_numpy(),
        autoencoder=(np.asarray, np.asarray),
        progress=False,
        config=Config.fast(),
    )
    lines = ours.lines(model.fit(odd).explain(odd.head(3)))
    assert list(lines.columns)[:2] == ["status_", "reason"]
    assert lines["status_"].tolist() == ["found"] * 3
    pd.testing.assert_series_equal(lines["status"], odd["status"].head(3))


def test_without_mlflow_the_extra_is_named(explainer: FasterCE, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "mlflow.pyfunc", None)
    with pytest.raises(MissingExtraError, match=r"fasterce\[mlflow\]"):
        ours.log_model(explainer, "x")


def test_a_model_file_travels_with_the_explainer(data: pd.DataFrame, tmp_path: Path) -> None:
    """XGBoost's own file, loaded by MLflow alone."""
    xgboost = pytest.importorskip("xgboost")
    numbers = data[["age", "pay", "debt"]]
    booster = xgboost.train(
        {"objective": "binary:logistic", "max_depth": 2},
        xgboost.DMatrix(numbers, label=(numbers["pay"] - numbers["debt"] > 30).astype(int)),
        num_boost_round=8,
    )
    booster.save_model(tmp_path / "wealth.json")
    fitted = FasterCE(booster, latent_dim=2, progress=False, config=Config.fast()).fit(numbers)
    ours.save_model(fitted, tmp_path / "saved", model=tmp_path / "wealth.json")
    lines = mlflow.pyfunc.load_model(str(tmp_path / "saved")).predict(numbers.head(6))
    pd.testing.assert_frame_equal(lines[list(numbers.columns)], fitted.explain(numbers.head(6)).counterfactuals)
    assert set(lines["status"]) == {"found"}


def test_a_pickle_is_refused_unless_trusted(explainer: FasterCE, tmp_path: Path) -> None:
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(5))
    with pytest.raises(ModelError, match="trust_pickle"):
        ours.save_model(explainer, tmp_path / "saved", model=tmp_path / "model.pkl")
    assert [path.name for path in tmp_path.iterdir()] == ["model.pkl"]


def test_our_own_folder_is_inside(saved: Path, explainer: FasterCE, data: pd.DataFrame) -> None:
    plain = load(saved / "data" / "fasterce" / "explainer", Wealth())
    pd.testing.assert_frame_equal(plain.explain(data.head(3)).to_frame(), explainer.explain(data.head(3)).to_frame())
