"""An explanation as a styled pandas table."""

from typing import Any

import numpy as np
import pandas as pd

from fasterce.explanation import Explanation

CHANGED = "background-color: #dbeafe; color: #0b4a8f; font-weight: 600"


def styled(explanation: Explanation) -> Any:
    """Return a `Styler` of `to_frame()` with changed cells marked and numbers to the precision of their feature."""
    found = explanation.in_pandas()
    frame = found.to_frame()
    own = [name for name in found.rows.columns if name in found.table.schema.names]
    places = found.table.schema.positions(own)
    marks = np.where(found.arrays.changed[:, places], CHANGED, "")
    features = {name: found.table.schema[name] for name in own}
    numbers = {
        name: feature.decimals for name, feature in features.items() if feature.value_type == "number" and feature.numeric
    }
    written: dict[object, object] = {name: f"{{:.{max(places, 0)}f}}" for name, places in numbers.items()}
    written |= {name: "{:.3g}" for name in ("distance", "nn_ratio") if name in frame.columns}
    written |= {name: "{:.4g}" for name in ("new_score",) if name in frame.columns}
    marked = pd.DataFrame(marks, index=frame.index, columns=pd.Index(own, tupleize_cols=False))
    written |= {name: lambda names: ", ".join(map(str, names)) for name in ("changed", "against") if name in frame}
    style = frame.style.format(written, na_rep="missing")
    return style.apply(lambda _: marked, subset=own, axis=None).hide(axis="index")
