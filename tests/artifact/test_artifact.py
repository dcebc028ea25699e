"""What a user notices of saving and loading: the same answers afterwards, and one clear sentence for anything else."""

import copy
import hashlib
import json
import os
import pickle
import struct
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from fasterce import artifact
from fasterce import constraints as c
from fasterce.artifact import arrays
from fasterce.artifact import folder as folder_module
from fasterce.artifact import manifest as manifest_module
from fasterce.config import Config
from fasterce.data.schema import Schema
from fasterce.errors import ArtifactError, ModelError, SchemaError
from fasterce.explainer import FasterCE

Array = NDArray[Any]
Spoil = Callable[[Path], object]


def people(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "income": rng.normal(50, 15, rows).round(2),
            "job": rng.choice(["clerk", "nurse", "smith"], rows),
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], rows), ["low", "mid", "high"], ordered=True),
            "owner": rng.random(rows) < 0.5,
        }
    )


def approve(frame: pd.DataFrame) -> Array:
    points = frame["income"].to_numpy() + 10 * frame["owner"].to_numpy() + 5 * (frame["grade"] == "high").to_numpy()
    return np.where(points > 58, "yes", "no")


@pytest.fixture(scope="module")
def explainer() -> FasterCE:
    data = people()
    schema = Schema.infer(data, immutable=["owner"], increasing=["age"], ranges={"income": (0, 200)})
    return FasterCE(approve, schema, random_state=3, latent_dim=6, progress=False, config=Config.fast()).fit(data)


@pytest.fixture
def saved(explainer: FasterCE, tmp_path: Path) -> Path:
    folder = tmp_path / "saved"
    explainer.save(folder)
    return folder


def load_error(folder: Path, model: Any = approve, **options: Any) -> str:
    with pytest.raises(ArtifactError) as caught:
        artifact.load(folder, model, **options)
    sentence = str(caught.value)
    assert sentence.count("\n") == 0
    assert sentence.endswith(".")
    return sentence


def manifest_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_text()))


def rewrite_manifest(folder: Path, **changes: Any) -> None:
    """A manifest that is wrong on purpose and consistent in itself, as an attacker would write it."""
    content = manifest_of(folder) | changes
    content["schema_sha256"] = changes.get("schema_sha256", _digest(content["schema"]))
    del content["sha256"]
    content["sha256"] = _digest(content)
    (folder / "manifest.json").write_text(json.dumps(content))


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def replace_arrays(folder: Path, packed: bytes) -> None:
    (folder / "arrays.safetensors").write_bytes(packed)
    entry = {"bytes": len(packed), "sha256": hashlib.sha256(packed).hexdigest()}
    rewrite_manifest(folder, files={"arrays.safetensors": entry})


def edit_array(folder: Path, name: str, edit: Callable[[Array], Array | None]) -> None:
    arrays = {key: value.copy() for key, value in unpack((folder / "arrays.safetensors").read_bytes()).items()}
    edited = edit(arrays.pop(name))
    if edited is not None:
        arrays[name] = np.ascontiguousarray(edited)
    replace_arrays(folder, pack(arrays))


def with_value(value: Any) -> Callable[[Array], Array]:
    def edit(array: Array) -> Array:
        array.reshape(-1)[0] = value
        return array

    return edit


