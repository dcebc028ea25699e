"""Files in, files out: CSV and Parquet of any length, explained chunk by chunk in flat memory; a killed run resumes."""

from fasterce.errors import MissingExtraError

try:
    import pyarrow  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise MissingExtraError("pyarrow", "data", "Reading and writing files of rows") from error

from fasterce.streams.lines import explain_chunk, schema
from fasterce.streams.running import run
from fasterce.streams.source import Chunk, Rows, frame_of, open_rows
from fasterce.streams.summary import Summary
from fasterce.streams.training import read_table

__all__ = ["Chunk", "Rows", "Summary", "explain_chunk", "frame_of", "open_rows", "read_table", "run", "schema"]
