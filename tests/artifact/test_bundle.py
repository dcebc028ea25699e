"""A model that travels with its explainer is the one it was fitted for, and of a kind that runs no code."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from xgboost import XGBClassifier

from fasterce import FasterCE, artifact, load
from fasterce.config import Config
from fasterce.errors import ArtifactError, ModelError
from fasterce.models.files.load import load_model


def people(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"pay": rng.normal(50, 15, rows).round(1), "debt": rng.gamma(2.0, 10.0, rows).round(1)})


def trained(frame: pd.DataFrame, above: float) -> XGBClassifier:
    return XGBClassifier(n_estimators=10, max_depth=3).fit(frame, frame["pay"] - frame["debt"] > above)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models")
    trained(people(), 30).save_model(made / "credit.json")
    trained(people(), 30).save_model(made / "credit.ubj")
    trained(people(), 45).save_model(made / "other.json")
    return made


@pytest.fixture(scope="module")
def explainer(folder: Path) -> FasterCE:
    loaded = load_model(folder / "credit.json", classes=["no", "yes"])
    return FasterCE(loaded.model, autoencoder=(same, same), progress=False, config=Config.fast()).fit(people())


def same(matrix: Any) -> Any:
    return matrix


@pytest.mark.parametrize("name", ["credit.json", "credit.ubj"])
def test_one_folder_is_enough(name: str, explainer: FasterCE, folder: Path, tmp_path: Path) -> None:
    explainer.save(tmp_path / "a", load_model(folder / name, classes=["no", "yes"]))
    again = load(tmp_path / "a", autoencoder=(same, same))
    rows = people().head(50)
    pd.testing.assert_frame_equal(again.explain(rows).to_frame(), explainer.explain(rows).to_frame())
    assert artifact.bundled_model(tmp_path / "a").digest == load_model(folder / name).digest
    assert artifact.digest(again) == artifact.digest(explainer) == artifact.digest_of(tmp_path / "a")


def test_a_model_that_says_something_else_is_refused(explainer: FasterCE, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"must hold the model the explainer was fitted for; it disagrees on \d+ of 64"):
        explainer.save(tmp_path / "a", load_model(folder / "other.json", classes=["no", "yes"]))
    with pytest.raises(ModelError, match="if its classes need names"):
        explainer.save(tmp_path / "a", folder / "credit.json")
    assert not (tmp_path / "a").exists()


def test_a_file_that_changed_meanwhile_is_refused(explainer: FasterCE, folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "credit.json"
    copy.write_bytes((folder / "credit.json").read_bytes())
    loaded = load_model(copy, classes=["no", "yes"])
    copy.write_bytes((folder / "other.json").read_bytes())
    with pytest.raises(ArtifactError, match="has changed since it was loaded"):
        explainer.save(tmp_path / "a", loaded)


def test_pickles_do_not_travel(explainer: FasterCE, tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(trained(people(), 30)))
    with pytest.warns(UserWarning, match="runs the code in it"):
        loaded = load_model(path, trust_pickle=True)
    with pytest.raises(ArtifactError, match="of a kind that runs no code"):
        explainer.save(tmp_path / "a", loaded)


def test_saving_again_without_the_model_leaves_none_behind(explainer: FasterCE, folder: Path, tmp_path: Path) -> None:
    explainer.save(tmp_path / "a", load_model(folder / "credit.json", classes=["no", "yes"]))
    explainer.save(tmp_path / "a")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["arrays.safetensors", "manifest.json"]
    with pytest.raises(ArtifactError, match="was saved without its model"):
        load(tmp_path / "a", autoencoder=(same, same))
