"""What is typed after an option, as `explain` takes it: columns, ranges, classes."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from fasterce.errors import InputError, SchemaError, shorten, unknown_name
from fasterce.schema import Feature, Schema

OPEN = ":"


def columns(schema: Schema, typed: Sequence[str], option: str) -> list[Hashable]:
    """Columns named once each or several with commas between them."""
    return names_of(schema.names, typed, option)


def names_of(every: Iterable[Hashable], typed: Sequence[str], option: str) -> list[Hashable]:
    """The same among any names."""
    known = {str(name): name for name in every}
    found: list[Hashable] = []
    for text in typed:
        for name in [text] if text in known else [part.strip() for part in text.split(",")]:
            if name not in known:
                raise InputError(f"{option}: {unknown_name('column', name, known)}")
            found.append(known[name])
    return found


def ranges(schema: Schema, typed: Sequence[str]) -> dict[Hashable, Any]:
    """`hours=20:40`, `hours=20:` or `hours=:40` for a number; `housing=own,rent` for a category."""
    found: dict[Hashable, Any] = {}
    for text in typed:
        name, separator, values = text.partition("=")
        if not separator:
            raise InputError(f"--range must be COLUMN=LOW:HIGH or COLUMN=CATEGORY,CATEGORY; got {text!r}.")
        (column,) = columns(schema, [name], "--range")
        feature = schema[column]
        found[column] = _interval(feature, values) if feature.numeric else categories(feature, values)
    return found


def _interval(feature: Feature, text: str) -> tuple[float, float]:
    low, high = interval(text, f"--range {feature.name}")
    return feature.lower if low is None else low, feature.upper if high is None else high


def interval(text: str, option: str) -> tuple[float | None, float | None]:
    """`low:high`, either end open."""
    low, separator, high = text.partition(OPEN)
    try:
        ends = tuple(float(end) if end.strip() else None for end in (low, high))
    except ValueError:
        separator = ""
    if not separator or ends == (None, None):
        raise InputError(f"{option} must be LOW:HIGH in numbers, an open end left out; got {text!r}.")
    return ends[0], ends[1]


def categories(feature: Feature, text: str) -> list[Any]:
    """Categories by the way they are written."""
    known = {str(category): category for category in feature.categories}
    known |= {written.lower(): category for written, category in known.items() if isinstance(category, bool)}
    names = [text] if text in known else [part.strip() for part in text.split(",")]
    for name in names:
        if name not in known:
            raise SchemaError(f"--range {feature.name}: {unknown_name('category', name, known)}")
    return [known[name] for name in names]


def target(classes: Sequence[Any], text: str | None, regression: bool) -> Any:
    """The wanted class by the way it is written, or for a model that answers numbers LOW:HIGH."""
    if text is None:
        return None
    if regression:
        return interval(text, "--target")
    known = {str(label): label for label in classes}
    if text in known:
        return known[text]
    if text == "any other":
        return text
    raise InputError(f"--target: {unknown_name('class', text, known)}")


def class_names(text: str | None) -> list[str] | None:
    """`refused,granted`: the names of classes 0, 1, …"""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if len(names) < 2 or len(set(names)) < len(names) or not all(names):
        raise InputError(f"--classes must be at least two different names with commas between them; got {shorten([text])}.")
    return names
