"""A virtual environment for each rival: its pinned packages, and below them the same versions as in our own environment.

A requirements file that begins with `# own pins` lists a complete environment, for a rival that does not work with our
versions. Its environment gets the path of our interpreter, which serves the model (`rivals/model_server.py`).
`# python 3.11` selects that version of Python.
"""

import fcntl
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

HERE = Path(__file__).parent
CONSTRAINTS = HERE.parent / "constraints.txt"
OWN_PINS = "# own pins"
PYTHON = re.compile(r"^# python (\d+\.\d+)$", re.MULTILINE)


class CannotInstall(Exception):
    """The last line of the installer's output, kept as REASON in the folder of the environment."""


def python_of(rival: str) -> str:
    """Return a rival's interpreter, creating its environment if needed; ours for a rival without requirements."""
    requirements = HERE / "rivals" / f"{rival}.txt"
    if not requirements.exists():
        return sys.executable
    folder = HERE / ".venvs" / rival
    with _locked(folder):
        return _python_in(folder, requirements)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Only one process at a time creates an environment; the others wait for it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _python_in(folder: Path, requirements: Path) -> str:
    stamp = folder / ".installed"
    listed = _listed(requirements)
    if not stamp.exists() or stamp.read_text() != listed:
        started = perf_counter()
        try:
            _make(folder, requirements)
        except CannotInstall as error:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "REASON").write_text(f"{error}\n")
            raise
        (folder / "REASON").unlink(missing_ok=True)
        (folder / "SECONDS").write_text(f"{perf_counter() - started:.0f}\n")
        stamp.write_text(listed)
    if _own_pins(listed):
        (folder / ".project_python").write_text(sys.executable)
    return str(folder / "bin" / "python")


def _listed(requirements: Path) -> str:
    """Return the requirements together with our own constraints, unless it has pins of its own."""
    listed = requirements.read_text()
    return listed if _own_pins(listed) else listed + (HERE / "rivals" / "base.txt").read_text() + CONSTRAINTS.read_text()


def _own_pins(listed: str) -> bool:
    return listed.startswith(OWN_PINS)


def _make(folder: Path, requirements: Path) -> None:
    listed = requirements.read_text()
    _run(_interpreter(listed), "-m", "venv", "--clear", str(folder))
    pip = (str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    if not _own_pins(listed):
        _run(*pip, "-c", str(CONSTRAINTS), "-r", str(HERE / "rivals" / "base.txt"))
    # --no-deps: NICE requires pandas < 2 and NumPy < 2, DiCE the xgboost package (we have xgboost-cpu) and lightgbm,
    # alibi for spaCy and transformers, which its tabular counterfactuals never use.
    _run(*pip, "--no-deps", "-r", str(requirements))


def _interpreter(listed: str) -> str:
    version = PYTHON.search(listed)
    if not version or version[1] == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    found = shutil.which(f"python{version[1]}")
    if found is None:
        raise CannotInstall(f"needs Python {version[1]}, which is not on this machine")
    return found


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        output = [line for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise CannotInstall(output[-1])
