"""A fitted explainer on disk: one folder with `arrays.safetensors` and `manifest.json`, replaced all at once.

Nothing is unpickled, no path is taken from the manifest, and `load` uses nothing it has not checked.
"""

import math
import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from safetensors.numpy import save as pack

from fasterce.artifact.arrays import Named, arrays_of, check_packed, rebuild_search, rebuild_statistics, unpack_arrays
from fasterce.artifact.bundle import pack_model, unpack_model
from fasterce.artifact.folder import ARRAYS, MANIFEST, check_replaceable, read, replace_folder, unusable
from fasterce.artifact.manifest import SETTINGS, Manifest, content_digest, content_of, describe, parse, parse_json, to_json
from fasterce.config import Config
from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.errors import ArtifactError, FasterCEError, ModelError, warn
from fasterce.fitting.budget import limit_sizes
from fasterce.fitting.report import FitReport
from fasterce.fitting.state import FittedState
from fasterce.fitting.unread import evenly_spaced
from fasterce.latent.runtime import Callables
from fasterce.models.adapters import adapt
from fasterce.models.compiled.model import CompiledModel
from fasterce.models.compiled.use import compile_search, make
from fasterce.models.files.load import LoadedModel, load_model
from fasterce.models.predictions import FAILED
from fasterce.models.predictor import BELOW_AND_ABOVE, Numbers, Predictor, find_scores
from fasterce.options import Coder

if TYPE_CHECKING:
    from fasterce.explainer import FasterCE

# Examples on which a model is compared with the stored predictions: a few milliseconds.
CHECKED_ROWS = 64


@dataclass(frozen=True)
class OpenedExplainer:
    """An explainer with its model, and where the model came from.

    model_digest is that of the model file, None for an import path, an address or a model in memory.
    """

    explainer: "FasterCE"
    model_digest: str | None = None
    model_source: str = ""
    model_kind: str = ""


def save(
    explainer: "FasterCE", folder: str | os.PathLike[str], model_file: LoadedModel | str | os.PathLike[str] | None = None
) -> None:
    """Write a fitted explainer, optionally with a model file of a kind that runs no code.

    An artifact in `folder` is replaced in one step at the end.
    """
    target = Path(folder).resolve()
    own = explainer.state_.search.autoencoder
    try:
        check_replaceable(target, parse_json)
        arrays, packed = _packed(explainer)
        about, model = (None, b"") if model_file is None else _packed_model(explainer, model_file)
        manifest = to_json(describe(explainer, arrays, packed, about), indent=2)
        # An artifact that cannot be loaded must not replace one that can.
        _rebuild(target, parse(manifest, target), packed, own if isinstance(own, Callables) else None)
        replace_folder(target, {ARRAYS: packed, MANIFEST: manifest, **({about["file"]: model} if about else {})})
    except OSError as error:
        raise ArtifactError("artifact.unwritable", path=str(target), error=str(error)) from error


def _packed_model(explainer: "FasterCE", given: LoadedModel | str | os.PathLike[str]) -> tuple[Manifest, bytes]:
    """Return the model file, if it predicts what the explainer's own model predicts."""
    loaded = given if isinstance(given, LoadedModel) else load_model(given)
    about = pack_model(loaded)
    if loaded.model is not explainer.model:
        examples = explainer.state_.search.examples
        frame = explainer.state_.table.frame(examples[evenly_spaced(len(examples), CHECKED_ROWS)])
        own, other = (explainer._predictor(model).predict_labels(frame) for model in (explainer.model, loaded.model))
        differing = int((own != other).sum())
        if differing:
            raise ModelError("artifact.another_model", path=loaded.source, received=differing, rows=len(frame))
    return about


def digest(explainer: "FasterCE") -> str:
    """Return the digest of a fitted explainer; saving and loading do not change it.

    Parameters
    ----------
    explainer : FasterCE
        A fitted explainer.

    Returns
    -------
    str
        "sha256:…", cached until the state or a setting is replaced.
    """
    return _digests(explainer)[0]


def schema_digest(explainer: "FasterCE") -> str:
    """Return the digest of the schema of a fitted explainer, "sha256:…"."""
    return _digests(explainer)[1]


