"""A virtual environment for each rival: its own packages pinned, and below them the very versions we use ourselves."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CONSTRAINTS = HERE.parent / "constraints.txt"


class CannotInstall(Exception):
    """The last line of what the installer said."""


def python_of(rival: str) -> str:
    """The rival's own interpreter, made if need be. A rival without requirements is ours and runs in our environment."""
    wanted = HERE / "rivals" / f"{rival}.txt"
    if not wanted.exists():
        return sys.executable
    folder = HERE / ".venvs" / rival
    python, stamp = folder / "bin" / "python", folder / ".installed"
    asked_for = "".join(path.read_text() for path in (wanted, HERE / "rivals" / "base.txt", CONSTRAINTS))
    if not stamp.exists() or stamp.read_text() != asked_for:
        _run(sys.executable, "-m", "venv", str(folder))
        pip = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        _run(*pip, "-c", str(CONSTRAINTS), "-r", str(HERE / "rivals" / "base.txt"))
        # --no-deps: NICE asks for pandas < 2 and NumPy < 2, DiCE for the xgboost package (we have xgboost-cpu) and lightgbm.
        _run(*pip, "--no-deps", "-r", str(wanted))
        stamp.write_text(asked_for)
    return str(python)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise CannotInstall(said[-1])
