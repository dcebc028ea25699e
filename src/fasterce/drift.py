"""Whether new rows still look like those an explainer has learned from, and whether what it learned still holds for them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.display.sheet import Sheet, Shown
from fasterce.errors import InputError, ModelError, shorten
from fasterce.fitting import Learned
from fasterce.memory import Memory, copy_agreement, reconstruction_losses, sizes, summed_up, tally, tally_answers
from fasterce.predictor import FAILED, Answers, Predictor
from fasterce.profile import Floats
from fasterce.report import prediction_agreement
from fasterce.schema import MISSING
from fasterce.search.task import Knowledge

FEWEST_ROWS = 10
FALSE_ALARMS = 0.01
SHUFFLES = 1_000
SHOWN_DIGITS = 4
WORSE, LOST, STANDARD_ERRORS = 0.2, 0.03, 3.0

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Compared:
    """One measure, then and now; `drifted` where `now` is beyond `limit`."""

    then: float
    now: float
    limit: float
    drifted: bool

    def __str__(self) -> str:
        return f"{self.then:.3f} → {self.now:.3f} (limit {self.limit:.3f}{', beyond it' if self.drifted else ''})"


@dataclass(frozen=True)
class DriftReport(Shown):
    """The result of `FasterCE.drift`.

    frame           one line a feature: measure (population stability index for a number, total variation for a category),
                    value, limit, drifted, then and now (the mean of the values that are there, or the commonest category's
                    share); where some may be missing the shares of these, missing_then and missing_now
    classes         the share of each predicted class, then and now; `class_shift` their total variation. For a model that
                    answers numbers: the share of predictions in ten bins, and their stability index
    reconstruction  the autoencoder's mean loss on rows it was not trained on; more is worse
    hyperplane      how often the prediction hyperplane says what the model says, on training rows and on these
    copy            the same of the distilled copy, then on edited rows it had not learned from; None without a copy
    rows, unreadable, problem   rows compared, rows that could not be read, and the first one's sentence
    """

    frame: pd.DataFrame
    classes: pd.DataFrame
    class_shift: Compared
    reconstruction: Compared
    hyperplane: Compared
    copy: Compared | None
    rows: int
    unreadable: int
    problem: str

    @property
    def drifted(self) -> bool:
        """Whether anything at all is beyond its limit, or rows could not be read."""
        return bool(self._signs)

    @property
    def _signs(self) -> list[str]:
        moved = self.frame.index[self.frame["drifted"]]
        signs = [f"{len(moved)} of {len(self.frame)} features have moved ({shorten(moved, 4)})"] if len(moved) else []
        signs += ["the model's answers are distributed differently"] if self.class_shift.drifted else []
        signs += ["the autoencoder rebuilds these rows worse"] if self.reconstruction.drifted else []
        signs += ["the prediction hyperplane agrees less with the model"] if self.hyperplane.drifted else []
        signs += ["the distilled copy agrees less with the model"] if self.copy and self.copy.drifted else []
        return signs + ([f"{self.unreadable} rows cannot be read"] if self.unreadable else [])

    @property
    def verdict(self) -> str:
        """One sentence: what has changed and what to do about it."""
        if not self._signs:
            return f"No drift: {self.rows} rows look like those learned from, and what was learned holds for them."
        found = f"Drift in {self.rows} rows: {'; '.join(self._signs)}."
        return f"{found} {'Fit the explainer again.' if self.unreadable else 'Update the explainer.'}"

    def _sheet(self) -> Sheet:
        lines = [
            self._answers(),
            f"Reconstruction loss: {self.reconstruction}",
            f"Prediction hyperplane agrees with the model: {self.hyperplane}",
        ]
        lines += [f"Distilled copy agrees with the model: {self.copy}"] if self.copy else []
        lines += [f"First row that cannot be read: {self.problem}"] if self.problem else []
        return Sheet(self.verdict, self.frame.sort_values("drifted", ascending=False, kind="stable"), tuple(lines))

    def _answers(self) -> str:
        if isinstance(self.classes.index, pd.IntervalIndex):
            upper = self.classes.iloc[len(self.classes) // 2 :]
            share = f"{upper['then'].sum():.1%} → {upper['now'].sum():.1%}"
            return f"Predictions of {upper.index[0].left:.6g} or more: {share}; stability index {self.class_shift}"
        shares = ", ".join(f"{line.Index} {line.then:.1%} → {line.now:.1%}" for line in self.classes.itertuples())
        return f"Predicted classes: {shares}; total variation {self.class_shift}"


def compare(learned: Learned, predictor: Predictor, rows: pd.DataFrame, seed: int) -> DriftReport:
    """`rows` beside everything seen so far; rows that cannot be read are counted, not raised."""
    reading = learned.table.read(rows)
    good = np.setdiff1d(np.arange(len(rows)), list(reading.problems))
    if len(good) < FEWEST_ROWS:
        first = f"; the first bad one: {reading.problems[min(reading.problems)]}" if reading.problems else "."
        raise InputError(f"new_rows must have at least {FEWEST_ROWS} rows that can be read; got {len(good)}{first}")
    codes = reading.codes[good]
    answers = predictor.ask(codes)
    known = answers.classes != FAILED
    if not known.any():
        raise ModelError(predictor.failure)
    memory, knowledge = learned.memory, learned.knowledge
    said = Answers(answers.classes[known], None if answers.scores is None else answers.scores[known])
    now = tally_answers(said, learned.numbers, memory.answer_cuts, len(memory.classes))[: len(memory.classes)]
    frame, shift = _moved(memory, codes, now, knowledge, seed)
    shares = {"then": memory.classes / memory.classes.sum(), "now": now / now.sum()}
    return DriftReport(
        frame=frame,
        classes=pd.DataFrame(shares, index=_names(learned)),
        class_shift=shift,
        reconstruction=rebuilt(memory, knowledge, codes),
        hyperplane=planes_agree(learned, codes[known], said),
        copy=copy_agrees(memory, knowledge, codes[known], said.classes),
        rows=len(codes),
        unreadable=len(reading.problems),
        problem=reading.problems[min(reading.problems)] if reading.problems else "",
    )


def agreement(learned: Learned, predictor: Predictor) -> float:
    """On how many of the stored examples the model says what it said when they were stored."""
    answers = predictor.label(learned.table.frame(learned.knowledge.examples))
    return float(np.mean(answers == learned.knowledge.example_classes))


def _names(learned: Learned) -> pd.Index:
    """The classes, or for a model that answers numbers the bins these are counted in."""
    if learned.numbers is None:
        return pd.Index(learned.classes, name="class", tupleize_cols=False)
    shown = np.round(learned.memory.answer_cuts, SHOWN_DIGITS - math.floor(math.log10(learned.numbers.scale)))
    breaks = np.concatenate([[-np.inf], shown, [np.inf]])
    return pd.IntervalIndex.from_breaks(breaks, closed="left", name="prediction")


def rebuilt(memory: Memory, knowledge: Knowledge, codes: Floats) -> Compared:
    """The autoencoder's loss beside that of `fit`'s own held-out rows; 20 % worse is drift, if it cannot be chance."""
    then, deviation, count = (float(value) for value in memory.reconstruction)
    matrix = knowledge.codec.encode(codes)
    now, spread, rows = (float(v) for v in summed_up(reconstruction_losses(knowledge.autoencoder, knowledge.codec, matrix)))
    noise = STANDARD_ERRORS * (deviation**2 / max(count, 1) + max(deviation, spread) ** 2 / max(rows, 1)) ** 0.5
    limit = then + max(WORSE * then, noise)
    return Compared(then, now, limit, now > limit + 1e-9)


def planes_agree(learned: Learned, codes: Floats, answers: Answers) -> Compared:
    knowledge = learned.knowledge
    latent = knowledge.autoencoder.encode(knowledge.codec.encode(codes))
    now, _ = prediction_agreement(knowledge.hyperplanes, latent, answers.classes)
    return _less(learned.report.agreement, now, int(learned.memory.classes.sum()), len(codes))


def copy_agrees(memory: Memory, knowledge: Knowledge, codes: Floats, classes: NDArray[np.intp]) -> Compared | None:
    if knowledge.surrogate is None:
        return None
    now = copy_agreement(knowledge.surrogate, codes, classes)
    return _less(knowledge.surrogate.agreement, now, int(memory.classes.sum()), len(codes))


def _less(then: float, now: float, before: int, after: int) -> Compared:
    """A share that has dropped by three points or more, if that cannot be chance."""
    likely = np.clip(then, 1 / (before + 2), 1 - 1 / (before + 2))
    noise = STANDARD_ERRORS * (likely * (1 - likely) * (1 / max(before, 1) + 1 / max(after, 1))) ** 0.5
    limit = then - max(LOST, float(noise))
    return Compared(then, now, limit, now < limit)


def _moved(memory: Memory, codes: Floats, classes: Counts, knowledge: Knowledge, seed: int) -> tuple[pd.DataFrame, Compared]:
    """Every feature's and the classes' distribution beside the remembered one, with limits for all of them together."""
    schema = knowledge.codec.schema
    ends = np.cumsum(sizes(schema))[:-1]
    before, now = np.split(memory.counts, ends), np.split(tally(codes, memory.cuts, schema), ends)
    numeric = [feature.numeric for feature in schema.features]
    measures = [stability_index if number else total_variation for number in numeric]
    of_answers = stability_index if len(memory.answer_cuts) else total_variation
    value, limit = limits([*before, memory.classes], [*now, classes], [*measures, of_answers], seed)
    drifted = value > limit + 1e-12
    kinds, then = list(zip(numeric, before, strict=True)), np.where(memory.present(schema) > 0, memory.mean, np.nan)
    frame = pd.DataFrame(
        {
            "measure": ["stability index" if number else "total variation" for number in numeric],
            "value": value[:-1],
            "limit": limit[:-1],
            "drifted": drifted[:-1],
            "then": [float(then[j]) if number else _share(old, old) for j, (number, old) in enumerate(kinds)],
            "now": [_mean(codes[:, j]) if number else _share(now[j], old) for j, (number, old) in enumerate(kinds)],
        },
        index=pd.Index(schema.names, name="feature", tupleize_cols=False),
    )
    if any(feature.gappy for feature in schema.features):
        for name, counts in (("missing_then", before), ("missing_now", now)):
            frame[name] = [c[-1] / c.sum() if f.gappy else 0.0 for f, c in zip(schema.features, counts, strict=True)]
    return frame, Compared(0.0, float(value[-1]), float(limit[-1]), bool(drifted[-1]))


def _mean(values: Floats) -> float:
    there = values[values != MISSING]
    return float(there.mean()) if len(there) else float("nan")


def _share(counts: Counts, before: Counts) -> float:
    """Of the category that was the commonest."""
    return float(counts[before.argmax()] / counts.sum())


def limits(
    before: list[Counts], now: list[Counts], measures: list[Callable[[Any, Any], Floats]], seed: int
) -> tuple[Floats, Floats]:
    """Each measure's value, and a limit that all of them together pass by chance in one case of a hundred.

    Rows seen before and now are shuffled, which for counts is a draw from an urn. The values of all measures, each in its
    own standard deviations, are put on one heap: so few are above its highest hundredth of a shuffle that the expected
    number of false alarms in a report is 0.01, whatever the shapes of the distributions.
    """
    rng = np.random.default_rng([seed, len(before)])
    value, middle, deviation = np.zeros((3, len(before)))
    heap = np.zeros((len(before), SHUFFLES))
    for j, (old, new, measure) in enumerate(zip(before, now, measures, strict=True)):
        drawn = rng.multivariate_hypergeometric(old + new, int(new.sum()), SHUFFLES)
        shuffled = measure(old + new - drawn, drawn)
        middle[j], deviation[j] = shuffled.mean(), max(float(shuffled.std()), 1e-12)
        heap[j] = (shuffled - middle[j]) / deviation[j]
        value[j] = measure(old[None], new[None])[0]
    highest = np.sort(heap, axis=None)[-int(FALSE_ALARMS * SHUFFLES)]
    return value, np.asarray(middle + highest * deviation)


def stability_index(before: Any, now: Any) -> Floats:
    """The population stability index of counts (..., bins), half a row added to every bin."""
    p, q = _smoothed(before), _smoothed(now)
    return np.asarray(((q - p) * np.log(q / p)).sum(axis=-1))


def _smoothed(counts: Any) -> Floats:
    some = counts + 0.5
    return np.asarray(some / some.sum(axis=-1, keepdims=True))


def total_variation(before: Any, now: Any) -> Floats:
    """The share of rows that would have to change category."""
    shares = [part / np.maximum(part.sum(axis=-1, keepdims=True), 1) for part in (before, now)]
    return np.asarray(0.5 * np.abs(shares[0] - shares[1]).sum(axis=-1))
