"""Models behind HTTP (extra `http`): `MLflowModel` uses MLflow's scoring protocol, `InferenceModel` Open Inference V2."""

from fasterce.models.http.inference import InferenceModel
from fasterce.models.http.mlflow import MLflowModel

__all__ = ["InferenceModel", "MLflowModel"]
