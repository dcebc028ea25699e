"""Constraints between features, one row at a time: set the features that follow from others, and check the result.

A constraint that completes sets its target from the other features; one that drives is the only source of that feature's
value, the others correct only what is wrong. Formulas are programs in postfix form. A constraint is undefined, and so
satisfied, where a value it needs is missing; a feature that it alone sets then stays as it was.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from fasterce.kernels.arrays import Int64s
from fasterce.kernels.basics import copy_to, tidy
from fasterce.kernels.jit import compiled
from fasterce.typing import Floats, Indices, Mask

# Kinds of constraints: a feature computed from others, a comparison of formulas, a number that moves in proportion to a
# leader, a feature that moves in a leader's direction, a consequence of conditions.
DERIVED, COMPARISON, PROPORTION, DIRECTION, IMPLICATION = 0, 1, 2, 3, 4
# Operations of programs; their argument is a number, the position of a feature or a whole exponent.
NUMBER, FEATURE, WHOLE_POWER, ROOT, NEGATIVE, ABSOLUTE = 0, 1, 2, 3, 4, 5
ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER, MINIMUM, MAXIMUM = 6, 7, 8, 9, 10, 11, 12
# Comparisons.
AT_MOST, AT_LEAST, BELOW, ABOVE, EQUAL = 0, 1, 2, 3, 4
# Relative slack of comparisons, for floating point.
CLOSE = 1e-9
# Slack of the ends of a grid, in steps.
SLACK = 1e-9
# Passes over constraints that depend on each other before a candidate falls back to the base.
MOST_PASSES = 8


# One constraint. Positions of its parts in the arrays of `Links`: inputs, programs (both sides of a comparison, and the value
# of the target), ranks of categories (of the leader and of the target, none for numbers), conditions and consequence.
CONSTRAINT = np.dtype(
    [
        ("kind", np.int64),
        ("target", np.int64),  # the feature that is set or, by an implication, restricted; -1 for none
        ("completes", np.int64),  # whether the target is set
        ("drives", np.int64),  # whether this is the only source of the target's value
        ("function", np.int64),  # whether the value is computed by a Python function
        ("comparison", np.int64),
        ("tolerance", np.float64),  # of an equality
        ("slope", np.float64),  # change of the target per change of the leader; 1 or -1 for a direction
        ("input", np.int64, 2),
        ("program", np.int64, 4),
        ("rank", np.int64, 3),
        ("clause", np.int64, 2),
    ]
)
# One operation of a program.
STEP = np.dtype([("operation", np.int64), ("argument", np.float64)])
# A feature within a range, or one of the values at these positions in `Links.number`.
CLAUSE = np.dtype([("feature", np.int64), ("low", np.float64), ("high", np.float64), ("value", np.int64, 2)])
# What all queries have in common in a feature.
FEATURE_LIMITS = np.dtype(
    [
        ("scale", np.float64),  # ten to the power of the decimals of a number
        ("unit", np.float64),  # the smallest change of a number
        ("step", np.float64),  # distance of the values a number may take, 0 for its precision
        ("integer", np.int64),
        ("single", np.int64),
        ("missing", np.float64),  # code of a missing value, NaN where there is none
        ("may_appear", np.int64),  # whether it may become missing
        ("categories", np.int64),  # number of categories
        ("allowed", np.int64),  # position of its categories in `Limits.allowed`
        ("transitions", np.int64),  # position of its table in `Limits.transitions`, -1 for none
    ]
)


class Limits(NamedTuple):
    """What each feature of each query may be by itself, the arrays of a `Domain`."""

    row: Floats
    """The queries, as are all further arrays with one line per query (queries, features)."""
    base: Floats
    lower: Floats
    upper: Floats
    anchor: Floats
    """Start of the grid of each number with a step; empty without steps."""
    may_move: Mask
    base_legal: Mask
    row_legal: Mask
    feature: Any
    """Records `FEATURE_LIMITS` (features,)."""
    allowed: Mask
    """Categories open to all queries, those of one feature after another."""
    transitions: Mask
    """Whether a query that has one category may have another, the tables (C, C) one after another."""
    nullable: bool
    """Whether any value may be missing."""


class Links(NamedTuple):
    """The constraints between features, each after those that set its inputs, and the limits of each feature."""

    limits: Limits
    constraint: Any
    """Records `CONSTRAINT` (constraints,)."""
    input: Int64s
    step: Any
    """Records `STEP` of all programs."""
    clause: Any
    """Records `CLAUSE` of all implications; the last of a constraint is its consequence."""
    number: Floats
    """Ranks of categories, and values of clauses."""
    linked: Mask
    """Features that take part in a constraint (features,)."""
    leads: Mask
    """Features of constraints that set others: another feature may change with them (features,)."""
    settles: bool
    """Whether one pass is enough."""
    depth: int
    """Numbers that programs keep at a time."""


@compiled
def evaluate(links: Links, first: int, end: int, codes: Floats, stack: Floats) -> float:
    """Return the value of a program, the operations from first to end, for a row."""
    steps = links.step
    top = -1
    for k in range(first, end):
        operation, argument = steps[k]["operation"], steps[k]["argument"]
        if operation == NUMBER:
            top += 1
            stack[top] = argument
        elif operation == FEATURE:
            top += 1
            stack[top] = codes[int(argument)]
        elif operation == WHOLE_POWER:
            stack[top] = whole_power(stack[top], int(argument))
        elif operation == ROOT:
            stack[top] = np.sqrt(stack[top])
        elif operation == NEGATIVE:
            stack[top] = -stack[top]
        elif operation == ABSOLUTE:
            stack[top] = abs(stack[top])
        else:
            top -= 1
            stack[top] = combine(operation, stack[top], stack[top + 1])
    return stack[0]


@compiled
def whole_power(base: float, exponent: int) -> float:
    power = 1.0
    for _ in range(abs(exponent)):
        power = power * base
    return 1.0 / power if exponent < 0 else power


@compiled
def combine(operation: int, left: float, right: float) -> float:
    value = left + right
    if operation == SUBTRACT:
        value = left - right
    elif operation == MULTIPLY:
        value = left * right
    elif operation == DIVIDE:
        value = left / right
    elif operation == POWER:
        value = np.power(left, right)
    elif operation == MINIMUM:
        value = left if left <= right or math.isnan(left) else right
    elif operation == MAXIMUM:
        value = left if left >= right or math.isnan(left) else right
    return value


@compiled
def to_precision(limits: Limits, j: int, value: float) -> float:
    """Return a number as its column will hold it, without bounds."""
    feature = limits.feature[j]
    value = np.rint(value * feature["scale"]) / feature["scale"] + 0.0
    return float(np.float32(value)) if feature["single"] else value


@compiled
def to_limits(limits: Limits, q: int, j: int, value: float, lower: float, upper: float) -> float:
    """Return the nearest number that feature j may have by its precision or grid and between these bounds."""
    feature = limits.feature[j]
    if value == feature["missing"]:
        return value
    scale, slack = feature["scale"], 0.0 if feature["integer"] else SLACK
    low, high = np.ceil(lower * scale - slack) / scale, np.floor(upper * scale + slack) / scale
    rounded = np.rint(value * scale) / scale
    if low <= high:
        rounded = min(max(rounded, low), high)
    rounded = min(max(rounded, lower), upper)
    step = feature["step"]
    if step > 0.0:
        anchor = limits.anchor[q, j]
        low, high = np.ceil((lower - anchor) / step - SLACK), np.floor((upper - anchor) / step + SLACK)
        if low <= high:
            count = min(max(np.rint((value - anchor) / step), low), high)
            rounded = min(max(tidy(anchor + count * step) + 0.0, lower), upper)
    if feature["single"]:
        rounded = float(np.float32(rounded))
        if rounded > upper:
            rounded = float(np.nextafter(np.float32(rounded), np.float32(-np.inf)))
        if rounded < lower:
            rounded = float(np.nextafter(np.float32(rounded), np.float32(np.inf)))
    return rounded


@compiled
def category_open(limits: Limits, q: int, j: int, code: int) -> bool:
    """Return whether a query may have a category."""
    feature = limits.feature[j]
    if not limits.allowed[feature["allowed"] + code] or code < limits.lower[q, j] or code > limits.upper[q, j]:
        return False
    table = feature["transitions"]
    return table < 0 or limits.transitions[table + int(limits.row[q, j]) * feature["categories"] + code]


@compiled
def value_legal(limits: Limits, q: int, j: int, value: float) -> bool:
    """Return whether a query may have a value of feature j."""
    as_base = value == limits.base[q, j] and limits.base_legal[q, j]
    if as_base or (value == limits.row[q, j] and limits.row_legal[q, j]):
        return True
    if not limits.may_move[q, j]:
        return False
    feature = limits.feature[j]
    if value == feature["missing"]:
        return feature["may_appear"] != 0
    lower, upper = limits.lower[q, j], limits.upper[q, j]
    if not lower <= value <= upper or (feature["integer"] and value != np.rint(value)):
        return False
    if feature["categories"] > 0:
        return category_open(limits, q, j, int(value))
    return feature["step"] == 0.0 or value == to_limits(limits, q, j, value, lower, upper)


@compiled
def each_legal(links: Links, q: int, codes: Floats) -> bool:
    """Return whether a row satisfies the constraints on each feature by itself."""
    limits = links.limits
    legal = True
    for j in range(len(limits.feature)):
        legal = legal and value_legal(limits, q, j, codes[j])
    return legal


@compiled
def any_missing(links: Links, limits: Limits, one: Any, codes: Floats, target: bool) -> bool:
    """Return whether an input of a constraint is missing in a row, or, with `target`, what it is about."""
    features, inputs, j = limits.feature, links.input, one["target"]
    for k in range(one["input"][0], one["input"][1]):
        if codes[inputs[k]] == features[inputs[k]]["missing"]:
            return True
    return target and j >= 0 and codes[j] == features[j]["missing"]


@compiled
def inputs_kept(links: Links, limits: Limits, one: Any, q: int, codes: Floats) -> bool:
    """Return whether the inputs of a constraint are those of the query."""
    row, inputs = limits.row, links.input
    equal = True
    for k in range(one["input"][0], one["input"][1]):
        equal = equal and codes[inputs[k]] == row[q, inputs[k]]
    return equal


@compiled
def comparison_holds(links: Links, one: Any, codes: Floats, stack: Floats) -> bool:
    """Compare with a relative slack; < and > strictly, == to the tolerance."""
    program = one["program"]
    left = evaluate(links, program[0], program[1], codes, stack)
    right = evaluate(links, program[1], program[2], codes, stack)
    if not (np.isfinite(left) and np.isfinite(right)):
        return False
    slack, comparison = CLOSE * max(abs(left), abs(right)), one["comparison"]
    if comparison == AT_MOST:
        return left <= right + slack
    if comparison == AT_LEAST:
        return left >= right - slack
    if comparison == BELOW:
        return left < right
    if comparison == ABOVE:
        return left > right
    return abs(left - right) <= one["tolerance"] + slack


@compiled
def rank_of(links: Links, first: int, end: int, code: float) -> float:
    """Return the rank of a category, NaN for one without; a number is its own rank."""
    return code if first == end else links.number[first + int(code)]


@compiled
def sign_of(value: float) -> float:
    return 1.0 if value > 0.0 else -1.0 if value < 0.0 else value


@compiled
def leader_moved(links: Links, limits: Limits, one: Any, q: int, codes: Floats) -> float:
    """Return by how much the leader differs from the query's."""
    leader, rank = links.input[one["input"][0]], one["rank"]
    return rank_of(links, rank[0], rank[1], codes[leader]) - rank_of(links, rank[0], rank[1], limits.row[q, leader])


