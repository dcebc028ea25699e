"""Tuning constants: everything that steers quality, speed or memory, with its meaning, unit and reason.

The defaults are what the benchmarks were measured with. `Config.fast()` fits a few hundred rows in a fraction of a second,
for tests. A saved explainer keeps the fields that differ from the defaults.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property

from fasterce.errors import InputError

Value = int | float | str | bool | tuple[int, ...] | tuple[float, ...]


@dataclass(frozen=True)
class LatentConfig:
    """The autoencoder, its latent samples, the hyperplanes and the regions."""

    hidden_per_column: int = 2
    """Units of the hidden layer per column of the encoded table; twice the inputs rebuild every column."""
    min_hidden: int = 64
    """Fewest hidden units; fewer underfit tables of a few columns."""
    max_hidden: int = 256
    """Most hidden units; more slow training without a lower loss."""
    batches_per_epoch: int = 48
    """Batches an epoch is split into, rounded to a power of two of rows per batch."""
    min_batch: int = 32
    """Fewest rows per batch; gradients of fewer are too noisy."""
    max_batch: int = 512
    """Most rows per batch; larger ones need more epochs."""
    training_steps: int = 5000
    """Gradient steps to train for; the loss is flat after these on all bundled datasets."""
    min_epochs: int = 8
    """Fewest epochs, for large tables."""
    max_epochs: int = 200
    """Most epochs, for small tables."""
    patience: int = 12
    """Epochs without a lower validation loss after which training stops."""
    learning_rate: float = 2e-3
    """Adam's first step size, annealed to zero along a cosine."""
    min_improvement: float = 1e-4
    """Relative decrease of the validation loss that counts as lower."""
    update_epochs_divisor: int = 5
    """`update` trains for this fraction of the epochs: the network already knows most rows."""
    min_update_epochs: int = 4
    """Fewest epochs of `update`."""
    update_patience: int = 4
    """Epochs without a lower loss after which `update` stops."""
    update_learning_rate_factor: float = 0.5
    """Step size of `update` relative to that of `fit`, so that old rows are not forgotten."""
    training_end: float = 0.7
    """Share of rows to train on."""
    validation_end: float = 0.85
    """Share of rows up to which they validate; the rest is held out for the report."""
    samples_per_dimension: int = 200
    """Latent points sampled per latent dimension; hyperplanes need more in more dimensions."""
    min_samples: int = 4000
    """Fewest latent points sampled."""
    max_samples: int = 12_000
    """Most latent points sampled; each costs one model row in `fit`."""
    near_spread: float = 0.25
    """Noise around a training row for half of the points, in standard deviations of the latent coordinates."""
    around_spread: float = 1.0
    """The same for a quarter of the points."""
    cloud_spread: float = 1.5
    """Spread of the last quarter around the centre: beyond the data, where counterfactuals may lie."""
    redraws: int = 10
    """Times latent points are drawn again in place of those that leave a declared range; fewer stay missing."""
    range_slack: float = 0.05
    """Share of a declared range by which a decoded value may miss it and be clipped rather than dropped."""
    lasso_penalty: float = 1e-3
    """L1 penalty of the hyperplanes of numeric features; small, so that only irrelevant dimensions vanish."""
    svm_penalty: float = 1e-3
    """L2 penalty of the hyperplanes of categories and classes."""
    svm_steps: int = 60
    """Steps of accelerated descent; the angle changes by less than a degree afterwards."""
    adapting_steps: int = 30
    """Steps that adapt the hyperplanes to a region, from the global ones on."""
    adapting_penalty: float = 5.0
    """L2 penalty on the adaptation, in dimensions per point: few points change little."""
    region_counts: tuple[int, ...] = (4, 8, 16)
    """Numbers of regions tried beside one."""
    points_per_region: int = 50
    """Fewest points per region; fewer do not determine a hyperplane."""
    region_folds: int = 3
    """Folds of the cross-validation that chooses the number of regions."""
    region_min_gain: float = 0.005
    """Gain in held-out agreement that more regions must bring."""
    region_standard_errors: float = 2.0
    """Standard errors the gain must exceed, so that noise adds no regions."""
    region_min_points_per_side: int = 10
    """Fewest points on either side of a class within a region; the nearest others are added."""
    region_min_share_per_side: float = 0.2
    """The same as a share of the region's points."""
    kmeans_iterations: int = 20
    """Most iterations of k-means for the regions; their borders need not be exact."""
    typical_distance_rows: int = 300
    """Rows per class whose nearest neighbour is measured; the median is stable."""
    prototypes_per_class: int = 8
    """Most prototypes per class."""
    rows_per_prototype: int = 20
    """Rows per prototype of a small class."""
    prototype_rows: int = 3_000
    """Most rows per class that are clustered."""
    linked_threshold: float = 0.97
    """Association (rank correlation, accuracy or explained variance) from which features change together."""
    linked_max_base: float = 0.9
    """Most frequent category's share above which a category is too easy to guess to be linked."""
    linked_min_rows: int = 10
    """Fewest rows with both values present to compare two features."""
    linked_max_rows: int = 4_000
    """Most rows compared."""
    linked_max_features: int = 150
    """Features beyond which none are compared: the time grows with the square."""

    def samples(self, dimensions: int) -> int:
        """Return the number of latent points sampled in a space with this number of dimensions."""
        return min(self.max_samples, max(self.min_samples, self.samples_per_dimension * dimensions))


