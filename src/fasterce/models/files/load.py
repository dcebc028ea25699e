"""Models from files, import paths and addresses. No file runs code unless the user sets `trust_pickle=True`."""

import hashlib
import io
import re
import sys
import zipfile
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType
from typing import Any

from fasterce.errors import InputError, MissingExtraError, ModelError, import_extra, problem_of, suggestion, unknown, warn
from fasterce.models.adapters import CatBoostModel, LightGBMModel, OnnxModel, RenamedModel, XGBoostModel, adapt
from fasterce.models.files import lightgbm_text, xgboost_file
from fasterce.models.files.kinds import KINDS, UnsoundError, kind_of
from fasterce.models.http import InferenceModel, MLflowModel
from fasterce.models.http.client import address

MOST_BYTES = 4 << 30
# A zip archive larger than this when unpacked must not have been compressed by more than this factor.
MUCH_UNPACKED, MOST_COMPRESSED = 64 << 20, 50
MOST_MEMBERS = 200_000
SAFE_SKOPS = (0, 12)

ADDRESS = re.compile(r"https?://", re.IGNORECASE)
IMPORT_PATH = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<name>[A-Za-z_][\w.]*)(?P<call>\(\))?")
SERVERS = {
    "mlflow": (re.compile(r"/invocations/?$"), MLflowModel),
    "inference": (re.compile(r"/v2/models/[^/?#]+"), InferenceModel),
}

# Used in most pipelines and not on skops' own list: a pattern and the names of types, nothing that is executed.
HARMLESS = ("sklearn.compose._column_transformer.make_column_selector",)

Classes = Sequence[Hashable] | None


@dataclass(frozen=True)
class LoadedModel:
    """A model and where it came from.

    Attributes
    ----------
    model : object
        The model.
    kind : str
        The kind of file, "import", "mlflow" or "inference".
    source : str
        The path, import path or address.
    digest : str or None
        "sha256:..." of the bytes that were loaded; None for import paths and addresses, which cannot be verified.
    classes : tuple or None
        The names given to the classes.
    """

    model: Any
    kind: str
    source: str
    digest: str | None
    classes: tuple[Hashable, ...] | None = None


def load_model(
    source: str | PathLike[str],
    *,
    trust_pickle: bool = False,
    trusted: Sequence[str] = (),
    classes: Sequence[Hashable] | None = None,
    kind: str | None = None,
) -> LoadedModel:
    """Load a model for `FasterCE`.

    Parameters
    ----------
    source : str or path
        A file (.onnx; XGBoost .json, .ubj; LightGBM .txt; CatBoost .cbm; .skops; .pkl, .joblib); an import path
        "package.module:name" of the model, or "package.module:name()" of a function that returns it; or an address
        "http://.../invocations" (MLflow) or "http://.../v2/models/NAME" (Open Inference).
    trust_pickle : bool, default=False
        Load pickles and joblib files. Loading one runs the code in it.
    trusted : sequence of str
        Types a skops file may use besides those skops knows to be harmless.
    classes : sequence, optional
        Names for the classes of a model that predicts 0, 1, ..., in that order.
    kind : str, optional
        The kind of file, where its name does not say.

    Returns
    -------
    LoadedModel

    Raises
    ------
    ModelError
        The model cannot be found or loaded, or must not be.
    """
    if kind is not None and kind not in KINDS:
        raise ModelError("options.unknown_choice", option="kind", expected=KINDS, received=kind)
    text = fspath(source)
    path = Path(text)
    if ADDRESS.match(text):
        return _from_address(text, classes, kind)
    if not path.exists() and (found := IMPORT_PATH.fullmatch(text)):
        return _from_import(text, found, classes)
    content = _read(path)
    chosen = kind_of(str(path), path.suffix.lower(), content, kind)
    # The file is read once, so that the digest is of the bytes that are loaded.
    model = _from_bytes(chosen, content, path, trust_pickle, trusted, classes)
    named = None if classes is None else tuple(classes)
    return LoadedModel(model, chosen, text, f"sha256:{hashlib.sha256(content).hexdigest()}", named)


def _read(path: Path) -> bytes:
    if path.is_dir():
        raise ModelError("models.file_is_folder", path=path)
    if not path.exists():
        raise ModelError("models.no_file", path=path, suggestion=_nearest_file(path))
    if not path.is_file():
        raise ModelError("models.not_a_file", path=path)
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise ModelError("models.file_size", path=path, expected=MOST_BYTES >> 30, received=round(size / 2**30, 1))
        content = path.read_bytes()
    except OSError as error:
        raise ModelError("models.file_unreadable", path=path, cause=problem_of(error)) from error
    if not content:
        raise ModelError("models.file_empty", path=path)
    return content


def _nearest_file(path: Path) -> str | None:
    near = suggestion(path.name, [other.name for other in _entries(path.parent)])
    return None if near is None else str(path.parent / str(near))


def _from_bytes(
    kind: str, content: bytes, path: Path, trust_pickle: bool, trusted: Sequence[str], classes: Classes
) -> object:
    if kind == "skops":
        return _renamed(_skops(content, path, trusted), classes)
    if kind == "pickle":
        return _renamed(_pickle(content, path, trust_pickle), classes)
    with _guarded(path, kind):
        if kind == "onnx":
            return OnnxModel(content, classes=classes)
        if kind == "xgboost":
            return _xgboost(content, classes)
        if kind == "lightgbm":
            text = lightgbm_text.check(content)
            booster = import_extra("lightgbm", "models", "A LightGBM model").Booster(model_str=text)
            return LightGBMModel(booster, classes=classes)
        if kind == "catboost":
            return _catboost(content, classes)
    raise ModelError("models.not_a_file_kind", option="kind", path=path, received=kind)


