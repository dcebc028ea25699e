"""The files of an artifact, replaced all at once: a half-written artifact is never seen."""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from fasterce.errors import ArtifactError
from fasterce.io.atomic import new_file, sync_folder

ARRAYS, MANIFEST = "arrays.safetensors", "manifest.json"
# A model saved beside them gets one of these names, regardless of its original name.
MODELS = tuple(f"model{suffix}" for suffix in (".onnx", ".json", ".ubj", ".xgb", ".txt", ".lgb", ".lgbm", ".skops"))
MOST_BYTES = {MANIFEST: 64 * 2**20, ARRAYS: 4 * 2**30, **dict.fromkeys(MODELS, 4 * 2**30)}


def check_replaceable(target: Path, recognise: Callable[[bytes, Path], object]) -> None:
    """Check that the target is absent, an empty folder, or an artifact with no other files."""
    if not target.exists():
        return
    if not target.is_dir():
        raise ArtifactError("artifact.target_is_a_file", path=str(target))
    inside = sorted(entry.name for entry in target.iterdir())
    if set(inside) - {ARRAYS, MANIFEST, *MODELS}:
        raise ArtifactError("artifact.target_has_files", path=str(target), received=inside)
    if inside:
        try:
            recognise(read(target / MANIFEST), target / MANIFEST)
        except ArtifactError as error:
            raise ArtifactError("artifact.target_is_foreign", path=str(target), manifest=MANIFEST) from error


def replace_folder(target: Path, contents: Mapping[str, bytes]) -> None:
    """Write everything to a hidden folder beside the target, then rename it; the hidden folder is always removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    new, old = staging / "new", staging / "old"
    try:
        new.mkdir()
        for name, content in contents.items():
            _write(new / name, content)
        sync_folder(new)
        if target.exists():
            os.rename(target, old)
        os.rename(new, target)
        sync_folder(target.parent)
    finally:
        if old.exists() and not target.exists():
            os.rename(old, target)
        shutil.rmtree(staging, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    with new_file(path) as file:
        file.write(content)


def read(path: Path) -> bytes:
    if not path.is_file():
        raise unusable("not_a_file" if path.is_dir() else "no_file", path)
    try:
        size, most = path.stat().st_size, MOST_BYTES[path.name]
        if size > most:
            raise unusable("too_large", path, expected=most, received=size)
        return path.read_bytes()
    except OSError as error:
        raise unusable("unreadable", path, error=str(error)) from error


def unusable(code: str, path: Path, **fields: object) -> ArtifactError:
    """Return the error of an artifact that cannot be used."""
    return ArtifactError(f"artifact.{code}", path=str(path), **fields)
