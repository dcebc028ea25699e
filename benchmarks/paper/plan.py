"""What is run: datasets, runs, systems, numbers of rows and time limits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from benchmarks.measuring import package_versions
from benchmarks.paper.networks import TARGETS
from benchmarks.plan import HARNESS, HERE, package_sources
from benchmarks.rivals.catalogue import find
from benchmarks.runner import Limits
from benchmarks.setting import BUNDLED
from benchmarks.store import Key, digest, fingerprint

MODEL = "mlp"
# Tasks of cells, besides the two targets of the comparison.
GRID, TABLE_1, ROBUSTNESS, REEXPLAINED = "grid", "table-1", "robustness", "reexplained"
EXAMPLES, ABLATION = "examples", "ablation"
PARTS = ("comparison", TABLE_1, ROBUSTNESS, EXAMPLES, ABLATION)

CE1, CE2, CE3 = "ce1", "ce2", "ce3"
FASTER_CE = {CE1: "FASTER-CE1", CE2: "FASTER-CE2", CE3: "FASTER-CE3"}
DEFAULTS = {"closest": "fasterce closest", "sparse": "fasterce sparse", "realistic": "fasterce realistic"}
RIVALS = {
    "dice-random": "DiCE",
    "certifai-genetic": "CERTIFAI",
    "latentcf-adam": "Latent-CF",
    "alibi-proto": "ICEGP",
    "nice-sparsity": "NICE",
}
# NICE is younger than the paper, and our default is not its method: no statement is about them.
IN_THE_PAPER = tuple(name for name in RIVALS if name != "nice-sparsity")
TITLES = FASTER_CE | RIVALS | DEFAULTS

ROBUSTNESS_DATA, ROBUSTNESS_TARGET = "lending_club", "favourable"
SLOW_TARGET = "favourable"
STEP = 0.1
STEPS = (0.05, 0.1, 0.3, 0.5, 1.0)
MARGINS = (0, 1, 2, 5)
SHARES = (0.9, 0.95, 0.99)
RIVALS_REEXPLAINED = ("dice-random", "certifai-genetic", "latentcf-adam")


def at_step(step: float, margin: int = 0) -> str:
    """Name CE1 with a step, and a margin of some steps beyond the first point that reaches the target."""
    return f"{CE1}-step-{step:g}-margin-{margin}"


def at_share(share: float) -> str:
    """Name the default with `robust`."""
    return f"robust-{share:g}"


@dataclass(frozen=True)
class PaperPlan:
    """Rows and seconds of each system.

    rows          upper limit of queries per dataset, run and target
    timed_rows    queries of ours that are also explained one at a time, for the time per explanation
    ablated_rows  queries of the ablation
    limits        of rivals, which explain as many queries as their processor time allows, one at a time
    slow_limits   the same for slow rivals (ICEGP), which are run for one target only
    """

    datasets: tuple[str, ...] = BUNDLED
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    rivals: tuple[str, ...] = tuple(RIVALS)
    parts: tuple[str, ...] = PARTS
    rows: int = 500
    timed_rows: int = 30
    ablated_rows: int = 200
    train_rows: int | None = None
    limits: Limits = field(default_factory=lambda: Limits(setup=900, row=120, method=10, processes=2))
    slow_limits: Limits = field(default_factory=lambda: Limits(setup=900, row=300, method=40, processes=2))
    work: Path = HERE / ".work" / "paper" / "problems"

    def cells(self) -> Iterator[Key]:
        """Yield every cell, in the order they are made: one run of all datasets after the other, slow rivals last."""
        for data in self.datasets:
            for seed in self.seeds:
                yield Key(data, MODEL, GRID, "networks", seed)
        for seed in self.seeds:
            for data in self.datasets:
                yield from self._of_run(data, seed)
        for seed in self.seeds if "comparison" in self.parts else ():
            for data in self.datasets:
                for method in self.rivals:
                    if find(method).costly:
                        yield Key(data, MODEL, SLOW_TARGET, method, seed)

    def _of_run(self, data: str, seed: int) -> Iterator[Key]:
        if TABLE_1 in self.parts:
            yield Key(data, MODEL, TABLE_1, "networks", seed)
        if "comparison" in self.parts:
            for target in TARGETS:
                for method in (*FASTER_CE, *DEFAULTS, *(name for name in self.rivals if not find(name).costly)):
                    yield Key(data, MODEL, target, method, seed)
        if ROBUSTNESS in self.parts and data == ROBUSTNESS_DATA:
            yield from self._robustness(data, seed)
        if seed == self.seeds[0]:
            for task in (EXAMPLES, ABLATION):
                if task in self.parts:
                    yield Key(data, MODEL, task, "ours", seed)

    def _robustness(self, data: str, seed: int) -> Iterator[Key]:
        for step in STEPS:
            for margin in MARGINS:
                yield Key(data, MODEL, ROBUSTNESS, at_step(step, margin), seed)
            yield Key(data, MODEL, REEXPLAINED, at_step(step), seed)
        for share in SHARES:
            yield Key(data, MODEL, ROBUSTNESS, at_share(share), seed)
        yield Key(data, MODEL, REEXPLAINED, "closest", seed)
        if "comparison" in self.parts:
            for method in RIVALS_REEXPLAINED:
                if method in self.rivals:
                    yield Key(data, MODEL, REEXPLAINED, method, seed)

    def fingerprint(self, key: Key) -> str:
        """Return the fingerprint of the sources, versions and options that decide what is in a cell."""
        if key.task == GRID:
            return fingerprint(self.train_rows, package_versions(), digest([HERE / "paper" / "networks.py"]))
        used = sources(key.method if key.method in RIVALS else "")
        options = self.seeds, self.rows, self.timed_rows, self.ablated_rows, self.train_rows
        return fingerprint(*options, vars(self.limits), vars(self.slow_limits), package_versions(), used)


@cache
def sources(rival: str) -> str:
    """Return the digest of the code that runs and scores a rival, or with an empty name ours."""
    files = [HERE / name for name in HARNESS]
    files += [HERE / "paper" / f"{name}.py" for name in ("networks", "ours", "run", "reexplain", "ablation", "examples")]
    if rival:
        own_files = [HERE / "rivals" / f"{find(rival).module}.{kind}" for kind in ("py", "txt")]
        files += [path for path in own_files if path.exists()]
    return digest([*files, *package_sources(not rival)])
