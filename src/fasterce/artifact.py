"""A fitted explainer on disk: one folder with `arrays.safetensors` and `manifest.json`, replaced all at once.

Nothing is unpickled, no path is taken from the manifest, and `load` believes nothing it has not checked.
"""

import hashlib
import json
import os
import platform
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack

from fasterce.codec import Codec
from fasterce.errors import ArtifactError, FasterCEError, ModelError, shorten
from fasterce.fitting import Learned
from fasterce.latent.runtime import Callables, Network
from fasterce.predictor import FAILED, Predictor, find_scores
from fasterce.profile import Profile
from fasterce.report import FitReport
from fasterce.schema import Schema, plain
from fasterce.search.distance import Distance
from fasterce.search.hyperplanes import Hyperplanes
from fasterce.search.task import Knowledge
from fasterce.table import Table

if TYPE_CHECKING:
    from fasterce.explainer import FasterCE

FORMAT, VERSION = "fasterce-explainer", 1
ARRAYS, MANIFEST = "arrays.safetensors", "manifest.json"
MOST_BYTES = {MANIFEST: 64 * 2**20, ARRAYS: 4 * 2**30}
MOST_ASKED = 64
MANIFEST_FIELDS: dict[Any, tuple[str, ...]] = {
    dict: ("schema", "report", "files"),
    list: ("dtypes", "classes", "column_major"),
    str: ("scores", "autoencoder"),
    int: ("random_state",),
    bool: ("use_scores",),
    int | None: ("latent_dim",),
}

Coder = Callable[[Any], Any]
Named = dict[str, NDArray[Any]]
Content = dict[str, Any]


def save(explainer: "FasterCE", folder: str | os.PathLike[str]) -> None:
    """Write a fitted explainer (not its model); an artifact already in `folder` is replaced at the last moment."""
    target = Path(folder).resolve()
    own = explainer.knowledge_.autoencoder
    try:
        _check_replaceable(target)
        arrays = _arrays(explainer.knowledge_)
        packed = pack({name: np.asarray(array, order="C") for name, array in arrays.items()})
        manifest = _json(_manifest(explainer, arrays, packed), indent=2)
        # What could not be loaded again must not replace what can.
        _rebuild(target, _parse_manifest(manifest, target), packed, own if isinstance(own, Callables) else None)
        _replace(target, {ARRAYS: packed, MANIFEST: manifest})
    except OSError as error:
        raise ArtifactError(f"Cannot save to {target}; expected a folder that can be written; got {error}.") from error


def load(folder: str | os.PathLike[str], model: Any, *, autoencoder: tuple[Coder, Coder] | None = None) -> "FasterCE":
    """The explainer saved in `folder`, for the model it was fitted for; `autoencoder` only if it had your own."""
    from fasterce.explainer import FasterCE  # noqa: PLC0415 - explainer imports this module

    where = Path(folder)
    if not where.is_dir():
        raise _unusable(where, f"a folder with {MANIFEST} and {ARRAYS}", "a file" if where.exists() else "nothing")
    own = None if autoencoder is None else Callables(*autoencoder)
    manifest = _parse_manifest(_read(where / MANIFEST), where / MANIFEST)
    learned = _rebuild(where, manifest, _read(where / ARRAYS), own)
    _check_model(model, learned, where)
    settings = {name: manifest[name] for name in ("random_state", "scores", "latent_dim")}
    explainer = FasterCE(model, learned.table.schema, autoencoder=autoencoder, **settings)
    explainer.table_, explainer.knowledge_, explainer.report_ = learned.table, learned.knowledge, learned.report
    explainer.schema_, explainer.classes_ = learned.table.schema, learned.classes
    explainer.use_scores_ = learned.use_scores
    return explainer


def _arrays(knowledge: Knowledge) -> Named:
    """All arrays by dotted name; plain numbers are arrays without dimensions."""
    parts = {"profile": knowledge.codec.profile, "hyperplanes": knowledge.hyperplanes, "distance": knowledge.distance}
    network = {"network": knowledge.autoencoder} if isinstance(knowledge.autoencoder, Network) else {}
    named = {f"{part}.{name}": a for part, owner in (parts | network).items() for name, a in _arrays_of(owner).items()}
    return named | _arrays_of(knowledge) | {"example_classes": knowledge.example_classes.astype(np.int64)}


def _arrays_of(owner: Any) -> Named:
    values = owner.arrays() if hasattr(owner, "arrays") else {f.name: getattr(owner, f.name) for f in fields(owner)}
    return {name: np.asarray(value) for name, value in values.items() if isinstance(value, (np.ndarray, float))}


