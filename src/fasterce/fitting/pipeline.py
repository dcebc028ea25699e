"""The stages of `fit`, in the paper's order: encode, train, sample and label the latent space, fit the hyperplanes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from fasterce.config import Config
from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.review import Advice, passthrough_reason, review, warn_of_columns
from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.errors import ModelError
from fasterce.fitting.budget import TableSize, choose_max_rows, limit_sizes
from fasterce.fitting.report import FitReport, prediction_agreement, quality_by_feature
from fasterce.fitting.state import FittedState, SearchState
from fasterce.fitting.statistics import TrainingStatistics, count_predictions, prediction_cuts
from fasterce.fitting.unread import at_boundary, find_unread, mark_read
from fasterce.fitting.validate import MIN_ROWS, check_missing_accepted, custom_autoencoder, read_training_rows
from fasterce.io.progress import Progress, ShowDone
from fasterce.latent import prototypes
from fasterce.latent.autoencoder import TrainingPlan, reconstruction_losses, split, train
from fasterce.latent.hyperplanes import Hyperplanes, fit_hyperplanes
from fasterce.latent.regions import Agreement, Regions, fit_regions
from fasterce.latent.runtime import Autoencoder
from fasterce.latent.sampling import Samples, sample
from fasterce.models.adapters import predicts_numbers
from fasterce.models.compiled.build import NATIVE
from fasterce.models.compiled.model import CompiledModel
from fasterce.models.compiled.use import compile_search, make
from fasterce.models.predictions import FAILED, Predictions
from fasterce.models.predictor import ModelUsage, Predictor, find_scores
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
    """What every stage needs: the model, how rows are encoded, the settings, and the source of random numbers.

    max_rows    the most model rows to evaluate, None for the full plan
    timing      calls and rows used to choose it; they do not count, so that the same limit given leads to the same result
    progress    where stages show how far they are; `show_rows` shows the model rows so far
    """

    model: object
    codec: Codec
    predictor: Predictor
    settings: FitOptions
    rng: np.random.Generator
    max_rows: int | None = None
    timing: ModelUsage = field(default_factory=ModelUsage)
    progress: Progress = field(default_factory=lambda: Progress(show=False))
    show_rows: ShowDone = lambda rows: None

    @property
    def config(self) -> Config:
        """The tuning constants, sizes within `max_rows`."""
        return limit_sizes(self.settings.tuning, self.max_rows)

    def within_budget(self, rows: int, fast_model: Predictor | CompiledModel, share: float = 1.0) -> int:
        """Return `rows`, or as many as a share of the model rows left allows; rows of a compiled model do not count."""
        if self.max_rows is None or fast_model is not self.predictor:
            return rows
        return min(rows, int(share * max(0, self.max_rows - self.predictor.usage.rows)))

    def evaluate(self, codes: Floats, fast_model: Predictor | CompiledModel) -> Predictions:
        """Evaluate rows, in calls of limited size for the model itself, and show the progress."""
        if fast_model is not self.predictor:
            return fast_model.evaluate(codes)
        size, parts = self.config.fit.call_rows, list[Predictions]()
        for start in range(0, max(1, len(codes)), size):
            parts.append(fast_model.evaluate(codes[start : start + size]))
            self.show_rows(self.predictor.usage.rows)
        return Predictions.concatenate(parts)

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
    advice = review(frame, table.schema, table.schema.passthrough if schema is None else ())
    if schema is None and advice:
        warn_of_columns(advice, stacklevel=3)
    codec = Codec(table.schema, Profile.measure(codes, table.schema))
    with Progress(settings.progress) as progress:
        predictor = Predictor(model, table)
        predictor.table = mark_read(predictor, frame, settings.keep_rows, settings.tuning.fit)
        context = FitContext(model, codec, predictor, settings, rng, progress=progress)
        context = with_budget(context, codes)
        evaluated = evaluate_rows(context, context.at_most(codes, context.config.fit.evaluated_rows))
        table.schema.wanted(() if predictor.numbers is not None else predictor.classes)  # raises if there is no such class
        compile_search(progress)
        coder = train_autoencoder(context, codec.encode(context.at_most(codes, context.config.fit.training_rows)))
        space = explore(context, evaluated, coder.autoencoder)
        hyperplanes = fit_all_hyperplanes(context, space)
        approximations = approximate_model(context, evaluated)
        examples = choose_examples(context, space, codes, approximations.fast_model)
        parts = LearnedParts(coder, space, *hyperplanes, approximations, examples)
        state = assemble(context, parts, measure_statistics(context, codes, evaluated, coder), started)
    return replace(state, report=replace(state.report, **describe_columns(state.table, frame, advice)))


def describe_columns(table: Table, frame: pd.DataFrame, advice: Sequence[Advice]) -> dict[str, Any]:
    """Return the passthrough columns of the training table with reasons, and advice on columns, for the report."""
    reasons = {str(name): passthrough_reason(frame[name]) for name in table.schema.passthrough}
    read = {str(name): f"{reasons[str(name)]}; the model reads it" for name in table.read_passthrough}
    return {"passthrough": reasons | read, "advice": [str(one) for one in advice if one.parameter != "passthrough"]}


def probe_features(context: FitContext, parts: "LearnedParts") -> Mask:
    """Return which features the model does not read, tested within the model rows left."""
    config, fast_model, rows = context.config.fit, parts.approximations.fast_model, parts.space.rows
    own = fast_model is context.predictor
    # The rows are moved to the boundary first, then probed in rounds.
    share = 1 / (1 + len(config.probe_rows))
    most = context.within_budget(config.probe_model_rows, fast_model, share) if own else config.probe_most_rows
    evaluate, config = partial(context.evaluate, fast_model=fast_model), replace(config, probe_most_rows=most)
    codes = rows.codes
    if not context.predictor.use_scores and context.predictor.numbers is None:
        codes = at_boundary(evaluate, codes, rows.classes, context.codec, config)
    return find_unread(evaluate, context.codec, codes, config)


def with_budget(context: FitContext, codes: Floats) -> FitContext:
    """Return the context with the most model rows, given or chosen by timing the model, and a bar for them."""
    settings, features = context.settings, codes.shape[1]
    scored = predicts_numbers(context.predictor.model) or find_scores(context.predictor.model) is not None
    dimensions = settings.latent_dim or max(2, features)
    size = TableSize(len(codes), features, dimensions, scored and settings.scores == "auto")
    predictor = Predictor(context.model, context.predictor.table)
    timed = replace(context, predictor=predictor)
    max_rows = choose_max_rows(predictor, codes, size, settings, lambda: can_compile(timed, codes))
    rows = size.model_rows(settings.tuning, compiled=False)
    show_rows = context.progress.task("Evaluating the model", rows if max_rows is None else min(rows, max_rows))
    return replace(context, max_rows=max_rows, timing=predictor.usage, show_rows=show_rows)


def can_compile(context: FitContext, codes: Floats) -> bool:
    """Return whether the model can be compiled, by a comparison on few rows."""
    settings, rows = context.settings, context.config.fit.compile_check_rows
    has_compiler = isinstance(context.predictor.model, NATIVE) or isinstance(context.model, BaseEstimator)
    if settings.compile == "never" or not has_compiler:
        return False
    learn_outputs(context, codes[:rows])
    config = replace(context.config.compiled, reference_rows=2 * rows)
    return make(context.model, context.predictor, codes[:rows], settings.compile, config)[0] is not None


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
    return EvaluatedRows(codes, learn_outputs(context, codes)).usable(context.predictor)


def learn_outputs(context: FitContext, codes: Floats) -> Predictions:
    """Evaluate rows; the predictor finds the model's classes and whether its scores can be used, or the scale of its
    numbers."""
    predictor, settings, few = context.predictor, context.settings, context.config.fit.score_check_rows
    if settings.task == "regression" or (settings.task == "auto" and predicts_numbers(predictor.model)):
        return predictor.learn_numbers(codes)
    labels = predictor.learn_classes(codes)
    checked = predictor.trusted_scores(codes[:few], labels[:few]) if settings.scores == "auto" else None
    predictor.use_scores = checked is not None
    if checked is None:
        return predictor.from_labels(labels)
    return Predictions.concatenate([checked, context.evaluate(codes[few:], predictor)]) if len(codes) > few else checked


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
    trained = train(matrix, context.codec, plan, context.seed, context.progress)
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
    labels = context.evaluate(drawn.codes, context.predictor).classes
    if len(labels) and (labels == FAILED).all():
        raise context.predictor.error()
    samples = LabelledPoints(drawn.codes, drawn.latent, labels, _origins(drawn, around)).take(labels != FAILED)
    latent = autoencoder.encode(codec.encode(evaluated.codes))
    rows = LabelledPoints(evaluated.codes, latent, classes, np.arange(len(classes)))
    points = samples + rows.first_of_each_class(context.config.fit.points_per_class)
    seen = np.unique(points.classes)
    if len(seen) < 2:
        code = "fitting.one_class" if context.max_rows is None else "fitting.one_class_in_few_rows"
        passed = list(context.predictor.table.read_passthrough)
        code = "fitting.one_class_passed" if passed else code
        received = context.predictor.classes[seen[0]]
        raise ModelError(code, received=received, max_rows=context.max_rows, columns=passed)
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
    """Approximations that are evaluated in place of the model.

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
        found = context.evaluate(codes, fast_model)
        return np.where(found.classes[:, None] >= 0, leads(found, classes, lowest), np.nan)

    codes, known, bends = evaluated.codes, evaluated.predictions, list[Floats]()
    if known.scores is not None:
        # Labels jump at the boundary, which is at a different value for every row.
        rng = np.random.default_rng([context.seed, BEND_STREAM])
        most = context.within_budget(config.bend_model_rows, fast_model, context.config.fit.bend_share)
        bends = find_bends(margins, codes, known.classes, codec, rng, replace(config, bend_model_rows=most))
    config = replace(config, max_edited_rows=context.within_budget(config.max_edited_rows, fast_model))
    edited = edited_rows(codes, known.classes, codec, np.random.default_rng(context.seed), bends, config)
    predictions = Predictions.concatenate([known, context.evaluate(edited, fast_model)])
    every = np.concatenate([codes, edited])
    return train_surrogate(every, predictions, codec, classes, context.seed, lowest, bends, config)


