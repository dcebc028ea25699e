"""The black box behind a pipe, for a rival whose pinned packages cannot read our model file.

`python -m benchmarks.rivals.keeper FOLDER` runs in *our* interpreter: codes come in, probabilities and the seconds spent
inside the model go out, as plain numbers. `Far` is the other end.
"""

import os
import struct
import subprocess
import sys
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


def keep(folder: Path, questions: BinaryIO, answers: BinaryIO) -> None:
    from benchmarks.rivals import slopes
    from benchmarks.rivals.problem import Problem

    problem = Problem(folder)
    slopes.save(problem)
    while header := questions.read(QUESTION.size):
        (rows,) = QUESTION.unpack(header)
        codes = np.frombuffer(exactly(questions, 8 * rows * len(problem.columns)), dtype="<f8")
        before = problem.clock.model
        probabilities = problem.ask(codes.reshape(rows, -1))
        answers.write(ANSWER.pack(probabilities.shape[1], problem.clock.model - before))
        answers.write(np.ascontiguousarray(probabilities, dtype="<f8").tobytes())
        answers.flush()


if __name__ == "__main__":
    real_stdout = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever the model prints must not end up among the numbers
    keep(Path(sys.argv[1]), sys.stdin.buffer, real_stdout)