@compiled
def derived_value(links: Links, limits: Limits, one: Any, q: int, codes: Floats, computed: float, stack: Floats) -> float:
    if inputs_kept(links, limits, one, q, codes):
        return limits.row[q, one["target"]]
    if not one["function"]:
        computed = evaluate(links, one["program"][2], one["program"][3], codes, stack)
    return to_precision(limits, one["target"], computed)


@compiled
def solved_value(links: Links, limits: Limits, one: Any, q: int, codes: Floats, stack: Floats) -> float:
    """Return the value of the query where no input changed and it satisfies the equality, else the solution."""
    j = one["target"]
    if inputs_kept(links, limits, one, q, codes) and comparison_holds(links, one, limits.row[q], stack):
        return limits.row[q, j]
    value = to_precision(limits, j, evaluate(links, one["program"][2], one["program"][3], codes, stack))
    return value if np.isfinite(value) else limits.row[q, j]


@compiled
def proportional_value(links: Links, limits: Limits, one: Any, q: int, codes: Floats) -> float:
    j = one["target"]
    return to_precision(limits, j, limits.row[q, j] + one["slope"] * leader_moved(links, limits, one, q, codes))


@compiled
def unled_value(links: Links, limits: Limits, one: Any, q: int) -> float:
    """Return the value of the target where the leader is the query's: that of the base unless the leader moved there."""
    values = limits.base if inputs_kept(links, limits, one, q, limits.base[q]) else limits.row
    return values[q, one["target"]]


