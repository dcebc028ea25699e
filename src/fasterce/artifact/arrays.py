"""The arrays of an explainer, packed and unpacked: none is handed out that has not the type and shape it must have."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as unpack

from fasterce.artifact.folder import ARRAYS, MANIFEST, unusable
from fasterce.codec import Codec
from fasterce.errors import shorten
from fasterce.latent.runtime import Callables, Network
from fasterce.memory import BINS, Memory, sizes
from fasterce.profile import Profile
from fasterce.schema import Schema
from fasterce.search.distance import Distance
from fasterce.search.hyperplanes import Hyperplanes
from fasterce.search.regions import Regions
from fasterce.search.task import Knowledge
from fasterce.surrogate.runtime import Surrogate

REHEARSED = 64

Named = dict[str, NDArray[Any]]


def arrays_of(knowledge: Knowledge, memory: Memory) -> Named:
    return arrays_of_knowledge(knowledge) | {f"memory.{name}": array for name, array in memory.arrays().items()}


def arrays_of_knowledge(knowledge: Knowledge) -> Named:
    """All arrays by dotted name; plain numbers are arrays without dimensions."""
    parts: dict[str, Any] = {
        "profile": knowledge.codec.profile,
        "hyperplanes": knowledge.hyperplanes,
        "regions": knowledge.regions,
        "distance": knowledge.distance,
    }
    if knowledge.surrogate is not None:
        parts["surrogate"] = knowledge.surrogate
    network = {"network": knowledge.autoencoder} if isinstance(knowledge.autoencoder, Network) else {}
    named = {f"{part}.{name}": a for part, owner in (parts | network).items() for name, a in _arrays_of(owner).items()}
    whole = {name: getattr(knowledge, name).astype(np.int64) for name in ("example_classes", "prototype_classes", "groups")}
    return named | _arrays_of(knowledge) | whole


def _arrays_of(owner: Any) -> Named:
    values = owner.arrays() if hasattr(owner, "arrays") else {f.name: getattr(owner, f.name) for f in fields(owner)}
    return {name: np.asarray(value) for name, value in values.items() if isinstance(value, (np.ndarray, float))}


def check_packed(packed: bytes, manifest: Mapping[str, Any], path: Path) -> None:
    """Are these the arrays the manifest was written with?"""
    size, digest = (manifest["files"][ARRAYS].get(name) for name in ("bytes", "sha256"))
    if len(packed) != size:
        raise unusable(path, f"{size!r:.80} bytes", f"{len(packed)} (cut off or changed)")
    if hashlib.sha256(packed).hexdigest() != digest:
        raise unusable(path, f"the SHA-256 in {MANIFEST}", "another (damaged or changed)")


def unpack_arrays(packed: bytes, manifest: Mapping[str, Any], path: Path) -> "Stored":
    check_packed(packed, manifest, path)
    try:
        arrays = unpack(packed)
    except (SafetensorError, LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise unusable(path, "arrays in the safetensors format", str(error)) from error
    by_column = manifest["column_major"]
    return Stored(path, {name: np.array(a, order="F" if name in by_column else "C") for name, a in arrays.items()})


@dataclass(frozen=True)
class Stored:
    """The arrays of a file, handed out only with the type and shape they must have, and finite."""

    path: Path
    arrays: Named

    def take(self, name: str, shape: tuple[int | None, ...], dtype: Any = np.float64) -> NDArray[Any]:
        """`None` in a shape stands for any length but zero."""
        if name not in self.arrays:
            raise unusable(self.path, f"an array {name!r}", "none")
        array = self.arrays[name]
        wanted = tuple(max(1, has) if want is None else want for has, want in zip(array.shape, shape, strict=False))
        if array.dtype != dtype or array.ndim != len(shape) or array.shape != wanted:
            expected = f"{name!r} as {np.dtype(dtype)} of shape {shape}".replace("None", "any")
            raise unusable(self.path, expected, f"{array.dtype} of shape {array.shape}")
        if not np.isfinite(array).all():
            raise unusable(self.path, f"finite numbers in {name!r}", "NaN or infinity")
        return array

    def like(self, part: str, template: Any) -> Named:
        return {name: self.take(f"{part}.{name}", a.shape, a.dtype) for name, a in _arrays_of(template).items()}

    def codes(self, name: str, shape: tuple[int | None, ...], dtype: Any, counts: list[int | None]) -> NDArray[Any]:
        """`counts` says for every column how many codes there are, `None` for plain numbers."""
        array = self.take(name, shape, dtype)
        for column, count in zip(array.reshape(len(array), -1).T, counts, strict=True):
            if count is not None and not np.isin(column, np.arange(count)).all():
                raise unusable(self.path, f"codes from 0 to {count - 1} in {name!r}", "others")
        return array


def rebuild_knowledge(stored: Stored, schema: Schema, classes: int, own: Callables | None) -> Knowledge:
    counts = [None if feature.numeric else feature.states for feature in schema.features]
    examples = stored.codes("examples", (None, len(schema)), np.float64, counts)
    answers = stored.codes("example_classes", (len(examples),), np.int64, [classes])
    # Measured on a few rows only to know which arrays a profile has, and their shapes.
    profile = Profile(**stored.like("profile", Profile.measure(examples[:REHEARSED], schema)))
    codec = Codec(schema, profile)
    rows = codec.width + classes
    latent = stored.take("hyperplanes.normals", (rows, None)).shape[1]
    shapes = {f.name: (rows, latent) if f.name == "normals" else (rows,) for f in fields(Hyperplanes) if f.name != "classes"}
    planes = {name: stored.take(f"hyperplanes.{name}", shape) for name, shape in shapes.items()}
    parts: dict[str, Any] = {
        "codec": codec,
        "autoencoder": own or _network(stored, codec, latent),
        "hyperplanes": Hyperplanes(**planes, classes=classes),
        "regions": _regions(stored, classes, latent),
        "examples": examples,
        "example_classes": answers.astype(np.intp),
        "distance": _distance(stored, Distance.gower(profile.span, codec.numeric, codec.gappy)),
        "surrogate": _surrogate(stored, schema, classes),
        "typical": stored.take("typical", (classes,)),
        "groups": stored.codes("groups", (len(schema),), np.int64, [len(schema)]).astype(np.intp),
        "prototypes": stored.take("prototypes", (None, latent)),
        "prototype_classes": _prototype_classes(stored, classes),
    }
    numbers = {f.name: float(stored.take(f.name, ())) for f in fields(Knowledge) if f.name not in parts}
    knowledge = Knowledge(**parts | numbers)
    known = arrays_of_knowledge(knowledge).keys() | {f"memory.{field.name}" for field in fields(Memory)}
    unknown = stored.arrays.keys() - known
    if unknown:
        raise unusable(stored.path, "only the arrays of an explainer", shorten(sorted(unknown), 3))
    _rehearse(knowledge, latent, stored.path)
    return knowledge


def rebuild_memory(stored: Stored, schema: Schema, classes: int, numbers: bool) -> Memory:
    features = len(schema)
    kept = "memory.rows" in stored.arrays and len(stored.arrays["memory.rows"])
    counts = [None if feature.numeric else feature.states for feature in schema.features]
    memory = Memory(
        seen=stored.take("memory.seen", (), np.int64),
        updates=stored.take("memory.updates", (), np.int64),
        mean=stored.take("memory.mean", (features,)),
        squares=stored.take("memory.squares", (features,)),
        cuts=stored.take("memory.cuts", (features, BINS - 1)),
        counts=stored.take("memory.counts", (sum(sizes(schema)),), np.int64),
        answer_cuts=stored.take("memory.answer_cuts", (BINS - 1,)) if numbers else np.zeros(0),
        classes=stored.take("memory.classes", (BINS if numbers else classes,), np.int64),
        reconstruction=stored.take("memory.reconstruction", (3,)),
        rows=stored.codes("memory.rows", (kept, features), np.float64, counts) if kept else np.zeros((0, features)),
    )
    if memory.seen < max(1, kept) or memory.updates < 0 or (memory.counts < 0).any() or (memory.classes < 0).any():
        raise unusable(stored.path, "counts that can be", "others in 'memory'")
    return memory


def _regions(stored: Stored, classes: int, latent: int) -> Regions:
    centres = stored.take("regions.centres", (None, latent))
    normals = stored.take("regions.normals", (len(centres), classes, latent))
    return Regions(centres, normals, stored.take("regions.offsets", (len(centres), classes)))


def _prototype_classes(stored: Stored, classes: int) -> NDArray[np.intp]:
    count = len(stored.take("prototypes", (None, None)))
    return stored.codes("prototype_classes", (count,), np.int64, [classes]).astype(np.intp)


def _distance(stored: Stored, template: Distance) -> Distance:
    named = stored.like("distance", template)
    return Distance(named["weight"], named["flat"], gap=named.get("gap"))


def _surrogate(stored: Stored, schema: Schema, classes: int) -> Surrogate | None:
    if not any(name.startswith("surrogate.") for name in stored.arrays):
        return None
    features = len(schema)
    start = stored.take("surrogate.start", (features + 1,), np.int64)
    entries = stored.take("surrogate.entries", (None, None), np.float32)
    hidden, outputs = entries.shape[1], 1 if classes == 2 else classes
    numeric = stored.take("surrogate.numeric", (features,), np.bool_)
    surrogate = Surrogate(
        knots=stored.take("surrogate.knots", (len(entries),)),
        entries=entries,
        start=start,
        numeric=numeric,
        bias=stored.take("surrogate.bias", (hidden,), np.float32),
        weight=stored.take("surrogate.weight", (hidden, outputs), np.float32),
        offset=stored.take("surrogate.offset", (outputs,), np.float32),
        error=float(stored.take("surrogate.error", ())),
        agreement=float(stored.take("surrogate.agreement", ())),
    )
    sizes = [1 if feature.numeric else feature.states for feature in schema.features]
    if start[0] != 0 or start[-1] != len(entries) or (np.diff(start) < sizes).any():
        raise unusable(stored.path, "a table for every feature in 'surrogate.start'", "others")
    if (numeric != [feature.numeric for feature in schema.features]).any():
        raise unusable(stored.path, "the schema's numbers in 'surrogate.numeric'", "others")
    return surrogate


def _network(stored: Stored, codec: Codec, latent: int) -> Network:
    named = {name.removeprefix("network."): a for name, a in stored.arrays.items() if name.startswith("network.")}
    network = Network.from_arrays(named, tuple(block.columns for block in codec.one_hot))
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
            matrix = knowledge.codec.encode(knowledge.examples[:REHEARSED])
            there = knowledge.autoencoder.encode(matrix)
            back = knowledge.autoencoder.decode(there)
    except Exception as error:
        raise unusable(path, expected, f"{type(error).__name__}: {error}") from error
    if there.shape != (len(matrix), latent) or back.shape != matrix.shape:
        raise unusable(path, expected, f"shapes {there.shape} and {back.shape} for {len(matrix)} rows")
    if not (np.isfinite(there).all() and np.isfinite(back).all()):
        raise unusable(path, expected, "NaN or infinity")
