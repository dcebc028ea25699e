"""A fitted explainer as an MLflow model (extra `mlflow`): saved, logged, loaded, served.

The content is the artifact folder of the explainer; the model explained is referred to by a model URI, an address or an
import path, or copied as a file. Loaded by MLflow, it is a pyfunc model that returns one line per row. Nothing is pickled.
"""

import json
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Hashable, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd

from fasterce import artifact
from fasterce.constraints import io
from fasterce.errors import ArtifactError, InputError, ModelError, import_extra, problem_of
from fasterce.explanation import Explanation
from fasterce.latent.runtime import Callables
from fasterce.models.files import load as files
from fasterce.models.http.model import ResponseModel
from fasterce.models.http.responses import Columns, Response, ResponseReader
from fasterce.options import Kind, check_known, declared
from fasterce.typing import Json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fasterce.explainer import FasterCE

CONTENT, EXPLAINER, REFERENCE, FILES = "fasterce", "explainer", "model.json", "model"
MOST_REFERENCE_BYTES = 2**20
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
TRUST_REFERENCE = "FASTERCE_TRUST_REFERENCE"
OPTIONS = {option.name: option for option in declared()}
# MLflow's parameters are single values, so all options but the method are one JSON object.
PARAMS = {"method": OPTIONS["method"].default, "options": "{}"}

ModelReference = str | os.PathLike[str] | None
Reference = dict[str, Json]


class PyfuncModel(ResponseModel):
    """A model loaded by MLflow; its predictions are labels, numbers, or rows of probabilities.

    Parameters
    ----------
    model : str or pyfunc model
        A URI, which MLflow loads (this runs the code of the model), or the result of `mlflow.pyfunc.load_model`.
    **reading
        `classes`, `gives`, `label` and `chances` of `fasterce.models.http.MLflowModel`.
    """

    def __init__(self, model: Any, **reading: Any) -> None:
        super().__init__("The MLflow model", ResponseReader(**reading))
        self.model = _mlflow("pyfunc").load_model(model) if isinstance(model, str) else model

    def _responses(self, frame: pd.DataFrame) -> list[Response]:
        return [self._reader.read(_columns(self.model.predict(frame)), len(frame))]


def _columns(predictions: object) -> Columns:
    if isinstance(predictions, pd.DataFrame):
        return {str(name): predictions[name].tolist() for name in predictions.columns}
    if isinstance(predictions, Mapping):
        return {str(name): np.asarray(values).tolist() for name, values in predictions.items()}
    return {"predictions": np.asarray(predictions).tolist()}


