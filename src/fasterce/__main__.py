"""`python -m fasterce` is the command line."""

from fasterce.cli import main

main()
