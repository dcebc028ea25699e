"""Errors of pydantic in our shape: the field, and a text that does not repeat what was sent."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from fasterce.serve.api.problems import text
from fasterce.serve.api.rows import MAX_FIELDS
from fasterce.serve.messages import Json

# Errors that are looked at: a body may have any number of them.
MAX_ERRORS = 100
# What was expected, by the type of pydantic's error.
EXPECTED_TYPES: Mapping[str, str] = {
    "bool_type": "boolean",
    "dict_type": "object",
    "float_type": "number",
    "int_from_float": "whole",
    "int_type": "whole",
    "list_type": "list",
    "none_required": "null",
    "string_type": "text",
}
# Where a value may be of several types, pydantic adds the type it tried to the location.
TYPES = ("bool", "int", "float", "str", "constrained-", "list[", "dict[", "literal[", "function-")


def fields_of(errors: Iterable[Mapping[str, Json]]) -> list[tuple[str, str]]:
    """Return one text per field, with everything that would have been valid there."""
    found: dict[str, list[Mapping[str, Json]]] = {}
    for error in islice(errors, MAX_ERRORS):
        found.setdefault(location(error["loc"]), []).append(error)
    return [(where, combined(of_field)) for where, of_field in list(found.items())[:MAX_FIELDS]]


def combined(errors: Sequence[Mapping[str, Json]]) -> str:
    """Return one text: of a value that may have several types, pydantic reports for each why it is not of it."""
    expected: dict[str, None] = {}
    for error in errors:
        if error["type"] == "literal_error":
            expected[str(error["ctx"]["expected"])] = None
        elif error["type"] in EXPECTED_TYPES:
            expected[text(f"type_{EXPECTED_TYPES[error['type']]}").rstrip(".")] = None
        elif error["type"] == "string_pattern_mismatch":
            return text("control_characters")
        else:
            return str(error.get("ctx", {}).get("error") or error["msg"]).rstrip(".") + "."
    *types, last = expected
    return text("not_of_types", types=", ".join(types), last=last) if types else text("not_of_type", type=last)


def location(parts: Sequence[str | int]) -> str:
    """Return rows[0].duration for ("body", "rows", 0, "duration", "int")."""
    path = ""
    for part in parts[1:] if parts and parts[0] in ("body", "query", "path", "header") else parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not str(part).startswith(TYPES):
            path += f".{part}" if path else str(part)
    return path or "body"
