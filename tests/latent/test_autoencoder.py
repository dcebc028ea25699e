"""Training: the paper's loss, a reconstruction worth having, and the same weights for the same seed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import MISSING, Feature, Schema
from fasterce.io.progress import Progress
from fasterce.latent import autoencoder as training
from fasterce.latent.autoencoder import ReconstructionLoss, Trained, TrainingPlan, split, train
from fasterce.latent.runtime import Layer, Network
from fasterce.latent.training import DenseLayers

SILENT = Progress(False)
QUICK = TrainingPlan(latent=3, hidden=16, batch=32, epochs=3, patience=5)


def loss_of(codec: Codec, rows: np.ndarray, output: list[float]) -> float:
    """The loss where every row is reconstructed as `output`."""
    rebuilt = np.tile(np.array(output, dtype=np.float32), (len(rows), 1))
    return ReconstructionLoss(codec)(rows.astype(np.float32), rebuilt)[0]


def paper_loss(codec: Codec, rows: np.ndarray, output: np.ndarray) -> float:
    """Row by row in plain NumPy; `output` holds probabilities (any positive multiple) in the blocks."""
    total = 0.0
    numbers = len(codec.numeric)
    for truth, guess in zip(rows, output, strict=True):
        if numbers:
            total += np.sqrt(np.mean((truth[:numbers] - guess[:numbers]) ** 2))
        for block in codec.blocks:
            one, two = truth[block.columns], guess[block.columns]
            if one.any():
                total += 1 - one @ two / (np.linalg.norm(one) * np.linalg.norm(two))
    return total / len(rows)


@pytest.fixture(scope="module")
def tiny(encoded: Callable) -> tuple[Codec, np.ndarray]:
    frame = pd.DataFrame({"x": [0.0, 1.5, 4.0], "u": ["p", "q", "r"], "y": [3.0, 1.0, 2.0], "v": ["s", "t", "t"]})
    codec, _, matrix = encoded(frame)
    return codec, matrix


@pytest.fixture(scope="module")
def good(encoded: Callable, correlated: pd.DataFrame) -> tuple[Codec, np.ndarray, Trained]:
    codec, _, matrix = encoded(correlated)
    plan = TrainingPlan.choose(len(matrix), codec)
    return codec, matrix, train(matrix, codec, plan, 0, SILENT)


def test_loss_of_a_hand_computed_row(encoded: Callable) -> None:
    codec, _, _ = encoded(pd.DataFrame({"x": [0.0, 1.0], "y": [1.0, 0.0], "u": ["p", "q"]}))
    rows = np.array([[-2.0, 5.0, 1.0, 0.0]])
    expected = np.sqrt((3.0**2 + 4.0**2) / 2) + 1 - 1 / np.sqrt(2)
    assert loss_of(codec, rows, [1.0, 1.0, 0.0, 0.0]) == pytest.approx(expected, abs=1e-5)


def test_loss_equals_the_papers_over_several_blocks(tiny: tuple[Codec, np.ndarray]) -> None:
    codec, matrix = tiny
    logits = np.array([0.3, -0.7, 2.0, 0.5, -1.0, 0.1, 0.9])
    guess = np.concatenate([logits[:2], np.exp(logits[2:])])
    expected = paper_loss(codec, matrix, np.tile(guess, (3, 1)))
    assert loss_of(codec, matrix, logits.tolist()) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("shift", [5.0, 15.0, 25.0])
def test_loss_does_not_depend_on_how_high_a_blocks_logits_lie(tiny: tuple[Codec, np.ndarray], shift: float) -> None:
    codec, matrix = tiny
    logits = np.array([0.3, -0.7, 2.0, 0.5, -1.0, 0.1, 0.9])
    raised = logits.copy()
    raised[2:5] += shift
    plain, shifted = (loss_of(codec, matrix, values.tolist()) for values in (logits, raised))
    assert shifted == pytest.approx(plain, abs=1e-4)


def test_an_unlisted_category_costs_nothing(tiny: tuple[Codec, np.ndarray]) -> None:
    codec, matrix = tiny
    rows = matrix[:1].copy()
    rows[:, codec.blocks[0].columns] = 0.0
    logits = np.array([0.3, -0.7, 2.0, 0.5, -1.0, 0.1, 0.9])
    guess = np.concatenate([logits[:2], np.exp(logits[2:])])
    assert loss_of(codec, rows, logits.tolist()) == pytest.approx(paper_loss(codec, rows, guess[None]), abs=1e-5)


def test_reconstruction_beats_the_mean_by_far(good: tuple[Codec, np.ndarray, Trained]) -> None:
    codec, matrix, trained = good
    unseen = trained.held_out
    rebuilt = trained.network.decode(trained.network.encode(unseen))
    numbers = slice(0, len(codec.numeric))
    error = ((rebuilt[:, numbers] - unseen[:, numbers]) ** 2).mean(axis=0)
    mean = ((matrix[:, numbers].mean(axis=0) - unseen[:, numbers]) ** 2).mean(axis=0)
    assert (error < 0.1 * mean).all()
    (block,) = codec.blocks
    right = rebuilt[:, block.columns].argmax(axis=1) == unseen[:, block.columns].argmax(axis=1)
    assert right.mean() > 0.9


def test_validation_loss_is_that_of_the_network_returned(good: tuple[Codec, np.ndarray, Trained]) -> None:
    codec, matrix, trained = good
    rows = matrix[split(len(matrix), 0)[1]]
    rebuilt = trained.network.decode(trained.network.encode(rows))
    assert paper_loss(codec, rows, rebuilt) == pytest.approx(trained.validation_loss, abs=2e-3)


def test_whitened_latent_has_unit_covariance(good: tuple[Codec, np.ndarray, Trained]) -> None:
    _, matrix, trained = good
    latent = trained.network.encode(matrix[split(len(matrix), 0)[0]])
    np.testing.assert_allclose(latent.mean(axis=0), 0.0, atol=1e-6)
    covariance = np.cov(latent, rowvar=False)
    np.testing.assert_allclose(covariance - np.diag(np.diag(covariance)), 0.0, atol=1e-6)
    assert (np.diag(covariance) <= 1 + 1e-6).all()
    assert np.isclose(np.diag(covariance), 1.0).sum() >= 2


def test_whitening_changes_the_basis_and_not_the_reconstruction(tiny: tuple[Codec, np.ndarray]) -> None:
    codec, _ = tiny
    rng = np.random.default_rng(0)
    encoder = [Layer(rng.normal(size=(7, 9)), rng.normal(size=9)), Layer(rng.normal(size=(9, 3)) * 50, rng.normal(size=3))]
    decoder = [Layer(rng.normal(size=(3, 9)) / 50, rng.normal(size=9)), Layer(rng.normal(size=(9, 7)), rng.normal(size=7))]
    rows = rng.normal(size=(80, 7))
    raw = Network(tuple(encoder), tuple(decoder), tuple(block.columns for block in codec.blocks))
    white = training._whitened(encoder, decoder, codec, rows)
    np.testing.assert_allclose(np.cov(white.encode(rows), rowvar=False), np.eye(3), atol=1e-8)
    np.testing.assert_allclose(white.decode(white.encode(rows)), raw.decode(raw.encode(rows)), atol=1e-9)
    assert np.abs(np.cov(raw.encode(rows), rowvar=False) - np.eye(3)).max() > 10


def test_whitening_of_a_collapsed_dimension_is_finite(tiny: tuple[Codec, np.ndarray]) -> None:
    codec, _ = tiny
    rng = np.random.default_rng(1)
    collapsed = np.array([[1.0, 2.0, 0.0]])
    encoder = [
        Layer(rng.normal(size=(7, 4)), np.zeros(4)),
        Layer(rng.normal(size=(4, 1)) @ collapsed, np.array([0.0, 0.0, 5.0])),
    ]
    decoder = [Layer(rng.normal(size=(3, 4)), np.zeros(4)), Layer(rng.normal(size=(4, 7)), np.zeros(7))]
    rows = rng.normal(size=(50, 7))
    raw = Network(tuple(encoder), tuple(decoder), tuple(block.columns for block in codec.blocks))
    white = training._whitened(encoder, decoder, codec, rows)
    latent = white.encode(rows)
    np.testing.assert_allclose(np.sort(latent.var(axis=0, ddof=1)), [0.0, 0.0, 1.0], atol=1e-8)
    np.testing.assert_allclose(white.decode(latent), raw.decode(raw.encode(rows)), atol=1e-8)


def test_same_seed_same_weights(encoded: Callable, correlated: pd.DataFrame) -> None:
    codec, _, matrix = encoded(correlated)
    one, again, other = (train(matrix, codec, QUICK, seed, SILENT) for seed in (7, 7, 8))
    for name, array in one.network.arrays().items():
        np.testing.assert_array_equal(array, again.network.arrays()[name])
    assert one.validation_loss == again.validation_loss
    assert not np.allclose(one.network.encoder[0].weight, other.network.encoder[0].weight)
    assert not np.array_equal(one.held_out, other.held_out)


def test_weights_do_not_depend_on_the_number_of_threads(encoded: Callable, correlated: pd.DataFrame) -> None:
    codec, _, matrix = encoded(correlated)
    plan = TrainingPlan(latent=6, hidden=200, batch=256, epochs=2, patience=2)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(train(matrix, codec, plan, 0, SILENT).network.arrays())
    for name, array in found[0].items():
        np.testing.assert_array_equal(array, found[1][name])


def test_early_stopping_brings_the_best_weights_back(encoded: Callable, correlated: pd.DataFrame) -> None:
    codec, _, matrix = encoded(correlated)
    wild = TrainingPlan(latent=3, hidden=16, batch=16, epochs=60, patience=4, learning_rate=0.3)
    rows = matrix.astype(np.float32)
    rng = np.random.default_rng(0)
    network = DenseLayers((codec.width, 16, 3, 16, codec.width), (True, False, True, False), rng)
    loss = ReconstructionLoss(codec)
    seen: list[float] = []

    class Watched(ReconstructionLoss):
        def __call__(self, truth: Any, outputs: Any) -> tuple[float, Any]:
            found = super().__call__(truth, outputs)
            if len(truth) == 100:
                seen.append(found[0])
            return found

    best, epochs = training._descend(network, Watched(codec), rows[:300], rows[300:], wild, rng, SILENT)
    assert epochs == len(seen) < wild.epochs, "it stopped early"
    assert best == min(seen)
    assert seen[-1] > best
    assert loss(rows[300:], network.forward(rows[300:]))[0] == best


def test_split_covers_every_row_once() -> None:
    for rows in (10, 12, 100, 1003):
        parts = split(rows, 1)
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(rows))
        assert all(len(part) for part in parts)
        assert len(parts[0]) == int(0.7 * rows)
        assert abs(len(parts[1]) - 0.15 * rows) <= 1
    np.testing.assert_array_equal(split(50, 4)[0], split(50, 4)[0])
    assert not np.array_equal(split(50, 4)[0], split(50, 5)[0])


FRAMES = {
    "only numbers": pd.DataFrame({"a": np.arange(60.0), "b": np.arange(60.0)[::-1] ** 2}),
    "only categories": pd.DataFrame({"u": list("pqr") * 20, "v": list("st") * 30}),
    "constant columns": pd.DataFrame({"a": np.arange(60.0), "same": np.full(60, 3.5), "one": ["x"] * 60}),
    "twelve rows": pd.DataFrame({"a": np.arange(12.0), "u": list("pqr") * 4}),
    "one column": pd.DataFrame({"a": np.arange(30.0)}),
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("latent", [1, None, 20])
def test_any_table_and_any_latent_size_can_be_trained(encoded: Callable, name: str, latent: int | None) -> None:
    codec, _, matrix = encoded(FRAMES[name])
    plan = TrainingPlan.choose(len(matrix), codec, latent)
    plan = TrainingPlan(plan.latent, plan.hidden, plan.batch, 3, plan.patience)
    trained = train(matrix, codec, plan, 0, SILENT)
    hidden = trained.network.encode(matrix)
    assert hidden.shape == (len(matrix), latent or max(2, len(codec.schema)))
    rebuilt = trained.network.decode(hidden)
    assert rebuilt.shape == matrix.shape
    assert np.isfinite(rebuilt).all()
    assert np.isfinite(trained.validation_loss)
    assert trained.epochs == 3
    for block in codec.blocks:
        np.testing.assert_allclose(rebuilt[:, block.columns].sum(axis=1), 1.0)


def test_plan_is_chosen_from_the_table(encoded: Callable, correlated: pd.DataFrame) -> None:
    codec, _, _ = encoded(correlated)
    small, large = TrainingPlan.choose(100, codec), TrainingPlan.choose(60_000, codec)
    assert small.latent == large.latent == len(codec.schema)
    assert TrainingPlan.choose(100, codec, 4).latent == 4
    assert small.batch == 32
    assert large.batch == 512
    assert 8 <= large.epochs < small.epochs <= 200


def test_training_goes_on_from_where_it_was(encoded: Callable[..., Any], correlated: pd.DataFrame) -> None:
    codec, _, matrix = encoded(correlated)
    long = train(matrix, codec, TrainingPlan(3, 16, 32, 40, 40), 0, SILENT)
    plan = TrainingPlan.continue_from(long.network, len(matrix), codec)
    assert (plan.latent, plan.hidden) == (3, 16)
    assert plan.epochs < TrainingPlan.choose(len(matrix), codec).epochs
    one_epoch = TrainingPlan(3, 16, 32, 1, 1)
    on, fresh = (train(matrix, codec, one_epoch, 1, SILENT, start) for start in (long.network, None))
    assert on.validation_loss < 0.8 * fresh.validation_loss
    again = train(matrix, codec, one_epoch, 1, SILENT, long.network)
    np.testing.assert_array_equal(again.network.encode(matrix), on.network.encode(matrix))


def test_a_network_moves_to_more_columns_and_says_the_same_about_the_old_ones() -> None:
    schema = Schema.infer(pd.DataFrame({"x": [1.5, 2.5], "c": pd.Categorical(["a", "b"], ["a", "b", "z"])}))
    old_codes, new_codes = np.array([[1.0, 0.0], [2.0, 2.0]] * 9), np.array([[1.0, 0.0], [2.0, 2.0], [1.5, 1.0]] * 6)
    old = Codec(schema, Profile.measure(old_codes, schema))
    wide = Codec(schema, replace(Profile.measure(new_codes, schema), **_scales(old)))
    network = train(old.encode(old_codes), old, QUICK, 0, SILENT).network
    after = training.with_columns(network, old, wide)
    assert (old.width, wide.width) == (3, 4)
    np.testing.assert_allclose(after.encode(wide.encode(old_codes)), network.encode(old.encode(old_codes)))
    rebuilt, before = (
        after.decode(after.encode(wide.encode(old_codes))),
        network.decode(network.encode(old.encode(old_codes))),
    )
    np.testing.assert_allclose(rebuilt[:, 0], before[:, 0])
    np.testing.assert_allclose(rebuilt[:, 3] / rebuilt[:, 1], before[:, 2] / before[:, 1])


def _scales(codec: Codec) -> dict[str, np.ndarray]:
    return {name: getattr(codec.profile, name) for name in ("median", "std", "bent_mean", "bent_std")}


def test_a_moved_network_still_knows_what_is_missing() -> None:
    features = (
        Feature("amount", "numeric", lower=0, upper=9, missing="stay"),
        Feature("kind", "categorical", categories=("a", "b", "c")),
    )
    schema, rng = Schema(features), np.random.default_rng(0)
    codes = np.stack([np.where(rng.random(200) < 0.3, MISSING, rng.uniform(0, 9, 200)), rng.integers(0, 2, 200)], axis=1)
    more = np.concatenate([codes, [[4.0, 2.0]]])
    old = Codec(schema, Profile.measure(codes, schema))
    wide = Codec(schema, replace(Profile.measure(more, schema), **_scales(old)))
    network = train(old.encode(codes), old, QUICK, 0, SILENT).network
    after = training.with_columns(network, old, wide)
    latent = network.encode(old.encode(codes))
    np.testing.assert_allclose(after.encode(wide.encode(codes)), latent)
    np.testing.assert_allclose(
        after.decode(latent)[:, wide.missing_blocks[0].columns], network.decode(latent)[:, old.missing_blocks[0].columns]
    )
