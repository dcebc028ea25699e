"""A compiled twin of the user's model, for searching only: whatever a search finds is still asked of the model itself."""

from fasterce.twin.build import build
from fasterce.twin.compiled import Twin

__all__ = ["Twin", "build"]
