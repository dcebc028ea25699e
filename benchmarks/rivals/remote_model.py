"""The client of a model in another process (`model_server.py`): sends codes through a pipe and receives probabilities."""

import struct
import subprocess
from pathlib import Path
from typing import BinaryIO

import numpy as np

REQUEST = struct.Struct("<q")
RESPONSE = struct.Struct("<qd")


class RemoteModel:
    def __init__(self, folder: Path, python: str, width: int) -> None:
        command = [python, "-m", "benchmarks.rivals.model_server", str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.width = width

    def predict_proba(self, codes: np.ndarray) -> tuple[np.ndarray, float]:
        """Return probabilities, one line per row of codes, and the seconds the model took."""
        sent = np.ascontiguousarray(codes, dtype="<f8").reshape(-1, self.width)
        self.process.stdin.write(REQUEST.pack(len(sent)) + sent.tobytes())
        self.process.stdin.flush()
        classes, seconds = RESPONSE.unpack(read_exactly(self.process.stdout, RESPONSE.size))
        received = read_exactly(self.process.stdout, 8 * classes * len(sent))
        return np.frombuffer(received, dtype="<f8").reshape(len(sent), classes), seconds


def read_exactly(stream: BinaryIO, size: int) -> bytes:
    read = stream.read(size)
    if len(read) != size:
        raise RuntimeError("the process that serves the model ended")
    return read
