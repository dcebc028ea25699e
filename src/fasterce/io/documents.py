"""JSON and YAML files that people write and edit, read without surprises: a name given twice is refused, in YAML `no` is a
word and not false, and nothing stands for something else."""

import json
import re
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from fasterce.errors import InputError, MissingExtraError, shorten

SUFFIXES = (".yaml", ".yml", ".json")
MOST_BYTES = 16 * 2**20
MOST_DIGITS = 300
TRUE_OR_FALSE = r"^(?:true|True|TRUE|false|False|FALSE)$"


def read(path: str | PathLike[str], what: str) -> Any:
    """The content of a .yaml, .yml or .json file; `what` is its name in a sentence, such as "The schema"."""
    source = Path(path)
    parse = _parse_yaml if is_yaml(source, what) else _parse_json
    try:
        if source.is_file() and source.stat().st_size > MOST_BYTES:
            raise InputError(f"{what} must be in a file of at most {MOST_BYTES >> 20} MiB; got {source}, which is larger.")
        return parse(source.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(
            f"{what} must come from a file that can be read; got {source}: {error.strerror or error}."
        ) from error
    except (ValueError, RecursionError) as error:
        kind = "YAML" if is_yaml(source, what) else "JSON"
        raise InputError(f"{what} in {source} must be {kind}; got {' '.join(str(error).split())}.") from error


def is_yaml(path: Path, what: str) -> bool:
    """Whether a file is YAML, by its name; JSON if not."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{what} must be in a file that ends in {shorten(SUFFIXES)}; got {path.name!r}.")
    return path.suffix.lower() != ".json"


def as_yaml(content: Any, **layout: Any) -> str:
    """YAML that `read` reads back."""
    written = str(_yaml().safe_dump(content, sort_keys=False, allow_unicode=True, **layout))
    if all(line.isprintable() for line in written.split("\n")):
        return written
    # What some reader takes for the end of a line is spelt out.
    return str(_yaml().safe_dump(content, sort_keys=False, allow_unicode=False, **layout))


def _parse_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once, parse_int=_whole)


def _once(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r:.100} twice")
        found[name] = value
    return found


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _parse_yaml(text: str) -> Any:
    yaml = _yaml()
    try:
        return yaml.load(text, Loader=_loader(yaml))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _loader(yaml: Any) -> Any:
    """PyYAML's safe loader without aliases, which can stand for gigabytes, without dates, with the booleans of YAML 1.2."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own way
            first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":bool", ":timestamp"))]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.events.AliasEvent):
                raise yaml.YAMLError("an alias (*name); expected everything written out")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            _once((key, None) for key in keys if not isinstance(key, (list, Mapping)))
            return super().construct_mapping(node, deep)

        def construct_yaml_int(self, node: Any) -> int:
            _whole(str(node.value))
            return int(super().construct_yaml_int(node))

    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(TRUE_OR_FALSE), list("tTfF"))
    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
    return Loader


def _yaml() -> Any:
    try:
        import yaml  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError("pyyaml", "yaml", "Reading and writing YAML") from error
    return yaml
