"""Models from files, import paths and addresses. No file runs code unless the user says `trust_pickle=True`."""

import hashlib
import io
import re
import sys
import warnings
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from fasterce.adapters import CatBoostModel, LightGBMModel, OnnxModel, RenamedModel, adapt
from fasterce.adapters.http.client import address
from fasterce.adapters.xgboost import xgboost_model
from fasterce.errors import FasterCEError, InputError, MissingExtraError, ModelError, unknown_name
from fasterce.loading import lightgbm_text, xgboost_file
from fasterce.loading.kinds import check_kind, kind_of
from fasterce.loading.xgboost_file import UnsoundError

MOST_BYTES = 4 << 30
# A zip archive larger than this when unpacked must not have been squeezed by more than this factor.
MUCH_UNPACKED, MOST_SQUEEZED = 64 << 20, 50
MOST_MEMBERS = 200_000
SAFE_SKOPS = (0, 12)

ADDRESS = re.compile(r"https?://", re.IGNORECASE)
IMPORT_PATH = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<name>[A-Za-z_][\w.]*)(?P<call>\(\))?")
INVOCATIONS = re.compile(r"/invocations/?$")
INFERENCE = re.compile(r"/v2/models/[^/?#]+")

# Used in most pipelines and not on skops' own list: a pattern and the names of types, nothing that is called.
HARMLESS = ("sklearn.compose._column_transformer.make_column_selector",)

Classes = Sequence[Any] | None


@dataclass(frozen=True)
class LoadedModel:
    """A model and where it came from. `digest` is "sha256:…" of a file's bytes, those that were loaded; None for import
    paths and addresses, where nothing here could vouch for it. `classes` are the names its classes were given."""

    model: Any
    kind: str
    source: str
    digest: str | None
    classes: tuple[Any, ...] | None = None


def load_model(
    source: str | PathLike[str],
    *,
    trust_pickle: bool = False,
    trusted: Sequence[str] = (),
    classes: Sequence[Any] | None = None,
    kind: str | None = None,
) -> LoadedModel:
    """A model ready for `FasterCE`.

    Parameters
    ----------
    source : a file (.onnx; XGBoost .json, .ubj; LightGBM .txt; CatBoost .cbm; .skops; .pkl, .joblib); an import path
        "package.module:name", where the object named is the model, or "package.module:name()", which is called once for
        it; or an address "http://…/invocations" (MLflow) or "http://…/v2/models/NAME" (Open Inference).
    trust_pickle : load pickles and joblib files. Loading one runs whatever code its author put in.
    trusted : types a skops file may use beside those skops knows to be harmless.
    classes : names for the classes of a model that answers 0, 1, …, in that order.
    kind : what the file is, where its name does not tell.
    """
    check_kind(kind)
    text = fspath(source)
    path = Path(text)
    if ADDRESS.match(text):
        return _from_address(text, classes, kind)
    if not path.exists() and (found := IMPORT_PATH.fullmatch(text)):
        return _from_import(text, found, classes)
    content = _read(path)
    chosen = kind_of(str(path), path.suffix.lower(), content, kind)
    # What is hashed is what is loaded: the file is read once.
    model = _from_bytes(chosen, content, path, trust_pickle, trusted, classes)
    named = None if classes is None else tuple(classes)
    return LoadedModel(model, chosen, text, f"sha256:{hashlib.sha256(content).hexdigest()}", named)


def _read(path: Path) -> bytes:
    if path.is_dir():
        raise ModelError(f"The model must be a file; {path} is a folder.")
    if not path.exists():
        raise ModelError(f"There is no model file {path}{_nearest_file(path)}; expected a file, module:name or an address.")
    if not path.is_file():
        raise ModelError(f"The model must be a plain file; {path} is none.")
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise ModelError(f"The model file {path} must have at most {MOST_BYTES >> 30} GiB; it has {size / 2**30:.1f}.")
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"The model file {path} must be readable; got {error}.") from error
    if not content:
        raise ModelError(f"The model file {path} must hold a model; it is empty.")
    return content


def _nearest_file(path: Path) -> str:
    try:
        near = get_close_matches(path.name, [other.name for other in path.parent.iterdir()], n=1)
    except OSError:
        return ""
    return f" (did you mean {path.parent / near[0]}?)" if near else ""


