"""Speed and quality beside the rivals, on the same black boxes and rows: `make bench-speed`."""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import measuring, venvs
from benchmarks.setting import BOXES, WANTED, Setting, prepare
from fasterce import FasterCE, metrics

HERE = Path(__file__).parent
METHODS = ("closest", "sparse", "realistic")
RIVALS = (
    ("NICE (sparsity)", "nice", "sparsity"),
    ("NICE (plausibility)", "nice", "plausibility"),
    ("DiCE random", "dice", "random"),
    ("CERTIFAI (our version)", "certifai", "genetic"),
    ("treecf genetic", "treecf", "genetic"),
    ("treecf exact, 2 s a row", "treecf", "exact"),
)
START_UP = 300.0
HEADER = (
    "system",
    "fit s",
    "ms each, batch",
    "× ours",
    "single p50 ms",
    "p95 ms",
    "calls batch / single",
    "rows asked each",
    "in model %",
    "found %",
    "valid %",
    "features",
    "gower_l1",
    "nn_ratio",
    "inlier %",
    "note",
)


@dataclass(frozen=True)
class Plan:
    """How much is measured. Quality is judged on the first `rival_rows` rows for everybody."""

    batch: int = 1000
    singles: int = 100
    repeats: int = 5
    rival_rows: int = 30
    rival_repeats: int = 3
    rival_seconds: float = 60.0
    train_rows: int | None = None
    rivals: bool = True
    twins: bool = True
    work: Path = HERE / ".work"


QUICK = Plan(batch=200, singles=10, repeats=2, rival_rows=5, rival_repeats=1, rival_seconds=5.0, train_rows=4000)


