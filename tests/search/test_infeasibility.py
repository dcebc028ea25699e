"""A useful no: the rule that is named does stand in the way, and what is said to do without it does."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce import FasterCE
from fasterce.config import Config
from fasterce.constraints import AtMost, Constraint, Frozen, Near, OnlyDown, Range, Require
from fasterce.explanation import Change, Infeasibility

SAME = (lambda matrix: matrix, lambda latent: latent)


def people(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": rng.integers(10, 100, rows),
            "debt": rng.integers(0, 60, rows),
            "age": rng.integers(18, 80, rows),
            "job": rng.choice(["clerk", "smith"], rows),
        }
    )


class Bank:
    """Income above 50 and debt below 20; a smith may owe ten more."""

    classes_ = np.array(["no", "yes"])

    def lead(self, frame: pd.DataFrame) -> np.ndarray:
        most = 20 + 10 * (frame["job"] == "smith").to_numpy()
        return np.minimum(frame["income"].to_numpy() - 50.0, most - frame["debt"].to_numpy())

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        chance = 1 / (1 + np.exp(-self.lead(frame) / 5 - 1e-9))
        return np.stack([1 - chance, chance], axis=1)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.classes_[self.predict_proba(frame).argmax(axis=1)]


@pytest.fixture(scope="module")
def explainer() -> FasterCE:
    return FasterCE(Bank(), autoencoder=SAME, progress=False, config=Config.fast(), compile="never").fit(people())


def one(**values: Any) -> pd.DataFrame:
    return pd.DataFrame([{"income": 40, "debt": 10, "age": 30, "job": "clerk"} | values])


def refusal(explainer: FasterCE, row: pd.DataFrame, constraints: list[Constraint], **options: Any) -> Any:
    result = explainer.explain(row, constraints=constraints, **options)
    assert result.status.tolist() == ["none_found"]
    return result.infeasible[0], result.reason.iloc[0]


def changed(row: pd.DataFrame, found: Any) -> pd.DataFrame:
    return row.assign(**{change.feature: change.after for change in found.unlocked})


@pytest.mark.parametrize(
    ("row", "constraints", "named"),
    [
        (one(), [Frozen("income"), OnlyDown("age")], "income may not change"),
        (one(), [Range("income", 0, 45)], "income within 0 to 45"),
        (one(), [Near("income", by=5), Frozen("job")], "income may change by at most 5 either way"),
        (one(debt=40), [Frozen("debt", "job"), Require("income <= 100")], "debt may not change"),
        (one(income=30, debt=50), [AtMost(1)], "at most 1 column may change"),
        (one(), [Require("income <= age + 15"), Frozen("age")], None),
    ],
)
def test_the_rule_in_the_way_is_named_and_what_would_do_does(
    explainer: FasterCE, row: pd.DataFrame, constraints: list[Constraint], named: str | None
) -> None:
    found, reason = refusal(explainer, row, constraints)
    assert len(found.blocking) == 1
    if named is not None:
        assert found.blocking[0].text.startswith(named.split(" may")[0].split(" within")[0].split(" 1 ")[0])
    assert Bank().predict(changed(row, found)).tolist() == ["yes"]
    assert f"The constraint '{found.blocking[0].text}' prevents it: without it, " in reason
    lifted = [constraint for constraint in constraints if constraint.text != found.blocking[0].text]
    split = [
        part
        for constraint in lifted
        for part in ([Frozen(f) for f in constraint.features] if isinstance(constraint, Frozen) else [constraint])
    ]
    split = [constraint for constraint in split if constraint.text != found.blocking[0].text]
    assert explainer.explain(row, constraints=split).status.tolist() == ["found"], "without that rule there is an answer"


def test_rules_that_only_together_stand_in_the_way_are_named_together(explainer: FasterCE) -> None:
    row = one(income=30, debt=50)
    found, reason = refusal(explainer, row, [Frozen("income"), Frozen("debt")])
    assert len(found.blocking) == 2
    assert Bank().predict(changed(row, found)).tolist() == ["yes"]
    assert "prevent it together: without them" in reason


def test_a_single_rule_is_found_even_where_the_nearest_counterfactual_breaks_two(explainer: FasterCE) -> None:
    """The nearest answer without rules lowers income's and debt's limits; lifting one of them is enough for this row."""
    row = one(income=49, debt=21)
    found, _ = refusal(explainer, row, [Frozen("income"), Frozen("debt"), Frozen("job")])
    assert len(found.blocking) == 2, "income is short whatever else is lifted"
    row = one(income=60, debt=29)
    found, _ = refusal(explainer, row, [Frozen("debt"), Frozen("job"), Frozen("age")])
    assert len(found.blocking) == 1


def test_how_far_the_best_try_came(explainer: FasterCE) -> None:
    near, _ = refusal(explainer, one(income=30), [Near("income", up=15)])
    far, reason = refusal(explainer, one(income=30), [Near("income", up=5)])
    assert 0 < far.progress < near.progress < 1
    assert reason.endswith(f"The best attempt came {far.progress:.0%} of the way.")


def test_where_nothing_helps_that_is_said(explainer: FasterCE) -> None:
    result = explainer.explain(one(), target_score=(0.999999999, 1), constraints=[Frozen("age")])
    assert result.status.tolist() == ["none_found"]
    assert "Nothing was found even without the constraints." in result.reason.iloc[0]
    assert result.infeasible[0].unlocked == ()


def test_a_row_is_told_the_same_alone_and_in_a_batch(explainer: FasterCE) -> None:
    rows = people(40, seed=3)
    rows = rows[Bank().predict(rows) == "no"]
    constraints = [Near("income", by=4), Near("debt", by=4), Frozen("job")]
    batch = explainer.explain(rows, constraints=constraints)
    assert (batch.status == "none_found").any()
    for k in range(len(rows)):
        assert explainer.explain(rows.iloc[[k]], constraints=constraints).reason.iloc[0] == batch.reason.iloc[k]


def test_it_can_be_spared_and_keeps_to_the_limits(explainer: FasterCE) -> None:
    row, constraints = one(), [Frozen("income")]
    plain = explainer.explain(row, constraints=constraints, diagnose=False)
    told = explainer.explain(row, constraints=constraints)
    assert plain.infeasible == {}
    assert told.usage.calls > plain.usage.calls
    assert told.reason.iloc[0].startswith(plain.reason.iloc[0])
    assert explainer.explain(row, constraints=constraints, budget=30).infeasible == {}
    assert explainer.explain(row, constraints=constraints, deadline=5.0).status.iloc[0] in ("none_found", "stopped")


def test_what_is_unlocked_stands_the_trials_too(explainer: FasterCE) -> None:
    row = one(income=45)
    found, _ = refusal(explainer, row, [Frozen("income")], robust=0.95, noise={"income": 4.0, "debt": 0.0, "age": 0.0})
    after = {change.feature: change.after for change in found.unlocked}
    assert after["income"] >= 55, "five deviations from the boundary hold, one does not"


def test_a_counterfactual_that_violates_no_constraint_is_reported() -> None:
    found = Infeasibility((), (Change("income", 40, 51),), constrained=True, progress=None)
    assert [problem.code for problem in found.problems] == ["search.found_by_wider_search"]
    assert found.problems[0].text() == "A search without the constraints found one that breaks none of them: income 40 -> 51."
