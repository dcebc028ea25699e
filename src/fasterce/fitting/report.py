"""Quality of what `fit` learned: reconstruction, hyperplanes, agreement with the model."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fasterce.data.codec import Codec
from fasterce.latent.hyperplanes import Hyperplanes
from fasterce.latent.runtime import Autoencoder
from fasterce.typing import Floats, Indices


@dataclass(frozen=True)
class FitReport:
    """The result of `fit`: quality of the learned parts.

    Attributes
    ----------
    features : DataFrame
        One line per feature: `measure` (R² or accuracy), `reconstruction` (of the autoencoder, on rows it was not trained
        on), `hyperplane` (of the linear model; its worst category) and `base` (of a constant guess).
    agreement, agreement_base : float
        Share of training rows for which the prediction hyperplane predicts the class of the model, and the same of always
        predicting the most frequent class.
    regions : int
        Number of latent regions.
    agreement_one_plane, agreement_by_region : float
        Share of held-out points, classes balanced, on the right side of the hyperplane of their class: with one hyperplane
        for the whole latent space, and with one per region.
    epochs, latent, samples : int
        Epochs of the autoencoder, latent dimensions and latent points sampled.
    seconds : float
        Time of `fit`.
    calls, model_rows : int
        Model calls, and the rows the model evaluated.
    scores : bool
        Whether the search uses scores; otherwise labels.
    surrogate_agreement : float or None
        Share of edited rows not trained on for which the surrogate predicts the class of the model.
    compiled : str
        Kind of the compiled model, or why there is none.
    max_fit_rows : int or None
        Limit on model rows, given or chosen because the model is slow; None for the full plan.
    passthrough : dict
        Columns that are not features, and why.
    unread : list of str
        Features that the model did not read in any test.
    advice : list of str
        What to check before rows are explained; see `Schema.review`.
    """

    features: pd.DataFrame
    agreement: float
    agreement_base: float
    regions: int
    agreement_one_plane: float
    agreement_by_region: float
    epochs: int
    latent: int
    samples: int
    seconds: float
    calls: int
    model_rows: int
    scores: bool
    surrogate_agreement: float | None = None
    compiled: str = ""
    max_fit_rows: int | None = None
    passthrough: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        table = self.features.to_string(float_format=lambda value: f"{value:.2f}")
        source = "scores" if self.scores else "labels"
        limit = "" if self.max_fit_rows is None else f" (max_fit_rows={self.max_fit_rows})"
        return (
            f"{table}\n"
            f"prediction hyperplane agrees with the model on {self.agreement:.1%} of training rows "
            f"(most frequent class: {self.agreement_base:.1%}); the search uses {source}\n"
            f"{self._regions()}\n"
            f"{self._surrogate()}; compiled model: {self.compiled or 'none'}\n"
            f"autoencoder: {self.latent} latent dimensions, {self.epochs} epochs; "
            f"{self.samples} latent samples; {self.calls} calls, {self.model_rows} model rows{limit}; {self.seconds:.1f} s"
            f"{self._columns()}"
        )

    def _columns(self) -> str:
        lines = [f"passed through: {', '.join(f'{name} ({why})' for name, why in self.passthrough.items())}"]
        lines = lines if self.passthrough else []
        if self.unread:
            lines.append(f"columns the model never reads: {', '.join(self.unread)}")
        return "".join(f"\n{line}" for line in (*lines, *self.advice))

    def _surrogate(self) -> str:
        if self.surrogate_agreement is None:
            return "no surrogate: the search evaluates the model for everything"
        return f"surrogate agrees with the model on {self.surrogate_agreement:.1%} of edited rows not trained on"

    def _regions(self) -> str:
        one = f"{self.agreement_one_plane:.1%} of held-out points (classes balanced)"
        if self.regions == 1:
            return f"one latent region: its hyperplane is right on {one}, more regions would not be clearly better"
        return f"{self.regions} latent regions: right on {self.agreement_by_region:.1%}, one hyperplane for all on {one}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Returns
        -------
        dict
        """
        fields = dict(self.__dict__)
        fields["features"] = self.features.reset_index().to_dict(orient="list")
        return fields

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "FitReport":
        """Return the report that `to_dict` described.

        Parameters
        ----------
        fields : dict
            As `to_dict` returns it.

        Returns
        -------
        FitReport
        """
        return cls(**{**fields, "features": pd.DataFrame(fields["features"]).set_index("feature")})


def quality_by_feature(codec: Codec, autoencoder: Autoencoder, planes: Hyperplanes, unseen: Floats) -> pd.DataFrame:
    """Return one line per feature; `unseen` are encoded rows held out from the autoencoder's training."""
    latent = autoencoder.encode(unseen)
    rebuilt = autoencoder.decode(latent)
    linear = latent @ planes.normals[planes.features].T + planes.offsets[planes.features]
    lines: dict[int, tuple[str, float, float, float]] = {}
    for k, j in enumerate(codec.numeric):
        value = unseen[:, k]
        lines[int(j)] = "R²", _r_squared(value, rebuilt[:, k]), _r_squared(value, linear[:, k]), 0.0
    for block in codec.blocks:
        truth = unseen[:, block.columns] > 0.5
        right = float(np.mean(rebuilt[:, block.columns].argmax(axis=1) == truth.argmax(axis=1)))
        worst = float(((linear[:, block.columns] > 0) == truth).mean(axis=0).min())
        lines[block.feature] = "accuracy", right, worst, float(truth.mean(axis=0).max())
    names = pd.Index([codec.schema.names[j] for j in sorted(lines)], name="feature", tupleize_cols=False)
    columns = ["measure", "reconstruction", "hyperplane", "base"]
    return pd.DataFrame([lines[j] for j in sorted(lines)], index=names, columns=columns)


def prediction_agreement(planes: Hyperplanes, latent: Floats, classes: Indices) -> tuple[float, float]:
    heights = latent @ planes.normals[planes.features.stop :].T + planes.offsets[planes.features.stop :]
    most_common = np.bincount(classes, minlength=planes.classes).max() / max(len(classes), 1)
    return float(np.mean(heights.argmax(axis=1) == classes)), float(most_common)


def _r_squared(truth: Floats, estimate: Floats) -> float:
    spread = float(((truth - truth.mean()) ** 2).sum())
    return 1.0 if spread < 1e-9 * len(truth) else 1.0 - float(((truth - estimate) ** 2).sum()) / spread
