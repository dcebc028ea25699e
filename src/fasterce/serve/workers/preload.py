"""What engines will import for the models they load, guessed from names of files, so that it is imported once for all."""

import json
from collections.abc import Iterable
from pathlib import Path

from fasterce.serve.settings import Served

TWIN = ("onnxruntime", "skl2onnx", "onnxmltools")
BY_SUFFIX = {
    ".onnx": ("onnxruntime",),
    ".skops": ("skops.io", *TWIN),
    ".json": ("xgboost",),
    ".ubj": ("xgboost",),
    ".txt": ("lightgbm",),
    ".cbm": ("catboost",),
}


def needed_modules(artifacts: Iterable[Served]) -> list[str]:
    """Names of modules, each once. Whatever is not guessed is imported by each engine, when it loads."""
    found = dict.fromkeys(name for served in artifacts for name in BY_SUFFIX.get(_suffix(served), TWIN))
    return list(found)


def _suffix(served: Served) -> str:
    if served.model is not None:
        return Path(served.model).suffix.lower()
    try:
        manifest = json.loads((served.folder / "manifest.json").read_bytes())
        return Path(manifest["model"]["file"]).suffix.lower()
    except (OSError, ValueError, LookupError, TypeError):
        return ""
