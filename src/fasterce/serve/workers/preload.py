"""Guess from file names which modules workers import for their models, so that the fork server imports them once for all."""

import json
from collections.abc import Iterable
from pathlib import Path

from fasterce.serve.settings import ServedArtifact

COMPILERS = ("onnxruntime", "skl2onnx", "onnxmltools")
BY_SUFFIX = {
    ".onnx": ("onnxruntime",),
    ".skops": ("skops.io", *COMPILERS),
    ".json": ("xgboost",),
    ".ubj": ("xgboost",),
    ".txt": ("lightgbm",),
    ".cbm": ("catboost",),
}


def needed_modules(artifacts: Iterable[ServedArtifact]) -> list[str]:
    """Return module names, each once. What is not guessed is imported by each worker when it loads."""
    found = dict.fromkeys(name for served in artifacts for name in BY_SUFFIX.get(_suffix(served), COMPILERS))
    return list(found)


def _suffix(served: ServedArtifact) -> str:
    if served.model is not None:
        return Path(served.model).suffix.lower()
    try:
        manifest = json.loads((served.folder / "manifest.json").read_bytes())
        return Path(manifest["model"]["file"]).suffix.lower()
    except (OSError, ValueError, LookupError, TypeError):
        return ""
