"""pydantic's findings in our shape: where, and a sentence without what was sent."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fasterce.serve.app.problems import Problem
from fasterce.serve.app.rows import said

NOT_JSON = "json_invalid"
MOST_FIELDS = 20
# Where a value may be of several kinds, pydantic names the kinds tried; a reader looks for the place.
KINDS = ("bool", "int", "float", "str", "constrained-", "list[", "dict[", "literal[", "function-")


def problem(errors: Sequence[Mapping[str, Any]]) -> Problem:
    if any(error["type"] == NOT_JSON for error in errors):
        return Problem(400, "not_json", "The body is not JSON.")
    wrong = fields_of(errors)
    return Problem(422, "invalid_request", said(wrong), wrong)


def fields_of(errors: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """One line a place, the first thing said of it."""
    found: dict[str, str] = {}
    for error in errors:
        found.setdefault(place(error["loc"]), f"{str(error['msg']).removeprefix('Value error, ').rstrip('.')}.")
    return list(found.items())[:MOST_FIELDS]


def place(parts: Sequence[Any]) -> str:
    """rows[0].duration of ("body", "rows", 0, "duration", "int")."""
    text = ""
    for part in parts[1:] if parts and parts[0] in ("body", "query", "path", "header") else parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif not str(part).startswith(KINDS):
            text += f".{part}" if text else str(part)
    return text or "body"
