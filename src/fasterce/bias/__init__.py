"""A bias reading: what the latent space says of protected attributes, and what recourse costs each group of people.

angles(explainer, ["sex", "race"])        the paper's reading: association in the latent space, with its caution
recourse_gap(explanation, "sex")          measured directly: who gets an answer, and what it costs
"""

from fasterce.bias.normals import Angles, angles
from fasterce.bias.recourse import RecourseGap, recourse_gap

__all__ = ["Angles", "RecourseGap", "angles", "recourse_gap"]
