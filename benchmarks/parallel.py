"""Several processes run the same command, and each claims the next model that no other has claimed."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep

ROOT = Path(__file__).parent.parent
POLL_SECONDS = 1.0


def claim(claims: Path, name: str) -> bool:
    """Claim a name; return False if another process has done so."""
    try:
        (claims / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def run(command: Sequence[str], processes: int, quiet: bool, on_poll: Callable[[], None]) -> None:
    """Run worker processes until all have ended, calling `on_poll` meanwhile.

    What a failing worker leaves undone is left to the caller.
    """
    with (
        TemporaryDirectory(prefix="fasterce-bench-") as claims,
        workers([*command, "--claims", claims], processes, quiet) as started,
    ):
        while any(worker.poll() is None for worker in started):
            sleep(POLL_SECONDS)
            on_poll()


@contextmanager
def workers(command: Sequence[str], count: int, quiet: bool) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start processes that are terminated when the block is left."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    started = [
        subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.DEVNULL,
            stderr=None if quiet else subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
        for _ in range(count)
    ]
    try:
        yield started
    finally:
        for worker in started:
            worker.terminate()
        for worker in started:
            worker.wait()
