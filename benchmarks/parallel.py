"""Black boxes side by side: some processes run the same command, and each takes the next black box nobody has taken."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep

ROOT = Path(__file__).parent.parent
GLANCE = 1.0


def take(claims: Path, name: str) -> bool:
    """Whether it was still to be had; from now on it is not."""
    try:
        (claims / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def run(command: Sequence[str], processes: int, quiet: bool, tell: Callable[[], None]) -> None:
    """Until all have ended. One that fails leaves its black boxes to whoever started it; `tell` is called meanwhile."""
    with (
        TemporaryDirectory(prefix="fasterce-bench-") as claims,
        helpers([*command, "--claims", claims], processes, quiet) as started,
    ):
        while any(helper.poll() is None for helper in started):
            sleep(GLANCE)
            tell()


@contextmanager
def helpers(command: Sequence[str], count: int, quiet: bool) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that end with the block, however it ends."""
    said = None if quiet else subprocess.DEVNULL
    found = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    started = [
        subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.DEVNULL,
            stderr=said,
            env={**os.environ, "PYTHONPATH": found},
        )
        for _ in range(count)
    ]
    try:
        yield started
    finally:
        for helper in started:
            helper.terminate()
        for helper in started:
            helper.wait()