@compiled
def direction_kept(links: Links, limits: Limits, one: Any, q: int, value: float, direction: float) -> bool:
    """Return whether a value of the target differs from the query's in this direction."""
    first, end = one["rank"][1], one["rank"][2]
    own = rank_of(links, first, end, limits.row[q, one["target"]])
    return direction != 0.0 and sign_of(rank_of(links, first, end, value) - own) == direction


@compiled
def next_value(links: Links, limits: Limits, one: Any, q: int, direction: float) -> float:
    """Return the query's value of the target plus one unit or step, or the next open category."""
    j, first, end = one["target"], one["rank"][1], one["rank"][2]
    own = limits.row[q, j]
    if first == end:
        change = 0.0 if math.isnan(direction) else direction * limits.feature[j]["unit"]
        return to_limits(limits, q, j, own + change, limits.lower[q, j], limits.upper[q, j])
    found, nearest, rank = own, math.inf, rank_of(links, first, end, own)
    for code in range(end - first):
        ahead = (links.number[first + code] - rank) * direction
        if 0.0 < ahead < nearest and category_open(limits, q, j, code):
            found, nearest = float(code), ahead
    return found


@compiled
def clause_met(links: Links, c: int, codes: Floats) -> bool:
    clause, numbers = links.clause[c], links.number
    value = codes[clause["feature"]]
    for k in range(clause["value"][0], clause["value"][1]):
        if value == numbers[k]:
            return True
    return clause["low"] <= value <= clause["high"]


