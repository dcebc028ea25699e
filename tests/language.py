"""A second language: every message text replaced by its code and the values it mentions."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Formatter

import pytest

from fasterce.errors import MESSAGES_VARIABLE, catalogue


def translated(code: str, text: str) -> str:
    """Return another wording with the same values."""
    values = [f"{{{name}{f':{how}' if how else ''}}}" for _, name, how, _ in Formatter().parse(text) if name]
    return f"⟦{code}⟧ " + " ".join(dict.fromkeys(values))


def write_translation(path: Path) -> Path:
    """Write a catalogue in which no original text is left."""
    catalogue.cache_clear()
    lines = []
    for section, entries in catalogue().items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {json.dumps(translated(f'{section}.{name}', text))}" for name, text in entries.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@contextmanager
def other_language(folder: Path) -> Iterator[None]:
    """Render messages in the second language, in this process and in those it starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MESSAGES_VARIABLE, str(write_translation(folder / "translation.toml")))
        catalogue.cache_clear()
        try:
            yield
        finally:
            catalogue.cache_clear()