def _from_bytes(kind: str, content: bytes, path: Path, trust_pickle: bool, trusted: Sequence[str], classes: Classes) -> Any:
    if kind == "onnx":
        return _guarded(lambda: OnnxModel(content, classes=classes), path, "an ONNX model")
    if kind == "xgboost":
        return _guarded(lambda: _xgboost(content, classes), path, "an XGBoost model")
    if kind == "lightgbm":
        return _guarded(lambda: _lightgbm(content, classes), path, "a LightGBM model")
    if kind == "catboost":
        return _guarded(lambda: _catboost(content, classes), path, "a CatBoost model")
    if kind == "skops":
        return _renamed(_skops(content, path, trusted), classes)
    if kind == "pickle":
        return _renamed(_pickle(content, path, trust_pickle), classes)
    raise ModelError(f"kind must be that of a file for {path}; got {kind!r}.")


def _guarded(load: Callable[[], Any], path: Path, what: str) -> Any:
    """A library's complaint as one sentence of ours."""
    try:
        return load()
    except FasterCEError as error:
        if isinstance(error, (MissingExtraError, InputError)):
            raise
        raise ModelError(f"The model file {path} must be {what}, whole and undamaged: {error}") from error
    except Exception as error:
        said = (str(error).strip().splitlines() or [""])[0][:160].rstrip(". ")
        named = "" if isinstance(error, UnsoundError) else f"{type(error).__name__}: "
        raise ModelError(f"The model file {path} must be {what}, whole and undamaged; got: {named}{said}.") from error


