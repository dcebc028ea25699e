"""Random numbers replace what was learned in the latent space, and nothing else."""

import numpy as np
import pytest
from benchmarks.paper import ablation
from benchmarks.paper.networks import GRID, Split, best
from benchmarks.paper.ours import Ours
from benchmarks.setting import Setting

from fasterce.latent.runtime import Network


@pytest.fixture(scope="module")
def setting() -> Setting:
    split = Split.of("german_credit", 0, train_rows=300)
    return split.setting(GRID[2].fit(split.X["training"], split.y["training"], 0), target=1, seed=0, most=6)


@pytest.fixture(scope="module")
def ours(setting: Setting) -> Ours:
    return Ours.fit(setting)


def test_the_paper_depends_on_the_latent_space(ours: Ours, setting: Setting) -> None:
    lines = {(one["engine"], one["method"]): one for one in ablation.ablate(ours, setting, rows=6)}
    assert {engine for engine, _ in lines} == {"hybrid", "hybrid, not compiled", "latent", "paper"}
    assert lines["paper", "closest"]["identical"] < 0.5
    assert lines["hybrid", "closest"]["found"] == 1


def test_random_numbers_have_the_shape_of_what_they_replace(ours: Ours) -> None:
    before, after = (one.state_.search for one in (ours.explainer, ablation.randomised(ours.explainer, 0)))
    assert after.hyperplanes.normals.shape == before.hyperplanes.normals.shape
    assert not np.allclose(after.hyperplanes.normals, before.hyperplanes.normals)
    assert isinstance(before.autoencoder, Network)
    assert isinstance(after.autoencoder, Network)
    assert not np.allclose(after.autoencoder.decoder[0].weight, before.autoencoder.decoder[0].weight)
    assert np.array_equal(after.examples, before.examples)
    assert ours.explainer.state_.search is before


def test_a_result_is_identical_to_itself(ours: Ours, setting: Setting) -> None:
    result = ours.explainer.explain(setting.rows, diagnose=False)
    assert ablation.identical(result, result).all()


def test_the_split_is_the_papers_and_both_targets_have_queries(setting: Setting) -> None:
    split = Split.of("german_credit", 1)
    assert [len(split.X[part]) for part in ("training", "validation", "test")] == [700, 150, 150]
    assert (setting.model.predict(setting.rows) == 0).all()
    assert "age" in setting.immutable


def test_the_network_with_the_highest_auc_on_validation_rows_is_chosen() -> None:
    runs = [[{"auc": 0.5 + (k == place) * 0.2} for k in range(len(GRID))] for place in (1, 1, 3)]
    assert best(runs) is GRID[1]