def save_model(
    explainer: "FasterCE",
    path: str | os.PathLike[str],
    *,
    model: ModelReference = None,
    classes: Sequence[Hashable] | None = None,
    trusted: Sequence[str] = (),
    input_example: pd.DataFrame | None = None,
    extra_pip_requirements: list[str] | None = None,
) -> None:
    """Write a fitted explainer as an MLflow model to a new folder, all or nothing.

    Parameters
    ----------
    explainer : FasterCE
        Fitted.
    path : str or path
        A new or empty folder.
    model : str or path, optional
        The model explained. A model URI ("models:/credit/3", "runs:/…/model"), the address of a scoring server, or an import
        path ("package.module:name") is kept as a reference; a file (ONNX, XGBoost, LightGBM, skops) is copied. With None
        only `load_model(uri, model)` of this module can load it.
    classes : sequence, optional
        The classes of a model that returns 0..C-1; a model by URI has those of the explainer by default.
    trusted : sequence of str, default=()
        Types of a .skops file that are trusted now. Whoever loads it must trust them again, with `load_model` of this module:
        MLflow's own loading trusts nothing.
    input_example : pandas.DataFrame, optional
        Rows that show what is expected; by default one row of medians and first categories.
    extra_pip_requirements : list of str, optional
        Requirements besides fasterce itself.
    """
    target = Path(path).resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ArtifactError("integrations.folder_not_empty", path=str(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as staging:
        content = _content(explainer, Path(staging), model, classes, trusted, input_example, extra_pip_requirements)
        with _quiet():
            _mlflow("pyfunc").save_model(f"{staging}/new", **content)
        if target.exists():
            target.rmdir()
        os.rename(f"{staging}/new", target)


def log_model(
    explainer: "FasterCE", name: str = "explainer", *, registered_model_name: str | None = None, **content: Any
) -> Any:
    """Log a fitted explainer to MLflow's current run.

    Parameters
    ----------
    explainer : FasterCE
        A fitted explainer.
    name : str, default="explainer"
        Its name in the run.
    registered_model_name : str, optional
        Register it under this name.
    **content
        Other parameters of `save_model`.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its `model_uri` is for `load_model` of this module, or for `mlflow.pyfunc.load_model`.
    """
    pyfunc = _mlflow("pyfunc")
    named = "name" if int(_mlflow("version").VERSION.partition(".")[0]) >= 3 else "artifact_path"
    with tempfile.TemporaryDirectory() as staging:
        described = _content(explainer, Path(staging), **content)
        with _quiet():
            return pyfunc.log_model(**{named: name}, registered_model_name=registered_model_name, **described)


def load_model(
    uri: str | os.PathLike[str],
    model: object = None,
    *,
    trusted: Sequence[str] = (),
    trust_pickle: bool = False,
    trust_reference: bool = False,
) -> "FasterCE":
    """Load the explainer at a model URI or in a folder.

    Parameters
    ----------
    uri : str or path
        Where it is.
    model : optional
        The model to explain; by default the one it was saved with.
    trusted, trust_pickle
        For a model file that needs them, see `fasterce.models.load_model`.
    trust_reference : bool, default=False
        Whether a reference to a model elsewhere (a URI, an import path, an address) is followed. It can run code, or send
        rows to the author of the reference.

    Returns
    -------
    FasterCE
        The fitted explainer.
    """
    local = Path(_mlflow("artifacts").download_artifacts(os.fspath(uri)))
    flavour = _mlflow("models").Model.load(str(local)).flavors.get("python_function", {})
    if flavour.get("loader_module") != __name__:
        raise ArtifactError("integrations.other_model", path=os.fspath(uri), expected=__name__)
    data = (local / str(flavour.get("data", ""))).resolve()
    if local.resolve() not in data.parents:
        raise ArtifactError("integrations.path_leaves_folder", path=os.fspath(uri))
    return _load(data, model, trusted, trust_pickle, trust_reference)


class ServedExplainer:
    """The model that MLflow serves: rows in, one line per row out."""

    def __init__(self, explainer: "FasterCE") -> None:
        self.explainer = explainer

    def predict(self, rows: pd.DataFrame, params: Mapping[str, Json] | None = None) -> pd.DataFrame:
        """Explain rows; `params` are "method", and "options", the other options of `explain` as JSON text."""
        given = {**PARAMS, **(params or {})}
        return lines(self.explainer.explain(rows, given["method"], **_options(given["options"])).in_pandas())


def lines(result: Explanation) -> pd.DataFrame:
    """Return one line per row: status, reason, prediction, target, distance, changes (JSON), then the columns of the best
    counterfactual, missing where there is none. Where the table has a column of the same name, ours gets an underscore."""
    arrays = result.arrays
    best = np.flatnonzero(arrays.rank == 0)
    distance, changes = np.full(len(result), np.nan), np.full(len(result), "[]", dtype=object)
    distance[arrays.query[best]] = arrays.distance[best]
    for k in map(int, best):
        moved = [change.to_dict() for change in result.changes(k)]
        changes[arrays.query[k]] = json.dumps(moved, default=str, ensure_ascii=False)
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
    frame = pd.concat([about, columns], axis=1)
    return pd.concat([_plain_column(frame.iloc[:, j]) for j in range(frame.shape[1])], axis=1)


def _plain_column(column: pd.Series) -> pd.Series:
    """Return plain values, and None where one is missing, which MLflow sends as null (a NaN it sends as NaN)."""
    missing = column.isna()
    if missing.any():
        return column.astype(object).where(~missing, None)
    return column.astype(object) if isinstance(column.dtype, pd.CategoricalDtype) else column


def _options(text: Json) -> dict[str, Any]:
    try:
        options = json.loads(text) if isinstance(text, str) else text
    except ValueError as error:
        raise InputError("integrations.not_json_options", option="options", reason=str(error)) from error
    if not isinstance(options, dict):
        raise InputError("integrations.not_json_options", option="options", reason=type(options).__name__)
    check_known(options, [name for name in OPTIONS if name != "method"])
    return {name: io.from_dict(value) if OPTIONS[name].kind is Kind.CONSTRAINTS else value for name, value in options.items()}


def _load_pyfunc(path: str) -> ServedExplainer:
    """Load the explainer for MLflow, which trusts no model file that needs trust, and follows a reference only if the
    environment says so."""
    return ServedExplainer(_load(Path(path), None, trust_reference=os.environ.get(TRUST_REFERENCE) == "1"))


def _content(
    explainer: "FasterCE",
    staging: Path,
    model: ModelReference = None,
    classes: Sequence[Hashable] | None = None,
    trusted: Sequence[str] = (),
    input_example: pd.DataFrame | None = None,
    extra_pip_requirements: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return what MLflow saves: the data folder, loaded once as a check, a signature and an example."""
    explainer._check_fitted()
    if isinstance(explainer.state_.search.autoencoder, Callables):
        raise ArtifactError("integrations.own_autoencoder")
    data = staging / CONTENT
    explainer.save(data / EXPLAINER)
    reference = _refer(model, data / FILES)
    if reference is not None:
        known = list(explainer.classes_) if explainer.state_.numbers is None and reference["kind"] == "uri" else None
        reference["classes"] = known if classes is None else list(classes)
    (data / REFERENCE).write_bytes(artifact.manifest.to_json({"model": reference}, indent=2))
    rows = typical_row(explainer) if input_example is None else input_example
    served = ServedExplainer(_load(data, explainer.model if model is None else None, trusted, trust_reference=True))
    with _quiet():
        signature = _mlflow("models").infer_signature(rows, served.predict(rows), PARAMS)
    return {
        "loader_module": __name__,
        "data_path": str(data),
        "signature": signature,
        "input_example": rows,
        "pip_requirements": [f"fasterce=={metadata.version('fasterce')}", *(extra_pip_requirements or ())],
    }


def typical_row(explainer: "FasterCE") -> pd.DataFrame:
    """Return one artificial row of medians and first categories."""
    features, median = explainer.schema_.features, explainer.state_.search.codec.profile.median
    values = [
        (round(middle) if feature.integer else middle) if feature.numeric else 0.0
        for feature, middle in zip(features, median.tolist(), strict=True)
    ]
    return explainer.state_.table.frame(np.array([values], dtype=np.float64))


def _refer(model: ModelReference, folder: Path) -> Reference | None:
    """Return how the model will be found again; a file is copied into `folder`."""
    if model is None:
        return None
    if not isinstance(model, (str, os.PathLike)):
        raise InputError("integrations.model_object", option="model", received=type(model).__name__)
    source = os.fspath(model)
    if Path(source).is_file():
        folder.mkdir()
        shutil.copyfile(source, folder / Path(source).name)
        return {"kind": "file", "source": Path(source).name}
    if (Path(source) / "MLmodel").is_file():
        return {"kind": "uri", "source": str(Path(source).resolve())}
    if ":" not in source:
        raise InputError("integrations.not_a_reference", option="model", received=source)
    is_address = source.startswith(("http://", "https://"))
    if is_address and (urlsplit(source).username or urlsplit(source).password):
        raise InputError("integrations.credentials_in_address", option="model")
    return {"kind": "uri" if URI.match(source) and not is_address else "source", "source": source}


def _load(
    data: Path, model: object, trusted: Sequence[str] = (), trust_pickle: bool = False, trust_reference: bool = False
) -> "FasterCE":
    if model is None:
        reference = _read_reference(data / REFERENCE)
        if reference is None:
            expected = f"{__name__}.load_model(uri, model)"
            raise ModelError("integrations.saved_without_model", path=str(data), expected=expected)
        if reference["kind"] != "file" and not trust_reference:
            fields = {"path": str(data), "received": reference["source"], "variable": TRUST_REFERENCE}
            raise ModelError("integrations.untrusted_reference", **fields)
        model = _find(reference, data, trusted, trust_pickle)
    return artifact.load(data / EXPLAINER, model)


def _read_reference(path: Path) -> Reference | None:
    try:
        if path.stat().st_size > MOST_REFERENCE_BYTES:
            raise InputError("integrations.reference_too_large")
        found: Reference | None = json.loads(path.read_bytes())["model"]
        if found is not None and not _is_reference(found["kind"], found["source"]):
            raise InputError("integrations.reference_unknown", received=found)
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise ArtifactError("integrations.unusable_reference", path=str(path), reason=problem_of(error)) from error
    return found


def _is_reference(kind: Json, source: Json) -> bool:
    """Return whether a reference can be followed; a file must be inside the folder."""
    if kind == "file":
        return isinstance(source, str) and source not in ("", ".", "..") and not re.search(r"[/\\\0]", source)
    return isinstance(source, str) and kind in ("uri", "source")


def _find(reference: Reference, data: Path, trusted: Sequence[str], trust_pickle: bool) -> object:
    classes = reference.get("classes")
    if reference["kind"] == "uri":
        return PyfuncModel(reference["source"], classes=classes)
    source = str(data / FILES / reference["source"]) if reference["kind"] == "file" else reference["source"]
    return files.load_model(source, classes=classes, trusted=tuple(trusted), trust_pickle=trust_pickle).model


def _mlflow(part: str) -> Any:
    return import_extra(f"mlflow.{part}", "mlflow", "Saving or loading an explainer with MLflow", "mlflow-skinny")


@contextmanager
def _quiet() -> "Iterator[None]":
    """Hide MLflow's warnings about integers that may be missing later: the schema says which may."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*integer column")
        yield
