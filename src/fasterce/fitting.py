"""What `fit` does, in the paper's order: encode, train, sample and label the latent space, fit the hyperplanes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.adapters import says_numbers
from fasterce.codec import Codec
from fasterce.errors import InputError, ModelError, shorten
from fasterce.frames import as_pandas, kind_of
from fasterce.latent.runtime import Autoencoder, Callables
from fasterce.latent.sampling import Samples, sample
from fasterce.latent.train import TrainingPlan, split, train
from fasterce.memory import Memory, cuts_of_answers, reconstruction_losses, tally_answers
from fasterce.predictor import FAILED, Answers, Numbers, Predictor, Scores
from fasterce.profile import Floats, Profile
from fasterce.progress import Progress
from fasterce.report import FitReport, prediction_agreement, quality_by_feature
from fasterce.schema import MISSING, Schema, check_table
from fasterce.search import peers
from fasterce.search.distance import Distance
from fasterce.search.hyperplanes import Hyperplanes, fit_hyperplanes
from fasterce.search.regions import Agreement, Regions, fit_regions
from fasterce.search.task import Knowledge
from fasterce.surrogate.knots import find_bends
from fasterce.surrogate.runtime import Surrogate
from fasterce.surrogate.train import distil, edited_rows, leads, lowest_score
from fasterce.table import Table
from fasterce.twin.compiled import Twin
from fasterce.twin.use import make

FEWEST_ROWS = 10
# Below the code of a missing number.
LARGEST_NUMBER = 1e30
MOST_TRAINING_ROWS = 60_000
MOST_ASKED_ROWS = 10_000
MOST_POINTS = 3_000
MOST_EXAMPLE_ROWS, MOST_EXAMPLES = 40_000, 20_000
FEW_ROWS = 8
CHECKED_SCORES = 1_000
# Where the model bends is drawn apart: a model that does not is learned from the same edits all the same.
BENDS = 1


@dataclass(frozen=True)
class Settings:
    """The explainer's own parameters, as `fit` needs them."""

    random_state: int
    scores: Scores
    latent_dim: int | None
    autoencoder: tuple[Callable[[Any], Any], Callable[[Any], Any]] | None
    progress: bool | None
    keep_rows: bool = True
    twin: str = "auto"
    task: str = "auto"


@dataclass(frozen=True)
class Learned:
    table: Table
    knowledge: Knowledge
    report: FitReport
    classes: tuple[Any, ...]
    use_scores: bool
    memory: Memory
    twin: Twin | None = None
    numbers: Numbers | None = None


def check_settings(settings: Settings) -> None:
    if settings.task not in ("auto", "classification", "regression"):
        raise InputError(f"task must be 'auto', 'classification' or 'regression'; got {settings.task!r}.")
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
    """The stages one after another; what is random is drawn in their order."""
    started = perf_counter()
    check_settings(settings)
    rng = np.random.default_rng(settings.random_state)
    table, codes = read_training_rows(X, schema)
    codec = Codec(table.schema, Profile.measure(codes, table.schema))
    predictor = Predictor(model, table)
    asked = some_of(codes, MOST_ASKED_ROWS, rng)
    check_missing_accepted(predictor, codec, asked)
    heard = ask_about(asked, predictor, settings)
    coder = train_coder(codec.encode(some_of(codes, MOST_TRAINING_ROWS, rng)), codec, settings)
    space = explore(heard, coder.autoencoder, codec, predictor, settings, rng)
    borders = draw_borders(space, codec, predictor, settings)
    stand_ins = make_stand_ins(model, heard, codec, predictor, settings)
    examples = keep_examples(space, codes, stand_ins.quick, settings, rng)
    knowledge = put_together(codec, coder, space, borders, stand_ins, examples, settings)
    report = describe(knowledge, coder, space, borders, stand_ins, predictor, perf_counter() - started)
    memory = remember(codes, heard, coder, knowledge, predictor.numbers, settings)
    return Learned(
        table, knowledge, report, predictor.classes, predictor.use_scores, memory, stand_ins.twin, predictor.numbers
    )


