"""All that the reference (docs/api) lists, or a package exports, has a numpydoc docstring."""

import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

REFERENCE = Path(__file__).parents[2] / "docs" / "api"
PACKAGES = ("", ".batch", ".constraints", ".fairness", ".io", ".models", ".models.http", ".records")


def listed() -> Iterator[tuple[str, list[str] | None]]:
    """Yield names, and the members of a class that the reference shows (None for all that are public)."""
    for page in sorted(REFERENCE.glob("*.md")):
        for name, options in re.findall(r"^::: ([\w.]+)\n((?: +.*\n)*)", page.read_text() + "\n", re.MULTILINE):
            given = re.search(r"members: \[(.*)\]", options)
            members = re.findall(r"\w+", given[1]) if given else None
            if inspect.ismodule(resolve_name(name)):
                yield from ((f"{name}.{member}", None) for member in members or ())
            else:
                yield name, members
    for package in PACKAGES:
        yield from ((f"fasterce{package}.{name}", []) for name in import_module(f"fasterce{package}").__all__)


def documented() -> Iterator[tuple[str, Any]]:
    """Yield functions, classes, and the methods and properties of classes."""
    for name, members in listed():
        found = resolve_name(name)
        if inspect.isclass(found) or inspect.isfunction(found):
            yield name, found
        if inspect.isclass(found):
            for member in [one for one in vars(found) if one[0] != "_"] if members is None else members:
                value = inspect.getattr_static(found, member)
                value = getattr(value, "__func__", value)
                if isinstance(value, (property, cached_property)) or inspect.isfunction(value):
                    yield f"{name}.{member}", value


@pytest.mark.parametrize(("name", "found"), [pytest.param(*one, id=one[0]) for one in dict(documented()).items()])
def test_a_public_name_has_a_numpydoc_docstring(name: str, found: Any) -> None:
    assert found.__doc__, name
    is_class = inspect.isclass(found)
    if not (inspect.isfunction(found.__init__ if is_class else found)) or getattr(found, "_is_protocol", False):
        return
    # A class may leave what it inherits to its base class, and a dataclass describes its fields as attributes.
    text = "\n".join(inspect.cleandoc(one.__doc__ or "") for one in (found.__mro__ if is_class else [found]))
    signature = inspect.signature(found)
    parameters = {one.name for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD}
    sections = re.split(r"(?:Parameters|Attributes)\n---", text, maxsplit=1)[1:]
    described = re.findall(r"\w+(?=(?:, [*\w]+)*(?: :|$))", "".join(sections), re.MULTILINE)
    assert parameters - {"self", "cls", *described} == set()
    assert is_class or signature.return_annotation in (None, "None") or re.search(r"(Returns|Yields)\n---", text)
