"""What the caller calls far, as prices for every feature's change."""

from collections.abc import Mapping
from numbers import Real
from typing import Any, Literal

from fasterce.codec import Codec
from fasterce.errors import InputError, shorten, unknown_name
from fasterce.search.distance import Distance

Prices = Literal["percentile", "gower", "mad"] | Mapping[Any, float]

NAMES = ("percentile", "gower", "mad")


def choose(distance: Prices, codec: Codec) -> Distance:
    if isinstance(distance, Mapping):
        return _named("percentile", codec).times(_factors(distance, codec))
    if distance not in NAMES:
        raise InputError(unknown_name("distance", distance, NAMES))
    return _named(distance, codec)


def _named(distance: str, codec: Codec) -> Distance:
    return _priced(distance, codec).filling_with(codec.profile.median)


def _priced(distance: str, codec: Codec) -> Distance:
    if distance == "percentile":
        return Distance.percentile(codec)
    if distance == "gower":
        return Distance.gower(codec.profile.span, codec.numeric, codec.gappy)
    return Distance.mad(codec.profile.mad, codec.numeric, codec.gappy)


def _factors(distance: Mapping[Any, float], codec: Codec) -> dict[int, float]:
    names = list(codec.schema.names)
    factors: dict[int, float] = {}
    for name, factor in distance.items():
        if name not in names:
            raise InputError(f"distance must name columns of the table, such as {shorten(names, 3)}; got {name!r}.")
        if isinstance(factor, bool) or not isinstance(factor, Real) or not 0 < float(factor) < float("inf"):
            raise InputError(f"distance must give every column a factor above 0; got {factor!r} for {name!r}.")
        factors[names.index(name)] = float(factor)
    return factors
