"""The page and HTTP say of how many cases figures come, and how sure they are."""

import re
from html import escape

import pytest
from tests.support.models import made

from askwise.frontier.point import SAME_TESTS
from askwise.model.alternatives import alternatives, comparison
from askwise.model.purchases import usage
from askwise.reports.model_report import headline
from askwise.web import view
from askwise.web.chart_frames import Frame, enlarged


def test_figures_come_with_their_errors_and_the_number_of_cases(make_client):
    model = made("family")
    client = make_client(of={"m": model})
    page = client.get("/m/m/model").text
    assert "Measured on 400 cases that the fit kept apart; ± and the band are one standard error" in page
    assert '<span class="quiet" id="here-accuracy-error">± 1.0\u00a0%</span>' in page
    assert page.count('<td class="right">400</td>') == len(model.frontier)
    assert "400 cases" in client.get("/").text
    card = client.get("/api/models/m").json()
    assert card["expected"] == model.expected
    assert {p["n"] for p in card["frontier"]} == {400}
    assert [p["kind"] for p in card["frontier"]] == [model.kind_of(i) for i in range(len(model.frontier))]
    short = client.get("/api/models").json()["models"][0]
    assert (short["measured_on"], short["expected_accuracy_error"]) == (400, pytest.approx(0.01))


def numbers(text):
    return [tuple(float(v) for v in pair.split(",")) for pair in text.split()]


def test_the_page_draws_a_band_and_the_same_tests_for_everybody(make_client, models):
    model = models["patients"]
    page = make_client(of={"m": model}).get("/m/m/model").text
    line, band = (numbers(re.search(rf'class="{name}" points="([^"]*)"', page)[1]) for name in ("curve", "band"))
    assert len(band) == 2 * len(line) == 2 * (view.STEPS + 1)
    assert [x for x, _ in band] == [*(x for x, _ in line), *(x for x, _ in reversed(line))]
    upper, lower = band[: len(line)], band[len(line) :][::-1]
    assert all(up[1] <= y <= low[1] for (_, y), up, low in zip(line, upper, lower, strict=True))
    most = 1.3 * model.saturation.cost
    plain = [each for each in alternatives(model) if each.kind == SAME_TESTS and 0 < each.measure.cost <= most]
    assert plain
    assert page.count('class="static-dot"') == len(plain)
    assert "Squares: the same tests for everybody." in page
    assert str(escape(headline(model))) in page


def test_the_page_says_who_buys_what_and_how_cases_end(make_client, models):
    for model in models.values():
        client = make_client(of={"m": model})
        for at in (0, 100):
            page = client.get(f"/m/m/model?at={at}").text
            there = view.at_average(model, model.saturation.cost * at / 100)
            ends = usage(there).outcomes
            for name, each in zip(model.schema.classes, ends.classes, strict=True):
                assert f'{name} <span class="quiet">{round(each.cases)} cases</span>' in page
                assert f"{view.percent(each.recall)} <span" in page
            assert page.count('class="interval"') == len(ends.bins)
            assert f"off by {100 * ends.calibration_error:.1f} percentage points" in page
            bought = [k for k, share in enumerate(usage(there).bought.values()) if share]
            for k in bought:
                by_class = ", ".join(
                    f"{name} {view.percent(each.bought[k])}"
                    for name, each in zip(model.schema.classes, ends.classes, strict=True)
                )
                assert by_class in page


def test_the_page_begins_with_the_very_figures_of_the_model(make_client, models):
    for model in models.values():
        page = make_client(of={"m": model}).get("/m/m/model").text
        at = int(re.search(r'id="at"[^>]* value="(\d+)"', page)[1])
        here = view.slider(model)[at]
        assert [here[name] for name in ("cost", "accuracy", "loss")] == [model.expected[n] for n in ("cost", "accuracy", "loss")]
        budgets = [each["budget"] for each in view.slider(model)]
        assert budgets == sorted(budgets)
        for name, each in zip(model.schema.classes, usage(model).outcomes.classes, strict=True):
            assert f'{name} <span class="quiet">{round(each.cases):,} cases</span>' in page
            assert f"{view.percent(each.recall)} <span" in page


def test_both_axes_of_both_charts_have_a_name(make_client, models):
    page = make_client(of={"m": models["patients"]}).get("/m/m/model").text
    named = re.findall(r'text-anchor="middle">([a-z][^<]*)</text>', page)
    assert named[0].startswith("mean cost per case")
    assert named[1] == "accuracy"
    assert named[2].startswith("probability of ")
    assert named[3] == "how often it came true"


@pytest.mark.parametrize("words", ["1 dollar", "2 dollars", "1 ms", "1 min"])
def test_one_of_a_unit_is_no_plural(words):
    amount, unit = words.split()
    assert view.money(float(amount), {"dollar": "dollars"}.get(unit, unit)).replace(view.NOT_BROKEN, " ") == words


def test_the_upper_end_is_enlarged_where_it_is_reached_early_and_nothing_is_hidden():
    frame = Frame(0.0, 400.0, 0.0, 200.0, (0.0, 10.0), (0.4, 1.0))
    early, late = ([(0.0, 0.5), (1.0, 0.9), (10.0, 0.93)], [(0.0, 0.5), (5.0, 0.7), (10.0, 0.93)])
    found = enlarged(frame, early, early, str)
    x, y, wide, tall = found["shown"]
    assert x <= frame.x(1.0)
    assert x + wide == frame.right
    assert y <= frame.y(0.93) <= frame.y(0.9) <= y + tall
    assert all(found["frame"].left <= place <= found["frame"].right for place, _ in found["x_ticks"])
    assert enlarged(frame, late, late, str) is None
    assert enlarged(frame, early, [*early, (8.0, 0.5)], str) is None
    assert enlarged(frame, [(0.0, 0.5), (0.0, 0.5)], [], str) is None


def test_kinds_of_policies_are_compared_where_there_are_several(make_client, models):
    family, paper = (make_client(of={"m": models[name]}).get("/m/m/model").text for name in ("patients", "mixed"))
    assert "Which kind of policy" in family
    for level in comparison(models["patients"]):
        for m in level.best.values():
            assert f"{100 * m.accuracy:.1f} ± {100 * m.accuracy_error:.1f} %" in family
    assert "Which kind of policy" not in paper
