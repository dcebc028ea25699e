"""The case worker's path through the page, in a real browser against the real server."""

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Request, Route, expect

from tests.serve.page.conftest import PHONE, pick
from tests.serve.page.worlds import HOSTILE

GENEROUS_MS = 5_000
NARROWEST = 360
UNNAMED = re.compile(
    r"^\s*- (?:button|combobox|spinbutton|slider|checkbox|radio|textbox|tab|meter|img)\s*(?:\[.*)?:?$", re.MULTILINE
)
IDS = "[...document.querySelectorAll('[id]')].map(element => element.id)"
HEADINGS = "[...document.querySelectorAll('h1,h2,h3')].filter(e => e.checkVisibility()).map(e => Number(e.tagName[1]))"
TROUBLES = ((429, "busy", "more to do"), (503, "closing", "cannot answer"), (504, "late", "took too long"))
expect.set_options(timeout=15_000)


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


def problem(status: int, code: str, fields: tuple[tuple[str, str], ...] = (), **headers: str) -> dict[str, Any]:
    named = [{"field": field, "message": message} for field, message in fields]
    body = {"error": {"code": code, "message": f"It was {code}.", "fields": named}, "request_id": "test"}
    return {"status": status, "content_type": "application/json", "body": json.dumps(body), "headers": headers}


