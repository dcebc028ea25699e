"""A fitted explainer as an MLflow model (extra `mlflow`): saved, logged, loaded, served.

The content is our own artifact folder; the model explained is referred to by a model URI, an address or an import path, or
stands beside it as a file. Loaded through MLflow it is a pyfunc model that answers one line a row. Nothing is pickled.
"""

import json
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd

from fasterce import artifact
from fasterce.adapters.http.answers import Columns, Told
from fasterce.adapters.http.model import Answering
from fasterce.constraints import files
from fasterce.errors import ArtifactError, InputError, MissingExtraError, ModelError, unknown_name
from fasterce.explanation import Explanation
from fasterce.latent.runtime import Callables
from fasterce.options import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fasterce.explainer import FasterCE

CONTENT, EXPLAINER, REFERENCE, FILES = "fasterce", "explainer", "model.json", "model"
MOST_REFERENCE_BYTES = 2**20
A_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
TRUST_REFERENCE = "FASTERCE_TRUST_REFERENCE"
PARAMS = {"method": "closest", "options": "{}"}

Model = str | os.PathLike[str] | None
Reference = dict[str, Any]


class PyfuncModel(Answering):
    """A model MLflow loaded, as ours are asked: its predictions are labels, numbers, or rows of chances.

    `model` is what `mlflow.pyfunc.load_model` gives, or a URI for it (which runs the code that model brings). The other
    parameters are those of `fasterce.adapters.http.MLflowModel`.
    """

    def __init__(
        self,
        model: Any,
        *,
        classes: Sequence[Any] | None = None,
        gives: Any = "auto",
        label: str | None = None,
        chances: str | Sequence[str] | None = None,
    ) -> None:
        super().__init__("The MLflow model", classes, gives, label, chances)
        self.model = _mlflow("pyfunc").load_model(model) if isinstance(model, str) else model

    def _answers(self, frame: pd.DataFrame) -> list[Told]:
        return [self._reader.read(_columns(self.model.predict(frame)), len(frame))]


def _columns(predictions: Any) -> Columns:
    if isinstance(predictions, pd.DataFrame):
        return {str(name): predictions[name].tolist() for name in predictions.columns}
    if isinstance(predictions, Mapping):
        return {str(name): np.asarray(values).tolist() for name, values in predictions.items()}
    return {"predictions": np.asarray(predictions).tolist()}


