"""A page about a model that opens offline and can be printed: sentences, tables and pictures, as HTML and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from askwise import plots
from askwise.errors import AskwiseError
from askwise.files import write_whole
from askwise.frontier.point import SAME_TESTS
from askwise.model.alternatives import alternatives
from askwise.model.model import LearnedModel
from askwise.model.outcomes import Outcomes, outcomes_of
from askwise.model.purchases import common_paths, usage
from askwise.plots.models import works_at
from askwise.reports.model_report import (
    MeasuredOn,
    amounts,
    capital,
    compared,
    cost_note,
    describe,
    frontier_table,
    headline,
    in_unit,
    kinds_used,
    objective_words,
    percent,
    points,
    result_words,
    unit_of,
)
from askwise.reports.pages import Beside, Block, Code, Facts, Heading, Picture, Table, Words, fragment, html, markdown
from askwise.reports.promises import borne_out
from askwise.reports.reached import recalls_table, recalls_words, targets_table
from askwise.texts import encoded, give_or_take, printable

PICTURES, PAGES = (".png", ".svg"), (".html", ".md")  # endings of what is written beside a model
ENOUGH = 0.9  # the share of all that money can buy whose price is told
ALMOST_ALL = 0.99
STEPS = 4  # tests of a path that are drawn; with more, the letters would be too small to read


def beside(out: Path) -> list[Path]:
    """What `write_report` writes."""
    return [out.with_suffix(ending) for ending in (*PICTURES, *PAGES)]


def write_report(model: LearnedModel, out: Path, on: Sequence[MeasuredOn] = ()) -> list[Path]:
    """The curve as PNG and SVG, and a page with all pictures that opens offline, also as Markdown. `on`: what the model does on
    cases; of the first of them there are pictures. Without cases they come from what the fit recorded."""
    test = next((each.report.problem for each in on if each.kind == "test"), None)
    curve = plots.frontier(model, test)
    png, svg, page, text = beside(out)
    for path in (png, svg):
        plots.save(curve, path)
    blocks = contents(model, on, frontier_picture(model, curve, svg.name))
    write_whole(page, encoded(html(out.stem, blocks)))
    write_whole(text, encoded(markdown(out.stem, blocks)))
    return [png, svg, page, text]


def draw_frontier(model: LearnedModel, path: Path) -> None:
    plots.save(plots.frontier(model), path)


def in_notebook(model: LearnedModel) -> str:
    """HTML for a notebook: sentences, the frontier, drawn where matplotlib is installed, and its points."""
    blocks: list[Block] = [Words(line) for line in describe(model).splitlines()]
    with suppress(AskwiseError):  # it is not
        blocks.append(frontier_picture(model, plots.frontier(model)))
    return fragment([*blocks, Code(frontier_table(model))], f"askwise-{model.fingerprint}")


def contents(model: LearnedModel, on: Sequence[MeasuredOn], curve: Picture) -> list[Block]:
    """The whole page, as blocks."""
    blocks: list[Block] = [Words(headline(model), lead=True), _facts(model)]
    has_to_reach = targets_table(model)
    if has_to_reach is not None:
        blocks += [Heading("What has to be reached"), has_to_reach]
    blocks += [Heading("What each amount of money buys"), curve, _sentence(kinds_used(model)), points(model)]
    costs_of_recall = recalls_table(model)
    if costs_of_recall is not None:
        blocks += [Heading("What each recall costs"), costs_of_recall, Words(recalls_words(model))]
    table = compared(model)
    if table is not None:
        blocks += [Heading("Which kind of policy"), table, Words(KINDS_WORDS)]
    source = _Source.of(model, on[0] if on else None)
    if source is not None:
        blocks += [Heading("Which tests are bought"), _bought(model, source)]
        blocks += [Heading("The most common paths"), _paths(model, source)]
    if source is not None and source.ends is not None:
        blocks += _ends(model, source, source.ends)
    if on:
        notes = [Words(note) for note in map(partial(cost_note, model), on) if note]
        promises = [_sentence(f"on {of.words}: {promise}") for of in on for promise in borne_out(model, of.report)]
        blocks += [Heading("Results"), _results(model, on), *notes, *promises]
    rest = [line for line in describe(model).splitlines() if line not in (headline(model), kinds_used(model))]
    return [*blocks, Heading("The model"), *map(_sentence, rest)]


KINDS_WORDS = (
    "Each column is the best that one kind of policy makes of the money; two policies of a kind may be mixed, and so may any of "
    "them and deciding at once. Bold is what the model uses: where two columns are bold it mixes them, which can be better than "
    "either. All kinds were measured on the same cases, so their differences are surer than the ± of each of them."
)


def _sentence(line: str) -> Words:
    return Words(f"{capital(line).removesuffix('.')}.")


def _facts(model: LearnedModel) -> Facts:
    here, costs = model.measured, model.schema.costs
    pairs = [
        ("Tests", str(len(model.schema.offered))),
        ("All tests cost", f"{costs.money(costs.total):.4g}{unit_of(model)}"),
        ("Expected cost", f"{here.cost:.4g}{give_or_take(here.cost_error)}{unit_of(model)}"),
        ("Accuracy", percent(here.accuracy, here.accuracy_error)),
    ]
    if model.judged_by_loss:
        pairs.append(("Expected " + model.objective, objective_words(model, here)))
    return Facts((*pairs, ("Measured on", f"{here.n:,} cases")))


def _results(model: LearnedModel, on: Sequence[MeasuredOn]) -> Table:
    """What was measured on each set of cases."""
    each = [result_words(model, of.report) for of in on]
    rows = tuple((in_unit(name, model) if name == "mean cost" else name, *(of[name] for of in each)) for name in each[0])
    return Table("All figures where the model works; ± is one standard error", ("figure", *(of.words for of in on)), rows)


# ---------------------------------------------------------------------- what money buys


def frontier_picture(model: LearnedModel, figure: Any, file: str = "") -> Picture:
    """The plane of cost and score, and what it says in words."""
    unit, first, last = unit_of(model), model.frontier[0].measure, model.saturation.measure
    words = f"{model.objective} over mean cost: {objective_words(model, first)} at no cost, {objective_words(model, last)} at "
    cases = amounts(sorted({p.measure.n for p in model.frontier}))
    caption = [f"Measured on {cases} {model.measured_on}; the band is one standard error to either side of the line."]
    if model.weighted:
        caption.append(f"The score is 1 - {model.objective}: {works_at(model)[1]:.3f} where the model works.")
    enough = _money_for(model, ENOUGH)
    if enough is not None:
        caption.append(f"{100 * ENOUGH:.0f} % of all that money can buy is bought for {enough:.4g}{unit} per case.")
    plain = static_cost(model)
    if plain is not None:
        caption.append(plain)
    return Picture(" ".join(caption), f"{words}{last.cost:.4g}{unit}", plots.inline(figure), file)


def _money_for(model: LearnedModel, share: float) -> float | None:
    """The mean cost at which this share of the way from deciding at once to the best is done; None where money buys nothing."""
    loss, cost = [p.loss for p in model.frontier], [p.cost for p in model.frontier]
    best = model.saturation.loss
    if not loss[0] > best:
        return None
    on = int(np.argmin(loss)) + 1
    return float(np.interp(-(loss[0] - share * (loss[0] - best)), [-x for x in loss[:on]], cost[:on]))


def static_cost(model: LearnedModel) -> str | None:
    """What the same tests for everybody would cost to be as good as the model; None where that was not measured."""
    plain = [each.measure for each in alternatives(model) if each.kind == SAME_TESTS]
    if not plain or model.budget.hard is not None or {p.kind for p in model.followed} == {SAME_TESTS}:
        return None
    here, unit = model.measured, unit_of(model)
    as_good = [m.cost for m in plain if m.loss <= here.loss]
    words = "No fixed set of tests for everybody that was measured was as good as this policy"
    if as_good:
        words = (
            "The cheapest fixed set of tests for everybody that was measured and as good as this policy costs "
            f"{min(as_good):.4g}{unit} per case, this policy {here.cost:.4g}"
        )
    near = min((m for m in plain if m.loss <= here.loss + (here.loss_error or 0.0)), key=lambda m: m.cost, default=None)
    if near is None or near.cost >= min(as_good, default=np.inf):
        return f"{words}."
    return f"{words}; one for {near.cost:.4g}{unit} comes within the ± of this policy: {objective_words(model, near)}."


# ---------------------------------------------------------------------- what is bought by whom


@dataclass(frozen=True)
class _Source:
    """What is known of cases: of those that are at hand, or of those that the fit measured."""

    cases: Any  # what pictures are drawn of: a report, or the model
    words: str  # which cases they are
    bought: dict[str, float]  # by test
    ends: Outcomes | None
    paths: list[tuple[tuple[str, ...], float]]

    @classmethod
    def of(cls, model: LearnedModel, on: MeasuredOn | None) -> _Source | None:
        if on is not None:
            bought = {test: on.report.bought[test] for test in model.schema.offered}
            return cls(on.report, on.words, bought, outcomes_of(on.report), common_paths(on.report))
        recorded = usage(model)
        if recorded is None:
            return None
        return cls(model, f"{recorded.rows:,} {model.measured_on}", recorded.bought, recorded.outcomes, recorded.paths)


def _bought(model: LearnedModel, source: _Source) -> Picture:
    everybody = [test for test, share in source.bought.items() if share > ALMOST_ALL]
    nobody = [test for test, share in source.bought.items() if share == 0]
    caption = [f"Shares of {source.words}, by their true class.", *_contrast(model, source)]
    caption += [f"Almost every case buys {_listed(everybody)}."] if everybody else ["No test is bought for every case."]
    caption += [f"Never bought: {_listed(nobody)}."] if nobody else []
    svg = plots.inline(plots.bought(source.cases))
    return Picture(" ".join(caption), "How often each test is bought, by class", svg, "", _by_class(model, source))


def _contrast(model: LearnedModel, source: _Source) -> list[str]:
    """Which test tells the classes apart most by how often they buy it; nothing where that is not known."""
    kept = [
        (printable(name), each.bought)
        for name, each in zip(model.schema.classes, () if source.ends is None else source.ends.classes, strict=False)
        if each.cases and each.bought is not None
    ]
    if len(kept) < 2:
        return []
    shares = np.array([bought for _, bought in kept])  # classes, F
    test = int(np.ptp(shares, axis=0).argmax())
    low, high = int(shares[:, test].argmin()), int(shares[:, test].argmax())
    if shares[high, test] == shares[low, test]:
        return []
    often, seldom = (f"{100 * shares[k, test]:.0f} % of class {kept[k][0]}" for k in (high, low))
    return [f"Classes differ most in {printable(model.schema.tests[test])}: {often} buy it, {seldom}."]


def _listed(names: list[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(printable, names[:most])) + more


def _by_class(model: LearnedModel, source: _Source) -> Table:
    """The share of all cases, and of those of each class, that buys each test."""
    schema, columns = model.schema, [("all cases", [source.bought[test] for test in model.schema.offered])]
    for name, each in zip(schema.classes, () if source.ends is None else source.ends.classes, strict=False):
        if each.cases and each.bought is not None:
            columns.append((f"{printable(name)} ({round(each.cases):,})", list(each.bought)))
    costs = schema.costs.money(schema.costs.alone)
    order = sorted(range(len(schema.offered)), key=lambda i: -columns[0][1][i])
    rows = [
        (printable(schema.tests[i]), f"{costs[i]:.4g}", *(f"{100 * shares[i]:.1f} %" for _, shares in columns)) for i in order
    ]
    head = ("test", in_unit("cost", model), *(name for name, _ in columns))
    return Table("Share of cases that buy each test", head, tuple(rows))


def _paths(model: LearnedModel, source: _Source) -> Picture:
    covered = sum(share for _, share in source.paths)
    caption = (
        f"On {source.words}; a band is as thick as its cases are many. {100 * covered:.0f} % of cases take one of the "
        f"{len(source.paths)} most common sequences of tests."
    )
    rows = tuple((" → ".join(map(printable, tests)) or "nothing", f"{100 * share:.1f} %") for tests, share in source.paths)
    table = Table("The most common sequences of tests", ("tests in their order", "cases"), rows)
    svg = plots.inline(plots.paths(source.cases, steps=STEPS, unit=model.unit))
    return Picture(caption, "The paths that cases take, from test to test to a decision", svg, "", table)


# ---------------------------------------------------------------------- how it ends


def _ends(model: LearnedModel, source: _Source, ends: Outcomes) -> list[Block]:
    names = [printable(name) for name in model.schema.classes]
    known = [(name, each) for name, each in zip(names, ends.classes, strict=True) if each.cases]
    rows = tuple((name, f"{round(each.cases):,}", percent(each.recall, each.error)) for name, each in known)
    name, worst = min(known, key=lambda pair: pair[1].recall)
    caption = (
        f"On {source.words}. The class that is missed most often is {name}: {percent(worst.recall, worst.error)} of its "
        f"{round(worst.cases):,} cases are decided rightly."
    )
    table = Table("Share of the cases of each class that is decided rightly", ("class", "cases", "recall"), rows)
    recall = Picture(caption, "Recall by class", plots.inline(plots.recall(source.cases)), "", table)
    left: tuple[Block, ...] = (Heading("Recall by class", 3), recall)
    if not ends.bins:
        return [Heading("How it ends"), *left]
    right = (Heading("How far probabilities can be trusted", 3), _calibration(source, ends, names))
    return [Heading("How it ends"), Beside(left, right)]


def _calibration(source: _Source, ends: Outcomes, names: list[str]) -> Picture:
    about = "the class decided for" if ends.about is None else names[ends.about]
    caption = (
        f"{ends.cases:,} cases by the probability of {about} when they were decided, and how often it came true, with one "
        "standard error; their numbers are above. On the dash-dotted line probabilities are what they say. On average over cases "
        f"they are off by {100 * ends.calibration_error:.1f} percentage points."
    )
    rows = []
    for each in ends.bins:
        figures = (each.probability, each.share, *each.interval)
        rows.append((*(f"{figure:.3f}" for figure in figures), f"{round(each.cases):,}"))
    table = Table(f"Probability of {about}", ("mean probability", "came true", "from", "to", "cases"), tuple(rows))
    return Picture(caption, "Calibration of the probabilities", plots.inline(plots.calibration(source.cases)), "", table)