def wide(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth"))


def test_a_person_is_picked_and_sees_decision_and_alternatives(app_page: Page) -> None:
    expect(app_page.locator("#decision-heading")).to_contain_text("bad")
    expect(app_page.locator("#decision")).to_contain_text("Person A-1001")
    expect(app_page.get_by_role("img", name=re.compile(r"\d+\s% chance of good, 50\s% needed"))).to_be_visible()
    cards = app_page.locator(".card")
    assert 2 <= cards.count() <= 3
    for card in cards.all():
        expect(card.locator(".change").first).to_contain_text("→")
        assert card.get_by_role("meter").count() == 3
    expect(app_page.locator("#live")).to_contain_text(re.compile(r"Decision: bad\. \d alternatives?\."))


def test_people_are_found_by_typing(page: Page) -> None:
    page.goto("/")
    find = page.get_by_role("combobox", name="Find a person")
    find.fill("A-1007")
    expect(page.locator(".options [role=option]")).to_have_count(1)
    find.press("Enter")
    expect(page.locator("#decision")).to_contain_text("Person A-1007")
    assert "A-1007" not in page.url, "nothing of a person in the address"


def test_a_feature_frozen_with_one_click_changes_no_more(app_page: Page) -> None:
    first = app_page.locator(".card .change").first
    label = first.locator(".change-name").inner_text()
    with asks(app_page, lambda question: len(question["freeze"]) == 1):
        first.get_by_role("button").click()
    expect(app_page.locator(".card .change-name").get_by_text(label, exact=True)).to_have_count(0)
    limits(app_page)
    expect(lock(app_page, label.lower())).to_have_attribute("aria-pressed", "true")


def test_a_range_is_dragged_and_answers_come_back_meanwhile(app_page: Page) -> None:
    limits(app_page)
    thumb = app_page.get_by_label("Duration, lowest allowed")
    box = thumb.bounding_box()
    assert box is not None
    questions: list[dict[str, Any]] = []
    app_page.on("request", lambda request: questions.append(asked(request)) if is_question(request) else None)
    app_page.mouse.move(box["x"] + 10, box["y"] + box["height"] / 2)
    app_page.mouse.down()
    for step in range(12):
        app_page.mouse.move(box["x"] + 10 + 8 * step, box["y"] + box["height"] / 2)
        app_page.wait_for_timeout(40)
    app_page.wait_for_timeout(600)
    while_dragging = len(questions)
    app_page.mouse.up()
    assert while_dragging >= 1, "asked before the hand lets go"
    assert while_dragging <= 12, "and not at every pixel"
    assert all(question["keep"] is False for question in questions)
    expect(app_page.locator(".limit[data-feature=duration] .limit-says")).to_contain_text("72")
    low = float(thumb.input_value())
    assert low > 5
    expect(app_page.locator("#tab-limits .count")).to_have_text("1")
    assert questions[-1]["ranges"]["duration"][0] == low


def test_categories_are_chips_and_one_always_stays(app_page: Page) -> None:
    limits(app_page)
    housing = app_page.locator(".limit[data-feature=housing]")
    housing.locator("summary").click()
    with asks(app_page, lambda question: question["ranges"] == {"housing": ["for free", "own"]}):
        housing.get_by_role("checkbox", name="rent").uncheck(force=True)
    housing.get_by_role("checkbox", name="own").uncheck(force=True)
    housing.get_by_role("checkbox", name="for free").click(force=True)
    expect(housing.get_by_role("checkbox", name="for free")).to_be_checked()


def test_the_outcome_wanted_can_be_the_one_there_is(app_page: Page) -> None:
    app_page.get_by_role("radio", name="bad").check(force=True)
    expect(app_page.locator("#alternatives")).to_contain_text("already is bad")
    app_page.get_by_role("radio", name="good").check(force=True)
    expect(app_page.locator(".card").first).to_be_visible()


def test_how_safe_and_how_many_are_asked_for(app_page: Page) -> None:
    with app_page.expect_response(
        lambda response: is_question(response.request) and asked(response.request)["robust"] == 0.95
    ):
        app_page.get_by_role("radio", name="95 %").check(force=True)
    app_page.wait_for_timeout(300)
    for text in app_page.get_by_role("meter", name="Robustness").all():
        assert int(text.get_attribute("aria-valuenow") or 0) >= 95
    with asks(app_page, lambda question: (question["method"], question["n"]) == ("closest", 3)):
        app_page.get_by_role("radio", name="Closest").check(force=True)
    with asks(app_page, lambda question: question["n"] == 4):
        app_page.get_by_role("button", name="More alternatives").click()


def test_a_useful_no_has_a_button_that_helps(app_page: Page) -> None:
    limits(app_page)
    for button in app_page.locator("#panel-limits .lock").all():
        button.click()
    expect(app_page.locator("#alternatives h2")).to_have_text("Not within these limits", timeout=30_000)
    advice = app_page.locator("#advice")
    expect(advice.locator(".blocking").first).to_be_visible(timeout=30_000)
    expect(advice.locator(".change").first).to_be_visible()
    advice.get_by_role("button", name=re.compile("Allow .* to change")).click()
    expect(app_page.locator(".card").first).to_be_visible(timeout=30_000)


def test_one_rule_in_the_way_is_lifted_by_its_name(app_page: Page) -> None:
    """Which rule it is depends on the model: as long as duration is frozen, it is said to be this one."""
    infeasible = {
        "blocking": [{"text": "duration may not change", "origin": "constraints", "columns": ["duration"]}],
        "unlocked": [{"feature": "duration", "from": 24, "to": 6}],
        "constrained": True,
        "progress": 0.4,
    }

    def handle(route: Route) -> None:
        if "duration" not in asked(route.request)["freeze"]:
            route.continue_()
            return
        said = route.fetch().json()
        said["records"][0] |= {"status": "none_found", "counterfactuals": [], "reason": "No.", "infeasible": infeasible}
        route.fulfill(json=said)

    app_page.route("**/v1/explain", handle)
    limits(app_page)
    lock(app_page, "duration").click()
    expect(app_page.locator("#advice")).to_contain_text(re.compile(r"the best try came 40\s% of the way"))
    app_page.get_by_role("button", name="Allow duration to change").click()
    expect(lock(app_page, "duration")).to_have_attribute("aria-pressed", "false")
    expect(app_page.locator(".card").first).to_be_visible()
    expect(app_page.locator("#alternatives-heading")).to_be_focused()


def test_what_if_is_asked_at_once_and_shown_beside(app_page: Page) -> None:
    app_page.get_by_role("button", name="Try alternative A").click()
    expect(app_page.locator("#outcome-now")).to_contain_text("bad")
    expect(app_page.locator("#outcome-whatif")).to_contain_text("good")
    expect(app_page.locator("#outcome-whatif.is-reached .gauge")).to_have_attribute(
        "aria-label", re.compile("chance of good")
    )
    row = app_page.locator(".whatif-row").first
    row.get_by_role("button", name=re.compile("Leave .* as it is")).click()
    app_page.locator("#whatif select[data-keep=whatif-add]").select_option(label="Duration")
    number = app_page.locator("#whatif").get_by_role("spinbutton", name="Duration")
    before = app_page.locator("#outcome-whatif .gauge").get_attribute("aria-label")
    with asks(app_page, lambda question: question["rows"][0]["duration"] == 60):
        number.fill("60")
    expect(app_page.locator("#outcome-whatif .gauge")).not_to_have_attribute("aria-label", str(before))
    app_page.get_by_role("button", name="Close what if").click()
    expect(app_page.locator("#whatif")).to_be_hidden()


def test_details_can_be_edited_and_put_back(app_page: Page) -> None:
    amount = app_page.locator("#panel-details").get_by_role("spinbutton", name="Credit amount")
    was = amount.input_value()
    with asks(app_page, lambda question: question["rows"][0]["credit_amount"] > float(was)):
        amount.press("ArrowUp")
    expect(app_page.locator("#decision")).to_contain_text("details edited")
    app_page.get_by_role("button", name="Back to how it was").click()
    expect(amount).to_have_value(was)


def test_a_person_can_be_typed_in(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Type in a person").first.click()
    expect(page.locator("#decision")).to_contain_text("Person typed in")
    with asks(page, lambda question: question["rows"][0]["housing"] == "rent"):
        page.get_by_role("combobox", name="Housing").select_option(label="rent")


def test_record_and_letter_are_kept_shown_and_saved(app_page: Page, tmp_path: Path) -> None:
    app_page.get_by_role("button", name="Keep and print").click()
    letter = app_page.get_by_role("dialog").locator(".letter")
    expect(letter).to_contain_text("Your decision explained")
    expect(letter).to_contain_text("Would have to be")
    identity = app_page.locator("#record-id").inner_text()
    with app_page.expect_download() as saved:
        app_page.get_by_role("button", name="Record (JSON)").click()
    record = json.loads(Path(saved.value.path()).read_text(encoding="utf-8"))
    assert (record["ids"]["record"], record["status"]) == (identity, "found")
    with app_page.expect_download() as saved:
        app_page.get_by_role("button", name="Letter", exact=True).click()
    assert saved.value.suggested_filename == f"letter-{identity}.html"
    app_page.emulate_media(media="print")
    expect(app_page.locator("#print-sheet .letter")).to_be_visible()
    expect(app_page.locator(".bar")).to_be_hidden()


def test_the_letter_stands_by_itself(app_page: Page) -> None:
    app_page.get_by_role("button", name="Keep and print").click()
    identity = app_page.locator("#record-id").inner_text()
    app_page.goto(f"/v1/records/{identity}/letter")
    assert app_page.locator(".letter").evaluate("element => getComputedStyle(element).maxWidth") != "none"


def test_the_whole_path_by_keyboard(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the decision")).to_be_focused()
    reach(page, "#find-person")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".options [aria-selected=true]")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator(".card").first).to_be_visible()
    reach(page, "#tab-details")
    page.keyboard.press("ArrowRight")
    reach(page, "[data-keep='lock-duration']")
    page.keyboard.press("Space")
    expect(lock(page, "duration")).to_have_attribute("aria-pressed", "true")
    reach(page, "[data-keep='highest-credit_amount']")
    with asks(page, lambda question: question["ranges"].get("credit_amount", [0, 20_000])[1] < 20_000):
        page.keyboard.press("ArrowLeft")
    reach(page, "#keep")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    reach(page, "[data-keep='try-0']")
    page.keyboard.press("Enter")
    expect(page.locator("#outcome-whatif")).to_contain_text("good")


def reach(page: Page, selector: str, most: int = 90) -> None:
    """Go on with Tab until it has the focus, which shows."""
    for _ in range(most):
        if page.evaluate("chosen => document.activeElement.matches(chosen)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} is not reached by Tab")


def test_every_control_has_a_name(app_page: Page) -> None:
    limits(app_page)
    app_page.get_by_role("button", name="Try alternative A").click()
    app_page.locator(".whatif-row").first.wait_for()
    for panel in ("details", "limits"):
        app_page.locator(f"#tab-{panel}").click()
        snapshot = app_page.locator("body").aria_snapshot()
        unnamed = UNNAMED.findall(snapshot)
        assert unnamed == [], snapshot
    for landmark in ("banner", "complementary", "main"):
        expect(app_page.get_by_role(landmark)).to_have_count(1)
    ids = app_page.evaluate(IDS)
    assert len(set(ids)) == len(ids)
    levels = app_page.evaluate(HEADINGS)
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels[1:]))


