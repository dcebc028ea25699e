"""Pictures of the page for the documentation: `python scripts/page_pictures.py http://127.0.0.1:8000` (a server with people
to pick, such as `make demo-serve`), into docs/pictures/."""

import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from shutil import which
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
CHROMIUM, ARGUMENTS = which("chromium"), ["--no-sandbox", "--disable-gpu"]
DESK, PHONE = {"width": 1440, "height": 1080}, {"width": 390, "height": 844}
SETTLED, COLOURS = 1500, 128


def main(url: str) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for name, size, scheme, act in (
            ("page", DESK, "light", decision),
            ("page-dark", DESK, "dark", limits),
            ("page-what-if", DESK, "light", what_if),
            ("page-advice", DESK, "light", advice),
            ("page-letter", DESK, "light", letter),
            ("page-people", DESK, "light", lambda page: None),
            ("page-phone", PHONE, "light", decision),
            ("page-phone-dark", PHONE, "dark", phone_limits),
        ):
            draw(browser, url, name, size, scheme, act)
        browser.close()


def draw(browser: Any, url: str, name: str, size: Any, scheme: str, act: Callable[[Page], None]) -> None:
    page = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce").new_page()
    page.goto(url)
    page.locator(".row-button").first.wait_for()
    act(page)
    page.mouse.move(0, 0)
    page.wait_for_timeout(SETTLED)
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    picture.save(FOLDER / f"{name}.png", optimize=True)
    print(name, (FOLDER / f"{name}.png").stat().st_size // 1000, "kB")
    page.context.close()


def decision(page: Page) -> None:
    page.locator(".row-button").nth(1).click()
    page.locator(".card").first.wait_for()


def open_limits(page: Page) -> None:
    decision(page)
    page.locator("#tab-limits").click()


def limits(page: Page) -> None:
    open_limits(page)
    page.locator("#panel-limits .lock").nth(2).click()
    page.locator(".choices summary").first.click()
    page.locator(".thumb-highest").first.focus()
    for _ in range(3):
        page.keyboard.press("PageDown")


def what_if(page: Page) -> None:
    decision(page)
    page.get_by_role("button", name="Try this: alternative A").click()
    page.locator("#outcome-whatif .gauge").wait_for()
    page.evaluate("window.scrollTo(0, 0)")


def advice(page: Page) -> None:
    open_limits(page)
    page.locator("#lock-all").click()
    page.locator(".advice-side").first.wait_for(timeout=90_000)
    page.locator("#panel-limits").evaluate("panel => panel.scrollTo(0, 0)")
    page.locator(".advice .waiting").wait_for(state="detached", timeout=90_000)


def letter(page: Page) -> None:
    decision(page)
    page.locator("#keep").click()
    page.locator("#decision-number").fill("2026-118")
    page.locator("#keep-now").click()
    page.locator(".sheet .letter").wait_for()
    page.get_by_label("Sender").fill("A Bank\nBank Street 1, 10115 Berlin")
    page.get_by_label("Whom to ask").fill("Ms Doe, telephone 030 123456")


def phone_limits(page: Page) -> None:
    decision(page)
    page.locator("#fold").click()
    page.locator("#tab-limits").click()
    page.locator("#panel-limits .lock").nth(1).click()
    page.locator(".choices summary").first.click()


if __name__ == "__main__":
    main(sys.argv[1])
