"""Fold new training rows into a fitted explainer, in the order of `fit`, training again only what no longer fits.

What was seen before stands as a fair sample of rows in `Memory` (as decoded samples where rows must not be kept). Nothing
of the explainer is touched here: a whole new `Learned` comes back, or an error.
"""

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce import fitting
from fasterce.codec import Codec
from fasterce.drift import Compared, copy_agrees, rebuilt
from fasterce.errors import InputError, MissingExtraError
from fasterce.fitting import Coder, Heard, Labelled, Learned, Settings, Space, StandIns
from fasterce.latent.runtime import Network
from fasterce.latent.train import TrainingPlan, moved, torch_or_none, train
from fasterce.memory import (
    Memory,
    cuts_of_answers,
    merged_profile,
    reconstruction_losses,
    summed_up,
    tally_answers,
)
from fasterce.predictor import FAILED, Numbers, Predictor
from fasterce.profile import Floats
from fasterce.progress import Progress
from fasterce.schema import MISSING
from fasterce.search.task import Knowledge
from fasterce.surrogate.runtime import Surrogate
from fasterce.surrogate.train import lowest_score
from fasterce.table import Table
from fasterce.twin.compiled import Twin
from fasterce.twin.use import make

Indices = NDArray[np.intp]

ENOUGH_ROWS = 50


@dataclass(frozen=True)
class UpdateReport:
    """What `FasterCE.update` did.

    rows, seen      new rows, and all rows seen since `fit`
    examples        rows the explainer now starts from
    reconstruction  the autoencoder's loss on the new rows beside that on `fit`'s held-out rows, as it was found;
    epochs          how long it was trained again, 0 where it was not
    copy            how often the copy agreed with the model on the new rows, None where there was none or the model is new
    redistilled, new_model, from_samples   whether the copy was distilled again, whether the model was changed, and
                    whether decoded samples stood for the old rows because the explainer keeps none
    """

    rows: int
    seen: int
    examples: int
    reconstruction: Compared
    epochs: int
    copy: Compared | None
    redistilled: bool
    new_model: bool
    from_samples: bool
    calls: int
    rows_asked: int
    seconds: float

    def __str__(self) -> str:
        trained = f"trained on for {self.epochs} epochs" if self.epochs else "kept"
        found = "" if self.copy is None else f": {self.copy}"
        lines = [
            f"{self.rows} new rows{' and a new model' if self.new_model else ''}; {self.seen} rows seen in all, "
            f"{self.examples} kept as examples",
            f"autoencoder {trained}: loss {self.reconstruction}",
            f"distilled copy {'made again' if self.redistilled else 'kept'}{found}",
            f"{self.calls} calls, {self.rows_asked} rows asked; {self.seconds:.1f} s",
        ]
        lines += ["no rows are kept: decoded samples stood for those seen before"] if self.from_samples else []
        return "\n".join(lines)


def update(
    known: Learned, model: Any, new_model: bool, rows: pd.DataFrame, settings: Settings
) -> tuple[Learned, UpdateReport]:
    """The stages of `fit` over remembered and new rows; what is random depends on the seed and the number of updates."""
    started = perf_counter()
    new = read_new_rows(known.table, rows)
    rng = np.random.default_rng([settings.random_state, int(known.memory.updates) + 1])
    table = widened(known.table, new)
    codec = Codec(table.schema, merged_profile(known.knowledge.codec.profile, known.memory, new, table.schema))
    predictor = _predictor(known, model, new_model, table)
    heard, fresh, every = ask_old_and_new(known, new, codec, predictor, settings, new_model, rng)
    coder, loss = go_on(known, codec, heard, fresh, every, settings)
    space = fitting.explore(heard, coder.autoencoder, codec, predictor, settings, rng)
    borders = fitting.draw_borders(space, codec, predictor, settings)
    new_answers = new_model or predictor.classes != known.classes
    stand_ins, agreed = renew(known, model, new_answers, heard, fresh, codec, predictor, settings)
    examples = replace_examples(known, space, fresh, new, stand_ins, new_answers, settings, rng)
    knowledge = fitting.put_together(codec, coder, space, borders, stand_ins, examples, settings)
    if not settings.keep_rows:
        knowledge = replace(knowledge, groups=known.knowledge.groups)
    memory = remember(known.memory, new, heard, fresh, coder, knowledge, predictor.numbers, new_answers, settings)
    report = fitting.describe(knowledge, coder, space, borders, stand_ins, predictor, perf_counter() - started)
    report = replace(report, epochs=known.report.epochs + coder.epochs)
    learned = Learned(
        table, knowledge, report, predictor.classes, predictor.use_scores, memory, stand_ins.twin, predictor.numbers
    )
    return learned, _report(known, learned, loss, agreed, new_model, settings)