def save_model(
    explainer: "FasterCE",
    path: str | os.PathLike[str],
    *,
    model: Model = None,
    classes: Sequence[Any] | None = None,
    trusted: Sequence[str] = (),
    input_example: pd.DataFrame | None = None,
    extra_pip_requirements: list[str] | None = None,
) -> None:
    """Write a fitted explainer as an MLflow model to a new folder, all or nothing.

    Parameters
    ----------
    model : the model explained. A model URI ("models:/credit/3", "runs:/…/model"), an address of a scoring server, or an
        import path ("package.module:name") is kept as a reference; a file (ONNX, XGBoost, LightGBM, skops) is copied in.
        None keeps none: then only `load_model(uri, model)` of this module can load it.
    classes : the classes of a model that answers 0..C-1; a model by URI has those of the explainer unless told otherwise.
    trusted : for a .skops file, its types that are trusted now. Who loads it has to trust them again, with `load_model` of
        this module: MLflow's own loading trusts nothing.
    input_example : rows to show what is expected; a made-up one of medians and first categories if None.
    """
    target = Path(path).resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ArtifactError(f"Cannot save to {target}; expected a new or an empty folder; got one with something in it.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as staging:
        content = _content(explainer, Path(staging), model, classes, trusted, input_example, extra_pip_requirements)
        with _quiet():
            _mlflow("pyfunc").save_model(f"{staging}/new", **content)
        if target.exists():
            target.rmdir()
        os.rename(f"{staging}/new", target)


def log_model(
    explainer: "FasterCE",
    name: str = "explainer",
    *,
    model: Model = None,
    classes: Sequence[Any] | None = None,
    trusted: Sequence[str] = (),
    input_example: pd.DataFrame | None = None,
    extra_pip_requirements: list[str] | None = None,
    registered_model_name: str | None = None,
) -> Any:
    """Log a fitted explainer to MLflow's current run under `name`; the parameters are those of `save_model`.

    Gives MLflow's own ModelInfo, whose `model_uri` is for `load_model` here or for `mlflow.pyfunc.load_model`.
    """
    pyfunc = _mlflow("pyfunc")
    named = "name" if int(_mlflow("version").VERSION.partition(".")[0]) >= 3 else "artifact_path"
    with tempfile.TemporaryDirectory() as staging:
        content = _content(explainer, Path(staging), model, classes, trusted, input_example, extra_pip_requirements)
        with _quiet():
            return pyfunc.log_model(**{named: name}, registered_model_name=registered_model_name, **content)


def load_model(
    uri: str | os.PathLike[str],
    model: Any = None,
    *,
    trusted: Sequence[str] = (),
    trust_pickle: bool = False,
    trust_reference: bool = False,
) -> "FasterCE":
    """The explainer at a model URI or in a folder, for `model`, or for the one it was saved with.

    `trusted` and `trust_pickle` are for a model file that needs them (see `fasterce.models.load_model`). A reference to a
    model elsewhere (a URI, an import path, an address) is followed only with `trust_reference`: it can run code, or send
    rows to whoever wrote it.
    """
    local = Path(_mlflow("artifacts").download_artifacts(os.fspath(uri)))
    flavour = _mlflow("models").Model.load(str(local)).flavors.get("python_function", {})
    if flavour.get("loader_module") != __name__:
        raise ArtifactError(f"No usable explainer at {uri}; expected a model logged by {__name__}; got another one.")
    data = (local / str(flavour.get("data", ""))).resolve()
    if local.resolve() not in data.parents:
        raise ArtifactError(f"No usable explainer at {uri}; expected its data inside the folder; got a path that leaves it.")
    return _load(data, model, trusted, trust_pickle, trust_reference)


class Explaining:
    """What MLflow serves: rows in, one line a row out."""

    def __init__(self, explainer: "FasterCE") -> None:
        self.explainer = explainer

    def predict(self, rows: pd.DataFrame, params: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """`params`: "method", and "options", the other options of `explain` as JSON text."""
        wanted = {**PARAMS, **(params or {})}
        return lines(self.explainer.explain(rows, wanted["method"], **_options(wanted["options"])).in_pandas())


def lines(result: Explanation) -> pd.DataFrame:
    """One line a row: status, reason, prediction, target, distance, changes (JSON), then the best counterfactual's columns,
    empty where there is none. Where the table has a column of the same name, ours gets an underscore."""
    best = np.flatnonzero(result.answers.rank == 0)
    distance, changes = np.full(len(result), np.nan), np.full(len(result), "[]", dtype=object)
    distance[result.answers.query[best]] = result.answers.distance[best]
    for k in map(int, best):
        moved = [{"feature": c.feature, "from": c.before, "to": c.after} for c in result.changes(k)]
        changes[result.answers.query[k]] = json.dumps(moved, default=str, ensure_ascii=False)
    about = pd.DataFrame(
        {
            "status": result.status,
            "reason": result.reason,
            "prediction": result.prediction,
            "target": [value if np.ndim(value) == 0 else str(value) for value in result.target],
            "distance": distance,
            "changes": changes,
        },
        index=result.rows.index,
    )
    columns = result.counterfactuals
    about.columns = [f"{name}_" if name in columns.columns else name for name in about.columns]
    return _plain(pd.concat([about, columns], axis=1))


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Categories as plain values, and None where one is missing, which MLflow sends as null (a NaN it sends as NaN)."""
    columns = [_plain_column(frame.iloc[:, j]) for j in range(frame.shape[1])]
    return pd.concat(columns, axis=1) if columns else frame


def _plain_column(column: pd.Series) -> pd.Series:
    missing = column.isna()
    if missing.any():
        return column.astype(object).where(~missing, None)
    return column.astype(object) if isinstance(column.dtype, pd.CategoricalDtype) else column


def _options(text: Any) -> dict[str, Any]:
    try:
        options = json.loads(text) if isinstance(text, str) else text
    except ValueError as error:
        raise InputError(f"options must be a JSON object with options of explain; got {error}.") from error
    if not isinstance(options, dict):
        raise InputError(f"options must be a JSON object with options of explain; got {type(options).__name__}.")
    known = [name for name in DEFAULTS if name != "method"]
    for name in options:
        if name not in known:
            raise InputError(unknown_name("option", name, known))
    return options | ({"rules": files.from_dict(options["rules"])} if "rules" in options else {})


def _load_pyfunc(path: str) -> Explaining:
    """What MLflow calls. Nobody can say here what is trusted, so a model file that needs trust is refused, and a reference
    is followed only if the environment says so."""
    return Explaining(_load(Path(path), None, trust_reference=os.environ.get(TRUST_REFERENCE) == "1"))


def _content(
    explainer: "FasterCE",
    staging: Path,
    model: Model,
    classes: Sequence[Any] | None,
    trusted: Sequence[str],
    example: pd.DataFrame | None,
    requirements: list[str] | None,
) -> dict[str, Any]:
    """What MLflow is to save: the data folder, which was loaded once to see that it can be, a signature and an example."""
    explainer._check_fitted()
    if isinstance(explainer.knowledge_.autoencoder, Callables):
        raise ArtifactError("An explainer with an autoencoder of your own cannot be an MLflow model: no file can hold it.")
    data = staging / CONTENT
    explainer.save(data / EXPLAINER)
    reference = _refer(model, data / FILES)
    if reference is not None:
        known = None if explainer.numbers_ is not None else list(explainer.classes_)
        reference["classes"] = list(classes) if classes is not None else known if reference["kind"] == "uri" else None
    (data / REFERENCE).write_bytes(artifact.manifest.to_json({"model": reference}, indent=2))
    rows = made_up_row(explainer) if example is None else example
    again = Explaining(_load(data, explainer.model if model is None else None, trusted, trust_reference=True))
    with _quiet():
        signature = _mlflow("models").infer_signature(rows, again.predict(rows), PARAMS)
    own = f"fasterce=={metadata.version('fasterce')}"
    return {
        "loader_module": __name__,
        "data_path": str(data),
        "signature": signature,
        "input_example": rows,
        "pip_requirements": [own, *(requirements or ())],
    }


def made_up_row(explainer: "FasterCE") -> pd.DataFrame:
    """A row nobody is: the medians of the numbers and the first category of the others."""
    codec = explainer.knowledge_.codec
    numeric = np.array([feature.numeric for feature in codec.schema.features])
    return explainer.table_.frame(np.where(numeric, _middles(explainer), 0.0)[None])


def _middles(explainer: "FasterCE") -> Any:
    whole = np.array([feature.integer for feature in explainer.table_.schema.features])
    middle = explainer.knowledge_.codec.profile.median
    return np.where(whole, np.round(middle), middle)


def _refer(model: Model, folder: Path) -> Reference | None:
    """How the model will be found again; a file is copied into `folder`."""
    if model is None:
        return None
    if not isinstance(model, (str, os.PathLike)):
        raise InputError(
            f"model must be a model URI, an address, an import path or a file; got a {type(model).__name__} "
            "(log it with its own flavour first, then give its URI)."
        )
    source = os.fspath(model)
    if source.startswith(("http://", "https://")):
        if urlsplit(source).username or urlsplit(source).password:
            raise InputError("An address that is stored must not have a user or password in it; got one.")
        return {"kind": "source", "source": source}
    if Path(source).is_file():
        folder.mkdir()
        shutil.copyfile(source, folder / Path(source).name)
        return {"kind": "file", "source": Path(source).name}
    if (Path(source) / "MLmodel").is_file():
        return {"kind": "uri", "source": str(Path(source).resolve())}
    if A_URI.match(source):
        return {"kind": "uri", "source": source}
    if ":" not in source:
        raise InputError(f"model must be a model URI, an address, an import path or a file; got {source!r}, which is none.")
    return {"kind": "source", "source": source}


def _load(
    data: Path, model: Any, trusted: Sequence[str] = (), trust_pickle: bool = False, trust_reference: bool = False
) -> "FasterCE":
    if model is None:
        reference = _read_reference(data / REFERENCE)
        if reference is None:
            raise ModelError(
                f"The explainer at {data} was saved without its model; expected {__name__}.load_model(uri, model)."
            )
        if reference["kind"] != "file" and not trust_reference:
            raise ModelError(
                f"The explainer at {data} refers to a model elsewhere ({reference['source']!r:.200}), which can run code or "
                f"be sent rows, so nothing was loaded; expected trust_reference=True (or {TRUST_REFERENCE}=1 where "
                "MLflow loads it) if you know it, or load_model(uri, model)."
            )
        model = _find(reference, data, trusted, trust_pickle)
    return artifact.load(data / EXPLAINER, model)


def _read_reference(path: Path) -> Reference | None:
    try:
        if path.stat().st_size > MOST_REFERENCE_BYTES:
            raise ValueError("a file that is too large")
        found = json.loads(path.read_bytes())["model"]
        if found is not None and not _is_reference(found["kind"], found["source"]):
            raise ValueError(f"{found!r:.80}")
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise ArtifactError(f"No usable reference to a model at {path}; expected kind and source; got {error}.") from error
    return found  # type: ignore[no-any-return]


def _is_reference(kind: Any, source: Any) -> bool:
    """A file must be one of the folder's own."""
    if kind == "file":
        return isinstance(source, str) and source not in ("", ".", "..") and not re.search(r"[/\\\0]", source)
    return isinstance(source, str) and kind in ("uri", "source")


def _find(reference: Reference, data: Path, trusted: Sequence[str], trust_pickle: bool) -> Any:
    classes = reference.get("classes")
    if reference["kind"] == "uri":
        return PyfuncModel(reference["source"], classes=classes)
    source = str(data / FILES / reference["source"]) if reference["kind"] == "file" else reference["source"]
    safely = import_module("fasterce.models")
    return safely.load_model(source, classes=classes, trusted=tuple(trusted), trust_pickle=trust_pickle).model


def _mlflow(part: str) -> Any:
    try:
        return import_module(f"mlflow.{part}")
    except ImportError as error:
        raise MissingExtraError("mlflow-skinny", "mlflow", "Saving or loading an explainer with MLflow") from error


@contextmanager
def _quiet() -> "Iterator[None]":
    """MLflow's hints about whole numbers that may be missing one day: our schema says where they may."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*integer column")
        yield
