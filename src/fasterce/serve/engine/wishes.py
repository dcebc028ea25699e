"""The options of `POST /v1/explain`, as JSON -> the options of `FasterCE.explain`."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from fasterce.constraints import Frozen
from fasterce.constraints.files import from_dict
from fasterce.errors import InputError, SchemaError, unknown_name
from fasterce.explainer import FasterCE
from fasterce.serve.question import Refused

PLAIN = ("method", "n", "override", "robust", "realism", "diversity", "budget", "why_not")
KNOWN = (*PLAIN, "target", "target_score", "freeze", "vary", "ranges", "rules", "distance")
TYPES = {"method": str, "override": bool, "why_not": bool}
WORDS = {str: "a text", bool: "true or false"}
# What `explain` calls some of them in its sentences.
ELSEWHERE = {"features_to_vary": "vary", "permitted_range": "ranges"}


def wishes(explainer: FasterCE, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by their names in `explain`; those that are null and have no null there are left to their defaults."""
    for name in options:
        if name not in KNOWN:
            raise Refused(unknown_name("option", name, KNOWN), str(name)[:100])
    for name, kind in TYPES.items():
        if not isinstance(options.get(name), (kind, type(None))):
            raise Refused(f"{name} must be {WORDS[kind]}; got {type(options[name]).__name__}.", name)
    known = {str(name): name for name in explainer.schema_.names}
    wanted: dict[str, Any] = {name: options[name] for name in PLAIN if options.get(name) is not None}
    wanted["target"] = _named("target", lambda: _target(explainer, options.get("target")))
    wanted["target_score"] = _pair("target_score", options.get("target_score"))
    wanted["features_to_vary"] = _columns("vary", options.get("vary"), known)
    wanted["permitted_range"] = _ranges(explainer, options.get("ranges"), known)
    wanted["distance"] = _distance(options.get("distance"), known)
    rules = _named("rules", lambda: from_dict(options.get("rules") or ()))
    frozen = _columns("freeze", options.get("freeze"), known)
    wanted["rules"] = [*rules, *([Frozen(*frozen)] if frozen else [])]
    return wanted


def refused(error: Exception) -> Refused:
    """A sentence of `explain` about an option, as the request names it."""
    sentence = str(error)
    if sentence.startswith(("The rule", "Rule")):
        return Refused(sentence, "rules")
    for theirs, ours in ELSEWHERE.items():
        sentence = sentence.replace(theirs, ours)
    words = sentence.split()
    first = words[1] if words[0] == "Unknown" else words[0]
    return Refused(sentence, first if first in KNOWN else "")


def _named(field: str, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (InputError, SchemaError) as error:
        raise Refused(str(error), field) from error


def _target(explainer: FasterCE, given: Any) -> Any:
    """A class by its value or by the way it is written; bounds for a model that answers numbers."""
    if explainer.numbers_ is not None:
        return _pair("target", given)
    if isinstance(given, (list, dict)):
        raise InputError("target must be one of the model's classes; got a list or an object.")
    if given is None or given in explainer.classes_:
        return given
    return {str(label): label for label in explainer.classes_}.get(given, given) if isinstance(given, str) else given


def _pair(field: str, given: Any) -> Any:
    if given is None:
        return None
    if not isinstance(given, (list, tuple)) or len(given) != 2:
        raise Refused(f"{field} must be [low, high], null for an open end.", field)
    return tuple(given)


def _columns(field: str, given: Any, known: Mapping[str, Any]) -> list[Any] | None:
    if given is None:
        return None
    if not isinstance(given, (list, tuple)):
        raise Refused(f"{field} must be a list of column names; got {type(given).__name__}.", field)
    return [_column(f"{field}[{place}]", name, known) for place, name in enumerate(given)]


def _column(field: str, name: Any, known: Mapping[str, Any]) -> Any:
    if not isinstance(name, str) or name not in known:
        raise Refused(unknown_name("column", name, known), field)
    return known[name]


def _ranges(explainer: FasterCE, given: Any, known: Mapping[str, Any]) -> dict[Any, Any] | None:
    if not given:
        return None
    if not isinstance(given, Mapping):
        raise Refused(f"ranges must be an object of columns and what they may be; got {type(given).__name__}.", "ranges")
    found = {}
    for text, values in given.items():
        column = _column("ranges", text, known)
        if not isinstance(values, (list, tuple)):
            raise Refused("A range must be [low, high], or a list of categories.", f"ranges.{text}")
        numeric = explainer.schema_[column].numeric
        found[column] = _ends(f"ranges.{text}", values) if numeric else list(values)
    return found


def _ends(field: str, values: Any) -> tuple[float, float]:
    numbers = all(end is None or (isinstance(end, (int, float)) and not isinstance(end, bool)) for end in values)
    if len(values) != 2 or not numbers:
        raise Refused("A range of numbers must be [low, high], null for an open end.", field)
    low, high = values
    return (-math.inf if low is None else low, math.inf if high is None else high)


def _distance(given: Any, known: Mapping[str, Any]) -> Any:
    if given is None:
        return "percentile"
    if isinstance(given, Mapping):
        return {_column("distance", name, known): factor for name, factor in given.items()}
    if not isinstance(given, str):
        raise Refused("distance must be the name of one, or an object of columns and factors.", "distance")
    return given
