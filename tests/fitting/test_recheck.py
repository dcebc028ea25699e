"""Recourse issued earlier under a model that has changed: what holds, what is repaired, what is no longer needed."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from fasterce import Explanation, FasterCE
from fasterce.config import Config
from fasterce.errors import InputError, NotFittedError
from fasterce.fitting.recheck import Rechecked
from tests.changing import people, pipeline, schema, strict, truth

START = people(600, 0)
ROWS = people(200, 9).loc[lambda frame: truth(frame) == "no"].head(40)


def lenient(frame: pd.DataFrame) -> Any:
    """Answers yes to half of those refused so far."""
    return truth(frame, 45.0)


@pytest.fixture(scope="module")
def explainer() -> FasterCE:
    return FasterCE(truth, schema(START), progress=False, compile="never", config=Config.fast()).fit(START)


@pytest.fixture(scope="module")
def issued(explainer: FasterCE) -> Explanation:
    return explainer.explain(ROWS, target="yes")


def typed(checked: Rechecked, lines: Any) -> pd.DataFrame:
    return checked.counterfactuals[lines].astype(ROWS.dtypes.to_dict())


def test_under_the_same_model_everything_holds_in_one_call(explainer: FasterCE, issued: Explanation) -> None:
    checked = explainer.recheck(issued)
    assert checked.holds.all()
    assert checked.counts == {"holds": 40}
    assert (checked.usage.calls, checked.usage.rows) == (1, 80)
    pd.testing.assert_frame_equal(checked.counterfactuals, issued.counterfactuals.reset_index(drop=True))
    assert list(checked.frame["query"]) == list(ROWS.index)


def test_what_broke_is_repaired_near_what_was_promised(explainer: FasterCE, issued: Explanation) -> None:
    checked = explainer.recheck(issued, strict)
    still = strict(issued.counterfactuals) == "yes"
    assert not still.any(), "the issued ones lie at the old boundary"
    assert (checked.holds == still).all()
    assert checked.counts == {"repaired": 40}
    assert (strict(typed(checked, slice(None))) == "yes").all()
    fresh = explainer._for(strict).explain(ROWS, target="yes")
    kept = (checked.counterfactuals.to_numpy() != ROWS.to_numpy()) & (issued.counterfactuals.to_numpy() != ROWS.to_numpy())
    promised = issued.counterfactuals.to_numpy() != ROWS.to_numpy()
    assert kept.sum() == promised.sum(), "no promised change is taken back"
    assert (fresh.status == "found").all()
    differs = [set(names) for names in checked.frame["differs"]]
    assert all(differs)


def test_repairs_satisfy_the_constraints_of_the_first_call(explainer: FasterCE) -> None:
    options: dict[str, Any] = {
        "features_to_vary": ["income", "age", "job"],
        "permitted_range": {"income": (0, 75), "job": ["clerk", "nurse"]},
    }
    before = explainer.explain(ROWS[ROWS["job"] != "smith"], target="yes", **options)
    checked = explainer.recheck(before, lambda frame: truth(frame, 66.0))
    usable = checked.status.isin(["repaired", "replaced"]).to_numpy()
    assert usable.any()
    now = typed(checked, usable)
    own = before.rows.loc[checked.frame["query"][usable]].reset_index(drop=True)
    now = now.reset_index(drop=True)
    assert (now["savings"] == own["savings"]).all()
    assert (now["owner"] == own["owner"]).all()
    assert (now["age"] >= own["age"]).all()
    assert now["income"].between(0, 75).all()
    assert set(now["job"]) <= {"clerk", "nurse"}
    assert (truth(now, 66.0) == "yes").all()
    wider = explainer.recheck(before, lambda frame: truth(frame, 66.0), features_to_vary=None, permitted_range=None)
    assert (wider.status == "repaired").sum() >= usable.sum()


def test_what_cannot_be_had_any_more_is_lost_with_a_reason(explainer: FasterCE, issued: Explanation) -> None:
    checked = explainer.recheck(issued, lambda frame: np.where(frame["age"] > 500, "yes", "no"))
    assert checked.counts == {"lost": 40}
    assert checked.counterfactuals.isna().all(axis=None)
    assert len(checked.counterfactuals) == 40
    assert checked.frame["reason"].str.startswith("No change within the constraints was found").all()


def test_a_step_back_is_left_to_explaining_anew(explainer: FasterCE) -> None:
    """Age may only go up, from the original row: a promised higher age may come down again."""
    rows = ROWS.head(6).assign(age=20)

    def by_age(frame: pd.DataFrame, low: int = 40, high: int = 99) -> Any:
        return np.where((frame["age"] >= low) & (frame["age"] <= high), "yes", "no")

    before = explainer._for(by_age).explain(rows, target="yes")
    assert (before.status == "found").all()
    checked = explainer.recheck(before, lambda frame: by_age(frame, 25, 35))
    assert checked.counts == {"replaced": 6}
    assert checked.counterfactuals["age"].between(25, 35).all()


def test_rows_that_need_no_counterfactual_any_longer_have_a_status(explainer: FasterCE, issued: Explanation) -> None:
    checked = explainer.recheck(issued, lenient)
    needless = lenient(ROWS) == "yes"
    assert 0 < needless.sum() < len(ROWS)
    assert list(checked.status == "no_longer_needed") == list(needless)
    assert checked.holds.all()
    assert checked.usage.calls == 1


def test_several_counterfactuals_per_row_keep_their_positions(explainer: FasterCE) -> None:
    before = explainer.explain(ROWS.head(8), "all", target="yes", n=2)
    checked = explainer.recheck(before, lambda frame: truth(frame, 60.0))
    lines = before.to_frame()
    assert len(checked) == len(lines)
    for name in ("query", "rank", "method"):
        assert list(checked.frame[name]) == list(lines[name])
    still = truth(lines[list(ROWS.columns)], 60.0) == "yes"
    assert list(checked.holds) == list(still)
    assert 0 < still.sum() < len(still)
    usable = checked.status.isin(["holds", "repaired", "replaced"]).to_numpy()
    assert (truth(typed(checked, usable), 60.0) == "yes").all()


def test_a_table_and_its_rows_say_the_same_as_the_explanation(explainer: FasterCE, issued: Explanation) -> None:
    by_table = explainer.recheck(issued.to_frame(), strict, rows=ROWS, target="yes")
    pd.testing.assert_frame_equal(by_table.frame, explainer.recheck(issued, strict).frame)
    shuffled = issued.to_frame().sample(frac=1, random_state=0)
    again = explainer.recheck(shuffled, strict, rows=ROWS, target="yes")
    assert list(again.frame["query"]) == list(shuffled["query"])


def test_both_classes_wanted_in_one_explanation(explainer: FasterCE) -> None:
    mixed = people(30, 4)
    before = explainer.explain(mixed)
    checked = explainer.recheck(before, strict)
    wanted = before.target.to_numpy()
    usable = checked.status.isin(["holds", "repaired", "replaced"]).to_numpy()
    assert (strict(typed(checked, usable)) == wanted[usable]).all()
    assert set(wanted[usable]) == {"yes", "no"}
    assert checked.holds[wanted == "no"].all(), "who was to be refused is refused all the more"


def test_after_an_update_with_the_new_model_it_is_the_explainers_own() -> None:
    old, new = pipeline(START), pipeline(people(600, 3, shift=-1.0), 70.0)
    explainer = FasterCE(old, schema(START), progress=False, config=Config.fast()).fit(START)
    rows = START[old.predict(START) == "no"].head(30)
    before = explainer.explain(rows, target="yes")
    explainer.update(people(200, 3, shift=-1.0), model=new)
    checked = explainer.recheck(before)
    assert (~checked.holds).sum() > 15
    assert (new.predict(typed(checked, slice(None))) == "yes").all()


def test_the_same_again(explainer: FasterCE, issued: Explanation) -> None:
    first, second = (explainer.recheck(issued, strict) for _ in range(2))
    pd.testing.assert_frame_equal(first.counterfactuals, second.counterfactuals)


def test_it_is_shown(explainer: FasterCE, issued: Explanation) -> None:
    checked = explainer.recheck(issued, strict)
    for shown in (str(checked), checked._repr_html_()):
        assert "0 of 40 counterfactuals still hold: 40 repaired." in shown
        assert "… and 10 more lines" in shown
    assert repr(checked).startswith("Rechecked(40 counterfactuals: 40 repaired;")
    console = Console(record=True, width=120)
    console.print(checked)
    assert "differs" in console.export_text()


def test_nothing_issued_calls_no_model(explainer: FasterCE) -> None:
    already = explainer.explain(START[truth(START) == "yes"].head(3), target="yes")
    checked = explainer.recheck(already)
    assert len(checked) == 0
    assert checked.usage.calls == 0
    assert list(checked.counterfactuals.columns) == list(START.columns)
    assert "0 of 0" in str(checked)


def test_a_model_that_fails_is_reported_line_by_line(explainer: FasterCE, issued: Explanation) -> None:
    def broken(frame: pd.DataFrame) -> Any:
        raise ValueError("out of order")

    checked = explainer.recheck(issued, broken)
    assert checked.counts == {"model_error": 40}
    assert checked.frame["reason"].str.contains("out of order").all()
    assert "ValueError" in str(checked)


def test_a_line_that_cannot_be_read_stays_in_its_place(explainer: FasterCE, issued: Explanation) -> None:
    lines = issued.to_frame().head(5)
    lines.loc[2, "job"] = "pilot"
    checked = explainer.recheck(lines, rows=ROWS, target="yes")
    assert list(checked.status) == ["holds", "holds", "invalid_input", "holds", "holds"]
    assert "'pilot'" in checked.frame["reason"][2]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda e, x: e.recheck([1]), "must be a pandas, Polars or PyArrow table"),
        (lambda e, x: e.recheck(x.to_frame()), "must come with rows="),
        (lambda e, x: e.recheck(x.to_frame(), rows=ROWS), "and target="),
        (lambda e, x: e.recheck(x, rows=ROWS), "must be None for an Explanation"),
        (lambda e, x: e.recheck(x.to_frame().drop(columns="rank"), rows=ROWS, target="yes"), "'rank' is missing"),
        (lambda e, x: e.recheck(x.to_frame().drop(columns="age"), rows=ROWS, target="yes"), "'age' is missing"),
        (lambda e, x: e.recheck(x.to_frame(), rows=ROWS.head(3), target="yes"), "which rows does not have"),
        (lambda e, x: e.recheck(x.to_frame(), rows=pd.concat([ROWS, ROWS]), target="yes"), "unique index"),
        (lambda e, x: e.recheck(x.to_frame(), rows=ROWS, target="maybe"), "Unknown target class 'maybe'"),
        (lambda e, x: e.recheck(x, features_to_vary=["wealth"]), "Unknown column 'wealth'"),
        (lambda e, x: e.recheck(x, 7), "predict method or be callable"),
    ],
)
def test_bad_input_gets_one_sentence(explainer: FasterCE, issued: Explanation, call: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call(explainer, issued)


def test_an_unfitted_explainer(issued: Explanation) -> None:
    with pytest.raises(NotFittedError):
        FasterCE(truth).recheck(issued)


@settings(max_examples=15)
@given(
    weights=st.tuples(*[st.floats(-1, 1)] * 3),
    bar=st.floats(-1, 1),
    vary=st.sampled_from([None, ["income", "savings"], ["age", "income", "job"]]),
)
def test_whatever_the_new_model_no_repair_breaks_a_constraint_or_fails_to_flip(
    explainer: FasterCE, weights: tuple[float, float, float], bar: float, vary: list[str] | None
) -> None:
    def new(frame: pd.DataFrame) -> Any:
        scaled = (
            (frame["income"] - 50) / 15 * weights[0]
            + frame["savings"] / 20 * weights[1]
            + (frame["age"] - 50) / 18 * weights[2]
        )
        return np.where(scaled.to_numpy() + 0.2 * (frame["job"] == "nurse").to_numpy() > bar, "yes", "no")

    rows = ROWS.head(12)
    before = explainer.explain(rows, "sparse", target="yes", features_to_vary=vary)
    checked = explainer.recheck(before, new)
    usable = checked.status.isin(["holds", "repaired", "replaced"]).to_numpy()
    now = typed(checked, usable).reset_index(drop=True)
    own = rows.loc[checked.frame["query"][usable]].reset_index(drop=True)
    assert (new(now) == "yes").all()
    assert (now["age"] >= own["age"]).all()
    assert (now["owner"] == own["owner"]).all()
    for name in set(rows.columns) - set(vary or rows.columns):
        assert (now[name] == own[name]).all()
