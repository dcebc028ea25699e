"""No drift is not called drift; drift is found, named and shown."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from fasterce import FasterCE
from fasterce.config import FitConfig
from fasterce.errors import InputError, ModelError, NotFittedError
from fasterce.fitting import drift
from tests.changing import people, pipeline, schema, truth


@pytest.fixture(scope="module")
def explainer() -> FasterCE:
    frame = people(800, 0)
    return FasterCE(pipeline(frame), schema(frame), progress=False, compile="never").fit(frame)


def test_rows_of_the_same_kind_have_not_drifted(explainer: FasterCE) -> None:
    report = explainer.drift(people(500, 1))
    assert not report.drifted
    assert report.verdict.startswith("No drift: 500 rows")
    assert list(report.frame.index) == list(explainer.schema_.names)
    assert (report.frame["value"] <= report.frame["limit"]).all()
    assert report.classes["then"].sum() == pytest.approx(1)


def test_a_shift_is_found_where_it_is(explainer: FasterCE) -> None:
    report = explainer.drift(people(500, 1, shift=1.5))
    assert list(report.frame.index[report.frame["drifted"]]) == ["income", "job"]
    assert report.class_shift.drifted
    assert report.classes.loc["yes", "now"] > report.classes.loc["yes", "then"] + 0.2
    assert report.frame.loc["income", "now"] > report.frame.loc["income", "then"] + 15
    assert "2 of 5 features have moved ('income', 'job')" in report.verdict


def test_the_same_report_again(explainer: FasterCE) -> None:
    first, second = (explainer.drift(people(100, 4)) for _ in range(2))
    pd.testing.assert_frame_equal(first.frame, second.frame)
    assert first.verdict == second.verdict


def test_about_one_false_alarm_in_a_hundred_reports() -> None:
    rng = np.random.default_rng(0)
    shares = [np.full(10, 0.1), np.array([0.9, 0.09, 0.01]), np.array([0.5, 0.5]), rng.dirichlet(np.ones(30))]
    measures: list[drift.Measure] = [
        drift.stability_index,
        drift.total_variation,
        drift.total_variation,
        drift.stability_index,
    ]
    alarms = 0
    for report in range(400):
        before, now = ([rng.multinomial(rows, share) for share in shares] for rows in (1000, 150))
        value, limit = drift.limits(before, now, measures, report)
        alarms += bool((value > limit).any())
    assert 1 <= alarms <= 11


def test_a_moved_measure_is_beyond_its_limit() -> None:
    before, now = np.full(10, 100), np.array([40, 20, 15, 10, 5, 5, 5, 0, 0, 0])
    value, limit = drift.limits([before], [now], [drift.stability_index], 0)
    assert value[0] > 2 * limit[0]


def test_measures_by_hand() -> None:
    assert drift.total_variation(np.array([5, 5]), np.array([10, 0])) == pytest.approx(0.5)
    assert drift.stability_index(np.array([7, 3]), np.array([70, 30])) == pytest.approx(0, abs=0.02)
    p, q = np.array([8.5, 2.5]) / 11, np.array([3.5, 7.5]) / 11
    assert drift.stability_index(np.array([8, 2]), np.array([3, 7])) == pytest.approx(((q - p) * np.log(q / p)).sum())


def test_it_is_shown_in_a_terminal_and_as_html(explainer: FasterCE) -> None:
    report = explainer.drift(people(300, 1, shift=2.0))
    for shown in (str(report), report._repr_html_()):
        assert "income" in shown
        assert "Drift in 300 rows" in shown
        assert "Reconstruction loss" in shown
    console = Console(record=True, width=120)
    console.print(report)
    assert "stability index" in console.export_text()
    assert "<script" not in explainer.drift(people(50, 2))._repr_html_()


def test_rows_that_cannot_be_read_are_counted_and_reported(explainer: FasterCE) -> None:
    rows = people(100, 3)
    rows.loc[[4, 7], "job"] = "pilot"
    report = explainer.drift(rows)
    assert (report.rows, report.unreadable) == (98, 2)
    assert report.drifted
    assert report.problem is not None
    assert "'pilot'" in report.problem.text()
    assert "2 rows cannot be read. Fit the explainer again." in report.verdict
    assert "'pilot'" in str(report)


def test_an_autoencoder_and_a_surrogate_that_no_longer_fit_are_reported(explainer: FasterCE) -> None:
    strange = people(400, 5)
    strange["income"] = np.where(np.arange(400) % 2, 900.0, -700.0)
    report = explainer.drift(strange)
    assert report.reconstruction.drifted
    assert "the autoencoder reconstructs these rows less accurately" in report.verdict
    other = explainer._for(lambda frame: truth(frame, 45.0))
    report = other.drift(people(400, 6))
    assert report.surrogate is not None
    assert report.surrogate.drifted
    assert report.hyperplane.drifted
    assert not report.frame["drifted"].any()


def test_small_samples_are_given_the_benefit_of_the_doubt() -> None:
    config = FitConfig()
    assert not drift._compare_agreement(0.95, 0.85, 1000, 20, config).drifted
    assert drift._compare_agreement(0.95, 0.85, 1000, 2000, config).drifted
    assert not drift._compare_agreement(0.95, 0.93, 100_000, 100_000, config).drifted


def test_bad_input_gets_one_sentence(explainer: FasterCE) -> None:
    with pytest.raises(InputError, match=r"at least 10 rows; got 3\."):
        explainer.drift(people(3, 0))
    with pytest.raises(InputError, match="missing 'owner'"):
        explainer.drift(people(30, 0).drop(columns="owner"))
    with pytest.raises(NotFittedError):
        FasterCE(truth).drift(people(30, 0))

    def broken(frame: pd.DataFrame) -> Any:
        raise ValueError("out of order")

    with pytest.raises(ModelError, match="out of order"):
        explainer._for(broken).drift(people(30, 0))


def test_a_replaced_model_agrees_less_with_the_stored_examples(explainer: FasterCE) -> None:
    assert explainer.agreement() == 1.0
    contrary = FasterCE(lambda frame: np.where(truth(frame) == "yes", "no", "yes"), progress=False)
    contrary.__dict__.update({name: value for name, value in vars(explainer).items() if name.endswith("_")})
    assert contrary.agreement() < 0.3
