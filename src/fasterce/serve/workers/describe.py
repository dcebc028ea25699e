"""Describe a loaded explainer for the HTTP side, the page and clients: `GET /v1/schema` as plain JSON."""

import math
from collections.abc import Hashable

import numpy as np

from fasterce.constraints import Frozen, Near, OnlyDown, OnlyUp
from fasterce.data.schema import Feature, plain_target
from fasterce.explainer import FasterCE
from fasterce.options import defaults
from fasterce.records import Wording, configuration
from fasterce.records.cells import cell
from fasterce.records.create import digests
from fasterce.serve.messages import Json

# Rows the model is evaluated for to find the range of its numbers.
MAX_EVALUATED = 200
# Training rows explained to compare efforts with, seconds they may take, and how many quantiles of their distances are kept.
COMPARED_ROWS, COMPARED_SECONDS, QUANTILES = 20, 1.0, 21
FEWEST_COMPARED = 10


def schema_body(
    explainer: FasterCE, name: str, title: str, model_digest: str | None, wording: Wording, efforts: bool = True
) -> dict[str, Json]:
    """Return the body of `GET /v1/schema`, without the limits of the service; `efforts` of others take long to find."""
    schema = explainer.schema_
    typical = _typical(explainer)
    directions = _directions(explainer)
    wording = wording.with_schema(schema)
    return {
        "artifact": name,
        "title": title,
        "features": [
            _feature(explainer, j, feature, wording, typical[j], directions.get(feature.name, ""))
            for j, feature in enumerate(schema.features)
        ],
        "passthrough": [{"name": str(one.name), "required": one.read} for one in explainer.state_.table.passthrough],
        "constraints": [constraint["text"] for constraint in configuration.constraints(defaults(), schema)],
        "target": _target(explainer) | _declared(explainer, wording),
        "efforts": _efforts(explainer) if efforts else None,
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
        "unit": wording.units.get(str(feature.name), ""),
        "format": feature.format if feature.is_time else wording.formats.get(str(feature.name), ""),
        "help": feature.help,
        "preferred": feature.preferred,
        "near": _near(explainer, feature),
    }


def _near(explainer: FasterCE, feature: Feature) -> dict[str, float]:
    """Return how far the schema lets a number move from its value, by direction."""
    found: dict[str, float] = {}
    for constraint in explainer.schema_.constraints:
        if isinstance(constraint, Near) and constraint.feature == feature.name:
            for way in ("up", "down", "percent"):
                given = [
                    end for end in (getattr(constraint, way), constraint.by if way != "percent" else None) if end is not None
                ]
                if given:
                    found[way] = float(min([*given, found.get(way, math.inf)]))
    return found


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


def _declared(explainer: FasterCE, wording: Wording) -> dict[str, Json]:
    """Return which outcomes the schema declares as wanted and unwanted, and the words for them."""
    schema, numbers = explainer.schema_, explainer.state_.numbers is not None
    classes = () if numbers else explainer.classes_
    wanted = explainer.declared_target
    words = {str(label): wording.label(label) for label in classes if str(label) in wording.classes}
    unwanted = [cell(label) for label in classes if str(label) in map(str, schema.unwanted)]
    return {"wanted": plain_target(wanted), "unwanted": unwanted, "labels": words}


def _efforts(explainer: FasterCE) -> list[float] | None:
    """Return quantiles of the distances of counterfactuals of training rows, for comparison; None if there are too few.

    Only with a compiled model, which takes milliseconds: a model that is slow would delay the start.
    """
    state = explainer.state_
    if state.compiled is None or state.numbers is not None or not len(state.search.examples):
        return None
    wanted = explainer.declared_target
    codes, labels = state.search.examples, state.search.example_classes
    away = np.flatnonzero([explainer.classes_[label] != wanted for label in labels])[:COMPARED_ROWS]
    rows, target = state.table.frame(codes[away]), "any other" if wanted is None else wanted
    # The first call pays for what is done only once, such as loading compiled code: it does not count.
    explainer.explain(rows.head(1), "all", target=target, diagnose=False)
    distances = explainer.explain(rows, "all", target=target, diagnose=False, deadline=COMPARED_SECONDS).arrays.distance
    if len(distances) < FEWEST_COMPARED:
        return None
    return [round(float(end), 6) for end in np.quantile(distances, np.linspace(0, 1, QUANTILES))]


def _target(explainer: FasterCE) -> dict[str, Json]:
    if explainer.state_.numbers is None:
        return {"kind": "classes", "classes": [cell(label) for label in explainer.classes_]}
    examples = explainer.state_.search.examples[:MAX_EVALUATED]
    predictor = explainer._predictor()
    values = predictor.verify(predictor.table.frame(examples), raw=True).values
    sound = np.zeros(0) if values is None else values[np.isfinite(values)]
    ends = (float(sound.min()), float(sound.max())) if sound.size else (None, None)
    return {"kind": "number", "low": ends[0], "high": ends[1]}
