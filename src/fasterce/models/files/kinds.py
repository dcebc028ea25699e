"""The kind of a model file: its name and its first bytes must agree."""

import re

from fasterce.errors import FasterCEError, ModelError

# File endings by kind.
SUFFIXES = {
    "onnx": (".onnx",),
    "xgboost": (".json", ".ubj", ".xgb"),
    "lightgbm": (".txt", ".lgb", ".lgbm"),
    "catboost": (".cbm",),
    "skops": (".skops",),
    "pickle": (".pkl", ".pickle", ".joblib"),
}
KINDS = (*SUFFIXES, "import", "mlflow", "inference")
# First bytes by kind. The oldest pickles are text: a global, a mark, an empty dictionary and the like.
BEGINNINGS = (
    ("pickle", re.compile(rb"\x80[\x02-\x05]")),
    ("zip", re.compile(rb"PK\x03\x04")),
    ("compressed", re.compile(rb"\x1f\x8b|BZh|\xfd7zXZ|\x5d\x00\x00|\x78[\x01\x5e\x9c\xda]")),
    ("catboost", re.compile(rb"CBM1")),
    ("lightgbm", re.compile(rb"tree\r?\n")),
    ("xgboost", re.compile(rb"\s*\{")),
    ("onnx", re.compile(rb"\x08")),
    ("pickle", re.compile(rb"c[\w.]+\n\w+\n|\((c|lp|dp|i|d|l|t)|\]q|\}q|[lgI]p?\d+\n")),
)
TORCH_SUFFIXES = (".pt", ".pth", ".pt2", ".ts", ".safetensors")
FOREIGN_SUFFIXES = (".keras", ".h5", ".dill", ".cloudpickle")


class UnsoundError(FasterCEError, ValueError):
    """The file is not a model its library can have written; the problem names the field."""


def kind_of(where: str, suffix: str, content: bytes, wanted: str | None) -> str:
    """Return the kind of a file; an error where name and content do not agree."""
    kind = wanted or next((kind for kind, endings in SUFFIXES.items() if suffix in endings), "")
    found = next((kind for kind, beginning in BEGINNINGS if beginning.match(content)), "")
    if not kind:
        raise _unknown_suffix(where, suffix, found)
    if found not in {"skops": ("zip",), "pickle": ("pickle", "compressed")}.get(kind, (kind,)):
        code = "models.file_is_pickle" if found == "pickle" else "models.file_kind"
        raise ModelError(code, path=where, expected=kind, received=found or "unknown")
    return kind


def _unknown_suffix(where: str, suffix: str, found: str) -> ModelError:
    endings = ", ".join(ending for group in SUFFIXES.values() for ending in group)
    fields = {"path": where, "expected": endings, "received": suffix or "no ending"}
    if suffix in TORCH_SUFFIXES:
        return ModelError("models.torch_file", **fields)
    if suffix in FOREIGN_SUFFIXES:
        return ModelError("models.foreign_file", **fields)
    if found in SUFFIXES and found != "pickle":
        return ModelError("models.file_suffix_kind", **fields, kind=found)
    return ModelError("models.file_suffix", **fields)
