"""Attempts to improve the method `realistic`, most by the latent space: `python -m benchmarks.realism --attempts`.

None of them is part of the library (docs/decisions/0009-what-the-latent-space-contributes.md has the results). Each replaces
a function of the search while it explains, so that it is compared with the same fitted explainer without it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from unittest.mock import patch

import numpy as np
from sklearn.neural_network import MLPRegressor

from fasterce import FasterCE
from fasterce.latent.sampling import to_values
from fasterce.search import realism
from fasterce.search.context import SearchContext
from fasterce.search.engines import latent
from fasterce.search.pool import LATENT, Pool
from fasterce.search.propose import nearest_examples
from fasterce.search.realism import Realism

# The package has a function of the same name.
realistic = import_module("fasterce.search.methods.realistic")
Errors = Callable[[np.ndarray], np.ndarray]
# Weight of the reconstruction error, in units of the usual distance between rows of the target: of 0.3 and 1 the better on
# other data.
WEIGHT = 0.3
# Columns of a row replaced by those of another one while the denoising network is trained, and copies of the table.
SWAPPED, COPIES = 0.2, 8
# Shares of the way from a candidate to what the denoising network makes of it.
PULLED = (0.5, 1.0)
# Rounds in which every feature is gone through.
DESCENT_ROUNDS = 2
# Share of the way from the nearest counterfactual to the nearest known row, and weights of realism that propose candidates.
HALF, DIALS = 0.5, (0.41, 0.58, 0.67, 0.75, 0.86)


def fitted_errors(explainer: FasterCE) -> Errors:
    """Return the reconstruction error of the explainer's own autoencoder, 1 for a usual row."""
    state = explainer.state_.search
    return _relative(explainer, state.autoencoder.encode, state.autoencoder.decode)


def denoising_errors(explainer: FasterCE) -> Errors:
    """Return that of a network with a bottleneck, trained to restore rows of which some columns were replaced."""
    restore = denoiser(explainer)
    return _relative(explainer, lambda matrix: matrix, restore)


def _relative(explainer: FasterCE, encode: Errors, decode: Errors) -> Errors:
    state = explainer.state_.search

    def error(codes: np.ndarray) -> np.ndarray:
        matrix = state.codec.encode(codes.reshape(-1, codes.shape[-1]))
        return np.abs(decode(encode(matrix)) - matrix).sum(axis=1).reshape(codes.shape[:-1])

    usual = float(np.median(error(state.examples)))
    return lambda codes: error(codes) / max(usual, 1e-9)


