"""Clients of others against the inference routes, each in a process of its own.

Triton's is among the packages for development. MLServer and KServe's are large and want other versions of ours: `make
test-clients` runs all three from a venv of their own, which FASTERCE_CLIENTS names.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.serve.service import Service, row

PYTHON = os.environ.get("FASTERCE_CLIENTS", sys.executable)
FOLDER = Path(__file__).parent / "clients"


def told_by(script: str, module: str, service: Service) -> dict[str, Any]:
    find = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    if subprocess.run([PYTHON, "-c", find], check=False).returncode:
        pytest.skip(f"{module} is not installed; see make test-clients")
    command = [PYTHON, "-W", "ignore", str(FOLDER / script), service.url, "moody"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, input=json.dumps(row()), capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_triton(service: Service) -> None:
    told = told_by("triton.py", "tritonclient", service)
    assert told["ready"] is True
    assert told["default"] == ["found", "found"]
    assert told["counterfactuals"] == 2
    assert told["binary"].startswith("[400]")
    assert "binary_data=False" in told["binary"]


def test_mlserver(service: Service) -> None:
    told = told_by("mlserver_codecs.py", "mlserver", service)
    assert told == {"status": ["found", "found"], "columns": ["record", "status", "counterfactual"]}


def test_kserve(service: Service) -> None:
    told = told_by("kserve_rest.py", "kserve", service)
    assert told == {
        "ready": [True] * 4,
        "status": ["found", "found"],
        "predictions": ["bad", "bad"],
        "explanations": ["found", "found"],
    }
