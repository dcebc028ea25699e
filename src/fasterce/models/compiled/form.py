"""How the raw outputs of a model become the scores of its classes."""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_expit, log_softmax

from fasterce.kernels.arrays import IDENTITY, LOG, LOG_SIGMOID
from fasterce.models.predictor import SMALLEST_PROBABILITY, Numbers
from fasterce.typing import Floats


@dataclass(frozen=True)
class Form:
    """What the raw outputs of a model are."""

    name: str
    link: int
    single: bool
    """Whether one output stands for two classes."""
    lead: float = 1.0
    """With one output: the lead of the second class over the first, in units of it."""


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

    def _scores_of_two(self, output: Floats) -> Floats:
        if self.form == PROBABILITY:
            return np.log(np.maximum(np.stack([1 - output, output], axis=1), SMALLEST_PROBABILITY))
        if self.form in (DECISION, NUMBER):
            return np.stack([-output / 2, output / 2], axis=1)
        return np.asarray(np.maximum(log_expit(np.stack([-output, output], axis=1)), LOWEST))


LOWEST = float(np.log(SMALLEST_PROBABILITY))
