"""Values as text for people: short numbers, printable text, and the summary of a batch in two lines."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from fasterce.data.meaning import formatted
from fasterce.data.schema import Feature
from fasterce.data.value_types import as_text
from fasterce.explanation import FOUND, Explanation

ARROW = "→"
MOST_PLACES = 15  # A float has no more decimal digits.
SCIENTIFIC_FROM = 1e15
LONGEST = 60
PREDICTED_DIGITS = 6


def is_missing(value: object) -> bool:
    """Return whether a value is a missing scalar."""
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def text(value: object) -> str:
    """Return a value on one line; escape codes and blank text are made visible, tuples are lists with commas."""
    if is_missing(value):
        return "missing"
    if isinstance(value, tuple):
        return ", ".join(text(part) for part in value)
    if isinstance(value, float) and value.is_integer() and abs(value) < SCIENTIFIC_FROM:
        value = int(value)
    written = "".join(_visible(character) for character in as_text(value))
    return written if written.strip() else f"'{written}'"


def cut(value: object) -> str:
    """Return a value as text of at most `LONGEST` characters, for a table or a plot."""
    written = text(value)
    return written if len(written) <= LONGEST else f"{written[: LONGEST - 1]}…"


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else character.encode("unicode_escape").decode()


def number(value: float, decimals: int, format: str = "") -> str:
    """Return a number by a format (`Feature.format`); by default with at most `decimals` places and separated thousands."""
    value = float(value)
    if not math.isfinite(value) or abs(value) >= SCIENTIFIC_FROM:
        return f"{value:.6g}"
    return formatted(value, format, decimals)


def measure(value: float, digits: int = 3) -> str:
    """Return a number with about `digits` significant digits."""
    if not math.isfinite(value) or value == 0:
        return number(value, 0)
    return number(value, min(MOST_PLACES, max(0, digits - 1 - math.floor(math.log10(abs(value))))))


def values(feature: Feature, before: Any, afters: Sequence[Any]) -> tuple[str, list[str]]:
    """Return a value and the values it changes to, with enough decimals to tell them apart."""
    if feature.is_time and feature.format:
        before, afters = _dated(feature, before), [_dated(feature, after) for after in afters]
    if not feature.numeric or feature.is_time:
        return cut(before), [cut(after) for after in afters]
    places, format = feature.decimals, feature.format
    while places < MOST_PLACES and _known(before, places, format) in {_known(after, places, format) for after in afters}:
        places, format = places + 1, ""
    return _known(before, places, format), [_known(after, places, format) for after in afters]


def _dated(feature: Feature, value: object) -> object:
    return value if is_missing(value) else feature.written(value)


def _known(value: float | None, places: int, format: str) -> str:
    return text(value) if value is None else number(value, places, format)


def predicted(value: float) -> str:
    """Return a number that a model predicts."""
    return measure(value, PREDICTED_DIGITS)


def bounds(low: float, high: float) -> str:
    """Return a target interval; open ends are left out."""
    if low == high:
        return f"exactly {predicted(low)}"
    if math.isinf(high):
        return f"at least {predicted(low)}"
    return f"at most {predicted(high)}" if math.isinf(low) else f"between {predicted(low)} and {predicted(high)}"


def percent(share: float) -> str:
    """Return a share in whole per cent; only 1 is 100 %, only 0 is 0 %."""
    whole = 100 if share >= 1 else 0 if share <= 0 else min(99, max(1, round(100 * share)))
    return f"{whole} %"


def change(before: str, after: str) -> str:
    """Return "before → after"."""
    return f"{before} {ARROW} {after}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as "2 rows"."""
    return f"{number(count, 0)} {noun}" + ("" if count == 1 else "s")


def summary_lines(explanation: Explanation) -> tuple[str, str]:
    """Return the summary of a batch: rows by status and model calls, and means per row."""
    summary = explanation.summary()
    statuses = sorted(explanation.in_pandas().status.value_counts().items(), key=lambda one: one[0] != FOUND)
    counts = ", ".join(f"{number(count, 0)} {status}" for status, count in statuses)
    means = [f"{number(summary['model_rows_each'], 1)} model rows", f"{measure(summary['ms_each'])} ms"]
    if not math.isnan(summary["features_changed"]):
        means.insert(0, f"{number(summary['features_changed'], 1)} features changed")
        means.insert(1, f"distance {measure(summary['distance'])}")
    outcome = counted(len(explanation), "row") + (f": {counts}" if counts else "")
    return f"{outcome} · {counted(summary['calls'], 'model call')}", "Per row: " + " · ".join(means)
