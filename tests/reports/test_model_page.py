"""The page about a model: every figure recomputed, the same in HTML and in Markdown, offline, escaped, and in a real browser."""

import re
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from tests.support.members import QUICK as quick_members
from tests.support.patients import PRICES
from tests.web.browser import MISSING, chromium

from askwise import AverageBudget, CostlyClassifier, HardBudget, load
from askwise.frontier.point import KINDS, SAME_TESTS
from askwise.model.alternatives import all_tests, alternatives, comparison
from askwise.model.outcomes import outcomes_of
from askwise.reports.model_page import static_cost, write_report
from askwise.reports.model_report import (
    MeasuredOn,
    best_measured,
    comparison_table,
    cost_note,
    describe,
    headline,
    kinds_used,
    left_over,
    results,
    told_points,
)
from askwise.reports.pages import Strong, Table, as_text

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

QUICK = quick_members.but(value_steps=40, pool_states=400, growths=1, folds=3)
SECTIONS = [
    "What each amount of money buys",
    "What each recall costs",
    "Which kind of policy",
    "Which tests are bought",
    "The most common paths",
    "How it ends",
    "Results",
    "The model",
]


@pytest.fixture(scope="module")
def stack(frame):
    settings = {"algorithm": "stack", "config": QUICK, "unit": "€", "random_state": 0}
    return CostlyClassifier(**PRICES, **settings).fit(*frame)


@pytest.fixture(scope="module")
def page(stack, tmp_path_factory):
    """HTML and Markdown."""
    out = tmp_path_factory.mktemp("page") / "patients.askwise"
    on = MeasuredOn(stack.out_of_fold_, "160 cases", "out_of_fold")
    files = write_report(stack.model_, out, [on])
    assert [path.name for path in files] == ["patients.png", "patients.svg", "patients.html", "patients.md"]
    return files[2], files[3]


def both(page):
    return [path.read_text() for path in page]


def test_one_sentence_says_what_the_model_is_worth(stack, page):
    model = stack.model_
    here, everything = model.measured, all_tests(model)
    right, with_all = (f"{100 * m.accuracy:.1f} ± {100 * m.accuracy_error:.1f} %" for m in (here, everything))
    assert headline(model) == (
        f"All tests cost 2.9 € ({everything.cost:.4g} on average, since some are missing); this policy costs {here.cost:.4g} ± "
        f"{here.cost_error:.2g} on average and is right in {right} of cases (all tests: {with_all}). Measured on 160 cases, each "
        "held out in turn."
    )
    assert describe(model).splitlines()[0] == headline(model)
    for text in both(page):
        assert headline(model) in text


def test_where_mistakes_differ_the_sentence_also_says_what_is_lost(frame):
    fitted = CostlyClassifier(**PRICES, algorithm="stack", config=QUICK, class_weight="balanced", random_state=0).fit(*frame)
    model = fitted.model_
    assert model.weighted
    lost, error = (model.objective_value(v, 0) for v in (model.measured.loss, model.measured.loss_error))
    assert f" and has {model.objective} {lost:.4f} ± {error:.4f} (all tests: " in headline(model)


def test_a_model_without_such_figures_says_what_it_can(free, tmp_path):
    model = free.model_
    assert "(all tests" not in headline(model)
    assert comparison_table(model) == ""
    assert static_cost(model) is None
    _, _, html, markdown = write_report(model, tmp_path / "m.askwise")
    left_out = ("What each recall costs", "Which kind of policy", "Results")
    for text in (html.read_text(), markdown.read_text()):
        assert [s for s in SECTIONS if s in text] == [s for s in SECTIONS if s not in left_out]
        assert "decides at once at 0; adaptive at" in text
    nothing = replace(model, facts={k: v for k, v in model.facts.items() if k not in ("usage", "measured")})
    _, _, html, _ = write_report(nothing, tmp_path / "n.askwise")
    assert "Which tests are bought" not in html.read_text()


def test_the_report_of_a_file_is_that_of_the_fit_but_for_the_cases(stack, page, tmp_path):
    stack.save(tmp_path / "m.askwise")
    files = write_report(load(tmp_path / "m.askwise"), tmp_path / "m.askwise")
    for path, fitted in zip(files[2:], page, strict=True):
        text = path.read_text()
        assert [s for s in SECTIONS if s in text] == [s for s in SECTIONS if s != "Results"]
        ends = outcomes_of(stack.out_of_fold_)
        for each in ends.classes:
            words = f"{100 * each.recall:.1f} ± {100 * each.error:.1f} %"
            assert words in text
            assert words in fitted.read_text()