def test_on_a_phone_nothing_runs_over_the_edge(new_page: Any) -> None:
    page = new_page(PHONE)
    page.goto("/")
    pick(page)
    assert wide(page) <= PHONE["width"]
    page.locator("#fold").click()
    for panel in ("details", "limits"):
        page.locator(f"#tab-{panel}").click()
        assert wide(page) <= PHONE["width"]
    page.get_by_role("button", name="Try alternative A").click()
    page.set_viewport_size({"width": NARROWEST, "height": 640})
    assert wide(page) <= NARROWEST
    page.get_by_role("button", name="Keep and print").click()
    page.locator("#kept[open]").wait_for()
    assert wide(page) <= NARROWEST


def test_light_and_dark_as_the_system_says_or_as_chosen(new_page: Any) -> None:
    def ground(page: Page) -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light, dark = new_page(color_scheme="light"), new_page(color_scheme="dark")
    for page in (light, dark):
        page.goto("/")
        page.locator(".row-button").first.wait_for()
    assert ground(light) != ground(dark)
    light.get_by_role("button", name="Dark theme").click()
    assert ground(light) == ground(dark)
    assert "theme=dark" in light.url
    light.reload()
    assert ground(light) == ground(dark)


def test_a_wrong_value_is_told_at_its_field(app_page: Page) -> None:
    duration = app_page.locator("#panel-details").get_by_role("spinbutton", name="Duration")
    duration.fill("900")
    field = app_page.locator("#panel-details .field[data-feature=duration]")
    expect(field.locator(".fault")).to_have_text("Expected a number from 1 to 72.")
    expect(duration).to_have_attribute("aria-invalid", "true")
    expect(duration).to_have_value("900")
    duration.fill("20")
    expect(field.locator(".fault")).to_be_hidden()
    duration.fill("")
    expect(field.locator(".fault")).to_have_text("A whole number is needed here.")
    app_page.locator("#panel-details").get_by_role("combobox", name="Housing").select_option(label="rent")
    app_page.get_by_role("button", name="Keep and print").click()
    expect(duration).to_be_focused()
    expect(app_page.get_by_role("dialog")).to_be_hidden()


