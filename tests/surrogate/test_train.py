"""Distilling: a known function is copied well, from scores and from labels, the same way every time."""

from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce.config import SurrogateConfig
from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import MISSING, Schema
from fasterce.data.table import Table
from fasterce.models.predictions import Predictions
from fasterce.surrogate import train
from fasterce.surrogate.runtime import Surrogate, lead_of
from fasterce.typing import Floats


def distilled(small: Any, kind: str, seed: int = 0) -> Surrogate:
    evaluate = small.predictions[kind]
    predictions = evaluate(small.codes)
    edited = train.edited_rows(small.codes, predictions.classes, small.codec, np.random.default_rng(seed))
    classes = 3 if kind == "three" else 2
    made = train.train_surrogate(
        np.concatenate([small.codes, edited]),
        Predictions.concatenate([predictions, evaluate(edited)]),
        small.codec,
        classes,
        seed,
    )
    assert made is not None
    return made


@pytest.fixture(scope="module", params=["scores", "labels", "three"])
def copied(small: Any, request: pytest.FixtureRequest) -> tuple[str, Surrogate]:
    return request.param, distilled(small, request.param)


def test_the_copy_agrees_on_rows_nobody_showed_it(small: Any, copied: tuple[str, Surrogate]) -> None:
    kind, made = copied
    rows = small.fresh()
    truth = small.predictions[kind](rows).classes
    predicted = lead_of(made.outputs_of(rows[:, None]), truth)[:, 0] > 0
    assert predicted.mean() > 0.97
    assert made.agreement == pytest.approx(predicted.mean(), abs=0.025)
    assert made.agreement > 0.97


def test_margins_are_those_of_the_model_within_the_error_it_names(small: Any, copied: tuple[str, Surrogate]) -> None:
    kind, made = copied
    if kind == "labels":
        assert made.error == SurrogateConfig().label_error
        return
    rows = small.fresh()
    predictions = small.predictions[kind](rows)
    first = np.zeros(len(rows), dtype=np.intp)
    truth = predictions.scores[:, 0] - np.delete(predictions.scores, 0, axis=1).max(axis=1)
    off = np.abs(lead_of(made.outputs_of(rows[:, None]), first)[:, 0] - truth)
    assert 0 < made.error < 0.5
    assert np.median(off[np.abs(truth) < 2]) < 3 * made.error


def test_the_same_seed_makes_the_same_copy_and_another_another(small: Any, copied: tuple[str, Surrogate]) -> None:
    kind, made = copied
    again, other = distilled(small, kind), distilled(small, kind, 1)
    for name, array in asdict(made).items():
        np.testing.assert_array_equal(array, asdict(again)[name], err_msg=name)
    assert not np.array_equal(made.entries, other.entries)


def test_too_few_rows_make_no_copy(small: Any) -> None:
    few = small.codes[: SurrogateConfig().min_rows - 1]
    assert train.train_surrogate(few, small.predictions["scores"](few), small.codec, 2, 0) is None


def test_rows_the_model_failed_on_do_not_count(small: Any) -> None:
    predictions = small.predictions["labels"](small.codes)
    failed = Predictions(np.where(np.arange(len(small.codes)) < SurrogateConfig().min_rows - 1, predictions.classes, -1))
    assert train.train_surrogate(small.codes, failed, small.codec, 2, 0) is None


@pytest.mark.parametrize("slope", ["huber_slope", "logistic_slope"])
def test_the_slope_of_a_loss_is_its_derivative(slope: str) -> None:
    rng = np.random.default_rng(0)
    outputs, truth, small_step = rng.normal(0, 2, (6, 2)), np.sign(rng.normal(size=(6, 2))), 1e-6

    def loss(values: Floats) -> float:
        off = np.abs(values - truth)
        huber = np.where(off < 1, off**2 / 2, off - 0.5).mean()
        return float(huber if slope == "huber_slope" else np.log1p(np.exp(-values * truth)).mean())

    found = getattr(train, slope)(outputs, truth)
    for place in np.ndindex(outputs.shape):
        step = np.zeros_like(outputs)
        step[place] = small_step
        assert found[place] == pytest.approx((loss(outputs + step) - loss(outputs - step)) / (2 * small_step), abs=1e-8)


def test_rows_are_weights_on_the_knots_that_add_up_to_one_per_feature(small: Any) -> None:
    tables = train._Tables(small.codec)
    rows = tables.matrix(small.fresh(50)).toarray()
    for first, end in pairwise(tables.start):
        np.testing.assert_allclose(rows[:, first:end].sum(axis=1), 1.0, rtol=1e-6)
        assert ((rows[:, first:end] > 0).sum(axis=1) <= 2).all()
    assert rows.shape[1] == len(tables.knots) + len(small.codec.numeric)


def test_edited_rows_differ_from_real_ones_in_up_to_three_features(small: Any) -> None:
    classes = small.predictions["labels"](small.codes).classes
    edited = train.edited_rows(small.codes, classes, small.codec, np.random.default_rng(0))
    assert SurrogateConfig().min_edited_rows <= len(edited) <= SurrogateConfig().max_edited_rows
    assert edited.min(axis=0).tolist() >= small.codes.min(axis=0).tolist()
    assert edited.max(axis=0).tolist() <= small.codes.max(axis=0).tolist()
    assert set(edited[:, 2]) == {0.0, 1.0, 2.0, 3.0}


