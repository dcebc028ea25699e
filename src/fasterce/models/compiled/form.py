"""How the raw outputs of a model become the scores of its classes."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, log_softmax

from fasterce.kernels.arrays import IDENTITY, LOG, LOG_SIGMOID
from fasterce.models.predictor import SMALLEST_PROBABILITY, Numbers
from fasterce.typing import Floats, Indices


@dataclass(frozen=True)
class Form:
    """What the raw outputs of a model are."""

    name: str
    link: int
    single: bool
    """Whether one output stands for two classes."""
    lead: float = 1.0
    """With one output: the lead of the second class over the first, in units of it."""
    platt: float | None = None
    """The log-odds of the second class where the label of a support vector machine changes: its labels and its probabilities
    come from different formulas."""


LOGIT = Form("log-odds", IDENTITY, single=True)
# Decision values d of two classes are scores -d and d.
DECISION = Form("decision values", IDENTITY, single=True, lead=2.0)
NUMBER = Form("numbers", IDENTITY, single=True)
SOFTMAX = Form("logits", IDENTITY, single=False)
DECISIONS = Form("decision values per class", IDENTITY, single=False)
PROBABILITY = Form("probabilities", LOG, single=False)
SIGMOIDS = Form("log-odds per class, normalised", LOG_SIGMOID, single=False)
UNNORMALISED = Form("log-odds per class", LOG_SIGMOID, single=False)


@dataclass(frozen=True)
class OutputMap:
    """Outputs of a scorer from raw outputs of a model: `raw @ matrix + shift`.

    With two classes there is one output: the lead of the second class, or its probability.
    """

    form: Form
    matrix: Floats
    shift: Floats

    @classmethod
    def of(cls, form: Form, order: tuple[int, ...], numbers: Numbers | None) -> "OutputMap":
        """Return the map for classes at positions `order` of the model's own."""
        if numbers is not None:
            return cls(form, np.array([[1 / numbers.scale]]), np.array([-numbers.middle / numbers.scale]))
        if form.single:
            return cls(form, np.array([[form.lead if order == (0, 1) else -form.lead]]), np.zeros(1))
        matrix = np.eye(len(order))[:, list(order)]
        if len(order) == 2:
            matrix = matrix[:, 1:] if form == PROBABILITY else matrix[:, 1:] - matrix[:, :1]
        return cls(form, matrix, np.zeros(matrix.shape[1]))

    @property
    def link(self) -> int:
        """How outputs become scores in the arrays of a scorer."""
        one = self.matrix.shape[1] == 1
        return IDENTITY if one and self.form != PROBABILITY else self.form.link

    def scores(self, outputs: Floats) -> Floats:
        """Return the scores of the classes, as the predictor has them."""
        if outputs.shape[1] == 1:
            return self._scores_of_two(outputs[:, 0])
        if self.form == SOFTMAX:
            return np.asarray(np.maximum(log_softmax(outputs, axis=1), LOWEST))
        if self.form == DECISIONS:
            return outputs
        if self.form == PROBABILITY:
            return np.log(np.maximum(outputs, SMALLEST_PROBABILITY))
        logs: Floats = log_expit(outputs)
        if self.form == SIGMOIDS:
            logs = logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))
        return np.maximum(logs, LOWEST)

    def labels(self, outputs: Floats, scores: Floats) -> Indices:
        """Return the positions of the classes: those with the highest scores, unless these do not decide."""
        return scores.argmax(axis=1) if self.form.platt is None else (outputs[:, 0] > 0).astype(np.intp)

    def _scores_of_two(self, output: Floats) -> Floats:
        if self.form == PROBABILITY:
            return np.log(np.maximum(np.stack([1 - output, output], axis=1), SMALLEST_PROBABILITY))
        if self.form in (DECISION, NUMBER):
            return np.stack([-output / 2, output / 2], axis=1)
        if self.form.platt is not None:
            sign = self.matrix[0, 0]
            chances = platt_probabilities(sign * output + self.form.platt)
            return np.log(np.stack(chances if sign > 0 else chances[::-1], axis=1))
        return np.asarray(np.maximum(log_expit(np.stack([-output, output], axis=1)), LOWEST))


def platt_probabilities(odds: Floats) -> tuple[Floats, Floats]:
    """Return the probabilities of two classes as libsvm computes them from the log-odds of the second: by iteration, which it
    stops early (Wu, Lin, Weng 2004, method 2)."""
    first = np.clip(expit(-odds), LEAST_PAIRWISE, 1 - LEAST_PAIRWISE)
    second = 1 - first
    diagonal, across = np.stack([second * second, first * first]), -first * second
    chance = np.full((2, len(odds)), 0.5)
    for _ in range(MOST_ITERATIONS):
        part = diagonal * chance + across * chance[::-1]
        mean = (chance * part).sum(axis=0)
        moving = np.abs(part - mean).max(axis=0, initial=0.0) >= TOLERANCE
        if not moving.any():
            break
        for own in range(2):
            change = np.where(moving, (mean - part[own]) / diagonal[own], 0.0)
            chance[own] += change
            mean = (mean + change * (change * diagonal[own] + 2 * part[own])) / (1 + change) / (1 + change)
            part[own] = (part[own] + change * diagonal[own]) / (1 + change)
            part[1 - own] = (part[1 - own] + change * across) / (1 + change)
            chance = chance / (1 + change)
    return chance[0], chance[1]


# Of libsvm: smallest probability of a pair of classes, and when its iteration stops.
LEAST_PAIRWISE, TOLERANCE, MOST_ITERATIONS = 1e-7, 0.0025, 100
LOWEST = float(np.log(SMALLEST_PROBABILITY))
