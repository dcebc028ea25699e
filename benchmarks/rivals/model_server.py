"""Serve a model through a pipe, for a rival whose pinned packages cannot read our model file.

`python -m benchmarks.rivals.model_server FOLDER` runs in *our* interpreter. It reads codes and writes probabilities and the
seconds spent in the model, as plain numbers. `remote_model.py` is the client.
"""

import os
import sys
from pathlib import Path
from typing import BinaryIO

import numpy as np

from benchmarks.rivals import gradients
from benchmarks.rivals.problem import Problem
from benchmarks.rivals.remote_model import REQUEST, RESPONSE, read_exactly


def serve(folder: Path, requests: BinaryIO, responses: BinaryIO) -> None:
    problem = Problem(folder)
    gradients.save(problem)
    while header := requests.read(REQUEST.size):
        (rows,) = REQUEST.unpack(header)
        codes = np.frombuffer(read_exactly(requests, 8 * rows * len(problem.columns)), dtype="<f8")
        before = problem.usage.model_seconds
        probabilities = problem.predict_proba(codes.reshape(rows, -1))
        responses.write(RESPONSE.pack(probabilities.shape[1], problem.usage.model_seconds - before))
        responses.write(np.ascontiguousarray(probabilities, dtype="<f8").tobytes())
        responses.flush()


if __name__ == "__main__":
    real_stdout = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever the model prints must not end up among the numbers
    serve(Path(sys.argv[1]), sys.stdin.buffer, real_stdout)
