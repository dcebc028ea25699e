"""The promise about rules, end to end: no returned row ever breaks one, for random rules, data and models."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fasterce import FasterCE
from fasterce.config import Config, SurrogateConfig
from fasterce.errors import InputError
from tests.constraints.checker import violations
from tests.constraints.worlds import rule_sets, table

METHODS = ["closest", "sparse", "realistic", "all"]
MODELS = ["linear", "forest", "labels"]
# Constraints hold whatever the quality of the surrogate.
CONFIG = Config(surrogate=SurrogateConfig(edited_rows_per_feature=1_000, min_edited_rows=5_000, steps_per_feature=50))


@cache
def fitted(kind: str) -> tuple[FasterCE, pd.DataFrame, Any]:
    X = table(3, rows=400)
    rng = np.random.default_rng(0)
    lead = X["income"] / 2500 + X["pay"] / 12 - X["rate"] / 2 + X["grade"].cat.codes / 2 + (X["job"] == "smith") - 4
    y = np.where(lead + rng.normal(0, 0.3, len(X)) > 0, "yes", "no")
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    estimator = RandomForestClassifier(10, random_state=0) if kind == "forest" else LogisticRegression(max_iter=500)
    model = make_pipeline(columns, estimator).fit(X, y)
    scores = "never" if kind == "labels" else "auto"
    return FasterCE(model, random_state=0, scores=scores, compile="never", config=CONFIG).fit(X), X, model  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", MODELS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(
    constraints=rule_sets(),
    method=st.sampled_from(METHODS),
    n=st.sampled_from([1, 1, 3]),
    engine=st.sampled_from(["hybrid", "hybrid", "latent", "paper"]),
    more=st.sampled_from([{}, {}, {"robust": 0.8}, {"margin": 0.2}, {"target_score": (0.6, 1)}]),
)
def test_no_returned_row_breaks_a_constraint(
    kind: str, constraints: list[Any], method: Any, n: int, engine: Any, more: Any
) -> None:
    explainer, X, model = fitted(kind)
    rows = X.iloc[:15]
    if kind == "labels":
        more = {name: value for name, value in more.items() if name != "target_score"}
    try:
        result = explainer.explain(rows, method, constraints=constraints, n=n, engine=engine, **more)
    except InputError as error:
        assert str(error).endswith(".")  # noqa: PT017 - rules that contradict each other are told, never kept half
        return
    assert len(result) == len(rows)
    found = result.to_frame()
    names = list(X.columns)
    before, after = rows.to_dict("records"), found[names].to_dict("records")
    own = dict(zip(rows.index, before, strict=True))
    for query, answer in zip(found["query"], after, strict=True):
        assert violations(own[query], answer, constraints, explainer.schema_) == []
    if len(found):
        typed = found[names].astype(X.dtypes.to_dict())
        was = model.predict(rows.loc[found["query"]])
        assert (model.predict(typed) != was).all()
        if "target_score" in more:
            chance = model.predict_proba(typed)[np.arange(len(typed)), [list(model.classes_).index(w) for w in was]]
            assert (chance <= 0.4 + 1e-12).all()


@pytest.mark.parametrize("kind", ["linear", "labels"])
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(constraints=rule_sets(), method=st.sampled_from(METHODS))
def test_a_row_gets_the_same_counterfactual_alone_and_in_a_batch(kind: str, constraints: list[Any], method: Any) -> None:
    explainer, X, _ = fitted(kind)
    rows = X.iloc[:12]
    try:
        batch = explainer.explain(rows, method, constraints=constraints)
    except InputError:
        return
    for position in (0, 5, 11):
        alone = explainer.explain(rows.iloc[[position]], method, constraints=constraints)
        mine = batch.arrays.query == position
        np.testing.assert_array_equal(alone.arrays.codes, batch.arrays.codes[mine])
        assert alone.status.iloc[0] == batch.status.iloc[position]
        assert alone.reason.iloc[0].replace("(row 0)", f"(row {position})") == batch.reason.iloc[position]
