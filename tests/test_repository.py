"""The files at the root and in .github agree with each other, and with the Makefile and pyproject.toml."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fasterce"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
FROM_MATRIX = "${{"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def jobs(workflow: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(workflow.read_text())["jobs"])


def targets_called(job: dict[str, Any]) -> set[str]:
    """What the steps of a job pass to make, the values of its matrix filled in."""
    commands = [step["run"] for step in job.get("steps", ()) if "run" in step]
    called = {target for command in commands for target in re.findall(r"^make (\S+)", command, re.MULTILINE)}
    if FROM_MATRIX not in called:
        return called
    matrix = job["strategy"]["matrix"]
    return (called - {FROM_MATRIX}) | set(matrix.get("target", [entry["target"] for entry in matrix.get("include", ())]))


def test_the_changelog_begins_with_the_version_of_the_project() -> None:
    versions = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", text("CHANGELOG.md"), re.MULTILINE)
    assert versions[0] == PROJECT["version"]
    assert versions == sorted(versions, key=lambda version: [int(part) for part in version.split(".")], reverse=True)


def test_the_version_is_the_same_everywhere() -> None:
    citation = yaml.safe_load(text("CITATION.cff"))
    assert citation["version"] == PROJECT["version"]
    assert f"[{PROJECT['version']}] - {citation['date-released']}" in text("CHANGELOG.md")
    assert citation["license"] == PROJECT["license"]
    assert citation["preferred-citation"]["url"] == PROJECT["urls"]["Paper"]
    assert set(re.findall(r"image: fasterce:(\S+)", text("deploy/kubernetes.yaml"))) == {PROJECT["version"]}


def test_ci_runs_every_declared_python() -> None:
    declared = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)]
    assert jobs(ROOT / ".github" / "workflows" / "ci.yml")["test"]["strategy"]["matrix"]["python"] == declared
    assert PROJECT["requires-python"] == f">={declared[0]}"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_that_exist(workflow: Path) -> None:
    called = set().union(*(targets_called(job) for job in jobs(workflow).values()))
    assert not any("$" in target for target in called)
    assert called <= set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    assert called or workflow.stem == "release"


def test_every_target_is_described_phony_and_listed() -> None:
    targets = re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE)
    listed = subprocess.run(["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == targets
    database = subprocess.run(["make", "-pnq", "help"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    (phony,) = re.findall(r"^\.PHONY: (.*)$", database, re.MULTILINE)
    assert phony.split() == targets


def test_make_commands_in_pages_exist() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "README.md"]
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    for page in pages:
        named = set(re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
        assert named <= targets, page


def test_hooks_run_what_make_runs() -> None:
    """Apart from fixing instead of checking, and from the order."""
    hooks = [hook["entry"] for repo in yaml.safe_load(text(".pre-commit-config.yaml"))["repos"] for hook in repo["hooks"]]
    for entry in hooks:
        command = entry.removesuffix(" --fix").replace(".venv/bin/", "$(BIN)/")
        assert f"\t{command}" in MAKEFILE, entry


def test_contributing_names_files_that_exist() -> None:
    named = set(re.findall(r"`([\w./-]+(?:\.py|\.toml|\.md|\.yml|\.yaml|\.cff|/))`", text("CONTRIBUTING.md")))
    examples = {"benchmarks/rivals/NAME.py"}
    workflows = ROOT / ".github" / "workflows"
    assert len(named) > 20
    assert [
        name for name in sorted(named - examples) if not any((folder / name).exists() for folder in (SOURCE, ROOT, workflows))
    ] == []


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", "ARCHITECTURE.md", "CHANGELOG.md"]
)
def test_links_of_pages_at_the_root_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)", text(page))
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []
