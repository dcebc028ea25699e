"""The ablation: do counterfactuals stay the same if encoder, decoder, hyperplanes and prototypes are random numbers?

Where all do, the latent space has no influence. The shares by origin say where counterfactuals came from.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from benchmarks.paper.ours import Ours, with_engine
from benchmarks.setting import Setting
from fasterce import Explanation, FasterCE
from fasterce.fitting.state import SearchState
from fasterce.latent.runtime import Layer, Network
from fasterce.options import Engine

METHODS = ("closest", "sparse", "realistic")
# Changes of a counterfactual from which on a query counts as one that needs many.
MANY = 4
# Draws of random numbers, over which shares are averaged.
DRAWS = 3


def ablate(ours: Ours, setting: Setting, rows: int) -> list[dict[str, Any]]:
    """Return one line per engine and method; the default also without a compiled model, as for a model it cannot read."""
    cases = [(engine, ours.explainer, engine) for engine in get_args(Engine)]
    cases.insert(1, ("hybrid, not compiled", ours.uncompiled, "hybrid"))
    queries, lines = setting.rows.iloc[:rows], []
    for name, explainer, engine in cases:
        noisy = [randomised(explainer, draw) for draw in range(DRAWS)]
        for method in METHODS:
            options = {"method": method, "target": setting.target, "diagnose": False, **with_engine(engine)}
            learned, *random = (one.explain(queries, **options) for one in (explainer, *noisy))
            lines.append({"engine": name, "method": method, "queries": len(queries), **difference(learned, random)})
    return lines


def difference(learned: Explanation, random: Sequence[Explanation]) -> dict[str, Any]:
    """Return how many counterfactuals are the same with what was learned and with random numbers, averaged over draws."""
    same, many = np.stack([identical(learned, one) for one in random]), n_changed(learned) >= MANY
    return {
        "found": share(learned.status == "found"),
        "found_random": float(np.mean([share(one.status == "found") for one in random])),
        "identical": share(same),
        "queries_many": int(many.sum()),
        "identical_many": share(same[:, many]),
        "origin": origins(learned),
    }


def n_changed(result: Explanation) -> np.ndarray:
    """Return the number of features the first counterfactual of each query changes; 0 without one."""
    best = np.flatnonzero(result.arrays.rank == 0)
    changed = np.zeros(len(result.rows), dtype=int)
    changed[result.arrays.query[best]] = result.arrays.changed[best].sum(axis=1)
    return changed


def identical(one: Explanation, other: Explanation) -> np.ndarray:
    """Return per query whether both have the same first counterfactual, or both none."""
    tables = [result.counterfactuals.astype(object).where(result.counterfactuals.notna(), None) for result in (one, other)]
    return np.asarray((tables[0].to_numpy() == tables[1].to_numpy()).all(axis=1))


def origins(result: Explanation) -> dict[str, float]:
    """Return the share of counterfactuals by origin."""
    counts = result.to_frame()["origin"].value_counts(normalize=True)
    return {str(name): float(part) for name, part in counts.items()}


def share(mask: Any) -> float:
    return float(np.mean(mask)) if np.size(mask) else float("nan")


def randomised(explainer: FasterCE, seed: int) -> FasterCE:
    """Return the explainer with random numbers for everything learned in the latent space."""
    noisy = FasterCE(explainer.model, explainer.schema, random_state=explainer.random_state, progress=False)
    noisy.state_ = replace(explainer.state_, search=_random_state(explainer.state_.search, np.random.default_rng(seed)))
    return noisy


def _random_state(state: SearchState, rng: np.random.Generator) -> SearchState:
    """Every array gets normal numbers of the same shape, mean and standard deviation."""

    def like(values: np.ndarray) -> np.ndarray:
        return rng.normal(values.mean(), max(values.std(), 1e-6), values.shape) if values.size else values

    def layers(known: tuple[Layer, ...]) -> tuple[Layer, ...]:
        return tuple(Layer(like(layer.weight), like(layer.bias)) for layer in known)

    network, planes, regions = state.autoencoder, state.hyperplanes, state.regions
    if not isinstance(network, Network):
        raise TypeError("the ablation needs the autoencoder that fit trains")
    return replace(
        state,
        autoencoder=replace(network, encoder=layers(network.encoder), decoder=layers(network.decoder)),
        hyperplanes=replace(planes, normals=like(planes.normals), offsets=like(planes.offsets)),
        regions=replace(regions, centres=like(regions.centres), normals=like(regions.normals), offsets=like(regions.offsets)),
        prototypes=like(state.prototypes),
    )