@dataclass(frozen=True)
class SurrogateConfig:
    """The network that approximates the model, and the rows it is trained on."""

    hidden: int = 96
    """Hidden units; more cost time in every search, fewer agree less with the model."""
    edited_rows_per_feature: int = 5_000
    """Edited rows evaluated per feature."""
    min_edited_rows: int = 15_000
    """Fewest edited rows."""
    max_edited_rows: int = 80_000
    """Most edited rows; each costs one model row in `fit` where there is no compiled model."""
    min_rows: int = 64
    """Rows below which there is no surrogate: it would be worse than none."""
    max_edits: int = 3
    """Most features changed per edited row; counterfactuals rarely change more."""
    random_value_share: float = 0.5
    """Share of edits to a value anywhere in the range rather than to that of another row."""
    declared_range_share: float = 0.3
    """Share of these taken from the declared range, which may be wider than the data."""
    missing_share: float = 0.2
    """Share of these made missing where a number may be missing."""
    held_out_rows: int = 4_000
    """Most rows to measure the surrogate on."""
    steps_per_feature: int = 100
    """Training steps per feature."""
    min_steps: int = 400
    """Fewest training steps."""
    max_steps: int = 1200
    """Most training steps; the loss is flat afterwards."""
    batch: int = 512
    """Rows per training step."""
    learning_rate: float = 1e-2
    """Adam's highest step size, reached along one cycle."""
    label_error: float = 1.0
    """Error of the margin assumed for a model without scores, in logits."""
    zero_score_share: float = 0.02
    """Share of rows with a probability of zero from which scores get a lower end (averages of trees)."""
    knots_per_feature: int = 16
    """Most quantile knots per numeric feature."""
    total_knots: int = 1000
    """Knots of all features together; bounds the memory of the tables."""
    min_knots: int = 6
    """Fewest quantile knots per numeric feature."""
    bend_model_rows: int = 40_000
    """Model rows spent on finding values where the model bends."""
    min_bend_queries: int = 8
    """Fewest training rows varied to find bends."""
    max_bend_queries: int = 64
    """Most training rows varied to find bends."""
    min_bend_values: int = 16
    """Values per feature below which no bends are searched for: too coarse to find any."""
    bends_per_feature: int = 16
    """Most bends per feature."""
    total_bends: int = 128
    """Most bends of all features; the sharpest are kept."""
    min_bend: float = 0.05
    """Deviation from a straight line that counts as a bend, in standard deviations of the margin."""
    edits_per_bend: float = 0.05
    """Share of a feature's edits moved to a bend, per bend."""
    max_bend_edits: float = 0.25
    """Most edits of a feature moved to its bends."""

    def edited_rows(self, features: int) -> int:
        """Return the number of edited rows for a table with this number of features."""
        return min(self.max_edited_rows, max(self.min_edited_rows, self.edited_rows_per_feature * features))


