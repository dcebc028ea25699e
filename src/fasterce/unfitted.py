"""`NotFittedError`, apart from its kin in `fasterce.errors`, which hands it out: it alone needs scikit-learn imported."""

from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from fasterce.errors import FasterCEError


class NotFittedError(FasterCEError, SklearnNotFittedError):
    """The explainer was asked before `fit`."""

    __module__ = "fasterce.errors"
