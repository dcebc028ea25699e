"""Two files in a folder, replaced all at once: what is half-written is never seen."""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from fasterce.errors import ArtifactError, shorten

ARRAYS, MANIFEST = "arrays.safetensors", "manifest.json"
# A model saved beside them has one of these names, whatever it was called before.
MODELS = tuple(f"model{suffix}" for suffix in (".onnx", ".json", ".ubj", ".xgb", ".txt", ".lgb", ".lgbm", ".skops"))
MOST_BYTES = {MANIFEST: 64 * 2**20, ARRAYS: 4 * 2**30, **dict.fromkeys(MODELS, 4 * 2**30)}


def check_replaceable(target: Path, recognise: Callable[[bytes, Path], object]) -> None:
    """Only nothing, an empty folder or an artifact of ours with nothing beside it may give way."""
    refusal = f"Cannot save to {target}; expected a new folder or a saved explainer; got"
    if not target.exists():
        return
    if not target.is_dir():
        raise ArtifactError(f"{refusal} a file.")
    inside = sorted(entry.name for entry in target.iterdir())
    if set(inside) - {ARRAYS, MANIFEST, *MODELS}:
        raise ArtifactError(f"{refusal} a folder with {shorten(inside, 3)}.")
    if inside:
        try:
            recognise(read(target / MANIFEST), target / MANIFEST)
        except ArtifactError as error:
            raise ArtifactError(f"{refusal} a folder whose {MANIFEST} is missing or not ours.") from error


def replace_folder(target: Path, contents: Mapping[str, bytes]) -> None:
    """Everything on the way lives in one hidden folder beside the target, which goes away whatever happens."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    new, old = staging / "new", staging / "old"
    try:
        new.mkdir()
        for name, content in contents.items():
            _write(new / name, content)
        sync(new)
        if target.exists():
            os.rename(target, old)
        os.rename(new, target)
        sync(target.parent)
    finally:
        if old.exists() and not target.exists():
            os.rename(old, target)
        shutil.rmtree(staging, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync(folder: Path) -> None:
    """What was renamed in a folder stays renamed, whatever happens to the machine."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read(path: Path) -> bytes:
    if not path.is_file():
        raise unusable(path, "a file", "a folder" if path.is_dir() else "nothing")
    try:
        size, most = path.stat().st_size, MOST_BYTES[path.name]
        if size > most:
            raise unusable(path, f"at most {most} bytes", f"{size} bytes")
        return path.read_bytes()
    except OSError as error:
        raise unusable(path, "a file that can be read", str(error)) from error


def unusable(path: Path, expected: str, got: str) -> ArtifactError:
    return ArtifactError(f"No usable saved explainer at {path}; expected {expected}; got {got}.")
