"""Our numbers beside the paper's: its figure, its robustness table, its claims, each with a verdict read off the numbers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks import paper
from benchmarks.plan import COMPARED_IN_THE_PAPER, PAPERS_BOX, STEPS
from benchmarks.summary import Results, per_run

# The paper's table of robustness on Lending Club: robust %, its deviation, proximity, its deviation.
PUBLISHED = {
    paper.at_step(0.05): (86.59, 2.54, 1.29, 0.22),
    paper.at_step(0.1): (88.70, 3.19, 1.38, 0.18),
    paper.at_step(0.3): (100.0, 0.0, 4.08, 0.34),
    paper.at_step(0.5): (100.0, 0.0, 6.41, 0.28),
    paper.at_step(1.0): (100.0, 0.0, 13.43, 0.67),
    "dice-random": (93.41, 2.55, 3.12, 0.27),
    "certifai-genetic": (89.72, 2.93, 1.88, 0.36),
    "latentcf-adam": (90.51, 3.21, 2.24, 0.20),
}
TITLES = {
    paper.CE1: "FASTER-CE1",
    paper.CE2: "FASTER-CE2",
    paper.CE3: "FASTER-CE3",
    **{paper.at_step(step): f"FASTER-CE1 δε = {step:g}" for step in STEPS},
    **{paper.beyond(step): f"the same, one δε = {step:g} beyond" for step in STEPS},
    **{paper.at_share(share): f"fasterce robust = {share:g}" for share in paper.SHARES},
}
RIVALS = COMPARED_IN_THE_PAPER
FIGURE = ("FASTER-CE1", "FASTER-CE2", "FASTER-CE3", *RIVALS.values())
MEASURES = {
    "valid": ("validity %", "{:.1f}"),
    "n_changed": ("sparsity (features)", "{:.2f}"),
    "proximity": ("proximity (MAD)", "{:.2f}"),
    "each": ("s an explanation", "{:.4f}"),
    "total": ("s in all, with set-up", "{:.1f}"),
}
ALIKE = 1.1


@dataclass(frozen=True)
class Claim:
    """What the paper says, whether these numbers say so too, and the numbers."""

    said: str
    verdict: str
    numbers: str


def family(method: str) -> str:
    """The paper's name of a method, or nothing where it does not compare it."""
    return TITLES[method] if method in (paper.CE1, paper.CE2, paper.CE3) else RIVALS.get(method, "")


def figure_runs(results: Results) -> pd.DataFrame:
    """A line for every dataset, method of the paper and run; CE2 over all features, times as a person waits for them.

    Validity is of the rows that were tried: the clock is ours and not the paper's."""
    lines = results.part(box=PAPERS_BOX)
    lines = lines[lines["question"].isin(["free", paper.PAPER])]
    lines = lines.assign(title=lines["method"].map(family))
    lines = lines[lines["title"] != ""]
    if not len(lines):
        return pd.DataFrame(columns=["data", "title", "seed", *MEASURES])
    parts = [per_run(part).assign(data=data) for data, part in lines.groupby("data", sort=False)]
    runs = pd.concat(parts, ignore_index=True)
    runs["title"] = runs["method"].map(family)
    runs["valid"] = 100 * runs["valid"] / runs["tried"].where(runs["tried"] > 0)
    runs["each"] = runs["ms"] / 1000
    runs["total"] = setup_of(results, runs) + runs["each"] * runs["usage"]
    return runs.sort_values("title", key=lambda titles: titles.map(FIGURE.index), kind="stable")


def setup_of(results: Results, runs: pd.DataFrame) -> np.ndarray:
    """Seconds each run of `runs` took to get ready."""
    about = results.about[(results.about["box"] == PAPERS_BOX) & results.about["question"].isin(["free", paper.PAPER])]
    known = about.set_index(["data", "method", "seed"])["setup"].to_dict()
    return np.array([known.get((run.data, run.method, run.seed)) for run in runs.itertuples()], dtype=float)


def figure_table(runs: pd.DataFrame) -> Iterator[tuple[str, list[list[str]]]]:
    """For every dataset a line a method: mean ± deviation over runs."""
    for data, part in runs.groupby("data", sort=False):
        yield (
            str(data),
            [
                [
                    str(title),
                    f"{group['seed'].nunique()}",
                    *(plus_minus(group[name], form) for name, (_, form) in MEASURES.items()),
                ]
                for title, group in part.groupby("title", sort=False)
            ],
        )


def plus_minus(values: pd.Series, form: str) -> str:
    known = values.dropna()
    if not len(known):
        return "–"
    return f"{form.format(known.mean())} ± {form.format(known.std() if len(known) > 1 else 0.0)}"


def robustness_runs(results: Results) -> pd.DataFrame:
    """Lending Club: robustness of recourse and proximity for CE1 at every δε, our `robust`, and the rivals."""
    lines = results.part(data=paper.ROBUSTNESS_DATA, box=PAPERS_BOX)
    lines = lines[lines["question"].isin(["free", paper.PAPER])]
    in_table = {method for method in lines["method"] if method in TITLES or family(method)} - {
        paper.CE1,
        paper.CE2,
        paper.CE3,
    }
    lines = lines[lines["method"].isin(in_table)]
    if not len(lines):
        return pd.DataFrame(columns=["method", "title", "recourse", "robust", "proximity", "seed"])
    runs = per_run(lines)
    return runs.assign(title=[TITLES.get(method, family(method)) for method in runs["method"]])


