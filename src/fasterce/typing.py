"""Array aliases and literals that many modules share."""

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Objects = NDArray[Any]

# A value that JSON can hold; checked where it is read, not by the type checker.
Json = Any
JsonObject = dict[str, Any]

Method = Literal["closest", "sparse", "realistic", "all"]
# A category of a column, or a value a constraint compares with.
Category = str | int | float | bool
TableKind = Literal["pandas", "polars", "pyarrow"]
TABLE_KINDS: tuple[TableKind, ...] = get_args(TableKind)
