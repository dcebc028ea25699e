"""Angles between the hyperplane of a protected attribute and those of the prediction and of the other features."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import beta

from fasterce.errors import InputError, unknown_name
from fasterce.explainer import FasterCE
from fasterce.profile import Floats
from fasterce.search.directions import unit
from fasterce.search.task import Knowledge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WEAK_FIT = 0.2
CHANCE = 0.95
PREDICTION, FEATURE = "prediction", "feature"
CAUTION = (
    "Read with care: an angle far from 90° says that two things go together in this latent space, not that the model "
    "discriminates. An angle of 90° does not prove fairness: other features can stand in for a protected attribute, and a "
    "straight line may miss how the model really decides. Another autoencoder gives other angles, and an angle of a "
    "hyperplane that fits badly means nothing."
)


@dataclass(frozen=True)
class Plane:
    """What one hyperplane is about; `mirror` if it is the second of two categories, so the first one turned around."""

    kind: str
    name: Hashable
    category: Any
    mirror: bool


@dataclass(frozen=True)
class Angles:
    """The result of `angles`.

    frame        one line a pair: protected, category (None for a number), kind ("prediction" or "feature"), other,
                 other_category, degrees (NaN where a hyperplane has no direction), chance_low, chance_high,
                 beyond_chance, fit, other_fit, telling (beyond chance, and both hyperplanes fit), mirror (a pair that
                 says the same as another because an attribute has two categories)
    quality      one line a hyperplane: fit (0 what guessing reaches, 1 perfect; R², or twice the balanced accuracy
                 minus 1, on the explainer's example rows), then measure, hyperplane and base as in `report_`
    dimensions   of the latent space, as far as any hyperplane uses them
    chance       where 95 % of the angles between random directions in so many dimensions lie
    caution      what must be read with any of these numbers
    """

    frame: pd.DataFrame
    quality: pd.DataFrame
    dimensions: int
    chance: tuple[float, float]
    caution: str = CAUTION

    def plot(self, ax: Any = None) -> "Figure":
        """Angles beside what chance would give; needs the extra `plots`."""
        from fasterce.display.bias_plots import bias_angles  # noqa: PLC0415 - looking is not needed for measuring

        return bias_angles(self, ax)

    def __str__(self) -> str:
        from fasterce.display.terminal import written  # noqa: PLC0415

        return written(self.__rich__())

    def __repr__(self) -> str:
        told = int(self.frame["telling"].sum())
        return f"Angles({len(self.frame)} pairs, {told} telling; {self.dimensions} latent dimensions)"

    def __rich__(self) -> Any:
        from fasterce.display import bias_views, terminal  # noqa: PLC0415

        return terminal.sheet(bias_views.of_angles(self))

    def _repr_html_(self) -> str:
        from fasterce.display import bias_views, html  # noqa: PLC0415

        return html.sheet(bias_views.of_angles(self))


def angles(explainer: FasterCE, protected: Sequence[Hashable]) -> Angles:
    """How the hyperplanes of `protected` columns stand to the prediction's and to every other feature's, in degrees.

    Every category has a hyperplane of its own; of two classes one is enough, the other is the same turned around.
    """
    knowledge, names = _knowledge(explainer), _names(explainer, protected)
    planes = _planes(explainer)
    normals = knowledge.hyperplanes.normals
    dimensions = int((normals != 0).any(axis=0).sum())
    chance = chance_range(dimensions)
    fit = _fits(knowledge)
    degrees = _degrees(normals)
    lines = [
        _line(planes, k, m, degrees[k, m], fit)
        for name in names
        for k, mine in enumerate(planes)
        if mine.kind == FEATURE and mine.name == name
        for m in _others(planes, name, len(explainer.classes_))
    ]
    frame = _keep_none(pd.DataFrame(lines), lines)
    frame.insert(6, "chance_low", chance[0])
    frame.insert(7, "chance_high", chance[1])
    frame.insert(8, "beyond_chance", (frame["degrees"] < chance[0]) | (frame["degrees"] > chance[1]))
    frame["telling"] = frame["beyond_chance"] & (frame["fit"] >= WEAK_FIT) & (frame["other_fit"] >= WEAK_FIT)
    frame["mirror"] = frame.pop("mirror")
    return Angles(frame, _quality(explainer, planes, fit), dimensions, chance)


def _keep_none(frame: pd.DataFrame, lines: list[dict[str, Any]]) -> pd.DataFrame:
    """pandas reads None beside text as a missing value; here it says that a number has no category."""
    for name in ("category", "other_category"):
        frame[name] = pd.Series([line[name] for line in lines], dtype=object)
    return frame


def chance_range(dimensions: int, share: float = CHANCE) -> tuple[float, float]:
    """Where that share of the angles between two random directions lies: the more dimensions, the nearer to 90°."""
    if dimensions < 2:
        return 0.0, 180.0
    # The squared cosine of two random directions has this beta distribution.
    away = float(np.degrees(np.arcsin(np.sqrt(beta.ppf(share, 0.5, (dimensions - 1) / 2)))))
    return 90.0 - away, 90.0 + away


def _knowledge(explainer: FasterCE) -> Knowledge:
    if not isinstance(explainer, FasterCE):
        raise InputError(f"explainer must be a fitted FasterCE; got {type(explainer).__name__}.")
    explainer._check_fitted()
    knowledge: Knowledge = explainer.knowledge_
    return knowledge


def _names(explainer: FasterCE, protected: Any) -> list[Hashable]:
    known = explainer.schema_.names
    if not isinstance(protected, Sequence):
        raise InputError(f"protected must be a list of column names; got {type(protected).__name__}.")
    names = [protected] if isinstance(protected, str) else list(dict.fromkeys(protected))
    if not names:
        raise InputError("protected must name at least one column; got an empty list.")
    for name in names:
        if name not in known:
            raise InputError(unknown_name("protected column", name, known))
    return names


def _planes(explainer: FasterCE) -> list[Plane]:
    """What each line of the hyperplanes' normals is about, in their order."""
    codec = explainer.knowledge_.codec
    names, features = codec.schema.names, codec.schema.features
    planes = [Plane(FEATURE, names[j], None, False) for j in codec.numeric]
    for block in codec.blocks:
        pair = len(block.codes) == 2
        planes += [
            Plane(FEATURE, names[block.feature], features[block.feature].category(int(code)), pair and slot == 1)
            for slot, code in enumerate(block.codes)
        ]
    for block in codec.gaps:
        planes += [
            Plane(FEATURE, names[block.feature], "there", False),
            Plane(FEATURE, names[block.feature], "missing", True),
        ]
    return planes + [Plane(PREDICTION, PREDICTION, label, False) for label in explainer.classes_]


def _others(planes: list[Plane], name: Hashable, classes: int) -> list[int]:
    """The prediction's hyperplanes (the last one alone, of two), then those of the other features."""
    first = len(planes) - (1 if classes == 2 else classes)
    features = [k for k, plane in enumerate(planes) if plane.kind == FEATURE and plane.name != name]
    return [*range(first, len(planes)), *features]


def _line(planes: list[Plane], k: int, m: int, degrees: float, fit: Floats) -> dict[str, Any]:
    mine, other = planes[k], planes[m]
    return {
        "protected": mine.name,
        "category": mine.category,
        "kind": other.kind,
        "other": other.name,
        "other_category": other.category,
        "degrees": degrees,
        "fit": fit[k],
        "other_fit": fit[m],
        "mirror": mine.mirror or other.mirror,
    }


def _degrees(normals: Floats) -> Floats:
    straight = unit(normals)
    found = np.degrees(np.arccos(np.clip(straight @ straight.T, -1.0, 1.0)))
    flat = (normals == 0).all(axis=1)
    return np.where(np.logical_or.outer(flat, flat), np.nan, found)


def _fits(knowledge: Knowledge) -> Floats:
    """How much better than guessing each hyperplane tells the example rows apart: 0 not at all, 1 perfect.

    A category's accuracy would flatter one that nearly everybody has, so both sides count the same.
    """
    planes, matrix, numbers = knowledge.hyperplanes, knowledge.example_matrix, len(knowledge.codec.numeric)
    heights = knowledge.autoencoder.encode(matrix) @ planes.normals.T + planes.offsets
    labels = knowledge.example_classes[:, None] == np.arange(planes.classes)
    truth = np.concatenate([matrix[:, numbers:] > 0.5, labels], axis=1)
    return np.concatenate([_r_squared(matrix[:, :numbers], heights[:, :numbers]), _skill(truth, heights[:, numbers:] > 0)])


def _r_squared(values: Floats, estimates: Floats) -> Floats:
    spread = ((values - values.mean(axis=0)) ** 2).sum(axis=0)
    rest = ((values - estimates) ** 2).sum(axis=0)
    return np.asarray(np.where(spread > 0, 1 - rest / np.where(spread > 0, spread, 1.0), np.nan))


def _skill(truth: Any, said: Any) -> Floats:
    """Share of those who have it that are told right, plus share of the others, minus 1; NaN where one side is empty."""
    have, lack = truth.sum(axis=0), (~truth).sum(axis=0)
    right = (truth & said).sum(axis=0) / np.maximum(have, 1) + (~truth & ~said).sum(axis=0) / np.maximum(lack, 1)
    return np.asarray(np.where((have > 0) & (lack > 0), right - 1.0, np.nan))


def _quality(explainer: FasterCE, planes: list[Plane], fit: Floats) -> pd.DataFrame:
    report = explainer.report_
    reported = report.features[["measure", "hyperplane", "base"]]
    told = {name: tuple(line) for name, line in zip(reported.index, reported.to_numpy(), strict=True)}
    agreement = ("agreement", report.agreement, report.agreement_base)
    lines = [
        (plane.kind, plane.name, plane.category, fit[k], *(told[plane.name] if plane.kind == FEATURE else agreement))
        for k, plane in enumerate(planes)
    ]
    frame = pd.DataFrame(lines, columns=["kind", "name", "category", "fit", "measure", "hyperplane", "base"])
    frame["category"] = pd.Series([plane.category for plane in planes], dtype=object)
    return frame
