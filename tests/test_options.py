"""The declaration of options: its values are checked, and the Python signature and every surface follow it."""

import inspect
import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import typer
from pydantic import ValidationError
from typer.testing import CliRunner

from fasterce import FasterCE, Feature, Schema, options
from fasterce.cli import loading
from fasterce.cli.options import with_options
from fasterce.config import SearchConfig
from fasterce.constraints import Frozen, OnlyUp
from fasterce.errors import InputError
from fasterce.options import ExplainOptions, FitOptions, PaperOptions, option
from fasterce.records import configuration
from fasterce.search.plan import SearchPlan, choose_variants
from fasterce.search.results import CUT_SHORT_BY, STOPPED_BY, stopped_problem
from fasterce.search.target import TheOther
from fasterce.serve.api.schemas import request_model


@dataclass(frozen=True)
class MoreOptions(ExplainOptions):
    """The declared options and one more."""

    patience: int = option(3, "Number of attempts.", minimum=1, maximum=9, cli="--patience -p", http="patience")


def signature(function: Any, *, without: tuple[str, ...]) -> dict[str, tuple[Any, Any, bool]]:
    """Annotation, default and whether it is positional, by parameter."""
    parameters = inspect.signature(function).parameters
    return {
        name: (one.annotation, one.default, one.kind is one.POSITIONAL_OR_KEYWORD)
        for name, one in parameters.items()
        if name not in ("self", *without)
    }


def declared_signature(cls: type) -> dict[str, tuple[Any, Any, bool]]:
    positional = {"method"} if issubclass(cls, ExplainOptions) else set()
    return {one.name: (one.annotation, one.default, one.name in positional) for one in options.declared(cls)}


def plain(annotations: dict[str, tuple[Any, Any, bool]]) -> dict[str, tuple[str, Any, bool]]:
    """Annotations as text, since one of them names a class that `options` does not import."""
    classes = r"'(\w+)'|fasterce\.constraints\.objects\.(\w+)"
    return {name: (re.sub(classes, r"\1\2", str(one)), *rest) for name, (one, *rest) in annotations.items()}


def test_python_signatures_are_the_declared_options() -> None:
    written = signature(FasterCE.explain, without=("rows", "unknown"))
    assert plain(written) == plain(declared_signature(ExplainOptions))
    assert list(written) == [one.name for one in options.declared()]
    assert plain(signature(FasterCE.__init__, without=("model", "schema"))) == plain(declared_signature(FitOptions))


def test_docstrings_describe_every_option() -> None:
    for function, cls in ((FasterCE.explain, ExplainOptions), (FasterCE, FitOptions)):
        assert [one.name for one in options.declared(cls) if f" {one.name} : " not in str(function.__doc__)] == []


def test_an_added_option_is_missed_in_the_python_signature() -> None:
    missing = declared_signature(MoreOptions).keys() - signature(FasterCE.explain, without=("rows", "unknown")).keys()
    assert missing == {"patience"}


def test_an_added_option_reaches_every_surface() -> None:
    added = options.declared(MoreOptions)[-1]
    assert (added.name, added.annotation, added.default, added.help) == ("patience", int, 3, "Number of attempts.")
    assert added in options.offered("cli", MoreOptions)
    assert added in options.offered("http", MoreOptions)
    assert options.names("cli", MoreOptions)["patience"] == "--patience"
    assert options.names("http", MoreOptions)["patience"] == "patience"
    assert options.defaults(MoreOptions)["patience"] == 3
    assert MoreOptions(patience=4).values()["patience"] == 4
    with pytest.raises(InputError) as caught:
        MoreOptions(patience=10)
    assert (caught.value.problem.code, caught.value.problem.option) == ("options.count_out_of_range", "patience")


def test_an_added_option_is_a_flag_of_the_command_line() -> None:
    received: dict[str, Any] = {}
    command = with_options(lambda **values: received.update(values), options.offered("cli", MoreOptions))
    app = typer.Typer()
    app.command()(command)
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    assert "--patience" in shown
    assert "Number of attempts." in shown
    assert CliRunner().invoke(app, ["-p", "5"]).exit_code == 0
    assert received["patience"] == 5


def test_an_added_option_is_a_field_of_the_http_body() -> None:
    body = request_model(MoreOptions)
    described = body.model_json_schema()["properties"]["patience"]
    assert (described["default"], described["minimum"], described["maximum"]) == (3, 1, 9)
    assert described["description"] == "Number of attempts."
    with pytest.raises(ValidationError):
        body.model_validate({"rows": [{}], "patience": 10})


def test_an_added_option_is_recorded_and_replayed() -> None:
    schema = Schema((Feature("age", "numeric", lower=0, upper=99),))
    written = configuration.written(MoreOptions(patience=4).values(), schema, MoreOptions)
    assert written["patience"] == 4
    assert configuration.restored(written, MoreOptions)["patience"] == 4
    assert "patience" in configuration.options_schema(MoreOptions)["properties"]


