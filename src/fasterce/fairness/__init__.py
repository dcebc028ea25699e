"""Fairness: protected attributes in the latent space, and the cost of recourse by group.

angles(explainer, ["sex", "race"])        association with the prediction in the latent space, as in the paper
recourse_gap(explanation, "sex")          how often each group has a counterfactual, and what it costs
"""

from fasterce.fairness.normals import Angles, angles
from fasterce.fairness.recourse import RecourseGap, recourse_gap

__all__ = ["Angles", "RecourseGap", "angles", "recourse_gap"]
