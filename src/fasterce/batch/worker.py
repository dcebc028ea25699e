"""A worker process of the local engine: `python -m fasterce.batch.worker FD`, told what to do through a pipe."""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

DEATH_OF_PARENT = 1


def main(descriptor: int, parent: int) -> None:
    """Until the pipe is closed: a shard in; how far it is, and that it is done or what went wrong, out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with(parent)
    pipe = Connection(descriptor)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        sys.path[:] = pipe.recv()
        worker = _start(pipe)
        while worker is not None:
            _do(worker, pipe.recv(), pipe)


def _start(pipe: Connection) -> Any:
    """The explainer, loaded; None where that fails, after saying why."""
    try:
        from fasterce.batch.shard import Worker, on_one_thread  # noqa: PLC0415 - after the path and the threads were set

        on_one_thread()
        worker = Worker(pipe.recv())
    except Exception as error:
        pipe.send(("unusable", described(error)))
        return None
    pipe.send(("ready", None))
    return worker


def _do(worker: Any, shard: Any, pipe: Connection) -> None:
    try:
        about = worker.do(shard, lambda tally: pipe.send(("rows", tally)))
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:
        pipe.send(("failed", described(error)))
    else:
        pipe.send(("done", about))


def described(error: Exception) -> tuple[str, str]:
    """The kind of an error and one sentence, which any process can read."""
    from fasterce.errors import FasterCEError  # noqa: PLC0415

    said = " ".join(str(error).split())
    kind = type(error).__name__
    return kind, said if isinstance(error, FasterCEError) else f"{kind}: {said[:300]}"


def _end_with(parent: int) -> None:
    """However the process that started us ends, we end too: a model that hangs must not be left behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DEATH_OF_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
