"""The protocol every model follows."""

from typing import Protocol, runtime_checkable

import pandas as pd

from fasterce.typing import Objects


@runtime_checkable
class Model(Protocol):
    """Anything that predicts one label, or one number, for every row of a DataFrame.

    More is used if present:

    - `classes_`: all labels the model can predict, a one-dimensional array.
    - `predict_proba(frame)`: an array (N, C) of probabilities in the order of `classes_`.
    - `decision_function(frame)`: an array (N, C), or (N,) for two classes, whose largest entry is the label's.
    - `predicts_numbers`: True for a model that predicts numbers (a regression).
    - `by_name`: True for a model that finds its columns by name, in any order (only `check_adapter` uses it).

    The prediction for a row must not depend on the other rows, on the index or on the order of the rows, and the frame must
    not be changed: `fasterce.testing.check_adapter` checks all of it.
    """

    def predict(self, frame: pd.DataFrame, /) -> Objects:
        """Return one label or number per row.

        Parameters
        ----------
        frame : DataFrame

        Returns
        -------
        ndarray of shape (N,)
        """
        ...
