"""The methods `closest`, `sparse` and `realistic`. All rows are searched together, so the number of calls is fixed."""

from fasterce.search.methods.closest import closest, known_rows, rows_at_once, sparse
from fasterce.search.methods.realistic import realistic

VARIANTS = {"closest": closest, "sparse": sparse, "realistic": realistic}

__all__ = ["VARIANTS", "closest", "known_rows", "realistic", "rows_at_once", "sparse"]
