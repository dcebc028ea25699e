"""Files in, files out: CSV and Parquet of any length in flat memory, atomic files, resumable runs.

The modules are imported on first use; the names are in `__init__.pyi`.
"""

import lazy_loader as lazy

from fasterce.errors import import_extra

_attribute, __dir__, __all__ = lazy.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name in __all__:
        import_extra("pyarrow", "data", "Reading and writing files of rows")
    return _attribute(name)
