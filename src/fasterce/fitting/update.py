"""Add new training rows to a fitted explainer, in the order of `fit`, training again only what no longer fits.

`TrainingStatistics` holds a random sample of the rows seen before (decoded samples where rows must not be kept). The
explainer is not changed here: a whole new `FittedState` is returned, or an error raised.
"""

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from fasterce.data.codec import Codec
from fasterce.data.schema import MISSING
from fasterce.data.table import Table
from fasterce.errors import InputError
from fasterce.fitting import pipeline
from fasterce.fitting.drift import Compared, compare_reconstruction, compare_surrogate
from fasterce.fitting.pipeline import EvaluatedRows, FitContext
from fasterce.fitting.report import FitReport
from fasterce.fitting.state import FittedState
from fasterce.fitting.statistics import (
    TrainingStatistics,
    count_predictions,
    merged_profile,
    prediction_cuts,
    summarise,
)
from fasterce.fitting.validate import check_missing_accepted, read_rows
from fasterce.io.progress import Progress
from fasterce.latent.autoencoder import TrainingPlan, reconstruction_losses, train, with_columns
from fasterce.latent.runtime import Network
from fasterce.models.compiled.use import make
from fasterce.models.predictions import FAILED
from fasterce.models.predictor import Predictor
from fasterce.options import FitOptions
from fasterce.surrogate.train import lowest_score
from fasterce.typing import Floats, Mask


@dataclass(frozen=True)
class UpdateReport:
    """The result of `FasterCE.update`.

    Attributes
    ----------
    rows, seen : int
        New rows, and all rows seen since `fit`.
    examples : int
        Rows the explainer now keeps as examples.
    reconstruction : Compared
        Loss of the autoencoder on the new rows, compared with that on the held-out rows of `fit`.
    epochs : int
        Epochs of further training; 0 if none was needed.
    surrogate : Compared or None
        Agreement of the surrogate with the model on the new rows; None without a surrogate or for a new model.
    surrogate_retrained, new_model : bool
        Whether the surrogate was trained again, and whether the model was replaced.
    from_samples : bool
        Whether decoded samples represented the old rows, because the explainer keeps no rows.
    calls, model_rows : int
        Model calls, and the rows the model evaluated.
    seconds : float
        Time of `update`.
    """

    rows: int
    seen: int
    examples: int
    reconstruction: Compared
    epochs: int
    surrogate: Compared | None
    surrogate_retrained: bool
    new_model: bool
    from_samples: bool
    calls: int
    model_rows: int
    seconds: float

    def __str__(self) -> str:
        trained = f"trained for {self.epochs} more epochs" if self.epochs else "kept"
        agreement = "" if self.surrogate is None else f": {self.surrogate}"
        lines = [
            f"{self.rows} new rows{' and a new model' if self.new_model else ''}; {self.seen} rows seen in all, "
            f"{self.examples} kept as examples",
            f"autoencoder {trained}: loss {self.reconstruction}",
            f"surrogate {'trained again' if self.surrogate_retrained else 'kept'}{agreement}",
            f"{self.calls} calls, {self.model_rows} model rows; {self.seconds:.1f} s",
        ]
        lines += ["no rows are kept: decoded samples stood for those seen before"] if self.from_samples else []
        return "\n".join(lines)


@dataclass(frozen=True)
class NewRows:
    """The new rows, with a sample of those seen before.

    codes      all new rows
    evaluated  a random sample of everything seen, with predictions
    fresh      the new rows among those the model was evaluated on
    every      codes of all rows the model was evaluated on, old and new
    """

    codes: Floats
    evaluated: EvaluatedRows
    fresh: EvaluatedRows
    every: Floats


