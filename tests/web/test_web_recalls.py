"""Targets in the service: what HTTP tells of them, and the slider for the recall of a class, in a real browser too."""

import io
import json
import re
import threading
import time
from html import unescape

import pytest
import uvicorn
from tests.support.counted import counted
from tests.web.browser import MISSING, chromium

from askwise import AtLeast, AtMost, AverageBudget, ClassWeights, HardBudget
from askwise.model.recalls import ASKED, recalls
from askwise.web import view
from askwise.web.app import create_app
from askwise.web.bodies import ModelCardBody
from askwise.web.logs import Log
from askwise.web.recall_view import recall_view, recall_words
from askwise.web.settings import Limits, ServiceSettings

BUDGET = AtLeast(recall={"ill": 0.8}) & ClassWeights({"well": 1.0})


@pytest.fixture(scope="module")
def targeted(make_client):
    return make_client(of={"m": counted(), "t": counted(BUDGET)})


def test_a_card_tells_targets_weights_and_what_each_recall_costs(targeted):
    plain, card = (targeted.get(f"/api/models/{name}").json() for name in ("m", "t"))
    assert (plain["targets"], plain["class_weights"]) == ([], [])
    (target,) = card["targets"]
    assert target["target"] == "AtLeast(recall={'ill': 0.8})"
    assert {name: target[name] for name in ("figure", "of", "value", "confidence")} == BUDGET.targets[0].to_dict()
    assert target["measured"]["value"] == 0.8
    assert target["measured"]["cases"] == 20
    low, high = target["measured"]["interval"]
    assert low < 0.8 < high
    assert card["class_weights"] == [{"class": "well", "weight": 1.0}]
    assert [each["class"] for each in card["by_class"]] == ["ill", "well"]
    for told in (plain, card):
        ill, well = told["recalls"]
        assert (ill["class"], ill["cases"], ill["most"], well["most"]) == ("ill", 20, 0.9, 1)
        assert [step["asked"] for step in ill["steps"]] == [asked for asked in ASKED if asked <= 0.9]
        assert [step["cost"] for step in ill["steps"]][-3:] == [1.5, 2.0, 2.0]


def test_cards_are_as_the_schema_says(targeted):
    schema = targeted.get("/openapi.json").json()["components"]["schemas"]
    for name in ("m", "t"):
        card = targeted.get(f"/api/models/{name}").json()
        assert set(schema["ModelCardBody"]["required"]) <= card.keys()
        for part in ("targets", "class_weights", "by_class", "recalls"):
            of = schema["ModelCardBody"]["properties"][part]["items"]["$ref"].split("/")[-1]
            assert all(each.keys() == set(schema[of]["required"]) for each in card[part])
    assert "recalls" in ModelCardBody.model_fields


def shown(page):
    """What the slider shows, by name."""
    found = dict(re.findall(r'id="recall-([a-z-]+)">([^<]*)<', page))
    return {name: unescape(text) for name, text in found.items() if name not in ("costs", "here")}


@pytest.mark.parametrize("of", [0, 1])
def test_every_position_is_on_the_page(targeted, of):
    words = recall_words(counted())[of]
    for at in (0, 5, len(words) - 1):
        assert shown(targeted.get(f"/m/m/model?at=3&of={of}&recall={at}").text) == words[at]
    beyond = targeted.get(f"/m/m/model?of={of}&recall={len(ASKED)}").text  # as a page without scripts may ask
    assert shown(beyond) == words[-1]


def test_the_page_of_a_model_with_a_target_begins_there(targeted):
    page = targeted.get("/m/t/model")
    assert page.status_code == 200
    assert "at the least cost for a recall of ill of at least 80\u00a0%" in page.text
    assert shown(page.text)["asked"] == "80\u00a0%"
    assert shown(page.text)["cost"] == re.search(r'id="here-cost">([^<]*)<', page.text)[1] == "1.50\u00a0€"
    assert "Measured on 100 cases that the fit kept apart; in brackets" in page.text


def test_a_position_in_words():
    words = recall_words(counted())
    here = {name: text.replace(view.NOT_BROKEN, " ") for name, text in words[0][8].items()}
    assert here == {
        "asked": "80 %",
        "cost": "1.50 €",
        "cost-error": "± 0.02 €",
        "recall": "80 %",
        "interval": "(58.4 % to 91.9 %)",
        "specificity": "87.5 %",
        "accuracy": "86 %",
        "budget": "AtLeast(recall={'ill': 0.8})",
        "rule": "where cases lose no more than if all were decided at once",
        "end": "The slider ends at 90 %: a higher recall of ill cannot be had where cases lose no more than if all were decided "
        "at once.",
    }
    assert words[1][0]["end"] == ""  # all of the others can be had


