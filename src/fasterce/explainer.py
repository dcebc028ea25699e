"""`FasterCE`: `fit` learns a surrogate and a latent space from training rows, `explain` searches and verifies."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from os import PathLike
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from fasterce import artifact
from fasterce.config import Config
from fasterce.constraints import Constraint
from fasterce.constraints.compile import CompiledConstraints
from fasterce.data.frames import as_pandas, kind_of
from fasterce.data.schema import Schema
from fasterce.errors import InputError, NotFittedError
from fasterce.explanation import CounterfactualArrays, Explanation, as_given
from fasterce.fitting import drift, pipeline, recheck, update
from fasterce.fitting.drift import DriftReport
from fasterce.fitting.recheck import Rechecked
from fasterce.fitting.report import FitReport
from fasterce.fitting.state import FittedState
from fasterce.fitting.update import UpdateReport
from fasterce.integrations.sklearn import Transforming
from fasterce.models.adapters import adapt
from fasterce.models.adapters.base import model_name
from fasterce.models.compiled.model import CompiledModel
from fasterce.models.compiled.native import direct_model
from fasterce.models.compiled.use import used
from fasterce.models.files.load import LoadedModel
from fasterce.models.predictor import Predictor, find_scores
from fasterce.models.protocol import Model
from fasterce.options import (
    Bounds,
    Coder,
    CompileOption,
    DistanceName,
    Engine,
    ExplainOptions,
    FitOptions,
    Method,
    PaperOptions,
    Scores,
    TaskName,
    declared,
    defaults,
    refuse_unknown,
)
from fasterce.search import infeasibility, results, robustness, run
from fasterce.search.plan import SearchPlan
from fasterce.search.target import choose as choose_target
from fasterce.search.walk import Walk, trace
from fasterce.typing import Objects

DEFAULT_PAPER = PaperOptions()


class FasterCE(Transforming, BaseEstimator):
    """Counterfactual explanations for a classifier or regressor on tabular data.

    The model is a black box: only its predictions are used. `fit` learns from training rows; `explain` returns
    counterfactuals, each verified by the model itself.

    Parameters
    ----------
    model : object
        An object with `predict` on a DataFrame, a function from a DataFrame to labels, or a native XGBoost, LightGBM,
        CatBoost or ONNX model (see `fasterce.models.adapters`).
    schema : Schema, optional
        Types, ranges and constraints of the columns. Inferred by `fit` by default.
    random_state : int, default 0
        Seed of all random numbers of `fit`, `fit_ensemble` and the noise of `robust`. The search itself is deterministic.
    scores : {"auto", "never"}, default "auto"
        "auto" uses `predict_proba` or `decision_function` if they agree with the labels; "never" uses labels only.
    latent_dim : int, optional
        Size of the latent space. One dimension per feature by default.
    autoencoder : tuple of two callables, optional
        Your own (encode, decode) functions between the encoded table and a latent matrix.
    progress : bool, optional
        Whether to show a progress bar. By default in a terminal, and in a notebook with ipywidgets.
    keep_rows : bool, default True
        Whether to keep training rows of every class as examples for the search; `save` stores them. If False, decoded
        latent samples are used instead, for data that must not be stored.
    compile : {"auto", "never"}, default "auto"
        "auto" searches on a compiled version of the model if one agrees with it: its trees or weights read into arrays,
        else an ONNX conversion, which needs the extra `onnx`, or an ONNX model without a DataFrame. "never" evaluates the
        model itself. In either case the model itself verifies what is returned.
    task : {"auto", "classification", "regression"}, default "auto"
        What the model predicts. "auto" takes it from the model. For regression the target is an interval.
    max_fit_rows : int, optional
        Most model rows `fit` evaluates, at least 1,000. What `fit` learns depends on this limit and not on the speed of the
        model. By default there is none unless the model is slow, see `max_fit_seconds`.
    max_fit_seconds : float, default 60
        Without `max_fit_rows`, `fit` times its first calls of the model. If it would spend more than this time in the model,
        it evaluates fewer rows: 40,000, 12,000 or 4,000. A warning says so.
    config : Config, optional
        Tuning constants (see `fasterce.config`).

    Attributes
    ----------
    schema_ : Schema
        The schema in use.
    classes_ : tuple
        The classes of the model.
    report_ : FitReport
        How well the learned parts fit the data and the model.
    n_features_in_ : int
        Number of columns of the training rows.
    feature_names_in_ : ndarray of str
        Their names, if all are text.
    state_ : FittedState
        Everything learned by `fit`.

    Examples
    --------
    >>> explainer = FasterCE(model).fit(X_train)  # doctest: +SKIP
    >>> result = explainer.explain(X_test.head(), n=3)  # doctest: +SKIP
    >>> result.to_frame()  # doctest: +SKIP
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
        compile: CompileOption = "auto",
        task: TaskName = "auto",
        max_fit_rows: int | None = None,
        max_fit_seconds: float = 60.0,
        config: Config | None = None,
    ) -> None:
        self.model = model
        self.schema = schema
        self.random_state = random_state
        self.scores = scores
        self.latent_dim = latent_dim
        self.autoencoder = autoencoder
        self.progress = progress
        self.keep_rows = keep_rows
        self.compile = compile
        self.task = task
        self.max_fit_rows = max_fit_rows
        self.max_fit_seconds = max_fit_seconds
        self.config = config

    def fit(self, X: object, y: object = None) -> "FasterCE":
        """Learn what the search needs from training rows.

        Parameters
        ----------
        X : table
            Training rows (pandas, Polars or PyArrow, or a NumPy array) with the columns the model expects.
        y : object, optional
            Ignored: the predictions of the model are explained, not the labels. Present for scikit-learn pipelines.

        Returns
        -------
        FasterCE
            The fitted explainer itself.

        Raises
        ------
        InputError
            The rows do not fit the schema, or an option is invalid.
        SchemaError
            The declared target is no class of the model, or no interval of a model that predicts numbers.
        ModelError
            The model fails or returns something other than one prediction per row.
        """
        self.state_: FittedState = pipeline.learn(self.model, X, self.schema, self._settings())
        return self

    def update(self, new_rows: object, model: object = None) -> UpdateReport:
        """Add new training rows without a full `fit`. If it fails, the explainer is unchanged.

        Parameters
        ----------
        new_rows : table
            Training rows that were not in `fit` or an earlier `update`.
        model : object, optional
            A retrained model that replaces the present one.

        Returns
        -------
        UpdateReport
            Which parts were kept, adapted or trained again.
        """
        self._check_fitted()
        new_model = self.model if model is None else model
        state, report = update.update(self.state_, new_model, model is not None, new_rows, self._settings())
        self.model, self.state_ = new_model, state
        return report

    def drift(self, new_rows: object) -> DriftReport:
        """Compare new rows with the training rows, and measure whether the learned parts still fit them.

        Parameters
        ----------
        new_rows : table
            Recent rows, with the columns of the training rows.

        Returns
        -------
        DriftReport
            Each measure with its limit, and whether any is beyond it.
        """
        self._check_fitted()
        return drift.compare(self.state_, self._predictor(), new_rows, self.random_state)

    def agreement(self) -> float:
        """Return the share of stored examples for which the model predicts the same class as in `fit`.

        It is 1 unless the model was replaced.

        Returns
        -------
        float
            From 0 to 1.
        """
        self._check_fitted()
        return drift.agreement(self.state_, self._predictor())

    def recheck(
        self,
        result: object,
        model: object = None,
        *,
        rows: object = None,
        target: object = None,
        **given: Any,
    ) -> Rechecked:
        """Evaluate counterfactuals issued earlier, and repair those that no longer hold.

        Parameters
        ----------
        result : Explanation or table
            The counterfactuals: an explanation, or the table of its `to_frame()`.
        model : object, optional
            A new model to evaluate them with. By default the model of this explainer.
        rows : table, optional
            The rows that were explained; needed if `result` is a table.
        target : object, optional
            The target they were issued for; needed if `result` is a table.
        **given
            Options of `explain` to repair with. An explanation remembers its own.

        Returns
        -------
        Rechecked
            One line per counterfactual: whether it still holds, and the repaired one if not.
        """
        self._check_fitted()
        other = self if model is None else self._for(model)
        issued = recheck.Issued.read(result, rows, target, given)
        plan = other._plan(ExplainOptions(**issued.options), other._predictor())
        return recheck.recheck(issued, other._predictor(), plan, other.explain)

    def explain(
        self,
        rows: object,
        method: Method = "closest",
        *,
        target: object = None,
        target_score: Bounds | None = None,
        n: int = 1,
        diversity: float = 0.5,
        features_to_vary: Sequence[Hashable] | None = None,
        permitted_range: Mapping[Hashable, Any] | None = None,
        constraints: Sequence[Constraint] = (),
        override: bool = False,
        engine: Engine = "hybrid",
        paper: PaperOptions = DEFAULT_PAPER,
        margin: float = 0.0,
        robust: float | None = None,
        noise: Mapping[Hashable, float] | None = None,
        ensemble_agreement: float | None = None,
        distance: DistanceName | Mapping[Hashable, float] = "percentile",
        realism: float = 0.5,
        budget: int | None = None,
        deadline: float | None = None,
        diagnose: bool = True,
        **unknown: object,
    ) -> Explanation:
        """Find counterfactuals: rows close to the given ones for which the model predicts the target.

        With `engine="hybrid"`, where the trees or weights of the model were read, a compiled search works on them, best first
        over sets of edits, and the model is called only to verify. For other models the same search proposes candidates with
        the surrogate; the model (or its ONNX conversion) evaluates the best in a few rounds, its predictions correct the
        surrogate, and the last rounds shrink changes. Known rows of the target are starts where edits find nothing. Only
        "realistic" also starts from a walk in the latent space. With the engines "latent" and "paper" such walks propose all
        candidates. Every counterfactual returned was verified by the model itself. The result has one record per row, in
        order.

        Parameters
        ----------
        rows : table
            Rows to explain (pandas, Polars or PyArrow) with the columns of the training rows, in any order. The result has
            tables of the same kind. Also a pandas Series or a dictionary for one row, a list of dictionaries, or a NumPy
            array with the columns in the order of the training rows; these come back as pandas.
        method : {"closest", "sparse", "realistic", "all"}, default "closest"
            "closest" makes the smallest change by `distance` (CE1 of the paper), "sparse" changes one feature, or as few
            as possible (CE2), "realistic" stays close to known rows of the target (CE3), "all" runs the three.
        target : object, optional
            Wanted class; "any other" means any class but the predicted one. For regression an interval (low, high); None is
            an open end. The default is the target of the schema, and without one, of two classes the other one.
        target_score : tuple of two floats, optional
            Interval (low, high) for the probability of the class `target`.
        n : int, default 1
            Largest number of counterfactuals per row and method; a shortfall is reported in `reason`.
        diversity : float, default 0.5
            With n > 1, from 0 (the nearest counterfactuals) to 1 (as different as possible in the features they change).
        features_to_vary : sequence of columns, optional
            The only columns that may change. By default all that the schema lets change.
        permitted_range : mapping, optional
            {column: (low, high)} or {column: [categories]} for this call. A row outside the range is moved into it.
        constraints : sequence of Constraint, default ()
            Constraints of this call (`fasterce.constraints`), in addition to those of the schema.
        override : bool, default False
            Whether constraints of this call replace those of the schema on the same columns.
        engine : {"hybrid", "latent", "paper"}, default "hybrid"
            What proposes candidates. "hybrid" uses edits and known rows, and a latent walk for "realistic". "latent"
            walks in the latent space only, applies the change of the decoded values to the row, projects it on the
            constraints, and refines what reaches the target. "paper" follows the algorithms of the paper: decoded rows,
            nothing refined; those that break a constraint are withheld and counted in `reason`.
        paper : PaperOptions, default PaperOptions()
            Hyperparameters of the paper's algorithms (also as a dictionary), for engine="paper".
        margin : float, default 0
            How far to move beyond the decision boundary, in standard deviations of each changed number (in latent units
            with engine="paper").
        robust : float, optional
            Share of noisy copies, above 0 and up to 1, for which a counterfactual must keep the target. The measured share
            is reported with each counterfactual.
        noise : mapping, optional
            {column: standard deviation} of the noise for `robust`. The default is a twentieth of the standard deviation in
            the training rows.
        ensemble_agreement : float, optional
            Share of the refitted models (see `fit_ensemble`), above 0 and up to 1, that must predict the target as well.
        distance : {"percentile", "gower", "mad", "euclidean"} or mapping, default "percentile"
            How changes are measured. "percentile" is the share of training rows between the two values, "gower" the share
            of the range; both add up over columns, and a changed category costs 1. "mad" is the proximity of the paper:
            (numeric columns / all columns) times the Euclidean norm of the changes in median absolute deviations, plus
            (categorical columns / all columns) times the share of categories that differ. "euclidean" is one Euclidean norm
            of the changes in standard deviations and 1 per changed category. A mapping {column: factor} multiplies the
            percentile distance of the columns it names.
        realism : float, default 0.5
            For "realistic", from 0 (close to the row) to 1 (close to known rows of the target).
        budget : int, optional
            Largest number of model rows per explained row. The best counterfactual found within it is returned.
        deadline : float, optional
            Time limit of the call in seconds, exceeded by at most about one call of the model.
        diagnose : bool, default True
            Whether to search for the constraints that block a counterfactual, for rows without one. This takes a few more
            searches for these rows; with a `budget` there is none.

        Returns
        -------
        Explanation
            The counterfactuals, and a status per row.

        Raises
        ------
        NotFittedError
            `fit` was not called.
        InputError
            An option is invalid or would have no effect (`paper` with another engine, `realism` with another method,
            `diversity` with n=1), or the table lacks a column. An invalid value in a row gives that row the status
            "invalid_input" instead.

        Examples
        --------
        >>> result = explainer.explain(rows, "sparse", features_to_vary=["amount", "duration"])  # doctest: +SKIP
        >>> result.counterfactuals  # doctest: +SKIP
        """
        refuse_unknown(unknown, list(defaults()))
        options = ExplainOptions(
            method,
            target=target,
            target_score=target_score,
            n=n,
            diversity=diversity,
            features_to_vary=features_to_vary,
            permitted_range=permitted_range,
            constraints=constraints,
            override=override,
            engine=engine,
            paper=paper,
            margin=margin,
            robust=robust,
            noise=noise,
            ensemble_agreement=ensemble_agreement,
            distance=distance,
            realism=realism,
            budget=budget,
            deadline=deadline,
            diagnose=diagnose,
        )
        self._check_fitted()
        table, kind = self.state_.table, kind_of(rows)
        frame = as_pandas(rows, "rows", table.columns or table.schema.names)
        groups = table.groups(frame)
        if len(groups) == 1:
            return as_given(self._explain(frame, options), kind)
        # The model reads columns that are not features: rows with the same values in them are explained together.
        parts = [self._explain(frame.iloc[group], options) for group in groups]
        return as_given(Explanation.concatenate(frame, parts, groups), kind)

    def _explain(self, rows: pd.DataFrame, options: ExplainOptions) -> Explanation:
        started = perf_counter()
        predictor, compiled = self._predictor(rows=rows), self.state_.compiled.session() if self.state_.compiled else None
        if options.target is None and (declared_target := self.declared_target) is not None:
            options = replace(options, target=declared_target)
        plan = self._plan(options, predictor, compiled)
        ledger = results.QueryLedger(self.state_.table.read(rows), plan.target)
        verifier = results.Verifier(predictor, rows, ledger.codes, plan.target.raw)
        sources = run.sources(predictor, compiled, plan.target.raw)
        run_search = partial(run.run_search, sources=sources, state=self.state_.search)
        arrays = run_search(ledger, verifier, plan=plan)
        infeasible = infeasibility.diagnose(ledger, verifier, plan, run_search, started)
        compiled_usage, seconds = used(compiled), perf_counter() - started
        arrays = self._with_chances(results.with_predictions(arrays, verifier), rows, plan, predictor, compiled)
        return results.explanation(
            ledger,
            verifier,
            arrays,
            compiled=compiled_usage,
            seconds=seconds,
            infeasible=infeasible,
            options=plan.options.values(),
            cut_short=plan.clock.ran_out,
            model=model_name(self.model),
            constraints=plan.constraints.texts,
        )

    def _with_chances(
        self,
        arrays: CounterfactualArrays,
        rows: pd.DataFrame,
        plan: SearchPlan,
        predictor: Predictor,
        compiled: CompiledModel | None,
    ) -> CounterfactualArrays:
        """Return counterfactuals with the probability of each new class: as verified, as evaluated by the search, by the
        compiled model, or by one more call of the model; without that call where there is a budget or the deadline has
        passed."""
        if not len(arrays) or not (self.state_.use_scores and predictor.has_chances):
            return arrays
        values = arrays.probabilities if arrays.probabilities.shape[1] else None
        if values is None and compiled is not None:
            scores = compiled.evaluate(arrays.codes).scores
            values = None if scores is None else np.exp(scores)
        elif values is None and plan.options.budget is None and not plan.clock.ran_out:
            frame = predictor.table.as_returned(rows, arrays.query, arrays.before, arrays.codes)
            values = predictor.verify(frame, raw=True).values
        return arrays if values is None else arrays.with_chances(values)

    @property
    def declared_target(self) -> Any:
        """The target that the schema declares: a class of the model, an interval of its numbers, or None."""
        classes = () if self.state_.numbers is not None else self.classes_
        return self.schema_.wanted(classes)

    def fit_ensemble(self, fit: Callable[[Any, Objects], Model], X: object, y: ArrayLike, *, count: int = 10) -> "FasterCE":
        """Fit models to bootstrap samples of the training rows, for `explain(..., ensemble_agreement=0.9)`.

        Counterfactuals on which such models agree are likely to hold after the next retraining. The models are kept in
        memory; `save` does not store them.

        Parameters
        ----------
        fit : callable
            `fit(X, y)` returns a fitted model.
        X : table
            Training rows.
        y : array-like
            Their labels.
        count : int, default 10
            Number of models, at least 2.

        Returns
        -------
        FasterCE
            The explainer itself.
        """
        self._check_fitted()
        self.ensemble_ = robustness.ensemble(fit, X, y, count, self.random_state)
        return self

    def _plan(self, options: ExplainOptions, predictor: Predictor, compiled: CompiledModel | None = None) -> SearchPlan:
        return SearchPlan.resolve(
            options,
            predictor,
            self.state_.search,
            compiled=compiled,
            ensemble=[self._predictor(model) for model in getattr(self, "ensemble_", [])],
            seed=self.random_state,
            progress=self.progress,
        )

    def walk(self, row: object, *, target: object = None, step: float = 0.1) -> Walk:
        """Return the latent path of one row across the prediction hyperplane, for `fasterce.viz.plots.walk`.

        Parameters
        ----------
        row : table
            The row; of several the first is used.
        target : object, optional
            Wanted class, as in `explain`.
        step : float, default 0.1
            Step of the line search, in latent units.

        Returns
        -------
        Walk
            The points of the path, and stored examples around it.
        """
        self._check_fitted()
        frame = as_pandas(row, "row")
        if len(frame) == 0:
            raise InputError("search.no_row", option="row")
        predictor = self._predictor()
        target = self.declared_target if target is None else target
        ledger = results.QueryLedger(self.state_.table.read(frame.iloc[:1]), choose_target(predictor, target, None))
        constraints = CompiledConstraints.compile(self.state_.table, self.state_.search.codec, None, None)
        found = run.plain_context(ledger, predictor, self.state_.search, constraints, step)
        if found is None:
            raise InputError("search.already_there", option="row", status=ledger.status[0], problems=ledger.problems[0])
        context, targets = found
        return trace(context, *(str(self.classes_[k]) for k in (ledger.predicted[0], targets.target[0])))

    @property
    def schema_(self) -> Schema:
        """The schema in use, inferred in `fit` unless given."""
        return self.state_.table.schema

    @property
    def classes_(self) -> tuple[Hashable, ...]:
        """The classes of the model, in the order of its scores."""
        return self.state_.classes

    @property
    def report_(self) -> FitReport:
        """Quality of the parts learned by `fit`."""
        return self.state_.report

    def _settings(self) -> FitOptions:
        return FitOptions(**{option.name: getattr(self, option.name) for option in declared(FitOptions)})

    def _for(self, model: object) -> "FasterCE":
        """Return the same explainer with another model; its scores are used only if they have the same classes."""
        other = copy(self)
        adapted = adapt(model)
        same = list(getattr(adapted, "classes_", ())) == list(self.classes_) and find_scores(adapted) is not None
        state = self.state_
        other.model = model
        other.state_ = replace(state, compiled=None, use_scores=state.use_scores and (same or state.numbers is not None))
        return other

    def _predictor(self, model: object = None, rows: pd.DataFrame | None = None) -> Predictor:
        """Return a predictor; passthrough columns that the model reads have the values of the first of the rows."""
        state, table = self.state_, self.state_.table
        read = set(table.read_passthrough)
        if read and rows is not None and len(rows) and read <= set(rows.columns):
            table = table.with_values_of(rows.iloc[0])
        used_model = self.model if model is None else model
        direct = direct_model(used_model, table, state.search.examples) if state.use_scores else None
        return Predictor(used_model, table, state.classes, state.use_scores, state.numbers, direct)

    def save(self, folder: str | PathLike[str], model_file: LoadedModel | str | PathLike[str] | None = None) -> None:
        """Write the fitted explainer to a folder, as safetensors and a JSON manifest. Nothing is written if it fails.

        Parameters
        ----------
        folder : path
            The folder to write; `fasterce.load` reads it.
        model_file : LoadedModel or path, optional
            A model file (ONNX, XGBoost, LightGBM or skops) to store with it. By default the model is not stored.
        """
        self._check_fitted()
        artifact.save(self, folder, model_file)

    def _check_fitted(self) -> None:
        if not hasattr(self, "state_"):
            raise NotFittedError("errors.not_fitted")