@dataclass(frozen=True)
class Line:
    """One system on one setting. `answers` is indexed by the row's position among the first `attempted` rows."""

    system: str
    fit: float = float("nan")
    each: Sequence[float] = ()
    single: Sequence[float] = ()
    calls: str = ""
    asked: str = ""
    inside: Sequence[float] = ()
    attempted: int = 0
    answers: pd.DataFrame = field(default_factory=pd.DataFrame)
    note: str = ""


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    plan = plan_of(options)
    parts = [section(name, box, options.seed, plan) for name in options.datasets for box in options.boxes]
    report = "\n\n".join([heading(options, plan), *parts]) + "\n"
    print(report)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(report, encoding="utf-8")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--datasets", nargs="+", help="adult and lending_club (quick: adult); german_credit too")
    parser.add_argument("--boxes", nargs="+", default=list(BOXES), choices=BOXES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="little data and few rows: two minutes")
    parser.add_argument("--no-rivals", action="store_true")
    parser.add_argument("--no-twin", action="store_true", help="the plain pipeline alone")
    for name in ("batch", "singles", "repeats", "rival-rows", "rival-repeats", "train-rows"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--rival-seconds", type=float, help="a rival begins no new row after this time")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "speed.md")
    options = parser.parse_args(arguments)
    options.datasets = options.datasets or (["adult"] if options.quick else ["adult", "lending_club"])
    options.command = " ".join(["python -m benchmarks.speed", *(sys.argv[1:] if arguments is None else arguments)])
    return options


def plan_of(options: argparse.Namespace) -> Plan:
    base = QUICK if options.quick else Plan()
    given = {name: value for name in vars(base) if (value := getattr(options, name, None)) is not None}
    return Plan(**{**vars(base), **given, "rivals": not options.no_rivals, "twins": not options.no_twin})


def heading(options: argparse.Namespace, plan: Plan) -> str:
    kind = "**Preliminary: the quick run, on little training data.**\n\n" if options.quick else ""
    return f"""# Speed and quality beside the rivals

{kind}`{options.command}`, seed {options.seed}. {measuring.machine()}

Medians, and lowest – highest of {plan.repeats} repeats (rivals: {plan.rival_repeats}, fewer where they took more than
{plan.rival_seconds:.0f} s). *ms each, batch*: {plan.batch:,} rows in one call; a rival without a batch is looped over its
rows, {plan.rival_rows} at most. *× ours*: that time divided by ours for `closest` on the plain pipeline. *single*: row by
row, {plan.singles} rows (rivals: {plan.rival_rows}). *found*, *valid* and what follows are judged by our process on the
same first {plan.rival_rows} rows for everybody, *valid* by asking the black box once more; means over valid answers. Every
feature free, one counterfactual a row. What is not fair, and how it was handled: benchmarks/README.md."""


def section(name: str, box: str, seed: int, plan: Plan) -> str:
    say(f"{name}, {box}: training the black box")
    setting = prepare(name, box, seed, plan.train_rows)
    judge = Judge(setting, plan.rival_rows)
    lines = list(ours(setting, plan))
    if plan.rivals:
        folder = plan.work / f"{name}-{box}"
        setting.dump(folder)
        lines += [rival(*which, folder, plan) for which in RIVALS if which[1] != "treecf" or box == "xgboost"]
    reference = float(np.median(lines[0].each))
    rows = [written(line, reference, judge) for line in lines]
    return f"## {name}, {box}\n\n{black_box(setting, plan)}\n\n{measuring.table(HEADER, rows)}"


def black_box(setting: Setting, plan: Plan) -> str:
    one, many = setting.rows.iloc[:1], setting.batch(plan.batch)
    single = measuring.seconds_of(lambda: setting.model.predict(one), plan.singles)
    batch = measuring.seconds_of(lambda: setting.model.predict(many), plan.repeats)
    crossed = "" if len(setting.rows) >= plan.batch else f", crossed with each other to make a batch of {len(many):,}"
    return (
        f"{len(setting.X_train):,} training rows; {len(setting.rows):,} rows are refused{crossed}.\n"
        f"One `predict` of the pipeline: {1000 * np.median(single):.2f} ms for one row, "
        f"{1e6 * np.median(batch) / len(many):.1f} µs a row in a batch."
    )


def ours(setting: Setting, plan: Plan) -> Iterator[Line]:
    both = ("never", "auto") if plan.twins else ("never",)
    for twin in both:
        say(f"{setting.data}, {setting.box}: fasterce, twin {twin}")
        started = perf_counter()
        explainer = FasterCE(setting.model, setting.schema, random_state=setting.seed, twin=twin).fit(setting.X_train)
        fitted = perf_counter() - started
        for method in METHODS:
            yield own_line(explainer, setting, method, fitted, plan, with_twin=twin == "auto")


def own_line(explainer: FasterCE, setting: Setting, method: str, fitted: float, plan: Plan, *, with_twin: bool) -> Line:
    batch = setting.batch(plan.batch)
    explainer.explain(batch.iloc[:5], method, distance="gower")
    each, inside = [], []
    for _ in range(plan.repeats):
        with measuring.timed(setting.model) as model:
            started = perf_counter()
            result = explainer.explain(batch, method, distance="gower")
            each.append(perf_counter() - started)
        inside.append(model.seconds / each[-1])
    rows = [setting.rows.iloc[k : k + 1] for k in range(min(plan.singles, len(setting.rows)))]
    single = [measuring.seconds_of(lambda row=row: explainer.explain(row, method, distance="gower"), 1)[0] for row in rows]
    twin, alone = result.twin, explainer.explain(rows[0], method, distance="gower")
    twin_rows = f" + {twin.rows / len(batch):.1f} of the twin" if twin is not None else ""
    attempted = min(plan.rival_rows, len(setting.rows), len(batch))
    return Line(
        system=f"fasterce {method}" + (", twin" if with_twin else ""),
        fit=fitted,
        each=[seconds / len(batch) for seconds in each],
        single=single,
        calls=f"{result.asked.calls} / {alone.asked.calls}",
        asked=f"{result.asked.rows / len(batch):.1f}{twin_rows}",
        inside=inside,
        attempted=attempted,
        answers=answered(result, attempted, setting),
        note=twin_note(twin) if with_twin else "",
    )


def twin_note(twin: Any) -> str:
    return "no twin was made" if twin is None else f"twin agrees {twin.agreement:.2%}"


def answered(result: Any, attempted: int, setting: Setting) -> pd.DataFrame:
    found = np.flatnonzero((result.status == "found").to_numpy()[:attempted])
    return result.counterfactuals.iloc[found].astype(setting.X_train.dtypes.to_dict()).set_axis(found)


def rival(title: str, module: str, variant: str, folder: Path, plan: Plan) -> Line:
    """Whatever goes wrong with a rival is written in its line; the run goes on."""
    say(f"{folder.name}: {title}")
    out = folder / f"{module}-{variant}"
    for kind in (".json", ".parquet"):
        out.with_suffix(kind).unlink(missing_ok=True)
    try:
        asked_for = ("--rows", plan.rival_rows, "--repeats", plan.rival_repeats, "--seconds", plan.rival_seconds)
        command = [venvs.python_of(module), "-m", "benchmarks.rivals.run", module, variant, folder, out, *asked_for]
        limit = START_UP + 4 * plan.rival_seconds
        done = subprocess.run(
            [str(part) for part in command], cwd=HERE.parent, capture_output=True, text=True, timeout=limit, check=False
        )
        if not out.with_suffix(".json").exists():
            return Line(title, note=f"died: {last_line(done.stderr)}")
    except venvs.CannotInstall as error:
        return Line(title, note=f"cannot be installed: {error}")
    except subprocess.TimeoutExpired:
        return Line(title, note=f"stopped after {limit:.0f} s")
    report = json.loads(out.with_suffix(".json").read_text())
    if "failure" in report:
        return Line(title, note=f"failed: {report['failure']}")
    return rival_line(title, report, pd.read_parquet(out.with_suffix(".parquet")))


def rival_line(title: str, report: dict[str, Any], answers: pd.DataFrame) -> Line:
    passes = report["passes"]
    attempted = len(passes[0]["seconds"])
    looped = [float(np.mean(one["seconds"])) for one in passes]
    clock = passes[0]["clock"]
    return Line(
        system=title,
        fit=report["fit"],
        each=[seconds / attempted for seconds in report["batches"]] or looped,
        single=[seconds for one in passes for seconds in one["seconds"]],
        calls=f"– / {clock['calls'] / attempted:.0f}" if clock["calls"] else "none",
        asked=f"{clock['rows'] / attempted:.1f}" if clock["calls"] else "none",
        inside=[one["clock"]["model"] / sum(one["seconds"]) for one in passes] if clock["calls"] else [],
        attempted=attempted,
        answers=answers,
        note="; ".join([f"{attempted} rows", *report["notes"], *report["errors"][:1]]),
    )


@dataclass(frozen=True)
class Judge:
    """Asks the black box about every answer again and scores those that are valid."""

    setting: Setting
    rows: int

    @cached_property
    def scale(self) -> metrics.Scale:
        return metrics.Scale.of(self.setting.X_train, self.setting.schema)

    @cached_property
    def peers(self) -> metrics.Peers:
        return metrics.Peers.of(self.setting.model, self.scale, self.setting.X_train, WANTED)

    def scores(self, answers: pd.DataFrame, attempted: int) -> list[str]:
        if not len(answers):
            return ["0" if attempted else ""] + [""] * 5
        answers = answers[self.setting.X_train.columns]
        before = self.setting.rows.iloc[answers.index]
        valid = self.setting.model.predict(answers) == WANTED
        valid[list(self.scale.table.read(answers).problems)] = False
        shares = [f"{100 * len(answers) / attempted:.0f}", f"{100 * valid.mean():.0f}"]
        if not valid.any():
            return shares + [""] * 4
        before, after = before[valid], answers[valid]
        return [
            *shares,
            f"{metrics.features_changed(self.scale, before, after).mean():.2f}",
            f"{metrics.gower_l1(self.scale, before, after).mean():.3f}",
            f"{metrics.nn_ratio(self.peers, after):.2f}",
            f"{100 * metrics.inlier(self.peers, after).mean():.0f}",
        ]


def written(line: Line, reference: float, judge: Judge) -> list[str]:
    milliseconds = [1000 * seconds for seconds in line.each]
    p50, p95 = (f"{1000 * np.quantile(line.single, q):.2f}" if len(line.single) else "" for q in (0.5, 0.95))
    return [
        line.system,
        measuring.spread([line.fit], "{:.1f}"),
        measuring.spread(milliseconds, "{:.3f}" if milliseconds and max(milliseconds) < 1 else "{:.2f}"),
        f"{np.median(line.each) / reference:.2f}" if len(line.each) else "",
        p50,
        p95,
        line.calls,
        line.asked,
        measuring.spread([100 * share for share in line.inside], "{:.0f}"),
        *judge.scores(line.answers, line.attempted),
        line.note.replace("|", "/").replace("\n", " "),
    ]


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "without a word"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
