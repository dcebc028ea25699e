"""Worker processes: what the fork server imports in advance. The rest is tested with the service and with batch runs."""

import subprocess
import sys

CODE = """
import sys
from fasterce.io.processes import _postpone
_postpone("scipy.stats")
import sklearn.base
import scipy
print("scipy.stats.distributions" in sys.modules)
from scipy.stats import norm
import scipy.stats.qmc
print(norm.cdf(0.0), scipy.stats is sys.modules["scipy.stats"], scipy.stats.rankdata([3, 1]).tolist())
"""


def test_a_postponed_module_is_imported_when_it_is_used() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False", "0.5 True [2.0, 1.0]"]
