"""A model that travels with its explainer: of a kind that runs no code, under a name of ours, with its digest."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fasterce.artifact.folder import MODELS, read, unusable
from fasterce.errors import ArtifactError, shorten
from fasterce.models import LoadedModel, load_model
from fasterce.schema import plain

TRAVELS = ("onnx", "xgboost", "lightgbm", "skops")


def can_travel(loaded: LoadedModel) -> bool:
    """Whether a model is of a kind that may be put into an artifact: a file that is data, not code."""
    return loaded.kind in TRAVELS


def pack_model(loaded: LoadedModel) -> tuple[dict[str, Any], bytes]:
    """What the manifest says of a model file, and the file."""
    if not can_travel(loaded):
        kinds = f"a model file of a kind that runs no code ({shorten(TRAVELS)})"
        raise ArtifactError(f"Only {kinds} can be saved with its explainer; got {loaded.source!r} ({loaded.kind}).")
    content = Path(loaded.source).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if f"sha256:{digest}" != loaded.digest:
        raise ArtifactError(
            f"The model file {loaded.source} has changed since it was loaded; expected {loaded.digest}; got sha256:{digest}."
        )
    name = next(name for name in MODELS if name.endswith(Path(loaded.source).suffix.lower()))
    classes = None if loaded.classes is None else [plain(label) for label in loaded.classes]
    return {"file": name, "kind": loaded.kind, "bytes": len(content), "sha256": digest, "classes": classes}, content


def check_described(about: Any, path: Path) -> None:
    """What a manifest says of its model must be of our own making: a name of ours, a kind that runs no code."""
    if about is None:
        return
    names = ("file", "kind", "bytes", "sha256", "classes")
    if not isinstance(about, dict) or set(about) != set(names):
        raise unusable(path, f"a model described by {shorten(names)}", f"{about!r:.80}")
    if about["file"] not in MODELS or about["kind"] not in TRAVELS:
        raise unusable(path, f"a model in one of {shorten(MODELS)}", f"{about['file']!r:.80} ({about['kind']!r:.20})")


def unpack_model(folder: Path, about: dict[str, Any] | None, trusted: Sequence[str]) -> LoadedModel:
    """The model an artifact brings, if it is the one it was saved with."""
    if about is None:
        raise ArtifactError(
            f"The explainer at {folder} was saved without its model; expected one (--model on the command line); got none."
        )
    path = folder / about["file"]
    content = read(path)
    if len(content) != about["bytes"] or hashlib.sha256(content).hexdigest() != about["sha256"]:
        raise unusable(path, "the model it was saved with", "another file (damaged or changed)")
    loaded = load_model(path, trusted=trusted, classes=about["classes"], kind=about["kind"])
    if loaded.digest != f"sha256:{about['sha256']}":
        raise unusable(path, "the model it was saved with", "a file that changed while it was read")
    return loaded
