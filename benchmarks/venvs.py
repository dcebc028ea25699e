"""A virtual environment for each rival: its own packages pinned, and below them the very versions we use ourselves.

A requirements file that begins with `# own pins` is a whole environment, listed package by package, for a rival that
cannot live with our versions; it is told where our interpreter is, which then keeps the black box (`rivals/keeper.py`).
`# python 3.11` asks for that interpreter.
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
    """The last line of what the installer said; kept in the environment's folder as REASON."""


def python_of(rival: str) -> str:
    """The rival's own interpreter, made if need be. A rival without requirements is ours and runs in our environment."""
    wanted = HERE / "rivals" / f"{rival}.txt"
    if not wanted.exists():
        return sys.executable
    folder = HERE / ".venvs" / rival
    with _alone(folder):
        return _python_in(folder, wanted)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time makes an environment; the others wait and find it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _python_in(folder: Path, wanted: Path) -> str:
    stamp = folder / ".installed"
    asked_for = _asked_for(wanted)
    if not stamp.exists() or stamp.read_text() != asked_for:
        started = perf_counter()
        try:
            _make(folder, wanted)
        except CannotInstall as error:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "REASON").write_text(f"{error}\n")
            raise
        (folder / "REASON").unlink(missing_ok=True)
        (folder / "SECONDS").write_text(f"{perf_counter() - started:.0f}\n")
        stamp.write_text(asked_for)
    if _own_pins(asked_for):
        (folder / ".keeper").write_text(sys.executable)
    return str(folder / "bin" / "python")


def _asked_for(wanted: Path) -> str:
    listed = wanted.read_text()
    return listed if _own_pins(listed) else listed + (HERE / "rivals" / "base.txt").read_text() + CONSTRAINTS.read_text()


def _own_pins(listed: str) -> bool:
    return listed.startswith(OWN_PINS)


def _make(folder: Path, wanted: Path) -> None:
    listed = wanted.read_text()
    _run(_interpreter(listed), "-m", "venv", "--clear", str(folder))
    pip = (str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    if not _own_pins(listed):
        _run(*pip, "-c", str(CONSTRAINTS), "-r", str(HERE / "rivals" / "base.txt"))
    # --no-deps: NICE asks for pandas < 2 and NumPy < 2, DiCE for the xgboost package (we have xgboost-cpu) and lightgbm,
    # alibi for spaCy and transformers, which its tabular counterfactuals never use.
    _run(*pip, "--no-deps", "-r", str(wanted))


def _interpreter(listed: str) -> str:
    asked = PYTHON.search(listed)
    if not asked or asked[1] == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    found = shutil.which(f"python{asked[1]}")
    if found is None:
        raise CannotInstall(f"needs Python {asked[1]}, which is not on this machine")
    return found


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise CannotInstall(said[-1])
