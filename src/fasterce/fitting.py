"""What `fit` does, in the paper's order: encode, train, sample and label the latent space, fit the hyperplanes."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.codec import Codec
from fasterce.errors import InputError, ModelError
from fasterce.latent.runtime import Autoencoder, Callables
from fasterce.latent.sampling import Samples, sample
from fasterce.latent.train import TrainingPlan, split, train
from fasterce.predictor import FAILED, Predictor, Scores
from fasterce.profile import Floats, Profile
from fasterce.progress import Progress
from fasterce.report import FitReport, prediction_agreement, quality_by_feature
from fasterce.schema import Schema, check_table
from fasterce.search.distance import Distance
from fasterce.search.hyperplanes import Hyperplanes, fit_hyperplanes
from fasterce.search.task import Knowledge
from fasterce.table import Table

FEWEST_ROWS = 10
MOST_TRAINING_ROWS = 60_000
MOST_ASKED_ROWS = 10_000
MOST_EXAMPLES = 3_000
MEASURED_ROWS = 200
CHECKED_SCORES = 1_000


@dataclass(frozen=True)
class Settings:
    """The explainer's own parameters, as `fit` needs them."""

    random_state: int
    scores: Scores
    latent_dim: int | None
    autoencoder: tuple[Callable[[Any], Any], Callable[[Any], Any]] | None
    progress: bool | None


@dataclass(frozen=True)
class Learned:
    table: Table
    knowledge: Knowledge
    report: FitReport
    classes: tuple[Any, ...]
    use_scores: bool


def check_settings(settings: Settings) -> None:
    if settings.scores not in ("auto", "never"):
        raise InputError(f"scores must be 'auto' or 'never'; got {settings.scores!r}.")
    if (
        isinstance(settings.random_state, bool)
        or not isinstance(settings.random_state, Integral)
        or settings.random_state < 0
    ):
        raise InputError(f"random_state must be a whole number of at least 0; got {settings.random_state!r}.")
    if settings.latent_dim is not None and (not isinstance(settings.latent_dim, Integral) or settings.latent_dim < 1):
        raise InputError(f"latent_dim must be None or a whole number of at least 1; got {settings.latent_dim!r}.")


def learn(model: Any, X: pd.DataFrame, schema: Schema | None, settings: Settings) -> Learned:
    started = perf_counter()
    check_settings(settings)
    rng = np.random.default_rng(settings.random_state)
    table, codes = read_training_rows(X, schema)
    codec = Codec(table.schema, Profile.measure(codes, table.schema))
    predictor = Predictor(model, table)
    asked = _some(codes, MOST_ASKED_ROWS, rng)
    predictor.learn_classes(asked)
    predictor.use_scores = settings.scores == "auto" and predictor.trust_scores(asked[:CHECKED_SCORES])
    answers = predictor.ask(asked).classes

    matrix = codec.encode(_some(codes, MOST_TRAINING_ROWS, rng))
    autoencoder, epochs, unseen = _autoencoder(matrix, codec, settings)
    anchors = autoencoder.encode(codec.encode(_balanced(asked, answers, rng)))
    samples = sample(anchors, autoencoder, codec, settings.random_state)
    labels = _label(predictor, samples)
    planes = fit_hyperplanes(samples.latent, samples.matrix, len(codec.numeric), labels, len(predictor.classes))
    knowledge = _knowledge(codec, autoencoder, planes, samples, labels, asked)

    agreement, base = prediction_agreement(planes, autoencoder.encode(codec.encode(asked)), answers)
    report = FitReport(
        features=quality_by_feature(codec, autoencoder, planes, unseen),
        agreement=agreement,
        agreement_base=base,
        epochs=epochs,
        latent=anchors.shape[1],
        samples=len(samples),
        seconds=perf_counter() - started,
        calls=predictor.asked.calls,
        rows_asked=predictor.asked.rows,
        scores=predictor.use_scores,
    )
    return Learned(table, knowledge, report, predictor.classes, predictor.use_scores)


def read_training_rows(X: pd.DataFrame, schema: Schema | None) -> tuple[Table, Floats]:
    check_table(X, "X")
    if len(X) < FEWEST_ROWS:
        raise InputError(f"X must have at least {FEWEST_ROWS} rows to learn from; got {len(X)}.")
    table = Table.like(X, schema or Schema.infer(X))
    reading = table.read(X)
    if reading.problems:
        sentence = reading.problems[min(reading.problems)]
        raise InputError(f"X has {len(reading.problems)} rows that cannot be used; the first: {sentence}")
    return table, reading.codes


def _autoencoder(matrix: Floats, codec: Codec, settings: Settings) -> tuple[Autoencoder, int, Floats]:
    if settings.autoencoder is not None:
        own = Callables(*settings.autoencoder)
        check_coders(own, matrix[:FEWEST_ROWS])
        return own, 0, matrix[split(len(matrix), settings.random_state)[2]]
    plan = TrainingPlan.choose(len(matrix), codec, settings.latent_dim)
    trained = train(matrix, codec, plan, settings.random_state, Progress(settings.progress))
    return trained.network, trained.epochs, trained.held_out


def check_coders(own: Callables, matrix: Floats) -> None:
    latent = own.encode(matrix)
    if latent.ndim != 2 or len(latent) != len(matrix):
        raise InputError(f"autoencoder's encode must give one latent row a row; got shape {latent.shape} for {matrix.shape}.")
    decoded = own.decode(latent)
    if decoded.shape != matrix.shape:
        raise InputError(f"autoencoder's decode must give back shape {matrix.shape}; got {decoded.shape}.")
    for name, values in (("encode", latent), ("decode", decoded)):
        if not np.isfinite(values).all():
            raise InputError(f"autoencoder's {name} must give finite numbers; got NaN or infinity.")


def _some(codes: Floats, most: int, rng: np.random.Generator) -> Floats:
    return codes if len(codes) <= most else codes[np.sort(rng.choice(len(codes), most, replace=False))]


def _balanced(codes: Floats, classes: NDArray[np.intp], rng: np.random.Generator) -> Floats:
    """Rows to sample around, every predicted class as often: a rare outcome needs a hyperplane just as well."""
    seen = np.unique(classes[classes != FAILED])
    share = max(1, len(codes) // max(len(seen), 1))
    return np.concatenate([codes[rng.choice(np.flatnonzero(classes == label), share)] for label in seen])


def _label(predictor: Predictor, samples: Samples) -> NDArray[np.intp]:
    labels = predictor.ask(samples.codes).classes
    if (labels == FAILED).any():
        raise ModelError(predictor.failure)
    seen = np.unique(labels)
    if len(seen) < 2:
        raise ModelError(
            f"The model must answer at least two classes; got {predictor.classes[seen[0]]!r} for all training rows "
            "and all latent samples, so there is nothing to change it to."
        )
    return labels


def _knowledge(
    codec: Codec,
    autoencoder: Autoencoder,
    planes: Hyperplanes,
    samples: Samples,
    labels: NDArray[np.intp],
    codes: Floats,
) -> Knowledge:
    """Keep the first examples of every class: half of the samples lie close to the data, and those come first."""
    kept = np.concatenate([np.flatnonzero(labels == label)[:MOST_EXAMPLES] for label in np.unique(labels)])
    distance = Distance.gower(codec.profile.span, codec.numeric)
    examples = samples.codes[kept]
    away = [distance.total(examples, row).min() for row in codes[:MEASURED_ROWS]]
    return Knowledge(codec, autoencoder, planes, examples, labels[kept], distance, float(np.mean(away)))
