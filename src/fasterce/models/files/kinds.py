"""What a model file is: by its first bytes where these say so, by its name where they agree."""

import re

from fasterce.errors import ModelError, shorten

# How files of each kind may end.
SUFFIXES = {
    "onnx": (".onnx",),
    "xgboost": (".json", ".ubj", ".xgb"),
    "lightgbm": (".txt", ".lgb", ".lgbm"),
    "catboost": (".cbm",),
    "skops": (".skops",),
    "pickle": (".pkl", ".pickle", ".joblib"),
}
KINDS = (*SUFFIXES, "import", "mlflow", "inference")
# How content begins. The oldest pickles are text: a global, a mark, an empty dictionary and the like.
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
ELSEWHERE = {
    ".pt": "torch",
    ".pth": "torch",
    ".pt2": "torch",
    ".ts": "torch",
    ".safetensors": "torch",
    ".keras": "keras",
    ".h5": "keras",
    ".dill": "dill",
    ".cloudpickle": "dill",
}


def seen(content: bytes) -> str:
    """The kind of file the first bytes say it is; "" where they say nothing."""
    return next((kind for kind, beginning in BEGINNINGS if beginning.match(content)), "")


def kind_of(where: str, suffix: str, content: bytes, wanted: str | None) -> str:
    """The kind of a file; an error where name and content do not agree."""
    kind = wanted or next((kind for kind, endings in SUFFIXES.items() if suffix in endings), "")
    found = seen(content)
    if not kind:
        raise ModelError(_unknown(where, suffix, found))
    if not _agree(kind, found):
        named = f"kind={wanted!r}" if wanted else f"its name ends in {suffix}"
        got = {"": "something else", "compressed": "a compressed file", "zip": "a zip archive"}.get(found, f"a {found} file")
        warning = " (a pickle runs code when it is loaded, so nothing was loaded)" if found == "pickle" else ""
        raise ModelError(f"The model file {where} must be a {kind} file, since {named}; its content is {got}{warning}.")
    return kind


def _agree(kind: str, found: str) -> bool:
    if kind == "pickle":
        return found in ("pickle", "compressed")
    return found == ("zip" if kind == "skops" else kind)


def _unknown(where: str, suffix: str, found: str) -> str:
    known = shorten([ending for endings in SUFFIXES.values() for ending in endings], 20)
    other = ELSEWHERE.get(suffix)
    if other == "torch":
        return (
            f"The model file {where} must end in one of {known}; got {suffix}: a PyTorch file does not say how a table "
            "becomes tensors, so wrap it in fasterce.adapters.TorchModel in a module of yours and name that as 'module:name'."
        )
    if other is not None:
        return (
            f"The model file {where} must end in one of {known}; got {suffix}: export it to ONNX, or load it in a module of "
            "yours and name that as 'module:name'."
        )
    guess = f" (its content looks like {found}: say kind={found!r})" if found in SUFFIXES and found != "pickle" else ""
    return f"The model file {where} must end in one of {known}; got {suffix or 'no ending'}{guess}."


def check_kind(kind: str | None) -> None:
    if kind is not None and kind not in KINDS:
        raise ModelError(f"kind must be one of {shorten(KINDS, 20)}; got {kind!r:.60}.")
