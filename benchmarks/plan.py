"""What is run: datasets, models, systems, tasks and seeds, how many rows, and the time limits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measuring import package_versions
from benchmarks.rivals.catalogue import ENTRIES, Entry
from benchmarks.runner import Limits
from benchmarks.setting import BUNDLED, DATASETS, FREE, FROZEN, MODELS, SEVERAL, TASKS, Task
from benchmarks.store import Key, digest, fingerprint

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "src" / "fasterce"
PAPER_MODEL = "mlp"
COMPARED_IN_THE_PAPER = {
    "dice-random": "DiCE",
    "certifai-genetic": "CERTIFAI",
    "latentcf-adam": "Latent-CF",
    "alibi-proto": "ICEGP",
}
HARNESS = ("runner.py", "threshold.py", "scoring.py", "setting.py", "rivals/problem.py", "rivals/run.py")


@dataclass(frozen=True)
class Plan:
    """The cells of a run. The paper's own experiments are in `benchmarks.paper`.

    tasks           of the paper's model (MLP) on the bundled datasets
    other_tasks     of the other models and datasets
    seeds           of the systems compared in the paper, with its model on the bundled datasets
    other_seeds     how many of these the other systems get; other models, datasets and tasks get one
    skip_costly     run costly systems for the task *free* of the paper's model only, and only the systems marked
                    `all_datasets` on datasets that are not bundled
    reference_rows  training rows that realism is measured against
    """

    datasets: tuple[str, ...] = DATASETS
    models: tuple[str, ...] = MODELS
    tasks: tuple[str, ...] = (FREE.name, FROZEN.name, SEVERAL.name)
    other_tasks: tuple[str, ...] = (FREE.name,)
    methods: tuple[Entry, ...] = ENTRIES
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    skip_costly: bool = True
    other_seeds: int = 1
    rows: int = 200
    batch: int = 200
    train_rows: int | None = None
    reference_rows: int = 4000
    limits: Limits = field(default_factory=Limits)
    work: Path = HERE / ".work"

    def groups(self) -> Iterator[tuple[int, str, str]]:
        """Yield (seed, dataset, model): each is one black box whose rows all systems explain."""
        for number, seed in enumerate(self.seeds):
            for data in self.datasets:
                for model in self.models:
                    if number == 0 or self._is_main(data, model):
                        yield seed, data, model

    def jobs(self, seed: int, data: str, model: str) -> Iterator[tuple[Key, Entry, Task]]:
        """Yield the cells of a group with their systems and tasks."""
        number = self.seeds.index(seed)
        for task in (TASKS[name] for name in (self.tasks if self._is_main(data, model) else self.other_tasks)):
            for entry in self.methods:
                if self._includes(entry, task, data, model) and number < self._n_seeds(entry, task):
                    yield Key(data, model, task.name, entry.name, seed), entry, task

    def _is_main(self, data: str, model: str) -> bool:
        return model == PAPER_MODEL and data in BUNDLED

    def _includes(self, entry: Entry, task: Task, data: str, model: str) -> bool:
        too_costly = entry.costly and (task is not FREE or model != PAPER_MODEL)
        skipped = self.skip_costly and (too_costly or not (entry.all_datasets or data in BUNDLED))
        return model in entry.models and supports(entry, task) and not skipped

    def _n_seeds(self, entry: Entry, task: Task) -> int:
        if task is not FREE:
            return 1
        return len(self.seeds) if entry.name in COMPARED_IN_THE_PAPER else self.other_seeds

    def fingerprint(self, entry: Entry) -> str:
        """Return the fingerprint of the sources, versions and options that decide what is in a cell of a system."""
        files = [HERE / "rivals" / f"{entry.module}.{kind}" for kind in ("py", "txt")]
        sources = [path for path in files if path.exists()] + [HERE / name for name in HARNESS]
        options = self.rows, self.batch, self.train_rows, self.reference_rows, vars(self.limits), package_versions()
        return fingerprint(*options, digest([*sources, *package_sources(entry.ours)]))


def supports(entry: Entry, task: Task) -> bool:
    """Return whether a system returns as many counterfactuals as the task requires; all systems run the task *frozen*."""
    return task.count == 1 or entry.ours or entry.module == "dice"


def package_sources(all_of_them: bool) -> list[Path]:
    return list(PACKAGE.rglob("*.py")) if all_of_them else [PACKAGE / "metrics.py"]
