"""Audit records: one per explained row, as JSON with a published schema, reproducible bit for bit; see docs/records.md.

The modules are imported on first use: the HTTP front uses `pseudonyms` and imports no NumPy. The names are in `__init__.pyi`.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
