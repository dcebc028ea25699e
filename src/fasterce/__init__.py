"""Counterfactual explanations for tabular models: fast, verified by the model, within constraints."""

from typing import TYPE_CHECKING

import lazy_loader as lazy

if TYPE_CHECKING:
    from importlib.metadata import version

    from fasterce import constraints, datasets, fairness, io, models, viz
    from fasterce.artifact import load
    from fasterce.data.schema import Feature, Schema
    from fasterce.explainer import FasterCE
    from fasterce.explanation import Explanation
    from fasterce.options import PaperOptions

    __version__ = version("fasterce")
else:
    # The HTTP front and half of the command line need no NumPy: modules are imported on first use.
    _attribute, _dir, _ = lazy.attach(
        __name__,
        submodules={
            "constraints",
            "datasets",
            "errors",
            "fairness",
            "integrations",
            "io",
            "metrics",
            "models",
            "records",
            "viz",
        },
        submod_attrs={
            "artifact": ["load"],
            "data.schema": ["Feature", "Schema"],
            "explainer": ["FasterCE"],
            "explanation": ["Explanation"],
            "options": ["PaperOptions"],
        },
    )

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version  # noqa: PLC0415 - 10 ms that most imports do not need

            return version("fasterce")
        if name not in _dir():
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return _attribute(name)

    def __dir__() -> list[str]:
        return sorted({*_dir(), "__version__"})


__all__ = [
    "Explanation",
    "FasterCE",
    "Feature",
    "PaperOptions",
    "Schema",
    "__version__",
    "constraints",
    "datasets",
    "fairness",
    "io",
    "load",
    "models",
    "viz",
]
