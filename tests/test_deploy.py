"""The files of `deploy/`: lock files that fit what is declared, and configurations that agree with the service."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+?)( ; .*?)? \\$", re.MULTILINE)


def pinned(file: str) -> dict[str, str]:
    return {canonicalize_name(name): version for name, version, _ in PIN.findall((DEPLOY / file).read_text())}


def required(*extras: str) -> list[Requirement]:
    """What a set of extras needs directly, those it refers to included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = [Requirement(one) for one in project["dependencies"]]
    waiting = list(extras)
    while waiting:
        for one in map(Requirement, project["optional-dependencies"][waiting.pop()]):
            if one.name == project["name"]:
                waiting += one.extras
            else:
                found.append(one)
    return found


def test_the_lock_has_all_the_image_needs() -> None:
    """`make lock` renews it."""
    pins = pinned("requirements.lock")
    for one in required("serve", "postgres"):
        assert pins.get(canonicalize_name(one.name), "") in one.specifier, one


@pytest.mark.parametrize("file", ["requirements.lock", "requirements-models.lock", "requirements-build.lock"])
def test_a_lock_has_hashes_and_the_versions_that_were_tested(file: str) -> None:
    text = (DEPLOY / file).read_text()
    pins = pinned(file)
    assert len(pins) == len(re.findall(r"^[A-Za-z]", text, re.MULTILINE))
    for part in re.split(r"\n(?=[A-Za-z])", text.strip()):
        assert "--hash=sha256:" in part
    tested = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    known: dict[str, str] = {canonicalize_name(name): version for name, version in tested.items()}
    assert {name: known[name] for name in pins if name in known} == {name: pins[name] for name in pins if name in known}
    assert "torch" not in pins


def test_the_image_installs_nothing_else() -> None:
    installs = re.findall(r"pip (?:--python \S+ )?(?:install|wheel) [^&|;\\\n]*", (DEPLOY / "Dockerfile").read_text())
    assert len(installs) == 4
    assert all("--no-deps" in one and ("--require-hashes" in one or "fasterce-" in one or "wheel" in one) for one in installs)


def test_prometheus_finds_the_pods_and_has_a_key() -> None:
    deployment: dict[str, Any] = next(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    annotations = deployment["spec"]["template"]["metadata"]["annotations"]
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())["scrape_configs"]
    assert job["authorization"]["type"] == "Bearer"
    read = {label for one in job["relabel_configs"] for label in one["source_labels"]}
    for name in annotations:
        assert f"__meta_kubernetes_pod_annotation_{re.sub(r'[./]', '_', name)}" in read
