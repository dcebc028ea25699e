"""The stages of `fit`, in the paper's order: encode, train, sample and label the latent space, fit the hyperplanes."""

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from fasterce.config import Config
from fasterce.data import detect
from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.review import review
from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.errors import ModelError
from fasterce.fitting.report import FitReport, prediction_agreement, quality_by_feature
from fasterce.fitting.state import FittedState, SearchState
from fasterce.fitting.statistics import TrainingStatistics, count_predictions, prediction_cuts, reconstruction_losses
from fasterce.fitting.unread import find_unread, mark_read
from fasterce.fitting.validate import MIN_ROWS, check_missing_accepted, custom_autoencoder, read_training_rows
from fasterce.io.progress import Progress
from fasterce.latent import prototypes
from fasterce.latent.autoencoder import TrainingPlan, split, train
from fasterce.latent.hyperplanes import Hyperplanes, fit_hyperplanes
from fasterce.latent.regions import Agreement, Regions, fit_regions
from fasterce.latent.runtime import Autoencoder
from fasterce.latent.sampling import Samples, sample
from fasterce.models.adapters import predicts_numbers
from fasterce.models.compiled.model import CompiledModel
from fasterce.models.compiled.use import make
from fasterce.models.predictions import FAILED, Predictions
from fasterce.models.predictor import Predictor
from fasterce.options import FitOptions
from fasterce.search.distance import Distance
from fasterce.surrogate.knots import find_bends
from fasterce.surrogate.runtime import Surrogate
from fasterce.surrogate.train import edited_rows, leads, lowest_score, train_surrogate
from fasterce.typing import Floats, Indices, Mask

# Bends are drawn from their own stream, so that the edited rows do not depend on whether bends are searched for.
BEND_STREAM = 1


@dataclass(frozen=True)
class FitContext:
    """What every stage needs: the model, how rows are encoded, the settings, and the source of random numbers."""

    model: object
    codec: Codec
    predictor: Predictor
    settings: FitOptions
    rng: np.random.Generator

    @property
    def config(self) -> Config:
        return self.settings.tuning

    @property
    def seed(self) -> int:
        return self.settings.random_state

    def at_most(self, codes: Floats, most: int) -> Floats:
        """Return the rows, or a random sample of `most` in their order."""
        return codes if len(codes) <= most else codes[np.sort(self.rng.choice(len(codes), most, replace=False))]


def learn(model: object, X: object, schema: Schema | None, settings: FitOptions) -> FittedState:
    """Run the stages one after another; random numbers are drawn in their order."""
    started = perf_counter()
    rng = np.random.default_rng(settings.random_state)
    table, frame, codes = read_training_rows(X, schema)
    codec = Codec(table.schema, Profile.measure(codes, table.schema))
    predictor = Predictor(model, table)
    predictor.table = mark_read(predictor, frame, settings.keep_rows, settings.tuning.fit)
    context = FitContext(model, codec, predictor, settings, rng)
    evaluated = evaluate_rows(context, context.at_most(codes, settings.tuning.fit.evaluated_rows))
    coder = train_autoencoder(context, codec.encode(context.at_most(codes, settings.tuning.fit.training_rows)))
    space = explore(context, evaluated, coder.autoencoder)
    hyperplanes = fit_all_hyperplanes(context, space)
    approximations = approximate_model(context, evaluated)
    examples = choose_examples(context, space, codes, approximations.fast_model)
    parts = LearnedParts(coder, space, *hyperplanes, approximations, examples)
    state = assemble(context, parts, measure_statistics(context, codes, evaluated, coder), started)
    return replace(state, report=replace(state.report, **describe_columns(state.table, frame)))


def describe_columns(table: Table, frame: pd.DataFrame) -> dict[str, Any]:
    """Return what the report says of the columns of the training table: those passed through and why, and advice."""
    reasons = {
        str(name): detect.REASONS.get(detect.reason(frame[name]) or "", "is declared") for name in table.schema.passthrough
    }
    read = {str(name): f"{reasons[str(name)]}; the model reads it" for name in table.read_passthrough}
    return {"passthrough": reasons | read, "advice": [str(one) for one in review(frame, table.schema)]}


@dataclass(frozen=True)
class EvaluatedRows:
    """Training rows with the predictions of the model."""

    codes: Floats
    predictions: Predictions

    def take(self, rows: Indices | Mask) -> "EvaluatedRows":
        return EvaluatedRows(self.codes[rows], self.predictions.take(rows))

    def usable(self, predictor: Predictor) -> "EvaluatedRows":
        """Return the rows with a prediction; a model without any raises its failure."""
        known = self.predictions.classes != FAILED
        if not known.any():
            raise predictor.error()
        return self if known.all() else self.take(known)


def evaluate_rows(context: FitContext, codes: Floats) -> EvaluatedRows:
    """Learn what the model returns, then evaluate it on these rows."""
    check_missing_accepted(context.predictor, context.codec, codes)
    learn_outputs(context, codes)
    return EvaluatedRows(codes, context.predictor.evaluate(codes)).usable(context.predictor)


def learn_outputs(context: FitContext, codes: Floats) -> None:
    """Let the predictor find the model's classes and whether its scores can be used, or the scale of its numbers."""
    predictor, settings = context.predictor, context.settings
    if settings.task == "regression" or (settings.task == "auto" and predicts_numbers(predictor.model)):
        predictor.learn_numbers(codes)
        return
    predictor.learn_classes(codes)
    checked = codes[: context.config.fit.score_check_rows]
    predictor.use_scores = settings.scores == "auto" and predictor.trust_scores(checked)


@dataclass(frozen=True)
class TrainedCoder:
    """The autoencoder, the epochs of its training, and encoded rows held out from it."""

    autoencoder: Autoencoder
    epochs: int
    unseen: Floats


def train_autoencoder(context: FitContext, matrix: Floats) -> TrainedCoder:
    """Return the caller's own pair of functions, or a network trained on these rows."""
    settings, config = context.settings, context.config.latent
    if settings.autoencoder is not None:
        own = custom_autoencoder(settings.autoencoder, matrix[:MIN_ROWS])
        return TrainedCoder(own, 0, matrix[split(len(matrix), context.seed, config)[2]])
    plan = TrainingPlan.choose(len(matrix), context.codec, settings.latent_dim, config)
    trained = train(matrix, context.codec, plan, context.seed, Progress(settings.progress))
    return TrainedCoder(trained.network, trained.epochs, trained.held_out)


@dataclass(frozen=True)
class LabelledPoints:
    """Points with their codes, latent coordinates, the model's class, and the row each one comes from."""

    codes: Floats
    latent: Floats
    classes: Indices
    origin: Indices

    def take(self, points: Indices | Mask) -> "LabelledPoints":
        return LabelledPoints(self.codes[points], self.latent[points], self.classes[points], self.origin[points])

    def __add__(self, other: "LabelledPoints") -> "LabelledPoints":
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return LabelledPoints(*(np.concatenate(arrays) for arrays in both))

    def first_of_each_class(self, most: int) -> "LabelledPoints":
        kept = [np.flatnonzero(self.classes == label)[:most] for label in np.unique(self.classes)]
        return self.take(np.sort(np.concatenate(kept)))


@dataclass(frozen=True)
class LatentSpace:
    """The latent space as the model labels it: training rows, samples around and beyond them, and the points to fit to."""

    rows: LabelledPoints
    samples: LabelledPoints
    points: LabelledPoints


def explore(context: FitContext, evaluated: EvaluatedRows, autoencoder: Autoencoder) -> LatentSpace:
    """Sample the latent space near the rows and beyond, decode, and label the samples with the model."""
    codec, classes = context.codec, evaluated.predictions.classes
    around = _balanced(classes, context.rng)
    anchors = autoencoder.encode(codec.encode(evaluated.codes[around]))
    drawn = sample(anchors, autoencoder, codec, context.seed, context.config.latent)
    labels = context.predictor.evaluate(drawn.codes).classes
    if len(labels) and (labels == FAILED).all():
        raise context.predictor.error()
    samples = LabelledPoints(drawn.codes, drawn.latent, labels, _origins(drawn, around)).take(labels != FAILED)
    latent = autoencoder.encode(codec.encode(evaluated.codes))
    rows = LabelledPoints(evaluated.codes, latent, classes, np.arange(len(classes)))
    points = samples + rows.first_of_each_class(context.config.fit.points_per_class)
    seen = np.unique(points.classes)
    if len(seen) < 2:
        raise ModelError("fitting.one_class", received=context.predictor.classes[seen[0]])
    return LatentSpace(rows, samples, points)


def _balanced(classes: Indices, rng: np.random.Generator) -> Indices:
    """Draw rows to sample around, the same number of every class: a rare class needs a hyperplane too."""
    seen = np.unique(classes[classes != FAILED])
    share = max(1, len(classes) // max(len(seen), 1))
    return np.concatenate([rng.choice(np.flatnonzero(classes == label), share) for label in seen])


def _origins(samples: Samples, around: Indices) -> Indices:
    """Return the row each sample was drawn around; a negative number of its own where there was none."""
    return np.where(samples.anchor >= 0, around[samples.anchor], -1 - np.arange(len(samples)))


def fit_all_hyperplanes(context: FitContext, space: LatentSpace) -> tuple[Hyperplanes, Regions, Agreement]:
    """Return the hyperplanes of the whole latent space, those of its regions, and how well both agree on held-out points."""
    points, codec, config = space.points, context.codec, context.config.latent
    numeric, classes = len(codec.numeric), len(context.predictor.classes)
    whole = fit_hyperplanes(points.latent, codec.encode(points.codes), numeric, points.classes, classes, config)
    return whole, *fit_regions(points.latent, points.classes, points.origin, whole, context.seed, config)


@dataclass(frozen=True)
class Approximations:
    """What is evaluated in place of the model.

    compiled     the compiled model, None where there is none; `description` says what it is or why there is none
    fast_model   the compiled model, or else the model itself
    lowest       the lower end of its scores
    surrogate    the network that approximates it, None where it could not be trained
    """

    compiled: CompiledModel | None
    description: str
    fast_model: Predictor | CompiledModel
    lowest: float
    surrogate: Surrogate | None


def approximate_model(context: FitContext, evaluated: EvaluatedRows) -> Approximations:
    option, config = context.settings.compile, context.config
    compiled, description = make(context.model, context.predictor, evaluated.codes, option, config.compiled)
    fast_model = compiled.session() if compiled else context.predictor
    lowest = lowest_score(evaluated.predictions.scores, config.surrogate)
    surrogate = fit_surrogate(context, evaluated, fast_model, lowest)
    return Approximations(compiled, description, fast_model, lowest, surrogate)


def fit_surrogate(
    context: FitContext, evaluated: EvaluatedRows, fast_model: Predictor | CompiledModel, lowest: float
) -> Surrogate | None:
    """Train a surrogate on the predictions of the model, or of the compiled model, for rows and edits of them."""
    codec, config, classes = context.codec, context.config.surrogate, len(context.predictor.classes)

    def margins(codes: Floats) -> Floats:
        found = fast_model.evaluate(codes)
        return np.where(found.classes[:, None] >= 0, leads(found, classes, lowest), np.nan)

    codes, known, bends = evaluated.codes, evaluated.predictions, list[Floats]()
    if known.scores is not None:
        # Labels jump where a row crosses the boundary, which is another place for every row.
        rng = np.random.default_rng([context.seed, BEND_STREAM])
        bends = find_bends(margins, codes, known.classes, codec, rng, config)
    edited = edited_rows(codes, known.classes, codec, np.random.default_rng(context.seed), bends, config)
    predictions = Predictions.concatenate([known, fast_model.evaluate(edited)])
    every = np.concatenate([codes, edited])
    return train_surrogate(every, predictions, codec, classes, context.seed, lowest, bends, config)


def choose_examples(
    context: FitContext, space: LatentSpace, codes: Floats, fast_model: Predictor | CompiledModel
) -> LabelledPoints:
    """Return rows to start a search from and to stay near to: real ones where they may be kept, else decoded samples."""
    examples = space.samples
    if context.settings.keep_rows:
        examples = with_samples(context, _all_rows(context, space.rows, codes, fast_model), space.samples)
    return examples.first_of_each_class(context.config.fit.examples_per_class)


def with_samples(context: FitContext, rows: LabelledPoints, samples: LabelledPoints) -> LabelledPoints:
    """Add decoded samples of classes with few rows only: a decoder may combine values that never occur together."""
    few = context.config.fit.rare_class_rows
    rare = [label for label in np.unique(samples.classes) if (rows.classes == label).sum() < few]
    return rows + samples.take(np.isin(samples.classes, rare))


def _all_rows(
    context: FitContext, rows: LabelledPoints, codes: Floats, fast_model: Predictor | CompiledModel
) -> LabelledPoints:
    """Return the rows evaluated so far and more training rows where there are, each once."""
    more = context.config.fit.example_rows - len(rows.codes)
    if len(codes) <= len(rows.codes) or more <= 0:
        return rows.take(rows.classes != FAILED)
    others = context.at_most(codes, more)
    classes = fast_model.evaluate(others).classes
    no_latent = np.zeros((len(others), rows.latent.shape[1]))
    every = rows + LabelledPoints(others, no_latent, classes, np.arange(len(others)))
    once = np.sort(np.unique(every.codes, axis=0, return_index=True)[1])
    return every.take(once[every.classes[once] != FAILED])


@dataclass(frozen=True)
class LearnedParts:
    """What the stages have learned; `held_out` is the agreement of the hyperplanes and of those of the regions."""

    coder: TrainedCoder
    space: LatentSpace
    hyperplanes: Hyperplanes
    regions: Regions
    held_out: Agreement
    approximations: Approximations
    examples: LabelledPoints


def assemble(context: FitContext, parts: LearnedParts, statistics: TrainingStatistics, started: float) -> FittedState:
    """Return the state that consists of these parts and the report on them; `started` is when the work began."""
    search, report = search_state(context, parts), describe(context, parts, perf_counter() - started)
    report = replace(report, unread=[str(context.codec.schema.names[j]) for j in np.flatnonzero(search.unread)])
    predictor, compiled = context.predictor, parts.approximations.compiled
    outputs = predictor.classes, predictor.use_scores
    return FittedState(predictor.table, search, report, *outputs, statistics, compiled, predictor.numbers)


def search_state(context: FitContext, parts: LearnedParts) -> SearchState:
    """Return the state of the search, with what is measured on the parts: distances, groups, prototypes."""
    codec, config, planes = context.codec, context.config.latent, parts.hyperplanes
    points, examples = parts.space.points, parts.examples
    distance = Distance.gower(codec.profile.span, codec.numeric, codec.nullable)
    centres, centre_classes = prototypes.prototypes(points.latent, points.classes, context.seed, config)
    return SearchState(
        codec=codec,
        autoencoder=parts.coder.autoencoder,
        hyperplanes=planes,
        regions=parts.regions,
        examples=examples.codes,
        example_classes=examples.classes,
        distance=distance,
        typical=prototypes.typical_distances(distance, examples.codes, examples.classes, planes.classes, config),
        groups=prototypes.linked_groups(parts.space.rows.codes, codec, config),
        prototypes=centres,
        prototype_classes=centre_classes,
        lowest=parts.approximations.lowest,
        surrogate=parts.approximations.surrogate,
        config=context.config,
        unread=find_unread(parts.approximations.fast_model.evaluate, codec, parts.space.rows.codes, context.config.fit),
    )


def describe(context: FitContext, parts: LearnedParts, seconds: float) -> FitReport:
    """Measure the quality of the parts."""
    coder, rows, planes, approximations = parts.coder, parts.space.rows, parts.hyperplanes, parts.approximations
    agreement, base = prediction_agreement(planes, rows.latent, rows.classes)
    return FitReport(
        features=quality_by_feature(context.codec, coder.autoencoder, planes, coder.unseen),
        agreement=agreement,
        agreement_base=base,
        regions=len(parts.regions),
        agreement_one_plane=parts.held_out.one_plane,
        agreement_by_region=parts.held_out.regional,
        epochs=coder.epochs,
        latent=rows.latent.shape[1],
        samples=len(parts.space.samples.codes),
        seconds=seconds,
        calls=context.predictor.usage.calls,
        model_rows=context.predictor.usage.rows,
        scores=context.predictor.use_scores,
        surrogate_agreement=approximations.surrogate.agreement if approximations.surrogate else None,
        compiled=approximations.description,
    )


def measure_statistics(
    context: FitContext, codes: Floats, evaluated: EvaluatedRows, coder: TrainedCoder
) -> TrainingStatistics:
    """Return what `update` and `drift` need to know of the training rows."""
    predictor, codec = context.predictor, context.codec
    kept = evaluated.codes if context.settings.keep_rows else evaluated.codes[:0]
    cuts = prediction_cuts(evaluated.predictions, predictor.numbers)
    counts = count_predictions(evaluated.predictions, predictor.numbers, cuts, len(predictor.classes))
    losses = reconstruction_losses(coder.autoencoder, codec, coder.unseen)
    return TrainingStatistics.start(codes, kept, cuts, counts, losses, codec.schema)
