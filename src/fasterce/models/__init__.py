"""Models behind one protocol: adapters by library, models behind HTTP, model files, and compiled models."""

from typing import TYPE_CHECKING

import lazy_loader as lazy

if TYPE_CHECKING:
    from fasterce.models.adapters import (
        CatBoostModel,
        CodecMatrix,
        FunctionModel,
        LightGBMModel,
        OnnxModel,
        PreparedModel,
        RenamedModel,
        TorchModel,
        XGBoostModel,
        adapt,
    )
    from fasterce.models.files.load import LoadedModel, load_model
    from fasterce.models.protocol import Model
else:
    __getattr__, __dir__, _ = lazy.attach(
        __name__,
        submodules={"adapters", "compiled", "files", "http", "predictor", "protocol"},
        submod_attrs={
            "adapters": [
                "CatBoostModel",
                "CodecMatrix",
                "FunctionModel",
                "LightGBMModel",
                "OnnxModel",
                "PreparedModel",
                "RenamedModel",
                "TorchModel",
                "XGBoostModel",
                "adapt",
            ],
            "files.load": ["LoadedModel", "load_model"],
            "protocol": ["Model"],
        },
    )

__all__ = [
    "CatBoostModel",
    "CodecMatrix",
    "FunctionModel",
    "LightGBMModel",
    "LoadedModel",
    "Model",
    "OnnxModel",
    "PreparedModel",
    "RenamedModel",
    "TorchModel",
    "XGBoostModel",
    "adapt",
    "load_model",
]
