"""Files in, files out: CSV and Parquet of any length in flat memory, atomic files, resumable runs."""

from typing import TYPE_CHECKING

import lazy_loader as lazy

from fasterce.errors import MissingExtraError

if TYPE_CHECKING:
    from fasterce.io.lines import explain_chunk, schema
    from fasterce.io.run import run
    from fasterce.io.source import Chunk, Rows, frame_of, open_rows
    from fasterce.io.summary import Summary
    from fasterce.io.training import DATE_FORMATS, read_table
else:
    _attribute, __dir__, _ = lazy.attach(
        __name__,
        submod_attrs={
            "lines": ["explain_chunk", "schema"],
            "run": ["run"],
            "source": ["Chunk", "Rows", "frame_of", "open_rows"],
            "summary": ["Summary"],
            "training": ["DATE_FORMATS", "read_table"],
        },
    )

    def __getattr__(name: str) -> object:
        if name in __all__:
            try:
                import pyarrow  # noqa: F401, PLC0415
            except ImportError as error:
                raise MissingExtraError("pyarrow", "data", "Reading and writing files of rows") from error
        return _attribute(name)


__all__ = [
    "DATE_FORMATS",
    "Chunk",
    "Rows",
    "Summary",
    "explain_chunk",
    "frame_of",
    "open_rows",
    "read_table",
    "run",
    "schema",
]