def _manifest(explainer: "FasterCE", arrays: Named, packed: bytes) -> Content:
    schema = explainer.table_.schema
    _check_scalars(schema.names, "column name")
    _check_scalars((value for feature in schema.features for value in feature.categories), "category")
    _check_scalars(explainer.classes_, "class")
    content = {
        "format": FORMAT,
        "version": VERSION,
        "written": _circumstances(),
        "schema": schema.to_dict(),
        "schema_sha256": _digest(schema.to_dict()),
        "dtypes": explainer.table_.to_dict(),
        "classes": list(explainer.classes_),
        "random_state": explainer.random_state,
        "scores": explainer.scores,
        "use_scores": bool(explainer.use_scores_),
        "latent_dim": explainer.latent_dim,
        "autoencoder": "network" if isinstance(explainer.knowledge_.autoencoder, Network) else "callables",
        "report": explainer.report_.to_dict(),
        # Products of matrices may round differently in another memory order, so the order is kept too.
        "column_major": sorted(name for name, array in arrays.items() if array.flags.fnc),
        "files": {ARRAYS: {"bytes": len(packed), "sha256": hashlib.sha256(packed).hexdigest()}},
    }
    return content | {"sha256": _digest(content)}


def _circumstances() -> dict[str, str]:
    try:
        version = metadata.version("fasterce")
    except metadata.PackageNotFoundError:
        version = "unknown"
    versions = {"python": platform.python_version(), "numpy": np.__version__, "pandas": pd.__version__}
    return {"fasterce": version, **versions, "time": datetime.now(UTC).isoformat(timespec="seconds")}


def _check_scalars(values: Iterable[Any], what: str) -> None:
    for value in values:
        if not isinstance(plain(value), (str, int, float, bool)):
            raise ArtifactError(f"A {what} must be text, a number or a boolean to be saved; got {value!r}.")


def _json(content: Any, **layout: Any) -> bytes:
    return json.dumps(content, default=_bare, **layout).encode()


