"""Our end of the pipe to a black box kept by another process (`keeper.py`): codes go, probabilities come back."""

import struct
import subprocess
from pathlib import Path
from typing import BinaryIO

import numpy as np

QUESTION = struct.Struct("<q")
ANSWER = struct.Struct("<qd")


class Far:
    def __init__(self, folder: Path, python: str, width: int) -> None:
        command = [python, "-m", "benchmarks.rivals.keeper", str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.width = width

    def ask(self, codes: np.ndarray) -> tuple[np.ndarray, float]:
        """Probabilities, one line a row of codes, and the seconds the model took."""
        sent = np.ascontiguousarray(codes, dtype="<f8").reshape(-1, self.width)
        self.process.stdin.write(QUESTION.pack(len(sent)) + sent.tobytes())
        self.process.stdin.flush()
        classes, seconds = ANSWER.unpack(exactly(self.process.stdout, ANSWER.size))
        answered = exactly(self.process.stdout, 8 * classes * len(sent))
        return np.frombuffer(answered, dtype="<f8").reshape(len(sent), classes), seconds


def exactly(stream: BinaryIO, size: int) -> bytes:
    read = stream.read(size)
    if len(read) != size:
        raise RuntimeError("the process that keeps the black box ended")
    return read
