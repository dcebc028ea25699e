"""A body as JSON, read with more care than JSON asks for: a name twice in an object, half a character and a number too long
for any machine would mean one thing here and another where the record is read."""

import json
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

ESCAPE = "\\u"
LONGEST_WHOLE = 19


class CarefulRequest(Request):
    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = parsed(await self.body())
        return self._json


class CarefulRoute(APIRoute):
    """For routes that are sent a body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def careful(request: Request) -> Response:
            return await handler(CarefulRequest(request.scope, request.receive))

        return careful


def parsed(body: bytes) -> Any:
    """The value; JSONDecodeError or HTTPException 400 with a sentence."""
    try:
        text = body.decode("utf-8-sig")
        found = json.loads(text, object_pairs_hook=once_each, parse_int=whole)
        if ESCAPE in text:
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeError:
        raise HTTPException(400, "The body must be UTF-8, and no text in it half a character") from None
    except RecursionError:
        raise HTTPException(400, "The body is nested more deeply than can be read") from None
    return found


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise HTTPException(400, f"An object must have each name once; got {twice!r:.100} twice")
    return found


def whole(digits: str) -> int | float:
    """A whole number, or where it is longer than 64 bits the nearest that a floating one can be."""
    return int(digits) if len(digits) <= LONGEST_WHOLE else float(digits)
