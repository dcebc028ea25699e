"""The command line: `fasterce`, or `python -m fasterce`."""

import sys


def main() -> None:
    """Run the command line; without typer, name the extra to install."""
    try:
        import typer  # noqa: F401, PLC0415 - an extra
    except ImportError:
        from fasterce.errors import MissingExtraError  # noqa: PLC0415

        sys.stderr.write(f"Error: {MissingExtraError('typer', 'cli', 'The command line')}\n")
        raise SystemExit(7) from None
    from fasterce.cli.commands import make_app, required_commands  # noqa: PLC0415

    make_app(required_commands(sys.argv[1:]))()
