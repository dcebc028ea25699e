"""The paper's statements about its results, each tested once on the numbers of a run, within their error bars.

A comparison agrees where the 95 % interval of the difference between runs (paired, Student's t) lies on the side the paper
names, differs where it lies on the other one, and is undecided where it contains zero.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.paper.plan import CE1, CE2, CE3, FASTER_CE, IN_THE_PAPER, RIVALS, ROBUSTNESS_DATA, STEPS, TITLES, at_step
from benchmarks.paper.tables import Tables
from fasterce import datasets

AGREES, UNDECIDED, DIFFERS = "agrees", "undecided", "differs"
Verdict = Literal["agrees", "undecided", "differs"]
SMALL_TABLES = ("adult", "german_credit")
# "Comparable" is read as at most this factor apart, "drastically" as at least this factor.
COMPARABLE, DRASTIC = 1.5, 2.0
FEW_CATEGORIES = 3
# Percent that are printed as 100.
ALL = 99.95
# The rivals in the paper's table of robustness.
IN_TABLE_5 = ("dice-random", "certifai-genetic", "latentcf-adam")
OURS = "FASTER-CE"
OF_COUNTERFACTUALS = ("n_changed", "undivided", "recourse")


@dataclass(frozen=True)
class Check:
    """One comparison: where it was made, its verdict, and its numbers."""

    scope: str
    verdict: Verdict
    numbers: str


@dataclass(frozen=True)
class Statement:
    """What the paper says, of whom, and the checks of it; `name` finds the reading of one that differs."""

    name: str
    subject: str
    text: str
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> Verdict:
        found = {check.verdict for check in self.checks}
        return DIFFERS if DIFFERS in found else UNDECIDED if UNDECIDED in found else AGREES

    @property
    def summary(self) -> str:
        """The verdict, and where it holds if that is not everywhere."""
        agreeing = [check.scope for check in self.checks if check.verdict == AGREES]
        if self.verdict == AGREES or not agreeing:
            return self.verdict
        return f"{self.verdict}; agrees on {', '.join(agreeing)}"


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of the mean; of one run that run itself."""
    known = np.asarray(values, dtype=float)
    half = stats.t.ppf(0.975, len(known) - 1) * known.std(ddof=1) / len(known) ** 0.5 if len(known) > 1 else 0.0
    return float(known.mean() - half), float(known.mean() + half)


def below(differences: Sequence[float], limit: float = 0.0) -> Verdict:
    """Whether differences between runs lie below a limit."""
    low, high = interval(differences)
    return AGREES if high < limit else DIFFERS if low > limit else UNDECIDED


def complete(percentages: Sequence[float]) -> Verdict:
    """Whether all is 100 %; undecided where it is less but the interval contains 100, since a wide one is no support."""
    if np.mean(percentages) >= ALL:
        return AGREES
    return UNDECIDED if interval(percentages)[1] >= 100 else DIFFERS


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    return DIFFERS if DIFFERS in verdicts else UNDECIDED if UNDECIDED in verdicts else AGREES


class Runs:
    """Measures of methods, run by run; counterfactuals are compared on queries for which both methods have a valid one."""

    def __init__(self, runs: pd.DataFrame, lines: pd.DataFrame) -> None:
        measured = [name for name in OF_COUNTERFACTUALS if name in lines]
        self.values = {key: part.set_index("seed") for key, part in runs.groupby(["data", "method"], sort=False)}
        self.queries = {
            key: part.groupby(["seed", "task", "row"])[measured].mean()
            for key, part in lines.groupby(["data", "method"], sort=False)
        }

    def has(self, data: str, *methods: str) -> bool:
        return all((data, method) in self.values for method in methods)

    def of(self, data: str, method: str, measure: str) -> pd.Series:
        return self.values[data, method][measure].dropna()

    def both(self, data: str, one: str, other: str, measure: str) -> tuple[pd.Series, pd.Series]:
        """Return a measure of two methods in the runs both have."""
        if measure in OF_COUNTERFACTUALS:
            pair = [self.queries[data, method][measure].dropna().rename(name) for name, method in enumerate((one, other))]
            means = pd.concat(pair, axis=1, join="inner").groupby("seed").mean()
            return means[0], means[1]
        first, second = (self.of(data, method, measure) for method in (one, other))
        runs = first.index.intersection(second.index)
        return first[runs], second[runs]

    def below(self, data: str, one: str, other: str, measure: str, factor: float | None = None) -> Verdict:
        """Whether one method lies below another, or with a factor below that many times the other."""
        first, second = self.both(data, one, other, measure)
        if not len(first):
            return UNDECIDED
        return below(list(first - second)) if factor is None else below(list(np.log(first / second)), float(np.log(factor)))

    def mean(self, data: str, method: str, measure: str) -> float:
        return float(self.of(data, method, measure).mean())

    def shown(self, data: str, ours: Sequence[str], others: Sequence[str], measure: str, form: str) -> str:
        """Return the means; those of counterfactuals pair by pair, on the queries that were compared."""
        if measure not in OF_COUNTERFACTUALS or not others:
            return ", ".join(f"{TITLES[name]} {form.format(self.mean(data, name, measure))}" for name in (*ours, *others))
        pairs = [(one, other, self.both(data, one, other, measure)) for one in ours for other in others]
        return ", ".join(
            f"{TITLES[one]} {form.format(first.mean())} to {TITLES[other]} {form.format(second.mean())}"
            for one, other, (first, second) in pairs
        )