def test_every_section_is_in_both_versions(page):
    html, markdown = both(page)
    assert re.findall(r"<h2 id='[^']*'>([^<]*)</h2>", html) == SECTIONS
    assert re.findall(r"^## (.*)$", markdown, re.M) == SECTIONS
    assert html.count("<svg") == html.count("role='img'") == html.count("<figcaption>") == 5
    assert html.count("<section class='card'") == html.count("</section>") == len(SECTIONS)
    assert "](patients.svg)" in markdown


def test_the_frontier_has_its_kinds_and_errors(stack, page):
    for text in both(page):
        for i in told_points(stack.model_):
            p = stack.model_.frontier[i]
            row = f"{100 * p.accuracy:.1f} ± {100 * p.measure.accuracy_error:.1f} %"
            assert row in text
            assert (p.kind if i else "decides at once") in text
        assert "Measured on 160 cases, each held out in turn; the band is one standard error" in text


def test_kinds_are_told_by_the_money_for_which_they_are_used(stack):
    model, words = stack.model_, kinds_used(stack.model_)
    assert words.startswith("policies by their mean cost, €: decides at once at 0; ")
    listed = [model.frontier[i] for i in told_points(model)]
    for i, p in enumerate(listed[1:], 1):
        before, after = listed[i - 1], listed[i + 1] if i + 1 < len(listed) else None
        if i == 1 or before.kind != p.kind:
            assert f"{p.kind} at {p.cost:.4g}" in words
        if (after is None or after.kind != p.kind) and i > 1 and before.kind == p.kind:
            assert f" to {p.cost:.4g}" in words


def test_the_comparison_of_kinds_is_in_all_versions(stack, page):
    levels = comparison(stack.model_)
    versions = [*both(page), comparison_table(stack.model_)]
    for text in versions:
        for kind in KINDS:
            assert kind in text or all(word in text.partition("---")[0] for word in kind.split())  # a head of several lines
        for level in levels:
            for m in (*level.best.values(), level.used):
                assert f"{100 * m.accuracy:.1f} ± {100 * m.accuracy_error:.1f} %" in text
    lines = versions[2].splitlines()
    assert "on 160 cases, each held out in turn; ± is one standard error; a kind may draw one of two policies" in lines[0]
    rows = lines[-len(levels) :]
    assert [line.split()[0] for line in rows] == [f"{level.money:.4g}" for level in levels]
    assert [line.count("*") for line in rows] == [len(level.kinds) for level in levels]
    assert max(map(len, lines[1:])) < 100  # fits a terminal


def test_it_is_said_how_little_money_is_as_good_as_the_best_within_its_error(stack):
    model = stack.model_
    zero = model.points[0]

    def at(cost, accuracy, error):
        m = replace(zero.measure, cost=cost, accuracy=accuracy, loss=1 - accuracy, loss_error=error, accuracy_error=error)
        return replace(zero, measure=m, prefix=1)

    def words(*points, budget=model.budget):
        other = replace(model, points=(zero, *points), budget=budget)
        assert best_measured(other) in describe(other).splitlines()
        return best_measured(other)

    best = "nothing dearer was better than 2 € per case: accuracy 95.0 ± 2.0 %"
    assert words(at(1, 0.92, 0.02), at(2, 0.95, 0.02)) == best
    assert words(at(1, 0.94, 0.03), at(2, 0.95, 0.02)) == f"{best}; 1 € is enough to come within that ±: 94.0 ± 3.0 %"
    assert words(at(1, 0.1, 0.02)) == "no policy that buys anything was better than deciding at once"
    capped = words(at(1, 0.92, 0.02), at(2, 0.95, 0.02), budget=HardBudget("2.9"))
    assert capped.startswith("nothing dearer was better than 2 € per case while no case may cost more than 2.9 €: ")


def test_it_is_said_that_a_budget_is_not_spent_and_how_to_spend_it(stack):
    model = stack.model_
    zero, one, two = (
        replace(
            model.points[0],
            measure=replace(model.points[0].measure, cost=cost, accuracy=right, loss=1 - right, loss_error=0.1),
            prefix=cost or None,
        )
        for cost, right in ((0, 0.6), (1, 0.7), (2, 0.75))
    )

    def words(budget):
        other = replace(model, points=(zero, one, two), budget=budget)
        assert (left_over(other) is None) or left_over(other) in describe(other).splitlines()
        return left_over(other)

    left = "of 1.5 € per case only 1 is spent: the next better policy costs 2"
    assert words(AverageBudget(1.5, mixing=False)) == left
    told = words(AverageBudget(1.5))
    assert told.startswith(f"{left}; --mixing, mixing=True in Python, draws one of two policies for each case: accuracy 72.5 ± ")
    assert {words(AverageBudget(b)) for b in (1, 1.04, 2, 3)} == {words(AverageBudget(1.5, mixing=True))} == {None}


