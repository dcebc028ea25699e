"""The pictures of the documentation, and what its examples print: `make pictures` after anything that changes answers."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl

sys.path.insert(0, str(Path(__file__).parent))

import page_examples
from fasterce.fairness import recourse_gap
from fasterce.viz import plots

IMAGES = page_examples.DOCS / "images"
PERSON = 0


def main() -> None:
    """Run the pages in an empty folder, then draw with the explainer they fitted."""
    home = Path.cwd()
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        page_examples.refresh(page_examples.FIRST, names)
        for page in page_examples.FOLLOWING:
            page_examples.refresh(page, dict(names))
        for page in page_examples.ALONE:
            page_examples.refresh(page, {})
        page_examples.refresh(page_examples.COMMANDS, {})
        os.chdir(home)
    for name, figure in figures(names["explainer"], names["refused"]).items():
        save(figure, IMAGES / f"{name}.svg")


def figures(explainer: Any, refused: Any) -> dict[str, Any]:
    """One figure of each kind, of people German Credit's model refuses."""
    person = refused.iloc[[PERSON]]
    everyone = explainer.explain(refused)
    return {
        "walk": plots.walk(explainer.walk(person)),
        "dumbbell": plots.dumbbell(explainer.explain(person, "all")),
        "summary": plots.summary(everyone),
        "effort": plots.effort(everyone),
        "recourse": recourse_gap(everyone, "personal_status_sex").plot(),
    }


def save(figure: Any, path: Path) -> None:
    """Without a date and with names that do not change, so that the same figure is the same file."""
    with mpl.rc_context({"svg.hashsalt": "fasterce", "svg.fonttype": "path"}):
        figure.savefig(path, metadata={"Date": None}, dpi=160)
    print(f"{path.relative_to(page_examples.DOCS.parent)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
