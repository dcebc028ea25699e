"""A fitted explainer on disk: one folder with `arrays.safetensors` and `manifest.json`, replaced all at once.

Nothing is unpickled, no path is taken from the manifest, and `load` believes nothing it has not checked.
"""

import math
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as pack

from fasterce.adapters import adapt
from fasterce.artifact.arrays import Named, arrays_of, check_packed, rebuild_knowledge, rebuild_memory, unpack_arrays
from fasterce.artifact.bundle import pack_model, unpack_model
from fasterce.artifact.folder import ARRAYS, MANIFEST, check_replaceable, read, replace_folder, unusable
from fasterce.artifact.manifest import Content, content_digest, content_of, describe, parse, parse_json, to_json
from fasterce.errors import ArtifactError, FasterCEError, ModelError, shorten
from fasterce.fitting import Learned
from fasterce.latent.runtime import Callables
from fasterce.models import LoadedModel, load_model
from fasterce.predictor import BELOW_AND_ABOVE, FAILED, Numbers, Predictor, find_scores
from fasterce.report import FitReport
from fasterce.schema import Schema
from fasterce.table import Table
from fasterce.twin.compiled import Twin
from fasterce.twin.use import make

if TYPE_CHECKING:
    from fasterce.explainer import FasterCE

MOST_ASKED = 64
# Whatever of these is another object than before makes another digest.
DIGESTED = (
    *("table_", "knowledge_", "memory_", "report_", "classes_", "numbers_", "use_scores_"),
    *("random_state", "scores", "task", "latent_dim", "keep_rows", "twin"),
)

Coder = Callable[[Any], Any]


def save(
    explainer: "FasterCE", folder: str | os.PathLike[str], model_file: LoadedModel | str | os.PathLike[str] | None = None
) -> None:
    """Write a fitted explainer, with a copy of its model if there is a `model_file` of a kind that runs no code; an artifact
    already in `folder` is replaced at the last moment."""
    target = Path(folder).resolve()
    own = explainer.knowledge_.autoencoder
    try:
        check_replaceable(target, parse_json)
        arrays, packed = _packed(explainer)
        about, model = (None, b"") if model_file is None else _packed_model(explainer, model_file)
        manifest = to_json(describe(explainer, arrays, packed, about), indent=2)
        # What could not be loaded again must not replace what can.
        _rebuild(target, parse(manifest, target), packed, own if isinstance(own, Callables) else None)
        replace_folder(target, {ARRAYS: packed, MANIFEST: manifest, **({about["file"]: model} if about else {})})
    except OSError as error:
        raise ArtifactError(f"Cannot save to {target}; expected a folder that can be written; got {error}.") from error


def _packed_model(explainer: "FasterCE", given: LoadedModel | str | os.PathLike[str]) -> tuple[Content, bytes]:
    """The model file, if it says what the explainer's own model says."""
    loaded = given if isinstance(given, LoadedModel) else load_model(given)
    about = pack_model(loaded)
    if loaded.model is not explainer.model:
        examples = explainer.knowledge_.examples
        frame = explainer.table_.frame(examples[_spread(len(examples))])
        own, other = (explainer._predictor(model).label(frame) for model in (explainer.model, loaded.model))
        differing = int((own != other).sum())
        if differing:
            raise ModelError(
                f"The model file {loaded.source} must hold the model the explainer was fitted for; it disagrees on "
                f"{differing} of {len(frame)} rows (names for its classes? load_model(..., classes=...) gives them)."
            )
    return about


def _spread(count: int) -> NDArray[np.intp]:
    """Up to MOST_ASKED places, evenly over all."""
    return np.linspace(0, count - 1, min(MOST_ASKED, count)).astype(np.intp)


def digest(explainer: "FasterCE") -> str:
    """What a fitted explainer has learned, as "sha256:…": the same before it is saved and after it is loaded."""
    state = [getattr(explainer, name) for name in DIGESTED]
    known = getattr(explainer, "_digested", None)
    if known is None or any(one is not other for one, other in zip(known[0], state, strict=True)):
        known = (state, content_digest(content_of(explainer, *_packed(explainer))))
        explainer._digested = known
    return str(known[1])


def digest_of(folder: str | os.PathLike[str]) -> str:
    """The `digest` of the explainer saved in a folder."""
    where = Path(folder)
    manifest = parse(read(where / MANIFEST), where / MANIFEST)
    check_packed(read(where / ARRAYS), manifest, where / ARRAYS)
    return content_digest(manifest)


def _packed(explainer: "FasterCE") -> tuple[Named, bytes]:
    arrays = arrays_of(explainer.knowledge_, explainer.memory_)
    return arrays, pack({name: np.asarray(array, order="C") for name, array in arrays.items()})