def test_kinds_are_compared_under_a_hard_budget_too(stack):
    model = stack.model_.at(HardBudget(1))
    levels, lines = comparison(model), comparison_table(model).splitlines()
    assert "by the money per case on average while no case may cost more than 1 €. Measured on 160 cases" in lines[0]
    assert [line.split()[0] for line in lines[-len(levels) :]] == [f"{level.money:.4g}" for level in levels]
    for kind in KINDS:
        assert (f"limit is known of the kind '{kind}'" in lines[0] or f"or '{kind}'" in lines[0]) == (kind not in levels[0].best)


def test_the_caption_compares_with_the_same_tests_for_everybody(stack, page):
    model = stack.model_.at(AverageBudget(1))
    as_good = [
        each.measure.cost for each in alternatives(model) if each.kind == SAME_TESTS and each.measure.loss <= model.measured.loss
    ]
    words = static_cost(model)
    assert (f"costs {min(as_good):.4g} € per case" in words) if as_good else words.startswith("No fixed set of tests")
    here = model.measured
    near = [
        each.measure.cost
        for each in alternatives(model)
        if each.kind == SAME_TESTS and each.measure.loss <= here.loss + here.loss_error
    ]
    assert ("comes within the ± of this policy" in words) == (min(near) < min(as_good, default=np.inf))
    assert static_cost(model.at(HardBudget(1))) is None
    loss, cost = ([getattr(p, name) for p in stack.model_.frontier] for name in ("loss", "cost"))
    wanted = loss[0] - 0.9 * (loss[0] - loss[-1])
    i = next(i for i, value in enumerate(loss) if value <= wanted)
    money = cost[i - 1] + (loss[i - 1] - wanted) / (loss[i - 1] - loss[i]) * (cost[i] - cost[i - 1])
    for text in both(page):
        assert f"90 % of all that money can buy is bought for {money:.4g} € per case." in text


def test_what_is_bought_by_whom_is_a_table_too(stack, page):
    report = stack.out_of_fold_
    for text in both(page):
        cells = re.sub(r"<[^>]*>|\|", " ", text)
        for test, share in report.bought.items():
            each = [
                np.mean([test in report.tests_of(i) for i in np.flatnonzero(report.truth == k)]) if share else 0.0 for k in (0, 1)
            ]
            shares = r" %\s+".join(re.escape(f"{100 * s:.1f}") for s in (share, *each))
            assert re.search(rf"{test}\s+[\d.]+\s+{shares} %", cells)


def test_calibration_and_recall_are_tables_too(stack, page):
    ends = outcomes_of(stack.out_of_fold_)
    for text in both(page):
        cells = re.sub(r"<[^>]*>|\|", " ", text)
        for b in ends.bins:
            assert re.search(rf"{b.probability:.3f}\s+{b.share:.3f}\s+[\d.]+\s+[\d.]+\s+{b.cases}\s", cells)
        assert f"off by {100 * ends.calibration_error:.1f} percentage points" in text


def test_paths_are_a_table_too_whatever_cases_they_are_of(stack, frame, tmp_path):
    """A Markdown page has no other picture of them."""
    model, (X, y) = stack.model_, frame
    on = MeasuredOn(model.report(model.problem(X[:50], y[:50])), "50 test cases", "test")
    markdown = write_report(model, tmp_path / "m.askwise", [on])[3].read_text()
    section = markdown.partition("## The most common paths")[2].partition("\n## ")[0]
    often = Counter(tuple(on.report.tests_of(i)) for i in range(50)).most_common(1)[0]
    assert f"| {' → '.join(often[0]) or 'nothing'} | {2 * often[1]:.1f} % |" in section


def test_what_came_and_what_is_expected_are_told_apart(stack):
    model, on = stack.model_, MeasuredOn(stack.out_of_fold_, "160 cases", "out_of_fold")
    here = model.measured

    def note(measure, kind="out_of_fold"):
        return cost_note(model, MeasuredOn(SimpleNamespace(measure=measure), "160 cases", kind))

    dearer, better = replace(here, cost=1.2345), replace(here, accuracy=here.accuracy + 0.01)
    assert note(here) == note(dearer, "test") == note(better, "test") == ""
    assert note(dearer) == (
        "The mean cost of 1.234 € is that of the parts of the model which had not learned from a case; the whole model, which is "
        f"used, is expected to cost {here.cost:.4g} €."
    )
    assert note(better) == (
        f"The accuracy of {100 * better.accuracy:.1f} % is what this policy came to on these cases; the "
        f"{100 * here.accuracy:.1f} % that is expected is steadied by all others that were measured there, since the one that is "
        "chosen may be a lucky one."
    )
    assert note(replace(better, cost=1.2345)) == f"{note(dearer)} {note(better)}"
    assert results(model, on).endswith(cost_note(model, on))


