"""A loaded explainer as the front, the page and clients see it: `GET /v1/schema` as plain JSON."""

import math
from typing import Any

import numpy as np

from fasterce.constraints import Frozen, OnlyDown, OnlyUp
from fasterce.explainer import FasterCE
from fasterce.options import DEFAULTS
from fasterce.records import Wording, configuration
from fasterce.records.cells import cell
from fasterce.records.making import digests
from fasterce.schema import Feature

MOST_ASKED = 200


def schema_body(explainer: FasterCE, name: str, title: str, model_digest: str | None, wording: Wording) -> dict[str, Any]:
    """The body of `GET /v1/schema`, without the service's limits."""
    schema = explainer.schema_
    typical = _typical(explainer)
    ways = _ways(explainer)
    return {
        "artifact": name,
        "title": title,
        "features": [
            _feature(explainer, j, feature, wording, typical[j], ways.get(feature.name, ""))
            for j, feature in enumerate(schema.features)
        ],
        "rules": [rule["text"] for rule in configuration.constraints(DEFAULTS, schema)],
        "target": _target(explainer),
        "scores": bool(explainer.use_scores_ and explainer._predictor().has_chances),
        "digests": digests(explainer, model_digest),
    }


def _feature(explainer: FasterCE, j: int, feature: Feature, wording: Wording, typical: Any, way: str) -> dict[str, Any]:
    profile = explainer.knowledge_.codec.profile
    low = feature.lower if math.isfinite(feature.lower) else float(profile.low[j])
    high = feature.upper if math.isfinite(feature.upper) else float(profile.high[j])
    fixed = "" if feature.mutable else "never"
    return {
        "name": str(feature.name),
        "label": wording.feature(feature.name),
        "kind": feature.kind,
        "whole": feature.integer,
        "decimals": feature.decimals if feature.numeric else None,
        "low": low if feature.numeric else None,
        "high": high if feature.numeric else None,
        "promised": feature.declared,
        "categories": [cell(category) for category in feature.categories] if not feature.numeric else None,
        "ordered": feature.ordered,
        "change": fixed or way or feature.direction,
        "missing": feature.gappy,
        "typical": cell(typical),
    }


def _ways(explainer: FasterCE) -> dict[Any, str]:
    """What the schema's rules say of the way single features may go."""
    found: dict[Any, str] = {}
    for kind, way in ((OnlyUp, "up"), (OnlyDown, "down"), (Frozen, "never")):
        for rule in explainer.schema_.rules:
            if isinstance(rule, kind):
                both = way != "never" and any(found.get(name, way) != way for name in rule.features)
                found |= dict.fromkeys(rule.features, "never" if both else way)
    return found


def _typical(explainer: FasterCE) -> list[Any]:
    """The median of numbers, the most frequent of categories, as values of the column."""
    schema, profile = explainer.schema_, explainer.knowledge_.codec.profile
    found, start = [], 0
    for j, feature in enumerate(schema.features):
        if feature.numeric:
            code = float(np.clip(np.round(profile.median[j], feature.decimals), profile.low[j], profile.high[j]))
        else:
            shares = profile.frequency[start : start + len(feature.categories)]
            code, start = float(np.argmax(shares)), start + feature.states
        found.append(explainer.table_.value(j, code))
    return found


def _target(explainer: FasterCE) -> dict[str, Any]:
    if explainer.numbers_ is None:
        return {"kind": "classes", "classes": [cell(label) for label in explainer.classes_]}
    examples = explainer.knowledge_.examples[:MOST_ASKED]
    predictor = explainer._predictor()
    values = predictor.last_word(predictor.table.frame(examples), raw=True).values
    sound = np.zeros(0) if values is None else values[np.isfinite(values)]
    ends = (float(sound.min()), float(sound.max())) if sound.size else (None, None)
    return {"kind": "number", "low": ends[0], "high": ends[1]}