def test_options_of_the_paper_reach_every_surface() -> None:
    given = {"step": 0.3, "growth": "multiplicative"}
    wanted = PaperOptions(step=0.3, growth="multiplicative")
    assert ExplainOptions(paper=given).paper == wanted  # type: ignore[arg-type]
    schema = Schema((Feature("age", "numeric", lower=0, upper=99),))
    written = configuration.written(ExplainOptions(engine="paper", paper=wanted).values(), schema)
    assert written["paper"] == {"step": 0.3, "eps_max": 4.0, "growth": "multiplicative", "perturbation": "random"}
    assert configuration.restored(json.loads(json.dumps(written)))["paper"] == wanted
    described = configuration.options_schema()["properties"]["paper"]
    assert described["properties"]["growth"]["enum"] == ["linear", "multiplicative"]
    body = request_model()
    assert body.model_validate({"rows": [{}], "engine": "paper", "paper": given}).options()["paper"] == given
    assert body.model_validate({"rows": [{}]}).options()["paper"] == PaperOptions().values()
    for wrong in ({"step": 0}, {"stop": 1}, {"growth": "square"}, 0.1):
        with pytest.raises(ValidationError):
            body.model_validate({"rows": [{}], "paper": wrong})
    assert loading.group(["step=0.3", "growth = multiplicative"], "paper") == given
    with pytest.raises(InputError, match=r"^--paper must be NAME=VALUE, such as step=0.05; got '0.3'\.$"):
        loading.group(["0.3"], "--paper")


def test_surfaces_name_options_their_own_way() -> None:
    assert options.names("cli")["permitted_range"] == "--range"
    assert options.names("http")["features_to_vary"] == "vary"
    assert options.names("http")["freeze"] == "freeze"
    assert options.names("cli")["paper"] == "--paper"
    assert "margin" not in options.names("cli")
    assert "deadline" not in options.names("http")


def test_choices_come_from_the_annotation() -> None:
    by_name = {one.name: one for one in options.declared()}
    assert by_name["method"].choices == ("closest", "sparse", "realistic", "all")
    assert by_name["distance"].choices == ("percentile", "gower", "mad", "euclidean")
    assert by_name["n"].choices == ()
    assert [by_name[name].type for name in ("n", "budget", "robust", "diagnose", "method")] == [int, int, float, bool, str]


def test_freeze_becomes_a_constraint() -> None:
    up = OnlyUp("age")
    assert options.explain_arguments({"n": 2, "freeze": ["job"], "constraints": [up]}) == {
        "n": 2,
        "constraints": [up, Frozen("job")],
    }
    assert options.explain_arguments({"freeze": ["job"]}) == {"constraints": [Frozen("job")]}
    assert options.explain_arguments({"freeze": [], "n": 1}) == {"n": 1}