def statements(tables: Tables) -> list[Statement]:
    """Return every statement that the run has numbers for."""
    runs = Runs(tables.runs, tables.lines)
    found = [*of_validity(runs), *of_sparsity(tables, runs), *of_proximity(runs), *of_time(runs)]
    found += [*of_search(tables), *of_robustness(tables)]
    return [one for one in found if one.checks]


def statement(name: str, subject: str, text: str, checks: Iterator[Check]) -> Statement:
    return Statement(name, subject, text, tuple(checks))


def of_validity(runs: Runs) -> Iterator[Statement]:
    for method in (CE1, CE3, *IN_THE_PAPER):
        title = TITLES[method]
        subject = OURS if method in FASTER_CE else title
        checks = (full(runs, data, method) for data in datasets.names() if runs.has(data, method))
        yield statement(f"valid-{method}", subject, f"{title} is valid for all queries", checks)

    def partly() -> Iterator[Check]:
        for data in datasets.names():
            if runs.has(data, CE2):
                verdict = below(list(runs.of(data, CE2, "valid") - 100))
                yield Check(data, verdict, runs.shown(data, [CE2], [], "valid", "{:.1f} %"))

    yield statement(
        "valid-ce2", OURS, "FASTER-CE2 does not find a valid counterfactual for every query and feature", partly()
    )


def full(runs: Runs, data: str, method: str) -> Check:
    values = runs.of(data, method, "valid")
    return Check(data, complete(values), runs.shown(data, [method], [], "valid", "{:.1f} %"))


def against_all(
    runs: Runs,
    data: str,
    ours: Sequence[str],
    others: Sequence[str],
    measure: str,
    form: str,
    factor: float | None = None,
) -> Iterator[Check]:
    """Each of ours is below each of the others, or with a factor below that many times the other."""
    ours, others = ([name for name in names if runs.has(data, name)] for names in (ours, others))
    if ours and others:
        verdicts = [runs.below(data, one, other, measure, factor) for one in ours for other in others]
        yield Check(data, worst(verdicts), runs.shown(data, ours, others, measure, form))


def of_sparsity(tables: Tables, runs: Runs) -> Iterator[Statement]:
    others = (CE1, CE3, *IN_THE_PAPER)
    checks = (check for data in datasets.names() for check in against_all(runs, data, [CE2], others, "n_changed", "{:.2f}"))
    yield statement("sparse-ce2", OURS, "FASTER-CE2 changes fewer features than any other method", checks)
    fewer = (check for data in datasets.names() for check in against_all(runs, data, [CE3], [CE1], "n_changed", "{:.2f}"))
    yield statement("sparse-ce3", OURS, "FASTER-CE3 is a trade-off: it changes fewer features than FASTER-CE1", fewer)
    yield statement(
        "few-categories", OURS, "FASTER-CE2 is invalid more often for categorical features with few categories",
        few_categories(tables.lines),
    )  # fmt: skip


