"""Install the package with some of its extras into fresh environments and write sizes and times to docs/installation.md.

Sizes are those on disk without pip, times those of `pip install` with an empty environment and pip's cache of downloads, so
that they depend little on the network.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "installation.md"
EXTRAS = {"": "`fasterce`", "serve": "`fasterce[serve]`", "cli": "`fasterce[cli]`", "all": "`fasterce[all]`"}
START, END = "<!-- sizes -->", "<!-- /sizes -->"


def pip(python: Path | str, *arguments: object) -> None:
    subprocess.run([str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *map(str, arguments)], check=True)


def megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink()) / 1e6


def measure(wheel: Path, extra: str, folder: Path) -> tuple[float, int, float]:
    """Return the size in MB, the number of packages and the seconds of an installation with pip's cache filled."""
    target = f"{wheel}[{extra}]" if extra else str(wheel)
    for attempt in ("fill the cache", "measure"):
        place = folder / f"{extra or 'base'}-{attempt.split()[0]}"
        venv.create(place, with_pip=True)
        (packages,) = place.glob("lib/python*/site-packages")
        before, known = megabytes(packages), len(list(packages.glob("*.dist-info")))
        started = perf_counter()
        pip(place / "bin" / "python", "install", target)
        seconds = perf_counter() - started
        found = megabytes(packages) - before, len(list(packages.glob("*.dist-info"))) - known, seconds
        shutil.rmtree(place)
    return found


def main() -> None:
    lines = ["| installed | packages | MB on disk | seconds |", "| --- | --- | --- | --- |"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", folder, ROOT)
        (wheel,) = folder.glob("*.whl")
        for extra, label in EXTRAS.items():
            size, packages, seconds = measure(wheel, extra, folder)
            lines.append(f"| {label} | {packages} | {size:,.0f} | {seconds:.0f} |")
            print(lines[-1], flush=True)
        lines += ["", f"Python {platform.python_version()}, {platform.system()} {platform.machine()}; the wheel itself has "]
        lines[-1] += f"{wheel.stat().st_size / 1e6:.1f} MB. Downloads were in pip's cache; load {os.getloadavg()[0]:.1f}."
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{START}\n\n" + "\n".join(lines) + f"\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
