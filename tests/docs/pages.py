"""Run the Python of a page of the documentation, with quick fits."""

import ast
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
QUICK_FITS = ast.parse(
    "from functools import partial; from fasterce.config import Config; FasterCE = partial(FasterCE, config=Config.fast())"
).body


def run_page(page: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run every block of a page in one namespace as it stands, but for the tuning constants of `FasterCE`, and return it."""
    names = {"__name__": Path(page).stem} if names is None else names
    for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL):
        body: list[ast.stmt] = []
        for statement in ast.parse(block).body:
            imported = isinstance(statement, ast.ImportFrom) and any(one.name == "FasterCE" for one in statement.names)
            body += [statement, *(QUICK_FITS if imported else [])]
        exec(compile(ast.fix_missing_locations(ast.Module(body, [])), page, "exec"), names)
    return names
