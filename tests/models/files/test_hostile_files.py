"""`load_model`: every kind of file gives the model back; hostile files give one sentence and run nothing."""

import hashlib
import io
import json
import pickle
import pickletools
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from fasterce.errors import FasterCEError, InputError, ModelError
from fasterce.models.files import lightgbm_text, ubjson, xgboost_file
from fasterce.models.files.kinds import UnsoundError
from fasterce.models.files.load import LoadedModel, load_model
from fasterce.testing import check_adapter
from tests.models.adapters.tables import applicants, categorical, three, two

X = applicants(200)
FRESH = applicants(100, seed=1)


def pipeline(y: Any) -> Any:
    columns = make_column_transformer((OneHotEncoder(), ["job", "home"]), (StandardScaler(), ["age", "pay", "debt"]))
    return make_pipeline(columns, LogisticRegression(max_iter=500)).fit(X, y)


def as_trained(frame: pd.DataFrame) -> pd.DataFrame:
    held = categorical(X)
    return frame.assign(job=frame["job"].astype(held["job"].dtype), home=frame["home"].astype(held["home"].dtype))


def xgboost_classifier(y: Any) -> Any:
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=4, max_depth=3, enable_categorical=True, n_jobs=1)
    return model.fit(categorical(X), y)


def lightgbm_classifier(y: Any) -> Any:
    lightgbm = pytest.importorskip("lightgbm")
    return lightgbm.LGBMClassifier(n_estimators=4, verbose=-1, n_jobs=1).fit(categorical(X), y)


def write_xgboost(path: Path) -> Any:
    model = xgboost_classifier(three(X))
    model.save_model(path)
    return model.predict(as_trained(FRESH))


def write_lightgbm(path: Path) -> Any:
    model = lightgbm_classifier(three(X))
    model.booster_.save_model(path)
    return model.predict(as_trained(FRESH))


def write_onnx(path: Path) -> Any:
    convert = pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType

    kinds = {"age": Int64TensorType, "pay": FloatTensorType, "debt": FloatTensorType}
    inputs = [(name, kinds.get(name, StringTensorType)([None, 1])) for name in X.columns if name != "spouse"]
    model = pipeline(three(X))
    path.write_bytes(convert.convert_sklearn(model, initial_types=inputs, target_opset=17).SerializeToString())
    return model.predict(FRESH)


def write_skops(path: Path) -> Any:
    model = pipeline(three(X))
    pytest.importorskip("skops.io").dump(model, path)
    return model.predict(FRESH)