def few_categories(lines: pd.DataFrame) -> Iterator[Check]:
    lines = lines[lines["method"] == CE2] if len(lines) else lines
    for data, part in lines.groupby("data", sort=False):
        schema = datasets.load(str(data)).schema
        few = {str(f.name) for f in schema.features if not f.numeric and len(f.categories) <= FEW_CATEGORIES}
        valid = 100 * part.assign(few=part["feature"].isin(few)).groupby(["seed", "few"])["valid"].mean().unstack()
        if {True, False} <= set(valid.columns):
            numbers = f"at most {FEW_CATEGORIES} categories {valid[True].mean():.1f} %, others {valid[False].mean():.1f} %"
            yield Check(str(data), below(list(valid[True] - valid[False])), numbers)


def of_proximity(runs: Runs) -> Iterator[Statement]:
    measure, form = "undivided", "{:.2f}"

    comparable = (
        check
        for data in SMALL_TABLES
        for check in against_all(runs, data, [CE1], ["certifai-genetic"], measure, form, COMPARABLE)
    )
    text = f"FASTER-CE1 is about as near as CERTIFAI on small tables (at most {COMPARABLE:g} times as far)"
    yield statement("near-small", OURS, text, comparable)
    nearer = against_all(runs, ROBUSTNESS_DATA, [CE1], ["certifai-genetic"], measure, form)
    yield statement("near-large", OURS, "FASTER-CE1 is nearer than CERTIFAI on Lending Club", nearer)
    farther = (check for data in datasets.names() for check in against_all(runs, data, [CE1], [CE2], measure, form))
    yield statement("near-ce2", OURS, "FASTER-CE2 is farther away than FASTER-CE1", farther)
    rivals = [name for name in IN_THE_PAPER if name != "certifai-genetic"]
    near = (check for data in SMALL_TABLES for check in against_all(runs, data, ["certifai-genetic"], rivals, measure, form))
    yield statement("near-certifai", "CERTIFAI", "CERTIFAI is nearer than the other rivals on small tables", near)


def of_time(runs: Runs) -> Iterator[Statement]:
    def all_datasets(ours: Sequence[str], others: Sequence[str], measure: str, form: str) -> Iterator[Check]:
        return (check for data in datasets.names() for check in against_all(runs, data, ours, others, measure, form))

    faster = all_datasets([*FASTER_CE], IN_THE_PAPER, "each", "{:.3f} s")
    yield statement("fast", OURS, "each FASTER-CE takes less time per explanation than every rival", faster)
    slower = all_datasets([CE1, CE3], [CE2], "each", "{:.3f} s")
    yield statement("slow-ce2", OURS, "FASTER-CE2 takes more time per explanation than FASTER-CE1 and FASTER-CE3", slower)
    yield statement(
        "fast-all", OURS, "all three FASTER-CE together take less time than one explanation of a rival", all_three(runs)
    )
    total = all_datasets([CE1, CE3], IN_THE_PAPER, "total", "{:.0f} s")
    yield statement("total", OURS, "FASTER-CE1 and CE3 take less time in all for the test set, set-up included", total)
    small = (
        check
        for data in SMALL_TABLES
        for check in against_all(runs, data, [CE1, CE3], IN_THE_PAPER, "total", "{:.0f} s", COMPARABLE)
    )
    text = f"on small tables FASTER-CE1 and CE3 take at most about the time of a rival in all ({COMPARABLE:g} times)"
    yield statement("total-small", OURS, text, small)
    for method in IN_THE_PAPER:
        text = f"{RIVALS[method]} takes drastically longer on Lending Club than on Adult (at least {DRASTIC:g} times)"
        yield statement(f"grows-{method}", RIVALS[method], text, grows(runs, method))


def all_three(runs: Runs) -> Iterator[Check]:
    for data in datasets.names():
        others = [name for name in IN_THE_PAPER if runs.has(data, name)]
        if runs.has(data, *FASTER_CE) and others:
            ours = sum(runs.of(data, name, "each") for name in FASTER_CE)
            gaps = [(ours - runs.of(data, name, "each")).dropna() for name in others]
            shown = runs.shown(data, others, [], "each", "{:.3f} s")
            yield Check(data, worst([below(list(gap)) for gap in gaps]), f"together {ours.mean():.3f} s, {shown}")


def grows(runs: Runs, method: str) -> Iterator[Check]:
    if runs.has("adult", method) and runs.has(ROBUSTNESS_DATA, method):
        small, large = (runs.of(data, method, "each") for data in ("adult", ROBUSTNESS_DATA))
        logs = np.log((small / large).dropna())
        yield Check("lending_club", below(list(logs), -np.log(DRASTIC)), f"{small.mean():.3f} s and {large.mean():.3f} s")