@dataclass(frozen=True)
class FitConfig:
    """Sample sizes of `fit` and `update`, limits of `drift`."""

    training_rows: int = 60_000
    """Most rows the autoencoder is trained on; more do not lower its loss."""
    evaluated_rows: int = 10_000
    """Most training rows the model is evaluated on."""
    points_per_class: int = 3_000
    """Most training rows per class among the points hyperplanes are fitted to."""
    example_rows: int = 40_000
    """Most training rows considered as examples."""
    examples_per_class: int = 20_000
    """Most examples kept per class: memory, and the size of the artifact."""
    rare_class_rows: int = 8
    """Training rows of a class below which decoded samples are added to its examples."""
    score_check_rows: int = 1_000
    """Rows on which scores are compared with labels before they are used."""
    call_rows: int = 20_000
    """Most rows per call of the model in `fit`, so that progress shows and memory stays bounded."""
    timed_rows: tuple[int, ...] = (10, 100, 1_000)
    """Rows of the calls that are timed, one after another, until the model is known to be fast: the difference of two calls
    separates the time per row from the overhead per call."""
    timed_seconds: float = 1.0
    """Seconds a timed call must take for its time per row to be taken as measured."""
    compile_check_rows: int = 100
    """Rows on which a slow model is compiled to see whether it can be: then the full plan needs far fewer model rows."""
    expected_calls: int = 20
    """Calls of the model in `fit`, for the forecast of its overhead."""
    reduced_plans: tuple[int, ...] = (40_000, 12_000, 4_000)
    """Values of `max_fit_rows` for a model too slow for the full plan, each about a third of the one before."""
    reduced_plan_costs: tuple[float, ...] = (0.04, 0.05, 0.07)
    """By how much farther the counterfactuals of each reduced plan are than those of the full plan, for the warning: the mean
    of `make show-fit-budget ARGS="--datasets german_credit adult"`."""
    evaluated_share: float = 0.125
    """Share of `max_fit_rows` for training rows, which are evaluated twice where scores are used; the same for latent
    samples. Most is left to the surrogate, which the default search depends on."""
    reference_share: float = 0.0625
    """Share of `max_fit_rows` for the comparison with a compiled model."""
    bend_share: float = 0.25
    """Share for bends of the model rows left when the surrogate is trained; its edited rows get the others."""
    call_share: float = 0.1
    """Share of `max_fit_rows` per call of the model: progress shows ten times even where the model is slow."""
    surrogate_batch_rows: int = 1_000
    """Rows the surrogate evaluates at a time, to bound memory."""
    probe_rows: tuple[int, ...] = (32, 512)
    """Rows in which a feature is probed for an effect on the model; features without one go on to the next number."""
    probe_values: int = 6
    """Most values per feature that are probed."""
    probe_most_rows: int = 30_000
    """Most rows per round of probing a compiled model."""
    probe_model_rows: int = 2_000
    """The same where the model itself is evaluated: a few percent of all model rows."""
    probe_boundary_rows: int = 40
    """Most rows that are moved to the decision boundary and probed there, where only labels are known."""
    probe_sections: int = 8
    """Parts of the way to a row of another class; the part with the boundary is divided again in the next call."""
    probe_section_calls: int = 3
    """Model calls that move the rows there."""
    probe_batch_rows: int = 10_000
    """Rows of one model call while probing."""
    probe_tolerance: float = 1e-5
    """Relative change of a score that counts as none: the rounding of 32-bit models."""
    update_min_rows: int = 50
    """New rows from which the report of `update` is measured on these alone."""
    drift_false_alarms: float = 0.01
    """Expected number of false alarms per drift report."""
    drift_permutations: int = 1_000
    """Permutations behind the limits of a drift report."""
    drift_max_loss_increase: float = 0.2
    """Relative increase of the reconstruction loss that is drift."""
    drift_max_agreement_loss: float = 0.03
    """Decrease of an agreement (a share) that is drift."""
    drift_standard_errors: float = 3.0
    """Standard errors either change must exceed."""