def _bare(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise ArtifactError(f"A saved explainer can hold text, numbers and booleans; got {value!r}.")


def _digest(content: Any) -> str:
    return hashlib.sha256(_json(content, sort_keys=True)).hexdigest()


def _check_replaceable(target: Path) -> None:
    """Only nothing, an empty folder or an artifact of ours with nothing beside it may give way."""
    refusal = f"Cannot save to {target}; expected a new folder or a saved explainer; got"
    if not target.exists():
        return
    if not target.is_dir():
        raise ArtifactError(f"{refusal} a file.")
    inside = sorted(entry.name for entry in target.iterdir())
    if set(inside) - {ARRAYS, MANIFEST}:
        raise ArtifactError(f"{refusal} a folder with {shorten(inside, 3)}.")
    if inside:
        try:
            _parse_json(_read(target / MANIFEST), target / MANIFEST)
        except ArtifactError as error:
            raise ArtifactError(f"{refusal} a folder whose {MANIFEST} is missing or not ours.") from error


def _replace(target: Path, contents: Mapping[str, bytes]) -> None:
    """Everything on the way lives in one hidden folder beside the target, which goes away whatever happens."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    new, old = staging / "new", staging / "old"
    try:
        new.mkdir()
        for name, content in contents.items():
            _write(new / name, content)
        _sync(new)
        if target.exists():
            os.rename(target, old)
        os.rename(new, target)
        _sync(target.parent)
    finally:
        if old.exists() and not target.exists():
            os.rename(old, target)
        shutil.rmtree(staging, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise _unusable(path, "a file", "a folder" if path.is_dir() else "nothing")
    try:
        size, most = path.stat().st_size, MOST_BYTES[path.name]
        if size > most:
            raise _unusable(path, f"at most {most} bytes", f"{size} bytes")
        return path.read_bytes()
    except OSError as error:
        raise _unusable(path, "a file that can be read", str(error)) from error


def _unusable(path: Path, expected: str, got: str) -> ArtifactError:
    return ArtifactError(f"No usable saved explainer at {path}; expected {expected}; got {got}.")


def _parse_json(text: bytes, path: Path) -> Content:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unusable(path, "JSON", f"something else ({error})") from error
    name = content.get("format") if isinstance(content, dict) else content
    if not isinstance(content, dict) or name != FORMAT:
        raise _unusable(path, f"the format {FORMAT!r}", f"the manifest of another program ({name!r:.80})")
    return content


def _parse_manifest(text: bytes, path: Path) -> Content:
    content = _parse_json(text, path)
    version = content.get("version")
    if not isinstance(version, int) or version < 1:
        raise _unusable(path, "a format version of 1 or more", f"{version!r:.80}")
    if version > VERSION:
        newer = f"The saved explainer at {path} was written by a newer fasterce"
        raise ArtifactError(f"{newer}; expected format version <= {VERSION}; got {version}.")
    for kind, names in MANIFEST_FIELDS.items():
        for name in names:
            if not isinstance(content.get(name, ...), kind):
                raise _unusable(path, f"a field {name!r} of type {kind}", f"{content.get(name, 'none')!r:.80}")
    if content.pop("sha256", None) != _digest(content):
        raise _unusable(path, "the content it was written with", "a manifest changed since (its SHA-256 differs)")
    if content.get("schema_sha256") != _digest(content["schema"]):
        raise _unusable(path, "the schema it was written with", "another (its SHA-256 differs)")
    if list(content["files"]) != [ARRAYS] or not isinstance(content["files"][ARRAYS], dict):
        raise _unusable(path, f"{ARRAYS!r} as its only file", shorten(content["files"], 3))
    return content


def _parse_arrays(packed: bytes, manifest: Content, path: Path) -> "_Stored":
    size, digest = (manifest["files"][ARRAYS].get(name) for name in ("bytes", "sha256"))
    if len(packed) != size:
        raise _unusable(path, f"{size!r:.80} bytes", f"{len(packed)} (cut off or changed)")
    if hashlib.sha256(packed).hexdigest() != digest:
        raise _unusable(path, f"the SHA-256 in {MANIFEST}", "another (damaged or changed)")
    try:
        arrays = unpack(packed)
    except (SafetensorError, LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise _unusable(path, "arrays in the safetensors format", str(error)) from error
    by_column = manifest["column_major"]
    return _Stored(path, {name: np.array(a, order="F" if name in by_column else "C") for name, a in arrays.items()})


@dataclass(frozen=True)
class _Stored:
    """The arrays of a file, handed out only with the type and shape they must have, and finite."""

    path: Path
    arrays: Named

    def take(self, name: str, shape: tuple[int | None, ...], dtype: Any = np.float64) -> NDArray[Any]:
        """`None` in a shape stands for any length but zero."""
        if name not in self.arrays:
            raise _unusable(self.path, f"an array {name!r}", "none")
        array = self.arrays[name]
        wanted = tuple(max(1, has) if want is None else want for has, want in zip(array.shape, shape, strict=False))
        if array.dtype != dtype or array.ndim != len(shape) or array.shape != wanted:
            expected = f"{name!r} as {np.dtype(dtype)} of shape {shape}".replace("None", "any")
            raise _unusable(self.path, expected, f"{array.dtype} of shape {array.shape}")
        if not np.isfinite(array).all():
            raise _unusable(self.path, f"finite numbers in {name!r}", "NaN or infinity")
        return array

    def like(self, part: str, template: Any) -> Named:
        return {name: self.take(f"{part}.{name}", a.shape, a.dtype) for name, a in _arrays_of(template).items()}

    def codes(self, name: str, shape: tuple[int | None, ...], dtype: Any, counts: list[int | None]) -> NDArray[Any]:
        """`counts` says for every column how many codes there are, `None` for plain numbers."""
        array = self.take(name, shape, dtype)
        for column, count in zip(array.reshape(len(array), -1).T, counts, strict=True):
            if count is not None and not np.isin(column, np.arange(count)).all():
                raise _unusable(self.path, f"codes from 0 to {count - 1} in {name!r}", "others")
        return array


def _rebuild(where: Path, manifest: Content, packed: bytes, own: Callables | None) -> Learned:
    stored = _parse_arrays(packed, manifest, where / ARRAYS)
    if own is None and manifest["autoencoder"] != "network":
        needs = f"The explainer at {where} was saved with an autoencoder of your own, which no file can hold"
        raise ArtifactError(f"{needs}; expected load(..., autoencoder=(encode, decode)); got none.")
    if own is not None and manifest["autoencoder"] == "network":
        raise ArtifactError(f"The explainer at {where} brings its own network; expected autoencoder=None; got functions.")
    try:
        table = Table.from_dict(Schema.from_dict(manifest["schema"]), manifest["dtypes"])
        report = FitReport.from_dict(manifest["report"])
        classes = tuple(manifest["classes"])
        if len(set(classes)) < max(2, len(classes)) or len(table.dtypes) != len(table.schema):
            raise ValueError(f"classes {shorten(classes)} and {len(table.dtypes)} dtypes for {len(table.schema)} columns")
        knowledge = _knowledge(stored, table.schema, len(classes), own)
        table.frame(knowledge.examples[:MOST_ASKED])
    except (FasterCEError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        if isinstance(error, ArtifactError):
            raise
        raise _unusable(where, "the parts of an explainer", f"{type(error).__name__}: {error}") from error
    return Learned(table, knowledge, report, classes, manifest["use_scores"])


def _knowledge(stored: _Stored, schema: Schema, classes: int, own: Callables | None) -> Knowledge:
    counts = [None if feature.numeric else len(feature.categories) for feature in schema.features]
    examples = stored.codes("examples", (None, len(schema)), np.float64, counts)
    answers = stored.codes("example_classes", (len(examples),), np.int64, [classes])
    # Measured on a few rows only to know which arrays a profile has, and their shapes.
    profile = Profile(**stored.like("profile", Profile.measure(examples[:MOST_ASKED], schema)))
    codec = Codec(schema, profile)
    rows = codec.width + classes
    latent = stored.take("hyperplanes.normals", (rows, None)).shape[1]
    shapes = {f.name: (rows, latent) if f.name == "normals" else (rows,) for f in fields(Hyperplanes) if f.name != "classes"}
    planes = {name: stored.take(f"hyperplanes.{name}", shape) for name, shape in shapes.items()}
    parts: Content = {
        "codec": codec,
        "autoencoder": own or _network(stored, codec, latent),
        "hyperplanes": Hyperplanes(**planes, classes=classes),
        "examples": examples,
        "example_classes": answers.astype(np.intp),
        "distance": Distance(**stored.like("distance", Distance.gower(profile.span, codec.numeric))),
    }
    numbers = {f.name: float(stored.take(f.name, ())) for f in fields(Knowledge) if f.name not in parts}
    knowledge = Knowledge(**parts | numbers)
    unknown = stored.arrays.keys() - _arrays(knowledge).keys()
    if unknown:
        raise _unusable(stored.path, "only the arrays of an explainer", shorten(sorted(unknown), 3))
    _rehearse(knowledge, latent, stored.path)
    return knowledge


def _network(stored: _Stored, codec: Codec, latent: int) -> Network:
    named = {name.removeprefix("network."): a for name, a in stored.arrays.items() if name.startswith("network.")}
    network = Network.from_arrays(named, tuple(block.columns for block in codec.blocks))
    for part, width, outputs in (("encoder", codec.width, latent), ("decoder", latent, codec.width)):
        inputs, last = width, max(0, len(getattr(network, part)) - 1)
        for depth in range(last + 1):
            weight = stored.take(f"network.{part}.{depth}.weight", (inputs, outputs if depth == last else None))
            inputs = stored.take(f"network.{part}.{depth}.bias", (weight.shape[1],)).size
    return network


def _rehearse(knowledge: Knowledge, latent: int, path: Path) -> None:
    """Take a few examples into the latent space and back; a user's own functions may do anything."""
    expected = f"an autoencoder between finite rows of {knowledge.codec.width} and {latent} numbers"
    try:
        with np.errstate(all="ignore"):
            matrix = knowledge.codec.encode(knowledge.examples[:MOST_ASKED])
            there = knowledge.autoencoder.encode(matrix)
            back = knowledge.autoencoder.decode(there)
    except Exception as error:
        raise _unusable(path, expected, f"{type(error).__name__}: {error}") from error
    if there.shape != (len(matrix), latent) or back.shape != matrix.shape:
        raise _unusable(path, expected, f"shapes {there.shape} and {back.shape} for {len(matrix)} rows")
    if not (np.isfinite(there).all() and np.isfinite(back).all()):
        raise _unusable(path, expected, "NaN or infinity")


def _check_model(model: Any, learned: Learned, where: Path) -> None:
    if learned.use_scores and find_scores(model) is None:
        fitted = f"The explainer at {where} was fitted for a model with scores"
        raise ModelError(f"{fitted}; expected predict_proba or decision_function; got {type(model).__name__} without.")
    predictor = Predictor(model, learned.table, learned.classes)
    examples, known = learned.knowledge.examples, learned.knowledge.example_classes
    asked = np.linspace(0, len(examples) - 1, min(MOST_ASKED, len(examples))).astype(np.intp)
    answers = predictor.label(examples[asked])
    if (answers == FAILED).any():
        raise ModelError(f"The explainer at {where} does not fit this model: {predictor.failure}")
    differing = int((answers != known[asked]).sum())
    if differing:
        warnings.warn(
            f"The model disagrees with {differing} of {len(asked)} answers stored in {where}: the artifact was fitted "
            "for another model, and counterfactuals may be missed or farther away than they need to be.",
            UserWarning,
            stacklevel=3,
        )
