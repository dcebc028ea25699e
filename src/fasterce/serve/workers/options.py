"""Convert the options of `POST /v1/explain` to arguments of `FasterCE.explain`."""

import math
from collections.abc import Callable, Hashable, Mapping

from fasterce import options as declaration
from fasterce.constraints.io import from_dict
from fasterce.errors import FasterCEError, InputError, unknown
from fasterce.explainer import FasterCE
from fasterce.options import ExplainOptions, Kind, Option
from fasterce.serve.messages import InvalidRequest, Json

Columns = Mapping[str, Hashable]


def explain_arguments(explainer: FasterCE, options: Mapping[str, Json], cls: type = ExplainOptions) -> dict[str, Json]:
    """Return the arguments by their names in `explain`; an option that is null has its default."""
    offered = {str(one.http): one for one in declaration.offered("http", cls)}
    for name in options:
        if name not in offered:
            raise InvalidRequest(unknown("serve.unknown_option", name, offered), str(name)[:100])
    values = {}
    for field, option in offered.items():
        given = options.get(field)
        if given is not None:
            read = READERS.get(option.kind)
            values[option.name] = given if read is None else read(explainer, option, given)
    return declaration.explain_arguments(values)


def invalid_option(error: FasterCEError) -> InvalidRequest:
    """Return an error of `explain` about an option, with the field of the request it belongs to."""
    problem, names = error.problem, declaration.names("http")
    about_constraints = problem.option is None and problem.code.partition(".")[0] == "constraints"
    option = "constraints" if about_constraints else problem.option or ""
    return InvalidRequest(problem, names.get(option, ""))


def _target(explainer: FasterCE, option: Option, given: Json) -> Json:
    """Return a class, given by its value or its text, or the bounds of a predicted number."""
    if explainer.state_.numbers is not None:
        return _pair(explainer, option, given)
    if isinstance(given, (list, dict)):
        raise InvalidRequest("serve.target_not_a_class", str(option.http), option=option.name)
    if given in explainer.classes_ or not isinstance(given, str):
        return given
    return {str(label): label for label in explainer.classes_}.get(given, given)


def _pair(explainer: FasterCE, option: Option, given: Json) -> tuple[Json, ...]:
    if not isinstance(given, (list, tuple)) or len(given) != 2:
        raise InvalidRequest("serve.not_a_pair", str(option.http), option=option.name)
    return tuple(given)


def _columns(explainer: FasterCE, option: Option, given: Json) -> list[Hashable]:
    field = str(option.http)
    if not isinstance(given, (list, tuple)):
        raise InvalidRequest("serve.not_column_names", field, option=option.name, received=type(given).__name__)
    return [_column(explainer, f"{field}[{place}]", name) for place, name in enumerate(given)]


def _column(explainer: FasterCE, field: str, name: Json) -> Hashable:
    known = {str(column): column for column in explainer.schema_.names}
    if not isinstance(name, str) or name not in known:
        raise InvalidRequest(unknown("serve.unknown_column", name, known), field)
    return known[name]


def _ranges(explainer: FasterCE, option: Option, given: Json) -> dict[Hashable, Json] | None:
    field = str(option.http)
    if not isinstance(given, Mapping):
        raise InvalidRequest("serve.not_ranges", field, option=option.name, received=type(given).__name__)
    found: dict[Hashable, Json] = {}
    for text, values in given.items():
        column = _column(explainer, field, text)
        if not isinstance(values, (list, tuple)):
            raise InvalidRequest("serve.not_a_range", f"{field}.{text}")
        numeric = explainer.schema_[column].numeric
        found[column] = _bounds(f"{field}.{text}", values) if numeric else list(values)
    return found or None


def _bounds(field: str, values: Json) -> tuple[float, float]:
    numbers = all(end is None or (isinstance(end, (int, float)) and not isinstance(end, bool)) for end in values)
    if len(values) != 2 or not numbers:
        raise InvalidRequest("serve.not_a_range_of_numbers", field)
    low, high = values
    return (-math.inf if low is None else low, math.inf if high is None else high)


def _factors(explainer: FasterCE, option: Option, given: Json) -> Json:
    field = str(option.http)
    if isinstance(given, Mapping):
        return {_column(explainer, field, name): factor for name, factor in given.items()}
    if not isinstance(given, str):
        raise InvalidRequest("serve.not_a_distance", field, option=option.name)
    return given


def _constraints(explainer: FasterCE, option: Option, given: Json) -> Json:
    try:
        return from_dict(given)
    except InputError as error:
        raise InvalidRequest(error.problem, str(option.http)) from error


READERS: Mapping[Kind, Callable[[FasterCE, Option, Json], Json]] = {
    Kind.TARGET: _target,
    Kind.BOUNDS: _pair,
    Kind.COLUMNS: _columns,
    Kind.RANGES: _ranges,
    Kind.FACTORS: _factors,
    Kind.CONSTRAINTS: _constraints,
}