@dataclass(frozen=True)
class SearchConfig:
    """The search for counterfactuals."""

    expansions: int = 100
    """Most states of a query whose single edits are all scored before the best candidates are improved; each takes 10 to 100
    microseconds."""
    patience: int = 60
    """Expansions in a row without a cheaper candidate after which no more follow, with trees."""
    smooth_patience: int = 20
    """The same with networks, whose margins guide the search better."""
    wide_expansions: int = 60
    """Most states that are expanded once more for further counterfactuals of a query (`n` above 1)."""
    combinations: int = 8
    """Times changes are combined as if their gains added up, each time from the row before. Trees need it most: their
    counterfactuals are 1 to 5 % nearer on unseen data."""
    open_sets: int = 256
    """Most states that wait to be expanded; the least promising are forgotten."""
    pool: int = 24
    """Most sets of changed features per query for which the cheapest candidate is kept."""
    improved: int = 4
    """Cheapest candidates per query whose changes are replaced one at a time."""
    improvements: int = 40
    """Most states of a query that are completed again while candidates are improved."""
    known_starts: int = 4
    """Nearest known rows of the target that are improved, too, if the model is a network and one change is not enough."""
    many_changes: int = 4
    """Changes of the cheapest candidate above which known rows are improved, too, if the model is a tree ensemble."""
    max_expanded: int = 400
    """Most single edits of a query without a candidate that are all combined with every other edit."""
    costly_units: int = 100
    """Hidden units, such as support vectors, beyond which the exact scorer is so slow that a query gets less effort."""
    costly_improvements: int = 15
    """The same as `improvements` beyond that; single edits are not all combined then."""
    max_enumerated: int = 20_000
    """Most combinations of values of a query without a candidate that are evaluated to prove that there is none; about 50
    milliseconds with 100 trees."""
    tighten_rounds: int = 4
    """Most times all changes of a candidate are dropped or reduced in turn; rarely more than two change anything."""
    guided_expansions: int = 8
    """The same as `expansions` with the surrogate as scorer, whose estimates are not worth more."""
    guided_improvements: int = 12
    """The same as `improvements` with the surrogate as scorer."""
    guided_safety: tuple[float, ...] = (0.25, 1.5, -0.25, 0.5)
    """Margins of safety of proposed candidates, in errors of the surrogate, two per round of evaluation. Later rounds, which
    are corrected, also try what falls a little short."""
    guided_candidates: tuple[int, ...] = (8, 5, 7, 5)
    """Candidates per query that are evaluated at each of these, at least three; the last two are brought to the boundary."""
    free_guided_safety: tuple[float, ...] = (0.25, 1.5, -0.25, 0.5, 0.0, 0.5)
    """The same margins where a compiled model is evaluated, which costs no model calls."""
    free_guided_candidates: tuple[int, ...] = (18, 10, 14, 10, 14, 10)
    """Candidates per query that are evaluated at each of these."""
    stuck_safety: tuple[float, ...] = (0.5, 3.0, 0.0, 1.0)
    """The same for queries without a candidate."""
    stuck_candidates: tuple[int, ...] = (8, 8, 8, 8)
    """Candidates per query that are evaluated at each of these."""
    single_changes: int = 40
    """Single changes evaluated per query for which none was found that reaches the target."""
    single_values: int = 4
    """Most values per feature among these."""
    needed_rounds: int = 3
    """Rounds that drop changes which alternatives of the best candidate do not need."""
    shrink_rounds: int = 2
    """Further rounds that bring the best candidates to the decision boundary."""
    free_shrink_rounds: int = 8
    """The same where a compiled model is evaluated, which costs no model calls; they end when nothing is left to try."""
    shrunk_candidates: int = 3
    """Candidates per query that these rounds work on."""
    free_shrunk_candidates: int = 4
    """The same where a compiled model is evaluated."""
    max_cells: int = 100_000_000
    """Most cells (rows times columns) of candidates evaluated at a time; bounds memory at about 1 GB."""
    coarse_levels: int = 11
    """Most values per number that the thorough search evaluates; each is one model row per query."""
    total_coarse_levels: int = 700
    """The same for all numbers together."""
    dense_levels: int = 24
    """Most values per number that the surrogate ranks; these cost no model rows."""
    total_dense_levels: int = 700
    """The same for all numbers together; pairs grow with the square."""
    fine_levels: int = 129
    """Most values per number for queries where fewer find nothing."""
    total_fine_levels: int = 1500
    """The same for all numbers together."""
    min_levels: int = 5
    """Fewest values per number, however many columns there are."""
    nearest_examples: int = 6
    """Known rows of the target tried per query."""
    more_examples: int = 20
    """Nearest, and most certain, known rows tried for queries without a result."""
    example_shortlist: int = 4
    """Examples kept by squared distance per example wanted, before the distance itself is computed."""
    min_cost: float = 0.02
    """Cost below which a numeric change of a latent walk is undone: reconstruction error rather than intent."""
    min_slope: float = 0.05
    """Smallest slope assumed toward the prediction hyperplane; bounds the length of a walk."""
    kept_candidates: int = 6
    """Candidates per query that are refined; more cost model rows and hardly lower the distance."""
    margin_shares: tuple[float, ...] = (1.0, 0.75, 0.5, 0.25)
    """Shares of `margin` tried beyond the boundary, the largest first."""
    similarity_penalty: float = 4.0
    """Relative increase of the cost of a set that changes the same features as one chosen before, with diversity 1."""
    base_cost: float = 0.05
    """Cost added before penalties and comparisons, so that free changes are not exempt from them."""
    realistic_examples: int = 24
    """Known rows of the target near the query by which realism is measured."""
    realistic_neighbours: int = 5
    """How many of them, the nearest to a candidate, are averaged. A single one may be an outlier."""
    realistic_weight: float = 1.3
    """Weight of implausibility with realism 0.5, relative to the distance."""
    realistic_change: float = 0.005
    """Implausibility that each change adds, so that one that hardly makes a candidate more plausible is not made."""
    realistic_starts: int = 3
    """Known rows, and candidates of `closest`, from which a realistic candidate is improved."""
    realistic_rounds: int = 4
    """Most times all features of a candidate are gone through."""
    realistic_values: int = 4
    """Most values of a feature per round whose margin is computed."""
    realistic_halvings: int = 8
    """Steps by which a number is moved toward a value that does not reach the target."""
    realistic_safety: tuple[float, ...] = (0.0, 1.5)
    """Margins the surrogate must expect, in its errors, where there is no exact scorer."""
    realistic_shares: tuple[float, ...] = (1.0, 0.75, 0.5)
    """Shares of the way to a known row that are evaluated without a surrogate."""
    min_shared_values: int = 3
    """Known rows that must share the changed values of a realistic counterfactual, if any has them."""
    retreat_share: float = 0.05
    """Share of a change by which a number is moved back, so that it is not that of a known row."""
    min_interval_examples: int = 40
    """Known rows used for a target interval, the nearest to it if fewer lie inside."""
    verification_attempts: int = 2
    """Model rows per counterfactual for verification: the best candidate, and the next if it is not confirmed."""
    max_lifted_constraints: int = 8
    """Most constraints lifted one by one to diagnose a query."""
    noise_draws: int = 64
    """Noisy copies per counterfactual; half of them decide most cases."""
    noise_scale: float = 0.05
    """Standard deviation of the noise, relative to that of the column."""
    max_noisy_rows: int = 200_000
    """Most noisy copies evaluated at a time; bounds memory."""
    robustness_rounds: int = 6
    """Searches with increasing margins for counterfactuals that are not robust."""
    robustness_slack: float = 1.1
    """Margin demanded relative to the one measured as needed."""
    estimated_draws: int = 4
    """Pairs of draws by which the surrogate estimates the margin needed, before any model row."""
    estimated_slack: float = 0.8
    """Margin demanded relative to this estimate; below 1, since too large a margin costs distance."""
    max_estimated_share: float = 0.999
    """Largest share the estimate assumes; the normal quantile of 1 is infinite."""
    estimated_batch_rows: int = 256
    """Queries the surrogate evaluates at a time for this; bounds memory."""
    walk_examples: int = 600
    """Examples shown with the walk of a row."""

    @cached_property
    def from_known(self) -> "SearchConfig":
        """The configuration of a compiled search that only improves given rows, besides single changes."""
        return replace(self, expansions=0, combinations=0, max_expanded=0)

    @cached_property
    def costly(self) -> "SearchConfig":
        """The configuration of a compiled search with an exact scorer that is slow."""
        return replace(self, improvements=self.costly_improvements, max_expanded=0)

    @cached_property
    def guided(self) -> "SearchConfig":
        """The configuration of a compiled search with the surrogate as scorer: its errors mislead combinations."""
        return replace(
            self,
            combinations=0,
            expansions=self.guided_expansions,
            wide_expansions=self.guided_expansions,
            improvements=self.guided_improvements,
            tighten_rounds=1,
            max_expanded=0,
        )