WRITERS = {
    "model.json": ("xgboost", write_xgboost),
    "model.ubj": ("xgboost", write_xgboost),
    "model.txt": ("lightgbm", write_lightgbm),
    "model.onnx": ("onnx", write_onnx),
    "model.skops": ("skops", write_skops),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_gives_the_model_back(name: str, tmp_path: Path) -> None:
    kind, write = WRITERS[name]
    wanted = write(tmp_path / name)
    loaded = load_model(tmp_path / name)
    assert (loaded.kind, loaded.source) == (kind, str(tmp_path / name))
    assert loaded.digest == "sha256:" + hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    assert (loaded.model.predict(FRESH) == wanted).all()
    check_adapter(loaded.model, FRESH.head(40))
    named = load_model(str(tmp_path / name), classes=["bad", "fair", "good"]).model
    assert (named.predict(FRESH) == np.array(["bad", "fair", "good"])[wanted]).all()
    check_adapter(named, FRESH.head(40))
    with pytest.raises(InputError, match="3 classes"):
        load_model(tmp_path / name, classes=["bad", "good"])


def test_catboost_files(tmp_path: Path) -> None:
    catboost = pytest.importorskip("catboost")
    settings = {"iterations": 4, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(cat_features=["job", "home"], **settings).fit(X, two(X, ("no", "yes")))
    model.save_model(tmp_path / "model.cbm")
    loaded = load_model(tmp_path / "model.cbm")
    assert loaded.kind == "catboost"
    assert (loaded.model.predict(FRESH) == model.predict(FRESH)).all()
    whole = (tmp_path / "model.cbm").read_bytes()
    for cut in (5, 200, len(whole) // 2, len(whole) - 3):
        (tmp_path / "cut.cbm").write_bytes(whole[:cut])
        with pytest.raises(ModelError, match="must be an undamaged catboost file"):
            load_model(tmp_path / "cut.cbm")


def test_a_catboost_file_without_catboost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "catboost", None)
    (tmp_path / "model.cbm").write_bytes(b"CBM1 and so on")
    with pytest.raises(ModelError, match="pip install catboost"):
        load_model(tmp_path / "model.cbm")


def test_any_ending_will_do_where_the_kind_is_given(tmp_path: Path) -> None:
    wanted = write_xgboost(tmp_path / "model.json")
    (tmp_path / "model.json").rename(tmp_path / "model.v3")
    with pytest.raises(ModelError, match=r"must end in one of .*\.onnx.*got \.v3 .*set kind='xgboost'"):
        load_model(tmp_path / "model.v3")
    assert (load_model(tmp_path / "model.v3", kind="xgboost").model.predict(FRESH) == wanted).all()
    with pytest.raises(ModelError, match="kind must be one of"):
        load_model(tmp_path / "model.v3", kind="xgbost")


@pytest.mark.parametrize("ending", ["pkl", "joblib", "pickle"])
def test_a_pickle_takes_trust_and_warns(ending: str, tmp_path: Path) -> None:
    model = pipeline(two(X))
    path = tmp_path / f"model.{ending}"
    joblib.dump(model, path, compress=3 if ending == "joblib" else 0)
    with pytest.raises(ModelError, match=r"can run any code.*nothing was loaded.*trust_pickle=True"):
        load_model(path)
    with pytest.warns(UserWarning, match="runs the code in it"):
        loaded = load_model(path, trust_pickle=True)
    assert loaded.kind == "pickle"
    assert (loaded.model.predict(FRESH) == model.predict(FRESH)).all()
    with pytest.warns(UserWarning, match="runs the code"):
        named = load_model(path, trust_pickle=True, classes=["no", "yes"]).model
    check_adapter(named, FRESH.head(30))
    assert set(named.predict(FRESH)) == {"no", "yes"}


class Trap:
    """Leaves a mark when unpickled."""

    mark = "unpickled"

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (f"import sys; sys.{Trap.mark} = True",)


@pytest.fixture
def sprung() -> Iterator[Any]:
    yield lambda: hasattr(sys, Trap.mark)
    if hasattr(sys, Trap.mark):
        delattr(sys, Trap.mark)


ENDINGS = ["json", "ubj", "txt", "onnx", "skops", "cbm", "lgb", "bin", "pkl", "joblib", "pt2", "h5"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("form", [0, 1, 2, 5, "gzip", "xz"])
def test_a_pickle_by_any_name_runs_nothing(ending: str, form: Any, tmp_path: Path, sprung: Any) -> None:
    path = tmp_path / f"model.{ending}"
    if isinstance(form, int):
        path.write_bytes(pickle.dumps(Trap(), protocol=form))
        pickletools.dis(path.read_bytes(), io.StringIO())
    else:
        joblib.dump(Trap(), path, compress=(form, 3))
    for kind in (None, "xgboost", "skops", "onnx", "lightgbm"):
        with pytest.raises(ModelError):
            load_model(path, kind=kind, trust_pickle=kind is not None)
    assert not sprung()


def test_the_trap_works(tmp_path: Path, sprung: Any) -> None:
    (tmp_path / "trap.pkl").write_bytes(pickle.dumps(Trap()))
    with pytest.warns(UserWarning, match="runs the code"), pytest.raises(ModelError, match="must be a model with predict"):
        load_model(tmp_path / "trap.pkl", trust_pickle=True)
    assert sprung()


def test_trust_must_be_given_explicitly(tmp_path: Path, sprung: Any) -> None:
    (tmp_path / "trap.pkl").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ModelError, match="nothing was loaded"):
        load_model(tmp_path / "trap.pkl", trust_pickle="no")  # type: ignore[arg-type]
    assert not sprung()


@pytest.mark.parametrize("name", WRITERS)
def test_cut_short_or_filled_with_something_else(name: str, tmp_path: Path) -> None:
    WRITERS[name][1](tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    path = tmp_path / f"broken{Path(name).suffix}"
    for content in (whole[:-9], whole[: len(whole) // 2], whole[:40], whole[:1], b"Hello!", b"\0" * 100, b"{}", b"\x08", b""):
        path.write_bytes(content)
        with pytest.raises(ModelError) as caught:
            load_model(path)
        message = str(caught.value)
        assert str(path) in message
        assert "\n" not in message


@pytest.mark.parametrize("name", ["model.json", "model.ubj", "model.txt"])
def test_no_cut_and_no_changed_byte_ends_the_process(name: str, tmp_path: Path) -> None:
    """LightGBM aborts on most cut files, XGBoost on some changed ones: none of these may get so far."""
    WRITERS[name][1](tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / f"broken{Path(name).suffix}"
    for at in rng.integers(1, len(whole) - 2, 40):
        path.write_bytes(whole[:at])
        with pytest.raises(ModelError):
            load_model(path)
    for _ in range(60):
        changed = bytearray(whole)
        for at in rng.integers(0, len(whole), 2):
            changed[at] = int(rng.integers(256))
        path.write_bytes(bytes(changed))
        try:
            load_model(path).model.predict(FRESH.head(5))
        except (FasterCEError, ValueError, RuntimeError):
            continue  # a sentence, ours or the library's, is no crash


def edited_xgboost(change: Any) -> bytes:
    model = json.loads(bytes(xgboost_classifier(two(X)).get_booster().save_raw("json")))
    forest = model["learner"]["gradient_booster"]["model"]
    change(model["learner"], forest, forest["trees"][1])
    return json.dumps(model).encode()


def edits() -> dict[str, Any]:
    def circle(learner: Any, forest: Any, tree: Any) -> None:
        tree["left_children"][1] = 0

    def two_parents(learner: Any, forest: Any, tree: Any) -> None:
        tree["right_children"][0] = tree["left_children"][0]

    def far_child(learner: Any, forest: Any, tree: Any) -> None:
        tree["left_children"][0] = 10**6

    def far_feature(learner: Any, forest: Any, tree: Any) -> None:
        tree["split_indices"][0] = 99

    def short(learner: Any, forest: Any, tree: Any) -> None:
        del tree["split_conditions"][-1]

    def fewer_trees(learner: Any, forest: Any, tree: Any) -> None:
        forest["trees"].pop()

    def far_class(learner: Any, forest: Any, tree: Any) -> None:
        forest["tree_info"][0] = 7

    def giant(learner: Any, forest: Any, tree: Any) -> None:
        learner["learner_model_param"]["num_feature"] = str(2**60)

    def no_learner(learner: Any, forest: Any, tree: Any) -> None:
        learner.clear()

    def text_for_number(learner: Any, forest: Any, tree: Any) -> None:
        tree["left_children"][0] = "one"

    return {name: value for name, value in locals().items() if callable(value)}


@pytest.mark.parametrize("name", edits())
def test_trees_that_are_none_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(edited_xgboost(lambda *parts: None))
    load_model(path)
    path.write_bytes(edited_xgboost(edits()[name]))
    with pytest.raises(ModelError, match="must be an undamaged xgboost file"):
        load_model(path)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("left_child=", "left_child=99 "),
        ("split_feature=", "split_feature=77 "),
        ("num_leaves=", "num_leaves=1"),
        ("tree_sizes=", "tree_sizes=1"),
        ("num_class=1", "num_class=0"),
        ("max_feature_idx=5", "max_feature_idx=7"),
        ("end of trees", "end of"),
        ("end of parameters", ""),
        ("pandas_categorical:[", "pandas_categorical:{"),
    ],
)
def test_lightgbm_text_that_was_meddled_with(before: str, after: str, tmp_path: Path) -> None:
    text = lightgbm_classifier(two(X)).booster_.model_to_string()
    assert lightgbm_text.check(text.encode()) == text
    assert before in text
    (tmp_path / "model.txt").write_text(text.replace(before, after, 1))
    with pytest.raises(ModelError, match="must be an undamaged lightgbm file"):
        load_model(tmp_path / "model.txt")


def test_other_boosters_pass_the_look_through() -> None:
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    data = xgboost.DMatrix(X[["age", "pay", "debt"]], label=three(X))
    settings: dict[str, Any]
    for settings in (
        {"booster": "dart"},
        {"booster": "gblinear"},
        {"num_parallel_tree": 3},
        {"max_leaves": 6, "max_depth": 0},
    ):
        model = xgboost.train({"objective": "multi:softprob", "num_class": 3, "nthread": 1, **settings}, data, 3)
        for form in ("json", "ubj"):
            xgboost_file.check(bytes(model.save_raw(form)))
    for settings in (
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
        {"linear_tree": True},
        {"min_data": 10**6},
    ):
        held = lightgbm.Dataset(X[["age", "pay", "debt"]], label=two(X), params={"linear_tree": "linear_tree" in settings})
        model = lightgbm.train({"objective": "binary", "verbose": -1, "num_threads": 1, **settings}, held, 3)
        lightgbm_text.check(model.model_to_string().encode())


def test_ubjson_reads_what_xgboost_writes() -> None:
    booster = xgboost_classifier(three(X)).get_booster()
    text, binary = json.loads(bytes(booster.save_raw("json"))), ubjson.read(bytes(booster.save_raw("ubj")))
    one, other = (held["learner"]["gradient_booster"]["model"]["trees"] for held in (text, binary))
    assert all((np.asarray(a["left_children"]) == b["left_children"]).all() for a, b in zip(one, other, strict=True))
    with pytest.raises(UnsoundError, match="nested"):
        ubjson.read(b"[" * 500)
    with pytest.raises(UnsoundError, match="more than there are bytes"):
        ubjson.read(b"[#L" + (2**62).to_bytes(8, "big"))


def doubled(frame: Any) -> Any:
    return frame


def test_skops_lists_what_it_does_not_trust(tmp_path: Path) -> None:
    skops = pytest.importorskip("skops.io")
    model = make_pipeline(FunctionTransformer(doubled), pipeline(two(X))).fit(X, two(X))
    skops.dump(model, tmp_path / "model.skops")
    with pytest.raises(ModelError, match=rf"not trusted; expected trusted=\['{__name__}.doubled'\].*nothing was loaded"):
        load_model(tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops", trusted=[f"{__name__}.doubled"])
    assert (loaded.model.predict(FRESH) == model.predict(FRESH)).all()
    with pytest.raises(InputError, match="trusted must be a list"):
        load_model(tmp_path / "model.skops", trusted=f"{__name__}.doubled")


def test_a_skops_with_known_holes_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_skops(tmp_path / "model.skops")
    monkeypatch.setattr("skops.__version__", "0.11.0")
    with pytest.raises(ModelError, match=r"skops 0\.12 or newer"):
        load_model(tmp_path / "model.skops")


def test_a_small_archive_that_is_gigabytes_when_unpacked(tmp_path: Path) -> None:
    pytest.importorskip("skops.io")
    with zipfile.ZipFile(tmp_path / "bomb.skops", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b" " * (100 << 20))
    assert (tmp_path / "bomb.skops").stat().st_size < 1 << 20
    with pytest.raises(ModelError, match="unpacks to 104857600"):
        load_model(tmp_path / "bomb.skops")
    with zipfile.ZipFile(tmp_path / "other.skops", "w") as archive:
        archive.writestr("data.pkl", pickle.dumps(Trap()))
    with pytest.raises(ModelError, match=r"without schema\.json"):
        load_model(tmp_path / "other.skops")


def test_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"x")
    with pytest.raises(ModelError, match=r"There is no model file .*modle\.onnx.*Did you mean .*model\.onnx'\?"):
        load_model(tmp_path / "modle.onnx")
    with pytest.raises(ModelError, match="is a folder"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("plain", "got no ending"),
        ("net.pt2", r"got \.pt2: a PyTorch file .*TorchModel"),
        ("net.keras", "export it to ONNX"),
        ("table.csv", r"must end in one of .*got \.csv"),
    ],
)
def test_endings_that_are_no_models(name: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"PK\x03\x04")
    with pytest.raises(ModelError, match=sentence):
        load_model(tmp_path / name)


MODULE = """
import numpy as np
ready = lambda frame: (frame["pay"] > 50).to_numpy()
def rule(frame): return np.where(frame["pay"] > 50, 1, 0)
def make(): return rule
def broken(): raise OSError("no weights")
class Box: inner = staticmethod(rule)
number = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "my_scoring.py").write_text(MODULE)
    (tmp_path / "my_broken.py").write_text("import no_such_package_at_all")
    (tmp_path / "my_raising.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "my_scoring"


def test_import_paths(module: str) -> None:
    wanted = (FRESH["pay"] > 50).to_numpy()
    for text in ("my_scoring:rule", "my_scoring:make()", "my_scoring:Box.inner"):
        loaded = load_model(text)
        assert loaded == LoadedModel(loaded.model, "import", text, None)
        assert (loaded.model(FRESH) == wanted).all()
    named = load_model("my_scoring:rule", classes=["no", "yes"]).model
    assert (named.predict(FRESH) == np.where(wanted, "yes", "no")).all()
    check_adapter(named, FRESH)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("my_scorring:rule", r"there is no module 'my_scorring'.*Did you mean 'my_scoring'\?"),
        ("my_scoring:rul", r"there is no 'rul'.*Did you mean 'rule'\?"),
        ("my_scoring:broken()", r"must return a model when called; it raised OSError: no weights"),
        ("my_scoring:number()", r"must name a function, since it ends in \(\); got int"),
        ("my_scoring:number", r"must be a model with predict, or a function .*got 3"),
        ("my_scoring:Box", r"must be a model with predict, or a function .*Box"),
        ("my_broken:rule", r"cannot be imported: ModuleNotFoundError: No module named 'no_such_package_at_all'"),
        ("my_raising:rule", r"cannot be imported: ZeroDivisionError"),
        ("xml.no_such:rule", r"there is no module 'xml.no_such'"),
    ],
)
def test_import_paths_that_lead_nowhere(module: str, text: str, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        load_model(text)


def test_a_model_that_names_its_classes_keeps_them(module: str, tmp_path: Path) -> None:
    pytest.importorskip("skops.io").dump(pipeline(two(X, ("no", "yes"))), tmp_path / "model.skops")
    with pytest.raises(InputError, match="names its own"):
        load_model(tmp_path / "model.skops", classes=["refused", "granted"])


@pytest.mark.parametrize("address", ["http://localhost:9/score", "https://localhost/v2/models/"])
def test_addresses_that_say_nothing(address: str) -> None:
    with pytest.raises(ModelError, match=r"must end in /invocations \(MLflow\) or /v2/models/NAME"):
        load_model(address)
