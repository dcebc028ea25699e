"""Models behind one protocol: adapters by library, models behind HTTP, model files, and compiled models.

The names are in `__init__.pyi`.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