@dataclass(frozen=True)
class CompiledConfig:
    """What a compiled model must satisfy to replace the user's model in a search."""

    min_agreement: float = 0.998
    """Share of reference rows on which its labels must be the model's: ties and rounding may differ, logic may not."""
    reference_rows: int = 2_000
    """Model rows spent on the comparison, labels and scores together; enough to tell 99.8 % from 99.5 %."""
    max_edits: int = 3
    """Most features changed per reference row that is edited; counterfactuals rarely change more."""
    max_typical_score_error: float = 1e-3
    """Median error of a score allowed, in standard deviations of the scores: single precision is about 1e-6."""
    max_large_score_error: float = 5e-2
    """The 99th percentile of the same; a threshold hit exactly may move a few rows."""
    checked_rows: int = 1_000
    """Known rows on which the learned preprocessing is compared with the steps it stands for; one call of these."""
    max_exact_error: float = 1e-4
    """Error of leads at the boundary up to which an exact scorer is the model, in standard deviations of scores where
    these exceed 1: sums in single precision come to about 1e-6."""
    error_factor: float = 2.0
    """Allowance for rows that are not reference rows: by how much the error of an exact scorer is assumed to be larger."""
    vote_decimals: int = 6
    """Decimals votes are rounded to, so that sums in another order tie where the model's tie."""


