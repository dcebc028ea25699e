"""`fasterce keys`: who may ask the service, and for what."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from fasterce.cli.console import say, show
from fasterce.cli.exits import guarded
from fasterce.serve import keys as known

keys = typer.Typer(name="keys", help="Who may ask `fasterce serve`, and for what.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The file of keys, as given to `fasterce serve --keys`.")]


@keys.command()
@guarded
def new(
    file: File,
    name: Annotated[str, typer.Option(help="Whose key it is; shown in logs, so no secret.")],
    scope: Annotated[list[str], typer.Option(help=f"What for: {', '.join(known.SCOPES)}. Can be given several times.")],
    expires: Annotated[str | None, typer.Option(help="The last day it is good for, such as 2030-12-31 (UTC).")] = None,
) -> None:
    """Make a key, shown once, and add its hash to the file."""
    token = known.new_key(file, name, scope, expires)
    typer.echo(token)
    say("This is the only time the key is shown; the file has its hash.")


@keys.command(name="list")
@guarded
def list_keys(file: File) -> None:
    """Show whose keys there are, what for and until when."""
    found = known.read(file)
    table = Table("name", "scopes", "expires", "created")
    today = datetime.now(UTC).date()
    for key in found:
        until = f"{key.expires}{' (expired)' if key.expired(today) else ''}" if key.expires else "never"
        table.add_row(key.name, ", ".join(key.scopes), until, key.created)
    show(table)


@keys.command()
@guarded
def revoke(
    name: Annotated[str, typer.Argument(help="Whose key is taken away; servers notice within a second.")],
    file: File,
) -> None:
    """Take a key out of the file."""
    known.revoke_key(file, name)
    say(f"The key of {name!r} is no longer good.")
