"""Compute the cells of a plan one after the other, one dataset and run at a time."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import measuring
from benchmarks.paper import ablation, examples, reexplain
from benchmarks.paper.networks import GRID as NETWORKS
from benchmarks.paper.networks import TARGETS, Network, Split, best
from benchmarks.paper.ours import Ours, with_engine
from benchmarks.paper.plan import (
    ABLATION,
    CE1,
    CE2,
    CE3,
    EXAMPLES,
    GRID,
    REEXPLAINED,
    RIVALS,
    ROBUSTNESS,
    ROBUSTNESS_DATA,
    ROBUSTNESS_TARGET,
    STEP,
    TABLE_1,
    TITLES,
    PaperPlan,
)
from benchmarks.rivals.catalogue import find
from benchmarks.runner import NOT_TRIED, run_system
from benchmarks.scoring import Scorer, undivided_proximity
from benchmarks.setting import FREE, FROZEN, Setting, class_weights
from benchmarks.store import Cell, Key, Store
from fasterce import metrics
from fasterce.latent.autoencoder import reconstruction_losses

MEASURED = ("n_changed", "gower_l1", "proximity", "undivided", "violations")
# Noise of the paper's robustness in standard deviations; the paper does not give its size.
NOISE = {"recourse": 0.05, "recourse_large": 0.25}
# The paper's ε_max; a margin needs room beyond it.
LARGEST_STEP = 4.0
Announce = Callable[[str], None]


@dataclass(frozen=True)
class RunContext:
    """What the cells of a dataset and run share: the black box, a fitted explainer, and the queries of both targets."""

    plan: PaperPlan
    data: str
    seed: int
    network: Network
    written: set[Path] = field(default_factory=set, compare=False)

    @cached_property
    def split(self) -> Split:
        return Split.of(self.data, self.seed, self.plan.train_rows)

    @cached_property
    def model(self) -> Any:
        return self.network.fit(self.split.X["training"], self.split.y["training"], self.seed)

    @cached_property
    def ours(self) -> Ours:
        return Ours.fit(self.setting("favourable"))

    @cached_property
    def _settings(self) -> dict[str, Setting]:
        return {name: self.split.setting(self.model, target, self.seed, self.plan.rows) for name, target in TARGETS.items()}

    def setting(self, target: str) -> Setting:
        return self._settings[target]

    def scorer(self, target: str) -> Scorer:
        return Scorer(self.setting(target), measured=MEASURED)

    def folder(self, setting: Setting, name: str) -> Path:
        """Return the folder a rival's process reads its problem from."""
        folder = self.plan.work / f"{self.data}-{self.seed}-{name}"
        if folder not in self.written:
            setting.dump(folder)
            self.written.add(folder)
        return folder


class PaperRun:
    """The cells of a plan: read if they exist, else computed."""

    def __init__(self, plan: PaperPlan, store: Store, announce: Announce = lambda text: None) -> None:
        self.plan, self.store, self.announce = plan, store, announce
        self.planned = {key: plan.fingerprint(key) for key in plan.cells()}
        self.latest: RunContext | None = None

    def known(self) -> list[Cell]:
        found = (self.store.get(key, fingerprint) for key, fingerprint in self.planned.items())
        return [cell for cell in found if cell is not None]

    def all_cells(self, advance: Callable[[], None] = lambda: None) -> list[Cell]:
        return [self._cell(key, fingerprint, advance) for key, fingerprint in self.planned.items()]

    def _cell(self, key: Key, fingerprint: str, advance: Callable[[], None]) -> Cell:
        known = self.store.get(key, fingerprint)
        if known is not None:
            return known
        self.announce(f"{key.data}, run {key.seed}, {key.task}: {TITLES.get(key.method, key.method)}")
        load = measuring.load()
        about, lines = self._compute(key)
        cell = Cell(key, fingerprint, about | {"load": load}, lines)
        self.store.put(cell)
        advance()
        return cell

    def _compute(self, key: Key) -> tuple[dict[str, Any], pd.DataFrame]:
        if key.task == GRID:
            return {"grid": Split.of(key.data, key.seed, self.plan.train_rows).grid(key.seed)}, pd.DataFrame()
        context = self._current(key.data, key.seed)
        functions = {TABLE_1: table_1, ROBUSTNESS: robustness, EXAMPLES: example, ABLATION: ablated}
        if key.task in functions:
            return functions[key.task](context, key.method)
        if key.task == REEXPLAINED:
            return self._reexplained(context, key)
        return rival(context, key) if key.method in RIVALS else own_method(context, key.task, key.method)

    def _current(self, data: str, seed: int) -> RunContext:
        """Return the context of a dataset and run; only the latest is kept in memory."""
        if self.latest is None or (self.latest.data, self.latest.seed) != (data, seed):
            self.latest = self._context(data, seed)
        return self.latest

    def _context(self, data: str, seed: int) -> RunContext:
        grids = [cell.about["grid"] for cell in (self._grid(data, one) for one in self.plan.seeds) if cell is not None]
        return RunContext(self.plan, data, seed, best(grids))

    def _grid(self, data: str, seed: int) -> Cell | None:
        key = next(key for key in self.planned if (key.data, key.task, key.seed) == (data, GRID, seed))
        return self.store.get(key, self.planned[key])

    def _reexplained(self, context: RunContext, key: Key) -> tuple[dict[str, Any], pd.DataFrame]:
        if key.method not in RIVALS:
            return reexplained(context, key.method)
        first = Key(key.data, key.model, ROBUSTNESS_TARGET, key.method, key.seed)
        known = self.store.get(first, self.planned[first])
        return rival_reexplained(context, key, known.about["counterfactuals"] if known is not None else [])


