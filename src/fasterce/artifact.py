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
from fasterce.latent.runtime import Autoencoder, Callables, Network
from fasterce.predictor import FAILED, Predictor, find_scores
from fasterce.profile import Floats, Profile
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

Coders = tuple[Callable[[Any], Any], Callable[[Any], Any]]
Named = dict[str, NDArray[Any]]

MANIFEST_FIELDS: dict[str, type | tuple[type, ...]] = {
    "schema": dict,
    "dtypes": list,
    "classes": list,
    "random_state": int,
    "scores": str,
    "use_scores": bool,
    "latent_dim": (int, type(None)),
    "autoencoder": str,
    "report": dict,
    "column_major": list,
    "files": dict,
}


def save(explainer: "FasterCE", folder: str | os.PathLike[str]) -> None:
    """Write a fitted explainer (not its model); an artifact already in `folder` is replaced at the last moment."""
    target = Path(folder).resolve()
    learned = Learned(explainer.table_, explainer.knowledge_, explainer.report_, explainer.classes_, explainer.use_scores_)
    try:
        _check_replaceable(target)
        arrays = _arrays(learned.knowledge)
        packed = pack({name: np.asarray(array, order="C") for name, array in arrays.items()})
        manifest = _json(_manifest(explainer, learned, arrays, packed), target, indent=2)
        # What could not be loaded again must not replace what could.
        _rebuild(target, manifest, packed, explainer.autoencoder)
        _replace(target, {ARRAYS: packed, MANIFEST: manifest})
    except OSError as error:
        raise ArtifactError(f"Cannot save to {target}; expected a folder that can be written; got {error}.") from error


def load(folder: str | os.PathLike[str], model: Any, *, autoencoder: Coders | None = None) -> "FasterCE":
    """The explainer saved in `folder`, for the model it was fitted for; `autoencoder` only if it had your own."""
    from fasterce.explainer import FasterCE  # noqa: PLC0415 - explainer imports this module

    where = Path(folder)
    if not where.is_dir():
        raise _unusable(where, f"a folder with {MANIFEST} and {ARRAYS}", "a file" if where.exists() else "nothing")
    manifest, learned = _rebuild(where, _read(where / MANIFEST), _read(where / ARRAYS), autoencoder)
    _check_model(model, learned, where)
    explainer = FasterCE(
        model,
        learned.table.schema,
        random_state=manifest["random_state"],
        scores=manifest["scores"],
        latent_dim=manifest["latent_dim"],
        autoencoder=autoencoder,
    )
    explainer.table_, explainer.knowledge_, explainer.report_ = learned.table, learned.knowledge, learned.report
    explainer.schema_, explainer.classes_ = learned.table.schema, learned.classes
    explainer.use_scores_ = learned.use_scores
    return explainer


def _arrays(knowledge: Knowledge) -> Named:
    parts = {"profile": knowledge.codec.profile, "hyperplanes": knowledge.hyperplanes, "distance": knowledge.distance}
    network = {"network": knowledge.autoencoder} if isinstance(knowledge.autoencoder, Network) else {}
    named = {f"{part}.{name}": a for part, owner in (parts | network).items() for name, a in _arrays_of(owner).items()}
    return named | {"examples": knowledge.examples, "example_classes": knowledge.example_classes.astype(np.int64)}


def _arrays_of(owner: Any) -> Named:
    if hasattr(owner, "arrays"):
        return dict(owner.arrays())
    return {f.name: getattr(owner, f.name) for f in fields(owner) if isinstance(getattr(owner, f.name), np.ndarray)}


def _manifest(explainer: "FasterCE", learned: Learned, arrays: Named, packed: bytes) -> dict[str, Any]:
    schema = learned.table.schema
    for feature in schema.features:
        _check_scalars([feature.name], "column name")
        _check_scalars(feature.categories, f"category of column {feature.name!r}")
    _check_scalars(learned.classes, "class")
    content = {
        "format": FORMAT,
        "version": VERSION,
        "written": _circumstances(),
        "schema": schema.to_dict(),
        "schema_sha256": _content_digest(schema.to_dict()),
        "dtypes": learned.table.to_dict(),
        "classes": list(learned.classes),
        "random_state": explainer.random_state,
        "scores": explainer.scores,
        "use_scores": bool(learned.use_scores),
        "latent_dim": explainer.latent_dim,
        "autoencoder": "network" if isinstance(learned.knowledge.autoencoder, Network) else "callables",
        "report": learned.report.to_dict(),
        # Products of matrices may round differently in another memory order, so the order is part of what is kept.
        "column_major": sorted(name for name, array in arrays.items() if not array.flags.c_contiguous),
        "files": {ARRAYS: {"bytes": len(packed), "sha256": hashlib.sha256(packed).hexdigest()}},
    }
    return content | {"sha256": _content_digest(content)}


