"""A server that MLflow itself starts, as a remote model."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import httpx
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from fasterce import FasterCE, load
from fasterce.config import Config
from fasterce.models.http import MLflowModel

mlflow = pytest.importorskip("mlflow")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:mlflow", "ignore::FutureWarning:mlflow")


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"pay": rng.normal(50, 15, 300).round(1), "debt": rng.gamma(2.0, 10.0, 300).round(1)})


@pytest.fixture(scope="module")
def model(data: pd.DataFrame) -> LogisticRegression:
    return LogisticRegression().fit(data, data["pay"] - data["debt"] > 30)


@pytest.fixture(scope="module")
def url(model: LogisticRegression, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `mlflow models serve`."""
    import mlflow.sklearn

    folder = tmp_path_factory.mktemp("mlflow") / "model"
    mlflow.sklearn.save_model(
        model, folder, pip_requirements=[], pyfunc_predict_fn="predict_proba", serialization_format="cloudpickle"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # MLflow starts uvicorn by its name.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    arguments = ["models", "serve", "-m", str(folder), "--env-manager", "local", "-p", str(port)]
    server = subprocess.Popen(
        [sys.executable, "-m", "mlflow", *arguments],
        env={**os.environ, "PATH": path},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(300):
            try:
                httpx.get(f"http://127.0.0.1:{port}/ping", trust_env=False).raise_for_status()
                break
            except httpx.HTTPError:
                assert server.poll() is None
                sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def test_it_predicts_what_the_model_predicts_here(url: str, model: LogisticRegression, data: pd.DataFrame) -> None:
    with MLflowModel(url, classes=[False, True]) as remote:
        assert np.allclose(remote.predict_proba(data), model.predict_proba(data))
        assert remote.predict(data).tolist() == model.predict(data).tolist()


def test_it_is_explained(url: str, model: LogisticRegression, data: pd.DataFrame, tmp_path: Path) -> None:
    FasterCE(model, progress=False, config=Config.fast()).fit(data).save(tmp_path / "here")
    refused = data[~model.predict(data)].head(3)
    with MLflowModel(url, classes=[False, True]) as remote:
        result = load(tmp_path / "here", remote).explain(refused)
        assert result.status.tolist() == ["found"] * 3
    assert model.predict(result.counterfactuals[data.columns]).all()