@compiled
def implication_holds(links: Links, one: Any, codes: Floats) -> bool:
    then = one["clause"][1] - 1
    for c in range(one["clause"][0], then):
        if not clause_met(links, c, codes):
            return True
    return clause_met(links, then, codes)


@compiled
def nearest_in_range(limits: Limits, clause: Any, q: int, value: float) -> float:
    """Return the nearest legal number within a clause, or the value itself if there is none."""
    j = clause["feature"]
    low, high = max(limits.lower[q, j], clause["low"]), min(limits.upper[q, j], clause["high"])
    if not low <= high:
        return value
    moved = to_limits(limits, q, j, value, low, high)
    return moved if clause["low"] <= moved <= clause["high"] else value


@compiled
def consequence(links: Links, limits: Limits, one: Any, q: int, value: float) -> float:
    """Return a legal value that meets the consequence: the nearest number, the category of the query if allowed, else the
    first listed; the value itself if there is none."""
    clause = links.clause[one["clause"][1] - 1]
    j, first, end = clause["feature"], clause["value"][0], clause["value"][1]
    if first == end:
        return nearest_in_range(limits, clause, q, value)
    found, least = value, math.inf
    for k in range(first, end):
        listed = links.number[k]
        if limits.feature[j]["categories"] > 0:
            legal = category_open(limits, q, j, int(listed))
            order = -1.0 if listed == limits.row[q, j] else float(k - first)
        else:
            legal = limits.lower[q, j] <= listed <= limits.upper[q, j]
            order = abs(listed - value)
        if legal and order < least:
            found, least = listed, order
    return found


