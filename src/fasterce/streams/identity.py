"""What a run is a run of: the digest of its source, and the options, as plain data that can be compared."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fasterce.constraints import Rule, files
from fasterce.errors import SchemaError
from fasterce.schema import plain
from fasterce.streams import places

BLOCK = 2**20


def of_file(path: places.Source) -> dict[str, Any]:
    """Size and SHA-256 of all of a file: explaining a row takes thousands of times as long as reading it."""
    digest, size = hashlib.sha256(), 0
    with places.open_binary(path) as file:
        while block := file.read(BLOCK):
            digest.update(block)
            size += len(block)
    return {"bytes": size, "sha256": digest.hexdigest()}


def of_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `explain` as JSON can hold them; rules as in a file of rules."""
    return {name: json.loads(to_json(value)) for name, value in sorted(options.items())}


def to_json(content: Any) -> bytes:
    return json.dumps(_keyed(content), default=_described, sort_keys=True).encode()


def _keyed(content: Any) -> Any:
    """Names of columns as text wherever they are keys."""
    if isinstance(content, Mapping):
        return {str(key): _keyed(value) for key, value in content.items()}
    return [_keyed(value) for value in content] if isinstance(content, (list, tuple)) else content


def _described(value: Any) -> Any:
    if isinstance(value, Rule):
        try:
            return files.to_dict([value])[0]
        except SchemaError:
            return {name: _keyed(part) for name, part in vars(value).items()}
    if isinstance(value, np.generic):
        return plain(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Callable):  # type: ignore[arg-type]
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"
    return repr(value)
