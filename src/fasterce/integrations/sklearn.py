"""The scikit-learn transformer interface: an explainer transforms each row into its best counterfactual."""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn import get_config

from fasterce.data.frames import as_kind
from fasterce.errors import InputError, unknown
from fasterce.typing import Objects

if TYPE_CHECKING:
    from fasterce.data.schema import Schema
    from fasterce.explanation import Explanation

Output = Literal["default", "pandas", "polars"]
OUTPUTS = ("default", "pandas", "polars")


class Transforming:
    """Transformer methods of `FasterCE`."""

    if TYPE_CHECKING:
        explain: Callable[..., Explanation]

        @property
        def schema_(self) -> Schema: ...
        def fit(self, X: object, y: object = None) -> Self: ...
        def get_params(self, deep: bool = True) -> dict[str, object]: ...
        def _check_fitted(self) -> None: ...

    def transform(self, X: object, **options: object) -> Any:
        """Return the best counterfactual per row, missing values where there is none.

        Parameters
        ----------
        X : table
            Rows to explain.
        **options
            Options of `explain`.

        Returns
        -------
        table
            Of the same kind as `X`, or of the kind chosen by `set_output`.
        """
        found = self.explain(X, **options)
        wanted = self._output()
        return found.counterfactuals if wanted == "default" else as_kind(found.in_pandas().counterfactuals, wanted)

    def fit_transform(self, X: object, y: object = None, **options: object) -> Any:
        """Fit to rows, then transform the same rows.

        Parameters
        ----------
        X : table
            Training rows.
        y : ignored
        **options
            Options of `explain`.

        Returns
        -------
        table
            As `transform` returns it.
        """
        return self.fit(X, y).transform(X, **options)

    def set_output(self, *, transform: Output | None = None) -> Self:
        """Set the kind of table that `transform` returns.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            "default" returns the kind of the input. None changes nothing.

        Returns
        -------
        FasterCE
            This explainer.
        """
        if transform is not None and transform not in OUTPUTS:
            raise InputError(unknown("integrations.unknown_output", transform, OUTPUTS, option="transform"))
        if transform is not None:
            self._transform_output = transform
        return self

    def _output(self) -> Output:
        wanted = getattr(self, "_transform_output", None) or get_config()["transform_output"]
        return wanted if wanted in OUTPUTS else "default"

    def get_feature_names_out(self, input_features: Iterable[str] | None = None) -> Objects:
        """Return the columns of `transform`, which are those of the training rows.

        Parameters
        ----------
        input_features : sequence of str, optional
            Must equal the columns of the training rows.

        Returns
        -------
        ndarray of str
        """
        self._check_fitted()
        names = np.array([str(name) for name in self.schema_.names], dtype=object)
        if input_features is not None and list(input_features) != list(names):
            raise InputError("integrations.other_columns", option="input_features")
        return names

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the training rows."""
        return len(self._fitted_schema("n_features_in_"))

    @property
    def feature_names_in_(self) -> Objects:
        """Names of the columns, if all are text."""
        names = self._fitted_schema("feature_names_in_").names
        if not all(isinstance(name, str) for name in names):
            raise AttributeError("feature_names_in_ requires all column names to be text")
        return np.array(names, dtype=object)

    def _fitted_schema(self, name: str) -> "Schema":
        if "state_" not in self.__dict__:
            raise AttributeError(f"{name} is available after fit only")
        return self.schema_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.transformer_tags = import_module("sklearn.utils").TransformerTags()
        for name in ("categorical", "string", "allow_nan"):
            setattr(tags.input_tags, name, True)
        return tags

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted explainer with the same parameters; the model is not cloned, since it is what is explained."""
        clone = type(self)(**self.get_params(deep=False))
        return clone.set_output(transform=getattr(self, "_transform_output", None))