def test_busy_away_and_late_are_said_in_words_and_tried_again(app_page: Page) -> None:
    limits(app_page)
    for status, code, words in TROUBLES:
        headers: dict[str, Any] = {"Retry-After": "1"}
        questions = answer_next(app_page, problem(status, code, **headers))
        lock(app_page, "housing").click()
        notice = app_page.get_by_role("alert")
        expect(notice).to_contain_text(words)
        expect(notice).to_contain_text("Asking again in")
        expect(app_page.locator(".card").first).to_be_visible()
        expect(notice).to_be_hidden(timeout=10_000)
        assert len(questions) >= 2
        app_page.unroute_all()


def test_a_server_that_is_gone_does_not_take_the_details_with_it(app_page: Page) -> None:
    app_page.route("**/v1/explain", lambda route: route.abort())
    duration = app_page.locator("#panel-details").get_by_role("spinbutton", name="Duration")
    duration.fill("33")
    expect(app_page.get_by_role("alert")).to_contain_text("cannot be reached")
    expect(duration).to_have_value("33")
    app_page.unroute_all()
    app_page.get_by_role("button", name="Try again").click()
    expect(app_page.get_by_role("alert")).to_be_hidden()


def test_a_key_is_asked_for_and_kept_in_this_tab_only(page: Page) -> None:
    def guarded(route: Route) -> None:
        if route.request.headers.get("authorization") == "Bearer fce_right":
            route.continue_()
        else:
            route.fulfill(**problem(401, "no_key"))

    page.route("**/v1/**", guarded)
    page.goto("/")
    for given in ("fce_wrong", "fce_right"):
        page.get_by_label("Access key").fill(given)
        page.get_by_role("dialog").get_by_role("button", name="Sign in").click()
    expect(page.locator(".row-button").first).to_be_visible()
    assert page.evaluate("[localStorage.length, document.cookie, location.href.includes('fce_')]") == [0, "", False]
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Access key")).to_be_visible()


def test_another_artifact_is_a_switch_away_and_a_number_can_be_wanted(page: Page) -> None:
    page.goto("/")
    page.get_by_role("combobox", name="Model").select_option("limit")
    pick(page, 3)
    assert "artifact=limit" in page.url
    thumb = page.get_by_label("Outcome wanted, lowest")
    thumb.focus()
    before = thumb.input_value()
    with asks(page, lambda question: question["target"][0] > float(before) and question["target"][1] is None):
        thumb.press("ArrowRight")
    expect(page.locator("#decision")).to_contain_text("Wanted: at least")


def test_names_are_text_and_nothing_else(page: Page) -> None:
    page.goto("/#artifact=limit")
    pick(page, 0)
    expect(page.locator("#decision")).to_contain_text(HOSTILE)
    limits(page)
    page.locator(".choices summary").first.click()
    expect(page.locator(".chip", has_text=HOSTILE)).to_be_visible()
    page.get_by_role("button", name="What if").click()
    page.get_by_role("button", name="Keep and print").click()
    expect(page.get_by_role("dialog").locator(".letter")).to_contain_text(HOSTILE)
    assert page.locator("img:not([src='page/icon.svg'])").count() == 0
    assert page.title() == "Decisions explained"


def test_answers_are_on_screen_soon(app_page: Page) -> None:
    limits(app_page)
    taken = []
    for label in ("housing", "telephone", "job", "savings", "property"):
        with app_page.expect_response("**/v1/explain"):
            lock(app_page, label).click()
        app_page.wait_for_timeout(300)
        taken.append(int(app_page.evaluate("document.documentElement.dataset.ms")))
    print("ms on screen", taken)
    assert sorted(taken)[2] < GENEROUS_MS


def test_every_module_is_fetched_at_once() -> None:
    folder = Path(__file__).parents[3] / "src/fasterce/serve/static"
    listed = re.findall(r'(?:href|src)="page/(js/\w+\.js)"', (folder / "index.html").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(f"js/{file.name}" for file in (folder / "js").iterdir())
