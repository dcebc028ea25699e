"""The wheel, installed outside the clone: `make test-wheel`, since it installs packages and takes minutes."""

import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.wheel

# No extra is installed here: pandas and scikit-learn only.
BASE = """
import sys
import numpy as np, pandas as pd
from sklearn.linear_model import LogisticRegression
import fasterce
from fasterce import FasterCE, load

rng = np.random.default_rng(0)
X = pd.DataFrame({"income": rng.normal(50, 15, 400).round(1), "debt": rng.exponential(20, 400).round(1)})
model = LogisticRegression().fit(X, X["income"] - X["debt"] > 30)
explainer = FasterCE(model, random_state=0).fit(X)
refused = X[~model.predict(X)].head(20)
result = explainer.explain(refused)
assert (result.status == "found").all(), result.status
assert model.predict(result.counterfactuals).all()
explainer.save("saved")
again = load("saved", model).explain(refused)
pd.testing.assert_frame_equal(again.counterfactuals, result.counterfactuals)
assert "site-packages" in fasterce.__file__, fasterce.__file__
assert not {"torch", "pyarrow", "matplotlib", "onnxruntime"} & set(sys.modules)
print(fasterce.__version__)
"""

WALK = """
import sys
sys.path.insert(0, sys.argv[1])
import page_examples
for example in page_examples.run("getting-started.md", {}):
    assert example.shown is None or example.printed == example.shown, example
"""


def run(*command: object, folder: Path) -> str:
    """Run a command away from the clone and without its source on the path."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([str(part) for part in command], cwd=folder, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, folder=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel, folder=folder)
    return python


def test_the_base_package_fits_and_explains(python: Path, tmp_path: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert run(python, "-c", BASE, folder=tmp_path).strip() == version


def test_a_missing_extra_is_named(python: Path, tmp_path: Path) -> None:
    code = "from fasterce import datasets\ntry: datasets.load('adult')\nexcept ImportError as error: print(error)"
    assert 'pip install "fasterce[data]"' in run(python, "-c", code, folder=tmp_path)


def test_getting_started_is_true_outside_the_clone(wheel: Path, python: Path, tmp_path: Path) -> None:
    run(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", f"{wheel}[cli,onnx]", folder=tmp_path)
    run(python, "-c", WALK, ROOT / "scripts", folder=tmp_path)
    assert "explain" in run(python.parent / "fasterce", "--help", folder=tmp_path)
