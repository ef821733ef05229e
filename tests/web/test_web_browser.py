"""The page in a real browser: with and without JavaScript, by keyboard, on a phone, and as a screen reader is told about it."""

import json
import re

import pytest
from tests.web.browser import IN_CI, MISSING, chromium

from askwise import AverageBudget
from askwise.model.purchases import usage

if MISSING and IN_CI:
    pytest.fail("Chromium is not installed, and continuous integration must have it", pytrace=False)
pytestmark = pytest.mark.skipif(MISSING, reason="Chromium is not installed (apt-get install chromium)")

CASE = {"pressure": "0.4", "smoker": "true", "colour": "red", "town": "Bonn", "index": "2.5"}
PHONE = {"width": 375, "height": 740}


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture
def open_page(browser, served):
    """Pages of the service; none may ask anybody else for anything, nor complain."""
    contexts = []

    def opened(path="/", **settings):
        context = browser.new_context(**{"base_url": served.url, **settings})
        contexts.append(context)
        page = context.new_page()
        page.problems = []
        page.on("console", lambda message: page.problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("request", lambda r: page.problems.append(r.url) if not r.url.startswith(served.url) else None)
        page.set_default_timeout(20_000)
        page.goto(path)
        return page

    yield opened
    for context in contexts:
        context.close()


def question(page):
    return page.locator("h1").inner_text()


def fill(page, value):
    radio = page.locator(f"input[type=radio][name='value.0'][value='{value}']")
    if radio.count():
        radio.check()
    else:
        page.locator("[name='value.0']").fill(value)


def press(page, words):
    """Presses a button and waits until the page has changed, with or without a script."""
    button = page.get_by_role("button", name=words, exact=True)
    changed(page, button.click)


def changed(page, act):
    if page.scripted:
        page.evaluate("document.querySelector('main').dataset.old = '1'")
        act()
        page.wait_for_function("() => !document.querySelector('main').dataset.old")
    else:
        with page.expect_navigation():
            act()


def start(open_page, script, age="63", **settings):
    page = open_page("/m/patients", java_script_enabled=script, **settings)
    page.scripted = script
    page.get_by_label("age", exact=True).fill(age)
    page.get_by_label("Name of the case").fill("A-17")
    press(page, "Start")
    return page


def serious(page):
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [(v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in found if v["impact"] in ("serious", "critical")]


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_whole_case_with_a_refusal_an_undo_a_bad_value_and_a_record(open_page, models, script):
    page = start(open_page, script)
    first = question(page)
    assert first in CASE
    assert "€" in page.locator(".cost").inner_text()
    assert page.locator("table.why tbody tr").count() >= 1

    # a bad value is refused next to its field, and what was typed is still there
    if page.locator("input[name='value.0'][type=text]").count():
        page.locator("[name='value.0']").fill("<b>nonsense</b>")
    press(page, "Answer")
    assert page.locator(".wrong").is_visible()
    assert question(page) == first
    if page.locator("input[name='value.0'][type=text]").count():
        assert page.locator("[name='value.0']").input_value() == "<b>nonsense</b>"
        assert page.locator("[name='value.0']").get_attribute("aria-invalid") == "true"

    # refused, it is asked no more; undone, it is asked again
    press(page, "Not available")
    assert re.search(rf"{first}\s+not available", page.locator(".path, table.record").first.inner_text())
    press(page, "Undo")
    assert question(page) == first

    session = models["patients"].session({"age": 63}, case_id="A-17")
    asked = []
    while page.locator("#decision").count() == 0:
        asked.append(question(page))
        assert session.next().test == asked[-1]
        session.tell(asked[-1], CASE[asked[-1]])
        fill(page, CASE[asked[-1]])
        press(page, "Answer")
        assert len(asked) < 10
    assert asked
    assert len(set(asked)) == len(asked)
    step = session.next()
    assert question(page) == str(step.decision)
    assert f"{step.cost:.2f}" in page.locator("#paid").inner_text()
    record = page.locator("table.record").inner_text()
    assert all(test in record for test in ["age", *asked])

    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as JSON").click()
    assert saved.value.suggested_filename == "A-17.json"
    trace = json.loads(open_text(saved.value.path()))
    assert trace["decision"] == step.decision
    assert type(session).replay(models["patients"], trace).next().decision == step.decision
    assert page.get_by_role("button", name="Print").is_visible() == script
    # a value that is refused is a 422, which the browser notes; nothing else may be noted
    assert [p for p in page.problems if "422" not in p] == []


def open_text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_the_budget_slider(open_page, models, script):
    model = models["patients"]
    page = open_page("/m/patients/model", java_script_enabled=script)
    at = page.get_by_label("Average budget per case")
    before = (
        page.locator("#here-cost").inner_text(),
        page.locator("#mark").get_attribute("cx"),
        page.locator("#used").inner_text(),
    )
    at.focus()
    page.keyboard.press("Home")
    if script:
        assert not page.get_by_role("button", name="Show this budget").is_visible()
        page.wait_for_function("() => document.getElementById('taken').innerText.includes('decide at once')")
    else:
        with page.expect_navigation():
            page.get_by_role("button", name="Show this budget").click()
    assert page.locator("#here-cost").inner_text() == "0.00\u00a0€"
    shown = f"{100 * model.points[0].accuracy:.1f}".removesuffix(".0") + "\u00a0%"
    assert page.locator("#here-accuracy").inner_text() == shown
    assert before[1] != page.locator("#mark").get_attribute("cx") or before[0] == "0.00\u00a0€"
    assert "decide at once" in page.locator("#taken").inner_text()
    at.focus()
    page.keyboard.press("End")
    if script:
        assert page.locator("#here-cost").inner_text() == f"{model.saturation.cost:.2f}\u00a0€"
    assert page.problems == []


def test_the_slider_also_moves_how_cases_end(open_page, models):
    page, model = open_page("/m/patients/model"), models["patients"]
    for shape in ("polygon.band", "polyline.curve", "polyline.static", "#ends circle.mark"):
        box = page.locator(shape).first.bounding_box()
        assert box["width"] > 0
        assert box["height"] > 0
    assert page.get_by_text("All tests cost 2.9 €").is_visible()
    page.get_by_label("Average budget per case").focus()
    page.keyboard.press("Home")
    at_once = usage(model.at(AverageBudget(0))).outcomes
    share = f"{100 * at_once.classes[0].recall:.1f}".removesuffix(".0")
    page.wait_for_function(f"() => document.getElementById('ends').innerText.includes('{share}\u00a0%')")
    assert "0.00\u00a0€ per case" in page.locator("#ends").inner_text()
    assert page.problems == []


def test_it_can_be_used_by_keyboard_alone(open_page):
    page = open_page("/m/patients")
    page.scripted = True
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.get_by_label("age", exact=True).focus()
    page.keyboard.type("40")
    changed(page, lambda: page.keyboard.press("Enter"))
    first = question(page)
    # the cursor waits in the field, and what has come is said
    assert page.evaluate("document.activeElement.name") == "value.0"
    assert first in page.locator("#say").inner_text()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_another_result_than_the_one_that_is_asked_for(open_page):
    page = start(open_page, True)
    first = question(page)
    page.get_by_text("Enter another result").click()
    other = next(t for t in CASE if t != first)
    page.get_by_label("Test", exact=True).select_option(other)
    press(page, "Fill it in")
    assert question(page) == other
    page.get_by_label("It cost nothing").check()
    fill(page, CASE[other])
    press(page, "Answer")
    assert "free" in page.locator(".path, table.record").first.inner_text()
    assert question(page) != other


def test_deciding_now_and_a_budget(open_page):
    page = open_page("/m/patients")
    page.scripted = True
    page.get_by_label("It may cost at most").fill("0")
    press(page, "Start")
    while page.locator("#decision").count() == 0:  # only what is free may be asked
        assert "0.00" in page.locator(".cost").inner_text()
        press(page, "Not available")
    page = start(open_page, True)
    press(page, "Decide now")
    assert page.locator("#decision").count() == 1
    assert "0.00" in page.locator("#paid").inner_text()


@pytest.mark.parametrize(("size", "scheme"), [(None, "light"), (PHONE, "dark")], ids=["desk", "phone"])
def test_no_page_has_a_serious_problem_for_those_who_see_or_hear_it_otherwise(open_page, size, scheme):
    settings = {"color_scheme": scheme, **({"viewport": size} if size else {})}
    found = {}
    for path in ("/", "/m/patients", "/m/patients/model", "/m/mixed/model", "/docs", "/login", "/nothing"):
        page = open_page(path, **settings)
        found[path] = serious(page)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{path} is wider than the screen"
    page = start(open_page, True, **settings)
    found["question"] = serious(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    press(page, "Answer")
    found["wrong"] = serious(page)
    press(page, "Decide now")
    found["decision"] = serious(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert {path: problems for path, problems in found.items() if problems} == {}
