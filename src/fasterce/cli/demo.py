"""`fasterce demo`: the main job on bundled data."""

from pathlib import Path
from typing import Annotated

import typer

from fasterce.cli.exits import guarded


@guarded
def demo(
    page: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path("demo.html"),
) -> None:
    """Train a black box on the bundled Adult data, explain a few people, write demo.html."""
    from fasterce.demo import main  # noqa: PLC0415 - brings in scikit-learn's training side

    main(page)