def choose_examples(
    context: FitContext, space: LatentSpace, codes: Floats, fast_model: Predictor | CompiledModel
) -> LabelledPoints:
    """Return examples for the search: real rows if they may be kept, otherwise decoded samples."""
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
    more = context.within_budget(context.config.fit.example_rows - len(rows.codes), fast_model)
    if len(codes) <= len(rows.codes) or more <= 0:
        return rows.take(rows.classes != FAILED)
    others = context.at_most(codes, more)
    classes = context.evaluate(others, fast_model).classes
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
        config=context.settings.tuning,
        unread=probe_features(context, parts),
        samples=parts.space.samples.latent.astype(np.float32),
        sample_classes=parts.space.samples.classes,
    )


def describe(context: FitContext, parts: LearnedParts, seconds: float) -> FitReport:
    """Measure the quality of the parts."""
    coder, rows, planes, approximations = parts.coder, parts.space.rows, parts.hyperplanes, parts.approximations
    agreement, base = prediction_agreement(planes, rows.latent, rows.classes)
    usage = context.predictor.usage + context.timing
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
        calls=usage.calls,
        model_rows=usage.rows,
        scores=context.predictor.use_scores,
        surrogate_agreement=approximations.surrogate.agreement if approximations.surrogate else None,
        compiled=approximations.description,
        max_fit_rows=context.max_rows,
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