def _circumstances() -> dict[str, str]:
    try:
        version = metadata.version("fasterce")
    except metadata.PackageNotFoundError:
        version = "unknown"
    now = datetime.now(UTC).isoformat(timespec="seconds")
    versions = {"python": platform.python_version(), "numpy": np.__version__, "pandas": pd.__version__}
    return {"fasterce": version, **versions, "time": now}


def _check_scalars(values: Iterable[Any], what: str) -> None:
    for value in values:
        if not isinstance(plain(value), (str, int, float, bool)):
            raise ArtifactError(f"A {what} must be text, a number or a boolean to be saved; got {value!r}.")


def _json(content: Any, where: Path | None = None, **layout: Any) -> bytes:
    def bare(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        raise ArtifactError(f"Cannot save to {where}; expected text, numbers and booleans; got {value!r}.")

    return json.dumps(content, default=bare, **layout).encode()


def _content_digest(content: Any) -> str:
    return hashlib.sha256(_json(content, sort_keys=True)).hexdigest()


def _check_replaceable(target: Path) -> None:
    """Only nothing, an empty folder or an artifact of ours with nothing beside it may give way."""
    if not target.exists():
        return
    refusal = f"Cannot save to {target}; expected a new folder or a saved explainer"
    if not target.is_dir():
        raise ArtifactError(f"{refusal}; got a file.")
    inside = sorted(entry.name for entry in target.iterdir())
    strangers = [name for name in inside if name not in (ARRAYS, MANIFEST)]
    if strangers:
        raise ArtifactError(f"{refusal}; got a folder with {shorten(strangers, 3)}.")
    if inside:
        try:
            _parse_json(_read(target / MANIFEST), target / MANIFEST)
        except ArtifactError as error:
            raise ArtifactError(f"{refusal}; got another folder: {error}") from error


def _replace(target: Path, contents: Mapping[str, bytes]) -> None:
    """Everything on the way lives in one hidden sibling folder, which is gone afterwards, come what may."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    new, old = staging / "new", staging / "old"
    try:
        new.mkdir()
        for name, content in contents.items():
            _write(new / name, content)
        _sync_folder(new)
        if target.exists():
            os.rename(target, old)
        os.rename(new, target)
        _sync_folder(target.parent)
    finally:
        if old.exists() and not target.exists():
            os.rename(old, target)
        shutil.rmtree(staging, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> bytes:
    most = MOST_BYTES[path.name]
    if not path.is_file():
        raise _unusable(path, "a file", "a folder" if path.is_dir() else "nothing")
    try:
        size = path.stat().st_size
        if size > most:
            raise _unusable(path, f"at most {most} bytes", f"{size} bytes")
        return path.read_bytes()
    except OSError as error:
        raise _unusable(path, "a file that can be read", str(error)) from error


def _unusable(path: Path, expected: str, got: str) -> ArtifactError:
    return ArtifactError(f"No usable saved explainer at {path}; expected {expected}; got {got}.")


def _parse_json(text: bytes, path: Path) -> dict[str, Any]:
    """The manifest as far as any version of this format must have it."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unusable(path, "JSON", f"something else ({error})") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        got = repr(content.get("format"))[:80] if isinstance(content, dict) else type(content).__name__
        raise _unusable(path, f"the format {FORMAT!r}", got)
    return content


def _parse_manifest(text: bytes, path: Path) -> dict[str, Any]:
    content = _parse_json(text, path)
    version = content.get("version")
    if not isinstance(version, int) or version < 1:
        raise _unusable(path, "a format version of 1 or more", repr(version)[:80])
    if version > VERSION:
        raise ArtifactError(
            f"The saved explainer at {path} was written by a newer fasterce; "
            f"expected format version <= {VERSION}; got {version}."
        )
    for name, kind in MANIFEST_FIELDS.items():
        if not isinstance(content.get(name, ...), kind):
            raise _unusable(path, f"a field {name!r} of the right type", repr(content.get(name, "none"))[:80])
    if content.pop("sha256", None) != _content_digest(content):
        raise _unusable(path, "the content it was written with", "a manifest that was changed or damaged")
    if content.get("schema_sha256") != _content_digest(content["schema"]):
        raise _unusable(path, "the digest of its own schema", repr(content.get("schema_sha256"))[:80])
    if list(content["files"]) != [ARRAYS] or not isinstance(content["files"][ARRAYS], dict):
        raise _unusable(path, f"the one file {ARRAYS!r}", shorten(content["files"], 3))
    return content


def _parse_arrays(packed: bytes, manifest: dict[str, Any], path: Path) -> "_Stored":
    entry = manifest["files"][ARRAYS]
    if len(packed) != entry.get("bytes"):
        raise _unusable(path, f"{entry.get('bytes')!r} bytes", f"{len(packed)} (cut off or changed)")
    if hashlib.sha256(packed).hexdigest() != entry.get("sha256"):
        raise _unusable(path, f"the SHA-256 in {MANIFEST}", "another one (damaged or changed)")
    try:
        arrays = unpack(packed)
    except (SafetensorError, KeyError, ValueError, TypeError, OverflowError) as error:
        raise _unusable(path, "arrays in the safetensors format", str(error)) from error
    order = {name: "F" for name in manifest["column_major"]}
    return _Stored(path, {name: np.array(array, order=order.get(name, "C")) for name, array in arrays.items()})


@dataclass(frozen=True)
class _Stored:
    """The arrays of a file, handed out only in the shape and type they must have, finite throughout."""

    path: Path
    arrays: Named

    def take(self, name: str, shape: tuple[int | None, ...], dtype: Any = np.float64) -> NDArray[Any]:
        """`None` in a shape is any length but zero."""
        if name not in self.arrays:
            raise _unusable(self.path, f"an array {name!r}", "none")
        array = self.arrays[name]
        fits = len(array.shape) == len(shape) and all(
            has == want or (want is None and has > 0) for has, want in zip(array.shape, shape, strict=True)
        )
        if not fits or array.dtype != dtype:
            lengths = ", ".join("any" if length is None else str(length) for length in shape)
            got = f"{array.dtype} of shape {array.shape}"
            raise _unusable(self.path, f"{name!r} as {np.dtype(dtype)} of shape ({lengths})", got)
        if not np.isfinite(array).all():
            raise _unusable(self.path, f"finite numbers in {name!r}", "a number that is not")
        return array

    def like(self, part: str, template: Any) -> Named:
        return {name: self.take(f"{part}.{name}", a.shape, a.dtype) for name, a in _arrays_of(template).items()}


def _rebuild(where: Path, text: bytes, packed: bytes, coders: Coders | None) -> tuple[dict[str, Any], Learned]:
    manifest = _parse_manifest(text, where / MANIFEST)
    stored = _parse_arrays(packed, manifest, where / ARRAYS)
    own = _own_autoencoder(manifest["autoencoder"], coders, where)
    try:
        table = Table.from_dict(Schema.from_dict(manifest["schema"]), manifest["dtypes"])
        report = FitReport.from_dict(manifest["report"])
        classes = _classes(manifest["classes"], where)
        knowledge = _knowledge(stored, table.schema, len(classes), own)
        _rehearse(knowledge, table, stored.path)
    except (FasterCEError, TypeError, ValueError, LookupError, AttributeError) as error:
        if isinstance(error, ArtifactError):
            raise
        raise _unusable(where, "what an explainer is made of", f"{type(error).__name__}: {error}") from error
    return manifest, Learned(table, knowledge, report, classes, manifest["use_scores"])


def _own_autoencoder(saved: str, coders: Coders | None, where: Path) -> Callables | None:
    if saved not in ("network", "callables"):
        raise _unusable(where / MANIFEST, "an autoencoder 'network' or 'callables'", repr(saved)[:80])
    if saved == "callables" and coders is None:
        raise ArtifactError(
            f"The explainer at {where} was saved with an autoencoder of your own, which is not in the files; "
            "expected load(..., autoencoder=(encode, decode)); got none."
        )
    if saved == "network" and coders is not None:
        raise ArtifactError(f"The explainer at {where} has its own network; expected autoencoder=None; got functions.")
    return None if coders is None else Callables(*coders)


def _classes(labels: list[Any], where: Path) -> tuple[Any, ...]:
    sound = all(isinstance(label, (str, int, float, bool)) for label in labels)
    if not sound or len(set(labels)) < max(len(labels), 2):
        raise _unusable(where / MANIFEST, "two or more distinct classes", shorten(labels))
    return tuple(labels)


def _knowledge(stored: _Stored, schema: Schema, classes: int, own: Callables | None) -> Knowledge:
    examples = stored.take("examples", (None, len(schema)))
    example_classes = stored.take("example_classes", (len(examples),), np.int64)
    _check_codes(examples, [None if f.numeric else len(f.categories) for f in schema.features], "examples", stored)
    _check_codes(example_classes[:, None], [classes], "example_classes", stored)
    profile = Profile(**stored.like("profile", Profile.measure(examples[:MOST_ASKED], schema)))
    codec = Codec(schema, profile)
    planes = codec.width + classes
    latent = stored.take("hyperplanes.normals", (planes, None)).shape[1]
    blank = {f.name: np.zeros((planes, latent) if f.name == "normals" else planes) for f in fields(Hyperplanes)}
    hyperplanes = Hyperplanes(**blank | {"classes": classes})  # type: ignore[arg-type]
    hyperplanes = Hyperplanes(**stored.like("hyperplanes", hyperplanes), classes=classes)
    distance = Distance(**stored.like("distance", Distance.gower(profile.span, codec.numeric)))
    autoencoder = own or _network(stored, codec, latent)
    knowledge = Knowledge(codec, autoencoder, hyperplanes, examples, example_classes.astype(np.intp), distance)
    unknown = stored.arrays.keys() - _arrays(knowledge).keys()
    if unknown:
        raise _unusable(stored.path, "only the arrays of an explainer", shorten(sorted(unknown), 3))
    return knowledge


def _check_codes(codes: NDArray[Any], counts: list[int | None], name: str, stored: _Stored) -> None:
    for column, count in zip(codes.T, counts, strict=True):
        if count is not None and not np.isin(column, np.arange(count)).all():
            raise _unusable(stored.path, f"codes from 0 to {count - 1} in {name!r}", "others")


def _network(stored: _Stored, codec: Codec, latent: int) -> Network:
    prefix = "network."
    named = {name.removeprefix(prefix): a for name, a in stored.arrays.items() if name.startswith(prefix)}
    network = Network.from_arrays(named, tuple(block.columns for block in codec.blocks))
    for part, inputs, outputs in (("encoder", codec.width, latent), ("decoder", latent, codec.width)):
        layers = getattr(network, part)
        for depth in range(max(1, len(layers))):
            width = outputs if depth >= len(layers) - 1 else None
            inputs = stored.take(f"{prefix}{part}.{depth}.weight", (inputs, width)).shape[1]  # noqa: PLW2901
            stored.take(f"{prefix}{part}.{depth}.bias", (inputs,))
    return network


def _rehearse(knowledge: Knowledge, table: Table, path: Path) -> None:
    """Take a few examples all the way: frames, matrix, latent space and back."""
    examples = knowledge.examples[:MOST_ASKED]
    table.frame(examples)
    matrix = knowledge.codec.encode(examples)
    latent = _coded(knowledge.autoencoder, "encode", matrix, knowledge.hyperplanes.normals.shape[1], path)
    _coded(knowledge.autoencoder, "decode", latent, matrix.shape[1], path)


def _coded(autoencoder: Autoencoder, name: str, rows: Floats, width: int, path: Path) -> Floats:
    expected = f"an autoencoder whose {name} gives finite numbers of shape {(len(rows), width)}"
    try:
        answer: Floats = getattr(autoencoder, name)(rows)
    except Exception as error:
        raise _unusable(path, expected, f"{type(error).__name__}: {error}") from error
    if answer.shape != (len(rows), width) or not np.isfinite(answer).all():
        raise _unusable(path, expected, f"shape {answer.shape}" if np.isfinite(answer).all() else "others")
    return answer


def _check_model(model: Any, learned: Learned, where: Path) -> None:
    if learned.use_scores and find_scores(model) is None:
        raise ModelError(
            f"The explainer at {where} was fitted for a model with scores; "
            f"expected predict_proba or decision_function; got {type(model).__name__} without."
        )
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
            "for another model, and the explanations may be missing or farther away than they need to be.",
            UserWarning,
            stacklevel=3,
        )
