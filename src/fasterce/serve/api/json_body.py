"""Parse bodies as JSON more strictly than `json` does: a repeated name in an object, a lone surrogate or an overlong integer
could be read differently by a reader of the record."""

import json
from collections import Counter

from fasterce.serve.api.problems import HTTPProblem
from fasterce.serve.messages import Json

ESCAPE = "\\u"
MAX_DIGITS = 19


def parse(body: bytes) -> Json:
    """Return the value; raises HTTPProblem 400."""
    try:
        decoded = body.decode("utf-8-sig")
        found = json.loads(decoded, object_pairs_hook=unique_names, parse_int=integer)
        if ESCAPE in decoded:
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeError:
        raise _not_json("body_not_utf8") from None
    except RecursionError:
        raise _not_json("body_too_deep") from None
    except json.JSONDecodeError:
        raise _not_json("body_not_json") from None
    return found


def _not_json(code: str, received: object = None) -> HTTPProblem:
    return HTTPProblem(400, "not_json", f"serve.{code}", received=received)


def unique_names(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise _not_json("name_repeated", received=repeated)
    return found


def integer(digits: str) -> int | float:
    """Return an integer, or the nearest float if it has more than 64 bits."""
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)