def _report(
    known: Learned, learned: Learned, loss: Compared, agreed: Compared | None, new_model: bool, settings: Settings
) -> UpdateReport:
    return UpdateReport(
        rows=int(learned.memory.seen - known.memory.seen),
        seen=int(learned.memory.seen),
        examples=len(learned.knowledge.examples),
        reconstruction=loss,
        epochs=learned.report.epochs - known.report.epochs,
        copy=agreed,
        redistilled=learned.knowledge.surrogate is not known.knowledge.surrogate,
        new_model=new_model,
        from_samples=not settings.keep_rows,
        calls=learned.report.calls,
        rows_asked=learned.report.rows_asked,
        seconds=learned.report.seconds,
    )


def read_new_rows(table: Table, rows: pd.DataFrame) -> Floats:
    reading = table.read(rows)
    if len(rows) == 0:
        raise InputError("new_rows must have at least one row; got none.")
    if reading.problems:
        sentence = reading.problems[min(reading.problems)]
        again = "an update learns no new categories, ranges or types: fit again for these"
        raise InputError(f"new_rows has {len(reading.problems)} rows that cannot be used ({again}); the first: {sentence}")
    fitting.check_sizes(reading.codes, table.schema)
    return reading.codes


def widened(table: Table, new: Floats) -> Table:
    """Ranges read off the data grow with it; declared ones do not."""
    # Where all is missing the ends are NaN, which `min` and `max` pass over in second place.
    there = np.where(new == MISSING, np.nan, new)
    ends = np.fmin.reduce(there, axis=0), np.fmax.reduce(there, axis=0)
    features = tuple(
        replace(feature, lower=min(feature.lower, float(low)), upper=max(feature.upper, float(high)))
        if feature.numeric and not feature.declared
        else feature
        for feature, low, high in zip(table.schema.features, *ends, strict=True)
    )
    return replace(table, schema=replace(table.schema, features=features))


def _predictor(known: Learned, model: Any, new_model: bool, table: Table) -> Predictor:
    if new_model:
        return Predictor(model, table)
    predictor = Predictor(model, table, known.classes, known.use_scores, known.numbers)
    predictor.learning = getattr(predictor.model, "classes_", None) is None
    return predictor


def ask_old_and_new(
    known: Learned,
    new: Floats,
    codec: Codec,
    predictor: Predictor,
    settings: Settings,
    new_model: bool,
    rng: np.random.Generator,
) -> tuple[Heard, Heard, Floats]:
    """A fair sample of everything seen, the new rows, and the rows of both; the model is asked about all at once."""
    old = known.memory.rows if len(known.memory.rows) else known.knowledge.examples
    some = fitting.some_of(new, fitting.MOST_ASKED_ROWS, rng)
    codes = np.concatenate([old, some])
    if new_model:
        fitting.check_missing_accepted(predictor, codec, codes)
        fitting.learn_answers(codes, predictor, settings)
    every = Heard(codes, predictor.ask(codes))
    weight = np.repeat([float(known.memory.seen) / len(old), len(new) / len(some)], [len(old), len(some)])
    heard = every.take(reservoir(weight, fitting.MOST_ASKED_ROWS, rng)).answered(predictor)
    return heard, every.take(np.arange(len(codes)) >= len(old)).answered(predictor), codes