def update(
    before: FittedState, model: object, new_model: bool, rows: object, settings: FitOptions
) -> tuple[FittedState, UpdateReport]:
    """Run the stages of `fit` over stored and new rows; random numbers depend on the seed and the number of updates."""
    started = perf_counter()
    codes = read_rows(before.table, rows, "new_rows", "fitting.unusable_new_rows", least=1)
    rng = np.random.default_rng([settings.random_state, int(before.statistics.updates) + 1])
    table = widened(before.table, codes)
    codec = Codec(table.schema, merged_profile(before.search.codec.profile, before.statistics, codes, table.schema))
    max_rows = before.report.max_fit_rows if settings.max_fit_rows is None else settings.max_fit_rows
    context = FitContext(model, codec, _predictor(before, model, new_model, table), settings, rng, max_rows)
    new = evaluate_old_and_new(context, before, codes, new_model)
    coder, loss = continue_training(context, before, new)
    space = pipeline.explore(context, new.evaluated, coder.autoencoder)
    hyperplanes = pipeline.fit_all_hyperplanes(context, space)
    new_outputs = new_model or context.predictor.classes != before.classes
    approximations, agreement = renew_approximations(context, before, new, new_outputs)
    examples = merge_examples(context, before, new, space, approximations, new_outputs)
    parts = pipeline.LearnedParts(coder, space, *hyperplanes, approximations, examples)
    statistics = merge_statistics(context, before.statistics, new, coder, new_outputs)
    after = pipeline.assemble(context, parts, statistics, started)
    after = replace(after, report=_report(before, after, coder.epochs))
    if not settings.keep_rows:
        after = replace(after, search=replace(after.search, groups=before.search.groups))
    return after, UpdateReport(
        rows=int(after.statistics.seen - before.statistics.seen),
        seen=int(after.statistics.seen),
        examples=len(after.search.examples),
        reconstruction=loss,
        epochs=after.report.epochs - before.report.epochs,
        surrogate=agreement,
        surrogate_retrained=after.search.surrogate is not before.search.surrogate,
        new_model=new_model,
        from_samples=not settings.keep_rows,
        calls=after.report.calls,
        model_rows=after.report.model_rows,
        seconds=after.report.seconds,
    )


def _report(before: FittedState, after: FittedState, epochs: int) -> FitReport:
    """Return the report with the findings about columns in `fit`, and the epochs of `fit` and all updates."""
    known = before.report
    return replace(after.report, epochs=known.epochs + epochs, passthrough=known.passthrough, advice=known.advice)


def widened(table: Table, new: Floats) -> Table:
    """Extend ranges inferred from the data to the new rows; declared ones stay."""
    # Where all is missing the ends are NaN, which `min` and `max` ignore as their second argument.
    present = np.where(new == MISSING, np.nan, new)
    ends = np.fmin.reduce(present, axis=0), np.fmax.reduce(present, axis=0)
    features = tuple(
        replace(feature, lower=min(feature.lower, float(low)), upper=max(feature.upper, float(high)))
        if feature.numeric and not feature.declared
        else feature
        for feature, low, high in zip(table.schema.features, *ends, strict=True)
    )
    return replace(table, schema=replace(table.schema, features=features))


def _predictor(before: FittedState, model: object, new_model: bool, table: Table) -> Predictor:
    if new_model:
        return Predictor(model, table)
    predictor = Predictor(model, table, before.classes, before.use_scores, before.numbers)
    predictor.learning = getattr(predictor.model, "classes_", None) is None
    return predictor


def evaluate_old_and_new(context: FitContext, before: FittedState, new: Floats, new_model: bool) -> NewRows:
    """Evaluate stored and new rows at once."""
    predictor, most = context.predictor, context.config.fit.evaluated_rows
    old = before.statistics.rows if len(before.statistics.rows) else before.search.examples
    some = context.at_most(new, most)
    codes = np.concatenate([old, some])
    if new_model:
        check_missing_accepted(predictor, context.codec, codes)
    predictions = pipeline.learn_outputs(context, codes) if new_model else context.evaluate(codes, predictor)
    every = EvaluatedRows(codes, predictions)
    weight = np.repeat([float(before.statistics.seen) / len(old), len(new) / len(some)], [len(old), len(some)])
    evaluated = every.take(reservoir(weight, most, context.rng)).usable(predictor)
    return NewRows(new, evaluated, every.take(np.arange(len(codes)) >= len(old)).usable(predictor), codes)


def reservoir(weight: Floats, most: int, rng: np.random.Generator) -> Mask:
    """Return which `most` entries to keep: a weighted draw without replacement, all of them where there are not more."""
    kept = np.ones(len(weight), dtype=bool)
    if len(weight) > most:
        arrival = rng.exponential(size=len(weight)) / weight
        kept[np.argsort(arrival, kind="stable")[most:]] = False
    return kept


