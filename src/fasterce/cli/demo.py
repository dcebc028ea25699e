"""`fasterce demo`: the main job on bundled data."""

from pathlib import Path
from typing import Annotated

import typer

from fasterce.cli.exits import guarded


@guarded
def demo(
    page: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path("demo.html"),
) -> None:
    """Train a model on the bundled Adult data, explain a few rows, write demo.html."""
    from fasterce.cli.adult_demo import main  # noqa: PLC0415 - brings in scikit-learn's training side

    main(page)
