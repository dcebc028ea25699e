"""Run the notebooks in examples/ and keep their output, or render them as pages of the site.

    python scripts/examples.py run [NAME ...]    execute the notebooks and write their output into them
    python scripts/examples.py check [NAME ...]  execute them and fail on an error; nothing is written, other output is named
    python scripts/examples.py render            write docs/examples/NAME.md from the notebooks

A cell prints text; the value of its last expression is shown as text. Jupyter opens and runs the same files.
"""

import ast
import io
import json
import re
import sys
import time
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NOTEBOOKS, PAGES = ROOT / "examples", ROOT / "docs" / "examples"
# Seconds of processor time a notebook may take, and characters of output a cell may show.
MOST_SECONDS, MOST_CHARACTERS = 120.0, 6_000

# Links between notebooks, which are links between pages on the site.
LINK = re.compile(r"\((\w+)\.ipynb\)")
TIMES = re.compile(r"[\d.,]+ m?s\b")


def notebooks(names: list[str]) -> list[Path]:
    """Return the notebooks of these names, all of them by default."""
    return [path for path in sorted(NOTEBOOKS.glob("*.ipynb")) if not names or path.stem in names]


def execute(notebook: dict[str, Any]) -> None:
    """Run the code cells in one namespace and put their output in place."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate((cell for cell in notebook["cells"] if cell["cell_type"] == "code"), start=1):
        cell["execution_count"], cell["outputs"] = number, output_of("".join(cell["source"]), names)


def output_of(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run one cell; return what it printed, with the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    shown = ast.Expression(last.value) if isinstance(last, ast.Expr) else None
    tree.body = tree.body[:-1] if shown is not None else tree.body
    printed = io.StringIO()
    with redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(tree, "cell", "exec"), names)
        value = None if shown is None else eval(compile(shown, "cell", "eval"), names)
        if value is not None:
            print(value)
    text = printed.getvalue()[:MOST_CHARACTERS]
    return [{"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}] if text else []


def shown(notebook: dict[str, Any]) -> list[str]:
    """Return the output of every code cell, without times."""
    cells = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    return [TIMES.sub("", "".join(text for output in cell["outputs"] for text in output["text"])) for cell in cells]


def run(names: list[str], write: bool) -> None:
    for path in notebooks(names):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        stored = shown(notebook)
        started = time.process_time()
        execute(notebook)
        seconds = time.process_time() - started
        other = "" if shown(notebook) == stored else ", prints other output than the notebook shows"
        print(f"{path.name}: {seconds:.0f} s{other}", flush=True)
        if seconds > MOST_SECONDS:
            sys.exit(f"{path.name} took {seconds:.0f} s; expected at most {MOST_SECONDS:.0f}")
        if write:
            path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def page(path: Path) -> str:
    """Return a notebook as Markdown."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        shown = "".join(text for output in cell["outputs"] for text in output["text"]).rstrip()
        parts += [f"```text\n{shown}\n```"] if shown else []
    parts = [LINK.sub(r"(\1.md)", part) for part in parts]
    where = f"This page is the notebook `examples/{path.name}` of the repository, with its output."
    return "\n\n".join([parts[0], where, *parts[1:]]) + "\n"


def render() -> None:
    PAGES.mkdir(exist_ok=True)
    for path in notebooks([]):
        (PAGES / f"{path.stem}.md").write_text(page(path), encoding="utf-8")


def main() -> None:
    command, *names = sys.argv[1:] or ["check"]
    if command == "render":
        render()
    else:
        run(names, write=command == "run")


if __name__ == "__main__":
    main()