def table_1(context: RunContext, method: str) -> tuple[dict[str, Any], pd.DataFrame]:
    """Architectures, accuracies of the black box, losses of the autoencoder."""
    state, split = context.ours.explainer.state_, context.split
    scale = context.scorer("favourable").scale
    losses = {}
    for part, X in split.X.items():
        codes = scale.codes(X.iloc[:20_000])
        matrix = state.search.codec.encode(codes)
        losses[part] = float(reconstruction_losses(state.search.autoencoder, state.search.codec, matrix).mean())
    network = state.search.autoencoder
    sizes = [network.encoder[0].weight.shape[0]] + [layer.weight.shape[1] for layer in (*network.encoder, *network.decoder)]
    return {
        "network": str(context.network),
        "inputs": int(context.model[-1].coefs_[0].shape[0]),
        "weighted": class_weights(split.y["training"]) is not None,
        "quality": {part: split.quality(context.model, part) for part in split.X},
        "autoencoder": sizes,
        "losses": losses,
        "setup": context.ours.setup,
        "queries": {name: len(context.setting(name).rows) for name in TARGETS},
        "iterations": intersection_iterations(context),
        "reconstruction": reconstruction(context),
    }, pd.DataFrame()


def reconstruction(context: RunContext) -> dict[str, float]:
    """Return how far queries are from their reconstruction by the autoencoder."""
    setting, scale, state = (
        context.setting("favourable"),
        context.scorer("favourable").scale,
        context.ours.explainer.state_.search,
    )
    matrix = state.codec.encode(scale.codes(setting.rows))
    rebuilt = scale.table.frame(state.codec.decode(state.autoencoder.decode(state.autoencoder.encode(matrix))))
    return {
        "undivided": float(undivided_proximity(scale, setting.rows, rebuilt).mean()),
        "n_changed": float(metrics.features_changed(scale, setting.rows, rebuilt).mean()),
    }


def intersection_iterations(context: RunContext, tolerance: float = 1e-3, most: int = 200) -> dict[str, float]:
    """Return how many rounds it takes to project in turn on the prediction's and each feature's hyperplane, like the paper.

    A point counts as projected within `tolerance`, in standard deviations of a latent coordinate, of both hyperplanes.
    """
    setting, state = context.setting("favourable"), context.ours.explainer.state_.search
    latent = state.autoencoder.encode(state.codec.encode(context.scorer("favourable").scale.codes(setting.rows.iloc[:50])))
    normal, offset = (values[0] for values in state.hyperplanes.of_class(np.array([setting.target])))
    rounds = []
    for n, b in zip(
        *(values[state.hyperplanes.features] for values in (state.hyperplanes.normals, state.hyperplanes.offsets)),
        strict=True,
    ):
        if np.linalg.norm(n) > 1e-9:
            rounds += list(_rounds(latent, (normal, offset), (n, b), tolerance * latent.std(), most))
    counts = np.array(rounds)
    return {"within_20": float((counts <= 20).mean()), "median": float(np.median(counts)), "largest": float(counts.max())}


