"""How good the pieces are that `fit` made: reconstruction, hyperplanes, agreement with the model."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.codec import Codec
from fasterce.latent.runtime import Autoencoder
from fasterce.profile import Floats
from fasterce.search.hyperplanes import Hyperplanes


@dataclass(frozen=True)
class FitReport:
    """`features` has one line a feature: reconstruction (R², or share of categories right, on rows the autoencoder did
    not see), hyperplane (the same measure for the linear model, its worst category) and base (what guessing reaches).
    `agreement` is the share of training rows where the prediction hyperplane says what the model says,
    `agreement_base` what always naming the commonest class would reach. `agreement_one_plane` and `agreement_by_region`
    are the shares of held-out points, all classes counting the same, on the right side of their class's hyperplane: of
    the one for the whole latent space, and of that of the point's region, of which there are `regions`.
    `copy_agreement` is the distilled copy's share on edited rows it did not learn from; `twin` says what twin there is."""

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
    rows_asked: int
    scores: bool
    copy_agreement: float | None = None
    twin: str = ""

    def __str__(self) -> str:
        table = self.features.to_string(float_format=lambda value: f"{value:.2f}")
        source = "scores" if self.scores else "labels"
        return (
            f"{table}\n"
            f"prediction hyperplane agrees with the model on {self.agreement:.1%} of training rows "
            f"(guessing: {self.agreement_base:.1%}); search goes by {source}\n"
            f"{self._regions()}\n"
            f"{self._copy()}; twin: {self.twin or 'none'}\n"
            f"autoencoder: {self.latent} latent dimensions, {self.epochs} epochs; "
            f"{self.samples} latent samples; {self.calls} calls, {self.rows_asked} rows asked; {self.seconds:.1f} s"
        )

    def _copy(self) -> str:
        if self.copy_agreement is None:
            return "no distilled copy: the search asks the model about everything"
        return f"distilled copy says what the model says on {self.copy_agreement:.1%} of unseen edited rows"

    def _regions(self) -> str:
        one = f"{self.agreement_one_plane:.1%} of held-out points (classes balanced)"
        if self.regions == 1:
            return f"one latent region: its hyperplane is right on {one}, more regions would not be clearly better"
        return f"{self.regions} latent regions: right on {self.agreement_by_region:.1%}, one hyperplane for all on {one}"

    def to_dict(self) -> dict[str, Any]:
        fields = dict(self.__dict__)
        fields["features"] = self.features.reset_index().to_dict(orient="list")
        return fields

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "FitReport":
        return cls(**{**fields, "features": pd.DataFrame(fields["features"]).set_index("feature")})


def quality_by_feature(codec: Codec, autoencoder: Autoencoder, planes: Hyperplanes, unseen: Floats) -> pd.DataFrame:
    """`unseen` is a matrix of rows kept from the autoencoder's training."""
    latent = autoencoder.encode(unseen)
    rebuilt = autoencoder.decode(latent)
    linear = latent @ planes.normals[planes.features].T + planes.offsets[planes.features]
    lines: dict[int, dict[str, Any]] = {}
    for k, j in enumerate(codec.numeric):
        lines[int(j)] = {
            "measure": "R²",
            "reconstruction": _r_squared(unseen[:, k], rebuilt[:, k]),
            "hyperplane": _r_squared(unseen[:, k], linear[:, k]),
            "base": 0.0,
        }
    for block in codec.blocks:
        truth = unseen[:, block.columns] > 0.5
        share = truth.mean(axis=0)
        lines[block.feature] = {
            "measure": "accuracy",
            "reconstruction": float(np.mean(rebuilt[:, block.columns].argmax(axis=1) == truth.argmax(axis=1))),
            "hyperplane": float(((linear[:, block.columns] > 0) == truth).mean(axis=0).min()),
            "base": float(share.max()),
        }
    names = pd.Index([codec.schema.names[j] for j in sorted(lines)], name="feature", tupleize_cols=False)
    return pd.DataFrame([lines[j] for j in sorted(lines)], index=names)


def prediction_agreement(planes: Hyperplanes, latent: Floats, classes: NDArray[np.intp]) -> tuple[float, float]:
    heights = latent @ planes.normals[planes.features.stop :].T + planes.offsets[planes.features.stop :]
    most_common = np.bincount(classes, minlength=planes.classes).max() / max(len(classes), 1)
    return float(np.mean(heights.argmax(axis=1) == classes)), float(most_common)


def _r_squared(truth: Floats, estimate: Floats) -> float:
    spread = float(((truth - truth.mean()) ** 2).sum())
    return 1.0 if spread < 1e-9 * len(truth) else 1.0 - float(((truth - estimate) ** 2).sum()) / spread
