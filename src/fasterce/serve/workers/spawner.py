"""Start the fork server of workers, with the modules imported that their models need, guessed from file names."""

import json
from collections.abc import Iterable
from pathlib import Path

from fasterce.io.processes import ForkServer
from fasterce.serve.settings import ServedArtifact, Settings

TARGET = "fasterce.serve.workers.process:run_worker"
COMPILERS = ("onnxruntime", "skl2onnx", "onnxmltools")
KERNELS = "fasterce.kernels.ready"
BY_SUFFIX = {
    ".onnx": ("onnxruntime", "onnx"),
    ".skops": ("skops.io", *COMPILERS),
    ".json": ("xgboost",),
    ".ubj": ("xgboost",),
    ".txt": ("lightgbm",),
    ".cbm": ("catboost",),
}


def start_fork_server(settings: Settings) -> ForkServer:
    """Start the fork server now. Called before the HTTP process imports what it needs, both import at the same time: pass
    the result to `Dispatcher`."""
    return ForkServer(TARGET, needed_modules(settings.artifacts), settings.environment)


def needed_modules(artifacts: Iterable[ServedArtifact]) -> list[str]:
    """Return module names, each once. What is not guessed is imported by each worker when it loads."""
    models = (name for served in artifacts for name in BY_SUFFIX.get(_suffix(served), COMPILERS))
    return list(dict.fromkeys((KERNELS, *models)))


def _suffix(served: ServedArtifact) -> str:
    if served.model is not None:
        return Path(served.model).suffix.lower()
    try:
        manifest = json.loads((served.folder / "manifest.json").read_bytes())
        return Path(manifest["model"]["file"]).suffix.lower()
    except (OSError, ValueError, LookupError, TypeError):
        return ""
