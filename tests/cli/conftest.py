"""A folder as a stranger has it: training rows, new rows, models in several formats, and an artifact made by `fit`."""

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner
from xgboost import XGBClassifier

from fasterce.cli.app import app
from tests import samples

NUMBERS = ["age", "pay", "debt"]


class Touch:
    """A pickle that leaves a trace when it is loaded."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return (Path.touch, (self.trace,))


def people(rows: int, seed: int) -> pd.DataFrame:
    frame = samples.people(rows, seed)[[*NUMBERS, "job"]].reset_index(drop=True)
    frame.insert(0, "customer", [f"c{k:03d}" for k in range(rows)])
    return frame


def granted(frame: pd.DataFrame) -> Any:
    return np.where(frame["pay"] - 0.8 * frame["debt"] + 5 * (frame["job"] == "nurse") > 32, "granted", "refused")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    train = people(400, 0)
    X, y = train[[*NUMBERS, "job"]], granted(train)
    train.assign(outcome=y).to_csv(folder / "train.csv", index=False)
    people(40, 1).to_csv(folder / "rows.csv", index=False)
    people(40, 1).to_parquet(folder / "rows.parquet")
    columns = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), ["job"]))
    skops.io.dump(make_pipeline(columns, LogisticRegression(C=10.0)).fit(X, y), folder / "model.skops")
    (folder / "model.pkl").write_bytes(pickle.dumps(Touch(Path("touched"))))
    trees = XGBClassifier(n_estimators=20, max_depth=3, enable_categorical=True)
    trees.fit(X.astype({"job": "category"}), y == "granted")
    trees.save_model(folder / "trees.json")
    run = CliRunner().invoke(app, ["inspect", str(folder / "train.csv"), *inspecting(folder)])
    assert run.exit_code == 0, run.output
    run = CliRunner().invoke(app, ["fit", *fitting(folder)])
    assert run.exit_code == 0, run.output
    return folder


def inspecting(folder: Path) -> list[str]:
    return ["--drop", "customer", "--drop", "outcome", "--freeze", "age", "-o", str(folder / "schema.yaml")]


def fitting(folder: Path, model: str = "model.skops", out: str = "shop.fasterce") -> list[str]:
    named = {"--data": "train.csv", "--schema": "schema.yaml", "--model": model, "--out": out}
    return [part for option, name in named.items() for part in (option, str(folder / name))]


@pytest.fixture
def shop(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder, to stand in."""
    folder = tmp_path / "shop"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run() -> Callable[..., Any]:
    """Runs a command; what it says on stdout and stderr is in `.stdout` and `.stderr`."""
    return lambda *words, **more: CliRunner().invoke(app, [str(word) for word in words], **more)