def _digests(explainer: "FasterCE") -> tuple[str, str]:
    """Return the digests of explainer and schema."""
    state = [getattr(explainer, name) for name in ("state_", *SETTINGS)]
    known = getattr(explainer, "_digested", None)
    if known is None or any(one is not other for one, other in zip(known[0], state, strict=True)):
        content = content_of(explainer, *_packed(explainer))
        known = (state, (content_digest(content), f"sha256:{content['schema_sha256']}"))
        explainer._digested = known
    found: tuple[str, str] = known[1]
    return found


def digest_of(folder: str | os.PathLike[str]) -> str:
    """Return the `digest` of the explainer saved in a folder.

    Parameters
    ----------
    folder : path
        The saved explainer.

    Returns
    -------
    str
        "sha256:…".
    """
    where = Path(folder)
    manifest = parse(read(where / MANIFEST), where / MANIFEST)
    check_packed(read(where / ARRAYS), manifest, where / ARRAYS)
    return content_digest(manifest)


def _packed(explainer: "FasterCE") -> tuple[Named, bytes]:
    arrays = arrays_of(explainer.state_.search, explainer.state_.statistics)
    return arrays, pack({name: np.asarray(array, order="C") for name, array in arrays.items()})


def bundled_model(folder: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> LoadedModel:
    """Load the model saved with an explainer.

    Parameters
    ----------
    folder : path
        The saved explainer.
    trusted : sequence of str
        Types that a skops file may use, in addition to those skops trusts.

    Returns
    -------
    LoadedModel
    """
    where = _existing(folder)
    return unpack_model(where, parse(read(where / MANIFEST), where / MANIFEST)["model"], trusted)


def open_explainer(
    folder: str | os.PathLike[str],
    model: object = None,
    *,
    trust_pickle: bool = False,
    trusted: Sequence[str] = (),
    classes: Sequence[Hashable] | None = None,
) -> OpenedExplainer:
    """Load a saved explainer and its model, without a progress bar.

    Parameters
    ----------
    folder : path
        The saved explainer.
    model : object, optional
        A file, import path or address, or the model itself; None for the model saved in the folder.
    trust_pickle, trusted, classes
        As for `load_model`.

    Returns
    -------
    OpenedExplainer
        The explainer, and the digest, source and kind of its model.
    """
    loaded = None
    if model is None:
        loaded = bundled_model(folder, trusted=trusted)
    elif isinstance(model, (str, os.PathLike)):
        loaded = load_model(model, trust_pickle=trust_pickle, trusted=trusted, classes=classes)
    explainer = load(folder, model if loaded is None else loaded.model)
    explainer.progress = False
    if loaded is None:
        return OpenedExplainer(explainer)
    return OpenedExplainer(explainer, loaded.digest, loaded.source, loaded.kind)


def load(
    folder: str | os.PathLike[str],
    model: object = None,
    *,
    autoencoder: tuple[Coder, Coder] | None = None,
    trusted: Sequence[str] = (),
) -> "FasterCE":
    """Load the explainer saved in `folder`.

    Parameters
    ----------
    folder : path
        Where `save` wrote it.
    model : object, optional
        The model it was fitted for; None for the one it was saved with.
    autoencoder : (encode, decode), optional
        Your own functions, if it was fitted with them.
    trusted : sequence of str
        Types that a skops file may use, in addition to those skops trusts.

    Returns
    -------
    FasterCE
        The fitted explainer.

    Raises
    ------
    ArtifactError
        The folder holds no usable explainer.
    ModelError
        The model fails on the stored examples, or has no scores and needs them.
    """
    from fasterce.explainer import FasterCE  # noqa: PLC0415 - explainer imports this module

    where = _existing(folder)
    model = bundled_model(where, trusted=trusted).model if model is None else model
    own = None if autoencoder is None else Callables(*autoencoder)
    manifest = parse(read(where / MANIFEST), where / MANIFEST)
    state = _rebuild(where, manifest, read(where / ARRAYS), own)
    _check_model(model, state, where)
    compile_search()
    settings = {name: manifest[name] for name in SETTINGS}
    config = state.search.config if manifest["config"] else None
    explainer = FasterCE(model, state.table.schema, autoencoder=autoencoder, config=config, **settings)
    explainer.state_ = replace(state, compiled=_compiled(model, state, manifest, where))
    return explainer


def _existing(folder: str | os.PathLike[str]) -> Path:
    where = Path(folder)
    if not where.is_dir():
        raise unusable("not_a_folder" if where.exists() else "no_folder", where, expected=[MANIFEST, ARRAYS])
    return where


def _compiled(model: object, state: FittedState, manifest: Manifest, where: Path) -> CompiledModel | None:
    """Compile the model again; it must agree on the stored examples as it had to on training rows in `fit`."""
    predictor = Predictor(model, state.table, state.classes, state.use_scores, state.numbers)
    config = limit_sizes(Config.from_dict(manifest["config"]), state.report.max_fit_rows).compiled
    compiled, reason = make(model, predictor, state.search.examples, manifest["compile"], config)
    if manifest["has_compiled"] and compiled is None:
        warn("artifact.not_compiled", 3, path=str(where), reason=reason)
    return compiled


def _rebuild(where: Path, manifest: Manifest, packed: bytes, own: Callables | None) -> FittedState:
    stored = unpack_arrays(packed, manifest, where / ARRAYS)
    own_network = manifest["autoencoder"] == "network"
    if own is None and not own_network:
        raise ArtifactError("artifact.autoencoder_needed", path=str(where))
    if own is not None and own_network:
        raise ArtifactError("artifact.autoencoder_not_needed", path=str(where))
    try:
        table = Table.from_dict(Schema.from_dict(manifest["schema"]), manifest["dtypes"], manifest.get("frames", "pandas"))
        report = FitReport.from_dict(manifest["report"])
        classes = tuple(manifest["classes"])
        columns = len(table.schema) + len(table.schema.passthrough)
        if len(set(classes)) < max(2, len(classes)) or len(manifest["dtypes"]) != columns:
            raise unusable("bad_classes", where, received=list(classes), dtypes=len(manifest["dtypes"]), columns=columns)
        numbers = _numbers(manifest, where)
        state = rebuild_search(stored, table.schema, len(classes), own, Config.from_dict(manifest["config"]))
        statistics = rebuild_statistics(stored, table.schema, len(classes), numbers is not None)
        table.frame(state.examples[:CHECKED_ROWS])
    except (FasterCEError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        if isinstance(error, ArtifactError):
            raise
        raise unusable("bad_parts", where, type=type(error).__name__, error=str(error)) from error
    return FittedState(table, state, report, classes, manifest["use_scores"], statistics, numbers=numbers)


def _numbers(manifest: Manifest, where: Path) -> Numbers | None:
    """Return the scale of a regression model's predictions; None for a classifier."""
    if manifest["numbers"] is None:
        return None
    numbers = Numbers(**{name: float(value) for name, value in manifest["numbers"].items()})
    scaled = math.isfinite(numbers.middle) and 0 < numbers.scale < math.inf
    if not scaled or len(manifest["classes"]) != len(BELOW_AND_ABOVE):
        raise unusable("bad_numbers", where, received=[numbers.middle, numbers.scale, len(manifest["classes"])])
    return numbers


def _check_model(model: object, state: FittedState, where: Path) -> None:
    needs_scores = state.use_scores and state.numbers is None
    if needs_scores and find_scores(adapt(model)) is None:
        raise ModelError("artifact.scores_needed", path=str(where), received=type(model).__name__)
    predictor = Predictor(model, state.table, state.classes, numbers=state.numbers)
    checked = evenly_spaced(len(state.search.examples), CHECKED_ROWS)
    labels = predictor.predict_labels(state.table.frame(state.search.examples[checked]))
    if (labels == FAILED).any():
        raise ModelError("artifact.model_failed", path=str(where), failure=predictor.error().problem)
    # Whether a model behind HTTP has scores is known only after a call.
    if needs_scores and find_scores(predictor.model) is None:
        raise ModelError("artifact.scores_needed", path=str(where), received=type(model).__name__)
    differing = int((labels != state.search.example_classes[checked]).sum())
    if differing:
        warn("artifact.model_disagrees", 3, path=str(where), received=differing, rows=len(checked))
