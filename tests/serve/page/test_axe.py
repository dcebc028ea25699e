"""axe-core finds nothing wrong in any state of the page, in both themes; it is injected past the page's own policy."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.serve.page.conftest import DESK, PHONE, pick
from tests.serve.page.flows import already, answer, keep, limits, without_declaration

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
RUN = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map(
    one => [one.id, ...one.nodes.slice(0, 2).map(node => `${node.target.join(" ")} ${node.failureSummary}`)].join(" | "))"""


def violations(page: Page) -> list[str]:
    page.evaluate(AXE)
    found: list[str] = page.evaluate(RUN)
    return found


def people(page: Page) -> None:
    page.locator(".row-button").first.wait_for()


def decision(page: Page) -> None:
    pick(page)


def searching(page: Page) -> None:
    pick(page)
    page.locator("#find-person").click()
    page.locator(".options [role=option]").first.wait_for()


def help_and_edits(page: Page) -> None:
    pick(page)
    page.locator("#panel-details .help summary").first.click()
    page.locator("#panel-details .field[data-feature=duration] input.number").fill("900")
    page.locator("#panel-details .field[data-feature=credit_amount] input.number").fill("3000")
    expect(page.locator("#decision")).to_contain_text("edited")
    page.locator(".fault:visible").first.wait_for()


def limited(page: Page) -> None:
    pick(page)
    limits(page)
    page.locator(".choices summary").first.click()
    page.locator("#panel-limits .lock").nth(2).click()
    page.locator(".policy summary").first.click()
    page.locator(".same summary").first.click()


def what_if(page: Page) -> None:
    pick(page)
    page.get_by_role("button", name="Try this: alternative A").click()
    page.locator("#outcome-whatif .gauge").wait_for()


def infeasible(page: Page) -> None:
    pick(page)
    limits(page)
    page.locator("#lock-all").click()
    page.locator(".advice-side").first.wait_for(timeout=60_000)


def keeping(page: Page) -> None:
    pick(page)
    page.locator("#keep").click()
    page.locator("#keep-form").wait_for()


def letter(page: Page) -> None:
    pick(page)
    keep(page)


def records(page: Page) -> None:
    letter(page)
    page.keyboard.press("Escape")
    page.locator("#show-records").click()
    page.locator(".kept-row").first.wait_for()
    page.locator("#erase").click()


def endangered(page: Page) -> None:
    already(page)
    page.locator("#endanger").click()
    page.locator(".card-danger").first.wait_for()


def undecided(page: Page) -> None:
    without_declaration(page)
    page.reload()
    pick(page)
    page.locator(".calm").wait_for()


def number(page: Page) -> None:
    people(page)
    page.goto("/#artifact=limit")
    page.reload()
    pick(page, 3)
    page.get_by_label("Outcome wanted, lowest").press("ArrowRight")
    page.locator(".card, .calm, .advice").first.wait_for()


def leaving(page: Page) -> None:
    pick(page)
    page.locator("#panel-details .field[data-feature=duration] input.number").fill("20")
    page.locator("#new-person").click()
    page.locator("#leave[open]").wait_for()


def trouble(page: Page) -> None:
    pick(page)
    page.route("**/v1/explain", lambda route: route.fulfill(**answer(503, "closing")))
    limits(page)
    page.locator("#panel-limits .lock").first.click()
    page.get_by_role("alert").wait_for()


def signing_in(page: Page) -> None:
    page.route("**/v1/**", lambda route: route.fulfill(**answer(401, "no_key")))
    page.reload()
    page.locator("#signin[open]").wait_for()


STATES: tuple[Callable[[Page], None], ...] = (
    people,
    decision,
    searching,
    help_and_edits,
    limited,
    what_if,
    infeasible,
    keeping,
    letter,
    records,
    endangered,
    undecided,
    number,
    leaving,
    trouble,
    signing_in,
)


@pytest.mark.parametrize("reach", STATES, ids=lambda state: state.__name__)
def test_no_violation_in_either_theme(new_page: Callable[..., Any], reach: Callable[[Page], None]) -> None:
    page = new_page(DESK, color_scheme="light")
    page.goto("/")
    reach(page)
    found = {"light": violations(page)}
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    found["dark"] = violations(page)
    page.set_viewport_size(PHONE)
    found["phone"] = violations(page)
    assert found == {"light": [], "dark": [], "phone": []}


def test_axe_sees_what_is_wrong(page: Page) -> None:
    """Otherwise the tests above could not fail."""
    page.goto("/")
    people(page)
    page.evaluate("document.getElementById('find-person').removeAttribute('aria-label')")
    page.evaluate("document.getElementById('find-person').removeAttribute('placeholder')")
    assert any(re.match("label|aria-input-field-name", one) for one in violations(page))


def test_the_letter_has_no_violation_either(app_page: Page) -> None:
    keep(app_page)
    app_page.goto(f"/v1/records/{app_page.locator('#record-id').inner_text()}/letter")
    assert violations(app_page) == []
