"""JSON and YAML files that people write and edit: repeated names and YAML aliases are rejected, and in YAML `no` is text."""

import json
import re
from collections.abc import Hashable, Iterable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from fasterce.errors import FasterCEError, InputError, import_extra
from fasterce.typing import Json

SUFFIXES = (".yaml", ".yml", ".json")
MOST_BYTES = 16 * 2**20
MOST_DIGITS = 300
TRUE_OR_FALSE = r"^(?:true|True|TRUE|false|False|FALSE)$"


class _DocumentError(FasterCEError, ValueError):
    """A document of valid syntax that is not accepted."""


def read(path: str | PathLike[str], option: str) -> Json:
    """Return the content of a .yaml, .yml or .json file; `option` is what it holds, such as "schema"."""
    source = Path(path)
    parse = _parse_yaml if is_yaml(source, option) else partial(json.loads, object_pairs_hook=_unique, parse_int=_whole)
    try:
        if source.is_file() and source.stat().st_size > MOST_BYTES:
            raise InputError("io.document_too_large", option=option, expected=MOST_BYTES >> 20, path=str(source))
        return parse(source.read_text(encoding="utf-8-sig"))
    except OSError as error:
        cause = error.strerror or str(error)
        raise InputError("io.document_unreadable", option=option, path=str(source), cause=cause) from error
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        kind = "YAML" if is_yaml(source, option) else "JSON"
        syntax = error.problem if isinstance(error, _DocumentError) else " ".join(str(error).split())
        raise InputError("io.document_syntax", option=option, expected=kind, path=str(source), cause=syntax) from error


def is_yaml(path: Path, option: str) -> bool:
    """Return whether a file is YAML by its name, or else JSON."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError("io.document_suffix", option=option, expected=SUFFIXES, received=path.name)
    return path.suffix.lower() != ".json"


def as_yaml(content: Json, **layout: object) -> str:
    """Return YAML that `read` reads back."""
    written = str(_yaml().safe_dump(content, sort_keys=False, allow_unicode=True, **layout))
    if all(line.isprintable() for line in written.split("\n")):
        return written
    # Some readers take other characters for the end of a line, so these are escaped.
    return str(_yaml().safe_dump(content, sort_keys=False, allow_unicode=False, **layout))


def _unique(pairs: Iterable[tuple[Hashable, Json]]) -> dict[Hashable, Json]:
    found: dict[Hashable, Json] = {}
    for name, value in pairs:
        if name in found:
            raise _DocumentError("io.document_repeated_name", received=name)
        found[name] = value
    return found


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise _DocumentError("io.document_digits", digits=len(digits))
    return int(digits)


def _parse_yaml(text: str) -> Json:
    yaml = _yaml()
    try:
        return yaml.load(text, Loader=_loader(yaml))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _loader(yaml: Any) -> type:
    """Return PyYAML's safe loader without aliases, which can expand to gigabytes, without dates, with YAML 1.2 booleans."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        yaml_implicit_resolvers = {  # noqa: RUF012 - the way of PyYAML
            first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":bool", ":timestamp"))]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def compose_node(self, parent: object, index: object) -> object:
            if self.check_event(yaml.events.AliasEvent):
                raise _DocumentError("io.document_alias")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> object:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            _unique((key, None) for key in keys if not isinstance(key, (list, Mapping)))
            return super().construct_mapping(node, deep)

        def construct_yaml_int(self, node: Any) -> int:
            _whole(str(node.value))
            return int(super().construct_yaml_int(node))

    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(TRUE_OR_FALSE), list("tTfF"))
    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
    return Loader


def _yaml() -> Any:
    return import_extra("yaml", "yaml", "Reading and writing YAML", "pyyaml")
