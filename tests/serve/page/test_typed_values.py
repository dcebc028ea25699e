"""Dates, times with a zone and columns that are passed through, typed and shown on the page."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.serve.page import worlds
from tests.serve.page.conftest import pick, serving
from tests.serve.page.flows import asks, detail


@pytest.fixture(scope="module")
def dated_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("dated") / "made"
    worlds.dated(folder)
    arguments = [f"dated={folder / 'artifact'}", "--model", "dated=tests.serve.page.worlds:stays", "--records", "none"]
    with serving([*arguments, "--applicants", f"dated={folder / 'people.csv'}", "--id", worlds.WHO]) as address:
        yield address


@pytest.fixture
def url(dated_url: str) -> str:
    return dated_url


def fields(page: Page) -> Any:
    return page.locator("#panel-details .field")


def test_a_person_of_the_file_brings_what_is_passed_through(page: Page) -> None:
    page.goto("/")
    with asks(page, lambda body: "said hello" in str(body["rows"][0].get("note"))):
        pick(page)
    expect(page.locator(".card .change").first).to_contain_text("→")
    expect(detail(page, "note")).to_have_value(re.compile("customer number"))
    expect(detail(page, "called")).to_have_value(re.compile(r"[+]0[12]:00$"))


def test_a_date_is_typed_with_the_control_of_the_browser(page: Page) -> None:
    page.goto("/")
    pick(page)
    since = detail(page, "since")
    assert since.get_attribute("type") == "date"
    with asks(page, lambda body: body["rows"][0]["since"] == "2020-05-17"):
        since.fill("2020-05-17")
    expect(page.locator("#decision-heading")).to_contain_text("Stays", ignore_case=True)


def test_a_time_is_typed_in_the_zone_of_its_column(page: Page) -> None:
    page.goto("/")
    pick(page)
    with asks(page, lambda body: body["rows"][0]["called"] == "2022-03-01 08:30"):
        detail(page, "called").fill("2022-03-01 08:30")
    expect(page.locator(".card .change").first).to_contain_text("→")


def test_a_time_that_is_none_is_told(page: Page) -> None:
    page.goto("/")
    pick(page)
    detail(page, "called").fill("01.02.2022")
    expect(page.locator("#panel-details [data-feature=called] .fault")).to_contain_text("year-month-day")


def test_what_the_model_reads_is_asked_for_when_a_person_is_typed_in(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Type in a person").first.click()
    note = page.locator("[data-feature=note]")
    expect(note.locator(".fault")).to_be_visible()
    with asks(page, lambda body: body["rows"][0].get("note") == "said hello"):
        note.locator("input").fill("said hello")
    expect(note.locator(".fault")).to_be_hidden()
    expect(page.locator("#decision-heading")).to_contain_text(re.compile("stays|leaves", re.IGNORECASE))
