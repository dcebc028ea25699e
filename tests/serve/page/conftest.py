"""The real server as its own process, and Debian's chromium."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from fasterce.serve.keys import new_key
from tests.serve.page import worlds

CHROMIUM = which("chromium")
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
LISTENING = "Listening on "
DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    worlds.german(folder / "german")
    worlds.hostile(folder / "limit")
    return folder


@contextmanager
def served(made: Path, records: str, *more: object) -> Iterator[str]:
    """Where `fasterce serve` listens, while it runs."""
    arguments = [f"{name}={made / name / 'artifact'}" for name in ("german", "limit")]
    arguments += ["--title", "german=German credit", "--title", f"limit=Limit {worlds.HOSTILE}", "--id", worlds.WHO]
    for name in ("german", "limit"):
        arguments += ["--applicants", f"{name}={made / name / 'people.csv'}"]
    with serving([*arguments, "--records", f"sqlite:///{made / records}", *map(str, more)]) as address:
        yield address


@contextmanager
def serving(arguments: list[str]) -> Iterator[str]:
    """`fasterce serve` as a process; where it listens."""
    command = [sys.executable, "-m", "fasterce", "serve", *arguments, "--port", "0", "--log-level", "error"]
    key = {"FASTERCE_PSEUDONYM_KEY": "a key for tests, long enough to be one"}
    alone = {**os.environ, **key, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=alone) as process:
        try:
            assert process.stderr is not None
            yield next(line.split(LISTENING)[1].strip() for line in process.stderr if LISTENING in line)
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture(scope="session")
def url(made: Path) -> Iterator[str]:
    with served(made, "records.db") as listening:
        yield listening


@pytest.fixture
def with_keys(made: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Where a service with keys listens, and a key per scope."""
    tokens = {scope: new_key(made / "keys.json", scope, [scope]) for scope in ("explain",)}
    with served(made, "keyed.db", "--keys", made / "keys.json") as listening:
        yield listening, tokens


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Not for the whole session: while it is open an event loop runs in this thread, and `asyncio.run` elsewhere fails."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed; `make chromium` installs it where apt-get can.")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield opened
        opened.close()


@pytest.fixture
def new_page(browser: Any, url: str) -> Iterator[Callable[..., Any]]:
    """A page in a browser of its own; what its console complains about fails the test, but for answers that are errors."""
    contexts, complaints = [], []

    def make(size: Any = DESK, **options: Any) -> Any:
        context = browser.new_context(viewport=size, base_url=url, reduced_motion="reduce", **options)
        context.set_default_timeout(15_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if is_complaint(said) else None)
        return page

    yield make
    for context in contexts:
        context.close()
    assert complaints == []


def is_complaint(said: Any) -> bool:
    return said.type in ("error", "warning") and "Failed to load resource" not in said.text


@pytest.fixture
def page(new_page: Callable[..., Any]) -> Any:
    return new_page()


@pytest.fixture
def app_page(page: Any) -> Any:
    """The page with a refused person picked."""
    page.goto("/")
    pick(page)
    return page


def pick(page: Any, place: int = 1) -> None:
    page.locator(".row-button").nth(place).click()
    page.locator("#goal:not([hidden])").wait_for()
    page.locator("#alternatives h2").wait_for()
