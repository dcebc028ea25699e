"""One cell after the other: a dataset and run at a time, each result a file of its own."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import measuring
from benchmarks.asking import NOT_TRIED, ask_all
from benchmarks.paper import ablation, again, examples
from benchmarks.paper.networks import GRID as NETWORKS
from benchmarks.paper.networks import TARGETS, Network, Split, best
from benchmarks.paper.ours import Ours, with_engine
from benchmarks.paper.plan import (
    ABLATION,
    AGAIN,
    CE1,
    CE2,
    CE3,
    EXAMPLES,
    GRID,
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
from benchmarks.scoring import Judge, undivided_proximity
from benchmarks.setting import FREE, FROZEN, Setting, class_weights
from benchmarks.store import Cell, Key, Store
from fasterce import metrics
from fasterce.latent.autoencoder import reconstruction_losses

MEASURED = ("n_changed", "gower_l1", "proximity", "undivided", "violations")
# Noise of the paper's robustness in standard deviations; the paper does not give its size.
NOISE = {"recourse": 0.05, "recourse_large": 0.25}
# The paper's ε_max; a margin needs room beyond it.
LARGEST_STEP = 4.0
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Trial:
    """A dataset and run: one black box, one fitted explainer, and the queries of both targets."""

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

    def judge(self, target: str) -> Judge:
        return Judge(self.setting(target), measured=MEASURED)

    def folder(self, setting: Setting, name: str) -> Path:
        """Return the folder a rival's process reads its problem from."""
        folder = self.plan.work / f"{self.data}-{self.seed}-{name}"
        if folder not in self.written:
            setting.dump(folder)
            self.written.add(folder)
        return folder


class PaperRun:
    """The cells of a plan: read where they are, else made."""

    def __init__(self, plan: PaperPlan, store: Store, tell: Tell = lambda text: None) -> None:
        self.plan, self.store, self.tell = plan, store, tell
        self.wanted = {key: plan.made_by(key) for key in plan.cells()}
        self.latest: Trial | None = None

    def known(self) -> list[Cell]:
        found = (self.store.get(key, made_by) for key, made_by in self.wanted.items())
        return [cell for cell in found if cell is not None]

    def all_cells(self, advance: Callable[[], None] = lambda: None) -> list[Cell]:
        return [self._cell(key, made_by, advance) for key, made_by in self.wanted.items()]

    def _cell(self, key: Key, made_by: str, advance: Callable[[], None]) -> Cell:
        known = self.store.get(key, made_by)
        if known is not None:
            return known
        self.tell(f"{key.data}, run {key.seed}, {key.question}: {TITLES.get(key.method, key.method)}")
        load = measuring.load()
        about, lines = self._made(key)
        cell = Cell(key, made_by, about | {"load": load}, lines)
        self.store.put(cell)
        advance()
        return cell

    def _made(self, key: Key) -> tuple[dict[str, Any], pd.DataFrame]:
        if key.question == GRID:
            return {"grid": Split.of(key.data, key.seed, self.plan.train_rows).grid(key.seed)}, pd.DataFrame()
        trial = self._current(key.data, key.seed)
        makers = {TABLE_1: table_1, ROBUSTNESS: robustness, EXAMPLES: example, ABLATION: ablated}
        if key.question in makers:
            return makers[key.question](trial, key.method)
        if key.question == AGAIN:
            return self._again(trial, key)
        return rival(trial, key) if key.method in RIVALS else family(trial, key.question, key.method)

    def _current(self, data: str, seed: int) -> Trial:
        """Return the trial, and forget the one before it."""
        if self.latest is None or (self.latest.data, self.latest.seed) != (data, seed):
            self.latest = self._trial(data, seed)
        return self.latest

    def _trial(self, data: str, seed: int) -> Trial:
        grids = [cell.about["grid"] for cell in (self._grid(data, one) for one in self.plan.seeds) if cell is not None]
        return Trial(self.plan, data, seed, best(grids))

    def _grid(self, data: str, seed: int) -> Cell | None:
        key = next(key for key in self.wanted if (key.data, key.question, key.seed) == (data, GRID, seed))
        return self.store.get(key, self.wanted[key])

    def _again(self, trial: Trial, key: Key) -> tuple[dict[str, Any], pd.DataFrame]:
        if key.method not in RIVALS:
            return explained_again(trial, key.method)
        first = Key(key.data, key.box, ROBUSTNESS_TARGET, key.method, key.seed)
        known = self.store.get(first, self.wanted[first])
        return rival_again(trial, key, known.about["answers"] if known is not None else [])


