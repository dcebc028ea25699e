"""`fasterce keys`: API keys of the service."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from fasterce.cli.console import say, show
from fasterce.cli.exits import guarded
from fasterce.serve import keys as known

keys = typer.Typer(name="keys", help="API keys of `fasterce serve`.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The file of keys, as given to `fasterce serve --keys`.")]


@keys.command()
@guarded
def new(
    file: File,
    name: Annotated[str, typer.Option(help="Owner of the key; shown in logs.")],
    scope: Annotated[list[str], typer.Option(help=f"One of {', '.join(known.SCOPES)} (repeat).")],
    expires: Annotated[str | None, typer.Option(help="Last day it is valid, such as 2030-12-31 (UTC).")] = None,
) -> None:
    """Create a key, shown once, and add its hash to the file."""
    token = known.new_key(file, name, scope, expires)
    typer.echo(token)
    say("This is the only time the key is shown; the file has its hash.")


@keys.command(name="list")
@guarded
def list_keys(file: File) -> None:
    """List the keys with their scopes and expiry dates."""
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
    name: Annotated[str, typer.Argument(help="Owner of the key; servers notice within a second.")],
    file: File,
) -> None:
    """Remove a key from the file."""
    known.revoke_key(file, name)
    say(f"The key of {name!r} is no longer valid.")
