"""Models behind HTTP (extra `http`): `MLflowModel` speaks MLflow's scoring protocol, `InferenceModel` Open Inference V2."""

from fasterce.adapters.http.inference import InferenceModel
from fasterce.adapters.http.mlflow import MLflowModel

__all__ = ["InferenceModel", "MLflowModel"]