def table_1(trial: Trial, method: str) -> tuple[dict[str, Any], pd.DataFrame]:
    """Architectures, accuracies of the black box, losses of the autoencoder."""
    state, split = trial.ours.explainer.state_, trial.split
    scale = trial.judge("favourable").scale
    losses = {}
    for part, X in split.X.items():
        codes = scale.codes(X.iloc[:20_000])
        matrix = state.search.codec.encode(codes)
        losses[part] = float(reconstruction_losses(state.search.autoencoder, state.search.codec, matrix).mean())
    network = state.search.autoencoder
    sizes = [network.encoder[0].weight.shape[0]] + [layer.weight.shape[1] for layer in (*network.encoder, *network.decoder)]
    return {
        "network": str(trial.network),
        "inputs": int(trial.model[-1].coefs_[0].shape[0]),
        "weighted": class_weights(split.y["training"]) is not None,
        "quality": {part: split.quality(trial.model, part) for part in split.X},
        "autoencoder": sizes,
        "losses": losses,
        "setup": trial.ours.setup,
        "queries": {name: len(trial.setting(name).rows) for name in TARGETS},
        "iterations": intersection_iterations(trial),
        "reconstruction": reconstruction(trial),
    }, pd.DataFrame()


def reconstruction(trial: Trial) -> dict[str, float]:
    """Return how far queries are from what the autoencoder makes of them, before anything is explained."""
    setting, scale, state = trial.setting("favourable"), trial.judge("favourable").scale, trial.ours.explainer.state_.search
    matrix = state.codec.encode(scale.codes(setting.rows))
    rebuilt = scale.table.frame(state.codec.decode(state.autoencoder.decode(state.autoencoder.encode(matrix))))
    return {
        "undivided": float(undivided_proximity(scale, setting.rows, rebuilt).mean()),
        "n_changed": float(metrics.features_changed(scale, setting.rows, rebuilt).mean()),
    }


def intersection_iterations(trial: Trial, tolerance: float = 1e-3, most: int = 200) -> dict[str, float]:
    """Project in turn on the prediction's and each feature's hyperplane, as the paper does: how many rounds does it take?

    Rounds until a point is within `tolerance`, in standard deviations of a latent coordinate, of both hyperplanes.
    """
    setting, state = trial.setting("favourable"), trial.ours.explainer.state_.search
    latent = state.autoencoder.encode(state.codec.encode(trial.judge("favourable").scale.codes(setting.rows.iloc[:50])))
    normal, offset = (values[0] for values in state.hyperplanes.of_class(np.array([setting.wanted])))
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


def family(trial: Trial, target: str, method: str) -> tuple[dict[str, Any], pd.DataFrame]:
    """CE1, CE2, CE3 or a method of the default: all queries in one call, some alone for the time."""
    setting, judge, ours = trial.setting(target), trial.judge(target), trial.ours
    about = {"setup": ours.setup}
    if method == CE2:
        parts = [
            judge.lines(explained.records(seconds), FREE).assign(feature=feature)
            for feature, explained, seconds in ours.one_feature_each(setting, trial.plan.timed_rows)
        ]
        return about, pd.concat(parts, ignore_index=True)
    seconds = ours.seconds(setting, method, trial.plan.timed_rows)
    lines = judge.lines(ours.explain(setting, method).records(seconds), FROZEN if method == CE3 else FREE)
    if method in (CE1, CE3):
        about["within_20"] = within_steps(trial, setting, method)
    return about, lines


def within_steps(trial: Trial, setting: Setting, method: str, steps: int = 20) -> float:
    """Return the share of queries that need at most so many steps."""
    options = with_engine("paper", STEP, eps_max=steps * STEP)
    return float(trial.ours.explain(setting, method, **options).found.mean())


def rival(trial: Trial, key: Key) -> tuple[dict[str, Any], pd.DataFrame]:
    """A rival in its own process, one query at a time, as many as its time allows."""
    setting, entry = trial.setting(key.question), find(key.method)
    limits = trial.plan.slow_limits if entry.costly else trial.plan.limits
    told = ask_all(entry, trial.folder(setting, key.question), len(setting.rows), limits)
    about = {name: value for name, value in vars(told).items() if name != "records"}
    lines = trial.judge(key.question).lines(told.records, FREE)
    if (key.data, key.question) == (ROBUSTNESS_DATA, ROBUSTNESS_TARGET):
        valid = lines["valid"].to_numpy() == 1
        about["answers"] = [record for record, good in zip(told.records, valid, strict=True) if good]
        lines = with_recourse(trial, lines, about["answers"])
    return about, lines


def with_recourse(trial: Trial, lines: pd.DataFrame, records: list[dict[str, Any]]) -> pd.DataFrame:
    """Add the robustness of recourse to the lines of valid counterfactuals."""
    if records:
        pairs = pairs_of(trial, records)
        for name, values in recourse(trial, pairs).items():
            lines.loc[[record["position"] for record in records], name] = values
    return lines


