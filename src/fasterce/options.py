"""Every option of `FasterCE.explain` and `FasterCE(...)`, declared once: name, type, default, limits and help.

The Python signature is written out and compared with `ExplainOptions` by a test; everything else is derived from it. To add
an option, add a field here, a parameter to `FasterCE.explain`, and the code that uses it. This module imports no NumPy: the
HTTP front uses it.

How a surface adopts the declaration
------------------------------------
command line
    For each `Option` of `offered("cli")` make one parameter called `option.name` with the flags `option.cli`, the default
    `option.default` and the help `option.help`. A plain option has the type `option.annotation`; the others are text that is
    parsed by `option.kind`. `explain_arguments(values)` turns the parsed values into arguments of `explain`.
HTTP
    For each `Option` of `offered("http")` make one field of the body called `option.http`. A plain option has the type
    `option.annotation` within `option.minimum` and `option.maximum` (above `minimum` if `option.exclusive`).
    `explain_arguments` as above.
MLflow
    The JSON object may have the keys of `defaults()`; values of kind CONSTRAINTS are read by `fasterce.constraints.io`, those
    of kind GROUP may be objects {name: value}, as for HTTP and in records.
records
    `declared()` lists every option; a value is written and read by `option.kind`, the numbers of kind FACTORS under the
    name `option.entry`. A call with a value for an option that is not `reproducible` cannot be replayed.

Each function takes the class as `cls`, so that a test can pass a subclass with one more option. Errors name options by their
Python name (`Problem.option`); pass `names("cli")` or `names("http")` to `Problem.text` to show them as the user wrote them.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, Field, dataclass, field, fields, replace
from enum import Enum
from functools import cache, cached_property
from math import inf
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from fasterce.config import Config
from fasterce.errors import InputError, UnknownOptionError, unknown

if TYPE_CHECKING:
    from fasterce.constraints import Constraint

Method = Literal["closest", "sparse", "realistic", "all"]
Engine = Literal["hybrid", "latent", "paper"]
Growth = Literal["linear", "multiplicative"]
Perturbation = Literal["random", "sweep"]
DistanceName = Literal["percentile", "gower", "mad", "euclidean"]
Scores = Literal["auto", "never"]
CompileOption = Literal["auto", "never"]
TaskName = Literal["auto", "classification", "regression"]
Surface = Literal["cli", "http"]
Bounds = Sequence[float | None]
Coder = Callable[[Any], Any]

# Counterfactuals of a query are compared with each other, so memory grows with the square of this number.
LARGEST_N = 100
SHARE: dict[str, Any] = {"minimum": 0, "maximum": 1, "exclusive": True}
# Points of a walk of the paper's engine; each is decoded and may be evaluated.
MOST_STEPS = 10_000
# By type, whether the minimum is excluded, and whether there is a maximum.
NUMBER_CODES = {
    (int, False, False): "options.not_a_count",
    (int, False, True): "options.count_out_of_range",
    (float, False, False): "options.not_at_least",
    (float, True, False): "options.not_above",
    (float, False, True): "options.out_of_range",
    (float, True, True): "options.not_a_share",
}


class Kind(Enum):
    """What the value of an option is; each surface reads and writes values by their kind."""

    PLAIN = "a text, a number or a boolean"
    TARGET = "a class, or (low, high)"
    BOUNDS = "(low, high)"
    COLUMNS = "a list of columns"
    RANGES = "{column: (low, high) or categories}"
    FACTORS = "{column: number}, or a name"
    CONSTRAINTS = "a list of constraints"
    GROUP = "options of their own: their class, or {name: value}"
    OBJECT = "a Python object, offered in Python only"


@dataclass(frozen=True)
class Condition:
    """What another option must be for an option to have an effect; `text` says it, as in `n > 1`."""

    option: str
    met: Callable[[Any], bool]
    text: str


@dataclass(frozen=True)
class Option:
    """One declared option.

    Parameters
    ----------
    help : str
        One sentence for users.
    kind : Kind
        What its value is.
    minimum, maximum : float, optional
        Limits of a number; `exclusive` if `minimum` itself is not allowed.
    cli : tuple of str
        Flags of the command line; empty if it is not offered there.
    http : str, optional
        Name of the field in the body of `POST /v1/explain`; None if it is not offered there.
    entry : str
        Name of the numbers of kind FACTORS in records.
    reproducible : bool
        Whether the same call with a value for it returns the same counterfactuals at another time.
    needs : tuple of Condition
        Without any of these a value other than the default is refused: it would have no effect.
    name, annotation, default
        As declared in the dataclass.
    """

    help: str
    kind: Kind = Kind.PLAIN
    minimum: float | None = None
    maximum: float | None = None
    exclusive: bool = False
    cli: tuple[str, ...] = ()
    http: str | None = None
    entry: str = "value"
    reproducible: bool = True
    needs: tuple[Condition, ...] = ()
    name: str = ""
    annotation: Any = None
    default: Any = None

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """The names it may be, empty if it is not a choice."""
        annotations = (self.annotation, *get_args(self.annotation))
        literal = next((one for one in annotations if get_origin(one) is Literal), None)
        return get_args(literal)

    @cached_property
    def type(self) -> Any:
        """The type of a plain value: str, bool, int or float."""
        return next((one for one in (bool, int, float) if one in (self.annotation, *get_args(self.annotation))), str)

    def checked(self, value: object) -> object:
        """Return a valid value, numbers as Python's own; raise InputError for others. Kinds other than PLAIN are checked
        against the schema and the model, where a call is planned."""
        if self.kind is Kind.GROUP:
            return self._checked_group(value)
        if self.kind is not Kind.PLAIN or value is self.default:
            return value
        if self.choices:
            if not isinstance(value, str) or value not in self.choices:
                raise InputError(unknown("options.unknown_choice", value, self.choices, option=self.name))
            return value
        if self.type is bool:
            return self._checked_boolean(value)
        return self._checked_number(value)

    def _checked_group(self, value: object) -> object:
        """Return an object of the group's class, made of its values by name where these are given."""
        cls = self.annotation
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise InputError("options.not_a_group", option=self.name, expected=cls.__name__, received=value)
        try:
            check_known(value, list(defaults(cls)))
            return cls(**value)
        except InputError as error:
            inner = f"{self.name}.{error.problem.option}" if error.problem.option else self.name
            raise InputError(replace(error.problem, option=inner)) from error

    def _checked_boolean(self, value: object) -> bool:
        numpy_kind = getattr(getattr(value, "dtype", None), "kind", "")
        if not isinstance(value, bool) and numpy_kind != "b":
            raise InputError("options.not_a_boolean", option=self.name, received=value)
        return bool(value)

    def _checked_number(self, value: Any) -> int | float:
        low = -inf if self.minimum is None else self.minimum
        high = inf if self.maximum is None else self.maximum
        is_number = isinstance(value, Integral if self.type is int else Real) and not isinstance(value, bool)
        valid = is_number and low <= value <= high and abs(value) < inf
        if not valid or (self.exclusive and value == low):
            code = NUMBER_CODES[self.type, self.exclusive, self.maximum is not None]
            raise InputError(code, option=self.name, expected=self.minimum, received=value, most=self.maximum)
        return self.type(value)  # type: ignore[no-any-return]


