"""Counterfactual explanations for tabular models: fast, true, within bounds."""

from fasterce import constraints, datasets
from fasterce.artifact import load
from fasterce.explainer import FasterCE
from fasterce.explanation import Explanation
from fasterce.schema import Feature, Schema

__all__ = ["Explanation", "FasterCE", "Feature", "Schema", "constraints", "datasets", "load"]