def read_training_rows(X: Any, schema: Schema | None) -> tuple[Table, Floats]:
    given, X = X, as_pandas(X)
    check_table(X, "X")
    if schema is not None and not isinstance(schema, Schema):
        raise InputError(f"schema must be a fasterce.Schema or None; got {type(schema).__name__}.")
    if len(X) < FEWEST_ROWS:
        raise InputError(f"X must have at least {FEWEST_ROWS} rows to learn from; got {len(X)}.")
    table = replace(Table.like(X, schema or Schema.infer(X)), kind=kind_of(given))
    reading = table.read(X)
    if reading.problems:
        sentence = reading.problems[min(reading.problems)]
        raise InputError(f"X has {len(reading.problems)} rows that cannot be used; the first: {sentence}")
    check_sizes(reading.codes, table.schema)
    return table, reading.codes


def check_sizes(codes: Floats, schema: Schema) -> None:
    """Numbers beyond all measure cannot be told from missing ones."""
    vast = (np.abs(codes) * (codes != MISSING)).max(axis=0) > LARGEST_NUMBER
    if vast.any():
        name = schema.names[int(vast.argmax())]
        raise InputError(f"Column {name!r} must hold numbers of at most {LARGEST_NUMBER:g}; got larger ones (rescale it).")


def check_missing_accepted(predictor: Predictor, codec: Codec, codes: Floats) -> None:
    """A model that refuses missing values where the schema allows them is told from one that fails on any row."""
    features = codec.schema.features
    gappy = [j for j, feature in enumerate(features) if feature.gappy]
    if not gappy:
        return
    filled = codes[:1].copy()
    for j in gappy:
        filled[0, j] = codec.profile.median[j] if features[j].numeric else 0.0
    emptied = np.repeat(filled, len(gappy), axis=0)
    emptied[np.arange(len(gappy)), gappy] = [features[j].absent for j in gappy]
    if not predictor.answers(emptied):
        refusal = predictor.failure
        if predictor.answers(filled):
            names = shorten([features[j].name for j in gappy])
            raise ModelError(
                f"The model must accept missing values, which X or its schema has in {names}; got: {refusal.rstrip('.')}."
            )


@dataclass(frozen=True)
class Heard:
    """Training rows the model was asked about, and what it said."""

    codes: Floats
    answers: Answers

    def take(self, rows: NDArray[Any]) -> "Heard":
        scores = self.answers.scores
        return Heard(self.codes[rows], Answers(self.answers.classes[rows], None if scores is None else scores[rows]))

    def answered(self, predictor: Predictor) -> "Heard":
        """Only the rows the model has an answer for; where it has none, it is to say why."""
        known = self.answers.classes != FAILED
        if not known.any():
            raise ModelError(predictor.failure)
        return self if known.all() else self.take(known)


def ask_about(codes: Floats, predictor: Predictor, settings: Settings) -> Heard:
    learn_answers(codes, predictor, settings)
    return Heard(codes, predictor.ask(codes)).answered(predictor)


def learn_answers(codes: Floats, predictor: Predictor, settings: Settings) -> None:
    """The predictor learns the model's classes and whether its scores can be trusted."""
    if settings.task == "regression" or (settings.task == "auto" and says_numbers(predictor.model)):
        predictor.learn_numbers(codes)
        return
    predictor.learn_classes(codes)
    predictor.use_scores = settings.scores == "auto" and predictor.trust_scores(codes[:CHECKED_SCORES])


@dataclass(frozen=True)
class Coder:
    """The autoencoder, how long it was trained, and a matrix of rows kept from its training."""

    autoencoder: Autoencoder
    epochs: int
    unseen: Floats


def train_coder(matrix: Floats, codec: Codec, settings: Settings) -> Coder:
    """The caller's own pair of functions, or a network trained on these rows."""
    if settings.autoencoder is not None:
        own = _callables(settings.autoencoder)
        check_coders(own, matrix[:FEWEST_ROWS])
        return Coder(own, 0, matrix[split(len(matrix), settings.random_state)[2]])
    plan = TrainingPlan.choose(len(matrix), codec, settings.latent_dim)
    trained = train(matrix, codec, plan, settings.random_state, Progress(settings.progress))
    return Coder(trained.network, trained.epochs, trained.held_out)


def _callables(pair: Any) -> Callables:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(callable(coder) for coder in pair):
        raise InputError(f"autoencoder must be two functions (encode, decode); got {pair!r:.100}.")
    return Callables(*pair)


def check_coders(own: Callables, matrix: Floats) -> None:
    latent = own.encode(matrix)
    if latent.ndim != 2 or len(latent) != len(matrix) or latent.shape[1] == 0:
        raise InputError(f"autoencoder's encode must give one latent row a row; got shape {latent.shape} for {matrix.shape}.")
    decoded = own.decode(latent)
    if decoded.shape != matrix.shape:
        raise InputError(f"autoencoder's decode must give back shape {matrix.shape}; got {decoded.shape}.")
    for name, values in (("encode", latent), ("decode", decoded)):
        if not np.isfinite(values).all():
            raise InputError(f"autoencoder's {name} must give finite numbers; got NaN or infinity.")


def some_of(codes: Floats, most: int, rng: np.random.Generator) -> Floats:
    return codes if len(codes) <= most else codes[np.sort(rng.choice(len(codes), most, replace=False))]


@dataclass(frozen=True)
class Labelled:
    """Points with their codes, the class the model gives them, and the row each one comes from."""

    codes: Floats
    latent: Floats
    classes: NDArray[np.intp]
    origin: NDArray[np.intp]

    def take(self, points: NDArray[Any]) -> "Labelled":
        return Labelled(self.codes[points], self.latent[points], self.classes[points], self.origin[points])

    def __add__(self, other: "Labelled") -> "Labelled":
        return Labelled(
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.latent, other.latent]),
            np.concatenate([self.classes, other.classes]),
            np.concatenate([self.origin, other.origin]),
        )


@dataclass(frozen=True)
class Space:
    """The latent space as the model labels it: training rows (`answered`) and samples around and beyond them."""

    answered: Labelled
    sampled: Labelled

    @cached_property
    def points(self) -> Labelled:
        """What hyperplanes are fitted to."""
        return self.sampled + first_of_each_class(self.answered)


def explore(
    heard: Heard,
    autoencoder: Autoencoder,
    codec: Codec,
    predictor: Predictor,
    settings: Settings,
    rng: np.random.Generator,
) -> Space:
    """Sample the latent space near the rows and beyond, decode, and ask the model for labels."""
    around = _balanced(heard.answers.classes, rng)
    anchors = autoencoder.encode(codec.encode(heard.codes[around]))
    samples = sample(anchors, autoencoder, codec, settings.random_state)
    sampled = Labelled(samples.codes, samples.latent, _label(predictor, samples), _origins(samples, around))
    latent = autoencoder.encode(codec.encode(heard.codes))
    answered = Labelled(heard.codes, latent, heard.answers.classes, np.arange(len(heard.codes)))
    space = Space(answered, sampled.take(sampled.classes != FAILED))
    _check_classes(space.points, predictor)
    return space


def _balanced(classes: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows to sample around, every predicted class as often: a rare outcome needs a hyperplane just as well."""
    seen = np.unique(classes[classes != FAILED])
    share = max(1, len(classes) // max(len(seen), 1))
    return np.concatenate([rng.choice(np.flatnonzero(classes == label), share) for label in seen])


def _origins(samples: Samples, around: NDArray[np.intp]) -> NDArray[np.intp]:
    """The asked row each sample was drawn around; a number of its own, below 0, where there was none."""
    return np.where(samples.anchor >= 0, around[samples.anchor], -1 - np.arange(len(samples)))


def first_of_each_class(points: Labelled, most: int = MOST_POINTS) -> Labelled:
    kept = [np.flatnonzero(points.classes == label)[:most] for label in np.unique(points.classes)]
    return points.take(np.sort(np.concatenate(kept)))


def _label(predictor: Predictor, samples: Samples) -> NDArray[np.intp]:
    """Samples the model cannot answer are left out; a model that answers none of them has something to say."""
    labels = predictor.ask(samples.codes).classes
    if len(labels) and (labels == FAILED).all():
        raise ModelError(predictor.failure)
    return labels


def _check_classes(points: Labelled, predictor: Predictor) -> None:
    seen = np.unique(points.classes)
    if len(seen) < 2:
        raise ModelError(
            f"The model must answer at least two classes; got {predictor.classes[seen[0]]!r} for all training rows "
            "and all latent samples, so there is nothing to change it to."
        )


@dataclass(frozen=True)
class Borders:
    """The hyperplanes of the whole latent space, those of its regions, and how good both are on held-out points."""

    planes: Hyperplanes
    regions: Regions
    held_out: Agreement


def draw_borders(space: Space, codec: Codec, predictor: Predictor, settings: Settings) -> Borders:
    points, classes = space.points, len(predictor.classes)
    planes = fit_hyperplanes(points.latent, codec.encode(points.codes), len(codec.numeric), points.classes, classes)
    return Borders(planes, *fit_regions(points.latent, points.classes, points.origin, planes, settings.random_state))


@dataclass(frozen=True)
class StandIns:
    """Who answers in place of the model: its twin, its distilled copy; `quick` is the twin or else the model itself.

    `lowest` is where scores end, `about_twin` what the twin is or why there is none."""

    twin: Twin | None
    about_twin: str
    quick: Predictor | Twin
    lowest: float
    surrogate: Surrogate | None


def make_stand_ins(model: Any, heard: Heard, codec: Codec, predictor: Predictor, settings: Settings) -> StandIns:
    twin, about_twin = make(model, predictor, heard.codes, settings.twin)
    quick = twin.session() if twin else predictor
    lowest = lowest_score(heard.answers.scores)
    return StandIns(twin, about_twin, quick, lowest, distil_copy(quick, heard, codec, predictor, settings, lowest))


def distil_copy(
    asked: Predictor | Twin, heard: Heard, codec: Codec, predictor: Predictor, settings: Settings, lowest: float
) -> Surrogate | None:
    """A copy distilled from the model's answers about edited rows, or from those of its twin where there is one."""
    classes, seed = len(predictor.classes), settings.random_state

    def said(codes: Floats) -> Floats:
        answers = asked.ask(codes)
        return np.where(answers.classes[:, None] >= 0, leads(answers, classes, lowest), np.nan)

    bends: Sequence[Floats] = ()
    if heard.answers.scores is not None:
        # Labels jump where a row crosses the boundary, which is another place for every row.
        bends = find_bends(said, heard.codes, heard.answers.classes, codec, np.random.default_rng([seed, BENDS]))
    edited = edited_rows(heard.codes, heard.answers.classes, codec, np.random.default_rng(seed), bends)
    known = heard.answers + asked.ask(edited)
    return distil(np.concatenate([heard.codes, edited]), known, codec, classes, seed, lowest, bends)


def keep_examples(
    space: Space, codes: Floats, quick: Predictor | Twin, settings: Settings, rng: np.random.Generator
) -> Labelled:
    """Rows to start from and to be near to: real ones where they may be kept, else decoded samples."""
    sampled = space.sampled
    examples = with_samples(_everyone(space.answered, codes, quick, rng), sampled) if settings.keep_rows else sampled
    return first_of_each_class(examples, MOST_EXAMPLES)


def with_samples(real: Labelled, sampled: Labelled) -> Labelled:
    """Real rows, and decoded samples only of classes few real rows have: a decoder may mix what never goes together."""
    few = np.isin(sampled.classes, [k for k in np.unique(sampled.classes) if (real.classes == k).sum() < FEW_ROWS])
    return real + sampled.take(few)


def _everyone(answered: Labelled, codes: Floats, quick: Predictor | Twin, rng: np.random.Generator) -> Labelled:
    """The rows asked so far, and more training rows where there are: people to be near to."""
    more = MOST_EXAMPLE_ROWS - len(answered.codes)
    if len(codes) <= len(answered.codes) or more <= 0:
        return answered.take(answered.classes != FAILED)
    others = some_of(codes, more, rng)
    classes = quick.ask(others).classes
    none = np.zeros((len(others), answered.latent.shape[1]))
    every = answered + Labelled(others, none, classes, np.arange(len(others)))
    once = np.sort(np.unique(every.codes, axis=0, return_index=True)[1])
    return every.take(once[every.classes[once] != FAILED])


def put_together(
    codec: Codec,
    coder: Coder,
    space: Space,
    borders: Borders,
    stand_ins: StandIns,
    examples: Labelled,
    settings: Settings,
) -> Knowledge:
    """Everything the search will know, with what is measured on the pieces: distances, groups, prototypes."""
    distance = Distance.gower(codec.profile.span, codec.numeric, codec.gappy)
    centres, centre_classes = peers.prototypes(space.points.latent, space.points.classes, settings.random_state)
    return Knowledge(
        codec=codec,
        autoencoder=coder.autoencoder,
        hyperplanes=borders.planes,
        regions=borders.regions,
        examples=examples.codes,
        example_classes=examples.classes,
        distance=distance,
        typical=peers.typical_distances(distance, examples.codes, examples.classes, borders.planes.classes),
        groups=peers.linked_groups(space.answered.codes, codec),
        prototypes=centres,
        prototype_classes=centre_classes,
        lowest=stand_ins.lowest,
        surrogate=stand_ins.surrogate,
    )


def describe(
    knowledge: Knowledge,
    coder: Coder,
    space: Space,
    borders: Borders,
    stand_ins: StandIns,
    predictor: Predictor,
    seconds: float,
) -> FitReport:
    agreement, base = prediction_agreement(borders.planes, space.answered.latent, space.answered.classes)
    return FitReport(
        features=quality_by_feature(knowledge.codec, coder.autoencoder, borders.planes, coder.unseen),
        agreement=agreement,
        agreement_base=base,
        regions=len(borders.regions),
        agreement_one_plane=borders.held_out.one_plane,
        agreement_by_region=borders.held_out.regional,
        epochs=coder.epochs,
        latent=space.answered.latent.shape[1],
        samples=len(space.sampled.codes),
        seconds=seconds,
        calls=predictor.asked.calls,
        rows_asked=predictor.asked.rows,
        scores=predictor.use_scores,
        copy_agreement=stand_ins.surrogate.agreement if stand_ins.surrogate else None,
        twin=stand_ins.about_twin,
    )


def remember(
    codes: Floats, heard: Heard, coder: Coder, knowledge: Knowledge, numbers: Numbers | None, settings: Settings
) -> Memory:
    """What `update` and `drift` will need of the training rows."""
    cuts = cuts_of_answers(heard.answers, numbers)
    return Memory.start(
        codes,
        heard.codes if settings.keep_rows else heard.codes[:0],
        cuts,
        tally_answers(heard.answers, numbers, cuts, knowledge.hyperplanes.classes),
        reconstruction_losses(coder.autoencoder, knowledge.codec, coder.unseen),
        knowledge.codec.schema,
    )
