"""Which cells a plan has, and what changes their fingerprint."""

from dataclasses import replace

from benchmarks import bench
from benchmarks.plan import COMPARED_IN_THE_PAPER, Plan
from benchmarks.rivals.catalogue import ENTRIES
from benchmarks.setting import BUNDLED, DATASETS

FULL = Plan()


def keys(plan: Plan) -> list[tuple[str, str, str, str, int]]:
    return [(key.data, key.model, key.task, key.method, key.seed) for key in bench.planned(plan)]


def test_the_papers_methods_are_in_the_catalogue() -> None:
    assert set(COMPARED_IN_THE_PAPER) <= {entry.name for entry in ENTRIES}


def test_the_papers_methods_have_five_runs_of_its_black_box_and_others_fewer() -> None:
    runs = [key for key in keys(FULL) if key[:3] == ("adult", "mlp", "free")]
    assert sum(method == "certifai-genetic" for *_, method, _ in runs) == 5
    assert sum(method == "nice-sparsity" for *_, method, _ in runs) == 1


def test_every_system_explains_every_model_it_supports_unless_it_is_costly() -> None:
    planned = {(model, method) for _, model, task, method, _ in keys(FULL) if task == "free"}
    assert planned == {
        (model, entry.name) for entry in FULL.methods for model in entry.models if model == "mlp" or not entry.costly
    }


def test_twelve_datasets_and_only_some_systems_beyond_the_bundled_ones() -> None:
    assert len(DATASETS) == 12
    planned = {method for data, _, _, method, _ in keys(FULL) if data not in BUNDLED}
    assert planned == {entry.name for entry in ENTRIES if entry.all_datasets}
    assert {task for data, _, task, _, _ in keys(FULL) if data not in BUNDLED} == {"free"}
    named = bench.plan_of(bench.parse(["--datasets", "titanic", "--methods", "certifai"]))
    assert {key[3] for key in keys(named)} == {"certifai-genetic"}


def test_costly_systems_get_the_papers_task_or_all_when_named() -> None:
    planned = {(model, task) for _, model, task, method, _ in keys(FULL) if method == "alibi-cfrl"}
    assert planned == {("mlp", "free")}
    named = bench.plan_of(bench.parse(["--methods", "alibi-cfrl"]))
    planned = {(model, task) for _, model, task, method, _ in keys(named) if method == "alibi-cfrl"}
    assert planned == {
        ("mlp", "free"),
        ("mlp", "frozen"),
        ("xgboost", "free"),
        ("random_forest", "free"),
        ("logistic", "free"),
    }


def test_several_counterfactuals_are_requested_only_of_systems_that_return_several() -> None:
    planned = {method.partition("-")[0] for _, _, task, method, _ in keys(FULL) if task == "several"}
    assert {"ours", "dice"} <= planned
    assert "nice" not in planned


def test_the_fingerprint_depends_on_limits_rows_and_sources() -> None:
    nice, ours = (next(entry for entry in ENTRIES if entry.name == name) for name in ("nice-sparsity", "ours-closest"))
    assert FULL.fingerprint(nice) == Plan().fingerprint(nice)
    assert FULL.fingerprint(nice) != FULL.fingerprint(ours)
    assert FULL.fingerprint(nice) != replace(FULL, rows=21).fingerprint(nice)
    assert FULL.fingerprint(nice) != replace(FULL, limits=replace(FULL.limits, row=1.0)).fingerprint(nice)
    assert FULL.fingerprint(nice) == replace(FULL, seeds=(0,)).fingerprint(nice)


def test_options_change_the_plan() -> None:
    plan = bench.plan_of(bench.parse(["--quick", "--rows", "7", "--row-seconds", "2", "--methods", "ours", "my.own:fast"]))
    assert plan.rows == 7
    assert plan.limits.row == 2
    assert plan.limits.method == bench.QUICK.limits.method
    assert plan.methods[-1].name == "my.own-fast"
    assert {entry.module for entry in plan.methods} == {"ours", "my.own"}