def entries(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def assert_same_explanations(one: FasterCE, other: FasterCE, rows: pd.DataFrame, **options: Any) -> None:
    for method in ("closest", "sparse", "realistic"):
        first, second = one.explain(rows, method, **options), other.explain(rows, method, **options)
        assert (first.status == "found").any()
        pd.testing.assert_series_equal(first.status, second.status)
        np.testing.assert_array_equal(first.arrays.codes, second.arrays.codes)
        pd.testing.assert_frame_equal(first.to_frame(), second.to_frame())


def test_round_trip_explains_the_same_to_the_last_bit(explainer: FasterCE, saved: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = artifact.load(saved, approve)
    assert_same_explanations(explainer, loaded, people(40), n=2)


def test_round_trip_keeps_every_learned_piece_and_its_memory_order(explainer: FasterCE, saved: Path) -> None:
    loaded = artifact.load(saved, approve)
    before, after = arrays.arrays_of_search(explainer.state_.search), arrays.arrays_of_search(loaded.state_.search)
    assert before.keys() == after.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(array, after[name], err_msg=name)
        assert array.strides == after[name].strides, name
    assert loaded.schema_ == explainer.schema_
    assert loaded.state_.table == explainer.state_.table
    assert str(loaded.report_) == str(explainer.report_)
    assert (loaded.random_state, loaded.latent_dim, loaded.scores) == (3, 6, "auto")


def test_a_loaded_explainer_can_be_saved_again_unchanged(saved: Path, tmp_path: Path) -> None:
    artifact.load(saved, approve).save(tmp_path / "again")
    first, second = manifest_of(saved), manifest_of(tmp_path / "again")
    for content in (first, second):
        del content["sha256"], content["written"]["time"]
    assert first == second
    assert (saved / "arrays.safetensors").read_bytes() == (tmp_path / "again" / "arrays.safetensors").read_bytes()


def test_manifest_tells_what_and_with_what(saved: Path) -> None:
    content = manifest_of(saved)
    assert (content["format"], content["version"], content["autoencoder"]) == ("fasterce-explainer", 6, "network")
    assert content["classes"] == ["no", "yes"]
    assert content["written"]["numpy"] == np.__version__
    assert content["written"]["time"].endswith("+00:00")
    packed = (saved / "arrays.safetensors").read_bytes()
    assert content["files"]["arrays.safetensors"] == {"bytes": len(packed), "sha256": hashlib.sha256(packed).hexdigest()}


def test_loads_and_explains_in_a_fresh_process_without_torch(explainer: FasterCE, saved: Path, tmp_path: Path) -> None:
    rows = people(20)
    rows.to_pickle(tmp_path / "rows.pkl")
    script = """
        import sys
        class Blocker:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] == "torch":
                    raise ImportError("torch is not here")
        sys.meta_path.insert(0, Blocker())
        import numpy as np, pandas as pd
        from fasterce import artifact
        def approve(frame):
            points = frame["income"] + 10 * frame["owner"] + 5 * (frame["grade"] == "high")
            return np.where(points.to_numpy() > 58, "yes", "no")
        explanation = artifact.load(sys.argv[1], approve).explain(pd.read_pickle(sys.argv[2]))
        np.save(sys.argv[3], explanation.arrays.codes)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), saved, tmp_path / "rows.pkl", tmp_path / "codes.npy"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), explainer.explain(rows).arrays.codes)


@pytest.mark.parametrize("labels", [(0, 1), (False, True), (1.5, 2.5), ("no", "yes")])
def test_class_labels_keep_their_type(labels: tuple[Any, Any], tmp_path: Path) -> None:
    data = people(60)[["age", "income"]]

    def model(frame: pd.DataFrame) -> Array:
        return np.where(frame["income"] > 50, labels[1], labels[0])

    FasterCE(model, autoencoder=(np.asarray, np.asarray), progress=False, config=Config.fast()).fit(data).save(tmp_path / "a")
    loaded = artifact.load(tmp_path / "a", model, autoencoder=(np.asarray, np.asarray))
    assert loaded.classes_ == labels
    assert [type(label) for label in loaded.classes_] == [type(label) for label in labels]
    assert set(loaded.explain(data.head(5)).prediction) <= set(labels)


def test_columns_keep_their_names_and_dtypes_after_loading(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame(
        {
            0: pd.array(rng.integers(0, 90, 80), dtype="Int64"),
            1: rng.normal(size=80).astype("float32"),
            "two": pd.Categorical(rng.choice([10, 20, 30], 80), [30, 20, 10], ordered=True),
            3: pd.array(rng.random(80) < 0.5, dtype="boolean"),
            "vier ä": pd.Series(rng.choice(["a", "ü"], 80), dtype="object"),
        }
    )
    seen: list[pd.DataFrame] = []

    def model(frame: pd.DataFrame) -> Array:
        seen.append(frame)
        return np.asarray(frame[1] > 0).astype(int)

    coders = (np.asarray, np.asarray)
    explainer = FasterCE(model, autoencoder=coders, progress=False, config=Config.fast()).fit(data)
    explainer.save(tmp_path / "a")
    loaded = artifact.load(tmp_path / "a", model, autoencoder=coders)
    assert list(seen[-1].columns) == [0, 1, "two", 3, "vier ä"]
    pd.testing.assert_series_equal(seen[-1].dtypes, seen[0].dtypes)
    assert list(loaded.state_.table.dtypes) == list(data.dtypes)
    assert list(seen[-1]["two"].cat.categories) == [30, 20, 10]
    assert list(loaded.report_.features.index) == list(data.columns)
    assert_same_explanations(explainer, loaded, data.head(10))


def test_a_pipeline_with_scores_comes_back_with_scores(tmp_path: Path) -> None:
    data = people()[["age", "income", "job"]]
    wealthy = (data["income"] + (data["job"] == "smith") * 10 > 52).to_numpy()
    encoder = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression(max_iter=2000)).fit(data, wealthy)
    explainer = FasterCE(model, autoencoder=(np.asarray, np.asarray), progress=False, config=Config.fast()).fit(data)
    explainer.save(tmp_path / "a")
    loaded = artifact.load(tmp_path / "a", model, autoencoder=(np.asarray, np.asarray))
    assert loaded.state_.use_scores is True
    assert_same_explanations(explainer, loaded, data.head(20))
    with pytest.raises(ModelError, match="predict_proba or decision_function; got function without"):
        artifact.load(tmp_path / "a", model.predict.__func__, autoencoder=(np.asarray, np.asarray))


class TestOwnAutoencoder:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path / "own"
        FasterCE(approve, autoencoder=(np.asarray, np.asarray), progress=False, config=Config.fast()).fit(people(60)).save(
            folder
        )
        return folder

    def test_is_required(self, folder: Path) -> None:
        assert "expected load(..., autoencoder=(encode, decode)); got none." in load_error(folder)

    def test_must_have_the_latent_size_it_had(self, folder: Path) -> None:
        def narrow(matrix: Array) -> Array:
            return matrix[:, :-1]

        assert "expected an autoencoder between finite rows" in load_error(folder, autoencoder=(narrow, np.asarray))

    def test_that_raises_is_named(self, folder: Path) -> None:
        def broken(matrix: Array) -> Array:
            raise ZeroDivisionError("my own fault")

        assert "got ZeroDivisionError: my own fault" in load_error(folder, autoencoder=(broken, np.asarray))

    def test_is_refused_where_there_is_a_network(self, saved: Path) -> None:
        assert "expected autoencoder=None" in load_error(saved, autoencoder=(np.asarray, np.asarray))


class TestAnotherModel:
    def test_that_predicts_otherwise_warns_with_counts(self, saved: Path) -> None:
        def opposite(frame: pd.DataFrame) -> Array:
            return np.where(approve(frame) == "yes", "no", "yes")

        with pytest.warns(UserWarning, match=r"disagrees with 64 of 64 .* fitted for another model") as caught:
            artifact.load(saved, opposite)
        assert caught[0].filename == __file__

    def test_that_raises_is_an_error(self, saved: Path) -> None:
        def broken(frame: pd.DataFrame) -> Array:
            raise KeyError("salary")

        with pytest.raises(ModelError, match=r"KeyError.*salary"):
            artifact.load(saved, broken)

    def test_with_other_classes_is_an_error(self, saved: Path) -> None:
        with pytest.raises(ModelError, match="must return one of 'no', 'yes'; got 'maybe'"):
            artifact.load(saved, lambda frame: np.full(len(frame), "maybe"))


def cut_arrays(folder: Path) -> None:
    path = folder / "arrays.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def flip_a_byte(folder: Path) -> None:
    path = folder / "arrays.safetensors"
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)


def change_a_bound(folder: Path) -> None:
    path = folder / "manifest.json"
    text = path.read_text()
    assert '"upper": 200.0' in text
    path.write_text(text.replace('"upper": 200.0', '"upper": 900.0'))


def point_elsewhere(folder: Path) -> None:
    outside = folder.parent / "outside.safetensors"
    outside.write_bytes((folder / "arrays.safetensors").read_bytes())
    rewrite_manifest(folder, files={"../outside.safetensors": manifest_of(folder)["files"]["arrays.safetensors"]})


def empty_the_folder(folder: Path) -> None:
    for name in entries(folder):
        (folder / name).unlink()


def write_pickle(folder: Path) -> None:
    replace_arrays(folder, pickle.dumps({"weights": [1.0, 2.0]}))


def write_giant_header(folder: Path) -> None:
    replace_arrays(folder, struct.pack("<Q", 2**60) + b"{}")


def write_overlapping_offsets(folder: Path) -> None:
    spans = {"a": [0, 16], "b": [8, 24]}
    header = {name: {"dtype": "F64", "shape": [2], "data_offsets": span} for name, span in spans.items()}
    text = json.dumps(header).encode()
    replace_arrays(folder, struct.pack("<Q", len(text)) + text + bytes(24))


def write_unknown_dtype(folder: Path) -> None:
    text = json.dumps({"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    replace_arrays(folder, struct.pack("<Q", len(text)) + text + bytes(4))


FILES: dict[str, tuple[Spoil, str]] = {
    "empty folder": (empty_the_folder, "manifest.json; expected a file; got nothing"),
    "no arrays": (
        lambda folder: (folder / "arrays.safetensors").unlink(),
        "arrays.safetensors; expected a file; got nothing",
    ),
    "no manifest": (lambda folder: (folder / "manifest.json").unlink(), "manifest.json; expected a file; got nothing"),
    "cut arrays": (cut_arrays, "(cut off or changed)"),
    "flipped byte": (flip_a_byte, "expected the SHA-256 in manifest.json; got another"),
    "no JSON": (lambda folder: (folder / "manifest.json").write_bytes(b"\x80\x04not json"), "expected JSON"),
    "deep JSON": (lambda folder: (folder / "manifest.json").write_text("[" * 10**6), "expected JSON"),
    "a list": (lambda folder: (folder / "manifest.json").write_text("[1]"), "expected the format 'fasterce-explainer'"),
    "foreign": (lambda folder: rewrite_manifest(folder, format="mlflow"), "manifest of another program ('mlflow')"),
    "changed bound": (change_a_bound, "changed since (its SHA-256 differs)"),
    "path": (point_elsewhere, "expected 'arrays.safetensors' as its only file; got '../outside.safetensors'"),
    "no version": (lambda folder: rewrite_manifest(folder, version="1"), "a format version of 1 or more; got '1'"),
    "field": (lambda folder: rewrite_manifest(folder, classes="ab"), "a field 'classes'"),
    "pickle": (write_pickle, "expected arrays in the safetensors format"),
    "giant header": (write_giant_header, "expected arrays in the safetensors format; got Error while deserializing: "),
    "overlap": (write_overlapping_offsets, "expected arrays in the safetensors format"),
    "unknown dtype": (write_unknown_dtype, "expected arrays in the safetensors format"),
}


@pytest.mark.parametrize(("spoil", "sentence"), FILES.values(), ids=FILES)
def test_damaged_files_are_refused(spoil: Spoil, sentence: str, saved: Path) -> None:
    spoil(saved)
    message = load_error(saved)
    assert str(saved) in message
    assert sentence in message


CONTENTS: dict[str, tuple[str, Callable[[Array], Array | None], str]] = {
    "narrow examples": ("examples", lambda a: a[:, :-1], "'examples' as float64 of shape (any, 5)"),
    "no examples": ("examples", lambda a: a[:0], "'examples' as float64 of shape (any, 5)"),
    "category": ("examples", lambda a: a + 1000, "codes from 0 to 2 in 'examples'"),
    "half category": ("examples", lambda a: a + 0.5, "codes from 0 to 2 in 'examples'"),
    "class": ("example_classes", with_value(-1), "codes from 0 to 1 in 'example_classes'"),
    "class dtype": ("example_classes", lambda a: a.astype(float), "'example_classes' as int64"),
    "plane too few": ("hyperplanes.normals", lambda a: a[:-1], "'hyperplanes.normals' as float64 of shape (12, any)"),
    "offset too few": ("hyperplanes.offsets", lambda a: a[:-1], "'hyperplanes.offsets' as float64 of shape (12,)"),
    "no regions": ("regions.centres", lambda a: None, "an array 'regions.centres'; got none"),
    "region of no place": ("regions.centres", lambda a: a[:, :-1], "'regions.centres' as float64 of shape (any, 6)"),
    "region too few": ("regions.normals", lambda a: a[:0], "'regions.normals' as float64 of shape (1, 2, 6)"),
    "region's class": ("regions.offsets", lambda a: a[:, :-1], "'regions.offsets' as float64 of shape (1, 2)"),
    "region NaN": ("regions.centres", with_value(np.nan), "finite numbers in 'regions.centres'"),
    "copy's tables": ("surrogate.entries", lambda a: a[:-1], "'surrogate.knots' as float64 of shape"),
    "copy's dtype": ("surrogate.entries", lambda a: a.astype(float), "'surrogate.entries' as float32"),
    "copy's places": ("surrogate.start", lambda a: a * 0, "a table for every feature in 'surrogate.start'"),
    "copy's order": ("surrogate.start", lambda a: a[::-1].copy(), "a table for every feature in 'surrogate.start'"),
    "copy's numbers": ("surrogate.numeric", lambda a: ~a, "the schema's numbers in 'surrogate.numeric'"),
    "copy's output": ("surrogate.weight", lambda a: np.hstack([a, a]), "'surrogate.weight' as float32 of shape (32, 1)"),
    "copy NaN": ("surrogate.bias", with_value(np.nan), "finite numbers in 'surrogate.bias'"),
    "half a copy": ("surrogate.knots", lambda a: None, "an array 'surrogate.knots'; got none"),
    "copy's error": ("surrogate.error", lambda a: None, "an array 'surrogate.error'; got none"),
    "profile column": ("profile.levels", lambda a: a[:-1], "'profile.levels'"),
    "profile NaN": ("profile.median", with_value(np.nan), "finite numbers in 'profile.median'"),
    "profile zero": ("profile.std", lambda a: a * 0, "between finite rows"),
    "network NaN": ("network.encoder.0.weight", with_value(np.nan), "finite numbers in 'network.encoder.0.weight'"),
    "network infinity": ("network.decoder.1.bias", with_value(np.inf), "finite numbers in 'network.decoder.1.bias'"),
    "network shape": ("network.decoder.0.weight", lambda a: a.T, "'network.decoder.0.weight' as float64 of shape (6, any)"),
    "network dtype": ("network.encoder.0.bias", lambda a: a.astype("float32"), "'network.encoder.0.bias' as float64"),
    "network layer": ("network.encoder.1.weight", lambda a: None, "'network.encoder.0.weight' as float64 of shape (10, 6)"),
    "distance": ("distance.weight", lambda a: None, "an array 'distance.weight'; got none"),
    "no statistics": ("statistics.counts", lambda a: None, "an array 'statistics.counts'; got none"),
    "counts": ("statistics.counts", lambda a: a[:-1], "'statistics.counts' as int64 of shape (28,)"),
    "less than nothing": ("statistics.classes", lambda a: -a, "counts that are possible in 'statistics'"),
    "more kept than seen": ("statistics.rows", lambda a: np.vstack([a, a]), "counts that are possible in 'statistics'"),
    "remembered category": ("statistics.rows", lambda a: a + 1000, "codes from 0 to 2 in 'statistics.rows'"),
    "statistics NaN": ("statistics.mean", with_value(np.nan), "finite numbers in 'statistics.mean'"),
    "cuts": ("statistics.cuts", lambda a: a[:, :-1], "'statistics.cuts' as float64 of shape (5, 9)"),
}


@pytest.mark.parametrize(("name", "edit", "sentence"), CONTENTS.values(), ids=CONTENTS)
def test_wrong_arrays_with_a_matching_digest_are_refused(
    name: str, edit: Callable[[Array], Array | None], sentence: str, saved: Path
) -> None:
    edit_array(saved, name, edit)
    message = load_error(saved)
    assert str(saved / "arrays.safetensors") in message
    assert sentence in message


def test_an_array_nobody_knows_is_refused(saved: Path) -> None:
    arrays = unpack((saved / "arrays.safetensors").read_bytes())
    replace_arrays(saved, pack(arrays | {"payload": np.zeros(3)}))
    assert "expected only the arrays of an explainer; got 'payload'" in load_error(saved)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("classes", ["yes"]),
        ("classes", ["yes", "yes"]),
        ("classes", [["yes"], ["no"]]),
        ("dtypes", [{"name": "int64"}]),
        ("dtypes", [{"name": "no such dtype"}] * 5),
        ("dtypes", [{}] * 5),
        ("dtypes", [{"name": "int64"}] * 5),
        ("schema", {"features": []}),
        ("schema", {"features": [{"name": "age", "kind": "imaginary"}]}),
        ("schema", {}),
        ("report", {"features": {}}),
        ("numbers", {}),
        ("numbers", {"middle": 0.0}),
        ("numbers", {"middle": 0.0, "scale": 0.0}),
        ("numbers", {"middle": float("nan"), "scale": 1.0}),
        ("numbers", {"middle": "x", "scale": 1.0}),
        ("numbers", {"middle": 0.0, "scale": 1.0, "power": 2.0}),
        ("numbers", [0.0, 1.0]),
        ("task", None),
    ],
)
def test_a_manifest_that_describes_no_explainer_is_refused(field: str, value: Any, saved: Path) -> None:
    rewrite_manifest(saved, **{field: value})
    assert str(saved) in load_error(saved)


def test_a_dtype_too_many_is_refused(saved: Path) -> None:
    rewrite_manifest(saved, dtypes=[*manifest_of(saved)["dtypes"], {"name": "int64"}])
    assert "6 dtypes for 5 columns" in load_error(saved)


def test_the_digest_of_another_schema_is_refused(saved: Path) -> None:
    rewrite_manifest(saved, schema_sha256="0" * 64)
    assert "expected the schema it was written with" in load_error(saved)


def test_nothing_there(tmp_path: Path) -> None:
    assert f"{tmp_path / 'absent'}; expected a folder" in load_error(tmp_path / "absent")
    (tmp_path / "file").write_text("x")
    assert "got a file" in load_error(tmp_path / "file")


def test_newer_version_says_so_even_if_all_else_changed(saved: Path) -> None:
    (saved / "manifest.json").write_text(json.dumps({"format": "fasterce-explainer", "version": 7}))
    (saved / "arrays.safetensors").unlink()
    assert load_error(saved).endswith("was written by a newer fasterce; expected format version <= 6; got 7.")


def test_older_version_says_what_to_do(saved: Path) -> None:
    rewrite_manifest(saved, version=2)
    assert load_error(saved).endswith(
        "written by an older fasterce; expected format version 6, so fit and save again; got 2."
    )


def crossed(frame: pd.DataFrame) -> Array:
    return np.where((frame["a"] > 0) == (frame["b"] > 0), "same", "mixed")


def test_regions_give_the_same_counterfactuals_and_walks_after_loading(tmp_path: Path) -> None:
    data = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, (600, 2)).round(3), columns=["a", "b"])
    explainer = FasterCE(crossed, autoencoder=(np.asarray, np.asarray), progress=False, config=Config.fast()).fit(data)
    explainer.save(tmp_path / "a")
    loaded = artifact.load(tmp_path / "a", crossed, autoencoder=(np.asarray, np.asarray))
    assert len(loaded.state_.search.regions) == loaded.report_.regions > 1
    assert_same_explanations(explainer, loaded, data.head(20))
    np.testing.assert_array_equal(explainer.walk(data.head(1)).height, loaded.walk(data.head(1)).height)
    edit_array(tmp_path / "a", "regions.normals", lambda normals: normals[:-1])
    assert "'regions.normals' as float64 of shape" in load_error(
        tmp_path / "a", crossed, autoencoder=(np.asarray, np.asarray)
    )


def test_a_huge_manifest_is_not_even_read(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (saved / "manifest.json").open("r+b") as file:
        file.truncate(64 * 2**20 + 1)
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail("read a file that is too large"))
    assert f"expected at most {64 * 2**20} bytes" in load_error(saved)


class TestSaving:
    def test_twice_gives_the_same_bytes_but_the_time(
        self, explainer: FasterCE, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(manifest_module, "_environment", lambda: {"time": "then"})
        explainer.save(tmp_path / "one")
        explainer.save(tmp_path / "two")
        for name in ("arrays.safetensors", "manifest.json"):
            assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()

    def test_replaces_an_artifact_and_leaves_no_litter(self, explainer: FasterCE, saved: Path) -> None:
        rewrite_manifest(saved, random_state=99)
        explainer.save(saved)
        assert manifest_of(saved)["random_state"] == 3
        assert entries(saved.parent) == {"saved"}
        assert entries(saved) == {"arrays.safetensors", "manifest.json"}

    def test_into_an_empty_or_a_deep_new_folder(self, explainer: FasterCE, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        explainer.save(tmp_path / "empty")
        explainer.save(str(tmp_path / "new" / "deep"))
        artifact.load(tmp_path / "empty", approve)
        artifact.load(tmp_path / "new" / "deep", approve)

    def test_through_a_link_replaces_what_it_points_to(self, explainer: FasterCE, saved: Path) -> None:
        link = saved.parent / "current"
        link.symlink_to(saved, target_is_directory=True)
        rewrite_manifest(saved, random_state=99)
        explainer.save(link)
        assert link.is_symlink()
        assert manifest_of(saved)["random_state"] == 3

    def test_is_readable_by_others_as_the_umask_says(self, saved: Path, tmp_path: Path) -> None:
        (tmp_path / "plain").mkdir()
        assert saved.stat().st_mode == (tmp_path / "plain").stat().st_mode

    @pytest.mark.parametrize(
        "content",
        [
            {"thesis.txt": "years of work"},
            {"manifest.json": '{"format": "another"}'},
            {"manifest.json": "not json"},
            {"arrays.safetensors": "weights of something else"},
        ],
    )
    def test_over_a_folder_of_something_else_is_refused(
        self, content: dict[str, str], explainer: FasterCE, tmp_path: Path
    ) -> None:
        folder = tmp_path / "mine"
        folder.mkdir()
        for name, text in content.items():
            (folder / name).write_text(text)
        with pytest.raises(ArtifactError, match="expected a new folder or a saved explainer; got a folder"):
            explainer.save(folder)
        assert {name: (folder / name).read_text() for name in entries(folder)} == content
        assert entries(tmp_path) == {"mine"}

    def test_over_an_artifact_with_other_files_beside_it_is_refused(self, explainer: FasterCE, saved: Path) -> None:
        (saved / "notes.txt").write_text("keep me")
        with pytest.raises(ArtifactError, match=r"notes\.txt"):
            explainer.save(saved)
        assert (saved / "notes.txt").read_text() == "keep me"

    def test_over_a_file_is_refused(self, explainer: FasterCE, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("keep me")
        with pytest.raises(ArtifactError, match="got a file"):
            explainer.save(tmp_path / "file")
        assert (tmp_path / "file").read_text() == "keep me"

    @pytest.mark.parametrize("existing", [True, False])
    @pytest.mark.parametrize("failing", ["manifest write", "last rename"])
    def test_that_fails_midway_leaves_all_as_it_was(
        self, failing: str, existing: bool, explainer: FasterCE, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "saved"
        if existing:
            explainer.save(folder)
            before = (folder / "manifest.json").read_bytes()
        write, rename = folder_module._write, os.rename

        def full_disk(path: Path, content: bytes) -> None:
            if path.name == "manifest.json":
                raise OSError(28, "No space left on device")
            write(path, content)

        def locked(source: Path, destination: Path) -> None:
            if source.name == "new":
                raise PermissionError(13, "locked")
            rename(source, destination)

        with monkeypatch.context() as patch:
            if failing == "manifest write":
                patch.setattr(folder_module, "_write", full_disk)
            else:
                patch.setattr(os, "rename", locked)
            with pytest.raises(ArtifactError, match="expected a folder that can be written"):
                explainer.save(folder)
        assert entries(tmp_path) == ({"saved"} if existing else set())
        if existing:
            assert (folder / "manifest.json").read_bytes() == before
            artifact.load(folder, approve)

    def test_never_deletes_the_only_copy(self, explainer: FasterCE, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """If even moving the old artifact back fails, it stays where it was put aside."""
        rename = os.rename

        def once(source: Path, destination: Path) -> None:
            if Path(source) != saved:
                raise PermissionError(13, "locked")
            rename(source, destination)

        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", once)
            with pytest.raises(ArtifactError):
                explainer.save(saved)
        (aside,) = saved.parent.glob(".saved.*/old")
        artifact.load(aside, approve)

    def test_what_json_cannot_hold_is_refused_before_anything_is_written(self, tmp_path: Path) -> None:
        days = np.array([date(2024, 1, 1), date(2025, 1, 1)], dtype=object)

        def model(frame: pd.DataFrame) -> Array:
            return days.take(np.asarray(frame["income"] > 50).astype(int))

        explainer = FasterCE(model, autoencoder=(np.asarray, np.asarray), progress=False, config=Config.fast())
        explainer.fit(people(60)[["age", "income"]])
        with pytest.raises(ArtifactError, match=r"class must be text, .* got datetime\.date\(2024"):
            explainer.save(tmp_path / "a")
        assert entries(tmp_path) == set()


def with_constraints(explainer: FasterCE, *constraints: Any) -> FasterCE:
    ruled = copy.copy(explainer)
    table = explainer.state_.table
    ruled.state_ = replace(explainer.state_, table=replace(table, schema=replace(table.schema, constraints=constraints)))
    return ruled


def test_constraints_of_the_schema_are_kept(explainer: FasterCE, tmp_path: Path) -> None:
    constraints = (
        c.Range("age", high=60),
        c.Require("income >= age / 4", name="sane"),
        c.Forbidden("job", (("clerk", "smith"),)),
    )
    with_constraints(explainer, *constraints).save(tmp_path / "ruled")
    assert artifact.load(tmp_path / "ruled", approve).schema_.constraints == constraints


def test_a_constraint_that_is_a_function_cannot_be_saved_and_leaves_what_is_there(explainer: FasterCE, saved: Path) -> None:
    before = manifest_of(saved)
    ruled = with_constraints(explainer, c.Derived("income", lambda frame: frame["age"], of=("age",)))
    with pytest.raises(SchemaError, match=r"a Python function cannot be written; expected a formula for 'income'\.$"):
        ruled.save(saved)
    assert manifest_of(saved) == before
    with pytest.raises(SchemaError):
        ruled.save(saved.parent / "new")
    assert not (saved.parent / "new").exists()


class TestDigest:
    def test_is_the_same_before_saving_after_loading_and_on_disk(
        self, explainer: FasterCE, saved: Path, tmp_path: Path
    ) -> None:
        before = artifact.digest(explainer)
        assert before == artifact.digest_of(saved)
        assert len(before.removeprefix("sha256:")) == 64
        loaded = artifact.load(saved, approve)
        assert artifact.digest(loaded) == before
        loaded.save(tmp_path / "again")
        assert artifact.digest_of(tmp_path / "again") == before

    def test_changes_with_what_was_learned_and_with_the_seed(self, explainer: FasterCE) -> None:
        other = copy.copy(explainer)
        before = artifact.digest(other)
        other.random_state = 4
        assert artifact.digest(other) != before
        other.random_state = explainer.random_state
        assert artifact.digest(other) == before
        other.update(people(40))
        assert artifact.digest(other) != before
        assert artifact.digest(explainer) == before

    def test_does_not_depend_on_whether_the_model_can_be_compiled_here(self, explainer: FasterCE) -> None:
        without = copy.copy(explainer)
        without.state_ = replace(explainer.state_, compiled=object())  # type: ignore[arg-type]
        without.__dict__.pop("_digested", None)
        assert artifact.digest(without) == artifact.digest(explainer)

    def test_of_damaged_arrays_is_refused(self, saved: Path) -> None:
        flip_a_byte(saved)
        with pytest.raises(ArtifactError, match="damaged or changed"):
            artifact.digest_of(saved)
