"""Counterfactual explanations for tabular models: fast, true, within bounds."""

from fasterce import datasets
from fasterce.explainer import FasterCE
from fasterce.schema import Feature, Schema

__all__ = ["FasterCE", "Feature", "Schema", "datasets"]
