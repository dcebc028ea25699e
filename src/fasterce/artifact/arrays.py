"""Pack and unpack the arrays of an explainer; each is checked for type and shape before it is used."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as unpack

from fasterce.artifact.folder import ARRAYS, MANIFEST, unusable
from fasterce.config import Config
from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import Schema
from fasterce.fitting.state import SearchState
from fasterce.fitting.statistics import BINS, TrainingStatistics, sizes
from fasterce.latent.hyperplanes import Hyperplanes
from fasterce.latent.regions import Regions
from fasterce.latent.runtime import Callables, Network
from fasterce.search.distance import Distance
from fasterce.surrogate.runtime import Surrogate

# Examples passed through the autoencoder before an artifact is used, to check shapes.
CHECKED_ROWS = 64
WHOLE_NUMBERS = ("example_classes", "prototype_classes", "sample_classes", "groups")

Named = dict[str, NDArray[Any]]


def arrays_of(state: SearchState, statistics: TrainingStatistics) -> Named:
    return arrays_of_search(state) | {f"statistics.{name}": array for name, array in statistics.arrays().items()}


def arrays_of_search(state: SearchState) -> Named:
    """Return all arrays by dotted name; plain numbers are arrays without dimensions."""
    parts: dict[str, object] = {
        "profile": state.codec.profile,
        "hyperplanes": state.hyperplanes,
        "regions": state.regions,
        "distance": state.distance,
        "surrogate": state.surrogate,
        "network": state.autoencoder if isinstance(state.autoencoder, Network) else None,
    }
    named = {f"{part}.{name}": array for part, owner in parts.items() for name, array in _arrays_of(owner).items()}
    whole = {name: getattr(state, name).astype(np.int64) for name in WHOLE_NUMBERS}
    return named | _arrays_of(state) | whole


def _arrays_of(owner: Any) -> Named:
    if owner is None:
        return {}
    values = owner.arrays() if hasattr(owner, "arrays") else {f.name: getattr(owner, f.name) for f in fields(owner)}
    return {name: np.asarray(value) for name, value in values.items() if isinstance(value, (np.ndarray, float))}


def check_packed(packed: bytes, manifest: Mapping[str, Any], path: Path) -> None:
    """Check that these are the arrays the manifest was written with."""
    size, digest = (manifest["files"][ARRAYS].get(name) for name in ("bytes", "sha256"))
    if len(packed) != size:
        raise unusable("other_size", path, expected=size, received=len(packed))
    if hashlib.sha256(packed).hexdigest() != digest:
        raise unusable("other_digest", path, manifest=MANIFEST)


def unpack_arrays(packed: bytes, manifest: Mapping[str, Any], path: Path) -> "Stored":
    check_packed(packed, manifest, path)
    try:
        arrays = unpack(packed)
    except (SafetensorError, LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise unusable("not_safetensors", path, error=str(error)) from error
    by_column = manifest["column_major"]
    return Stored(path, {name: np.array(a, order="F" if name in by_column else "C") for name, a in arrays.items()})


@dataclass(frozen=True)
class Stored:
    """The arrays of a file, returned only with the type and shape they must have, and finite."""

    path: Path
    arrays: Named

    def take(self, name: str, shape: tuple[int | None, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Return an array of this type and shape; `None` in a shape permits any length except zero."""
        if name not in self.arrays:
            raise unusable("missing_array", self.path, array=name)
        array = self.arrays[name]
        wanted = tuple(max(1, has) if want is None else want for has, want in zip(array.shape, shape, strict=False))
        if array.dtype != dtype or array.ndim != len(shape) or array.shape != wanted:
            expected = str(tuple("any" if length is None else length for length in shape)).replace("'", "")
            types = {"type": str(np.dtype(dtype)), "received_type": str(array.dtype)}
            raise unusable("array_shape", self.path, array=name, expected=expected, received=str(array.shape), **types)
        if not np.isfinite(array).all():
            raise unusable("not_finite", self.path, array=name)
        return array

    def like(self, part: str, template: object) -> Named:
        return {name: self.take(f"{part}.{name}", a.shape, a.dtype) for name, a in _arrays_of(template).items()}

    def codes(self, name: str, shape: tuple[int | None, ...], dtype: DTypeLike, counts: list[int | None]) -> NDArray[Any]:
        """Return rows of codes; `counts` is the number of codes of every column, `None` for numbers."""
        array = self.take(name, shape, dtype)
        for column, count in zip(array.reshape(len(array), -1).T, counts, strict=True):
            if count is not None and not np.isin(column, np.arange(count)).all():
                raise unusable("unknown_codes", self.path, array=name, expected=count - 1)
        return array

    def rows(self, name: str, count: int | None, schema: Schema) -> NDArray[Any]:
        """Return rows of codes."""
        counts = [None if feature.numeric else feature.n_codes for feature in schema.features]
        return self.codes(name, (count, len(schema)), np.float64, counts)