@lru_cache(maxsize=1)
def denoiser(explainer: FasterCE) -> Errors:
    """Return a network that restores encoded rows."""
    state, rng = explainer.state_.search, np.random.default_rng(0)
    rows = state.examples[rng.permutation(len(state.examples))[:2000]]
    every = np.repeat(rows, COPIES, axis=0)
    others = rows[rng.integers(len(rows), size=every.shape), np.arange(rows.shape[1])]
    spoiled = np.where(rng.random(every.shape) < SWAPPED, others, every)
    width = max(2, rows.shape[1] // 2)
    network = MLPRegressor(hidden_layer_sizes=(64, width, 64), max_iter=60, early_stopping=True, random_state=0)
    network.fit(state.codec.encode(spoiled), state.codec.encode(every))
    return lambda matrix: np.asarray(network.predict(matrix)).reshape(matrix.shape) if len(matrix) else matrix


def ranked(errors: Errors, weight: float) -> list[object]:
    """Add the reconstruction error to the objective by which candidates are ranked."""
    rank = Realism.rank

    def with_error(self: Realism, pool: Pool) -> Pool:
        return replace(rank(self, pool), cost=rank(self, pool).cost + _penalty(self, errors, weight, pool.codes))

    return [patch.object(Realism, "rank", with_error)]


def _penalty(self: Realism, errors: Errors, weight: float, codes: np.ndarray) -> np.ndarray:
    usual = float(self.context.state.typical.mean())
    return np.asarray(np.round(weight * usual * self.weight[:, None] * errors(codes), 9))


def descended(errors: Errors, weight: float) -> list[object]:
    """Minimise the objective with the reconstruction error in it, feature by feature over the values of known rows."""
    improved = realistic._improved

    def objective(self: Realism, codes: np.ndarray) -> np.ndarray:
        cost = self.context.distance.total(codes, self.context.domain.row[:, None, :])
        return np.asarray(cost + self.weight[:, None] * self.implausibility(codes) + _penalty(self, errors, weight, codes))

    def with_descent(context: SearchContext, known: Realism) -> Pool:
        pool = improved(context, known)
        best = known.rank(pool).best(1)
        state, there = best.codes[:, 0].copy(), best.valid[:, 0]
        groups = known.context.state.groups
        for _ in range(DESCENT_ROUNDS):
            for group in np.unique(groups):
                mine = groups == group
                values = np.concatenate([known.legal, context.domain.base[:, None]], axis=1)
                tried = np.where(mine, values, state[:, None])
                cost = objective(known, tried)
                cost[known.margins(tried) <= known.tolerance] = np.inf
                pick = cost.argmin(axis=1)
                better = np.take_along_axis(cost, pick[:, None], 1)[:, 0] < objective(known, state[:, None])[:, 0] - 1e-9
                state = np.where((better & there)[:, None], tried[np.arange(len(state)), pick], state)
        codes = state[:, None]
        return pool + Pool.start(codes, there[:, None], context.domain, context.distance, lead=known.margins(codes))

    return [*ranked(errors, weight), patch.object(realistic, "_improved", with_descent)]


def pulled(explainer: FasterCE) -> list[object]:
    """Add candidates whose changed numbers are moved toward what the denoising network makes of the row."""
    restore, improved = denoiser(explainer), realistic._improved

    def with_pulled(context: SearchContext, known: Realism) -> Pool:
        pool, codec = improved(context, known), context.state.codec
        best = known.rank(pool).best(4).filled(context.domain.base)
        matrix = codec.encode(best.codes.reshape(-1, best.codes.shape[2]))
        numbers = codec.numbers(restore(matrix)).reshape(*best.codes.shape[:2], -1)
        changed = (best.codes != context.domain.base[:, None, :])[..., codec.numeric]
        for share in PULLED:
            codes = best.codes.copy()
            here = codes[..., codec.numeric]
            codes[..., codec.numeric] = np.where(changed, here + share * (numbers - here), here)
            codes = context.domain.project(codes)
            margin = known.margins(codes)
            valid = best.valid & (margin > known.tolerance)
            pool += Pool.start(codes, valid, context.domain, context.distance, lead=margin).from_origin(LATENT)
        return pool

    return [patch.object(realistic, "_improved", with_pulled)]


def latent_neighbours(context: SearchContext, most: int | None = None) -> np.ndarray:
    """Return the known rows of the target nearest to each query in the latent space."""
    state, codes = context.state, nearest_examples(context, most)
    for part in context.targets.parts(state):
        known = state.example_latent[part.examples]
        away = np.linalg.norm(known[None] - context.latent[part.rows][:, None], axis=2)
        order = part.examples[np.argsort(away, axis=1, kind="stable")[:, : codes.shape[1]]]
        codes[part.rows[:, None], np.arange(order.shape[1])] = state.examples[order]
    return codes


def more_starts() -> list[object]:
    """Start also from the walks of CE1 and CE3 over combinations of features, and toward prototypes."""
    starts, origins = realistic._starts, realistic._origins

    def walks(context: SearchContext) -> list[np.ndarray]:
        return [group.codes for group in (*latent._straight(context), *latent._of_combinations(context, latent.COMBINATIONS))]

    def with_walks(context: SearchContext, known: Realism) -> list[np.ndarray]:
        return [*starts(context, known), *walks(context)]

    def with_origins(context: SearchContext) -> list[int]:
        return [*origins(context), *[LATENT] * len(walks(context))]

    return [patch.object(realistic, "_starts", with_walks), patch.object(realistic, "_origins", with_origins)]


def within_half(share: float, dials: Sequence[float]) -> list[object]:
    """Return the most realistic candidate at most a share of the way from the nearest counterfactual to the nearest known
    row that reaches the target, in place of a weighted sum."""
    improved, rank = realistic._improved, Realism.rank

    def with_dials(context: SearchContext, known: Realism) -> Pool:
        pool = improved(context, known)
        for dial in dials:
            other = replace(context, realism=dial)
            pool += improved(other, replace(known, context=other))
        away = context.distance.total(known.legal, context.domain.row[:, None, :])
        nearest = np.where(known.margins(known.legal) > known.tolerance, away, np.inf).min(axis=1)
        least = np.where(known.edits.count > 0, known.edits.cost[:, 0], 0.0)
        nearest = np.where(np.isfinite(nearest), nearest, 2 * least)
        known.__dict__["farthest"] = least + share * np.maximum(nearest - least, 0.0)
        return pool

    def by_realism(self: Realism, pool: Pool) -> Pool:
        if "farthest" not in self.__dict__:
            return rank(self, pool)
        ranked = rank(replace(self, context=replace(self.context, realism=max(dials))), pool)
        away = self.context.distance.total(pool.codes, self.context.domain.row[:, None, :])
        beyond = away > self.__dict__["farthest"][:, None] + realistic.ROUNDING
        return replace(ranked, cost=ranked.cost + np.where(beyond, realism.LAST / 10, 0.0))

    return [patch.object(realistic, "_improved", with_dials), patch.object(Realism, "rank", by_realism)]


def known_around_result() -> list[object]:
    """Improve the best candidate again, by the known rows nearest to it and not to the query; rank by both."""
    improved, rank = realistic._improved, Realism.rank

    def measured_by(known: Realism, rows: np.ndarray) -> Realism:
        context = known.context
        legal = context.domain.project(np.where(context.state.relevant, rows, context.domain.base[:, None, :]))
        other = replace(known, known=np.ascontiguousarray(rows), legal=np.ascontiguousarray(legal))
        other.__dict__["weight"] = known.weight
        return other

    def with_second_pass(context: SearchContext, known: Realism) -> Pool:
        pool = improved(context, known)
        best = rank(known, pool).best(1).filled(context.domain.base)
        around = replace(context, domain=replace(context.domain, base=best.codes[:, 0]))
        rows = nearest_examples(around, context.config.realistic_examples)
        codes, margin = measured_by(known, rows).improve([best.codes])
        valid = (margin > known.tolerance) & context.domain.contains(codes)
        known.__dict__["both"] = measured_by(known, np.concatenate([known.known, rows], axis=1))
        return pool + Pool.start(codes, valid, context.domain, context.distance, lead=margin)

    def by_both(self: Realism, pool: Pool) -> Pool:
        return rank(self.__dict__.get("both", self), pool)

    return [patch.object(realistic, "_improved", with_second_pass), patch.object(Realism, "rank", by_both)]


def augmented(explainer: FasterCE) -> FasterCE:
    """Return the explainer with decoded samples among the known rows."""
    state = explainer.state_.search
    samples = state.samples.astype(np.float64)
    codes = realism_codes(explainer, samples)
    return with_examples(
        explainer, np.concatenate([state.examples, codes]), np.concatenate([state.example_classes, state.sample_classes])
    )


def realism_codes(explainer: FasterCE, points: np.ndarray) -> np.ndarray:
    """Return what latent points decode to."""
    state = explainer.state_.search
    return to_values(state.codec.decode(state.autoencoder.decode(points)), state.codec)


def with_examples(explainer: FasterCE, codes: np.ndarray, classes: np.ndarray) -> FasterCE:
    """Return the explainer with other known rows."""
    changed = FasterCE.__new__(FasterCE)
    changed.__dict__.update(explainer.__dict__)
    search = replace(explainer.state_.search, examples=codes, example_classes=classes)
    changed.state_ = replace(explainer.state_, search=search)
    return changed


def samples_only(explainer: FasterCE) -> FasterCE:
    """Return the explainer as with `keep_rows=False`: decoded samples are the known rows."""
    state = explainer.state_.search
    return with_examples(explainer, realism_codes(explainer, state.samples.astype(np.float64)), state.sample_classes)


def independent(explainer: FasterCE, seed: int = 0) -> FasterCE:
    """Return the explainer with known rows whose columns were drawn independently of each other: what is known without a
    latent space and without rows."""
    rng, state = np.random.default_rng(seed), explainer.state_.search
    rows, count = state.examples, len(state.samples)
    codes = rows[rng.integers(len(rows), size=(count, rows.shape[1])), np.arange(rows.shape[1])]
    return with_examples(explainer, codes, explainer._predictor().evaluate(codes).classes)


@contextmanager
def patched(patches: Sequence[object]) -> Iterator[None]:
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)  # type: ignore[arg-type]
        yield


# How the library is changed, for each attempt.
PATCHES: dict[str, Callable[[FasterCE], list[object]]] = {
    "ranked by reconstruction error": lambda fitted: ranked(fitted_errors(fitted), WEIGHT),
    "ranked by denoising error": lambda fitted: ranked(denoising_errors(fitted), WEIGHT),
    "improved by reconstruction error": lambda fitted: descended(fitted_errors(fitted), WEIGHT),
    "improved by denoising error": lambda fitted: descended(denoising_errors(fitted), WEIGHT),
    "pulled by denoising": pulled,
    "latent neighbours": lambda _: [patch.object(realism, "nearest_examples", latent_neighbours)],
    "more latent starts": lambda _: more_starts(),
    "within half of the way": lambda _: within_half(HALF, DIALS),
    "known rows around the result": lambda _: known_around_result(),
}
# What is known, for each attempt.
EXPLAINERS: dict[str, Callable[[FasterCE], FasterCE]] = {
    "decoded samples added": augmented,
    "decoded samples only": samples_only,
    "independent columns only": independent,
}
