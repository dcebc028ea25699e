"""The whole command line as one object, for tests and documentation."""

from fasterce.cli.commands import COMMANDS, make_app

app = make_app(COMMANDS)
