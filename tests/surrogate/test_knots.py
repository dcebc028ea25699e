"""Where the copy's tables have entries: jumps of the model are found by asking, a straight model has none."""

import numpy as np
import pandas as pd

from fasterce import FasterCE
from fasterce.config import SurrogateConfig
from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.surrogate import knots
from fasterce.typing import Floats

DEFAULTS = SurrogateConfig()
POCKET = (4_650.0, 5_060.0)


def table(rows: int = 600) -> tuple[Codec, Floats]:
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(rows) < 0.9, 0.0, np.round(rng.uniform(0, 20_000, rows)))
    frame = pd.DataFrame({"gain": gain, "age": rng.integers(18, 80, rows), "job": rng.choice(list("abc"), rows)})
    schema = Schema.infer(frame)
    codes = Table.like(frame, schema).read(frame).codes
    return Codec(schema, Profile.measure(codes, schema)), codes


def pocket(codes: Floats) -> Floats:
    inside = (codes[:, 0] >= POCKET[0]) & (codes[:, 0] <= POCKET[1])
    return (np.where(inside, 2.0, -1.0) + 0.01 * codes[:, 1])[:, None]


def found(leads: knots.Leads, config: SurrogateConfig = DEFAULTS) -> list[Floats]:
    codec, codes = table()
    classes = (np.nan_to_num(leads(codes))[:, 0] > 0).astype(np.intp)
    return knots.find_bends(leads, codes, classes, codec, np.random.default_rng(0), config)


def test_both_sides_of_both_jumps_are_found_and_nothing_of_what_runs_straight() -> None:
    gain, age, job = found(pocket)
    inside = (gain >= POCKET[0]) & (gain <= POCKET[1])
    codec, _ = table()
    every = np.unique(np.concatenate([codec.profile.levels[0], codec.profile.spread[0]]))
    there = every[(every >= POCKET[0]) & (every <= POCKET[1])]
    beside = {every[every < POCKET[0]].max(), every[every > POCKET[1]].min()}
    known = set(knots.quantile_knots(codec)[0])
    assert {there.min(), there.max()} <= set(gain[inside]) | known
    assert beside <= set(gain) | known
    assert len(age) == 0
    assert len(job) == 0


def test_a_straight_model_has_no_bends() -> None:
    assert not any(len(some) for some in found(lambda codes: codes[:, :1] / 1e3 - 0.1 * codes[:, 1:2]))


def test_a_model_that_fails_has_no_bends() -> None:
    assert not any(len(some) for some in found(lambda codes: np.full((len(codes), 1), np.nan)))


def test_of_too_many_numbers_none_are_evaluated() -> None:
    usual = SurrogateConfig()
    config = SurrogateConfig(bend_model_rows=2 * usual.min_bend_queries * usual.min_bend_values - 1)
    codec, codes = table()

    def leads(codes: Floats) -> Floats:
        raise AssertionError("usage")

    classes = np.zeros(len(codes), dtype=np.intp)
    found = knots.find_bends(leads, codes, classes, codec, np.random.default_rng(0), config)
    assert not any(len(some) for some in found)


def test_the_sharpest_are_kept_where_there_are_too_many() -> None:
    def steps(codes: Floats) -> Floats:
        return (3.0 * (codes[:, 0] > 7_777) + 1.0 * (codes[:, 1] > 40.5))[:, None]

    gain, age, _ = found(steps, SurrogateConfig(total_bends=2))
    assert len(gain) == 2
    assert gain[0] <= 7_777 < gain[1]
    assert len(age) == 0


def test_values_are_moved_to_bends_of_their_own_feature_only() -> None:
    feature = np.repeat([0, 1], 5_000)
    value = np.full(len(feature), -1.0)
    moved = knots.at_bends([np.array([3.0, 4.0]), np.zeros(0)], feature, value, np.random.default_rng(0))
    assert set(moved[:5_000]) == {-1.0, 3.0, 4.0}
    assert (moved[5_000:] == -1.0).all()
    assert 0.05 < np.mean(moved[:5_000] != -1.0) < 0.15


def test_the_nearest_counterfactual_is_in_a_narrow_interval() -> None:
    """Trees make such pockets: a few values between two quantiles that flip, and then none for a long way."""
    rng = np.random.default_rng(1)
    gain = np.where(rng.random(3_000) < 0.9, 0, rng.integers(1, 20_000, 3_000))
    frame = pd.DataFrame({"gain": gain, "age": rng.integers(18, 80, 3_000)})

    class Pocket:
        classes_ = np.array([0, 1])

        def predict_proba(self, rows: pd.DataFrame) -> np.ndarray:
            money, age = rows["gain"].to_numpy(float), rows["age"].to_numpy(float)
            lead = np.where(((money >= 4_650) & (money <= 5_060)) | (money >= 15_000), 2.0, -2.0) + 0.01 * (age - 50)
            return np.stack([1 / (1 + np.exp(lead)), 1 / (1 + np.exp(-lead))], axis=1)

        def predict(self, rows: pd.DataFrame) -> np.ndarray:
            return self.predict_proba(rows).argmax(axis=1)

    explainer = FasterCE(Pocket(), random_state=0, progress=False).fit(frame)
    refused = frame[frame["gain"] == 0].head(20)
    counterfactuals = explainer.explain(refused, distance="gower").to_frame()
    assert (counterfactuals["gain"].between(4_650, 4_700)).all()
