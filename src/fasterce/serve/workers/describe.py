"""Describe a loaded explainer for the HTTP side, the page and clients: `GET /v1/schema` as plain JSON."""

import math
from collections.abc import Hashable

import numpy as np

from fasterce.constraints import Frozen, OnlyDown, OnlyUp
from fasterce.data.schema import Feature
from fasterce.explainer import FasterCE
from fasterce.options import defaults
from fasterce.records import Wording, configuration
from fasterce.records.cells import cell
from fasterce.records.create import digests
from fasterce.serve.messages import Json

# Rows the model is evaluated for to find the range of its numbers.
MAX_EVALUATED = 200


def schema_body(explainer: FasterCE, name: str, title: str, model_digest: str | None, wording: Wording) -> dict[str, Json]:
    """Return the body of `GET /v1/schema`, without the limits of the service."""
    schema = explainer.schema_
    typical = _typical(explainer)
    directions = _directions(explainer)
    return {
        "artifact": name,
        "title": title,
        "features": [
            _feature(explainer, j, feature, wording, typical[j], directions.get(feature.name, ""))
            for j, feature in enumerate(schema.features)
        ],
        "passthrough": [{"name": str(one.name), "required": one.read} for one in explainer.state_.table.passthrough],
        "constraints": [constraint["text"] for constraint in configuration.constraints(defaults(), schema)],
        "target": _target(explainer),
        "scores": bool(explainer.state_.use_scores and explainer._predictor().has_chances),
        "digests": digests(explainer, model_digest),
    }


def _feature(
    explainer: FasterCE, j: int, feature: Feature, wording: Wording, typical: Json, direction: str
) -> dict[str, Json]:
    profile = explainer.state_.search.codec.profile
    low = feature.lower if math.isfinite(feature.lower) else float(profile.low[j])
    high = feature.upper if math.isfinite(feature.upper) else float(profile.high[j])
    ends = [cell(feature.value(end)) for end in (low, high)] if feature.is_time else [low, high]
    fixed = "" if feature.mutable else "never"
    return {
        "name": str(feature.name),
        "label": wording.feature(feature.name),
        "kind": "time" if feature.is_time else feature.kind,
        "type": feature.value_type if feature.numeric else None,
        "whole": feature.integer,
        "decimals": feature.decimals if feature.numeric else None,
        "low": ends[0] if feature.numeric else None,
        "high": ends[1] if feature.numeric else None,
        "promised": feature.declared,
        "categories": [cell(category) for category in feature.categories] if not feature.numeric else None,
        "ordered": feature.ordered,
        "change": fixed or direction or feature.direction,
        "missing": feature.nullable,
        "typical": cell(typical),
    }


def _directions(explainer: FasterCE) -> dict[Hashable, str]:
    """Return the direction in which the schema's constraints let single features change."""
    found: dict[Hashable, str] = {}
    for kind, direction in ((OnlyUp, "up"), (OnlyDown, "down"), (Frozen, "never")):
        for constraint in explainer.schema_.constraints:
            if isinstance(constraint, kind):
                both = direction != "never" and any(found.get(name, direction) != direction for name in constraint.features)
                found |= dict.fromkeys(constraint.features, "never" if both else direction)
    return found


def _typical(explainer: FasterCE) -> list[Json]:
    """Return the median of numbers and the most frequent category, as values of the column."""
    schema, profile = explainer.schema_, explainer.state_.search.codec.profile
    found, start = [], 0
    for j, feature in enumerate(schema.features):
        if feature.numeric:
            code = float(np.clip(np.round(profile.median[j], feature.decimals), profile.low[j], profile.high[j]))
        else:
            shares = profile.frequency[start : start + len(feature.categories)]
            code, start = float(np.argmax(shares)), start + feature.n_codes
        found.append(explainer.state_.table.value(j, code))
    return found


def _target(explainer: FasterCE) -> dict[str, Json]:
    if explainer.state_.numbers is None:
        return {"kind": "classes", "classes": [cell(label) for label in explainer.classes_]}
    examples = explainer.state_.search.examples[:MAX_EVALUATED]
    predictor = explainer._predictor()
    values = predictor.verify(predictor.table.frame(examples), raw=True).values
    sound = np.zeros(0) if values is None else values[np.isfinite(values)]
    ends = (float(sound.min()), float(sound.max())) if sound.size else (None, None)
    return {"kind": "number", "low": ends[0], "high": ends[1]}
