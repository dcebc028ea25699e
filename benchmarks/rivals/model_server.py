"""The black box behind a pipe, for a rival whose pinned packages cannot read our model file.

`python -m benchmarks.rivals.keeper FOLDER` runs in *our* interpreter: codes come in, probabilities and the seconds spent
inside the model go out, as plain numbers. `far.py` is the other end.
"""

import os
import sys
from pathlib import Path
from typing import BinaryIO

import numpy as np

from benchmarks.rivals import slopes
from benchmarks.rivals.far import ANSWER, QUESTION, exactly
from benchmarks.rivals.problem import Problem


def keep(folder: Path, questions: BinaryIO, answers: BinaryIO) -> None:
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
