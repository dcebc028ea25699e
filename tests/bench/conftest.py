"""`benchmarks` is not part of the package: put its parent folder on the path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

collect_ignore = ["broken_at_import.py"]