def rebuild_search(stored: Stored, schema: Schema, classes: int, own: Callables | None, config: Config) -> SearchState:
    examples = stored.rows("examples", None, schema)
    labels = stored.codes("example_classes", (len(examples),), np.int64, [classes])
    # A profile of a few rows has the names and shapes of the arrays.
    profile = Profile(**stored.like("profile", Profile.measure(examples[:CHECKED_ROWS], schema)))
    codec = Codec(schema, profile)
    rows = codec.width + classes
    latent = stored.take("hyperplanes.normals", (rows, None)).shape[1]
    shapes = {f.name: (rows, latent) if f.name == "normals" else (rows,) for f in fields(Hyperplanes) if f.name != "classes"}
    planes = {name: stored.take(f"hyperplanes.{name}", shape) for name, shape in shapes.items()}
    distance = stored.like("distance", Distance.gower(profile.span, codec.numeric, codec.nullable))
    prototypes = stored.take("prototypes", (None, latent))
    samples = stored.take("samples", (len(stored.arrays.get("samples", ())), latent), np.float32)
    parts: dict[str, Any] = {
        "codec": codec,
        "autoencoder": own or _network(stored, codec, latent),
        "hyperplanes": Hyperplanes(**planes, classes=classes),
        "regions": _regions(stored, classes, latent),
        "examples": examples,
        "example_classes": labels.astype(np.intp),
        "distance": Distance(distance["weight"], distance["flat"], gap=distance.get("gap")),
        "surrogate": _surrogate(stored, schema, classes),
        "typical": stored.take("typical", (classes,)),
        "groups": stored.codes("groups", (len(schema),), np.int64, [len(schema)]).astype(np.intp),
        "prototypes": prototypes,
        "prototype_classes": stored.codes("prototype_classes", (len(prototypes),), np.int64, [classes]).astype(np.intp),
        "config": config,
        "unread": stored.take("unread", (len(schema),), np.bool_),
        "samples": samples,
        "sample_classes": stored.codes("sample_classes", (len(samples),), np.int64, [classes]).astype(np.intp),
    }
    numbers = {f.name: float(stored.take(f.name, ())) for f in fields(SearchState) if f.name not in parts}
    state = SearchState(**parts | numbers)
    known = arrays_of_search(state).keys() | {f"statistics.{field.name}" for field in fields(TrainingStatistics)}
    unknown = stored.arrays.keys() - known
    if unknown:
        raise unusable("unknown_arrays", stored.path, received=sorted(unknown))
    _check_autoencoder(state, latent, stored.path)
    return state


def rebuild_statistics(stored: Stored, schema: Schema, classes: int, numbers: bool) -> TrainingStatistics:
    features = len(schema)
    kept = "statistics.rows" in stored.arrays and len(stored.arrays["statistics.rows"])
    statistics = TrainingStatistics(
        seen=stored.take("statistics.seen", (), np.int64),
        updates=stored.take("statistics.updates", (), np.int64),
        mean=stored.take("statistics.mean", (features,)),
        squares=stored.take("statistics.squares", (features,)),
        cuts=stored.take("statistics.cuts", (features, BINS - 1)),
        counts=stored.take("statistics.counts", (sum(sizes(schema)),), np.int64),
        prediction_cuts=stored.take("statistics.prediction_cuts", (BINS - 1,)) if numbers else np.zeros(0),
        classes=stored.take("statistics.classes", (BINS if numbers else classes,), np.int64),
        reconstruction=stored.take("statistics.reconstruction", (3,)),
        rows=stored.rows("statistics.rows", kept, schema) if kept else np.zeros((0, features)),
    )
    counts = (statistics.seen - max(1, kept), statistics.updates, statistics.counts, statistics.classes)
    if any((count < 0).any() for count in counts):
        raise unusable("impossible_counts", stored.path)
    return statistics


def _regions(stored: Stored, classes: int, latent: int) -> Regions:
    centres = stored.take("regions.centres", (None, latent))
    normals = stored.take("regions.normals", (len(centres), classes, latent))
    return Regions(centres, normals, stored.take("regions.offsets", (len(centres), classes)))


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
    sizes = [1 if feature.numeric else feature.n_codes for feature in schema.features]
    if start[0] != 0 or start[-1] != len(entries) or (np.diff(start) < sizes).any():
        raise unusable("surrogate_tables", stored.path)
    if (numeric != [feature.numeric for feature in schema.features]).any():
        raise unusable("surrogate_numbers", stored.path)
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


def _check_autoencoder(state: SearchState, latent: int, path: Path) -> None:
    """Encode and decode a few examples; a user's own functions may do anything."""
    sizes = {"width": state.codec.width, "latent": latent}
    try:
        with np.errstate(all="ignore"):
            matrix = state.codec.encode(state.examples[:CHECKED_ROWS])
            there = state.autoencoder.encode(matrix)
            back = state.autoencoder.decode(there)
    except Exception as error:
        raise unusable("autoencoder_failed", path, type=type(error).__name__, error=str(error), **sizes) from error
    if there.shape != (len(matrix), latent) or back.shape != matrix.shape:
        shapes = [str(there.shape), str(back.shape)]
        raise unusable("autoencoder_shape", path, received=shapes, rows=len(matrix), **sizes)
    if not (np.isfinite(there).all() and np.isfinite(back).all()):
        raise unusable("autoencoder_not_finite", path, **sizes)