@compiled
def value_undefined(links: Links, limits: Limits, one: Any, q: int, codes: Floats) -> bool:
    """Return whether an input is missing, or the query has none and no input changed."""
    if any_missing(links, limits, one, codes, False):
        return True
    if not any_missing(links, limits, one, limits.row[q], True):
        return False
    return one["kind"] > COMPARISON or inputs_kept(links, limits, one, q, codes)


@compiled
def direction_value(links: Links, limits: Limits, one: Any, q: int, codes: Floats) -> float:
    """Return the next value in the direction of the leader, or the target's own if that is right or there is none."""
    own = codes[one["target"]]
    direction = one["slope"] * sign_of(leader_moved(links, limits, one, q, codes))
    if direction_kept(links, limits, one, q, own, direction):
        return own
    moved = next_value(links, limits, one, q, direction)
    return moved if direction_kept(links, limits, one, q, moved, direction) else own


@compiled
def target_value(links: Links, limits: Limits, one: Any, q: int, codes: Floats, computed: float, stack: Floats) -> float:
    """Return what a constraint makes of its target; its own value if that may not move."""
    kind, j = one["kind"], one["target"]
    value = codes[j]
    if not limits.may_move[q, j]:
        return value
    if limits.nullable and value_undefined(links, limits, one, q, codes):
        return limits.base[q, j] if one["drives"] else value
    if kind == DERIVED:
        value = derived_value(links, limits, one, q, codes, computed, stack)
        value = value if np.isfinite(value) else limits.row[q, j]
    elif kind == COMPARISON:
        value = solved_value(links, limits, one, q, codes, stack)
    elif kind == IMPLICATION:
        if not implication_holds(links, one, codes):
            value = consequence(links, limits, one, q, value)
    elif kind == PROPORTION:
        value = proportional_value(links, limits, one, q, codes)
        if inputs_kept(links, limits, one, q, codes) or not np.isfinite(value):
            value = unled_value(links, limits, one, q)
    elif not inputs_kept(links, limits, one, q, codes):
        value = direction_value(links, limits, one, q, codes)
    return value


@compiled
def kept(links: Links, limits: Limits, one: Any, q: int, codes: Floats, computed: float, stack: Floats) -> bool:
    """Return whether a row without missing values satisfies a constraint."""
    kind, j = one["kind"], one["target"]
    if kind == DERIVED:
        return codes[j] == derived_value(links, limits, one, q, codes, computed, stack)
    if kind == COMPARISON:
        return comparison_holds(links, one, codes, stack)
    if kind == IMPLICATION:
        return implication_holds(links, one, codes)
    still = inputs_kept(links, limits, one, q, codes)
    if kind == PROPORTION:
        if still:
            return codes[j] == limits.row[q, j] or codes[j] == unled_value(links, limits, one, q)
        return codes[j] == proportional_value(links, limits, one, q, codes)
    direction = one["slope"] * sign_of(leader_moved(links, limits, one, q, codes))
    return still or direction_kept(links, limits, one, q, codes[j], direction)


@compiled
def satisfied(links: Links, limits: Limits, one: Any, q: int, codes: Floats, computed: float, stack: Floats) -> bool:
    """Return whether a row satisfies a constraint."""
    if kept(links, limits, one, q, codes, computed, stack):
        return True
    if not limits.nullable:
        return False
    undefined = any_missing(links, limits, one, codes, True)
    if one["kind"] in (PROPORTION, DIRECTION):
        undefined = undefined or any_missing(links, limits, one, limits.row[q], True)
    return undefined and (not one["drives"] or codes[one["target"]] == limits.base[q, one["target"]])


@compiled
def same(first: Floats, second: Floats) -> bool:
    equal = True
    for k in range(len(first)):
        equal = equal and first[k] == second[k]
    return equal


