"""Processes and what they have used."""

import os
import subprocess
import sys

import pytest
from benchmarks.processes import family, processor_seconds, resident_mb

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
BUSY = "sum(range(10_000_000)); print(flush=True); input()"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"


def test_a_grandchild_belongs_to_the_family_and_its_work_is_counted() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        own, *others = family(os.getpid())
        grandchild = family(parent.pid)[1]
        assert own == os.getpid()
        assert {parent.pid, grandchild} <= set(others)
        assert processor_seconds(grandchild) > 0.05
        assert resident_mb(grandchild) > 1
        parent.communicate(b"\n")
    assert processor_seconds(grandchild) == resident_mb(grandchild) == 0.0