def test_edited_rows_start_from_every_class_as_often(small: Any) -> None:
    """Twelve rows of nine hundred are of class 1: half of the edits start from them."""
    config = SurrogateConfig(max_edits=1)
    classes = (np.arange(len(small.codes)) >= 888).astype(np.intp)
    edited = train.edited_rows(small.codes, classes, small.codec, np.random.default_rng(0), config=config)
    rare = small.codes[888:]
    kin = ((edited[:, None, :] == rare[None]).sum(axis=2) >= 2).any(axis=1)
    assert 0.45 < kin.mean() < 0.7


def test_the_knots_reach_declared_bounds(small: Any) -> None:
    import pandas as pd

    from fasterce.data.codec import Codec
    from fasterce.data.profile import Profile
    from fasterce.data.schema import Schema
    from fasterce.data.table import Table

    frame = pd.DataFrame({"a": np.arange(100.0), "b": list("xy") * 50})
    schema = Schema.infer(frame, ranges={"a": (-50, 400)})
    codes = Table.like(frame, schema).read(frame).codes
    tables = train._Tables(Codec(schema, Profile.measure(codes, schema)))
    mine = tables.knots[tables.start[0] : tables.start[1]]
    assert (mine.min(), mine.max()) == (-50.0, 400.0)


def test_what_is_learned_from_each_kind_of_prediction() -> None:
    classes = np.array([0, 1, 1])
    np.testing.assert_array_equal(train.leads(Predictions(classes), 2), [[-1], [1], [1]])
    np.testing.assert_array_equal(train.leads(Predictions(classes), 3), [[1, -1, -1], [-1, 1, -1], [-1, 1, -1]])
    scores = np.array([[0.0, -2.0], [1.0, 3.0], [0.0, 0.5]])
    np.testing.assert_array_equal(train.leads(Predictions(classes, scores), 2), [[-2.0], [2.0], [0.5]])
    several = np.array([[3.0, 0.0, 0.0]])
    np.testing.assert_array_equal(train.leads(Predictions(classes[:1], several), 3), [[2.0, -1.0, -1.0]])


@pytest.fixture(scope="module")
def gappy() -> tuple[Codec, Floats]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.uniform(0, 10, 900).round(2), "b": rng.uniform(0, 10, 900), "c": rng.choice(list("pqrs"), 900)}
    )
    frame.loc[rng.random(900) < 0.15, "a"] = np.nan
    frame.loc[rng.random(900) < 0.15, "c"] = None
    schema = Schema.infer(frame, may_go_missing=["b"])
    codes = Table.like(frame, schema).read(frame).codes
    return Codec(schema, Profile.measure(codes, schema)), codes


def test_a_gap_is_learned_apart_from_every_value(gappy: tuple[Codec, Floats]) -> None:
    """What is missing counts high although a low value and the mean count low; nobody in the data lacks b."""
    codec, codes = gappy

    def evaluate(rows: Floats) -> Predictions:
        lead = np.where(rows[:, 0] == MISSING, 4.0, rows[:, 0] - 5) + np.where(rows[:, 1] == MISSING, -6.0, 0.3 * rows[:, 1])
        lead = lead + 3.0 * (rows[:, 2] == 4) - 1.0
        return Predictions((lead > 0).astype(np.intp), np.stack([-lead, lead], axis=1) / 2)

    predictions = evaluate(codes)
    edited = train.edited_rows(codes, predictions.classes, codec, np.random.default_rng(0))
    assert (edited[:, 1] == MISSING).any()
    made = train.train_surrogate(
        np.concatenate([codes, edited]), Predictions.concatenate([predictions, evaluate(edited)]), codec, 2, 0
    )
    assert made is not None
    fresh = train.edited_rows(codes, predictions.classes, codec, np.random.default_rng(1))[:3000]
    truth = evaluate(fresh)
    assert truth.scores is not None
    predicted = made.outputs_of(fresh[:, None])[:, 0, 0]
    wanted = truth.scores[:, 1] - truth.scores[:, 0]
    for absent in (fresh[:, 0] == MISSING, fresh[:, 1] == MISSING, fresh[:, 2] == 4):
        assert np.abs(predicted - wanted)[absent].mean() < 0.25
    assert ((predicted > 0) == (wanted > 0)).mean() > 0.97


def test_a_value_below_all_others_is_read_as_the_lowest_one_not_as_missing(gappy: tuple[Codec, Floats]) -> None:
    codec, codes = gappy
    predictions = Predictions((codes[:, 0] > 5).astype(np.intp))
    made = train.train_surrogate(codes, predictions, codec, 2, 0)
    assert made is not None
    rows = np.repeat(codes[:1], 3, axis=0)
    rows[:, 0] = codec.profile.low[0], -3.0, MISSING
    low, below, absent = made.outputs_of(rows[:, None])[:, 0]
    np.testing.assert_allclose(low, below, atol=1e-5)
    assert np.abs(absent - below).max() > 1e-3
