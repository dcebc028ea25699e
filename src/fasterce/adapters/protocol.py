"""The one small protocol behind which every model stands."""

from typing import Any, Protocol, runtime_checkable

import pandas as pd
from numpy.typing import NDArray


@runtime_checkable
class Model(Protocol):
    """Anything that answers one label, or one number, for every row of a DataFrame.

    More is used where it is there:

    - `classes_`: all labels the model can answer, a one-dimensional array.
    - `predict_proba(frame)`: an array (N, C) of chances in the order of `classes_`.
    - `decision_function(frame)`: an array (N, C), or (N,) for two classes, whose largest entry is the label's.
    - `answers_numbers`: True for a model that answers numbers (a regression).
    - `by_name`: True for a model that finds its columns by name, in any order (only `check_adapter` looks at it).

    A row's answer must not depend on its company, on the index or on the order of the rows, and the frame must be left as
    it is: `fasterce.testing.check_adapter` tries all of it.
    """

    def predict(self, frame: pd.DataFrame, /) -> NDArray[Any]: ...