def _rounds(points: np.ndarray, first: Any, second: Any, tolerance: float, most: int) -> np.ndarray:
    planes = [(n / np.linalg.norm(n), b / np.linalg.norm(n)) for n, b in (first, second)]
    counts = np.full(len(points), most)
    for count in range(1, most + 1):
        for n, b in planes:
            points = points - np.outer(points @ n + b, n)
        n, b = planes[0]
        there = np.abs(points @ n + b) <= tolerance
        counts = np.where(there & (counts == most), count, counts)
        if there.all():
            break
    return counts


def own_method(context: RunContext, target: str, method: str) -> tuple[dict[str, Any], pd.DataFrame]:
    """CE1, CE2, CE3 or a default method: all queries in one call, and some one at a time for the time per explanation."""
    setting, scorer, ours = context.setting(target), context.scorer(target), context.ours
    about = {"setup": ours.setup}
    if method == CE2:
        parts = [
            scorer.score(explained.records(seconds), FREE).assign(feature=feature)
            for feature, explained, seconds in ours.one_feature_each(setting, context.plan.timed_rows)
        ]
        return about, pd.concat(parts, ignore_index=True)
    seconds = ours.seconds(setting, method, context.plan.timed_rows)
    lines = scorer.score(ours.explain(setting, method).records(seconds), FROZEN if method == CE3 else FREE)
    if method in (CE1, CE3):
        about["within_20"] = within_steps(context, setting, method)
    return about, lines


def within_steps(context: RunContext, setting: Setting, method: str, steps: int = 20) -> float:
    """Return the share of queries that need at most `steps` steps."""
    options = with_engine("paper", STEP, eps_max=steps * STEP)
    return float(context.ours.explain(setting, method, **options).found.mean())


def rival(context: RunContext, key: Key) -> tuple[dict[str, Any], pd.DataFrame]:
    """Run a rival in its own process, one query at a time, until its time is used."""
    setting, entry = context.setting(key.task), find(key.method)
    limits = context.plan.slow_limits if entry.costly else context.plan.limits
    result = run_system(entry, context.folder(setting, key.task), len(setting.rows), limits)
    about = {name: value for name, value in vars(result).items() if name != "records"}
    lines = context.scorer(key.task).score(result.records, FREE)
    if (key.data, key.task) == (ROBUSTNESS_DATA, ROBUSTNESS_TARGET):
        valid = lines["valid"].to_numpy() == 1
        about["counterfactuals"] = [record for record, good in zip(result.records, valid, strict=True) if good]
        lines = with_recourse(context, lines, about["counterfactuals"])
    return about, lines


def with_recourse(context: RunContext, lines: pd.DataFrame, records: list[dict[str, Any]]) -> pd.DataFrame:
    """Add the robustness of recourse to the lines of valid counterfactuals."""
    if records:
        pairs = pairs_of(context, records)
        for name, values in recourse(context, pairs).items():
            lines.loc[[record["position"] for record in records], name] = values
    return lines


def pairs_of(context: RunContext, records: list[dict[str, Any]]) -> reexplain.Pairs:
    setting, scorer = context.setting(ROBUSTNESS_TARGET), context.scorer(ROBUSTNESS_TARGET)
    rows = setting.rows.iloc[[record["position"] for record in records]].reset_index(drop=True)
    return reexplain.Pairs(rows, pd.concat([scorer.read(record)[0].iloc[:1] for record in records], ignore_index=True))


def recourse(context: RunContext, pairs: reexplain.Pairs) -> dict[str, np.ndarray]:
    """Return the share of perturbed inputs for which the same recourse still reaches the target."""
    scale, setting = context.scorer(ROBUSTNESS_TARGET).scale, context.setting(ROBUSTNESS_TARGET)
    options: dict[str, Any] = {"rows": pairs.queries, "seed": 10_000 + context.seed}
    return {
        name: metrics.robustness(setting.model, scale, pairs.counterfactuals, setting.target, size=size, **options)
        for name, size in NOISE.items()
    }


