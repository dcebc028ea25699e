"""An explanation as JSON."""

import json
from decimal import Decimal

import numpy as np

from fasterce.explanation import Explanation
from fasterce.typing import JsonObject
from fasterce.viz.formatting import is_missing


def to_json(explanation: Explanation, indent: int | None) -> str:
    """Return one object per row, in order; dates and other values that JSON does not know are text."""
    found = explanation.in_pandas()
    rows = [_row(found, position) for position in range(len(found))]
    content = {"model": found.model, "constraints": list(found.constraints), "rows": rows}
    return json.dumps(content, indent=indent, ensure_ascii=False, default=str, allow_nan=False)


def _row(found: Explanation, position: int) -> JsonObject:
    return {
        "query": _plain(found.rows.index[position]),
        "status": found.status.iloc[position],
        "reason": found.reason.iloc[position],
        "prediction": _plain(found.prediction.iloc[position]),
        "target": _plain(found.target.iloc[position]),
        "row": {str(name): _plain(value) for name, value in found.rows.iloc[position].items()},
        "counterfactuals": [_counterfactual(found, k) for k in found.of_row(position)],
    }


def _counterfactual(found: Explanation, k: int) -> JsonObject:
    changes = [{"feature": str(one.feature), "from": _plain(one.before), "to": _plain(one.after)} for one in found.changes(k)]
    about = {
        "method": str(found.arrays.method[k]),
        "changes": changes,
        "distance": float(found.arrays.distance[k]),
        "new_prediction": _plain(found.new_prediction[k]),
        "new_score": _plain(found.new_score[k]),
    }
    measured = ("nn_ratio", "robust", "ensemble_agreement")
    return about | {name: value for name in measured if (value := _plain(getattr(found.arrays, name)[k])) is not None}


def _plain(value: object) -> object:
    """Return a value as JSON holds it, null where it is missing or infinite; a tuple is a list."""
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    value = value.item() if isinstance(value, np.generic) else value
    if is_missing(value) or (isinstance(value, float) and not np.isfinite(value)):
        return None
    if isinstance(value, Decimal):
        return float(value)
    return value if isinstance(value, (str, int, float, bool)) else str(value)
