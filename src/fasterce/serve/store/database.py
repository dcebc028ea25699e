"""A database as the store needs it, whichever it is."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine


@dataclass(frozen=True)
class Database:
    """
    place : its address for a sentence, without a password.
    writer, reader : one connection each; a transaction of the writer holds the right to write from its beginning.
    alone : a transaction of the writer that keeps out whoever else would bring the database up to date, and waits for them.
    look : before work: is the database still where it was?
    abort : ends what a driver's connection is waiting for, called by another thread.
    after_erasing : what else has to happen until nothing of deleted records is left in the files.
    """

    place: str
    writer: Engine
    reader: Engine
    alone: Callable[[], AbstractContextManager[Connection]]
    look: Callable[[], None]
    abort: Callable[[Any], None]
    after_erasing: Callable[[], None]

    def let_go(self) -> None:
        """Close all connections; new ones are made when they are needed."""
        self.writer.dispose()
        self.reader.dispose()
