"""The JSON manifest beside the arrays: what was fitted, with which settings and versions, and digests."""

import hashlib
import json
import platform
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
from fasterce.data.dtypes import plain
from fasterce.errors import ArtifactError
from fasterce.latent.runtime import Network

if TYPE_CHECKING:
    from fasterce.explainer import FasterCE

FORMAT, VERSION = "fasterce-explainer", 6
MANIFEST_FIELDS: dict[Any, tuple[str, ...]] = {
    dict: ("schema", "report", "files", "config"),
    list: ("dtypes", "classes", "column_major"),
    str: ("scores", "autoencoder", "compile", "task"),
    int: ("random_state",),
    bool: ("use_scores", "keep_rows", "has_compiled"),
    int | None: ("latent_dim", "max_fit_rows"),
    int | float: ("max_fit_seconds",),
    dict | None: ("numbers", "model"),
}
# Parameters of the explainer that `fit` used.
SETTINGS = ("random_state", "scores", "task", "latent_dim", "keep_rows", "compile", "max_fit_rows", "max_fit_seconds")
# Not in the digest: whether a model can be compiled depends on the machine, not on what was fitted.
ENVIRONMENT = ("written", "has_compiled", "model", "sha256")

Manifest = dict[str, Any]


def describe(explainer: "FasterCE", arrays: Named, packed: bytes, model: Manifest | None = None) -> Manifest:
    """Return the manifest, whose values can all be read back; `model` describes a model file saved beside it."""
    schema = explainer.state_.table.schema
    categories = [value for feature in schema.features for value in feature.categories]
    for what, values in (("column name", schema.names), ("category", categories), ("class", explainer.classes_)):
        for value in values:
            if not isinstance(plain(value), (str, int, float, bool)):
                raise ArtifactError("artifact.unsupported_value", what=what, received=value)
    content = content_of(explainer, arrays, packed)
    content["model"] = model
    return content | {"sha256": json_digest(content)}


def content_of(explainer: "FasterCE", arrays: Named, packed: bytes) -> Manifest:
    state = explainer.state_
    schema = state.table.schema
    return {
        "format": FORMAT,
        "version": VERSION,
        "written": _environment(),
        "schema": schema.to_dict(),
        "schema_sha256": json_digest(schema.to_dict()),
        "dtypes": state.table.to_dict(),
        "frames": state.table.kind,
        "classes": list(explainer.classes_),
        **{name: getattr(explainer, name) for name in SETTINGS},
        "use_scores": bool(state.use_scores),
        "numbers": None if state.numbers is None else asdict(state.numbers),
        "config": state.search.config.to_dict(),
        "has_compiled": state.compiled is not None,
        "autoencoder": "network" if isinstance(state.search.autoencoder, Network) else "callables",
        "report": explainer.report_.to_dict(),
        # Products of matrices may round differently in another statistics order, so the order is kept too.
        "column_major": sorted(name for name, array in arrays.items() if array.flags.fnc),
        "files": {ARRAYS: {"bytes": len(packed), "sha256": hashlib.sha256(packed).hexdigest()}},
    }


def content_digest(content: Manifest) -> str:
    """Return the digest of what was fitted; it does not depend on when or where it was written."""
    return f"sha256:{json_digest({name: value for name, value in content.items() if name not in ENVIRONMENT})}"


def versions() -> dict[str, str]:
    """Return the versions of the libraries in use."""
    libraries = {"numpy": np.__version__, "pandas": pd.__version__, "scikit-learn": sklearn.__version__}
    return {"fasterce": _own_version(), "python": platform.python_version(), **libraries}


@cache
def _own_version() -> str:
    try:
        return metadata.version("fasterce")
    except metadata.PackageNotFoundError:
        return "unknown"


def _environment() -> dict[str, str]:
    return {**versions(), "time": datetime.now(UTC).isoformat(timespec="seconds")}


def to_json(content: Any, **layout: Any) -> bytes:
    return json.dumps(content, default=_bare, **layout).encode()


def _bare(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise ArtifactError("artifact.unsupported_value", what="value", received=value)


def json_digest(content: object) -> str:
    return hashlib.sha256(to_json(content, sort_keys=True)).hexdigest()


def parse_json(text: bytes, path: Path) -> Manifest:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise unusable("not_json", path, error=str(error)) from error
    name = content.get("format") if isinstance(content, dict) else content
    if not isinstance(content, dict) or name != FORMAT:
        raise unusable("foreign", path, expected=FORMAT, received="None" if name is None else name)
    return content


def parse(text: bytes, path: Path) -> Manifest:
    content = parse_json(text, path)
    version = content.get("version")
    if not isinstance(version, int) or version < 1:
        raise unusable("not_a_version", path, received=version)
    if version != VERSION:
        raise unusable("newer" if version > VERSION else "older", path, expected=VERSION, received=version)
    for kind, names in MANIFEST_FIELDS.items():
        for name in names:
            if not isinstance(content.get(name, ...), kind):
                raise unusable("bad_field", path, field=name, type=str(kind), received=content.get(name, "nothing"))
    if content.pop("sha256", None) != json_digest(content):
        raise unusable("manifest_changed", path)
    if content.get("schema_sha256") != json_digest(content["schema"]):
        raise unusable("schema_changed", path)
    if list(content["files"]) != [ARRAYS] or not isinstance(content["files"][ARRAYS], dict):
        raise unusable("other_files", path, expected=ARRAYS, received=list(content["files"]))
    check_described(content["model"], path)
    return content
