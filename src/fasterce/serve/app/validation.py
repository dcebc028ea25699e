"""pydantic's findings in our shape: where, and a sentence without what was sent."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from fasterce.serve.app.problems import Problem
from fasterce.serve.app.rows import MOST_FIELDS, said

MOST_LOOKED_AT = 100
WORDS = {"string_pattern_mismatch": "Expected a text without control characters"}
EXPECTED = "Input should be "
NOT_JSON = "json_invalid"
# Where a value may be of several kinds, pydantic names the kinds tried; a reader looks for the place.
KINDS = ("bool", "int", "float", "str", "constrained-", "list[", "dict[", "literal[", "function-")


def problem(errors: Sequence[Mapping[str, Any]]) -> Problem:
    if any(error["type"] == NOT_JSON for error in errors):
        return Problem(400, "not_json", "The body is not JSON.")
    wrong = fields_of(errors)
    return Problem(422, "invalid_request", said(wrong, len(wrong)), wrong)


def fields_of(errors: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """One line a place, with all that would have been right there."""
    found: dict[str, list[str]] = {}
    for error in islice(errors, MOST_LOOKED_AT):
        said_there = found.setdefault(place(error["loc"]), [])
        message = WORDS.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ").rstrip(".")
        if message not in said_there:
            said_there.append(message)
    return [(where, together(messages)) for where, messages in list(found.items())[:MOST_FIELDS]]


def together(messages: Sequence[str]) -> str:
    """Of a value that may be of several kinds pydantic says of each kind why it is not one."""
    nearer = [message for message in messages if not message.startswith(EXPECTED)]
    if nearer or len(messages) == 1:
        return f"{[*nearer, *messages][0]}."
    kinds = [message.removeprefix(EXPECTED) for message in messages]
    return f"{EXPECTED}{', '.join(kinds[:-1])} or {kinds[-1]}."


def place(parts: Sequence[Any]) -> str:
    """rows[0].duration of ("body", "rows", 0, "duration", "int")."""
    text = ""
    for part in parts[1:] if parts and parts[0] in ("body", "query", "path", "header") else parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif not str(part).startswith(KINDS):
            text += f".{part}" if text else str(part)
    return text or "body"
