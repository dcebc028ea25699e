"""Realism of the method `realistic` beside NICE (plausibility): `python -m benchmarks.realism`.

No system optimises these measures. For each dataset and model, rows that the model refuses are explained; the accepted rows
that no system has seen count as real. Only the public interface of the library is used apart from the ablation,
so two versions can be compared: run the command with the other version first, then with `--against` its JSON.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

from benchmarks import measuring, venvs
from benchmarks.yardstick import cases, tables
from fasterce import FasterCE
from fasterce.latent.regions import Regions
from fasterce.latent.runtime import Layer

HERE = Path(__file__).parent
# The method was tuned on these and not on the others.
TUNED = ("breast_cancer", "wine", "mixed10", "orange_juice", "carseats", "credit", "penguins", "titanic")
HELD_BACK = ("digits", "mixed30", "default", "staff")
MODELS = ("mlp", "xgboost", "random_forest", "logistic", "svc")
SYSTEMS = ("fasterce", "fasterce, noise", "NICE")
# Measure, whether lower is better, and what it is.
MEASURES: dict[str, tuple[bool, str]] = {
    "distance": (True, "gower distance to the query"),
    "nearest": (True, "distance to the nearest unseen real row, relative to that between such rows"),
    "nearest5": (True, "the same for the mean of the five nearest"),
    "nearest_training": (True, "the same for the nearest training row: a copy has 0"),
    "inliers": (False, "share of inliers by the local outlier factor of real rows"),
    "auc": (True, "AUC of a random forest that tells counterfactuals from real rows, cross-validated"),
    "identities": (False, "share that keep every sum a = b + c or a = b - c of the training rows; 1 without any"),
    "changes": (True, "columns changed"),
    "droppable": (True, "share with a change that the target does not need"),
}
# Rows whose identities are checked, and how exactly they hold.
IDENTITY_ROWS, EXACT = 300, 1e-6


@dataclass
class RealismSetting:
    """A case, the queries the model refuses, and the unseen rows it accepts."""

    case: cases.Case
    rows: int
    seed: int = 0

    def __post_init__(self) -> None:
        refused = np.flatnonzero(self.case.predictions == 0)[: self.rows]
        self.queries = self.case.rows.iloc[refused].reset_index(drop=True)
        self.query_codes = self.case.queries[refused]
        self.real = self.case.queries[self.case.predictions == 1]
        self.training = self.case.training[self.case.model.predict(self.case.X_train) == 1]

    # The interface that NICE's autoencoder needs.
    @property
    def numeric(self) -> list[int]:
        return np.flatnonzero(self.case.numeric).tolist()

    @property
    def categorical(self) -> list[int]:
        return np.flatnonzero(~self.case.numeric).tolist()

    def categories(self, j: int) -> list[Any]:
        return list(self.case.schema.features[j].categories)

    def points(self, codes: np.ndarray) -> np.ndarray:
        """Return rows as points whose Manhattan distance is the gower distance."""
        parts = [(codes / self.case.span)[:, self.numeric]]
        parts += [np.eye(len(self.categories(j)))[codes[:, j].astype(int)] / 2 for j in self.categorical]
        return np.hstack(parts)

    @cached_property
    def neighbours(self) -> tuple[NearestNeighbors, float]:
        return _neighbours(self.points(self.real))

    @cached_property
    def training_neighbours(self) -> tuple[NearestNeighbors, float]:
        return _neighbours(self.points(self.training))

    @cached_property
    def outliers(self) -> LocalOutlierFactor:
        real = self.points(np.concatenate([self.real, self.training]))
        return LocalOutlierFactor(min(20, len(real) - 1), metric="manhattan", novelty=True).fit(real)

    @cached_property
    def identities(self) -> list[tuple[int, int, int]]:
        """Numbers a, b, c with a = b + c in all training rows, none of them constant."""
        codes = self.case.training[:IDENTITY_ROWS]
        varies = [j for j in self.numeric if np.ptp(codes[:, j]) > 0]
        found = []
        for b in varies:
            for c in (c for c in varies if c > b):
                sums = codes[:, b] + codes[:, c]
                found += [(a, b, c) for a in varies if a not in (b, c) and np.abs(codes[:, a] - sums).max() < EXACT]
        return found


def _neighbours(points: np.ndarray) -> tuple[NearestNeighbors, float]:
    """Return a search for the nearest of these points, and how far these are from each other."""
    search = NearestNeighbors(metric="manhattan").fit(points)
    return search, max(float(search.kneighbors(points, 2)[0][:, 1].mean()), 1e-9)


def measure(setting: RealismSetting, codes: np.ndarray) -> dict[str, float]:
    """Return all measures of counterfactuals, one per query."""
    points, changed = setting.points(codes), codes != setting.query_codes
    (near, usual), (seen, usual_seen) = setting.neighbours, setting.training_neighbours
    kept = [np.abs(codes[:, a] - codes[:, b] - codes[:, c]) < EXACT for a, b, c in setting.identities]
    return {
        "distance": float(setting.case.gower(codes, setting.query_codes).mean()),
        "nearest": float(near.kneighbors(points, 1)[0].mean() / usual),
        "nearest5": float(near.kneighbors(points, min(5, len(setting.real)))[0].mean() / usual),
        "nearest_training": float(seen.kneighbors(points, 1)[0].mean() / usual_seen),
        "inliers": float((setting.outliers.predict(points) == 1).mean()),
        "auc": discriminator_auc(points, setting.points(setting.real), setting.seed),
        "identities": float(np.all(kept, axis=0).mean()) if kept else 1.0,
        "changes": float(changed.sum(axis=1).mean()),
        "droppable": float(droppable(setting, codes).mean()),
    }


def discriminator_auc(found: np.ndarray, real: np.ndarray, seed: int) -> float:
    """Return how well a random forest tells counterfactuals from real rows: 0.5 for not at all."""
    points = np.concatenate([found, real])
    label = np.repeat([1, 0], [len(found), len(real)])
    forest = RandomForestClassifier(100, class_weight="balanced", min_samples_leaf=2, random_state=seed)
    folds = StratifiedKFold(min(5, len(found), len(real)), shuffle=True, random_state=seed)
    return float(roc_auc_score(label, cross_val_predict(forest, points, label, cv=folds, method="predict_proba")[:, 1]))


def droppable(setting: RealismSetting, codes: np.ndarray) -> np.ndarray:
    """Return which counterfactuals keep the target if one of several changes is reverted."""
    query, feature = np.nonzero((codes != setting.query_codes) & ((codes != setting.query_codes).sum(axis=1) > 1)[:, None])
    fewer = codes[query]
    fewer[np.arange(len(query)), feature] = setting.query_codes[query, feature]
    without = setting.case.predict(fewer) == 1
    return np.bincount(query[without], minlength=len(codes)) > 0


def ours(setting: RealismSetting, explainer: FasterCE, distance: str) -> np.ndarray:
    """Return our counterfactuals as codes; the query itself where there is none."""
    found = explainer.explain(setting.queries, "realistic", target=1, distance=distance)
    codes = setting.query_codes.copy()
    if len(found.counterfactuals):
        codes[found.to_frame()["query"].to_numpy()] = setting.case.codes(found.counterfactuals)
    return codes


def nice(setting: RealismSetting) -> np.ndarray:
    """Return the counterfactuals of NICE with the reward for plausibility, installing it if needed."""
    environment = Path(venvs.python_of("nice")).parents[1]
    folder = str(next(environment.glob("lib/python*/site-packages")))
    if folder not in sys.path:
        sys.path.append(folder)
    rival = import_module("benchmarks.rivals.nice")
    case = setting.case
    codes = case.training
    system = rival.NICE(
        predict_fn=lambda rows: probabilities(case, np.asarray(rows, dtype=float)),
        X_train=codes,
        cat_feat=setting.categorical,
        num_feat=setting.numeric,
        y_train=np.asarray(case.model.predict(case.X_train)),
        optimization="plausibility",
        justified_cf=True,
        auto_encoder=rival.ReconstructionError(setting, codes),
    )
    return np.concatenate([system.explain(row[None], target_class=[1]) for row in setting.query_codes])


def probabilities(case: cases.Case, codes: np.ndarray) -> np.ndarray:
    """Return probabilities of both classes; those of a logistic function where the model has none."""
    frame = case.frame(codes)
    if hasattr(case.model, "predict_proba"):
        return np.asarray(case.model.predict_proba(frame))
    second = 1 / (1 + np.exp(-np.clip(case.model.decision_function(frame), -50, 50)))
    return np.stack([1 - second, second], axis=1)


def with_noise(explainer: FasterCE, seed: int = 0) -> FasterCE:
    """Return the explainer with random numbers in place of autoencoder, hyperplanes, regions and prototypes."""
    rng = np.random.default_rng(seed)

    def drawn(values: np.ndarray) -> np.ndarray:
        return rng.normal(0.0, max(float(values.std()), 1e-3), values.shape)

    state = explainer.state_.search
    network = state.autoencoder
    parts = {
        name: tuple(Layer(drawn(layer.weight), drawn(layer.bias)) for layer in getattr(network, name))
        for name in ("encoder", "decoder")
    }
    planes = replace(state.hyperplanes, normals=drawn(state.hyperplanes.normals), offsets=drawn(state.hyperplanes.offsets))
    noisy = replace(
        state,
        autoencoder=replace(network, **parts),
        hyperplanes=planes,
        regions=Regions.whole(planes),
        prototypes=drawn(state.prototypes),
    )
    changed = FasterCE.__new__(FasterCE)
    changed.__dict__.update(explainer.__dict__)
    changed.state_ = replace(explainer.state_, search=noisy)
    return changed


def cell(data: str, model: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure all systems on one dataset and model."""
    size = min(options.train_rows, int(0.6 * len(tables.load(data).X)))
    setting = RealismSetting(cases.make(data, model, size), options.rows)
    found: dict[str, Any] = {"data": data, "model": model, "queries": len(setting.query_codes), "real": len(setting.real)}
    if min(len(setting.query_codes), len(setting.real)) < options.least:
        return found | {"error": "too few rows"}
    explainer = FasterCE(setting.case.model, setting.case.schema, progress=False).fit(setting.case.X_train)
    explain: dict[str, Callable[[], np.ndarray]] = {
        "fasterce": lambda: ours(setting, explainer, options.distance),
        "fasterce, noise": lambda: ours(setting, with_noise(explainer), options.distance),
        "NICE": lambda: nice(setting),
    }
    systems: dict[str, dict[str, float]] = {}
    codes = {}
    for name in options.systems:
        started = process_time()
        codes[name] = explain[name]()
        systems[name] = measure(setting, codes[name]) | {"seconds": process_time() - started}
        systems[name]["valid"] = float((setting.case.predict(codes[name]) == 1).mean())
    if "fasterce" in codes and "fasterce, noise" in codes:
        systems["fasterce, noise"]["same"] = float((codes["fasterce"] == codes["fasterce, noise"]).all(axis=1).mean())
    return found | {"systems": systems}


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    cells = [(data, model) for data in options.datasets or (*TUNED, *HELD_BACK) for model in options.models or MODELS]
    before = json.loads(options.against.read_text(encoding="utf-8"))["cells"] if options.against else []
    found: list[dict[str, Any]] = []
    for k, (data, model) in enumerate(cells, 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(cell(data, model, options))
        print(f"[{k}/{len(cells)}] {data}, {model}: {found[-1].get('error', 'done')}", file=sys.stderr, flush=True)
        write(found, before, options)
    print(options.out.read_text(encoding="utf-8"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.realism", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--datasets", nargs="+", choices=[*TUNED, *HELD_BACK, *tables.CORRELATED], help="all by default but those generated"
    )
    parser.add_argument("--models", nargs="+", choices=list(cases.MODELS), help=f"by default {', '.join(MODELS)}")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--rows", type=int, default=30, help="queries per cell")
    parser.add_argument("--least", type=int, default=10, help="fewest queries and real rows of a cell")
    parser.add_argument("--train-rows", type=int, default=2000, help="most training rows")
    parser.add_argument("--distance", default="gower")
    parser.add_argument("--against", type=Path, help="the JSON of another version of the library")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "realism.md", help="the JSON goes beside it")
    return parser


def write(found: list[dict[str, Any]], before: list[dict[str, Any]], options: argparse.Namespace) -> None:
    """Write what was measured so far."""
    options.out.parent.mkdir(parents=True, exist_ok=True)
    everything = {"machine": measuring.facts(), "cells": found}
    options.out.with_suffix(".json").write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
    options.out.write_text(page(found, before, options.rows), encoding="utf-8")


def page(found: list[dict[str, Any]], before: list[dict[str, Any]], rows: int = 30) -> str:
    """Return the report."""
    cells = [one for one in found if "systems" in one]
    lines = [
        "# Realism",
        "",
        f"Made by `python -m benchmarks.realism`: {len(cells)} pairs of data and model, up to {rows} queries each.",
        "Real rows are those with the target class that neither the model nor any system has seen.",
        "",
        *(f"- `{name}`: {text}; {'lower' if low else 'higher'} is better" for name, (low, text) in MEASURES.items()),
        "",
    ]
    earlier = {(one["data"], one["model"]): one["systems"]["fasterce"] for one in before if "systems" in one}
    for title, data in (("Data used to tune the method", TUNED), ("Data held back", (*HELD_BACK, *tables.CORRELATED))):
        some = [one | {"before": earlier.get((one["data"], one["model"]))} for one in cells if one["data"] in data]
        if some:
            lines += [f"## {title}", "", *_summary(some), "", *_pairs(some), ""]
    return "\n".join(lines)


def _systems(one: dict[str, Any]) -> dict[str, dict[str, float]]:
    return one["systems"] | ({"before": one["before"]} if one.get("before") else {})


def _summary(cells: list[dict[str, Any]]) -> list[str]:
    """Return means per system, and on how many pairs each is ahead of NICE."""
    names = [name for name in (*SYSTEMS, "before") if any(name in _systems(one) for one in cells)]
    lines = ["| system | " + " | ".join(MEASURES) + " |", "| --- |" + " --- |" * len(MEASURES)]
    for name in names:
        mine = [_systems(one)[name] for one in cells if name in _systems(one)]
        means = [float(np.mean([each[key] for each in mine])) for key in MEASURES]
        lines.append(f"| {name} | " + " | ".join(f"{value:.3f}" for value in means) + " |")
    lines.append("")
    for name in names:
        pairs = [
            (_systems(one)[name], one["systems"]["NICE"])
            for one in cells
            if name in _systems(one) and "NICE" in one["systems"]
        ]
        if name != "NICE" and pairs:
            ahead = ", ".join(f"{key} {sum(_ahead(key, *pair) for pair in pairs)}" for key in MEASURES)
            both = sum(_ahead("distance", *pair) and _ahead("nearest", *pair) for pair in pairs)
            lines.append(f"- {name} ahead of NICE, of {len(pairs)} pairs: {ahead}; both distance and nearest {both}")
    same = [one["systems"]["fasterce, noise"]["same"] for one in cells if "same" in one["systems"].get("fasterce, noise", {})]
    if same:
        lines.append(f"- with noise for the latent space {100 * np.mean(same):.1f} % of the counterfactuals are the same")
    return lines


def _ahead(key: str, mine: dict[str, float], other: dict[str, float]) -> bool:
    return mine[key] < other[key] if MEASURES[key][0] else mine[key] > other[key]


def _pairs(cells: list[dict[str, Any]]) -> list[str]:
    lines = ["| data | model | system | " + " | ".join(MEASURES) + " |", "| --- | --- | --- |" + " --- |" * len(MEASURES)]
    for one in cells:
        for name, values in _systems(one).items():
            shown = " | ".join(f"{values[key]:.3f}" for key in MEASURES)
            lines.append(f"| {one['data']} | {one['model']} | {name} | {shown} |")
    return lines


if __name__ == "__main__":
    main()
