"""The model file saved with an explainer: of a kind that runs no code, under a fixed name, with its digest."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fasterce.artifact.folder import MODELS, read, unusable
from fasterce.data.dtypes import plain
from fasterce.errors import ArtifactError
from fasterce.models.files.load import LoadedModel, load_model

BUNDLED_KINDS = ("onnx", "xgboost", "lightgbm", "skops")


def can_bundle(loaded: LoadedModel) -> bool:
    """Return whether a model is of a kind that may be put into an artifact: a file that is data, not code."""
    return loaded.kind in BUNDLED_KINDS


def pack_model(loaded: LoadedModel) -> tuple[dict[str, Any], bytes]:
    """Return the manifest entry of a model file, and its bytes."""
    if not can_bundle(loaded):
        raise ArtifactError("artifact.cannot_bundle", expected=list(BUNDLED_KINDS), received=loaded.source, kind=loaded.kind)
    content = Path(loaded.source).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if f"sha256:{digest}" != loaded.digest:
        received = f"sha256:{digest}"
        raise ArtifactError("artifact.model_file_changed", path=loaded.source, expected=loaded.digest, received=received)
    name = next(name for name in MODELS if name.endswith(Path(loaded.source).suffix.lower()))
    classes = None if loaded.classes is None else [plain(label) for label in loaded.classes]
    return {"file": name, "kind": loaded.kind, "bytes": len(content), "sha256": digest, "classes": classes}, content


def check_described(about: object, path: Path) -> None:
    """Check the manifest entry of a model: a name of ours, a kind that runs no code."""
    if about is None:
        return
    names = ("file", "kind", "bytes", "sha256", "classes")
    if not isinstance(about, dict) or set(about) != set(names):
        raise unusable("model_entry", path, expected=list(names), received=about)
    if about["file"] not in MODELS or about["kind"] not in BUNDLED_KINDS:
        raise unusable("model_name", path, expected=list(MODELS), received=about["file"], kind=about["kind"])


def unpack_model(folder: Path, about: dict[str, Any] | None, trusted: Sequence[str]) -> LoadedModel:
    """Load the model in an artifact, if it is the one it was saved with."""
    if about is None:
        raise ArtifactError("artifact.no_model", path=str(folder))
    path = folder / about["file"]
    content = read(path)
    if len(content) != about["bytes"] or hashlib.sha256(content).hexdigest() != about["sha256"]:
        raise unusable("model_changed", path)
    loaded = load_model(path, trusted=trusted, classes=about["classes"], kind=about["kind"])
    if loaded.digest != f"sha256:{about['sha256']}":
        raise unusable("model_changed", path)
    return loaded
