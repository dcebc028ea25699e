"""Counterfactual explanations for tabular models: fast, true, within bounds."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fasterce import constraints, datasets
    from fasterce.artifact import load
    from fasterce.explainer import FasterCE
    from fasterce.explanation import Explanation
    from fasterce.schema import Feature, Schema
else:
    from fasterce.lazily import attributes

    # The front of `fasterce serve` and half the command line need no NumPy: what does is imported when it is first used.
    __getattr__, __dir__ = attributes(
        __name__,
        {
            "Explanation": "fasterce.explanation",
            "FasterCE": "fasterce.explainer",
            "Feature": "fasterce.schema",
            "Schema": "fasterce.schema",
            "load": "fasterce.artifact",
        },
    )

__all__ = ["Explanation", "FasterCE", "Feature", "Schema", "constraints", "datasets", "load"]