def continue_training(context: FitContext, before: FittedState, new: NewRows) -> tuple[pipeline.TrainedCoder, Compared]:
    """Return the autoencoder, trained further if its loss on the new rows, or on all rows in the new encoding, is too high.

    All new rows take part in the training, more than their share of the rows seen: the network has not seen them.
    """
    codec, config, network = context.codec, context.config, before.search.autoencoder
    blocks = [[list(block.codes) for block in one.blocks] for one in (codec, before.search.codec)]
    same_columns = blocks[0] == blocks[1]
    if isinstance(network, Network) and not same_columns:
        network = with_columns(network, before.search.codec, codec)
    elif not same_columns:
        raise InputError("fitting.new_categories", option="new_rows")
    now = replace(before.search, codec=codec, autoencoder=network)
    loss, overall = (
        compare_reconstruction(before.statistics, now, rows.codes, config.fit) for rows in (new.fresh, new.evaluated)
    )
    if not isinstance(network, Network) or (same_columns and not loss.drifted and not overall.drifted):
        measured = new.fresh if len(new.fresh.codes) >= config.fit.update_min_rows else new.evaluated
        return pipeline.TrainedCoder(network, 0, codec.encode(measured.codes)), loss
    matrix = codec.encode(new.every)
    plan = TrainingPlan.continue_from(network, len(matrix), codec, config.latent)
    trained = train(matrix, codec, plan, context.seed, Progress(context.settings.progress), network)
    return pipeline.TrainedCoder(trained.network, trained.epochs, trained.held_out), loss


def renew_approximations(
    context: FitContext, before: FittedState, new: NewRows, new_outputs: bool
) -> tuple[pipeline.Approximations, Compared | None]:
    """Compile a new model; train the surrogate again where the model is new or the surrogate agrees less with it."""
    compiled, description = before.compiled, before.report.compiled
    if new_outputs:
        option, config = context.settings.compile, context.config.compiled
        compiled, description = make(context.model, context.predictor, new.evaluated.codes, option, config)
    fast_model = compiled.session() if compiled else context.predictor
    lowest = lowest_score(new.evaluated.predictions.scores, context.config.surrogate)
    agreement = None
    if not new_outputs:
        classes = new.fresh.predictions.classes
        agreement = compare_surrogate(before.statistics, before.search, new.fresh.codes, classes, context.config.fit)
    surrogate = before.search.surrogate
    if new_outputs or (agreement is not None and agreement.drifted):
        surrogate = pipeline.fit_surrogate(context, new.evaluated, fast_model, lowest)
    return pipeline.Approximations(compiled, description, fast_model, lowest, surrogate), agreement


def merge_examples(
    context: FitContext,
    before: FittedState,
    new: NewRows,
    space: pipeline.LatentSpace,
    approximations: pipeline.Approximations,
    new_outputs: bool,
) -> pipeline.LabelledPoints:
    """Return old examples and new rows in their shares of what was seen, no more than `fit` keeps; or decoded samples."""
    most = context.config.fit.examples_per_class
    if not context.settings.keep_rows:
        return space.samples.first_of_each_class(most)
    old, classes, fresh = before.search.examples, before.search.example_classes, new.fresh
    if new_outputs:
        classes = context.evaluate(old, approximations.fast_model).classes
    shares = [float(before.statistics.seen) / len(old), len(new.codes) / len(fresh.codes)]
    weight = np.repeat(shares, [len(old), len(fresh.codes)])
    codes, classes = np.concatenate([old, fresh.codes]), np.concatenate([classes, fresh.predictions.classes])
    once = np.sort(np.unique(codes, axis=0, return_index=True)[1])
    by_class = [once[classes[once] == label] for label in np.unique(classes[classes != FAILED])]
    kept = np.sort(np.concatenate([mine[reservoir(weight[mine], most, context.rng)] for mine in by_class]))
    no_latent = np.zeros((len(kept), space.samples.latent.shape[1]))
    rows = pipeline.LabelledPoints(codes[kept], no_latent, classes[kept], kept)
    return pipeline.with_samples(context, rows, space.samples).first_of_each_class(most)


def merge_statistics(
    context: FitContext,
    before: TrainingStatistics,
    new: NewRows,
    coder: pipeline.TrainedCoder,
    new_outputs: bool,
) -> TrainingStatistics:
    """Return counts and sums with the new rows added; the quality of a part changes only where the part is new."""
    numbers, keep_rows = context.predictor.numbers, context.settings.keep_rows
    cuts = prediction_cuts(new.evaluated.predictions, numbers) if new_outputs else before.prediction_cuts
    counted = new.evaluated if keep_rows else new.fresh
    classes = count_predictions(counted.predictions, numbers, cuts, len(context.predictor.classes))
    if not (keep_rows or new_outputs):
        classes = classes + before.classes
    reconstruction = before.reconstruction
    if coder.epochs:
        reconstruction = summarise(reconstruction_losses(coder.autoencoder, context.codec, coder.unseen))
    return replace(
        before.add_rows(new.codes, context.codec.schema),
        prediction_cuts=cuts,
        classes=classes,
        reconstruction=reconstruction,
        rows=new.evaluated.codes if keep_rows else before.rows,
    )
