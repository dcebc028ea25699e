"""What the paper says is checked against numbers, and the verdict follows the numbers."""

from typing import Any

import pandas as pd
import pytest
from benchmarks import beside, paper, summary
from benchmarks.asking import NOT_TRIED

NUMBERS = {"valid": 100.0, "n_changed": 5.0, "proximity": 1.0, "each": 0.01, "total": 10.0}


def runs(data: str = "adult", **changed: dict[str, float]) -> pd.DataFrame:
    """Two runs of the paper's methods on one dataset; `changed` sets some numbers of some methods."""
    usual = {
        "FASTER-CE1": NUMBERS,
        "FASTER-CE2": {**NUMBERS, "valid": 40.0, "n_changed": 1.0},
        "DiCE": {**NUMBERS, "each": 0.5, "total": 90.0},
        "CERTIFAI": {**NUMBERS, "each": 2.0, "total": 99.0},
    }
    methods = {title: {**numbers, **changed.get(title.replace("-", "_"), {})} for title, numbers in usual.items()}
    return pd.DataFrame(
        [{"data": data, "title": title, "seed": seed, **one} for title, one in methods.items() for seed in (0, 1)]
    )


def verdict(claims: list[beside.Claim], part: str) -> str:
    (found,) = [claim.verdict for claim in claims if part in claim.said]
    return found


@pytest.mark.parametrize(
    ("changed", "claim"),
    [
        ({"DiCE": {"valid": 98.0}}, "validity"),
        ({"DiCE": {"n_changed": 0.9}}, "fewest"),
        ({"CERTIFAI": {"proximity": 0.5}}, "as near as CERTIFAI"),
        ({"DiCE": {"each": 0.005}}, "less time an explanation"),
    ],
)
def test_a_claim_agrees_until_the_numbers_say_otherwise(changed: dict[str, Any], claim: str) -> None:
    nobody = pd.DataFrame({"method": []})
    assert verdict(beside.claims(runs(), nobody), claim) == "agrees"
    assert verdict(beside.claims(runs(**changed), nobody), claim) == "differs"


def test_on_lending_club_nearer_means_nearer() -> None:
    nobody = pd.DataFrame({"method": []})
    assert verdict(beside.claims(runs("lending_club"), nobody), "nearer than CERTIFAI") == "differs"
    far = runs("lending_club", CERTIFAI={"proximity": 1.01})
    assert verdict(beside.claims(far, nobody), "nearer than CERTIFAI") == "agrees"
    assert verdict(beside.claims(far, nobody), "least time in all") == "agrees"


def robust(*shares: float) -> pd.DataFrame:
    steps = (0.05, 0.3, 1.0)
    return pd.DataFrame({"method": [paper.at_step(step) for step in steps], "recourse": shares, "proximity": [1.0, 2.0, 3.0]})


def test_claims_about_the_step_follow_its_curve() -> None:
    nobody = pd.DataFrame(columns=["data", "title", *beside.MEASURES])
    good = beside.claims(nobody, robust(80, 100, 100))
    assert [claim.verdict for claim in good] == ["agrees", "agrees", "agrees"]
    assert all("first point" in claim.said for claim in good)
    assert verdict(beside.claims(nobody, robust(80, 99, 100)), "100 % robust") == "differs"
    assert verdict(beside.claims(nobody, robust(90, 80, 100)), "more robust") == "differs"


def test_the_papers_numbers_stand_beside_ours() -> None:
    runs = robust(80, 100, 100).assign(title="FASTER-CE1", robust=70.0, valid=100.0, seed=0)
    assert beside.robustness_table(runs)[0] == [
        "FASTER-CE1", "80.0 ± 0.0", "86.59 ± 2.54", "1.00 ± 0.00", "1.29 ± 0.22", "70.0 ± 0.0", "100 ± 0",
    ]  # fmt: skip


def test_methods_the_paper_does_not_compare_are_left_out() -> None:
    assert beside.family("dice-random") == "DiCE"
    assert beside.family("dice-genetic") == ""
    assert beside.family("ce2") == "FASTER-CE2"


def test_rows_the_clock_kept_from_being_tried_do_not_count_against_validity_here() -> None:
    tried = [{"status": "answered", "valid": 1.0, "seconds": 20.0}] * 2 + [
        {"status": "timeout", "valid": 0.0, "seconds": 60.0}
    ]
    lines = pd.DataFrame([*tried, *[{"status": NOT_TRIED, "valid": 0.0, "seconds": float("nan")}] * 7])
    lines = lines.assign(data="adult", box="mlp", question="free", method="alibi-proto", seed=0, model=0.0)
    lines = lines.assign(**dict.fromkeys(summary.PERCENT[1:], 0.0), n_changed=1.0, proximity=1.0)
    about = pd.DataFrame(
        [{"data": "adult", "box": "mlp", "question": "free", "method": "alibi-proto", "seed": 0, "setup": 5.0}]
    )
    (run,) = beside.figure_runs(summary.Results(lines, about, {})).itertuples()
    assert run.valid == pytest.approx(200 / 3)
    assert run.total == pytest.approx(5.0 + 10 * 20.0)
