"""What scikit-learn expects of a step: an explainer transforms every row into its best counterfactual."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from fasterce.errors import InputError, unknown_name
from fasterce.frames import as_kind

if TYPE_CHECKING:
    from fasterce.explanation import Explanation
    from fasterce.schema import Schema

Output = Literal["default", "pandas", "polars"]
OUTPUTS = ("default", "pandas", "polars")


class Transforming:
    """The idioms of a scikit-learn transformer, for `FasterCE`."""

    if TYPE_CHECKING:
        schema_: Schema
        explain: Callable[..., Explanation]

        def fit(self, X: Any, y: Any = None) -> Self: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def _check_fitted(self) -> None: ...

    def transform(self, X: Any, **options: Any) -> Any:
        """The best counterfactual of every row, missing values where there is none; `options` are those of `explain`.

        The table is of the kind that came in, unless `set_output` wants another.
        """
        found = self.explain(X, **options)
        wanted = self._output()
        return found.counterfactuals if wanted == "default" else as_kind(found.in_pandas().counterfactuals, wanted)

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """`fit`, then `transform` the same rows."""
        return self.fit(X, y).transform(X, **options)

    def set_output(self, *, transform: Output | None = None) -> Self:
        """What `transform` gives: "pandas", "polars", or "default", the kind of table that came in."""
        if transform is not None and transform not in OUTPUTS:
            raise InputError(unknown_name("kind of output", transform, OUTPUTS))
        if transform is not None:
            self._transform_output = transform
        return self

    def _output(self) -> Output:
        wanted = getattr(self, "_transform_output", None) or get_config()["transform_output"]
        return wanted if wanted in OUTPUTS else "default"

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The columns of `transform`: those of the training rows."""
        self._check_fitted()
        names = np.array([str(name) for name in self.schema_.names], dtype=object)
        if input_features is not None and list(input_features) != list(names):
            raise InputError("input_features must be the columns of the training rows, or None; got others.")
        return names

    @property
    def n_features_in_(self) -> int:
        """How many columns the training rows had."""
        return len(self._fitted_schema("n_features_in_"))

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Their names, where all of them are text."""
        names = self._fitted_schema("feature_names_in_").names
        if not all(isinstance(name, str) for name in names):
            raise AttributeError("feature_names_in_ is there only where all column names are text")
        return np.array(names, dtype=object)

    def _fitted_schema(self, name: str) -> "Schema":
        if "schema_" not in self.__dict__:
            raise AttributeError(f"{name} is there only after fit")
        return self.schema_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.transformer_tags = import_module("sklearn.utils").TransformerTags()
        for name in ("categorical", "string", "allow_nan"):
            setattr(tags.input_tags, name, True)
        return tags

    def __sklearn_clone__(self) -> Self:
        """The same settings, unfitted; the model stays the fitted one it is, since it is what is explained."""
        clone = type(self)(**self.get_params(deep=False))
        return clone.set_output(transform=getattr(self, "_transform_output", None))
