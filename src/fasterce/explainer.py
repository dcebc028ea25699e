"""FASTER-CE on one screen: `fit` learns a latent space and its hyperplanes, `explain` walks, refines and verifies."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from os import PathLike
from time import perf_counter
from typing import Any, Literal

from sklearn.base import BaseEstimator

from fasterce import artifact, drift, fitting, inquiry, options, outcome, recheck, refusal, targets, trials, updating
from fasterce.adapters import adapt
from fasterce.constraints import Rule
from fasterce.drift import DriftReport
from fasterce.errors import InputError, NotFittedError
from fasterce.explanation import Explanation
from fasterce.frames import as_pandas, kind_of
from fasterce.idioms import Transforming
from fasterce.models import LoadedModel
from fasterce.native import as_given
from fasterce.predictor import Predictor, Scores, find_scores
from fasterce.pricing import Prices
from fasterce.recheck import Rechecked
from fasterce.rules import Permitted, Rules
from fasterce.schema import Schema
from fasterce.search.walk import Walk, trace
from fasterce.targets import Bounds
from fasterce.twin.use import Twinning, used
from fasterce.updating import UpdateReport

Method = Literal["closest", "sparse", "realistic", "all"]
Reading = Literal["movement", "paper"]
Task = Literal["auto", "classification", "regression"]
Coder = Callable[[Any], Any]


class FasterCE(Transforming, BaseEstimator):
    """Counterfactual explanations for a model that can only be asked for predictions.

    Parameters
    ----------
    model : anything with `predict` on a DataFrame, a function from DataFrame to labels, or a native XGBoost, LightGBM,
        CatBoost or ONNX model (`fasterce.adapters`).
    schema : what the columns are and what may change; inferred in `fit` if None.
    random_state : the seed of everything random; explaining itself draws nothing.
    scores : "auto" uses `predict_proba` or `decision_function` where they agree with the labels; "never" asks labels only.
    latent_dim : size of the latent space; None takes one dimension a feature.
    autoencoder : (encode, decode) functions of your own between the codec's matrix and a latent matrix.
    progress : show a progress bar; None shows it in a terminal only.
    keep_rows : keep some training rows of every class as examples to start from (`save` stores them); False keeps
        decoded latent samples only, for data that must not be stored.
    twin : "auto" searches on a compiled ONNX twin of the model where one can be made that agrees with it (extra `onnx`);
        "never" asks the model itself. The model always has the last word.
    task : "classification", "regression" (a number is wanted by target=(low, high)), or "auto": what the model says it is.

    Attributes
    ----------
    schema_, classes_, report_ : the schema used, the model's classes, and how good the learned pieces are.
    n_features_in_, feature_names_in_ : the columns it was fitted on.
    memory_ : what `update` and `drift` know of the rows seen so far (`memory_.seen`, `memory_.updates`).
    """

    def __init__(
        self,
        model: Any,
        schema: Schema | None = None,
        *,
        random_state: int = 0,
        scores: Scores = "auto",
        latent_dim: int | None = None,
        autoencoder: tuple[Coder, Coder] | None = None,
        progress: bool | None = None,
        keep_rows: bool = True,
        twin: Twinning = "auto",
        task: Task = "auto",
    ) -> None:
        self.model = model
        self.schema = schema
        self.random_state = random_state
        self.scores = scores
        self.latent_dim = latent_dim
        self.autoencoder = autoencoder
        self.progress = progress
        self.keep_rows = keep_rows
        self.twin = twin
        self.task = task

    def fit(self, X: Any, y: Any = None) -> "FasterCE":
        """Learn from training rows; `y` is ignored, the model's own answers are what is explained."""
        self._take(fitting.learn(self.model, X, self.schema, self._settings()))
        return self

    def update(self, new_rows: Any, model: Any = None) -> UpdateReport:
        """Fold in new training rows without a full `fit`, and a retrained `model` if there is one; all or nothing."""
        self._check_fitted()
        asked = self.model if model is None else model
        learned, report = updating.update(self._learned(), asked, model is not None, new_rows, self._settings())
        self.model = asked
        self._take(learned)
        return report

    def drift(self, new_rows: Any) -> DriftReport:
        """Do new rows look like those learned from, and does what was learned still hold for them?"""
        self._check_fitted()
        return drift.compare(self._learned(), self._predictor(), new_rows, self.random_state)

    def agreement(self) -> float:
        """The share of stored examples on which the model still says what it said in `fit`: 1 unless it was replaced."""
        self._check_fitted()
        return drift.agreement(self._learned(), self._predictor())

    def recheck(
        self,
        result: Any,
        model: Any = None,
        *,
        rows: Any = None,
        target: Any = None,
        **given: Any,
    ) -> Rechecked:
        """Which counterfactuals issued earlier still hold under the model, or a new one; repaired where not.

        `result` is an Explanation, or a table from its `to_frame()` with the `rows` explained and the `target`. `given`
        are options of `explain`; an Explanation remembers its own.
        """
        self._check_fitted()
        other = self if model is None else self._for(model)
        issued = recheck.Issued.read(result, rows, target, given)
        wanted = options.read(other._circumstances(other._predictor(), None), **issued.options)
        return recheck.recheck(issued, other._predictor(), wanted, other.explain)

    def explain(
        self,
        rows: Any,
        method: Method = "closest",
        *,
        target: Any = None,
        target_score: Bounds | None = None,
        n: int = 1,
        diversity: float = 0.5,
        features_to_vary: Sequence[Hashable] | None = None,
        permitted_range: Permitted | None = None,
        rules: Sequence[Rule] = (),
        override: bool = False,
        reading: Reading = "movement",
        step: float = 0.1,
        margin: float = 0.0,
        robust: float | None = None,
        shake: Mapping[Hashable, float] | None = None,
        survive: float | None = None,
        distance: Prices = "percentile",
        realism: float = 0.5,
        budget: int | None = None,
        deadline: float | None = None,
        why_not: bool = True,
    ) -> Explanation:
        """What would have had to be different for the model to say `target` (for two classes: the other one)?

        Every row gets a record, in order; every counterfactual returned was confirmed by the model itself.

        Parameters
        ----------
        rows : a table (pandas, Polars, PyArrow) with the columns of the training data, in any order; answers come as the
            same kind.
        method : "closest" (CE1), "sparse" (CE2: one feature alone, or as few as work), "realistic" (CE3) or "all" three.
        target : the wanted class; with two classes None means the other one, row by row, with more "any other" means
            whatever the model does not say now. For a model that answers numbers (low, high), None for an open end.
        target_score : (low, high), the wanted chance of the class `target`.
        n : how many different counterfactuals a row (of each variant with "all"), if there are so many; fewer is said.
        diversity : of several, from 0 (the cheapest) to 1 (as different as possible in what changes).
        features_to_vary : the only columns that may change; None means all the schema lets change.
        permitted_range : {column: (low, high) or [categories]}, for this call; a row outside it is moved in.
        rules : constraints of this call (`fasterce.constraints`), on top of the schema's.
        override : let a rule of this call replace what the schema says about the columns it names.
        reading : "paper" decodes latent points as they are and refines nothing; "movement" carries over to the row what
            the decoder moved, and refines.
        step : the paper's δε, in latent units.
        margin : how far to go on beyond the first answer that flips: standard deviations of each changed number, or
            latent units where reading is "paper".
        robust : the share of small shakes of the numbers under which an answer must still hold, for instance 0.95; the
            share measured is reported with every answer.
        shake : {column: standard deviation} of the shakes; the others have a twentieth of theirs in the training data.
        survive : the share of refitted models (`fit_ensemble`) that must agree with an answer too.
        distance : what counts as far. "percentile": the share of people one has to pass; "gower": the share of the range;
            "mad": the paper's, in median absolute deviations; a changed category costs 1 ("mad": its share of all).
            Or {column: factor}: percentile, with some columns so many times as dear.
        realism : for "realistic", from 0 (near the row) to 1 (near people who have the wanted answer).
        budget : the most rows the model is asked about for one explanation; the best found so far is returned.
        deadline : the same in seconds for the whole call, kept to within about one call of the model.
        why_not : for rows without an answer find out which rule stands in the way and what would do without it: a few more
            searches for these rows, none where there is a budget.
        """
        given = {name: value for name, value in locals().items() if name not in ("self", "rows")}
        started = perf_counter()
        self._check_fitted()
        kind, rows = kind_of(rows), as_pandas(rows, "rows")
        predictor, twin = self._predictor(), self.twin_.session() if self.twin_ else None
        wanted = options.read(self._circumstances(predictor, twin), **given)
        ledger = outcome.Ledger(self.table_.read(rows), wanted.target)
        confirming = outcome.Confirming(predictor, rows, ledger.codes, wanted.target.raw)
        asked = inquiry.sources(predictor, twin, wanted.target.raw)
        inquire = partial(inquiry.inquire, asked=asked, knowledge=self.knowledge_)
        answers = inquire(ledger, confirming, wanted=wanted)
        refusals = refusal.explain_refusals(ledger, confirming, wanted, inquire, started)
        found = outcome.explanation(rows, ledger, answers, predictor, used(twin), perf_counter() - started, refusals)
        return as_given(replace(found, options=given, cut_short=wanted.clock.ran_out), kind)

    def fit_ensemble(self, fit: Callable[[Any, Any], Any], X: Any, y: Any, *, count: int = 10) -> "FasterCE":
        """Refit the model on `count` bootstraps of the training rows, for `explain(..., survive=0.9)`: answers that outlive
        the next retraining. `fit(X, y)` gives a fitted model. The models are kept in memory, not saved."""
        self._check_fitted()
        self.ensemble_ = trials.ensemble(fit, X, y, count, self.random_state)
        return self

    def _circumstances(self, predictor: Predictor, twin: Any) -> options.Circumstances:
        ensemble = [self._predictor(model) for model in getattr(self, "ensemble_", [])]
        return options.Circumstances(predictor, twin, self.knowledge_.codec, self.random_state, ensemble, self.progress)

    def walk(self, row: Any, *, target: Any = None, step: float = 0.1) -> Walk:
        """One row's walk across the prediction hyperplane, for `fasterce.display.plots.walk`."""
        self._check_fitted()
        row = as_pandas(row, "row")
        if len(row) == 0:
            raise InputError("row must be a table with at least one row; got none.")
        predictor = self._predictor()
        ledger = outcome.Ledger(self.table_.read(row.iloc[:1]), targets.choose(predictor, target, None))
        rules = Rules.compile(self.table_, self.knowledge_.codec, None, None)
        found = inquiry.plain_task(ledger, predictor, self.knowledge_, rules, step)
        if found is None:
            raise InputError(
                f"row must be one the model does not answer with the wanted class yet; got {ledger.first_line()}."
            )
        task, goal = found
        return trace(task, *(str(self.classes_[k]) for k in (ledger.predicted[0], goal.target[0])))

    def _take(self, learned: fitting.Learned) -> None:
        self.table_, self.knowledge_, self.report_ = learned.table, learned.knowledge, learned.report
        self.schema_, self.classes_, self.use_scores_ = learned.table.schema, learned.classes, learned.use_scores
        self.memory_, self.twin_, self.numbers_ = learned.memory, learned.twin, learned.numbers

    def _learned(self) -> fitting.Learned:
        return fitting.Learned(
            self.table_,
            self.knowledge_,
            self.report_,
            self.classes_,
            self.use_scores_,
            self.memory_,
            self.twin_,
            self.numbers_,
        )

    def _settings(self) -> fitting.Settings:
        return fitting.Settings(
            self.random_state,
            self.scores,
            self.latent_dim,
            self.autoencoder,
            self.progress,
            self.keep_rows,
            self.twin,
            self.task,
        )

    def _for(self, model: Any) -> "FasterCE":
        """The same explainer beside another model, whose scores are used only where they name the same classes."""
        other = copy(self)
        adapted = adapt(model)
        same = list(getattr(adapted, "classes_", ())) == list(self.classes_) and find_scores(adapted) is not None
        other.model, other.twin_ = model, None
        other.use_scores_ = self.use_scores_ and (same or self.numbers_ is not None)
        return other

    def _predictor(self, model: Any = None) -> Predictor:
        return Predictor(self.model if model is None else model, self.table_, self.classes_, self.use_scores_, self.numbers_)

    def save(self, folder: str | PathLike[str], model_file: LoadedModel | str | PathLike[str] | None = None) -> None:
        """Write the fitted explainer as safetensors and a JSON manifest, all or nothing. Its model stays outside, unless
        `model_file` (ONNX, XGBoost, LightGBM or skops) is to travel with it."""
        self._check_fitted()
        artifact.save(self, folder, model_file)

    def _check_fitted(self) -> None:
        if not hasattr(self, "knowledge_"):
            raise NotFittedError("This FasterCE must be fitted before it can explain; expected a call of fit(X_train) first.")