def pairs_of(trial: Trial, records: list[dict[str, Any]]) -> again.Pairs:
    setting, judge = trial.setting(ROBUSTNESS_TARGET), trial.judge(ROBUSTNESS_TARGET)
    rows = setting.rows.iloc[[record["position"] for record in records]].reset_index(drop=True)
    return again.Pairs(rows, pd.concat([judge.read(record)[0].iloc[:1] for record in records], ignore_index=True))


def recourse(trial: Trial, pairs: again.Pairs) -> dict[str, np.ndarray]:
    """Return the share of perturbed inputs for which the same recourse still reaches the target."""
    scale, setting = trial.judge(ROBUSTNESS_TARGET).scale, trial.setting(ROBUSTNESS_TARGET)
    options: dict[str, Any] = {"rows": pairs.queries, "seed": 10_000 + trial.seed}
    return {
        name: metrics.robustness(setting.model, scale, pairs.counterfactuals, setting.wanted, size=size, **options)
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


def robustness(trial: Trial, name: str) -> tuple[dict[str, Any], pd.DataFrame]:
    """The first reading: the same recourse after the changed numbers of the input were perturbed."""
    setting, judge = trial.setting(ROBUSTNESS_TARGET), trial.judge(ROBUSTNESS_TARGET)
    method, options = robust_options(name)
    records = trial.ours.explain(setting, method, **options).records({})
    lines = judge.lines(records, FREE)
    valid = [record for record, good in zip(records, lines["valid"] == 1, strict=True) if good]
    return {}, with_recourse(trial, lines, valid)


def explained_again(trial: Trial, name: str) -> tuple[dict[str, Any], pd.DataFrame]:
    """The second reading: the perturbed input explained again by the same method of ours."""
    setting, judge, ours = trial.setting(ROBUSTNESS_TARGET), trial.judge(ROBUSTNESS_TARGET), trial.ours
    method, options = robust_options(name)

    def explain(rows: pd.DataFrame) -> tuple[np.ndarray, pd.DataFrame]:
        explained = ours.explain(replace(setting, rows=rows), method, **options)
        found = np.flatnonzero(explained.found)
        return found, typed(explained.counterfactuals.iloc[found], rows)

    positions, counterfactuals = explain(setting.rows)
    first = again.Pairs(setting.rows.iloc[positions].reset_index(drop=True), counterfactuals)
    return {}, again.explained_again(judge, first, explain)


def typed(counterfactuals: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    return counterfactuals.astype(like.dtypes.to_dict()).reset_index(drop=True)


def rival_again(trial: Trial, key: Key, records: list[dict[str, Any]]) -> tuple[dict[str, Any], pd.DataFrame]:
    """The second reading for a rival: its process explains the perturbed inputs."""
    if not records:
        return {"failure": "no counterfactual to perturb"}, pd.DataFrame()
    setting, judge, entry = trial.setting(ROBUSTNESS_TARGET), trial.judge(ROBUSTNESS_TARGET), find(key.method)
    tried: list[int] = []

    def explain(rows: pd.DataFrame) -> tuple[np.ndarray, pd.DataFrame]:
        folder = trial.folder(replace(setting, rows=rows), f"again-{key.method}")
        told = ask_all(entry, folder, len(rows), trial.plan.limits)
        tables = {record["position"]: judge.read(record)[0] for record in told.records}
        tried.append(sum(record["status"] != NOT_TRIED for record in told.records))
        found = [position for position, table in tables.items() if table is not None]
        answers = [tables[position].iloc[:1] for position in found]
        return np.array(found, dtype=int), pd.concat(answers, ignore_index=True) if answers else rows.iloc[:0]

    lines = again.explained_again(judge, pairs_of(trial, records), explain)
    out_of_time = np.flatnonzero(lines["already"].to_numpy() == 0)[sum(tried) :]
    return {"tried": sum(tried)}, lines.drop(index=out_of_time).reset_index(drop=True)


def example(trial: Trial, method: str) -> tuple[dict[str, Any], pd.DataFrame]:
    wanted = examples.EXAMPLES[trial.data]
    return {"example": examples.example(trial.ours, trial.setting(wanted.target), wanted)}, pd.DataFrame()


def ablated(trial: Trial, method: str) -> tuple[dict[str, Any], pd.DataFrame]:
    setting = trial.setting("favourable")
    return {"ablation": ablation.ablate(trial.ours, setting, trial.plan.ablated_rows)}, pd.DataFrame()


def grid_table(cells: list[Cell], data: str) -> list[list[float]]:
    """Return AUC, balanced accuracy and accuracy on validation rows of every network, averaged over runs."""
    grids = [cell.about["grid"] for cell in cells if (cell.key.data, cell.key.question) == (data, GRID)]
    names = ("auc", "balanced_accuracy", "accuracy")
    return [[float(np.mean([grid[k][name] for grid in grids])) for name in names] for k in range(len(NETWORKS))]