def option(default: object, help: str, *, cli: str = "", **more: Any) -> Any:
    """Declare an option as a field of a dataclass; `cli` are its flags with spaces between them."""
    return field(default=default, metadata={"option": Option(help, cli=tuple(cli.split()), **more)})


def shared(default: object, help: str, **more: Any) -> Any:
    """Declare an option that the command line and HTTP offer under its own name."""
    return field(default=default, metadata={"option": Option(help, **more), "shared": True})


@cache
def declared(cls: type | None = None) -> tuple[Option, ...]:
    """Return the options a class declares, in order; by default those of `ExplainOptions`."""
    return tuple(_named(one) for one in fields(ExplainOptions if cls is None else cls))


def _named(one: "Field[Any]") -> Option:
    found: Option = replace(one.metadata["option"], name=one.name, annotation=one.type, default=one.default)
    return replace(found, cli=(f"--{one.name.replace('_', '-')}",), http=one.name) if "shared" in one.metadata else found


@dataclass(frozen=True)
class Checked:
    """Values of declared options; plain ones are checked when made."""

    def __post_init__(self) -> None:
        cls: type = type(self)
        for one in declared(cls):
            object.__setattr__(self, one.name, one.checked(getattr(self, one.name)))

    def values(self) -> dict[str, Any]:
        """Return the values by name, as given.

        Returns
        -------
        dict
        """
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True)
class PaperOptions(Checked):
    """The hyperparameters of the paper's algorithms, for `engine="paper"`.

    Parameters
    ----------
    step : float, default 0.1
        The paper's δε: by how much the increment ε of the line search grows, in latent units.
    eps_max : float, default 4
        The paper's ε_max: the search ends when ε exceeds it.
    growth : {"linear", "multiplicative"}, default "linear"
        Increments 0, δε, 2δε, 3δε, … as in the algorithms, or 0, δε, 2δε, 4δε, …, which the text allows as well.
    perturbation : {"random", "sweep"}, default "random"
        How Algorithm 2 varies its feature where resetting the others is not enough: random values of its range, the first
        that reaches the target (as in the text), or an ordered list of values, the nearest that does.

    Examples
    --------
    >>> PaperOptions(step=0.3, growth="multiplicative").eps_max
    4.0
    """

    step: float = option(0.1, "Growth of the increment of the line search (δε), in latent units.", minimum=1e-6)
    eps_max: float = option(4.0, "Largest increment of the line search (ε_max), in latent units.", minimum=0)
    growth: Growth = option("linear", "How the increment grows: linear (by the step) or multiplicative (doubled).")
    perturbation: Perturbation = option("random", "How Algorithm 2 varies its feature: random values, or a sweep.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.eps_max / self.step > MOST_STEPS:
            raise InputError("options.too_many_steps", option="step", expected=self.eps_max / MOST_STEPS, received=self.step)


PAPER_ENGINE = Condition("engine", lambda engine: engine == "paper", 'engine="paper"')
OTHER_ENGINE = Condition("engine", lambda engine: engine != "paper", 'engine="hybrid" or "latent"')
REALISTIC = Condition("method", lambda method: method in ("realistic", "all"), 'method="realistic" or "all"')
SEVERAL = Condition("n", lambda n: n > 1, "n > 1")
ROBUST = Condition("robust", lambda share: share is not None, "robust")


@dataclass(frozen=True)
class ExplainOptions(Checked):
    """The options of one call of `FasterCE.explain`."""

    method: Method = option(
        "closest",
        "Smallest change (closest), fewest features (sparse), most like known rows of the target (realistic), or all three.",
        cli="--method -m",
        http="method",
    )
    _: KW_ONLY
    target: object = shared(
        None,
        "Wanted class, or bounds (low, high) for a model that predicts numbers; with two classes the other one by default.",
        kind=Kind.TARGET,
    )
    target_score: Bounds | None = shared(None, "Wanted probability of the class, as bounds (low, high).", kind=Kind.BOUNDS)
    n: int = option(
        1, "Largest number of different counterfactuals per row.", minimum=1, maximum=LARGEST_N, cli="--n -n", http="n"
    )
    diversity: float = option(
        0.5,
        "With n > 1: from 0 (the nearest counterfactuals) to 1 (as different as possible).",
        minimum=0,
        maximum=1,
        http="diversity",
        needs=(SEVERAL, OTHER_ENGINE),
    )
    features_to_vary: Sequence[Hashable] | None = option(
        None, "The only columns that may change.", kind=Kind.COLUMNS, cli="--vary", http="vary"
    )
    permitted_range: Mapping[Hashable, Any] | None = option(
        None, "Range of a number, or permitted categories, by column.", kind=Kind.RANGES, cli="--range", http="ranges"
    )
    constraints: Sequence["Constraint"] = shared((), "Constraints on top of those of the schema.", kind=Kind.CONSTRAINTS)
    override: bool = option(
        False, "Let constraints of this call replace those of the schema on the same columns.", http="override"
    )
    engine: Engine = shared(
        "hybrid",
        "What proposes candidates: hybrid (edits and known rows), latent (walks in latent space) or paper (its algorithms).",
    )
    paper: PaperOptions = shared(
        PaperOptions(), "Hyperparameters of the paper's algorithms.", kind=Kind.GROUP, needs=(PAPER_ENGINE,)
    )
    margin: float = option(
        0.0, "How far to move beyond the decision boundary, in standard deviations of each changed number.", minimum=0
    )
    robust: float | None = shared(
        None, "Share of small input noise under which a counterfactual must hold, such as 0.95.", **SHARE
    )
    noise: Mapping[Hashable, float] | None = option(
        None,
        "Standard deviation of the noise by column, for `robust`.",
        kind=Kind.FACTORS,
        entry="deviation",
        needs=(ROBUST,),
    )
    ensemble_agreement: float | None = option(
        None,
        "Share of refitted models (`fit_ensemble`) that must agree with a counterfactual.",
        **SHARE,
        reproducible=False,
    )
    distance: DistanceName | Mapping[Hashable, float] = shared(
        "percentile",
        "How changes are measured: percentile, gower, mad or euclidean; or a factor by column, which multiplies percentile.",
        kind=Kind.FACTORS,
        entry="factor",
    )
    realism: float = shared(
        0.5,
        "For the realistic method: from 0 (near the row) to 1 (near known rows of the target).",
        minimum=0,
        maximum=1,
        needs=(REALISTIC, OTHER_ENGINE),
    )
    budget: int | None = shared(None, "Largest number of model rows per explanation.", minimum=1)
    deadline: float | None = option(None, "Time limit of the call in seconds.", minimum=0, exclusive=True, reproducible=False)
    diagnose: bool = option(
        True,
        "For rows without a counterfactual, find the constraints that prevent one.",
        cli="--diagnose/--no-diagnose",
        http="diagnose",
    )

    def check_effects(self) -> None:
        """Raise InputError for a value other than the default that would have no effect, given the other options."""
        cls: type = type(self)
        for one in declared(cls):
            value = getattr(self, one.name)
            unmet = next((need for need in one.needs if not need.met(getattr(self, need.option))), None)
            if unmet is not None and value is not one.default and value != one.default:
                raise InputError("options.needs_option", option=one.name, needed=unmet.text)


@dataclass(frozen=True)
class FitOptions(Checked):
    """The parameters of `FasterCE(model, schema, ...)`, as `fit` uses them."""

    random_state: int = option(
        0, "Seed of fit and of the noise for `robust`; the search itself is deterministic.", minimum=0, cli="--seed"
    )
    scores: Scores = option("auto", "Use predict_proba or decision_function where they agree with the labels, or never.")
    latent_dim: int | None = option(None, "Size of the latent space; by default one dimension per feature.", minimum=1)
    autoencoder: tuple[Coder, Coder] | None = option(
        None, "Your own (encode, decode) functions between the codec's matrix and a latent matrix.", kind=Kind.OBJECT
    )
    progress: bool | None = option(None, "Show a progress bar; by default in a terminal and in a notebook.")
    keep_rows: bool = option(
        True, "Keep some training rows of every class as examples; `save` stores them.", cli="--keep-rows/--no-keep-rows"
    )
    compile: CompileOption = option(
        "auto", "Search on a compiled version of the model where one agrees with it, or never.", cli="--compile"
    )
    task: TaskName = option("auto", "Classification or regression; by default what the model says it is.", cli="--task")
    max_fit_rows: int | None = option(
        None, "Most model rows `fit` evaluates; by default chosen by `max_fit_seconds`.", minimum=1_000, cli="--max-fit-rows"
    )
    max_fit_seconds: float = option(
        60.0,
        "Seconds the model may take in `fit` by forecast before fewer rows are evaluated.",
        minimum=0,
        exclusive=True,
        cli="--max-fit-seconds",
    )
    config: Config | None = option(None, "Tuning constants (`fasterce.config`).", kind=Kind.OBJECT)

    @property
    def tuning(self) -> Config:
        """The tuning constants in use."""
        return Config() if self.config is None else self.config


FREEZE = Option(
    "Columns that must not change.",
    Kind.COLUMNS,
    cli=("--freeze",),
    http="freeze",
    name="freeze",
    annotation=Sequence[Hashable],
)


def defaults(cls: type = ExplainOptions) -> dict[str, Any]:
    """Return the default of every option by name."""
    return {one.name: one.default for one in declared(cls)}


def offered(surface: Surface, cls: type = ExplainOptions) -> list[Option]:
    """Return the options a surface offers, among them `freeze`, which stands for a constraint of kind `Frozen`."""
    return [one for one in (*declared(cls), FREEZE) if getattr(one, surface)]


def names(surface: Surface, cls: type = ExplainOptions) -> dict[str, str]:
    """Return how a surface calls the options it offers, for the text of problems."""
    return {one.name: one.cli[0] if surface == "cli" else str(one.http) for one in offered(surface, cls)}


def explain_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of `explain` from values by option name; `freeze` becomes a constraint."""
    arguments = {name: value for name, value in values.items() if name != FREEZE.name}
    if values.get(FREEZE.name):
        from fasterce.constraints import Frozen  # noqa: PLC0415 - needs NumPy

        arguments["constraints"] = [*(arguments.get("constraints") or ()), Frozen(*values[FREEZE.name])]
    return arguments


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise InputError unless the value of a parameter is one of its choices."""
    if value not in choices:
        raise InputError("options.unknown_choice", option=name, expected=choices, received=value)


# Parameters of DiCE's `generate_counterfactuals`, and what does the same here.
DICE_NAMES = {
    "total_CFs": "n",
    "desired_class": "target",
    "desired_range": "target",
    "query_instances": "rows",
    "query_instance": "rows",
    "diversity_weight": "diversity",
    "proximity_weight": "distance",
    "feature_weights": "distance",
    "stopping_threshold": "target_score",
    "posthoc_sparsity_param": "method",
    "posthoc_sparsity_algorithm": "method",
    "sparsity_weight": "method",
    "maxiterations": "budget",
    "timeout": "deadline",
    "random_seed": "random_state",
}
DICE_HINTS = {"desired_class": 'leave it out for DiCE\'s "opposite"', "random_seed": "a parameter of FasterCE(...)"}


def refuse_unknown(given: Iterable[str], known: Sequence[str]) -> None:
    """Raise UnknownOptionError for the first name; a parameter of DiCE is answered with its name here."""
    for name in given:
        if name in DICE_NAMES:
            hint = f" ({DICE_HINTS[name]})" if name in DICE_HINTS else ""
            raise UnknownOptionError("options.dice_option", option=name, expected=DICE_NAMES[name], hint=hint)
        raise UnknownOptionError(unknown("options.unknown_option", name, known))


def check_known(given: Iterable[str], known: Sequence[str]) -> None:
    """Raise InputError for the first name that is not a known option."""
    for name in given:
        if name not in known:
            raise InputError(unknown("options.unknown_option", name, known))
