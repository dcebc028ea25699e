"""A hundred million rows overnight: files cut into shards, explained by many processes here or on Ray, each shard whole or
not at all, and the same whoever does the work (docs/batch.md)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fasterce.batch.report import BatchReport
    from fasterce.batch.running import Standing, explain
else:
    from fasterce.lazily import attributes

    __getattr__, __dir__ = attributes(
        __name__,
        {
            "BatchReport": "fasterce.batch.report",
            "Standing": "fasterce.batch.running",
            "explain": "fasterce.batch.running",
        },
    )

__all__ = ["BatchReport", "Standing", "explain"]