@dataclass(frozen=True)
class BatchConfig:
    """Sizes of files and batches; part of no explainer, so not of `Config`. Results do not depend on them."""

    chunk_rows: int = 5_000
    """Rows of a file explained at a time: few model calls, and about 60 MB of working memory for 15 columns."""
    batch_rows: int = 5_000
    """Rows of a shard explained at a time, for the same reasons."""
    shard_rows: int = 50_000
    """Most rows of a shard, the unit of resuming: about half a minute of work."""
    row_group_lines: int = 50_000
    """Lines of a row group of the output, whatever the batches: the bytes must not depend on them."""
    max_partitions: int = 1_000
    """Most partitions of a shard: one open file each."""
    max_groups: int = 100
    """Most groups in a report; the others are summed up, for a column may have as many values as rows."""
    min_failed_rows: int = 10
    """Fewest rows of a batch that must all fail for the model to count as down; one row that fails gets a status."""


@dataclass(frozen=True)
class Config:
    """All tuning constants of an explainer.

    Examples
    --------
    >>> from dataclasses import replace
    >>> config = Config(surrogate=SurrogateConfig(hidden=32))
    >>> config.to_dict()
    {'surrogate': {'hidden': 32}}
    >>> Config.from_dict(config.to_dict()) == config
    True
    """

    latent: LatentConfig = field(default_factory=LatentConfig)
    surrogate: SurrogateConfig = field(default_factory=SurrogateConfig)
    fit: FitConfig = field(default_factory=FitConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    compiled: CompiledConfig = field(default_factory=CompiledConfig)

    @classmethod
    def fast(cls) -> "Config":
        """Return a configuration with small networks, few epochs and few samples, for tests."""
        return cls(
            latent=LatentConfig(
                min_hidden=24,
                max_hidden=32,
                batches_per_epoch=8,
                training_steps=200,
                max_epochs=25,
                patience=5,
                min_samples=600,
                max_samples=800,
                svm_steps=30,
                region_counts=(4,),
                typical_distance_rows=50,
                prototypes_per_class=4,
            ),
            surrogate=SurrogateConfig(
                hidden=32,
                edited_rows_per_feature=400,
                min_edited_rows=1_200,
                max_edited_rows=3_000,
                held_out_rows=400,
                steps_per_feature=20,
                min_steps=80,
                max_steps=120,
                batch=256,
                bend_model_rows=2_500,
            ),
            fit=FitConfig(training_rows=2_000, evaluated_rows=1_000, example_rows=2_000, drift_permutations=300),
        )

    def to_dict(self) -> dict[str, dict[str, Value]]:
        """Return the fields that differ from the defaults, by section."""
        defaults = asdict(Config())
        changed = {
            section: {name: value for name, value in values.items() if value != defaults[section][name]}
            for section, values in asdict(self).items()
        }
        return {section: values for section, values in changed.items() if values}

    @classmethod
    def from_dict(cls, content: Mapping[str, Mapping[str, Value]]) -> "Config":
        """Return the configuration `to_dict` was called on.

        Raises
        ------
        InputError
            A section or field is unknown, or a value has another type than the default.
        """
        config, known = cls(), [section.name for section in fields(cls)]
        for name, values in content.items():
            if name not in known:
                raise InputError("fitting.unknown_config", option="config", expected=known, received=name)
            section = getattr(config, name)
            changed = {key: _typed(section, key, value) for key, value in values.items()}
            config = replace(config, **{name: replace(section, **changed)})
        return config


def _typed(section: object, name: str, value: Value) -> Value:
    known = {one.name: getattr(section, one.name) for one in fields(section)}  # type: ignore[arg-type]
    if name not in known:
        raise InputError("fitting.unknown_config", option="config", expected=list(known), received=name)
    value = tuple(value) if isinstance(value, list) else value
    if type(value) is not type(known[name]):
        raise InputError("fitting.config_type", option=name, expected=type(known[name]).__name__, received=value)
    return value
