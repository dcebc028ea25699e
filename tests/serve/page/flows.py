"""What several tests do on the page."""

import json
import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, Request, Route

from tests.serve.page.conftest import pick


def limits(page: Page) -> None:
    page.get_by_role("tab", name=re.compile("What may change")).click()


def lock(page: Page, label: str) -> Any:
    return page.locator("#panel-limits").get_by_role("button", name=f"Keep {label} as it is")


def asked(request: Request) -> dict[str, Any]:
    return json.loads(request.post_data or "{}")


def is_question(request: Request) -> bool:
    return request.url.endswith("/v1/explain")


def asks(page: Page, check: Callable[[dict[str, Any]], bool]) -> Any:
    """Within it, a question is asked of which `check` holds; others may be on their way."""
    return page.expect_request(lambda request: is_question(request) and check(asked(request)))


def answer_next(page: Page, *answers: dict[str, Any]) -> list[dict[str, Any]]:
    """The next questions get these answers, later ones reach the server; the questions are noted."""
    noted, left = [], list(answers)

    def handle(route: Route) -> None:
        noted.append(asked(route.request))
        if left:
            route.fulfill(**left.pop(0))
        else:
            route.continue_()

    page.route("**/v1/explain", handle)
    return noted


def answer(status: int, code: str, fields: tuple[tuple[str, str], ...] = (), **headers: str) -> dict[str, Any]:
    named = [{"field": field, "message": message} for field, message in fields]
    body = {"error": {"code": code, "message": f"It was {code}.", "fields": named}, "request_id": "test"}
    return {"status": status, "content_type": "application/json", "body": json.dumps(body), "headers": headers}


def keep(page: Page, decision: str = "") -> None:
    page.get_by_role("button", name="Keep and print").click()
    page.get_by_label("Decision number").fill(decision)
    page.locator("#keep-now").click()
    page.locator(".sheet .letter").wait_for()


def detail(page: Page, name: str) -> Any:
    """The control of a detail in the form."""
    return page.locator(f"#panel-details .field[data-feature={name}]").locator("input.number, select")


def already(page: Page) -> None:
    """A refused person edited into one that is granted."""
    pick(page)
    detail(page, "duration").fill("6")
    detail(page, "credit_amount").fill("1000")
    detail(page, "checking_status").select_option(label="no account")
    page.locator("#endanger").wait_for()


def change_schema(page: Page, change: Callable[[dict[str, Any]], None]) -> None:
    """From now on, the schema comes with a change."""

    def handle(route: Route) -> None:
        schema = route.fetch().json()
        change(schema)
        route.fulfill(json=schema)

    page.route("**/v1/schema*", handle)


def without_declaration(page: Page) -> None:
    """A service that does not say which outcome is wanted."""
    change_schema(page, lambda schema: schema["target"].update(wanted=None, unwanted=[]))
