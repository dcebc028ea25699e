"""What the page is shown with: German Credit with a logistic regression, and a bank that answers numbers."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fasterce import FasterCE, datasets
from fasterce.demo import preprocessing
from records.worlds import SAME, Limit, fitted, people
from serve.page.stub import Served

HOSTILE = "<img src=x onerror=document.title='taken'>"


def german() -> Served:
    data = datasets.load("german_credit")
    model = make_pipeline(preprocessing(), LogisticRegression(max_iter=1000)).fit(data.X, data.y)
    explainer = FasterCE(model, data.schema, random_state=0, autoencoder=SAME, progress=False).fit(data.X)
    refused = data.X[model.predict(data.X) == "bad"].head(60)
    refused.index = [f"A-{1000 + k}" for k in range(len(refused))]
    return Served(explainer, "German credit", refused, wanted="good")


def limit() -> Served:
    """A number is wanted here, and some names are not to be trusted."""
    frame = people(200).replace({"job": {"smith": HOSTILE}})
    explainer = fitted(_Limit(), frame, task="regression")
    shown = frame.head(20)
    shown.index = [HOSTILE, *(f"L-{k}" for k in range(1, 20))]
    ends = Limit().predict(frame)
    return Served(explainer, f"Credit limit {HOSTILE}", shown, (float(np.min(ends)), float(np.max(ends))))


class _Limit(Limit):
    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return super().predict(frame).round(2)
