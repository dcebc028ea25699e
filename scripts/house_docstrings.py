"""Our docstrings as the reference shows them: aligned lists become lists, doctests become code.

In the source a list of names stands aligned ("status   one word a row") or as "name : what it is" below a heading of
NumPy's kind; mkdocstrings would take the first for running text and the second's words for a type. Dataclasses that
leave `__init__` to a base class are shown with that one.
"""

import re
from collections.abc import Iterator
from copy import copy
from typing import Any

from griffe import Class, Extension, Module, Object

ITEM = re.compile(r"^(?P<names>[A-Za-z_]\w*(?:, [A-Za-z_]\w*)*)(?: {2,}| : )(?P<text>\S.*)$")
CALL = re.compile(r"^(?P<call>\w+\(.*\)) {2,}(?P<text>\S.*)$")
INDENTED = re.compile(r"^ {2,}\S")


def readable(text: str) -> str:
    """The same words in the Markdown, and the NumPy sections, that mkdocstrings reads; what follows a section is put before
    it, where it does not belong to the section."""
    lines, prose, sections, section = text.splitlines(), list[str](), list[str](), ""
    while lines:
        line = lines.pop(0)
        section = _in_section(line, lines, section)
        shown = sections if section else prose
        item = ITEM.match(line)
        if item:
            shown += _entry(item["names"], _continued(item["text"], lines), section, shown)
        elif call := CALL.match(line):
            shown += _entry(call["call"], _continued(call["text"], lines), "", shown)
        elif line.startswith(">>> "):
            shown += ["", "```pycon", line, *_until_blank(lines), "```", ""]
        else:
            shown.append(line)
    return "\n".join([*prose, *([""] if sections and prose and prose[-1] else []), *sections])


def _in_section(line: str, following: list[str], section: str) -> str:
    """The heading with dashes this line lies below, if any; a section ends with an unindented sentence."""
    if following and re.fullmatch(r"-{3,}", following[0]):
        return line
    ends = bool(line) and not line.startswith(" ") and not ITEM.match(line) and not re.fullmatch(r"-{3,}", line)
    return "" if ends else section


def _continued(text: str, lines: list[str]) -> str:
    words = [text]
    while lines and INDENTED.match(lines[0]):
        words.append(lines.pop(0).strip())
    return " ".join(words)


def _until_blank(lines: list[str]) -> list[str]:
    taken = []
    while lines and lines[0]:
        taken.append(lines.pop(0))
    return taken


def _entry(names: str, text: str, section: str, before: list[str]) -> list[str]:
    if section:
        # Each parameter has a type of its own in the signature.
        entries = _names(names) if section == "Parameters" else [names]
        return [line for name in entries for line in (name, f"    {text}")]
    entry = f"- {', '.join(f'`{name}`' for name in _names(names))}: {text}"
    listed = bool(before) and before[-1].startswith("- ")
    return [entry] if listed or not before or not before[-1] else ["", entry]


def _names(names: str) -> list[str]:
    return [names] if names.endswith(")") else names.split(", ")


class HouseDocstrings(Extension):
    """Found by mkdocstrings through `extensions` in mkdocs.yml."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)

    def on_package(self, *, pkg: Module, **kwargs: Any) -> None:
        for one in _classes(pkg):
            if "__init__" not in one.members and any("init=False" in str(made.value) for made in one.decorators):
                above = next((base for base in one.mro() if "__init__" in base.members), None)
                if above is not None:
                    one.set_member("__init__", copy(above.members["__init__"]))


def _classes(parent: Module | Class) -> Iterator[Class]:
    for member in parent.members.values():
        if isinstance(member, Class):
            yield member
        if isinstance(member, Module):
            yield from _classes(member)