def bundled_model(folder: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> LoadedModel:
    """The model saved with an explainer; `trusted` are types a skops file may use beside those known to be harmless."""
    where = _existing(folder)
    return unpack_model(where, parse(read(where / MANIFEST), where / MANIFEST)["model"], trusted)


def load(
    folder: str | os.PathLike[str],
    model: Any = None,
    *,
    autoencoder: tuple[Coder, Coder] | None = None,
    trusted: Sequence[str] = (),
) -> "FasterCE":
    """The explainer saved in `folder`, for the model it was fitted for, or if None the one it was saved with; `autoencoder`
    only if it had your own, `trusted` only for types of your own in a skops file."""
    from fasterce.explainer import FasterCE  # noqa: PLC0415 - explainer imports this module

    where = _existing(folder)
    model = bundled_model(where, trusted=trusted).model if model is None else model
    own = None if autoencoder is None else Callables(*autoencoder)
    manifest = parse(read(where / MANIFEST), where / MANIFEST)
    learned = _rebuild(where, manifest, read(where / ARRAYS), own)
    _check_model(model, learned, where)
    settings = {name: manifest[name] for name in ("random_state", "scores", "latent_dim", "keep_rows", "twin", "task")}
    explainer = FasterCE(model, learned.table.schema, autoencoder=autoencoder, **settings)
    explainer._take(replace(learned, twin=_twin(model, learned, manifest, where)))
    return explainer


def _existing(folder: str | os.PathLike[str]) -> Path:
    where = Path(folder)
    if not where.is_dir():
        raise unusable(where, f"a folder with {MANIFEST} and {ARRAYS}", "a file" if where.exists() else "nothing")
    return where


def _twin(model: Any, learned: Learned, manifest: Content, where: Path) -> Twin | None:
    """Made anew from the model: what it was held to in `fit` is held to the stored examples."""
    predictor = Predictor(model, learned.table, learned.classes, learned.use_scores, learned.numbers)
    twin, reason = make(model, predictor, learned.knowledge.examples, manifest["twin"])
    if manifest["has_twin"] and twin is None:
        warnings.warn(
            f"The explainer at {where} was fitted with a compiled twin of its model, and none can be made here ({reason}): "
            "the search asks the model itself, is slower, and may settle on slightly different answers.",
            UserWarning,
            stacklevel=4,
        )
    return twin


def _rebuild(where: Path, manifest: Content, packed: bytes, own: Callables | None) -> Learned:
    stored = unpack_arrays(packed, manifest, where / ARRAYS)
    if own is None and manifest["autoencoder"] != "network":
        needs = f"The explainer at {where} was saved with an autoencoder of your own, which no file can hold"
        raise ArtifactError(f"{needs}; expected load(..., autoencoder=(encode, decode)); got none.")
    if own is not None and manifest["autoencoder"] == "network":
        raise ArtifactError(f"The explainer at {where} brings its own network; expected autoencoder=None; got functions.")
    try:
        table = Table.from_dict(Schema.from_dict(manifest["schema"]), manifest["dtypes"], manifest.get("frames", "pandas"))
        report = FitReport.from_dict(manifest["report"])
        classes = tuple(manifest["classes"])
        if len(set(classes)) < max(2, len(classes)) or len(table.dtypes) != len(table.schema):
            raise ValueError(f"classes {shorten(classes)} and {len(table.dtypes)} dtypes for {len(table.schema)} columns")
        numbers = _numbers(manifest)
        knowledge = rebuild_knowledge(stored, table.schema, len(classes), own)
        memory = rebuild_memory(stored, table.schema, len(classes), numbers is not None)
        table.frame(knowledge.examples[:MOST_ASKED])
    except (FasterCEError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        if isinstance(error, ArtifactError):
            raise
        raise unusable(where, "the parts of an explainer", f"{type(error).__name__}: {error}") from error
    return Learned(table, knowledge, report, classes, manifest["use_scores"], memory, numbers=numbers)


def _numbers(manifest: Content) -> Numbers | None:
    """How a model that answers numbers is read; None for one that answers classes."""
    if manifest["numbers"] is None:
        return None
    numbers = Numbers(**{name: float(value) for name, value in manifest["numbers"].items()})
    if not (math.isfinite(numbers.middle) and 0 < numbers.scale < math.inf):
        raise ValueError(f"numbers around {numbers.middle} in units of {numbers.scale}")
    if len(manifest["classes"]) != len(BELOW_AND_ABOVE):
        raise ValueError(f"{len(manifest['classes'])} classes for a model that answers numbers")
    return numbers


def _check_model(model: Any, learned: Learned, where: Path) -> None:
    if learned.use_scores and learned.numbers is None and find_scores(adapt(model)) is None:
        fitted = f"The explainer at {where} was fitted for a model with scores"
        raise ModelError(f"{fitted}; expected predict_proba or decision_function; got {type(model).__name__} without.")
    predictor = Predictor(model, learned.table, learned.classes, numbers=learned.numbers)
    examples, known = learned.knowledge.examples, learned.knowledge.example_classes
    asked = _spread(len(examples))
    answers = predictor.label(learned.table.frame(examples[asked]))
    if (answers == FAILED).any():
        raise ModelError(f"The explainer at {where} does not fit this model: {predictor.failure}")
    # Whether a model behind HTTP has scores shows only when it is asked.
    if learned.use_scores and learned.numbers is None and find_scores(predictor.model) is None:
        raise ModelError(f"The explainer at {where} was fitted for a model with scores; got one that answers labels only.")
    differing = int((answers != known[asked]).sum())
    if differing:
        warnings.warn(
            f"The model disagrees with {differing} of {len(asked)} answers stored in {where}: the artifact was fitted "
            "for another model, and counterfactuals may be missed or farther away than they need to be.",
            UserWarning,
            stacklevel=3,
        )
