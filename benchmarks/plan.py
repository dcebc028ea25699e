"""What is run: which data, black boxes, systems, questions and seeds, how many rows, and what time everybody has."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.asking import Limits
from benchmarks.measuring import package_versions
from benchmarks.rivals.catalogue import ENTRIES, Entry
from benchmarks.setting import BOXES, BUNDLED, DATASETS, FREE, FROZEN, QUESTIONS, SEVERAL, Question
from benchmarks.store import Key, digest, fingerprint

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "src" / "fasterce"
PAPERS_BOX = "mlp"
COMPARED_IN_THE_PAPER = {
    "dice-random": "DiCE",
    "certifai-genetic": "CERTIFAI",
    "latentcf-adam": "Latent-CF",
    "alibi-proto": "ICEGP",
}
HARNESS = ("asking.py", "at_least.py", "scoring.py", "setting.py", "rivals/problem.py", "rivals/run.py")


@dataclass(frozen=True)
class Plan:
    """`seeds` are for the paper's black box and the systems it compares, on the bundled datasets; the others have the first
    `few`, and other black boxes, datasets and questions the first one. `elsewhere`: the questions about other black boxes.
    `sparing`: costly systems are asked the paper's question only, and only systems that are asked everywhere are asked about
    datasets that are not bundled. `crowd`: training rows realism is measured against. The paper's own experiments are
    `benchmarks.paper`."""

    datasets: tuple[str, ...] = DATASETS
    boxes: tuple[str, ...] = BOXES
    questions: tuple[str, ...] = (FREE.name, FROZEN.name, SEVERAL.name)
    elsewhere: tuple[str, ...] = (FREE.name,)
    methods: tuple[Entry, ...] = ENTRIES
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    sparing: bool = True
    few: int = 1
    rows: int = 200
    batch: int = 200
    train_rows: int | None = None
    crowd: int = 4000
    limits: Limits = field(default_factory=Limits)
    work: Path = HERE / ".work"

    def groups(self) -> Iterator[tuple[int, str, str]]:
        """(seed, dataset, box): one black box, one set of rows, everybody side by side."""
        for place, seed in enumerate(self.seeds):
            for data in self.datasets:
                for box in self.boxes:
                    if place == 0 or (box == PAPERS_BOX and data in BUNDLED):
                        yield seed, data, box

    def jobs(self, seed: int, data: str, box: str) -> Iterator[tuple[Key, Entry, Question]]:
        place = self.seeds.index(seed)
        everything = box == PAPERS_BOX and data in BUNDLED
        for question in (QUESTIONS[name] for name in (self.questions if everything else self.elsewhere)):
            for entry in self.methods:
                if self.asks(entry, question, data, box) and place < self.runs(entry, question):
                    yield Key(data, box, question.name, entry.name, seed), entry, question

    def asks(self, entry: Entry, question: Question, data: str, box: str) -> bool:
        costs_too_much = entry.costly and (question is not FREE or box != PAPERS_BOX)
        spared = self.sparing and (costs_too_much or not (entry.everywhere or data in BUNDLED))
        return box in entry.boxes and fits(entry, question) and not spared

    def runs(self, entry: Entry, question: Question) -> int:
        if question is not FREE:
            return 1
        return len(self.seeds) if entry.name in COMPARED_IN_THE_PAPER else self.few

    def made_by(self, entry: Entry) -> str:
        """Of the plan what changes an answer or its score, the code that asks and scores, and the system's own."""
        own = [HERE / "rivals" / f"{entry.module}.{kind}" for kind in ("py", "txt")]
        sources = [path for path in own if path.exists()] + [HERE / name for name in HARNESS]
        return fingerprint(*self._circumstances(), digest([*sources, *package_sources(entry.ours)]))

    def _circumstances(self) -> tuple[object, ...]:
        return self.rows, self.batch, self.train_rows, self.crowd, vars(self.limits), package_versions()


def fits(entry: Entry, question: Question) -> bool:
    """Several answers are asked of systems that give them; with columns frozen everybody is asked, able or not."""
    return question.count == 1 or getattr(entry, "several", entry.ours or entry.module == "dice")


def package_sources(all_of_them: bool) -> list[Path]:
    return list(PACKAGE.rglob("*.py")) if all_of_them else [PACKAGE / "metrics.py"]