def robustness_table(runs: pd.DataFrame) -> list[list[str]]:
    lines = []
    for method, group in runs.groupby("method", sort=False):
        printed = PUBLISHED.get(str(method))
        theirs = (
            ["–", "–"]
            if printed is None
            else [f"{printed[0]:.2f} ± {printed[1]:.2f}", f"{printed[2]:.2f} ± {printed[3]:.2f}"]
        )
        lines.append(
            [
                group["title"].iloc[0],
                plus_minus(group["recourse"], "{:.1f}"),
                theirs[0],
                plus_minus(group["proximity"], "{:.2f}"),
                theirs[1],
                plus_minus(group["robust"], "{:.1f}"),
                plus_minus(group["valid"], "{:.0f}"),
            ]
        )
    return lines


def claims(runs: pd.DataFrame, robust: pd.DataFrame) -> list[Claim]:
    """The paper's sentences about its figure and table, each checked against the numbers of this run."""
    mean = runs.groupby(["data", "title"], sort=False)[list(MEASURES)].mean() if len(runs) else pd.DataFrame()
    found = [check for data in dict.fromkeys(runs["data"]) for check in of_one_dataset(str(data), mean.loc[data])]
    return found + of_steps(robust)


def of_one_dataset(data: str, mean: pd.DataFrame) -> Iterator[Claim]:
    others = [title for title in RIVALS.values() if title in mean.index]
    if paper_titles := [title for title in mean.index if title != "FASTER-CE2"]:
        yield claim(
            f"{data}: validity is 100 % for all but FASTER-CE2",
            all(mean.loc[title, "valid"] >= 99.95 for title in paper_titles),
            mean["valid"],
            "{:.0f} %",
        )
    if "FASTER-CE2" in mean.index and len(mean) > 1:
        yield claim(
            f"{data}: FASTER-CE2 changes fewest features",
            mean["n_changed"].idxmin() == "FASTER-CE2",
            mean["n_changed"],
            "{:.2f}",
        )
    if {"FASTER-CE1", "CERTIFAI"} <= set(mean.index):
        ce1, certifai = mean.loc["FASTER-CE1", "proximity"], mean.loc["CERTIFAI", "proximity"]
        nearer = data == paper.ROBUSTNESS_DATA
        holds = ce1 < certifai if nearer else ce1 <= ALIKE * certifai
        said = "FASTER-CE1 is nearer than CERTIFAI" if nearer else "FASTER-CE1 is about as near as CERTIFAI or nearer"
        yield claim(f"{data}: {said}", holds, mean.loc[["FASTER-CE1", "CERTIFAI"], "proximity"], "{:.2f}")
    ours = [title for title in ("FASTER-CE1", "FASTER-CE2", "FASTER-CE3") if title in mean.index]
    if ours and others:
        slowest, fastest = mean.loc[ours, "each"].max(), mean.loc[others, "each"].min()
        yield claim(
            f"{data}: each FASTER-CE takes less time an explanation than every rival",
            slowest < fastest,
            mean["each"],
            "{:.3f} s",
        )
    if ours and others and data == paper.ROBUSTNESS_DATA:
        holds = mean.loc[ours, "total"].max() < mean.loc[others, "total"].min()
        yield claim(f"{data}: with set-up too, FASTER-CE takes least time in all", holds, mean["total"], "{:.0f} s")


def of_steps(robust: pd.DataFrame) -> list[Claim]:
    """Read in two ways: the first point that flips, and one step beyond it."""
    mean = robust.groupby("method", sort=False)[["recourse", "proximity"]].mean() if len(robust) else pd.DataFrame()
    found = []
    for how, name in (("the first point that flips", paper.at_step), ("one step beyond it", paper.beyond)):
        steps = {name(step): f"{step:g}" for step in STEPS if name(step) in mean.index}
        if len(steps) > 1:
            found += list(of_one_reading(how, mean.loc[list(steps)].rename(index=steps)))
    return found


def of_one_reading(how: str, part: pd.DataFrame) -> Iterator[Claim]:
    yield claim(f"a larger δε gives more robust recourse ({how})", rises(part["recourse"]), part["recourse"], "{:.1f} %")
    yield claim(f"a larger δε gives farther counterfactuals ({how})", rises(part["proximity"]), part["proximity"], "{:.2f}")
    large = part.loc[[name for name in part.index if float(name) >= 0.3], "recourse"]
    if len(large):
        yield claim(f"from δε = 0.3 on recourse is 100 % robust ({how})", bool((large >= 99.95).all()), large, "{:.1f} %")


def rises(values: pd.Series) -> bool:
    """From the first to the last, and nowhere falling by more than a hundredth of it."""
    steps = np.diff(values.to_numpy())
    return bool(values.iloc[-1] > values.iloc[0] and (steps >= -0.01 * abs(values.iloc[0])).all())


def claim(said: str, holds: bool, numbers: pd.Series, form: str) -> Claim:
    shown = ", ".join(f"{name} {form.format(value)}" for name, value in numbers.items() if np.isfinite(value))
    return Claim(said, "agrees" if holds else "differs", shown)
