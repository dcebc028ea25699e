"""The JSON beside the arrays: what was fitted, with what, and the digests of it all."""

import hashlib
import json
import platform
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import sklearn

from fasterce.artifact.arrays import Named
from fasterce.artifact.bundle import check_described
from fasterce.artifact.folder import ARRAYS, unusable
from fasterce.errors import ArtifactError, shorten
from fasterce.latent.runtime import Network
from fasterce.schema import plain

if TYPE_CHECKING:
    from fasterce.explainer import FasterCE

FORMAT, VERSION = "fasterce-explainer", 4
MANIFEST_FIELDS: dict[Any, tuple[str, ...]] = {
    dict: ("schema", "report", "files"),
    list: ("dtypes", "classes", "column_major"),
    str: ("scores", "autoencoder", "twin", "task"),
    int: ("random_state",),
    bool: ("use_scores", "keep_rows", "has_twin"),
    int | None: ("latent_dim",),
    dict | None: ("numbers", "model"),
}
# Whether a twin can be made depends on the machine, not on what was fitted.
CIRCUMSTANCES = ("written", "has_twin", "model", "sha256")

Content = dict[str, Any]


def describe(explainer: "FasterCE", arrays: Named, packed: bytes, model: Content | None = None) -> Content:
    """The manifest, where everything in it can be read back; `model` is about a model file saved beside it."""
    schema = explainer.table_.schema
    _check_scalars(schema.names, "column name")
    _check_scalars((value for feature in schema.features for value in feature.categories), "category")
    _check_scalars(explainer.classes_, "class")
    content = content_of(explainer, arrays, packed)
    content["model"] = model
    return content | {"sha256": json_digest(content)}


def content_of(explainer: "FasterCE", arrays: Named, packed: bytes) -> Content:
    schema = explainer.table_.schema
    return {
        "format": FORMAT,
        "version": VERSION,
        "written": _circumstances(),
        "schema": schema.to_dict(),
        "schema_sha256": json_digest(schema.to_dict()),
        "dtypes": explainer.table_.to_dict(),
        "frames": explainer.table_.kind,
        "classes": list(explainer.classes_),
        "random_state": explainer.random_state,
        "scores": explainer.scores,
        "use_scores": bool(explainer.use_scores_),
        "task": explainer.task,
        "numbers": None if explainer.numbers_ is None else asdict(explainer.numbers_),
        "latent_dim": explainer.latent_dim,
        "keep_rows": explainer.keep_rows,
        "twin": explainer.twin,
        "has_twin": explainer.twin_ is not None,
        "autoencoder": "network" if isinstance(explainer.knowledge_.autoencoder, Network) else "callables",
        "report": explainer.report_.to_dict(),
        # Products of matrices may round differently in another memory order, so the order is kept too.
        "column_major": sorted(name for name, array in arrays.items() if array.flags.fnc),
        "files": {ARRAYS: {"bytes": len(packed), "sha256": hashlib.sha256(packed).hexdigest()}},
    }


def content_digest(content: Content) -> str:
    """The digest of what was fitted, whenever and wherever it was written."""
    return f"sha256:{json_digest({name: value for name, value in content.items() if name not in CIRCUMSTANCES})}"


def versions() -> dict[str, str]:
    """What is running here."""
    libraries = {"numpy": np.__version__, "pandas": pd.__version__, "scikit-learn": sklearn.__version__}
    return {"fasterce": _own_version(), "python": platform.python_version(), **libraries}


@cache
def _own_version() -> str:
    try:
        return metadata.version("fasterce")
    except metadata.PackageNotFoundError:
        return "unknown"


def _circumstances() -> dict[str, str]:
    return {**versions(), "time": datetime.now(UTC).isoformat(timespec="seconds")}


def _check_scalars(values: Iterable[Any], what: str) -> None:
    for value in values:
        if not isinstance(plain(value), (str, int, float, bool)):
            raise ArtifactError(f"A {what} must be text, a number or a boolean to be saved; got {value!r}.")


def to_json(content: Any, **layout: Any) -> bytes:
    return json.dumps(content, default=_bare, **layout).encode()


def _bare(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise ArtifactError(f"A saved explainer can hold text, numbers and booleans; got {value!r}.")


def json_digest(content: Any) -> str:
    return hashlib.sha256(to_json(content, sort_keys=True)).hexdigest()


def parse_json(text: bytes, path: Path) -> Content:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise unusable(path, "JSON", f"something else ({error})") from error
    name = content.get("format") if isinstance(content, dict) else content
    if not isinstance(content, dict) or name != FORMAT:
        raise unusable(path, f"the format {FORMAT!r}", f"the manifest of another program ({name!r:.80})")
    return content


def parse(text: bytes, path: Path) -> Content:
    content = parse_json(text, path)
    version = content.get("version")
    if not isinstance(version, int) or version < 1:
        raise unusable(path, "a format version of 1 or more", f"{version!r:.80}")
    if version > VERSION:
        newer = f"The saved explainer at {path} was written by a newer fasterce"
        raise ArtifactError(f"{newer}; expected format version <= {VERSION}; got {version}.")
    if version < VERSION:
        older = f"The saved explainer at {path} was written by an older fasterce"
        raise ArtifactError(f"{older}; expected format version {VERSION}, so fit and save again; got {version}.")
    for kind, names in MANIFEST_FIELDS.items():
        for name in names:
            if not isinstance(content.get(name, ...), kind):
                raise unusable(path, f"a field {name!r} of type {kind}", f"{content.get(name, 'none')!r:.80}")
    if content.pop("sha256", None) != json_digest(content):
        raise unusable(path, "the content it was written with", "a manifest changed since (its SHA-256 differs)")
    if content.get("schema_sha256") != json_digest(content["schema"]):
        raise unusable(path, "the schema it was written with", "another (its SHA-256 differs)")
    if list(content["files"]) != [ARRAYS] or not isinstance(content["files"][ARRAYS], dict):
        raise unusable(path, f"{ARRAYS!r} as its only file", shorten(content["files"], 3))
    check_described(content["model"], path)
    return content