@compiled
def complete_once(links: Links, limits: Limits, q: int, codes: Floats, stack: Floats) -> None:
    """Set the target of one constraint after another."""
    constraints = links.constraint
    for d in range(len(constraints)):
        one = constraints[d]
        if one["completes"]:
            codes[one["target"]] = target_value(links, limits, one, q, codes, math.nan, stack)


@compiled
def settle(links: Links, limits: Limits, q: int, codes: Floats, stack: Floats, before: Floats) -> None:
    """Complete a row until nothing changes; one that does not settle goes back to the base."""
    complete_once(links, limits, q, codes, stack)
    for _ in range(MOST_PASSES):
        copy_to(before, codes)
        complete_once(links, limits, q, codes, stack)
        if same(before, codes):
            return
    copy_to(codes, limits.base[q])


@compiled
def complete_row(links: Links, q: int, codes: Floats) -> None:
    """Complete a row of query q in place; one that does not settle, because constraints depend on each other, goes back to
    the base."""
    if links.settles:
        complete_once(links, links.limits, q, codes, np.empty(links.depth))
    else:
        settle(links, links.limits, q, codes, np.empty(links.depth), np.empty(len(codes)))


@compiled
def links_hold(links: Links, q: int, codes: Floats) -> bool:
    """Return whether a row of query q satisfies all constraints between features."""
    constraints, limits, stack = links.constraint, links.limits, np.empty(links.depth)
    hold = True
    for d in range(len(constraints)):
        hold = hold and satisfied(links, limits, constraints[d], q, codes, math.nan, stack)
    return hold


@compiled
def complete_rows(links: Links, rows: Indices, codes: Floats) -> None:
    """Complete candidates (N, features) in place; `rows` (N,) are their queries."""
    limits, stack, before = links.limits, np.empty(links.depth), np.empty(codes.shape[1])
    for n in range(len(codes)):
        if links.settles:
            complete_once(links, limits, rows[n], codes[n], stack)
        else:
            settle(links, limits, rows[n], codes[n], stack, before)


@compiled
def set_targets(links: Links, d: int, rows: Indices, codes: Floats, computed: Floats) -> None:
    """Set the target of one constraint in candidates (N, features); `computed` (N,) are the values of its function."""
    limits, stack, one = links.limits, np.empty(links.depth), links.constraint[d]
    for n in range(len(codes)):
        if one["completes"]:
            codes[n, one["target"]] = target_value(links, limits, one, rows[n], codes[n], computed[n], stack)


@compiled
def check_rows(links: Links, d: int, rows: Indices, codes: Floats, computed: Floats, holds: Mask) -> None:
    """Clear `holds` (N,) where candidates (N, features) violate one constraint."""
    limits, stack, one = links.limits, np.empty(links.depth), links.constraint[d]
    for n in range(len(codes)):
        holds[n] = holds[n] and satisfied(links, limits, one, rows[n], codes[n], computed[n], stack)


_no_flags = np.zeros((0, 0), dtype=np.bool_)
NO_LIMITS = Limits(
    row=np.zeros((0, 0)),
    base=np.zeros((0, 0)),
    lower=np.zeros((0, 0)),
    upper=np.zeros((0, 0)),
    anchor=np.zeros((0, 0)),
    may_move=_no_flags,
    base_legal=_no_flags,
    row_legal=_no_flags,
    feature=np.zeros(0, dtype=FEATURE_LIMITS),
    allowed=np.zeros(0, dtype=np.bool_),
    transitions=np.zeros(0, dtype=np.bool_),
    nullable=False,
)
NO_LINKS = Links(
    limits=NO_LIMITS,
    constraint=np.zeros(0, dtype=CONSTRAINT),
    input=np.zeros(0, dtype=np.int64),
    step=np.zeros(0, dtype=STEP),
    clause=np.zeros(0, dtype=CLAUSE),
    number=np.zeros(0),
    linked=np.zeros(0, dtype=np.bool_),
    leads=np.zeros(0, dtype=np.bool_),
    settles=True,
    depth=1,
)
