"""Explanations made by hand, as the tests of viz have them."""

from tests.viz.conftest import build

__all__ = ["build"]