def of_search(tables: Tables) -> Iterator[Statement]:
    def steps(method: str) -> Iterator[Check]:
        cells = [cell for cell in tables.cells if cell.key.method == method and cell.about.get("within_20") is not None]
        for data in dict.fromkeys(cell.key.data for cell in cells):
            shares = [100 * cell.about["within_20"] for cell in cells if cell.key.data == data]
            yield Check(data, below([50 - share for share in shares]), f"{np.mean(shares):.1f} %")

    for method in (CE1, CE3):
        text = f"{TITLES[method]} needs at most 20 steps of 0.1 in most cases"
        yield statement(f"steps-{method}", OURS, text, steps(method))

    def rounds() -> Iterator[Check]:
        known = tables.about("table-1", "iterations")
        for data in dict.fromkeys(name for name, _, _ in known):
            every = [value for name, _, value in known if name == data]
            largest, within = max(one["largest"] for one in every), 100 * np.mean([one["within_20"] for one in every])
            yield Check(data, AGREES if largest <= 20 else DIFFERS, f"{within:.1f} % within 20, most {largest:.0f}")

    yield statement(
        "rounds", OURS, "projecting in turn finds the intersection of two hyperplanes within 20 iterations", rounds()
    )


def of_robustness(tables: Tables) -> Iterator[Statement]:
    if not len(tables.robustness):
        return
    runs = Runs(tables.robustness, tables.robustness_lines)
    known = [step for step in STEPS if runs.has(ROBUSTNESS_DATA, at_step(step))]
    if len(known) < 2:
        return
    text = "a larger δε gives more robust recourse"
    yield statement("step-robust", OURS, text, rising(runs, known, "recourse", "{:.1f} %"))
    yield statement(
        "step-far", OURS, "a larger δε gives counterfactuals farther away", rising(runs, known, "undivided", "{:.2f}")
    )
    text = "from δε = 0.3 on recourse is robust for all queries"
    yield statement("robust-100", OURS, text, always_robust(runs, [step for step in known if step >= 0.3]))
    if 0.3 in known:
        pairs = [(name, name, at_step(0.3)) for name in IN_TABLE_5]
        text = "FASTER-CE1 with δε = 0.3 is more robust than DiCE, CERTIFAI and Latent-CF"
        yield statement("robust-rivals", OURS, text, ordered(runs, pairs, "recourse", 100))
    pairs = [(name, name, "dice-random") for name in IN_TABLE_5 if name != "dice-random"]
    yield statement("robust-dice", "DiCE", "DiCE is the most robust of the rivals", ordered(runs, pairs, "recourse", 100))
    yield statement("far-dice", "DiCE", "DiCE is the farthest away of the rivals", ordered(runs, pairs, "undivided", 1))


def rising(runs: Runs, steps: Sequence[float], measure: str, form: str) -> Iterator[Check]:
    """The largest step lies above the smallest."""
    ends = at_step(steps[0]), at_step(steps[-1])
    shown = ", ".join(f"{step:g}: {form.format(runs.mean(ROBUSTNESS_DATA, at_step(step), measure))}" for step in steps)
    yield Check(ROBUSTNESS_DATA, runs.below(ROBUSTNESS_DATA, *ends, measure), shown)


def always_robust(runs: Runs, steps: Sequence[float]) -> Iterator[Check]:
    for step in steps:
        values = runs.of(ROBUSTNESS_DATA, at_step(step), "recourse")
        yield Check(f"δε = {step:g}", complete(values), f"{values.mean():.1f} %")


def ordered(runs: Runs, pairs: Sequence[tuple[str, str, str]], measure: str, unit: int) -> Iterator[Check]:
    """Of each pair (rival, lower, higher) the lower lies below the higher, on the same queries."""
    for rival, lower, higher in pairs:
        if runs.has(ROBUSTNESS_DATA, lower, higher):
            first, second = runs.both(ROBUSTNESS_DATA, lower, higher, measure)
            numbers = f"{unit * first.mean():.1f} and {unit * second.mean():.1f}"
            yield Check(RIVALS[rival], runs.below(ROBUSTNESS_DATA, lower, higher, measure), numbers)