def reservoir(weight: Floats, most: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which `most` entries to keep: a weighted draw without replacement, all of them where there are not more."""
    kept = np.ones(len(weight), dtype=bool)
    if len(weight) > most:
        arrival = rng.exponential(size=len(weight)) / weight
        kept[np.argsort(arrival, kind="stable")[most:]] = False
    return kept


def go_on(
    known: Learned, codec: Codec, heard: Heard, fresh: Heard, every: Floats, settings: Settings
) -> tuple[Coder, Compared]:
    """The autoencoder as it is, or trained on where it rebuilds new rows, or all of them in the new codec, too badly.

    New rows all take part in the training, more than their share of what was seen: they are what it does not know yet."""
    before = known.knowledge
    network = before.autoencoder
    same_columns = [list(block.codes) for block in codec.blocks] == [list(block.codes) for block in before.codec.blocks]
    if isinstance(network, Network) and not same_columns:
        network = moved(network, before.codec, codec)
    elif not same_columns:
        raise InputError("new_rows has categories the autoencoder of your own has no columns for; expected another fit.")
    now = replace(before, codec=codec, autoencoder=network)
    loss, overall = rebuilt(known.memory, now, fresh.codes), rebuilt(known.memory, now, heard.codes)
    if not isinstance(network, Network) or (same_columns and not loss.drifted and not overall.drifted):
        return Coder(network, 0, codec.encode((fresh if len(fresh.codes) >= ENOUGH_ROWS else heard).codes)), loss
    matrix = codec.encode(every)
    plan = TrainingPlan.go_on(len(matrix), codec, network)
    trained = train(matrix, codec, plan, settings.random_state, Progress(settings.progress), network)
    return Coder(trained.network, trained.epochs, trained.held_out), loss


def renew(
    known: Learned,
    model: Any,
    new_answers: bool,
    heard: Heard,
    fresh: Heard,
    codec: Codec,
    predictor: Predictor,
    settings: Settings,
) -> tuple[StandIns, Compared | None]:
    """The twin of a new model; and the copy again where the model is new or the copy no longer says what it says."""
    twin, about_twin = (known.twin, known.report.twin)
    if new_answers:
        twin, about_twin = make(model, predictor, heard.codes, settings.twin)
    quick = twin.session() if twin else predictor
    lowest = lowest_score(heard.answers.scores)
    agreed = None if new_answers else copy_agrees(known.memory, known.knowledge, fresh.codes, fresh.answers.classes)
    copy = known.knowledge.surrogate
    if new_answers or (agreed is not None and agreed.drifted):
        copy = _distilled(copy, quick, heard, codec, predictor, settings, lowest)
    return StandIns(twin, about_twin, quick, lowest, copy), agreed


def _distilled(
    copy: Surrogate | None,
    quick: Predictor | Twin,
    heard: Heard,
    codec: Codec,
    predictor: Predictor,
    settings: Settings,
    lowest: float,
) -> Surrogate | None:
    if copy is not None and torch_or_none() is None:
        raise MissingExtraError("PyTorch", "train", "Distilling the copy again")
    return fitting.distil_copy(quick, heard, codec, predictor, settings, lowest)


def replace_examples(
    known: Learned,
    space: Space,
    fresh: Heard,
    new: Floats,
    stand_ins: StandIns,
    new_answers: bool,
    settings: Settings,
    rng: np.random.Generator,
) -> Labelled:
    """Old examples and new rows, in fair shares of what was seen and never more than `fit` keeps; or decoded samples."""
    if not settings.keep_rows:
        return fitting.first_of_each_class(space.sampled, fitting.MOST_EXAMPLES)
    old, classes = known.knowledge.examples, known.knowledge.example_classes
    if new_answers:
        classes = stand_ins.quick.ask(old).classes
    weight = np.repeat([float(known.memory.seen) / len(old), len(new) / len(fresh.codes)], [len(old), len(fresh.codes)])
    codes, classes = np.concatenate([old, fresh.codes]), np.concatenate([classes, fresh.answers.classes])
    once = np.sort(np.unique(codes, axis=0, return_index=True)[1])
    kept = [once[classes[once] == label] for label in np.unique(classes[classes != FAILED])]
    kept = [mine[reservoir(weight[mine], fitting.MOST_EXAMPLES, rng)] for mine in kept]
    real = _labelled(codes, classes, space.sampled.latent.shape[1], np.sort(np.concatenate(kept)))
    return fitting.first_of_each_class(fitting.with_samples(real, space.sampled), fitting.MOST_EXAMPLES)


def _labelled(codes: Floats, classes: Indices, latent: int, kept: Indices) -> Labelled:
    return Labelled(codes[kept], np.zeros((len(kept), latent)), classes[kept], kept)


def remember(
    memory: Memory,
    new: Floats,
    heard: Heard,
    fresh: Heard,
    coder: Coder,
    knowledge: Knowledge,
    numbers: Numbers | None,
    new_answers: bool,
    settings: Settings,
) -> Memory:
    """Counts and sums with the new rows added; what says how good a piece is only where the piece is new."""
    after = memory.and_rows(new, knowledge.codec.schema)
    cuts = cuts_of_answers(heard.answers, numbers) if new_answers else memory.answer_cuts
    some = heard if settings.keep_rows else fresh
    answered = tally_answers(some.answers, numbers, cuts, knowledge.hyperplanes.classes)
    if not (settings.keep_rows or new_answers):
        answered = answered + memory.classes
    losses = reconstruction_losses(coder.autoencoder, knowledge.codec, coder.unseen) if coder.epochs else None
    return replace(
        after,
        answer_cuts=cuts,
        classes=answered,
        reconstruction=memory.reconstruction if losses is None else summed_up(losses),
        rows=heard.codes if settings.keep_rows else memory.rows,
    )
