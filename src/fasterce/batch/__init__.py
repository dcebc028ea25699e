"""Explain many files with many processes, on one machine or on Ray; see docs/batch.md."""

from typing import TYPE_CHECKING

import lazy_loader as lazy

if TYPE_CHECKING:
    from fasterce.batch.report import BatchReport
    from fasterce.batch.runner import BatchProgress, explain
else:
    __getattr__, __dir__, _ = lazy.attach(
        __name__, submod_attrs={"report": ["BatchReport"], "runner": ["BatchProgress", "explain"]}
    )

__all__ = ["BatchProgress", "BatchReport", "explain"]
