"""Constraints that every counterfactual satisfies; see docs/constraints.md. The names are in `__init__.pyi`."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
