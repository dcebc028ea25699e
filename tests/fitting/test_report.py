"""The report of a fit: measures that mean what they say, and a form that can be saved and read."""

import json

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.fitting.report import FitReport, prediction_agreement, quality_by_feature
from fasterce.latent.hyperplanes import Hyperplanes
from fasterce.latent.runtime import Callables

SAME = Callables(lambda matrix: matrix, lambda latent: latent)


def people(rows: int = 100) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {"job": rng.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2]), "age": rng.integers(18, 80, rows), "fixed": 1.5}
    )


def coded(X: pd.DataFrame) -> tuple[Codec, np.ndarray]:
    schema = Schema.infer(X, immutable=list(X.columns))
    codes = Table.like(X, schema).read(X).codes
    codec = Codec(schema, Profile.measure(codes, schema))
    return codec, codec.encode(codes)


def planes(normals: np.ndarray, offsets: np.ndarray, classes: int) -> Hyperplanes:
    return Hyperplanes(normals, offsets, np.zeros(len(normals)), np.zeros(len(normals)), classes)


def exact(width: int) -> Hyperplanes:
    """Hyperplanes that read every column off a latent space that is the matrix itself."""
    offsets = np.array([0.0] * 2 + [-0.5] * (width - 2) + [0.0] * 2)
    return planes(np.vstack([np.eye(width), np.zeros((2, width))]), offsets, classes=2)


def report(features: pd.DataFrame) -> FitReport:
    return FitReport(features, 0.912, 0.6, 8, 0.751, 0.893, 25, 4, 5000, 3.25, 12, 34567, True)


def test_a_perfect_autoencoder_has_perfect_measures() -> None:
    codec, matrix = coded(people())
    features = quality_by_feature(codec, SAME, exact(codec.width), matrix)
    assert features.index.tolist() == ["job", "age", "fixed"]
    assert features.index.name == "feature"
    assert features["measure"].tolist() == ["accuracy", "R²", "R²"]
    assert features["reconstruction"].tolist() == [1.0, 1.0, 1.0]
    assert features["hyperplane"].tolist() == pytest.approx([1.0, 1.0, 1.0])
    assert features["base"].tolist() == [pytest.approx((people()["job"] == "a").mean()), 0.0, 0.0]


def test_an_autoencoder_that_knows_nothing_reaches_what_guessing_reaches() -> None:
    codec, matrix = coded(people())
    guess = matrix.mean(axis=0)
    blank = Callables(lambda rows: np.zeros((len(rows), 2)), lambda latent: np.repeat(guess[None], len(latent), axis=0))
    nothing = planes(np.zeros((codec.width + 2, 2)), np.append(guess - 0.5, [0, 0]) * [0, 0, 1, 1, 1, 1, 1], classes=2)
    features = quality_by_feature(codec, blank, nothing, matrix)
    assert features.loc["age", "reconstruction"] == pytest.approx(0.0, abs=1e-9)
    assert features.loc["job", "reconstruction"] == features.loc["job", "base"]
    assert features.loc["age", "hyperplane"] == pytest.approx(0.0, abs=1e-9)
    assert features.loc["fixed", "reconstruction"] == 1.0


def test_the_worst_category_counts_for_a_hyperplane() -> None:
    codec, matrix = coded(people())
    good = exact(codec.width)
    offsets = good.offsets.copy()
    offsets[4] = 1.0
    features = quality_by_feature(codec, SAME, planes(good.normals, offsets, 2), matrix)
    assert features.loc["job", "hyperplane"] == pytest.approx((people()["job"] == "c").mean())
    assert features.loc["job", "reconstruction"] == 1.0


def test_agreement_is_the_share_of_rows_where_the_highest_class_is_the_models() -> None:
    latent = np.array([[1.0], [2.0], [-1.0], [-2.0]])
    two = planes(np.array([[9.0], [-1.0], [1.0]]), np.zeros(3), classes=2)
    assert prediction_agreement(two, latent, np.array([1, 1, 0, 0])) == (1.0, 0.5)
    assert prediction_agreement(two, latent, np.array([1, 1, 1, 0])) == (0.75, 0.75)
    assert prediction_agreement(two, latent, np.array([0, 0, 1, 1])) == (0.0, 0.5)


@pytest.mark.parametrize("names", [["job", "age", "fixed"], [0, 1, 2]])
def test_a_report_is_the_same_after_json(names: list[object]) -> None:
    codec, matrix = coded(people().set_axis(names, axis=1))
    before = report(quality_by_feature(codec, SAME, exact(codec.width), matrix))
    after = FitReport.from_dict(json.loads(json.dumps(before.to_dict(), allow_nan=False)))
    assert_frame_equal(after.features, before.features)
    assert {**after.__dict__, "features": None} == {**before.__dict__, "features": None}


def test_a_report_reads_as_text() -> None:
    codec, matrix = coded(people())
    text = str(report(quality_by_feature(codec, SAME, exact(codec.width), matrix)))
    assert "job" in text
    assert "accuracy" in text
    assert "agrees with the model on 91.2% of training rows (most frequent class: 60.0%); the search uses scores" in text
    assert "8 latent regions: right on 89.3%, one hyperplane for all on 75.1% of held-out points (classes balanced)" in text
    assert "4 latent dimensions, 25 epochs; 5000 latent samples; 12 calls, 34567 model rows; 3.2 s" in text
