"""The command line: `fasterce`, or `python -m fasterce`."""

import sys


def main() -> None:
    """Run the command line; without typer say what to install."""
    try:
        import typer  # noqa: F401, PLC0415 - an extra
    except ImportError:
        sys.stderr.write(
            'Error: The command line needs typer, which is not installed; expected: pip install "fasterce[cli]".\n'
        )
        raise SystemExit(7) from None
    from fasterce.cli.commands import make_app, needed  # noqa: PLC0415

    make_app(needed(sys.argv[1:]))()
