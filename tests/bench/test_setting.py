"""What is explained: regressions as a task with two classes."""

import numpy as np
import pandas as pd
from benchmarks.threshold import ThresholdClassifier


class Doubling:
    def predict(self, rows: pd.DataFrame) -> np.ndarray:
        return 2 * rows["x"].to_numpy()


def test_a_prediction_of_at_least_the_number_is_of_class_one() -> None:
    model = ThresholdClassifier(Doubling(), low=4.0, spread=1.0)
    rows = pd.DataFrame({"x": [0.0, 1.9, 2.0, 50.0]})
    assert model.predict(rows).tolist() == [0, 0, 1, 1]
    probabilities = model.predict_proba(rows)
    assert probabilities.argmax(axis=1).tolist() == [0, 0, 1, 1]
    assert np.all(np.diff(probabilities[:, 1]) > 0)
    assert np.allclose(probabilities.sum(axis=1), 1)
