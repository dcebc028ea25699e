"""Fixtures shared with the search."""

from tests.search.conftest import toys

__all__ = ["toys"]
