"""A PostgreSQL server of our own in a temporary folder, on a unix socket, as a user other than root."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg


def find_program(name: str) -> str | None:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(found[-1]) if found else None)


class Postgres:
    """Started, stopped and stalled as the tests need it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
        self._user = self._other_user() if os.geteuid() == 0 else None
        self._run("initdb", "-D", str(self.folder / "data"), "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        self._server: subprocess.Popen[bytes] | None = None
        self._made = 0

    def _other_user(self) -> str:
        name = next(user for user in ("postgres", "nobody") if user in {entry.pw_name for entry in pwd.getpwall()})
        shutil.chown(self.folder, name)
        return name

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run([str(find_program(program)), *arguments], user=self._user, cwd="/", check=True, capture_output=True)

    def start(self) -> None:
        options = ["-c", "listen_addresses=", "-k", str(self.folder), "-c", "fsync=off"]
        command = [str(find_program("postgres")), "-D", str(self.folder / "data"), *options]
        log = (self.folder / "log").open("ab")
        self._server = subprocess.Popen(command, user=self._user, cwd="/", stdout=log, stderr=log)
        log.close()
        until = time.monotonic() + 20
        while True:
            try:
                self.ask("postgres", "SELECT 1")
                return
            except psycopg.OperationalError:
                assert time.monotonic() < until, (self.folder / "log").read_text()
                time.sleep(0.05)

    def stop(self) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGQUIT)  # at once, as a crash would
            self._server.wait(20)
            self._server = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def new_database(self) -> str:
        """The address of an empty database."""
        self._made += 1
        name = f"records{self._made}"
        self.ask("postgres", f"CREATE DATABASE {name}")
        return f"postgresql://tester@/{name}?host={self.folder}"

    def ask(self, database: str, sql: str) -> list[Any]:
        with psycopg.connect(host=str(self.folder), user="tester", dbname=database, autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def workers(self) -> list[int]:
        """The processes that serve the stores that are open."""
        return [
            row[0] for row in self.ask("postgres", "SELECT pid FROM pg_stat_activity WHERE application_name = 'fasterce'")
        ]