def test_the_slider_begins_where_the_model_works():
    ill = recalls(counted())[0]
    assert recall_view(counted(), None, None)["at"] == len(ill.steps) - 1
    here = recall_view(counted(BUDGET), None, None)
    assert (here["of"], ill.steps[here["at"]].asked) == (0, 0.8)
    assert recall_view(counted(AtLeast(recall={"well": 0.5})), None, None)["of"] == 1


def test_models_that_did_not_count_have_no_such_slider(client, models):
    for name in models:
        assert "recall-form" not in client.get(f"/m/{name}/model").text
        assert client.get(f"/api/models/{name}").json()["recalls"] == []


@pytest.mark.parametrize("asked", ["of=2", "of=x", "recall=20", "recall=-1", "recall=0000", "of=%C2%B2"])
def test_positions_that_do_not_exist_are_refused(targeted, asked):
    answer = targeted.get(f"/m/m/model?{asked}")
    assert answer.status_code == 404
    assert "the slider for recall has no" in unescape(answer.text).replace("The", "the")


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (
            AtLeast(recall={"ill": 0.8}) & HardBudget(2),
            "with at most 2.00 € for any case and at the least cost for a recall of ill of at least 80 %",
        ),
        (AtLeast(accuracy=0.8, confidence=0.5), "at the least cost for an accuracy of at least 80 % with a probability of 0.5"),
        (
            AtLeast(accuracy=0.8) & AverageBudget(2),
            "at a mean cost of at most 2.00 € per case and at the least cost for an accuracy of at least 80 %",
        ),
        (AverageBudget(2, confidence=0.9), "at a mean cost of at most 2.00 € per case with a probability of 0.9"),
        (AverageBudget(2), "at a mean cost of 2.00 € per case"),
        (AtMost(loss=0.2), "at the least cost for a loss of at most 0.2"),
        (ClassWeights({"ill": 5}), "where mistakes about ill count 5 times as much"),
    ],
    ids=str,
)
def test_the_page_says_what_has_to_be_reached(budget, words):
    assert view.works_at(counted(budget)).replace(view.NOT_BROKEN, " ") == words


@pytest.fixture(scope="module")
def url():
    """Of a service in a thread: a model that nobody has fitted cannot be written to a file."""
    log = Log(io.StringIO(), False)
    app = create_app({"m": counted()}, ServiceSettings(Limits(rate=0), local=False), log)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(20)


@pytest.mark.skipif(MISSING, reason="Chromium is not installed (apt-get install chromium)")
@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_the_slider_in_a_browser(url, script):
    words = recall_words(counted())
    with chromium() as browser:
        page = browser.new_context(base_url=url, java_script_enabled=script).new_page()
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto("/m/m/model?at=3&of=0&recall=2")

        def show():
            if not script:
                with page.expect_navigation():
                    page.get_by_role("button", name="Show this recall").click()

        def told():
            return {name: page.locator(f"#recall-{name}").text_content() for name in words[0][0]}

        assert told() == words[0][2]
        slider = page.get_by_label("Recall: how many of its cases have to be found")
        slider.focus()
        page.keyboard.press("End")
        show()
        assert told() == words[0][-1]
        assert slider.get_attribute("aria-valuetext") == "90\u00a0%"
        assert page.locator("#at").input_value() == "3"  # the other slider stays
        slider.focus()
        page.keyboard.press("ArrowLeft")
        show()
        assert told() == words[0][-2]
        page.get_by_label("Class", exact=True).select_option("1")
        show()
        assert told() == words[1][len(words[0]) - 2]
        slider.focus()
        page.keyboard.press("End")
        show()
        assert told() == words[1][-1]
        page.get_by_label("Class", exact=True).select_option("0")  # which ends earlier
        show()
        assert told() == words[0][-1]
        assert slider.input_value() == str(len(words[0]) - 1)
        if script:
            from tests.web.test_web_browser import serious

            assert serious(page) == []
            page.set_viewport_size({"width": 375, "height": 740})
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert problems == []


def test_the_words_travel_in_the_page_as_json(targeted):
    page = targeted.get("/m/m/model").text
    words = json.loads(unescape(re.search(r'id="recall-form" data-words="([^"]*)"', page)[1]))
    assert words == recall_words(counted())