def _library(name: str, extra: str, purpose: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(name, extra, purpose) from error


def _xgboost(content: bytes, classes: Classes) -> Any:
    xgboost_file.check(content)
    booster = _library("xgboost", "models", "An XGBoost model").Booster()
    booster.load_model(bytearray(content))
    return xgboost_model(booster, classes)


def _lightgbm(content: bytes, classes: Classes) -> Any:
    text = lightgbm_text.check(content)
    return LightGBMModel(_library("lightgbm", "models", "A LightGBM model").Booster(model_str=text), classes=classes)


def _catboost(content: bytes, classes: Classes) -> Any:
    try:
        model = import_module("catboost").CatBoost()
    except ImportError as error:
        raise ModelError("it takes the package catboost, which is not installed (pip install catboost).") from error
    told = 8 + int.from_bytes(content[4:8], "little")
    if len(content) < told:
        raise UnsoundError(f"{len(content)} bytes where at least {told} were to come")
    model.load_model(blob=content)
    return CatBoostModel(model, classes=classes)


def _skops(content: bytes, path: Path, trusted: Sequence[str]) -> Any:
    if isinstance(trusted, (str, bytes)) or not all(isinstance(name, str) for name in trusted):
        raise InputError(f"trusted must be a list of the names of types; got {trusted!r:.100}.")
    skops = _library("skops.io", "skops", "A skops file")
    _check_skops(import_module("skops").__version__)
    _guarded(lambda: _check_archive(content), path, "a skops file")
    untrusted = _guarded(lambda: skops.get_untrusted_types(data=content), path, "a skops file")
    missing = [name for name in untrusted if name not in (*HARMLESS, *trusted)]
    if missing:
        raise ModelError(
            f"The model file {path} uses types that are not trusted; expected trusted={missing!r:.800} (--trusted, "
            "one by one, on the command line) if you know them to be harmless; nothing was loaded."
        )
    return _guarded(lambda: skops.loads(content, trusted=[*HARMLESS, *trusted]), path, "a skops file")


def _check_skops(version: str) -> None:
    """Before 0.12 a file could run functions it did not name (CVE-2025-54412 and 54413)."""
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < SAFE_SKOPS:
        raise ModelError(f"A skops file must be loaded with skops 0.12 or newer, which is safe; got {version}.")


def _check_archive(content: bytes) -> None:
    """A few bytes that unpack to gigabytes are no model."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
    unpacked = sum(member.file_size for member in members)
    if len(members) > MOST_MEMBERS or unpacked > MOST_BYTES:
        raise UnsoundError(f"an archive of {len(members)} members and {unpacked} bytes when unpacked")
    if unpacked > MUCH_UNPACKED and unpacked > MOST_SQUEEZED * len(content):
        raise UnsoundError(f"an archive of {len(content)} bytes that unpacks to {unpacked}")
    if "schema.json" not in {member.filename for member in members}:
        raise UnsoundError("an archive without schema.json")


def _pickle(content: bytes, path: Path, trust: bool) -> Any:
    if trust is not True:
        raise ModelError(
            f"The model file {path} is a pickle, which can run any code when it is loaded, so nothing was loaded; expected "
            "ONNX, skops or the library's own format, or trust_pickle=True if you made the file yourself."
        )
    warnings.warn(
        f"Loading the pickle {path} runs whatever code its author put in, with all your rights, on this machine; go on only "
        "if you made it yourself or trust who did.",
        UserWarning,
        stacklevel=4,
    )
    model = _guarded(lambda: import_module("joblib").load(io.BytesIO(content)), path, "a pickle of a model")
    return _checked(model, str(path))


def _from_import(text: str, found: re.Match[str], classes: Classes) -> LoadedModel:
    module = _module(found["module"], text)
    held: Any = module
    for name in found["name"].split("."):
        if not hasattr(held, name):
            public = [other for other in dir(held) if not other.startswith("_")]
            raise ModelError(f"{text!r} must name something in {found['module']}; {unknown_name('name', name, public)}")
        held = getattr(held, name)
    if found["call"]:
        if not callable(held):
            raise ModelError(f"{text!r} must name a function, since it ends in (); got {type(held).__name__}.")
        held = _called(held, text)
    return LoadedModel(_renamed(_checked(held, text), classes), "import", text, None)


def _module(name: str, text: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise ModelError(f"The module of {text!r} cannot be imported: {error}.") from error
        raise ModelError(f"{text!r} must name a module that can be imported; {_nearest_module(error.name)}.") from error
    except Exception as error:
        raise ModelError(f"The module of {text!r} cannot be imported: {type(error).__name__}: {str(error)[:200]}.") from error


def _nearest_module(name: str) -> str:
    parent, _, last = name.rpartition(".")
    folders = find_spec(parent).submodule_search_locations or [] if parent and find_spec(parent) else sys.path  # type: ignore[union-attr]
    known = {entry.stem for folder in folders for entry in _entries(folder) if entry.suffix == ".py" or entry.is_dir()}
    near = get_close_matches(last, sorted(known), n=1)
    hint = f" (did you mean {f'{parent}.' if parent else ''}{near[0]}?)" if near else ""
    return f"there is no module {name!r}{hint}"


def _entries(folder: str) -> list[Path]:
    try:
        return list(Path(folder or ".").iterdir())
    except OSError:
        return []


def _called(function: Callable[[], Any], text: str) -> Any:
    try:
        return function()
    except (Exception, SystemExit) as error:
        raise ModelError(
            f"{text!r} must give a model when called; it raised {type(error).__name__}: {str(error)[:200]}."
        ) from error


def _checked(model: Any, where: str) -> Any:
    adapted = adapt(model)
    if isinstance(model, type) or not (callable(getattr(adapted, "predict", None)) or callable(adapted)):
        raise ModelError(
            f"{where} must be a model with predict, or a function from a DataFrame to labels; got {model!r:.100}."
        )
    return model


def _renamed(model: Any, classes: Classes) -> Any:
    return model if classes is None else RenamedModel(adapt(model), classes)


def _from_address(text: str, classes: Classes, kind: str | None) -> LoadedModel:
    path, shown = text.split("?", maxsplit=1)[0].split("#", maxsplit=1)[0], address(text)
    chosen = kind or ("mlflow" if INVOCATIONS.search(path) else "inference" if INFERENCE.search(path) else "")
    if chosen not in ("mlflow", "inference"):
        raise ModelError(f"The address {shown} must end in /invocations (MLflow) or /v2/models/NAME (Open Inference).")
    http = import_module("fasterce.adapters.http")
    make = http.MLflowModel if chosen == "mlflow" else http.InferenceModel
    return LoadedModel(make(text) if classes is None else make(text, classes=classes), chosen, shown, None)
