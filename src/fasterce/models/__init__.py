"""Models behind one protocol: adapters by library, models behind HTTP, model files, and compiled models."""

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
