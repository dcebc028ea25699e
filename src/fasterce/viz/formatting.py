"""Values as people read them: numbers without noise, text without surprises, a batch in two lines."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from fasterce.explanation import FOUND, Explanation
from fasterce.schema import Feature

ARROW = "→"
GROUP_FROM = 10_000
MOST_PLACES = 15
TOO_LONG_TO_WRITE_OUT = 1e15
LONGEST = 60
PREDICTED_DIGITS = 6
MEASURES = ("rows", "features_changed", "distance", "calls", "rows_asked_each", "ms_each")


def is_missing(value: Any) -> bool:
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def text(value: Any) -> str:
    """Any value on one line; what a terminal would obey or swallow (escape codes, empty text) is made visible."""
    if is_missing(value):
        return "missing"
    if isinstance(value, float) and value.is_integer() and abs(value) < TOO_LONG_TO_WRITE_OUT:
        value = int(value)
    written = "".join(_visible(character) for character in str(value))
    return written if written.strip() else f"'{written}'"


def cut(value: Any) -> str:
    """A category for a table or a plot: no longer than a line."""
    written = text(value)
    return written if len(written) <= LONGEST else f"{written[: LONGEST - 1]}…"


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else character.encode("unicode_escape").decode()


def number(value: float, decimals: int) -> str:
    """A number with at most `decimals` places, no trailing zeros, thousands apart from 10,000 on."""
    value = float(value)
    if not math.isfinite(value) or abs(value) >= TOO_LONG_TO_WRITE_OUT:
        return f"{value:.6g}"
    group = "," if abs(round(value, decimals)) >= GROUP_FROM else ""
    written = f"{value:{group}.{decimals}f}"
    if "." in written:
        written = written.rstrip("0").rstrip(".")
    return "0" if written == "-0" else written


def measure(value: float, digits: int = 3) -> str:
    """A measured number with about `digits` digits that matter."""
    if not math.isfinite(value) or value == 0:
        return number(value, 0)
    return number(value, min(MOST_PLACES, max(0, digits - 1 - math.floor(math.log10(abs(value))))))


def values(feature: Feature, before: Any, afters: Iterable[Any]) -> tuple[str, list[str]]:
    """A value and what it becomes, written precisely enough to be told apart."""
    afters = list(afters)
    if not feature.numeric:
        return cut(before), [cut(after) for after in afters]
    places = feature.decimals
    while places < MOST_PLACES and _known(before, places) in {_known(after, places) for after in afters}:
        places += 1
    return _known(before, places), [_known(after, places) for after in afters]


def _known(value: float | None, places: int) -> str:
    return text(value) if value is None else number(value, places)


def predicted(value: float) -> str:
    """A number a model predicts."""
    return measure(value, PREDICTED_DIGITS)


def bounds(low: float, high: float) -> str:
    """A wanted interval, its open ends left out."""
    if low == high:
        return f"exactly {predicted(low)}"
    if math.isinf(high):
        return f"at least {predicted(low)}"
    return f"at most {predicted(high)}" if math.isinf(low) else f"between {predicted(low)} and {predicted(high)}"


def percent(share: float) -> str:
    """A share in whole per cent; only all of it is 100 %, only none of it 0 %."""
    whole = 100 if share >= 1 else 0 if share <= 0 else min(99, max(1, round(100 * share)))
    return f"{whole} %"


def change(before: str, after: str) -> str:
    return f"{before} {ARROW} {after}"


def counted(count: int, noun: str) -> str:
    return f"{number(count, 0)} {noun}" + ("" if count == 1 else "s")


def summary_lines(explanation: Explanation) -> tuple[str, str]:
    """The batch in two lines: how it went, and the means per row."""
    summary = explanation.summary()
    means = [f"{number(summary['rows_asked_each'], 1)} rows asked", f"{measure(summary['ms_each'])} ms"]
    if not math.isnan(summary["features_changed"]):
        means.insert(0, f"{number(summary['features_changed'], 1)} features changed")
        means.insert(1, f"distance {measure(summary['distance'])}")
    calls = f"{counted(summary['calls'], 'call')} of the model"
    return f"{_outcome(summary)} · {calls}", "Per row: " + " · ".join(means)


def _outcome(summary: Mapping[str, Any]) -> str:
    counts = {word: count for word, count in summary.items() if word not in MEASURES}
    ordered = sorted(counts.items(), key=lambda item: item[0] != FOUND)
    told = ", ".join(f"{number(count, 0)} {word}" for word, count in ordered)
    return counted(summary["rows"], "row") + (f": {told}" if told else "")