def test_results_are_a_table_with_a_column_for_each_set_of_cases(stack, frame, tmp_path):
    model, (X, y) = stack.model_, frame
    few = MeasuredOn(model.report(model.problem(X[:50], y[:50])), "50 test cases", "test")
    on = [MeasuredOn(stack.out_of_fold_, "160 cases", "out_of_fold"), few]
    _, _, _, markdown = write_report(model, tmp_path / "m.askwise", on)
    text = markdown.read_text().partition("## Results")[2].partition("## ")[0]
    assert "| figure | 160 cases | 50 test cases |" in text
    cells = [each.report.measure for each in on]
    assert f"| mean cost, € | {cells[0].cost:.4g} ± {cells[0].cost_error:.2g} | {cells[1].cost:.4g} ± " in text
    assert f"| accuracy | {' | '.join(f'{100 * m.accuracy:.1f} ± {100 * m.accuracy_error:.1f} %' for m in cells)} |" in text


def test_the_caption_names_the_test_that_classes_buy_most_differently(stack, page):
    ends, schema = outcomes_of(stack.out_of_fold_), stack.model_.schema
    shares = np.array([each.bought for each in ends.classes])
    k = int(np.ptp(shares, axis=0).argmax())
    often, seldom = sorted(range(2), key=lambda i: -shares[i, k])
    words = [f"{100 * shares[i, k]:.0f} % of class {schema.classes[i]}" for i in (often, seldom)]
    for text in both(page):
        assert f"Classes differ most in {schema.tests[k]}: {words[0]} buy it, {words[1]}." in text


def test_a_table_in_a_terminal():
    rows = (("1 ± 0.1", Strong("22"), "a"), (Strong("10 ± 2"), Strong("3"), Strong("b c")))
    lines = as_text(Table("not shown", ("money per case, dollars", "n", "kind"), rows)).splitlines()
    assert lines == [
        "    money per",
        "        case,",
        "      dollars          n  kind",
        "    -------------------------------",
        "      1 ± 0.1         22* a",
        "  >    10 ± 2          3  b c",
    ]


def test_the_page_loads_nothing_from_elsewhere(page):
    text = page[0].read_text()
    rest = re.sub(r"""\sxmlns(:\w+)?=["'][^"']*["']""", "", text)
    assert re.findall(r"https?://[^\s\"'<>]*", rest) == []
    assert re.findall(r"""(?:src|href)=["'](?!#|data:)[^"']*""", rest) == []
    assert re.findall(r"url\((?!#|['\"]#)|@import", rest) == []
    assert "<script" not in text
    assert "@media print" in text


def test_names_are_escaped(tmp_path):
    bad = "<script>alert('$1$')</script>|*x*"
    X = pd.DataFrame({bad: np.sin(np.arange(60.0)), "x": 1.0 + np.arange(60) % 7})
    y = np.array([f"{bad}{i}" for i in range(2)])[(np.sin(np.arange(60.0)) > 0.1).astype(int)]
    fitted = CostlyClassifier(algorithm="stack", config=QUICK, random_state=0, unit=bad).fit(X, y)
    on = MeasuredOn(fitted.out_of_fold_, "60 cases", "out_of_fold")
    _, _, html, markdown = write_report(fitted.model_, tmp_path / "m.askwise", [on])
    assert "<script" not in html.read_text()
    assert "&lt;script&gt;" in html.read_text()
    assert "<script" not in markdown.read_text()
    assert "|*x*" not in markdown.read_text()


@pytest.mark.skipif(MISSING, reason="Chromium is not installed (apt-get install chromium)")
def test_a_browser_shows_it_on_a_phone_on_a_desk_and_on_paper(page):
    with chromium() as browser:
        for width, media, scheme in ((375, "screen", "dark"), (1280, "screen", "light"), (700, "print", "light")):
            context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
            shown = context.new_page()
            asked = []
            shown.on("request", lambda request, asked=asked: asked.append(request.url))
            shown.goto(page[0].as_uri())
            shown.emulate_media(media=media)
            assert asked == [page[0].as_uri()]
            assert shown.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"wider than {width}"
            pictures = shown.locator(".picture svg")
            assert pictures.count() == 5
            assert all(pictures.nth(i).bounding_box()["width"] > 0.3 * min(width, 700) for i in range(5))
            assert shown.locator("figure details").first.is_visible() == (media == "screen")
            if media == "screen":
                shown.locator("figure summary").first.click()
                assert shown.locator("figure details table").first.is_visible()
                assert serious(shown) == []
            context.close()


def serious(page):
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [(v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in found if v["impact"] in ("serious", "critical")]