def robust_options(name: str) -> tuple[str, dict[str, Any]]:
    """Return the method and options of CE1 with a step and margin, or of the default with `robust`."""
    kind, *values = name.split("-")
    if kind == "robust":
        return "closest", {"robust": float(values[0])}
    if kind == "closest":
        return "closest", {}
    step, margin = float(values[1]), int(values[3])
    return CE1, with_engine("paper", step, eps_max=LARGEST_STEP + margin * step) | {"margin": margin * step}


def robustness(context: RunContext, name: str) -> tuple[dict[str, Any], pd.DataFrame]:
    """The first reading: apply the same recourse after perturbing the changed numbers of the input."""
    setting, scorer = context.setting(ROBUSTNESS_TARGET), context.scorer(ROBUSTNESS_TARGET)
    method, options = robust_options(name)
    records = context.ours.explain(setting, method, **options).records({})
    lines = scorer.score(records, FREE)
    valid = [record for record, good in zip(records, lines["valid"] == 1, strict=True) if good]
    return {}, with_recourse(context, lines, valid)


def reexplained(context: RunContext, name: str) -> tuple[dict[str, Any], pd.DataFrame]:
    """The second reading: explain the perturbed input again with the same method of ours."""
    setting, scorer, ours = context.setting(ROBUSTNESS_TARGET), context.scorer(ROBUSTNESS_TARGET), context.ours
    method, options = robust_options(name)

    def explain(rows: pd.DataFrame) -> tuple[np.ndarray, pd.DataFrame]:
        explained = ours.explain(replace(setting, rows=rows), method, **options)
        found = np.flatnonzero(explained.found)
        return found, typed(explained.counterfactuals.iloc[found], rows)

    positions, counterfactuals = explain(setting.rows)
    first = reexplain.Pairs(setting.rows.iloc[positions].reset_index(drop=True), counterfactuals)
    return {}, reexplain.reexplained(scorer, first, explain)


def typed(counterfactuals: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    return counterfactuals.astype(like.dtypes.to_dict()).reset_index(drop=True)


def rival_reexplained(context: RunContext, key: Key, records: list[dict[str, Any]]) -> tuple[dict[str, Any], pd.DataFrame]:
    """The second reading for a rival: explain the perturbed inputs in its process."""
    if not records:
        return {"failure": "no counterfactual to perturb"}, pd.DataFrame()
    setting, scorer, entry = context.setting(ROBUSTNESS_TARGET), context.scorer(ROBUSTNESS_TARGET), find(key.method)
    tried: list[int] = []

    def explain(rows: pd.DataFrame) -> tuple[np.ndarray, pd.DataFrame]:
        folder = context.folder(replace(setting, rows=rows), f"again-{key.method}")
        result = run_system(entry, folder, len(rows), context.plan.limits)
        tables = {record["position"]: scorer.read(record)[0] for record in result.records}
        tried.append(sum(record["status"] != NOT_TRIED for record in result.records))
        found = [position for position, table in tables.items() if table is not None]
        first = [tables[position].iloc[:1] for position in found]
        return np.array(found, dtype=int), pd.concat(first, ignore_index=True) if first else rows.iloc[:0]

    lines = reexplain.reexplained(scorer, pairs_of(context, records), explain)
    out_of_time = np.flatnonzero(lines["already"].to_numpy() == 0)[sum(tried) :]
    return {"tried": sum(tried)}, lines.drop(index=out_of_time).reset_index(drop=True)


def example(context: RunContext, method: str) -> tuple[dict[str, Any], pd.DataFrame]:
    of_paper = examples.EXAMPLES[context.data]
    return {"example": examples.example(context.ours, context.setting(of_paper.target), of_paper)}, pd.DataFrame()


def ablated(context: RunContext, method: str) -> tuple[dict[str, Any], pd.DataFrame]:
    setting = context.setting("favourable")
    return {"ablation": ablation.ablate(context.ours, setting, context.plan.ablated_rows)}, pd.DataFrame()


def grid_table(cells: list[Cell], data: str) -> list[list[float]]:
    """Return AUC, balanced accuracy and accuracy on validation rows of every network, averaged over runs."""
    grids = [cell.about["grid"] for cell in cells if (cell.key.data, cell.key.task) == (data, GRID)]
    names = ("auc", "balanced_accuracy", "accuracy")
    return [[float(np.mean([grid[k][name] for grid in grids])) for name in names] for k in range(len(NETWORKS))]