@contextmanager
def _guarded(path: Path, kind: str) -> Iterator[None]:
    """Convert exceptions of the library that reads the file to problems."""
    try:
        yield
    except (MissingExtraError, InputError):
        raise
    except Exception as error:
        raise ModelError("models.file_damaged", path=path, kind=kind, cause=problem_of(error)) from error


def _xgboost(content: bytes, classes: Classes) -> object:
    xgboost_file.check(content)
    booster = import_extra("xgboost", "models", "An XGBoost model").Booster()
    booster.load_model(bytearray(content))
    return XGBoostModel(booster, classes=classes)


def _catboost(content: bytes, classes: Classes) -> object:
    try:
        model = import_module("catboost").CatBoost()
    except ImportError as error:
        raise ModelError("models.no_catboost") from error
    size = 8 + int.from_bytes(content[4:8], "little")
    if len(content) < size:
        raise UnsoundError("models.file_too_short", received=len(content), expected=size)
    model.load_model(blob=content)
    return CatBoostModel(model, classes=classes)


def _skops(content: bytes, path: Path, trusted: Sequence[str]) -> object:
    if isinstance(trusted, (str, bytes)) or not all(isinstance(name, str) for name in trusted):
        raise InputError("models.trusted_types", option="trusted", received=trusted)
    skops = import_extra("skops.io", "skops", "A skops file")
    version = import_module("skops").__version__
    # Before 0.12 a file could run functions it did not name (CVE-2025-54412 and 54413).
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < SAFE_SKOPS:
        raise ModelError("models.unsafe_skops", received=version)
    with _guarded(path, "skops"):
        _check_archive(content)
        untrusted = skops.get_untrusted_types(data=content)
    missing = [name for name in untrusted if name not in (*HARMLESS, *trusted)]
    if missing:
        raise ModelError("models.untrusted_types", path=path, types=repr(missing)[:800])
    with _guarded(path, "skops"):
        return skops.loads(content, trusted=[*HARMLESS, *trusted])


def _check_archive(content: bytes) -> None:
    """Refuse an archive of a few bytes that unpacks to gigabytes."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
    unpacked = sum(member.file_size for member in members)
    if len(members) > MOST_MEMBERS or unpacked > MOST_BYTES:
        raise UnsoundError("models.archive_too_large", members=len(members), unpacked=unpacked)
    if unpacked > MUCH_UNPACKED and unpacked > MOST_COMPRESSED * len(content):
        raise UnsoundError("models.archive_ratio", received=len(content), unpacked=unpacked)
    if "schema.json" not in {member.filename for member in members}:
        raise UnsoundError("models.archive_no_schema")


def _pickle(content: bytes, path: Path, trust: bool) -> object:
    if trust is not True:
        raise ModelError("models.pickle_not_trusted", option="trust_pickle=True", path=str(path))
    warn("models.pickle_warning", 4, path=path)
    with _guarded(path, "pickle"):
        model = import_module("joblib").load(io.BytesIO(content))
    return _checked(model, str(path))


def _from_import(text: str, found: re.Match[str], classes: Classes) -> LoadedModel:
    value: object = _module(found["module"], text)
    for name in found["name"].split("."):
        if not hasattr(value, name):
            public = [other for other in dir(value) if not other.startswith("_")]
            raise ModelError(unknown("models.import_name", name, public, source=text, module=found["module"]))
        value = getattr(value, name)
    if found["call"]:
        if not callable(value):
            raise ModelError("models.import_not_callable", source=text, received=type(value).__name__)
        try:
            value = value()
        except (Exception, SystemExit) as error:
            raise ModelError("models.import_raised", source=text, cause=problem_of(error)) from error
    return LoadedModel(_renamed(_checked(value, text), classes), "import", text, None)


def _module(name: str, text: str) -> ModuleType:
    try:
        return import_module(name)
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and (name == missing or name.startswith(f"{missing}.")):
            near = _nearest_module(missing)
            raise ModelError("models.no_module", source=text, received=missing, suggestion=near) from error
        raise ModelError("models.module_raised", source=text, cause=problem_of(error)) from error


def _nearest_module(name: str) -> str | None:
    parent, _, last = name.rpartition(".")
    folders = find_spec(parent).submodule_search_locations or [] if parent and find_spec(parent) else sys.path  # type: ignore[union-attr]
    known = {entry.stem for folder in folders for entry in _entries(folder) if entry.suffix == ".py" or entry.is_dir()}
    near = suggestion(last, sorted(known))
    return None if near is None else f"{parent}.{near}".lstrip(".")


def _entries(folder: str | Path) -> list[Path]:
    try:
        return list(Path(folder or ".").iterdir())
    except OSError:
        return []


def _checked(model: object, where: str) -> object:
    adapted = adapt(model)
    if isinstance(model, type) or not (callable(getattr(adapted, "predict", None)) or callable(adapted)):
        raise ModelError("models.not_a_model", source=where, received=repr(model)[:100])
    return model


def _renamed(model: object, classes: Classes) -> object:
    return model if classes is None else RenamedModel(adapt(model), classes)


def _from_address(text: str, classes: Classes, kind: str | None) -> LoadedModel:
    path, shown = re.split(r"[?#]", text, maxsplit=1)[0], address(text)
    chosen = kind or next((name for name, (pattern, _) in SERVERS.items() if pattern.search(path)), "")
    if chosen not in SERVERS:
        raise ModelError("models.address_kind", url=shown)
    return LoadedModel(SERVERS[chosen][1](text, classes=classes), chosen, shown, None)