def test_unknown_options_are_rejected_with_a_suggestion() -> None:
    options.check_known(["n", "method"], list(options.defaults()))
    with pytest.raises(InputError) as caught:
        options.check_known(["diversty"], list(options.defaults()))
    problem = caught.value.problem
    assert (problem.code, problem.received) == ("options.unknown_option", "diversty")
    assert problem.details["suggestion"] == "diversity"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "near"}, "method must be one of 'closest', 'sparse', 'realistic', 'all'; got 'near'."),
        ({"engine": "papr"}, "engine must be one of 'hybrid', 'latent', 'paper'; got 'papr'. Did you mean 'paper'?"),
        ({"diversity": -0.1}, "diversity must be a number from 0 to 1; got -0.1."),
        ({"diversity": 2}, "diversity must be a number from 0 to 1; got 2."),
        ({"diversity": True}, "diversity must be a number from 0 to 1; got True."),
        ({"diversity": "very"}, "diversity must be a number from 0 to 1; got 'very'."),
        ({"diversity": float("nan")}, "diversity must be a number from 0 to 1; got nan."),
        ({"realism": float("nan")}, "realism must be a number from 0 to 1; got nan."),
        ({"n": True}, "n must be a whole number from 1 to 100; got True."),
        ({"n": 0}, "n must be a whole number from 1 to 100; got 0."),
        ({"n": 101}, "n must be a whole number from 1 to 100; got 101."),
        ({"n": 1.0}, "n must be a whole number from 1 to 100; got 1.0."),
        ({"n": None}, "n must be a whole number from 1 to 100; got None."),
        ({"paper": 0.1}, "paper must be PaperOptions(...) or a dictionary of its fields; got 0.1."),
        ({"paper": {"step": float("inf")}}, "paper.step must be a number of at least 1e-06; got inf."),
        ({"paper": {"zeta": 1}}, "Unknown option 'zeta'; expected one of 'step', 'eps_max', 'growth', 'perturbation'."),
        (
            {"paper": {"step": 1e-4, "eps_max": 2}},
            "paper.step must be at least 0.0002, a ten-thousandth of eps_max; got 0.0001.",
        ),
        ({"margin": float("nan")}, "margin must be a number of at least 0; got nan."),
        ({"margin": "0.1"}, "margin must be a number of at least 0; got '0.1'."),
        ({"robust": 0}, "robust must be a number above 0 and at most 1; got 0."),
        ({"ensemble_agreement": 1.5}, "ensemble_agreement must be a number above 0 and at most 1; got 1.5."),
        ({"budget": 0}, "budget must be a whole number of at least 1; got 0."),
        ({"budget": 2.0}, "budget must be a whole number of at least 1; got 2.0."),
        ({"deadline": 0}, "deadline must be a number above 0; got 0."),
        ({"deadline": float("inf")}, "deadline must be a number above 0; got inf."),
        ({"deadline": True}, "deadline must be a number above 0; got True."),
        ({"diagnose": 1}, "diagnose must be True or False; got 1."),
        ({"override": "no"}, "override must be True or False; got 'no'."),
    ],
)
def test_invalid_values_are_rejected(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        ExplainOptions(**given)
    assert str(caught.value.problem.option).partition(".")[0] in given
    assert str(caught.value) == message


def test_valid_values_become_plain_python_values() -> None:
    checked = ExplainOptions(n=np.int64(2), realism=np.float32(0.25), diversity=1, override=np.bool_(True))  # type: ignore[arg-type]
    values = [checked.n, checked.realism, checked.diversity, checked.override]
    assert values == [2, 0.25, 1.0, True]
    assert [type(value) for value in values] == [int, float, float, bool]


def test_choosing_variants() -> None:
    assert [name for name, _ in choose_variants(ExplainOptions("sparse"))] == ["sparse"]
    assert [name for name, _ in choose_variants(ExplainOptions("all", engine="paper"))] == ["closest", "sparse", "realistic"]
    assert choose_variants(ExplainOptions()) != choose_variants(ExplainOptions(engine="paper"))


class Trying:
    """A check that evaluates a fixed number of rows per counterfactual."""

    def __init__(self, model_rows: int) -> None:
        self.model_rows = model_rows


def plan(variants: int = 1, checks: Any = (), **given: Any) -> SearchPlan:
    searches: Any = [("closest", None)] * variants
    unused: Any = None
    return SearchPlan(ExplainOptions(**given), searches, TheOther(), unused, unused, checks)


def test_rows_are_kept_for_verification_and_robustness() -> None:
    attempts = SearchConfig().verification_attempts
    assert plan().set_aside == 1 + attempts
    assert plan(variants=2, n=3).set_aside == 1 + attempts * 3 * 2
    assert plan(checks=[Trying(33), Trying(0)]).set_aside == 1 + attempts + 33


def test_limits_leave_room_for_verification() -> None:
    limits = plan(budget=20).limits(np.array([0, 5, 30]), started=0.0, each=0.0, free=False)
    assert limits.left is not None
    assert limits.left.tolist() == [17, 12, 0]
    assert plan(budget=20).limits(np.array([0]), 0.0, 0.0, free=True).left is None
    timed = plan(deadline=2.0, n=2).limits(np.array([0, 0]), started=100.0, each=0.1, free=False)
    assert timed.until == pytest.approx(100.0 + 2.0 - 0.1 * 2 * 3)


def test_why_a_search_was_stopped() -> None:
    one = stopped_problem(STOPPED_BY, plan(budget=9).stopping_limits)
    both = stopped_problem(CUT_SHORT_BY, plan(budget=9, deadline=0.5).stopping_limits)
    assert (one.code, one.details) == ("search.stopped_by_budget", {"budget": 9})
    assert both.text().startswith("Stopped at the budget of 9 model rows or the deadline of 0.5 s: ")


@pytest.mark.parametrize(
    ("given", "name", "needed"),
    [
        ({"paper": {"step": 0.3}}, "paper", 'engine="paper"'),
        ({"paper": {"step": 0.3}, "engine": "latent"}, "paper", 'engine="paper"'),
        ({"realism": 0.9}, "realism", 'method="realistic" or "all"'),
        ({"realism": 0.9, "method": "realistic", "engine": "paper"}, "realism", 'engine="hybrid" or "latent"'),
        ({"diversity": 1.0}, "diversity", "n > 1"),
        ({"diversity": 1.0, "n": 3, "engine": "paper"}, "diversity", 'engine="hybrid" or "latent"'),
        ({"noise": {"age": 1.0}}, "noise", "robust"),
    ],
)
def test_options_without_effect_are_refused(given: dict[str, Any], name: str, needed: str) -> None:
    with pytest.raises(InputError) as caught:
        ExplainOptions(**given).check_effects()
    assert caught.value.problem.option == name
    assert str(caught.value) == f"{name} has an effect only together with {needed}."


@pytest.mark.parametrize(
    "given",
    [
        {"paper": PaperOptions(), "realism": 0.5, "diversity": 0.5},
        {"paper": {"step": 0.3}, "engine": "paper"},
        {"realism": 0.9, "method": "all"},
        {"diversity": 0.0, "n": 2},
        {"noise": {"age": 1.0}, "robust": 0.9},
    ],
)
def test_options_with_an_effect_and_defaults_are_accepted(given: dict[str, Any]) -> None:
    ExplainOptions(**given).check_effects()
